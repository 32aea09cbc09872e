"""API views of studies, their design, progress and sample."""

from dataclasses import asdict
from typing import Any

from django.db import transaction
from django.http import Http404
from rest_framework.generics import ListAPIView, RetrieveAPIView
from rest_framework.response import Response

from analysis.api.permissions import get_api_token
from annotators.places import assign, monitor
from annotators.places.steps import steps_of_study
from annotators.recruitment import sample
from studies import access
from studies.access import Action
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.imports.study_templates import new_draft_from
from studies.models import Design, Study
from studies.services import drafts
from studies.services.copying import delete_or_archive_draft

from . import serializers as shapes
from .base import ApiView, PostMixin, StudyView
from .query import Parameter, integer_parser, text_filter
from .renderers import FieldError
from .uploads import require_json_object
from .waiting import WaitMixin


class StudiesView(PostMixin, ApiView, ListAPIView):
    """List the studies in which you have a role, or create a draft."""

    summaries = {"GET": "Studies that you have a role in", "POST": "Create a draft"}
    parameters = (text_filter("state", "state", "Only studies in this state.", tuple(Study.State.values)),)
    queryset = Study.objects.select_related("owner", "clone_of")
    serializer_class = shapes.StudySerializer
    body_serializer_class = shapes.NewStudySerializer
    success_status = 201

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.read_query()

    def get_queryset(self):
        token = get_api_token(self.request)
        return access.filter_allowed(self.request.user, super().get_queryset(), Action.VIEW_BASICS, token=token)

    def list(self, request):
        roles = access.roles_by_study_id(request.user)
        return self.get_paginated_response([_study_json(study, request.user, roles) for study in self.get_page()])

    def post(self, request):
        access.check_permission_or_404(request.user, Action.CREATE, token=get_api_token(request))
        return super().post(request)

    @transaction.atomic
    def perform(self, version: int | None = None, bundle=None, template: str = "", **fields: Any) -> Study:
        if bundle is None and not template:
            return reload_study(drafts.create_draft_with_default_arm(Study(**fields), self.request.user))
        study = new_draft_from(bundle, template, self.request.user)
        if (code := fields.pop("code", study.code)) != study.code:
            Study.objects.filter(pk=study.pk).update(code=code)
        return reload_study(drafts.update_draft(Study.objects.get(pk=study.pk), self.request.user, fields))


class StudyDetailView(StudyView):
    """One study: texts for annotators, plan and state."""

    read_action = Action.VIEW_BASICS
    summaries = {"GET": "A study", "PATCH": "Change fields of a draft", "DELETE": "Delete a draft"}
    actions = {"DELETE": Action.ARCHIVE}
    serializer_class = body_serializer_class = shapes.StudySerializer
    result_of_delete = shapes.DeletedSerializer

    def get(self, request, code):
        return Response(_study_json(reload_study(self.study), request.user))

    def patch(self, request, code):
        changes = self.check_fields(require_json_object(request), self.study)
        version = changes.pop("version", None)
        if changes.pop("code", self.study.code) != self.study.code:
            raise FieldError("code", "The code of a study cannot be changed. Leave this field out.")
        return self.answer(reload_study(drafts.update_draft(self.study, request.user, changes, version)))

    def delete(self, request, code):
        """Delete a draft. If it has records that must be kept, it is archived instead."""
        return self.answer({"outcome": delete_or_archive_draft(self.study, request.user)})


def _study_json(study: Study, user, roles: dict[int, str] | None = None) -> dict[str, Any]:
    """Return a study as JSON. Blind coders get only the public title, because the internal title can reveal hypotheses."""
    fields = shapes.StudySerializer(study).data
    if not access.may_read_draw(user, study):
        del fields["seed"]
    if access.is_allowed(user, Action.VIEW, study, roles):
        return fields
    return fields | {
        "title": study.public_title,
        "exclusion_group": "",
        "required_qualification": "",
        "preparation": {},
    }


def reload_study(study: Study) -> Study:
    return Study.objects.select_related("owner", "clone_of").get(pk=study.pk)


class StudyDesignView(StudyView, RetrieveAPIView):
    """A version of the frozen design as JSON text with its hash. For a draft, its current design."""

    summaries = {"GET": "The design as hashed JSON text"}
    parameters = (Parameter("version", integer_parser(1, 32767), "Design version. Default: the newest.", None, int),)
    serializer_class = shapes.DesignSerializer

    def get_object(self) -> Design:
        access.check_draw_is_readable(self.request.user, self.study)
        designs = Design.objects.filter(study=self.study).order_by("-version")
        if self.values["version"] is not None:
            designs = designs.filter(version=self.values["version"])
        design = designs.first()
        if design is None and (self.values["version"] is not None or not self.study.is_draft):
            raise Http404
        if design is None:
            text = canonical_json(serialize_design(self.study))
            design = Design(version=None, canonical=text, sha256=sha256_of(text), at=None)  # type: ignore[misc]  # not stored
        return design


class ProgressView(WaitMixin):
    """Counts of places, and of assignments that were claimed, started, submitted, released or withdrawn.

    With ``wait`` and the ETag of an earlier answer as If-None-Match, it answers when the state or a count has changed.
    """

    summaries = {"GET": "Counts of places and assignments"}
    serializer_class = shapes.ProgressSerializer

    def watched(self) -> Any:
        study = self.study
        counts = monitor.count_claims_by_state(study), monitor.progress_by_study([study.pk])
        return study.state, study.target_n, study.open_to, counts

    def get_object(self) -> dict[str, Any]:
        counts = monitor.count_claims_by_state(self.study)
        total, _ = monitor.count_places_by_arm(self.study)
        progress = monitor.progress_by_study([self.study.pk]).get(self.study.pk)
        places = {"counted": progress.submitted if progress else 0, "places": total.wanted, "free": total.free}
        state = {"state": self.study.state, "target_n": self.study.target_n}
        test = assign.count_qualification_results(self.study)
        steps = [
            {"link": link.pk, "channel": link.channel, **asdict(status), "opened": status.opened, "free": status.free}
            for link, status in steps_of_study(self.study)
        ]
        return {**state, **places, **counts, "late": total.late, "test": test, "steps": steps}


class DemographicsView(StudyView, ListAPIView):
    """Counts of the declared columns of a panel's demographic file. Values of single annotators are never sent."""

    summaries = {"GET": "Demographics of the sample, as counts"}
    pagination_class = None
    serializer_class = shapes.DemographicColumnSerializer

    def get_queryset(self):
        return sample.sample_demographics_table(self.study)
