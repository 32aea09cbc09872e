"""The practice items of a training section: their texts and explanations, and a form that adds another."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from studies.services import drafts
from studies.services.lifecycle import ActionRefused
from studies.services.practice import create_practice_item_and_delete_test_runs, delete_practice_item_and_test_runs

from ..access import Action, get_row
from ..models import Expected, Item, Output, Section
from ..protocols import REGISTRY
from ..protocols.base.practice import FIRST, SAME, SECOND, practice_questions
from . import workflow
from .forms.cleaning import CleanTextMixin
from .forms.fields import MarkdownArea, RowChoiceField, RowMultipleChoiceField
from .permissions import is_request_allowed, parse_row_id


class PracticeForm(CleanTextMixin, forms.Form):
    """Texts for the same prompt, chosen by the names of their systems, with the expected answers if people enter them."""

    prompt = forms.CharField(
        max_length=100, help_text="The key of the prompt. heval does not show this prompt in sections that count."
    )
    explanation = forms.CharField(
        required=False,
        widget=MarkdownArea(attrs={"rows": 4}),
        help_text="Why this is the right answer. Markdown. Words that you quote in “…” are highlighted in the text.",
    )

    def __init__(self, section, *args, **kwargs):
        super().__init__(*args, **kwargs)
        systems = {system.pk: system for system in section.study.systems.judged().order_by("name")}
        self.fields["first"] = RowChoiceField(systems, empty="choose", label="text by")
        self.fields["second"] = RowChoiceField(
            systems,
            empty="no second text",
            required=False,
            label="second text by",
            help_text="For pages with two texts or more. A practice page shows as many texts as you choose here.",
        )
        protocol = REGISTRY[section.protocol]
        if protocol.practice_answers != "authors" and protocol.comparison_scope != "pair":
            self.fields["others"] = RowMultipleChoiceField(
                systems, label="further texts by", help_text="For pages with more than two texts."
            )
        for question in practice_questions(protocol, section):
            self.fields[f"expected_{question.key}"] = _expected_field(protocol.practice_answers, question)
        answers = [name for name in self.fields if name.startswith("expected_")]
        self.order_fields(["prompt", "first", "second", "others", *answers, "explanation"])
        self.section = section

    def clean(self):
        cleaned = super().clean() or self.cleaned_data
        key, systems = cleaned.get("prompt"), [cleaned[name] for name in ("first", "second") if cleaned.get(name)]
        systems += cleaned.get("others") or ()
        if not key or not cleaned.get("first"):
            return cleaned
        rows = Output.objects.filter(prompt__study=self.section.study_id, prompt__key=key, system__in=systems)
        by_system = {output.system_id: output for output in rows.select_related("system").order_by("-sample")}
        for system in systems:
            if system.pk not in by_system:
                self.add_error(
                    "prompt",
                    f"{system.name} has no output for a prompt with the key “{key}”. Choose another prompt or system.",
                )
        cleaned["outputs"] = [by_system[system.pk] for system in systems if system.pk in by_system]
        return cleaned

    def given_answers(self) -> dict[str, str]:
        """Return the entered expected answers by question key."""
        prefix = "expected_"
        return {name.removeprefix(prefix): text for name, text in self.cleaned_data.items() if name.startswith(prefix)}


def _expected_field(kind: str, question) -> forms.Field:
    """Return the field for the expected answer to a question: a text of the item, or a range."""
    label = f"right answer to “{question.key}”"
    if kind == "points":
        return forms.CharField(
            required=False,
            max_length=30,
            label=label,
            help_text="For the first text: a number, or a range such as 4-5. Every answer in the range is right.",
        )
    choices = [("", "no right answer"), (FIRST, "the first text"), (SECOND, "the second text")]
    if kind == "points_toward_first":
        choices.append((SAME, "both are the same"))
        choices[1:3] = [(FIRST, "the first text is better"), (SECOND, "the second text is better")]
    return forms.ChoiceField(choices=choices, required=False, label=label)


def can_have_practice_items(section) -> bool:
    """Return whether this is a training section whose protocol has practice items with an expected answer."""
    protocol = REGISTRY.get(section.protocol)
    return protocol is not None and bool(protocol.practice_answers) and section.purpose == Section.Purpose.TRAINING


def practice_page_link(section) -> dict[str, str] | None:
    """Return the link to this page with the number of items, or None if the section can have none."""
    if not can_have_practice_items(section):
        return None
    n = section.items.filter(kind=Item.Kind.PRACTICE).count()
    text = (
        f"{n} of the {section.m} that each annotator needs"
        if n < section.m
        else f"{n}; each annotator sees {section.m}"
    )
    return {"url": reverse("admin:studies_section_practice", args=[section.pk]), "words": f"{text}."}


@require_http_methods(["GET", "HEAD", "POST"])
def practice_page(request, pk) -> HttpResponse:
    action = Action.EDIT if request.method == "POST" else Action.VIEW
    section = get_row(request.user, action, Section.objects.select_related("study"), pk=pk)
    if not can_have_practice_items(section):
        raise Http404("No section with practice items has this id.")
    study = section.study
    may_change = is_request_allowed(request, Action.EDIT, study.pk) and study.is_draft
    page_url = reverse("admin:studies_section_practice", args=[section.pk])
    form = PracticeForm(section) if may_change else None
    if request.method == "POST":
        try:
            drafts.refuse_if_launched(study)
            form = PracticeForm(section, request.POST)
            if "delete" in request.POST:
                return _delete_item(request, section, page_url)
            if form.is_valid() and _create_item(request, section, form):
                return HttpResponseRedirect(page_url)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
            return HttpResponseRedirect(page_url)
    context = {
        **admin.site.each_context(request),
        "title": f"Practice items of section {section.position}",
        "subtitle": study.title,
        "study": study,
        "steps": workflow.workflow_steps(study),
        "section": section,
        "items": _item_rows(section),
        "form": form,
        "back": reverse("admin:studies_section_change", args=[section.pk]),
    }
    status = 422 if form is not None and form.is_bound else 200
    return TemplateResponse(request, "admin/studies/practice.html", context, status=status)


def _create_item(request, section, form) -> bool:
    values = form.cleaned_data
    try:
        create_practice_item_and_delete_test_runs(
            section, values["outputs"], values["explanation"], form.given_answers(), by=request.user
        )
    except ActionRefused as refused:
        form.add_error(None, str(refused))
        return False
    messages.success(request, "The practice item is stored.")
    return True


def _delete_item(request, section, page_url):
    pk = parse_row_id(request.POST["delete"])
    item = section.items.filter(pk=pk, kind=Item.Kind.PRACTICE).first() if pk else None
    if item is not None:
        delete_practice_item_and_test_runs(item, request.user)
    text = "The practice item is deleted." if item is not None else "That practice item is already deleted."
    messages.success(request, text)
    return HttpResponseRedirect(page_url)


def _item_rows(section):
    rows = Expected.objects.filter(item__section=section, item__kind=Item.Kind.PRACTICE)
    rows = rows.select_related("item__prompt", "question", "exposure__output__system", "about__output__system")
    items: dict[int, dict[str, Any]] = {}
    for row in rows.prefetch_related("item__exposures__output__system").order_by("item__number", "question__position"):
        item = items.setdefault(
            row.item_id,
            {
                "pk": row.item_id,
                "prompt": row.item.prompt,
                "texts": [(exposure.output.system, exposure.output) for exposure in row.item.exposures.all()],
                "explanation": row.explanation,
                "known": [],
            },
        )
        item["known"].append((row.question.key, _known_text(row)))
    return list(items.values())


def _known_text(expected: Expected) -> str:
    if expected.exposure is not None:
        return expected.exposure.output.system.name
    values = f"{expected.low:g}" if expected.low == expected.high else f"{expected.low:g} to {expected.high:g}"
    return f"{values} for {expected.about.output.system.name}" if expected.about is not None else values
