"""Pages of a section's practice items and of its test questions: what they show, their known answers, and forms that add them."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from studies.design.draw import has_test_question_settings
from studies.design.known_answer_texts import DAMAGES
from studies.design.subjects import numbered_name
from studies.imports.check_files import (
    file_columns,
    practice_columns,
    read_practice_file,
    read_test_question_file,
)
from studies.services import drafts
from studies.services.known_answers import (
    GivenQuestionsRefused,
    KnownAnswerRequest,
    create_practice_item_and_delete_test_runs,
    delete_practice_item_and_test_runs,
    delete_test_question_and_test_runs,
    make_test_questions_and_delete_test_runs,
    questions_about_items,
    store_given_test_questions_and_delete_test_runs,
    store_practice_items_and_delete_test_runs,
)
from studies.services.lifecycle import ActionRefused

from ..access import Action, get_row
from ..models import FIRST_TEST_NUMBER, Expected, Item, Output, Section
from ..protocols import REGISTRY
from ..protocols.base.known_answers import FIRST, SAME, SECOND, known_answer, practice_questions
from . import workflow
from .forms import CleanTextMixin, MarkdownArea, RowChoiceField, RowMultipleChoiceField, add_file_problems
from .permissions import is_request_allowed, parse_row_id

# The practice items of a training section: their texts and explanations, and a form that adds another.


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


class PracticeFileForm(CleanTextMixin, forms.Form):
    """A file of practice items."""

    file = forms.FileField(label="file")

    def __init__(self, section, *args, **kwargs):
        super().__init__(*args, **kwargs)
        columns = practice_columns(section)
        right = (
            f" {columns[2]}: first or second, or a number or range such as 4-5 for the first text; empty if no answer is right."
            if len(columns) > 3
            else ""
        )
        self.fields["file"].help_text = (
            f"A table (CSV, JSON or a workbook) with the columns {', '.join(columns)}. prompt: its key; systems: whose texts the page "
            f"shows, with | between them.{right}"
        )


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
    file_form = PracticeFileForm(section) if may_change else None
    if request.method == "POST":
        try:
            drafts.refuse_if_launched(study)
            if "delete" in request.POST:
                return _delete_item(request, section, page_url)
            if "given" in request.POST:
                file_form = PracticeFileForm(section, request.POST, request.FILES)
                if file_form.is_valid() and _store_practice_file(request, section, file_form):
                    return HttpResponseRedirect(page_url)
            else:
                form = PracticeForm(section, request.POST)
            if form is not None and form.is_valid() and _create_item(request, section, form):
                return HttpResponseRedirect(page_url)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
            return HttpResponseRedirect(page_url)
    context = {
        **admin.site.each_context(request),
        "title": f"Practice items of section {numbered_name(section)}",
        "subtitle": study.title,
        "study": study,
        "tabs": workflow.study_tabs(request, study, "Design"),
        "section": section,
        "items": _item_rows(section),
        "form": form,
        "file_form": file_form,
        "back": reverse("admin:studies_section_change", args=[section.pk]),
    }
    status = 422 if any(one is not None and one.is_bound for one in (form, file_form)) else 200
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


# The test questions of a section: what they show, their known answers, and forms that make them or read them from a
# file.


ROWS_PER_PAGE = 50
DAMAGE_LABELS = {
    "shuffled": "its words in random order",
    "truncated": "cut off in the middle",
    "other": "a text for another prompt",
}


def _question_field(section: Section) -> RowChoiceField:
    questions = {question.pk: question for question in questions_about_items(section)}
    field = RowChoiceField(
        questions,
        empty="choose",
        label="question with the known answer",
        help_text="Choose one that a wrong text must fail: a text for another prompt is as fluent as any.",
    )
    if len(questions) == 1:
        field.initial = next(iter(questions))
    return field


class MakeTestQuestionsForm(CleanTextMixin, forms.Form):
    """How many test questions of each type to make from the study's own texts."""

    positive = forms.IntegerField(
        min_value=0,
        max_value=500,
        initial=10,
        label="positive",
        help_text="The reference in the place of an output. The right answer is good.",
    )
    negative = forms.IntegerField(
        min_value=0,
        max_value=500,
        initial=10,
        label="negative",
        help_text="The reference of another prompt, of similar length. The right answer is bad.",
    )
    damaged = forms.IntegerField(
        min_value=0,
        max_value=500,
        initial=0,
        label="damaged",
        help_text="An output that was made worse. Needs no reference, and counts only after a pilot.",
    )
    damages = forms.MultipleChoiceField(
        choices=list(DAMAGE_LABELS.items()),
        initial=list(DAMAGES),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="how outputs are damaged",
    )

    def __init__(self, section, *args, **kwargs):
        super().__init__(*args, **kwargs)
        systems = {system.pk: system for system in section.study.systems.judged().order_by("name")}
        self.fields["question"] = _question_field(section)
        self.fields["reference"] = RowChoiceField(
            systems,
            empty="no reference",
            required=False,
            label="reference system",
            help_text="Its texts are right answers. It need not be among the systems that arms show.",
        )
        references = [system.pk for system in systems.values() if system.reference or system.is_human]
        self.fields["reference"].initial = references[0] if len(references) == 1 else None
        self.order_fields(["question", "reference", "positive", "negative", "damaged", "damages"])

    def request(self) -> KnownAnswerRequest:
        cleaned = self.cleaned_data
        return KnownAnswerRequest(
            question=cleaned["question"],
            counts={name: cleaned[name] for name in ("positive", "negative", "damaged")},
            reference=cleaned["reference"],
            damages=tuple(cleaned["damages"]) or DAMAGES,
        )


class KnownAnswerFileForm(CleanTextMixin, forms.Form):
    """A file of test questions."""

    file = forms.FileField(label="file")

    def __init__(self, section, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["question"] = _question_field(section)
        columns = ", ".join(file_columns(section))
        meaning = (
            "worse: a worse text for the same prompt."
            if "worse" in file_columns(section)
            else "expected: high, low, or a range such as 4-5."
        )
        self.fields[
            "file"
        ].help_text = f"A table (CSV, JSON or a workbook) with the columns {columns}. prompt: its key; {meaning}"
        self.order_fields(["question", "file"])


def known_answer_page_link(section) -> dict[str, str] | None:
    """Return the link to this page with the number of test questions, or None if the section can have none."""
    if not has_test_question_settings(section) or section.purpose != Section.Purpose.LIVE:
        return None
    if section.reuses_id:
        words = f"Those of section {numbered_name(section.reuses)}, whose items it repeats. They may be about questions of both."
        return {"url": reverse("admin:studies_section_test_questions", args=[section.reuses_id]), "words": words}
    n = _stored(section).count()
    text = f"{n} made: batches mix them among the other items." if n else "None yet. They show who reads carefully."
    return {"url": reverse("admin:studies_section_test_questions", args=[section.pk]), "words": text}


def _stored(section):
    return section.items.filter(kind=Item.Kind.TEST, number__lt=FIRST_TEST_NUMBER)


@require_http_methods(["GET", "HEAD", "POST"])
def known_answers_page(request, pk) -> HttpResponse:
    """Show the test questions of a section. POST makes some, reads a file of them or deletes one."""
    action = Action.EDIT if request.method == "POST" else Action.VIEW
    section = get_row(request.user, action, Section.objects.select_related("study"), pk=pk)
    if not has_test_question_settings(section) or section.reuses_id:
        raise Http404("No section with test questions has this id.")
    study = section.study
    page_url = reverse("admin:studies_section_test_questions", args=[section.pk])
    may_change = is_request_allowed(request, Action.EDIT, study.pk) and study.is_draft
    forms_by_name: dict[str, Any] = {}
    if may_change:
        forms_by_name = {
            "form": MakeTestQuestionsForm(section, prefix="make"),
            "file_form": KnownAnswerFileForm(section, prefix="given"),
        }
    if request.method == "POST":
        try:
            drafts.refuse_if_launched(study)
        except ActionRefused as refused:
            messages.warning(request, str(refused))
            return HttpResponseRedirect(page_url)
        if "delete" in request.POST:
            _delete_question(request, section)
            return HttpResponseRedirect(page_url)
        if "given" in request.POST:
            bound: forms.Form = KnownAnswerFileForm(section, request.POST, request.FILES, prefix="given")
            forms_by_name["file_form"] = bound
            is_done = bound.is_valid() and _store_file(request, section, bound)
        else:
            forms_by_name["form"] = bound = MakeTestQuestionsForm(section, request.POST, prefix="make")
            is_done = bound.is_valid() and _make_questions(request, section, bound)
        if is_done:
            return HttpResponseRedirect(page_url)
    page = Paginator(_stored(section).order_by("number"), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    counts = Counter(_stored(section).values_list("test_type", flat=True))
    context = {
        **admin.site.each_context(request),
        "title": f"Test questions of section {numbered_name(section)}",
        "subtitle": study.title,
        "study": study,
        "tabs": workflow.study_tabs(request, study, "Design"),
        "section": section,
        "counts": [(label.partition(":")[0], counts[name]) for name, label in Item.TestType.choices if counts[name]],
        "settings": REGISTRY[section.protocol].cleaned_settings(section),
        "page": page,
        "rows": _rows(section, page),
        "back": reverse("admin:studies_section_change", args=[section.pk]),
        **forms_by_name,
    }
    is_refused = any(form.is_bound for form in forms_by_name.values())
    return TemplateResponse(request, "admin/studies/test_questions.html", context, status=422 if is_refused else 200)


def _make_questions(request, section, form) -> bool:
    try:
        made = make_test_questions_and_delete_test_runs(section, form.request(), by=request.user)
    except ActionRefused as refused:
        form.add_error(None, str(refused))
        return False
    wanted = form.request().counts
    texts = [f"{made[name]} of {n} {name}" if made[name] < n else f"{n} {name}" for name, n in wanted.items() if n]
    messages.success(request, f"Test questions are stored: {', '.join(texts)}.")
    if any(made[name] < n for name, n in wanted.items()):
        messages.warning(request, "Too few prompts allow the others. Import more prompts, or ask for fewer.")
    return True


def _store_file(request, section, form) -> bool:
    file = form.cleaned_data["file"]
    question = form.cleaned_data["question"]

    def store() -> int | None:
        given = read_test_question_file(section, question, file.name, file.read())
        if given.problems:
            add_file_problems(form, given.problems, given.n_problems)
            return None
        return store_given_test_questions_and_delete_test_runs(section, question, given.questions, by=request.user)

    return _stored_from_file(request, form, store, "test question")


def _store_practice_file(request, section, form) -> bool:
    file = form.cleaned_data["file"]

    def store() -> int | None:
        given = read_practice_file(section, file.name, file.read())
        if given.problems:
            add_file_problems(form, given.problems, given.n_problems)
            return None
        return store_practice_items_and_delete_test_runs(section, given.items, by=request.user)

    return _stored_from_file(request, form, store, "practice item")


def _stored_from_file(request, form, store: Callable[[], int | None], noun: str) -> bool:
    """Store what a file has and say how much of it is new, or show its problems in the form."""
    try:
        n = store()
    except GivenQuestionsRefused as refused:
        add_file_problems(form, [f"row {row}: {text}" for row, text in refused.problems], len(refused.problems))
        return False
    except ActionRefused as refused:
        form.add_error(None, str(refused))
        return False
    if n is not None:
        messages.success(request, f"{n} {noun}{'' if n == 1 else 's'} of the file {'is' if n == 1 else 'are'} new.")
    return n is not None


def _delete_question(request, section) -> None:
    pk = parse_row_id(request.POST["delete"])
    item = section.items.filter(pk=pk, kind=Item.Kind.TEST).first() if pk else None
    if item is not None:
        delete_test_question_and_test_runs(item, request.user)
    text = "The test question is deleted." if item is not None else "That test question is already deleted."
    messages.success(request, text)


def _rows(section, page) -> list[dict[str, Any]]:
    """Return the test questions of one page: their texts, which of them is planted, and the known answer in words."""
    rows = (
        Expected.objects.filter(item__in=[item.pk for item in page])
        .select_related("item__prompt", "question")
        .prefetch_related("item__exposures__output__system", "item__exposures__output__prompt")
        .order_by("item__number", "question__position")
    )
    shown = []
    for row in rows:
        exposures = list(row.item.exposures.all())
        about = row.exposure_id or row.about_id or exposures[0].pk
        known = "This text is the better one." if row.exposure_id else _right_answer_text(row)
        shown.append(
            {
                "pk": row.item_id,
                "number": row.item.number,
                "type": row.item.get_test_type_display().partition(":")[0] or "given",
                "prompt": row.item.prompt,
                "known": known,
                "question": row.question.key,
                "texts": [
                    {
                        "system": exposure.output.system,
                        "output": exposure.output,
                        "of_prompt": exposure.output.prompt.key
                        if exposure.output.prompt_id != row.item.prompt_id
                        else "",
                        "is_known": exposure.pk == about,
                    }
                    for exposure in exposures
                ],
            }
        )
    return shown


def _right_answer_text(expected: Expected) -> str:
    """Return which ratings are right. The middle of the scale is neutral unless it is the only right one."""
    middle = known_answer(expected, {}).middle
    if expected.low == expected.high:
        values = f"{expected.low:g}"
    elif expected.low == middle:
        values = f"above {expected.low:g}"
    elif expected.high == middle:
        values = f"below {expected.high:g}"
    else:
        values = f"{expected.low:g} to {expected.high:g}"
    return f"Right: {values}, for “{expected.question.key}”."
