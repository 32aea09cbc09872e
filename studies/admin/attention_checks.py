"""The attention checks of a study: what each asks, and a form that reads them from a file."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from studies.design.subjects import numbered_name
from studies.imports.check_files import (
    COLUMNS,
    ChecksFileRefused,
    StoredChecks,
    attention_sections,
    store_attention_checks_and_delete_test_runs,
)
from studies.services.lifecycle import ActionRefused
from studies.stimuli.rows import ACCEPTED

from ..access import Action, get_study
from ..models import Section, Study
from ..protocols.base.fields import parse_scale
from . import study_page
from .forms import RowChoiceField, add_file_problems
from .permissions import is_request_allowed


class ChecksFileForm(forms.Form):
    """A file of attention checks, and whether it may replace some."""

    file = forms.FileField(
        label="file",
        help_text=(
            f"A table (CSV, JSON or a workbook) with the columns {', '.join(COLUMNS)}. Separate the answers by bars: No | Yes. "
            "right: one of the answers. help may be left out."
        ),
        widget=forms.FileInput(attrs={"accept": ACCEPTED}),
    )
    replaces = forms.BooleanField(
        required=False,
        label="replace checks with the same key",
        help_text="Not ticked: a key that exists with other words is refused.",
    )

    def __init__(self, sections: list[Section], *args, **kwargs):
        super().__init__(*args, **kwargs)
        if len(sections) > 1:
            rows = {section.pk: section for section in sections}
            self.fields["section"] = RowChoiceField(rows, empty="choose", label="section")


def attention_checks_link(section: Section) -> dict[str, str] | None:
    """Return the link to this page, or None if the section holds no attention checks."""
    if section.purpose != Section.Purpose.ATTENTION:
        return None
    url = reverse("admin:studies_study_attention_checks", args=[section.study_id])
    return {"url": url, "words": "Read them from a file."}


@require_http_methods(["GET", "HEAD", "POST"])
def attention_checks_page(request, pk) -> HttpResponse:
    """Show the attention checks of a study. POST reads a file of them into a draft."""
    study = get_study(request.user, Action.EDIT if request.method == "POST" else Action.VIEW, pk=pk)
    sections, form = attention_sections(study), None
    if request.method == "POST" or (study.is_draft and is_request_allowed(request, Action.EDIT, study.pk)):
        form = ChecksFileForm(sections, *([request.POST, request.FILES] if request.method == "POST" else []))
    if form and form.is_bound and form.is_valid() and _store_file(request, study, form):
        return HttpResponseRedirect(request.path)
    context = {
        "title": "Attention checks",
        "sections": [
            (section, numbered_name(section), list(map(_describe, section.questions.all()))) for section in sections
        ],
        "form": form,
    }
    return study_page.render_study_page(
        request,
        "admin/studies/attention_checks.html",
        study,
        context,
        status=422 if form and form.is_bound else 200,
    )


def _store_file(request, study: Study, form: ChecksFileForm) -> bool:
    file, section = form.cleaned_data["file"], form.cleaned_data.get("section")
    try:
        stored = store_attention_checks_and_delete_test_runs(
            study,
            file.name,
            file.read(),
            by=request.user,
            position=section.position if section else None,
            replaces=form.cleaned_data["replaces"],
        )
    except ChecksFileRefused as refused:
        add_file_problems(form, refused.problems.first, refused.problems.count)
        return False
    except ActionRefused as refused:
        form.add_error(None, str(refused))
        return False
    messages.success(request, _stored_message(stored))
    return True


def _stored_message(stored: StoredChecks) -> str:
    groups = {"new": stored.added, "replaced": stored.replaced, "unchanged": stored.unchanged}
    texts = [f"{len(keys)} {name} ({', '.join(keys)})" for name, keys in groups.items() if keys]
    return f"Attention checks of section {stored.section}: {'; '.join(texts)}."


def _describe(question) -> dict[str, Any]:
    """Return a question with its answers. A scale that cannot be read has none; the checklist names it."""
    try:
        options = parse_scale(question.scale).options
    except (ValueError, TypeError, KeyError):
        options = ()
    return {"key": question.key, "text": question.text, "options": options}
