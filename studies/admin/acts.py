"""Acts on a whole study, and the pages of ``studies.acts``: each has an explanation and a form. Only sending the form performs the act."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.tokens import default_token_generator
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.encoding import force_bytes
from django.utils.html import format_html
from django.utils.http import urlsafe_base64_encode

from studies.acts import ACTS, Act, ActField
from studies.services import lifecycle
from studies.services.lifecycle import is_lifecycle_step_allowed

from ..access import Action, get_study
from ..models import OwnTemplate, Study
from . import workflow
from .amend import amend_page
from .forms import CleanTextMixin
from .permissions import is_request_allowed
from .study_page import render_study_page


class ActForm(CleanTextMixin, forms.Form):
    """The values that an act asks for."""

    def __init__(self, act: Act, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for field in act.fields:
            self.fields[field.name] = _form_field(field)


def _form_field(field: ActField) -> forms.Field:
    usual: dict[str, Any] = {
        "required": field.is_required,
        "label": field.label or None,
        "help_text": field.help,
        "initial": field.default,
    }
    if field.choices:
        choose: type[forms.Select] | type[forms.RadioSelect] = forms.Select if field.is_required else forms.RadioSelect
        return forms.ChoiceField(choices=field.choices, widget=choose, **usual)
    if field.maximum:
        return forms.IntegerField(min_value=1, max_value=field.maximum, **usual)
    widget = forms.Textarea({"rows": 3, "cols": 70}) if field.is_long else forms.TextInput({"size": 70})
    return forms.CharField(max_length=field.max_length, widget=widget, **usual)


# What the page says after each act, and where it leads: '' for the study's page.


Said = tuple[str, str]


def _said_of_closing(study: Study, result: Any, values: Mapping[str, Any]) -> Said:
    study.refresh_from_db()
    return f"The study is closing. {workflow.closing_status_text(study)}", ""


def _said_of_copy(study: Study, copy: Study, values: Mapping[str, Any]) -> Said:
    return (
        "This is the copy: a draft with the same design and a new seed. If you change the design, check its target and its cap.",
        reverse("admin:studies_study_change", args=[copy.pk]),
    )


def _said_of_template(study: Study, template: OwnTemplate, values: Mapping[str, Any]) -> Said:
    page = f"{reverse('study_templates')}#own-{template.pk}"
    said = format_html('The template is kept. <a href="{}">New study from “{}”</a>', page, template.title)
    return said, page.partition("#")[0]


def removal_message(counts: Mapping[str, int]) -> str:
    """Return what was removed from a draft, in words."""
    return f"Removed: {counts_in_words(counts) or 'nothing'}. Import a file to add texts."


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return numbers of rows by the plural of their kind as words, such as "1 prompt, 3 outputs"."""
    singular = {"batches": "batch"}
    return ", ".join(f"{n} {singular.get(name, name[:-1]) if n == 1 else name}" for name, n in counts.items() if n)


def _said_of_invitation(study: Study, invited: tuple[Any, bool], values: Mapping[str, Any]) -> Said:
    account, is_new = invited
    name, role = account.get_username(), values["role"]
    if not is_new:
        return f"{name} has the role “{role}” in this study.", ""
    return (
        f"The account {name} is made, as {role}. Send your colleague this address, to choose a password within three days: {invitation_address(account)}",
        "",
    )


def invitation_address(account) -> str:
    """Return the address where a new colleague chooses a password. Anybody who has the address can choose it."""
    parts = [urlsafe_base64_encode(force_bytes(account.pk)), default_token_generator.make_token(account)]
    return f"{settings.SITE_URL}{reverse('invitation', args=parts)}"


def _said_of_deletion(study: Study, done: str, values: Mapping[str, Any]) -> Said:
    said = {
        "deleted": f"“{study.title}” is deleted.",
        "archived": f"“{study.title}” has records that must be kept. It was archived instead.",
    }
    return said[done], reverse("admin:studies_study_changelist")


def _always(text: str) -> Callable[..., Said]:
    return lambda study, result, values: (text, "")


SAID: dict[str, Callable[[Study, Any, Mapping[str, Any]], Said]] = {
    "pause": _always("The study is paused. No new annotators can start until you resume it."),
    "resume": _always("The study is resumed. Annotators can start again."),
    "places": lambda study, places, values: (f"{places} more places are open.", ""),
    "close": _said_of_closing,
    "outcomes": _always("Outcomes are visible from now on. The report says since when."),
    "clone": _said_of_copy,
    "invite": _said_of_invitation,
    "keep-template": _said_of_template,
    "remove-texts": lambda study, counts, values: (removal_message(counts), ""),
    "archive": lambda study, result, values: (
        "The study is archived. To see it, filter the list of studies by “Archived”.",
        reverse("admin:studies_study_changelist"),
    ),
    "restore": _always("The study is back in the list."),
    "delete": _said_of_deletion,
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
    initial = {"title": study.title if act.name == "keep-template" else f"Copy of {study.title}"[:200]}
    form = ActForm(act, request.POST if request.method == "POST" else None, initial=initial)
    if form.is_valid():
        try:
            result = act.perform(study, request.user, **form.cleaned_data)
        except lifecycle.ActionRefused as refused:
            messages.error(request, str(refused))
            return HttpResponseRedirect(request.path)
        message, following = SAID[act.name](study, result, form.cleaned_data)
        messages.success(request, message)
        return HttpResponseRedirect(following or home)
    context = {"title": act.label, "act": act, "form": form, "home": home}
    return render_study_page(request, "admin/studies/act.html", study, context, 422 if form.errors else 200)


def _state_text(study: Study) -> str:
    return "archived" if study.archived_at else f"{'a ' if study.is_draft else ''}{study.state}"
