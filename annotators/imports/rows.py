"""The study that rows of answers are checked against, and their cleaned values."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, Max, QuerySet

from annotators.counting import UNSEEN
from annotators.models import Assignment, Response
from annotators.pages.form_data import clean_answer
from annotators.places.assign import hash_person_id
from studies.design.wording import QuestionWording, SectionWording, wording_of
from studies.imports.tables.columns import CellRefused
from studies.models import FIRST_TEST_NUMBER, Exposure, Output, Prompt, Question, Study
from studies.protocols import REGISTRY, Page, PageField, PageItem, Protocol, StimulusPool, UnfillableBatch
from studies.protocols.base.fields import Answer, AnswerRefused, ColumnRefused, RewriteField

from .columns import AnswerRow, Names, StudyNames

# The id of the section that shows the item, its prompt, and its outputs in ascending order.
ItemKey = tuple[int, int, tuple[int, ...]]
# The columns of one answer: value, chosen output, choice, part, text, skip reason.
StoredAnswer = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class StudyIndex:
    """Index of a study for checking rows of a file.

    An item is (section that shows it, prompt, outputs); an exposure is its output.
    """

    study: Study
    sections: dict[int, SectionWording]
    ids: dict[tuple[int, str], int]
    section_ids: dict[int, int]
    systems: dict[str, int]
    prompts: dict[str, int]
    outputs: dict[tuple[int, int], dict[int, int]]
    arms: dict[str, int]
    item_sizes: dict[int, int | None]
    names: StudyNames
    texts: dict[int, str] = field(default_factory=dict)

    def protocol(self, section: SectionWording) -> Protocol:
        return REGISTRY[section.protocol]

    def questions_with_key(self, key: str) -> Iterator[tuple[SectionWording, QuestionWording]]:
        """Return the questions with this key, or all questions for ''."""
        for section in self.sections.values():
            for question in section.questions:
                if key in ("", question.key):
                    yield section, question

    def section_owning_items(self, section: SectionWording) -> SectionWording:
        """Return the section whose items this section shows."""
        return self.sections.get(section.reuses or section.position, section)

    def text_of(self, output: int) -> str:
        """Return an output's text. The first call reads those of all outputs; most files need none."""
        if not self.texts:
            rows = Output.objects.filter(system__study=self.study)
            self.texts.update(rows.values_list("pk", "text").iterator(2000))
        return self.texts[output]


def build_study_index(study: Study) -> StudyIndex:
    design = study.designs.order_by("version").last()
    wording = wording_of(study, design.pk if design else None)
    systems = dict(study.systems.values_list("name", "pk"))
    outputs: dict[tuple[int, int], dict[int, int]] = {}
    rows = Output.objects.filter(system__study=study).order_by("pk")
    for prompt, system, sample, pk in rows.values_list("prompt_id", "system_id", "sample", "pk").iterator(2000):
        outputs.setdefault((prompt, system), {})[sample] = pk
    sections = {section.position: section for section in wording.sections if section.protocol in REGISTRY}
    questions = Question.objects.filter(section__study=study).values_list("section__position", "key", "pk")
    return StudyIndex(
        study,
        sections,
        {(position, key): pk for position, key, pk in questions},
        dict(study.sections.values_list("position", "pk")),
        systems,
        dict(study.prompts.values_list("key", "pk")),
        outputs,
        dict(study.arms.values_list("name", "pk")),
        _item_sizes(study, systems),
        _names(study, sections, systems),
    )


def _names(study: Study, sections: Mapping[int, SectionWording], systems: Iterable[str]) -> StudyNames:
    prompts = Prompt.objects.filter(study=study)
    questions = [(section, question) for section in sections.values() for question in section.questions]
    # A key comes before a criterion, and both before a wording.
    named = [(question.key, question.key) for _, question in questions]
    named += [(name, question.key) for _, question in questions for name in (question.criterion, question.text) if name]
    return StudyNames(
        Names((name, name) for name in systems),
        Names((key, key) for key in prompts.values_list("key", flat=True)),
        Names(named),
        tuple(
            (question, REGISTRY[section.protocol].has_items and question.scale.kind != "output" and not question.x)
            for section, question in questions
        ),
        lambda: Names((text.strip(), key) for key, text in prompts.values_list("key", "text").iterator(2000) if text),
    )


def _item_sizes(study: Study, systems: dict[str, int]) -> dict[int, int | None]:
    """Return the number of outputs per item by section; None if the protocol shows one output of any system."""
    sizes: dict[int, int | None] = {}
    names = sorted(systems.values())
    for section in study.sections.order_by("position"):
        protocol = REGISTRY.get(section.protocol)
        if protocol is None or not protocol.has_items:
            continue
        if not protocol.shows_every_system:
            sizes[section.position] = None
            continue
        section.m = section.m or 1
        pool = StimulusPool([0], names, {(0, system): (system,) for system in names})
        try:
            drawn = protocol.draw(section, pool, _FirstChoice())  # type: ignore[arg-type]  # it has what protocols use of a Random
        except UnfillableBatch:
            drawn = []
        sizes[section.position] = len(drawn[0].outputs) if drawn else len(names)
    return sizes


class _FirstChoice:
    """A random generator that always takes the first option.

    Only the number of drawn outputs is used, not the outputs.
    """

    def choice(self, options):
        return options[0]

    def randrange(self, n):
        return 0

    def sample(self, options, n):
        return list(options)[:n]


@dataclass(slots=True)
class EarlierImports:
    """Earlier imports: annotators by keyed name, those who withdrew, and the items by id."""

    fingerprint: tuple[Any, ...] = ()
    people: dict[str, int] = field(default_factory=dict)
    ordinals: dict[int, int] = field(default_factory=dict)
    withdrawn: set[int] = field(default_factory=set)
    items: dict[int, ItemKey] = field(default_factory=dict)
    # The stored answers of the annotators that were read last.
    answers: dict[tuple[int, int, ItemKey | None, int | None], list[StoredAnswer]] = field(default_factory=dict)

    def read_answers(self, study: Study, names: Iterable[str]) -> None:
        """Read what the annotators with these keyed names have answered, in place of the answers that were read before."""
        self.answers = {}
        known = [self.people[name] for name in names if name in self.people]
        rows = Response.objects.filter(assignment__in=_imported(study).filter(annotator__in=known)).values_list(
            "assignment__annotator_id", "question_id", "item_id", "exposure__output_id", "erased_at", "value", "chosen__output_id", "choice", "part", "text", "skip_reason",
        )  # fmt: skip
        for person, question, item, output, erased, *columns in rows.iterator(2000) if known else ():
            question_key = (person, question, self.items.get(item), output)
            self.answers.setdefault(question_key, []).append(ERASED_ANSWER if erased else tuple(columns))


ERASED_ANSWER: StoredAnswer = ("erased",)


def _imported(study: Study) -> QuerySet[Assignment]:
    return Assignment.objects.filter(study=study, origin=Assignment.Origin.IMPORTED)


def imports_fingerprint(study: Study) -> tuple[Any, ...]:
    """Return a value that changes with each import into the study, and with each withdrawal of an imported annotator."""
    found = _imported(study).aggregate(last=Max("pk"), n=Count("pk"), withdrawn=Count("withdrawn_at"))
    return (found["last"], found["n"], found["withdrawn"])


def load_earlier_imports(study: Study) -> EarlierImports:
    """Return who was imported into the study before, and its items as (section, prompt, outputs)."""
    earlier = EarlierImports(imports_fingerprint(study))
    outputs_by_item: dict[int, tuple[int, int, list[int]]] = {}
    exposures = Exposure.objects.filter(item__study=study, item__number__lt=FIRST_TEST_NUMBER)
    for item, section, prompt, output in (
        exposures.order_by("item_id", "output_id")
        .values_list("item_id", "item__section_id", "item__prompt_id", "output_id")
        .iterator(2000)
    ):
        outputs_by_item.setdefault(item, (section, prompt, []))[2].append(output)
    for item, (section, prompt, outputs) in outputs_by_item.items():
        earlier.items[item] = (section, prompt, tuple(outputs))
    for person, key, ordinal, withdrawn in _imported(study).values_list(
        "annotator_id", "annotator__external_id", "ordinal", "withdrawn_at"
    ):
        earlier.people[key] = person
        earlier.ordinals[person] = max(ordinal, earlier.ordinals.get(person, 0))
        if withdrawn:
            earlier.withdrawn.add(person)
    return earlier


def imported_person_hash(study: Study, name: str) -> str:
    """Return the keyed hash of a name in the file. The same name has another hash in another study."""
    return hash_person_id(import_pool_name(study), name)


def import_pool_name(study: Study) -> str:
    return f"imported-{study.code.hex[:24]}"


# A row of a file of answers together with the question, item and outputs that it is about.


SORTS_LAST = math.inf


@dataclass(slots=True)
class ImportedItem:
    """An item as this annotator saw it: its outputs by letter. The file may give the letters and the position, or not."""

    key: ItemKey
    letters: dict[str, int]
    is_layout_known: bool
    rows: list["ResolvedRow"] = field(default_factory=list)
    is_position_known: bool = False

    @property
    def sort_key(self) -> tuple[float, float]:
        places = [resolved.answer_row.position for resolved in self.rows if resolved.answer_row.position is not None]
        times = [resolved.answer_row.time.timestamp() for resolved in self.rows if resolved.answer_row.time]
        return (min(places, default=SORTS_LAST), min(times, default=SORTS_LAST))


@dataclass(slots=True)
class ResolvedRow:
    """A row with the question, item and outputs that it is about."""

    answer_row: AnswerRow
    section: SectionWording
    question: QuestionWording
    item: ImportedItem | None = None
    output: int | None = None
    chosen: int | None = None


# Find the form field of a page that a row answers, and check the row's answer as this field checks it.


# Fields by question, item, output and option. Only a question with a row for each mark has several fields under one key.
FieldsBySubject = dict[tuple[int, int | None, int | None, str], list[tuple[str, PageField]]]
FilledSlots = Mapping[str, tuple[ResolvedRow, PageField]]


def find_field_and_clean_value(
    study_index: StudyIndex,
    resolved: ResolvedRow,
    item: PageItem | None,
    fields: FieldsBySubject,
    filled: FilledSlots,
    values: Mapping[str, Any],
) -> tuple[str, PageField, Any]:
    """Return the slot and the field that a row answers, and its answer as the field cleans it. Raises CellRefused."""
    own_fields = _find_fields(study_index, resolved, item, fields)
    if any(ask.field.inputs for _, ask in own_fields):
        return _place_mark(study_index, resolved, own_fields, filled, values)
    slot, ask = own_fields[-1]
    if slot in filled:
        raise CellRefused(None, f"answers the same question as row {filled[slot][0].answer_row.row}.")
    # A row is an answer, so a text that was not changed is refused, also if the question may be left out.
    if isinstance(ask.field, RewriteField) and resolved.output:
        rewritten = replace(ask.field, required=True, original=study_index.text_of(resolved.output))
        return slot, ask, _clean_value(resolved, replace(ask, field=rewritten))
    return slot, ask, _clean_value(resolved, ask)


def _find_fields(
    study_index: StudyIndex, resolved: ResolvedRow, item: PageItem | None, fields: FieldsBySubject
) -> list[tuple[str, PageField]]:
    """Return the slots and fields that a row may answer. Raises CellRefused and says what to change."""
    question = study_index.ids[resolved.section.position, resolved.question.key]
    for choice in dict.fromkeys((resolved.answer_row.choice, "")):
        if found := fields.get((question, item.id if item else None, resolved.output, choice)):
            return found
    key = resolved.question.key
    asks = [ask for found in fields.values() for _, ask in found if ask.question_id == question]
    if any(ask.choice for ask in asks):
        options = ", ".join(dict.fromkeys(ask.choice for ask in asks))
        raise CellRefused("choice", f"must be one of {options[:300]}: “{key}” needs a row for each.")
    if item is None and any(ask.item_id for ask in asks) or not asks:
        raise CellRefused("prompt_key", f"must not be empty: “{key}” is asked about texts.")
    if item is not None and all(ask.item_id is None for ask in asks):
        raise CellRefused("prompt_key", f"must be empty: “{key}” is not asked about one text.")
    if resolved.output is None:
        raise CellRefused("system", f"must not be empty: “{key}” is asked about each output.")
    raise CellRefused(
        "system",
        f"must be empty: “{key}” is asked about all outputs together. Put the chosen system into the column chosen.",
    )


def _clean_value(resolved: ResolvedRow, ask: PageField) -> Any:
    """Return the row's answer as the field cleans it. Raises CellRefused."""
    answer_row, key = resolved.answer_row, resolved.question.key
    column, text = _form_value(resolved, ask)
    if not (text or answer_row.skip_reason or (ask.choice and answer_row.value)):
        raise CellRefused(column, "is empty. Give the answer or a skip_reason, or remove the row.")
    allowed = {column, "skip_reason"} | ({"choice"} if ask.choice else set())
    if ask.field.stores_typed_text and answer_row.text:
        text, allowed = answer_row.text, allowed | {"text"}
    if other_columns := [name for name in answer_row.answered_columns if name not in allowed]:
        raise CellRefused(other_columns[0], f"must be empty: answers to “{key}” belong in the column {column}.")
    if answer_row.part:
        raise CellRefused("part", f"must be empty: answers to “{key}” are about no part of an output.")
    if answer_row.skip_reason == UNSEEN and not text and ask.item_id is not None:
        return Answer(skip_reason=UNSEEN)
    try:
        return clean_answer(ask, {"": [text]}, [answer_row.skip_reason] if answer_row.skip_reason else [])
    except AnswerRefused as refused:
        if answer_row.skip_reason:
            raise CellRefused("skip_reason", f"“{answer_row.skip_reason}”: {refused}") from None
        raise CellRefused(column, f"“{text[:60]}” is not a valid answer to “{key}”: {refused}") from None


def _form_value(resolved: ResolvedRow, ask: PageField) -> tuple[str, str]:
    """Return the column that holds the answer, and the answer as a browser would send it."""
    answer_row = resolved.answer_row
    if ask.choice:
        return "value", "" if answer_row.value == "0" else answer_row.value or "1"
    if ask.answer_column != "chosen":
        return ask.answer_column, getattr(answer_row, ask.answer_column)
    if answer_row.choice and not answer_row.chosen:
        return "choice", answer_row.choice
    letters = resolved.item.letters if resolved.item else {}
    if not answer_row.chosen:
        if answer_row.label and resolved.item and resolved.item.is_layout_known and not answer_row.skip_reason:
            if answer_row.label not in letters:
                raise CellRefused("label", f"no output was shown under “{answer_row.label}”.")
            return "chosen", answer_row.label
        return "chosen", ""
    letter = next((letter for letter, output in letters.items() if output == resolved.chosen), None)
    if letter is None:
        raise CellRefused("chosen", f"“{answer_row.chosen}” is not among the outputs shown.")
    return "chosen", letter


# Marks


def _place_mark(
    study_index: StudyIndex,
    resolved: ResolvedRow,
    own_fields: list[tuple[str, PageField]],
    filled: FilledSlots,
    values: Mapping[str, Any],
) -> tuple[str, PageField, Any]:
    """Return the first free slot for a row about one mark, or the slot that says "nothing to mark" for the value 0.

    The rules between the marks of an output are those of its page. They are checked here, because a file needs no answers
    to the other questions of the page. Raises CellRefused.
    """
    answer_row, key = resolved.answer_row, resolved.question.key
    if other_columns := [name for name in answer_row.answered_columns if name not in ("value", "choice")]:
        message = f"must be empty: answers to “{key}” belong in the columns value, choice and part."
        raise CellRefused(other_columns[0], message)
    is_mark = answer_row.value != "0"
    taken = {slot: filled[slot][0].answer_row.row for slot, _ in own_fields if slot in filled}
    if not is_mark:
        (slot, ask) = next((slot, ask) for slot, ask in own_fields if not ask.field.inputs)
        if column := next((name for name in ("choice", "part") if getattr(answer_row, name)), None):
            raise CellRefused(column, "must be empty: the value 0 marks nothing. Remove it, or correct the value.")
        if taken:
            message = (
                f"0 marks nothing, but row {next(iter(taken.values()))} is about the same output. Remove one of them."
            )
            raise CellRefused("value", message)
        return slot, ask, clean_answer(ask, {"": ["1"]}, [])
    marks = _mark_fields(own_fields)
    answer = _clean_mark(study_index, resolved, marks[0][1])
    for slot, row in taken.items():
        if not filled[slot][1].field.inputs:
            raise CellRefused("value", f"marks an output in which row {row} marks nothing. Remove one of them.")
        if values[slot] == answer:
            raise CellRefused(None, f"is the same mark as row {row}. Remove one of them.")
    free = next(((slot, ask) for slot, ask in marks if slot not in taken), None)
    if free is None:
        message = f"is one mark too many: “{key}” takes {len(marks)} for an output. Keep the worst ones."
        raise CellRefused("question", message)
    return *free, answer


def _mark_fields(fields: Iterable[tuple[str, PageField]]) -> list[tuple[str, PageField]]:
    return [(slot, ask) for slot, ask in fields if ask.field.inputs]


def find_rows_without_marks(
    pages: Iterable[tuple[Page, Mapping[str, PageField]]], filled: FilledSlots
) -> Iterator[tuple[ResolvedRow, str]]:
    """Yield the first row of each page that lacks its required marks, with the key of the question that asks for them.

    Reports leave out an output of which nobody knows the marks, so its other answers would be lost.
    """
    for page, asks in pages:
        answered = next((filled[slot][0] for slot in asks if slot in filled), None)
        asking = {ask.question_id for _, ask in _mark_fields(asks.items())}
        for question in page.questions if answered else ():
            slots = [slot for slot, ask in asks.items() if ask.question_id == question.id]
            if answered and question.id in asking and question.required and not any(slot in filled for slot in slots):
                yield answered, question.key


def _clean_mark(study_index: StudyIndex, resolved: ResolvedRow, ask: PageField) -> Any:
    """Return one mark as its field cleans it. The row has its columns as an export writes them. Raises CellRefused."""
    answer_row = resolved.answer_row
    output = resolved.output
    text = study_index.text_of(output) if output else ""
    try:
        sent = ask.field.form_values_of_columns(answer_row.value, answer_row.choice, answer_row.part, text)
        return clean_answer(ask, {name: [sent[name]] for name in sent}, [])
    except ColumnRefused as refused:
        raise CellRefused(refused.column, str(refused)) from None
