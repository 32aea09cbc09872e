"""Actions on a whole study: launch, pause, resume, close, open more places, amend, unblind, clone, archive, delete.

Each act has a page with an explanation and a form. Only sending the form performs the act. The functions are in lifecycle and copying.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.encoding import force_bytes
from django.utils.html import format_html
from django.utils.http import urlsafe_base64_encode

from studies.imports.study_templates import keep_as_template
from studies.services import copying, lifecycle
from studies.services.lifecycle import is_lifecycle_step_allowed

from .. import access
from ..access import Action, get_study
from ..models import Study
from . import workflow
from .amend import amend_page
from .forms import CleanTextMixin
from .permissions import is_request_allowed
from .study_page import render_study_page


class NoFields(forms.Form):
    pass


class ReasonForm(CleanTextMixin, forms.Form):
    reason = forms.CharField(
        max_length=1000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 70}),
        help_text="The study's log keeps it.",
    )


class OptionalReasonForm(ReasonForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = False


class OpenPlacesForm(forms.Form):
    places = forms.IntegerField(
        min_value=1, max_value=100_000, initial=10, label="more places", help_text="How many places to open."
    )


class CloneForm(CleanTextMixin, forms.Form):
    title = forms.CharField(max_length=200, widget=forms.TextInput(attrs={"size": 70}))
    texts = forms.ChoiceField(
        choices=[
            ("with", "with the texts: its prompts, outputs, test questions and ready-made batches"),
            ("without", "without the texts: you import others"),
        ],
        initial="with",
        required=False,
        widget=forms.RadioSelect,
    )


class TemplateForm(CloneForm):
    """The same questions as of a clone; a template is usually for other texts."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["title"].help_text = "The name of the template in the list of templates."
        self.initial["texts"] = "without"


class InviteForm(CleanTextMixin, forms.Form):
    account = forms.CharField(
        max_length=150,
        label="user name or e-mail address",
        help_text="Of an account that exists, or of one that heval makes now.",
    )
    role = forms.ChoiceField(choices=access.Role.choices, initial=access.Role.EDITOR)


@dataclass(frozen=True, slots=True)
class Act:
    """An act. ``do(study, user, cleaned)`` returns (message, URL to redirect to, or '' for the study's page)."""

    name: str
    label: str
    consequences: tuple[str, ...]
    do: Callable[[Study, Any, dict], tuple[str, str]]
    form: type[forms.Form] = NoFields
    action: Action = Action.RUN
    is_irreversible: bool = False

    @property
    def lifecycle_step(self) -> str:
        return {
            "draw-more": "draw more",
            "delete": "delete draft",
            "remove-texts": "remove texts",
            "keep-template": "clone",
            "invite": "clone",
        }.get(self.name, self.name)

    def is_available(self, study: Study) -> bool:
        return is_lifecycle_step_allowed(self.lifecycle_step, study)


def _pause(study, user, cleaned):
    lifecycle.pause(study, user)
    return "The study is paused. No new annotators can start until you resume it.", ""


def _resume(study, user, cleaned):
    lifecycle.resume(study, user)
    return "The study is resumed. Annotators can start again.", ""


def _close(study, user, cleaned):
    lifecycle.start_closing(study, user, cleaned["reason"])
    study.refresh_from_db()
    return f"The study is closing. {workflow.closing_status_text(study)}", ""


def _draw_more(study, user, cleaned):
    places = lifecycle.open_more_places(study, cleaned["places"], user)
    return f"{places} more places are open.", ""


def _unblind(study, user, cleaned):
    lifecycle.unblind(study, user, cleaned["reason"])
    return "Outcomes are visible from now on. The report says since when.", ""


def _clone(study, user, cleaned):
    copy = copying.clone_study(study, user, cleaned["title"], has_texts=cleaned["texts"] != "without")
    return (
        "This is the copy: a draft with the same design and a new seed. If you change the design, check its target and its cap.",
        reverse("admin:studies_study_change", args=[copy.pk]),
    )


def _keep_template(study, user, cleaned):
    template = keep_as_template(study, user, cleaned["title"], has_texts=cleaned["texts"] == "with")
    page = f"{reverse('study_templates')}#own-{template.pk}"
    said = format_html('The template is kept. <a href="{}">New study from “{}”</a>', page, template.title)
    return said, page.partition("#")[0]


def _remove_texts(study, user, cleaned):
    return removal_message(copying.remove_texts(study, user)), ""


def removal_message(counts: Mapping[str, int]) -> str:
    """Return what was removed from a draft, in words."""
    return f"Removed: {counts_in_words(counts) or 'nothing'}. Import a file to add texts."


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return numbers of rows by the plural of their kind as words, such as "1 prompt, 3 outputs"."""
    singular = {"batches": "batch"}
    return ", ".join(f"{n} {singular.get(name, name[:-1]) if n == 1 else name}" for name, n in counts.items() if n)


def _invite(study, user, cleaned):
    try:
        account, is_new = access.invite_colleague(study, user, cleaned["account"], cleaned["role"])
    except ValidationError as refused:
        raise lifecycle.ActionRefused(" ".join(refused.messages)) from None
    name, role = account.get_username(), cleaned["role"]
    if not is_new:
        return f"{name} has the role “{role}” in this study.", ""
    parts = [urlsafe_base64_encode(force_bytes(account.pk)), default_token_generator.make_token(account)]
    address = f"{settings.SITE_URL}{reverse('invitation', args=parts)}"
    return (
        f"The account {name} is made, as {role}. Send your colleague this address, to choose a password within three days: {address}",
        "",
    )


def _archive(study, user, cleaned):
    lifecycle.archive(study, user)
    return "The study is archived. To see it, filter the list of studies by “Archived”.", reverse(
        "admin:studies_study_changelist"
    )


def _restore(study, user, cleaned):
    copying.restore_archived(study, user)
    return "The study is back in the list.", ""


def _delete(study, user, cleaned):
    title = study.title
    done = copying.delete_or_archive_draft(study, user)
    messages_by_outcome = {
        "deleted": f"“{title}” is deleted.",
        "archived": f"“{title}” has records that must be kept. It was archived instead.",
    }
    return messages_by_outcome[done], reverse("admin:studies_study_changelist")


ACTS = {
    act.name: act
    for act in (
        Act(
            "pause",
            "Pause",
            (
                "No new annotators can start until you resume. Annotators who have started can finish, and keep their places.",
            ),
            _pause,
        ),
        Act("resume", "Resume", ("New annotators can start again.",), _resume),
        Act(
            "draw-more",
            "Open more places",
            ("heval draws more batches of the same design if all are taken. Earlier batches do not change.",),
            _draw_more,
            OpenPlacesForm,
        ),
        Act(
            "close",
            "Close",
            (
                "No new annotators can start. You cannot open a closed study again; you can clone it.",
                "Annotators who have started may finish within the grace period, which is set on the study's page. The study takes their "
                "answers until the grace period ends, even if nobody is still answering.",
            ),
            _close,
            OptionalReasonForm,
            is_irreversible=True,
        ),
        Act(
            "unblind",
            "Show outcomes now",
            (
                "heval hides outcomes by system while a study collects. So the results cannot influence when you stop, add or exclude people.",
                "Once you see outcomes, the study's tests are no longer confirmatory. The report says so and gives your reason.",
            ),
            _unblind,
            ReasonForm,
            Action.UNBLIND,
            is_irreversible=True,
        ),
        Act(
            "clone",
            "Clone",
            (
                "Make a new draft with the same design, systems and words, and a new seed. You are its only member, as owner.",
                "Annotators of this study cannot take part in the copy, unless you change that on its page.",
            ),
            _clone,
            CloneForm,
            Action.CLONE,
        ),
        Act(
            "invite",
            "Invite a colleague",
            (
                "Give a colleague a role in this study. If there is no account of this name, heval makes one, and you get an address to send.",
                "To change or remove roles, use the table of colleagues on the study's page.",
            ),
            _invite,
            InviteForm,
            Action.SHARE,
        ),
        Act(
            "keep-template",
            "Keep as a template",
            (
                "Keep the design as a template: sections, questions, sample size, pay, words and planned comparisons. The study itself does not change.",
                "Members of this study who may clone it can use the template.",
            ),
            _keep_template,
            TemplateForm,
            Action.CLONE,
        ),
        Act(
            "remove-texts",
            "Remove all texts",
            (
                "Remove all prompts and outputs of the draft, with its test runs, and with the practice items, test questions and ready-made "
                "batches that show them. Systems and sections stay.",
            ),
            _remove_texts,
            action=Action.EDIT,
            is_irreversible=True,
        ),
        Act(
            "archive",
            "Archive",
            ("The study disappears from the list. Nothing is lost, and you can bring it back.",),
            _archive,
            action=Action.ARCHIVE,
        ),
        Act("restore", "Bring back", ("The study appears in the list again.",), _restore, action=Action.ARCHIVE),
        Act(
            "delete",
            "Delete draft",
            (
                "Delete the draft with its systems, prompts, outputs and test runs. If it has records that must be kept, it is archived instead.",
            ),
            _delete,
            action=Action.ARCHIVE,
            is_irreversible=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class ActLink:
    label: str
    url: str


def available_acts_by_weight(request, study: Study) -> dict[str, list[ActLink]]:
    """Return the acts that this user may perform now, for the study's pages: ``acts``, and ``grave_acts`` that cannot be undone."""
    light: list[ActLink] = []
    grave: list[ActLink] = []
    if is_lifecycle_step_allowed("launch", study) and is_request_allowed(request, Action.LAUNCH, study.pk):
        light.append(ActLink("Launch…", reverse("study_launch", args=[study.pk])))
    if is_lifecycle_step_allowed("amend", study) and is_request_allowed(request, Action.RUN, study.pk):
        light.append(ActLink("Amend", reverse("admin:studies_amend", args=[study.pk])))
    for act in ACTS.values():
        if act.is_available(study) and is_request_allowed(request, act.action, study.pk):
            link = ActLink(act.label, reverse("admin:studies_act", args=[study.pk, act.name]))
            (grave if act.is_irreversible else light).append(link)
    return {"acts": light, "grave_acts": grave}


def act_url_patterns(model_admin) -> list:
    page = model_admin.admin_site.admin_view
    return [
        path("<int:pk>/amend/", page(amend_page), name="studies_amend"),
        path("<int:pk>/<slug:name>/do/", page(act_page), name="studies_act"),
    ]


def act_page(request, pk, name) -> HttpResponse:
    """Show the page of one act. POST performs the act."""
    act = ACTS.get(name)
    study = get_study(request.user, act.action if act else Action.VIEW, pk=pk)
    home = reverse("admin:studies_study_change", args=[study.pk])
    if act is None or not act.is_available(study):
        messages.warning(
            request,
            f"You cannot do this now: the study is {_state_text(study)}. The buttons below show what you can do.",
        )
        return HttpResponseRedirect(home)
    initial = {"title": study.title if act.form is TemplateForm else f"Copy of {study.title}"[:200]}
    form = act.form(request.POST or None, initial=initial) if request.method == "POST" else act.form(initial=initial)
    if request.method == "POST" and (act.form is NoFields or form.is_valid()):
        cleaned = form.cleaned_data if act.form is not NoFields else {}
        try:
            message, following = act.do(study, request.user, cleaned)
        except lifecycle.ActionRefused as refused:
            messages.error(request, str(refused))
            return HttpResponseRedirect(request.path)
        messages.success(request, message)
        return HttpResponseRedirect(following or home)
    context = {"title": act.label, "act": act, "form": form, "home": home}
    return render_study_page(request, "admin/studies/act.html", study, context, 422 if form.errors else 200)


def _state_text(study: Study) -> str:
    return "archived" if study.archived_at else f"{'a ' if study.is_draft else ''}{study.state}"
