"""One annotator's rows held against the pages that they would have seen: the protocol itself says what may be answered, and how.

A row finds its field by what it is about; the field checks and stores what it says. So whatever a protocol asks can be imported,
and nothing that no page could have stored.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from string import ascii_uppercase
from typing import Any

from annotators.pages.form_data import NewResponse, answer_columns, answer_value, clean_answer
from annotators.pages.sequence import page_question
from studies.design.wording import QuestionWording, SectionWording
from studies.imports.tables.cells import CellRefused
from studies.protocols import Page, PageField, PageItem, PageQuestion, PageSection, Protocol
from studies.protocols.base.fields import AnswerRefused
from studies.stimuli.rows import TableProblems

from .columns import AnswerRow
from .study_index import ItemKey, StudyIndex

SORTS_LAST = math.inf


@dataclass(slots=True)
class ImportedItem:
    """An item as this annotator saw it: its outputs by letter. ``is_known``: whether the file says which stood where."""

    key: ItemKey
    letters: dict[str, int]
    is_layout_known: bool
    said: list["ResolvedRow"] = field(default_factory=list)

    @property
    def order(self) -> tuple[float, float, int]:
        places = [about.said.position for about in self.said if about.said.position is not None]
        times = [about.said.time.timestamp() for about in self.said if about.said.time]
        return (min(places, default=SORTS_LAST), min(times, default=SORTS_LAST), self.said[0].said.row)

    @property
    def has_position(self) -> bool:
        return any(about.said.position is not None or about.said.time for about in self.said)


@dataclass(slots=True)
class ResolvedRow:
    """A row with what it is about."""

    said: AnswerRow
    section: SectionWording
    question: QuestionWording
    item: ImportedItem | None = None
    output: int | None = None
    chosen: int | None = None


@dataclass(slots=True)
class ImportedAnswer:
    """A response to be. ``row`` names the item by its place in ``items`` and exposures by their outputs."""

    about: ResolvedRow
    row: NewResponse


@dataclass(slots=True)
class ImportedAssignment:
    """What one annotator said: items in the order in which they met them, and answers."""

    name: str
    arm: int
    items: list[ItemKey] = field(default_factory=list)
    answers: list[ImportedAnswer] = field(default_factory=list)

    @property
    def times(self) -> list[datetime]:
        return [answer.about.said.time for answer in self.answers if answer.about.said.time]


def build_imported_assignment(
    study_index: StudyIndex, name: str, rows: Sequence[AnswerRow], problems: TableProblems
) -> ImportedAssignment | None:
    """The annotator's answers, each in the field of a page. None where a row has a problem; all of them are noted."""
    before = problems.count
    arm = _resolve_arm(study_index, rows, problems)
    by_section: dict[int, list[ResolvedRow]] = {}
    items: dict[int, dict[ItemKey, ImportedItem]] = {}
    for said in rows:
        try:
            about = _resolve_row(study_index, said, items)
            by_section.setdefault(about.section.position, []).append(about)
        except CellRefused as wrong:
            problems.add(said.row, wrong.column, wrong.text)
    sitting = ImportedAssignment(name, arm or 0)
    for place, position in enumerate(sorted(by_section), 1):
        _fill_section_pages(study_index, place, by_section[position], sitting, problems)
    return sitting if problems.count == before and arm else None


def _resolve_arm(ground: StudyIndex, rows: Sequence[AnswerRow], problems: TableProblems) -> int | None:
    names = {said.arm for said in rows if said.arm}
    if not names and len(ground.arms) == 1:
        return next(iter(ground.arms.values()))
    known = ", ".join(sorted(ground.arms)[:10]) or "none"
    if not names:
        problems.add(rows[0].row, "arm", f"must say in which arm “{rows[0].annotator}” was; the arms are {known}.")
    elif len(names) > 1:
        problems.add(
            rows[0].row, "arm", f"puts “{rows[0].annotator}” into several arms: {', '.join(sorted(names)[:5])}."
        )
    elif not names <= set(ground.arms):
        problems.add(rows[0].row, "arm", f"the study has no arm “{next(iter(names))}”; the arms are {known}.")
    else:
        return ground.arms[next(iter(names))]
    return None


def _resolve_row(ground: StudyIndex, said: AnswerRow, items: dict[int, dict[ItemKey, ImportedItem]]) -> ResolvedRow:
    section, question = _resolve_question(ground, said)
    about = ResolvedRow(said, section, question)
    if said.prompt:
        about.item = _resolve_item(ground, said, section, items)
        about.item.said.append(about)
        if said.system:
            about.output = _resolve_output(ground, said, said.system, "system")
            if about.output not in about.item.letters.values():
                raise CellRefused("system", f"“{said.system}” is not among the outputs shown.")
        if said.chosen:
            about.chosen = _resolve_output(ground, said, said.chosen, "chosen")
    elif said.system or said.chosen:
        raise CellRefused("prompt_key", "must say of which prompt: a system is named.")
    return about


def _resolve_question(ground: StudyIndex, said: AnswerRow) -> tuple[SectionWording, QuestionWording]:
    found = [
        (section, question)
        for section, question in ground.questions_with_key(said.question)
        if said.section in (None, section.position)
    ]
    if len(found) == 1:
        return found[0]
    if said.section is not None and said.section not in ground.sections:
        raise CellRefused("section", f"the study has no section {said.section}.")
    if not found:
        keys = ", ".join(dict.fromkeys(question.key for _, question in ground.questions_with_key(""))) or "none"
        raise CellRefused("question", f"the study does not ask “{said.question}”; its questions are {keys[:500]}.")
    places = ", ".join(f"{question.key} in section {section.position}" for section, question in found[:5])
    raise CellRefused("question", f"could be several: {places}. Say which in the columns question and section.")


def _resolve_output(ground: StudyIndex, said: AnswerRow, system: str, column: str) -> int:
    """The output that a row names: its prompt's, of this system; of several samples the one in ``sample``."""
    if system not in ground.systems:
        known = ", ".join(sorted(ground.systems)[:10]) or "none"
        raise CellRefused(column, f"the study has no system “{system}”; it has {known}.")
    samples = ground.outputs.get((ground.prompts[said.prompt], ground.systems[system]), {})
    if not samples:
        raise CellRefused(column, f"“{system}” has no output for “{said.prompt}”.")
    if said.sample in samples:
        return samples[said.sample]
    raise CellRefused("sample", f"“{system}” has no sample {said.sample} for “{said.prompt}”.")


def _resolve_item(
    ground: StudyIndex, said: AnswerRow, section: SectionWording, items: dict[int, dict[ItemKey, ImportedItem]]
) -> ImportedItem:
    """The item that a row is about, the same for all its rows; its letters where the file tells them."""
    if said.prompt not in ground.prompts:
        raise CellRefused("prompt_key", f"the study has no prompt “{said.prompt}”.")
    if not ground.protocol(section).has_items:
        raise CellRefused("prompt_key", f"section {section.position} shows no texts: leave it empty.")
    source = ground.source(section)
    width = ground.item_sizes[source.position]
    if said.shown:
        letters = {letter: _resolve_output(ground, said, system, f"shown:{letter}") for letter, system in said.shown}
    else:
        letters = dict(zip(ascii_uppercase, _default_outputs(ground, said, width), strict=False))
    if width is not None and len(letters) != width:
        words = "shown:A, shown:B and so on must say which outputs were shown"
        raise CellRefused(
            "prompt_key",
            f"section {section.position} shows {width} outputs at a time, here are {len(letters)}: {words}.",
        )
    key = (ground.section_ids[source.position], ground.prompts[said.prompt], tuple(sorted(letters.values())))
    mine = items.setdefault(source.position, {})
    there = mine.get(key)
    if there is None:
        mine[key] = there = ImportedItem(key, letters, bool(said.shown))
    elif said.shown and there.is_layout_known and letters != there.letters:
        raise CellRefused(
            f"shown:{said.shown[0][0]}", f"stands otherwise than in row {there.said[0].said.row}, of the same item."
        )
    elif said.shown and not there.is_layout_known:
        there.letters, there.is_layout_known = letters, True
    return there


def _default_outputs(ground: StudyIndex, said: AnswerRow, width: int | None) -> list[int]:
    """The outputs of an item of which the file names none: every system's, or the one that the row is about."""
    if width is None:
        if not (said.system or said.chosen):
            raise CellRefused("system", "must say whose text was shown.")
        return [_resolve_output(ground, said, said.system or said.chosen, "system" if said.system else "chosen")]
    prompt = ground.prompts[said.prompt]
    with_output = [name for name in sorted(ground.systems) if (prompt, ground.systems[name]) in ground.outputs]
    return [_resolve_output(ground, said, name, "prompt_key") for name in with_output]


# The pages


def _fill_section_pages(
    ground: StudyIndex, place: int, rows: list[ResolvedRow], sitting: ImportedAssignment, problems: TableProblems
) -> None:
    """Put one section's rows on its pages."""
    section = rows[0].section
    protocol = ground.protocol(section)
    shown = sorted({id(about.item): about.item for about in rows if about.item}.values(), key=lambda item: item.order)
    numbers = {key: number for number, key in enumerate(sitting.items, 1)}
    for item in shown:
        if item.key not in numbers:  # a section may show again what another one showed
            sitting.items.append(item.key)
            numbers[item.key] = len(sitting.items)
    items = tuple(
        PageItem(position, numbers[item.key], tuple(sorted(item.letters.items())))
        for position, item in enumerate(shown, 1)
    )
    by_item = {id(item): page_item for item, page_item in zip(shown, items, strict=True)}
    laid = PageSection(place, section.m, section.settings, tuple(_questions(ground, section, rows)))
    slots: dict[tuple[Any, ...], tuple[str, PageField]] = {}
    pages = [(page, protocol.asks(page)) for page in protocol.pages(laid, items, {})]
    for _, asks in pages:
        for slot, ask in asks.items():
            slots[ask.question_id, ask.item_id, ask.exposure_id, ask.choice, ask.part] = slot, ask
    values: dict[str, Any] = {}
    told: dict[str, tuple[ResolvedRow, PageField]] = {}
    for about in rows:
        try:
            item = by_item[id(about.item)] if about.item else None
            slot, ask = _find_field(ground, about, item, slots)
            if slot in told:
                raise CellRefused(None, f"answers again what row {told[slot][0].said.row} answered.")
            values[slot], told[slot] = _clean_value(about, ask), (about, ask)
        except CellRefused as wrong:
            problems.add(about.said.row, wrong.column, wrong.text)
    _apply_page_rules(protocol, pages, values, told, problems)
    stored = {slot: _row(slot, *told[slot], value) for slot, value in values.items()}
    asked = _reachable_slots(protocol, laid, items, {slot: answer_value(row) for slot, row in stored.items()})
    for slot, row in stored.items():
        about = told[slot][0]
        if slot not in asked:
            problems.add(
                about.said.row, "question", f"“{about.question.key}” is not asked after what was answered before."
            )
            continue
        if about.said.label and row.label != about.said.label:
            words = f"says {about.said.label}, but by the columns shown:… that stood under {row.label or 'none'}."
            problems.add(about.said.row, "label", words)
        sitting.answers.append(ImportedAnswer(about, row))


def _questions(ground: StudyIndex, section: SectionWording, rows: list[ResolvedRow]) -> Iterator[PageQuestion]:
    """The section's questions; of those that name two systems the letters, where the file says under which they stood."""
    letters = {system: letter for about in rows for letter, system in about.said.shown}
    numbers = {system: number for number, system in enumerate(letters)}
    for place, words in enumerate(section.questions, 1):
        known = numbers if {words.x, words.y} <= set(numbers) else {}
        yield page_question(place, ground.ids[section.position, words.key], words, known, list(letters.values()))


def _find_field(
    ground: StudyIndex, about: ResolvedRow, item: PageItem | None, slots: dict[tuple[Any, ...], tuple[str, PageField]]
) -> tuple[str, PageField]:
    """The field that a row answers. Raises CellRefused, saying what is asked instead."""
    question = ground.ids[about.section.position, about.question.key]
    said = about.said
    for choice in dict.fromkeys((said.choice, "")):
        for part in dict.fromkeys((said.part, "")):
            if found := slots.get((question, item and item.id, about.output, choice, part)):
                return found
    key = about.question.key
    asks = [ask for _, ask in slots.values() if ask.question_id == question]
    if any(ask.choice for ask in asks):
        options = ", ".join(dict.fromkeys(ask.choice for ask in asks))
        raise CellRefused("choice", f"must be one of {options[:300]}: “{key}” has a row for each.")
    if item is None and any(ask.item_id for ask in asks) or not asks:
        raise CellRefused("prompt_key", f"“{key}” is asked about texts: say of which prompt.")
    if item is not None and all(ask.item_id is None for ask in asks):
        raise CellRefused("prompt_key", f"“{key}” is not asked about one text: leave it empty.")
    if about.output is None:
        raise CellRefused("system", f"“{key}” is asked about each output: say of which system.")
    raise CellRefused(
        "system", f"“{key}” is asked about all outputs together: leave it empty (what was chosen stands in chosen)."
    )


def _clean_value(about: ResolvedRow, ask: PageField) -> Any:
    """What the field makes of the row."""
    said = about.said
    if ask.field.inputs:
        raise CellRefused(
            "question", f"answers to “{about.question.key}” have several parts, which are not read from files."
        )
    column, sent = _form_value(about, ask)
    if not (sent or said.skip_reason or (ask.choice and said.value)):
        raise CellRefused(column, "is empty: give the answer or a skip_reason, or leave the row out.")
    others = [name for name in said.given if name not in (column, "skip_reason", *(("choice",) if ask.choice else ()))]
    if others:
        raise CellRefused(others[0], f"must be empty: “{about.question.key}” is answered in {column}.")
    try:
        return clean_answer(ask, {"": [sent]}, [said.skip_reason] if said.skip_reason else [])
    except AnswerRefused as refused:
        if said.skip_reason:
            raise CellRefused("skip_reason", f"“{said.skip_reason}”: {refused}") from None
        raise CellRefused(column, f"“{sent[:60]}” is no answer to “{about.question.key}”: {refused}") from None


def _form_value(about: ResolvedRow, ask: PageField) -> tuple[str, str]:
    """The column that holds the answer, and the answer as a browser would send it."""
    said = about.said
    if ask.choice:
        return "value", "" if said.value == "0" else said.value or "1"
    if ask.answer_column != "chosen":
        return ask.answer_column, getattr(said, ask.answer_column)
    if said.choice and not said.chosen:
        return "choice", said.choice
    letters = about.item.letters if about.item else {}
    if not said.chosen:
        if said.label and about.item and about.item.is_layout_known and not said.skip_reason:
            if said.label not in letters:
                raise CellRefused("label", f"nothing stood under “{said.label}”.")
            return "chosen", said.label
        return "chosen", ""
    letter = next((letter for letter, output in letters.items() if output == about.chosen), None)
    if letter is None:
        raise CellRefused("chosen", f"“{said.chosen}” is not among the outputs shown.")
    return "chosen", letter


def _apply_page_rules(
    protocol: Protocol,
    pages: Sequence[tuple[Page, Mapping[str, PageField]]],
    values: dict[str, Any],
    told: Mapping[str, tuple[ResolvedRow, PageField]],
    problems: TableProblems,
) -> None:
    """The protocol's rules across the fields of a page, where all of it was answered."""
    for page, asks in pages:
        if asks and all(slot in values for slot in asks):
            mine = {slot: values[slot] for slot in asks}
            for slot, words in protocol.clean(page, mine).items():
                problems.add(told[slot][0].said.row, None, words)
            values.update(mine)


def _reachable_slots(
    protocol: Protocol, laid: PageSection, items: Sequence[PageItem], answers: Mapping[str, Any]
) -> set[str]:
    """The fields that are asked once these answers were given."""
    return {slot for page in protocol.pages(laid, items, answers) for slot in protocol.asks(page)}


def _row(slot: str, about: ResolvedRow, ask: PageField, value: Any) -> NewResponse:
    """The response to be, with the letter and the place as far as the file tells them."""
    columns = answer_columns(ask, value) or {}
    label = about.said.label or (ask.label if about.item is None else "")
    if about.item is not None and about.item.is_layout_known:
        letters = {output: letter for letter, output in about.item.letters.items()}
        label = letters.get(columns.get("chosen_id") if ask.answer_column == "chosen" else ask.exposure_id, "")
    position = about.said.position if about.item is None else ask.position if about.item.has_position else None
    return NewResponse(0, ask.question_id, ask.item_id, ask.exposure_id, slot, label, position, **columns)
