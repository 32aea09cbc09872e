"""API views of what is done to a whole study: its checklist, its launch, and each act of ``studies.acts``."""

from typing import Any

from django.conf import settings
from django.urls import path, reverse
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView

from studies import access
from studies.access import Action
from studies.acts import ACTS, Act, ActField
from studies.admin.acts import invitation_address
from studies.design.checklist import check_design
from studies.imports.bundle import ValueRefused, json_to_column_value
from studies.models import Arm, Design, Job, OwnTemplate, Question, Study, audit
from studies.services import lifecycle
from studies.services.lifecycle import ActionRefused, FieldsRefused

from . import act_serializers
from . import serializers as shapes
from .base import JobMixin, PostMixin, StudyView
from .studies import reload_study


class ChecklistView(StudyView, RetrieveAPIView):
    """What is missing in a draft (``is_blocking``), and what is unwise. A launch names the key of each warning that you accept."""

    read_action = Action.VIEW
    summaries = {"GET": "What a draft still needs before its launch"}
    serializer_class = act_serializers.ChecklistSerializer

    def get_object(self) -> dict[str, Any]:
        check = check_design(self.study)
        is_ready = self.study.is_draft and not any(problem.is_blocking for problem in check.problems)
        page = f"{settings.SITE_URL}{reverse('study_launch', args=[self.study.pk])}"
        return {"is_ready": is_ready, "problems": check.problems, "populations": check.populations, "page": page}


class LaunchView(JobMixin, StudyView):
    """Launch a draft. Nothing is launched while something is missing, or a warning is not acknowledged: the answer lists them."""

    write_action = Action.LAUNCH
    summaries = {"POST": "Launch a draft; returns the job to poll"}
    body_serializer_class = act_serializers.LaunchSerializer
    job_kind = "launch"

    def start_job(self, token: str | None, acknowledged: list[str] | None = None) -> Job:
        return lifecycle.request_launch(self.study, self.request.user, acknowledged or [])


class AmendView(PostMixin, StudyView):
    """Change words, pay or minutes of a launched study. This makes a new version of the design, which later annotators get."""

    write_action = Action.RUN
    summaries = {"POST": "Amend a launched study"}
    serializer_class = shapes.DesignSerializer
    body_serializer_class = act_serializers.AmendSerializer
    success_status = 201

    def perform(self, reason: str, **sent: dict[str, Any]) -> Design:
        arms = {arm.name: arm.pk for arm in self.study.arms.all()}
        questions = {
            f"{position}.{key}": pk
            for position, key, pk in Question.objects.filter(section__study=self.study).values_list(
                "section__position", "key", "pk"
            )
        }
        changes: dict[str, dict[Any, dict[str, Any]]] = {}
        if columns := sent.get("study"):
            changes["study"] = {None: _column_values("study", columns, "study")}
        for part, kind, rows in (("arms", "arm", arms), ("questions", "question", questions)):
            for name, columns in sent.get(part, {}).items():
                if name not in rows:
                    listed = ", ".join(rows) or "none"
                    raise FieldsRefused(
                        {f"{part}.{name}": f"The study has no such {kind}. Leave it out. It has: {listed}."}
                    )
                changes.setdefault(kind, {})[rows[name]] = _column_values(kind, columns, f"{part}.{name}")
        return lifecycle.amend(self.study, changes, self.request.user, reason)


def _column_values(kind: str, sent: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the values with the types of their columns. Those that cannot be amended are left for ``lifecycle.amend`` to refuse."""
    model: Any = {"study": Study, "arm": Arm, "question": Question}[kind]
    try:
        return {
            name: json_to_column_value(model._meta.get_field(name), value, f"{path}.{name}")
            if name in lifecycle.AMENDABLE[kind]
            else value
            for name, value in sent.items()
        }
    except ValueRefused as refused:
        raise FieldsRefused({refused.path: f"This {refused.text}"}) from None


class ActView(PostMixin, StudyView):
    """An act on the whole study."""

    act: Act
    serializer_class: Any = shapes.StudySerializer

    def perform(self, **values: Any) -> Any:
        if not self.act.is_available(self.study):
            state = "archived" if self.study.archived_at else self.study.state
            raise ActionRefused(
                f"The study is {state}, so this is not possible now. Read its state before you repeat this."
            )
        return self.shown(self.act.perform(self.study, self.request.user, **values), values)

    def shown(self, result: Any, values: dict[str, Any]) -> Any:
        """Return what the answer shows of the result: of most acts, the study."""
        return reload_study(self.study)


class CloneView(ActView):
    success_status = 201

    def shown(self, result: Study, values: dict[str, Any]) -> Study:
        return reload_study(result)


class InviteView(ActView):
    """Give a colleague a role. A new account comes with an address where your colleague chooses a password; it is shown only now."""

    needs_people_scope = True
    success_status = 201
    serializer_class = act_serializers.InvitedSerializer

    def shown(self, result: tuple[Any, bool], values: dict[str, Any]) -> dict[str, Any]:
        account, is_new = result
        return {"account": account, "role": values["role"], "address": invitation_address(account) if is_new else None}

    def name_of_secret(self, data: Any) -> str:
        return f"the account {data['account']}" if data["address"] else ""


class KeepTemplateView(ActView):
    success_status = 201
    serializer_class = act_serializers.OwnTemplateSerializer

    def shown(self, result: OwnTemplate, values: dict[str, Any]) -> OwnTemplate:
        return result


class RemoveTextsView(ActView):
    serializer_class = act_serializers.RemovedSerializer

    def shown(self, result: dict[str, int], values: dict[str, Any]) -> dict[str, Any]:
        return {"removed": result}


BASES: dict[str, type[ActView]] = {
    "clone": CloneView,
    "invite": InviteView,
    "keep-template": KeepTemplateView,
    "remove-texts": RemoveTextsView,
}
# A draft is deleted by DELETE.
POSTED = [act for act in ACTS.values() if act.name != "delete"]


def _serializer_field(field: ActField) -> serializers.Field:
    usual: dict[str, Any] = {"required": field.is_required, "help_text": field.help}
    if not field.is_required:
        usual["default"] = field.default
    if field.choices:
        return shapes.ListedField(choices=field.choices, **usual)
    if field.maximum:
        return shapes.StrictIntegerField(min_value=1, max_value=field.maximum, **usual)
    kind = shapes.CleanTextField if field.is_long else shapes.NameField
    return kind(max_length=field.max_length, allow_blank=not field.is_required, **usual)


def _view_of(act: Act) -> Any:
    base = BASES.get(act.name, ActView)
    name = "".join(part.capitalize() for part in act.name.split("-"))
    fields = {field.name: _serializer_field(field) for field in act.fields}
    body = type(f"{name}RequestSerializer", (shapes.StrictMixin, serializers.Serializer), fields)
    attributes = {
        "__doc__": " ".join(act.consequences),
        "act": act,
        "summaries": {"POST": act.label},
        "write_action": act.action,
        "body_serializer_class": body if fields else None,
    }
    view: Any = type(f"{name}View", (base,), attributes)
    return view.as_view()


def act_paths(study: str) -> list:
    """Return the addresses of all acts below a study's."""
    return [path(f"{study}{act.name}/", _view_of(act), name=f"api-{act.name}") for act in POSTED]


class MembersView(StudyView, ListAPIView):
    """The people with a role in the study. ``invite/`` adds one."""

    read_action = Action.VIEW
    summaries = {"GET": "Members of a study, with their roles"}
    serializer_class = act_serializers.StudyMemberSerializer

    def get_queryset(self):
        return access.members_of(self.study)


class LogView(StudyView, ListAPIView):
    """The log of a study: who did what, and when. It is never changed."""

    read_action = Action.VIEW
    summaries = {"GET": "The log of a study"}
    serializer_class = act_serializers.AuditEventSerializer

    def get_queryset(self):
        return audit.events_of(self.study).select_related("by")
