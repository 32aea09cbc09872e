"""Check one annotator's rows against the pages that they would have seen.

Each row is matched to the form field of a protocol's page that it answers, and this field checks the answer.
So a file can contain every answer that a page could have stored, and no other.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from string import ascii_uppercase
from typing import Any

from annotators.pages.form_data import NewResponse, answer_value, response_column_values
from annotators.pages.sequence import build_page_question
from studies.design.wording import QuestionWording, SectionWording
from studies.imports.tables.cells import CellRefused
from studies.protocols import Page, PageField, PageItem, PageQuestion, PageSection, Protocol
from studies.stimuli.rows import TableProblems

from .columns import AnswerRow
from .resolved_rows import SORTS_LAST, ImportedItem, ResolvedRow
from .row_values import FieldsBySubject, find_field_and_clean_value, find_rows_without_marks
from .study_index import ItemKey, StudyIndex


@dataclass(slots=True)
class ImportedAnswer:
    """A new response. ``row`` has the item's position in ``items`` as item id, and outputs as exposure ids."""

    resolved: ResolvedRow
    row: NewResponse


@dataclass(slots=True)
class ImportedAssignment:
    """One annotator's answers, and their items in the order in which they were shown."""

    name: str
    arm: int
    items: list[ItemKey] = field(default_factory=list)
    answers: list[ImportedAnswer] = field(default_factory=list)

    @property
    def times(self) -> list[datetime]:
        return [answer.resolved.answer_row.time for answer in self.answers if answer.resolved.answer_row.time]


def build_imported_assignment(
    study_index: StudyIndex, annotator_name: str, rows: Sequence[AnswerRow], problems: TableProblems
) -> ImportedAssignment | None:
    """Return the annotator's answers, or None if a row has a problem. All problems are added to ``problems``."""
    problems_before = problems.count
    arm = _resolve_arm(study_index, rows, problems)
    by_section: dict[int, list[ResolvedRow]] = {}
    items: dict[int, dict[ItemKey, ImportedItem]] = {}
    for row in rows:
        try:
            resolved = _resolve_row(study_index, row, items)
            by_section.setdefault(resolved.section.position, []).append(resolved)
        except CellRefused as problem:
            problems.add(row.row, problem.column, problem.text)
    sitting = ImportedAssignment(annotator_name, arm or 0)
    for section_number, position in enumerate(sorted(by_section), 1):
        _fill_section_pages(study_index, section_number, by_section[position], sitting, problems)
    return sitting if problems.count == problems_before and arm else None


def _resolve_arm(study_index: StudyIndex, rows: Sequence[AnswerRow], problems: TableProblems) -> int | None:
    names = {row.arm for row in rows if row.arm}
    if not names and len(study_index.arms) == 1:
        return next(iter(study_index.arms.values()))
    known_names = ", ".join(sorted(study_index.arms)[:10]) or "none"
    if not names:
        problems.add(rows[0].row, "arm", f"must name the arm of “{rows[0].annotator}”; the arms are {known_names}.")
    elif len(names) > 1:
        problems.add(
            rows[0].row, "arm", f"puts “{rows[0].annotator}” into several arms: {', '.join(sorted(names)[:5])}."
        )
    elif not names <= set(study_index.arms):
        problems.add(rows[0].row, "arm", f"the study has no arm “{next(iter(names))}”; the arms are {known_names}.")
    else:
        return study_index.arms[next(iter(names))]
    return None


def _resolve_row(
    study_index: StudyIndex, answer_row: AnswerRow, items: dict[int, dict[ItemKey, ImportedItem]]
) -> ResolvedRow:
    section, question = _resolve_question(study_index, answer_row)
    resolved = ResolvedRow(answer_row, section, question)
    if answer_row.prompt:
        resolved.item = _resolve_item(study_index, answer_row, section, items)
        resolved.item.rows.append(resolved)
        if answer_row.system:
            resolved.output = _resolve_output(study_index, answer_row, answer_row.system, "system")
            if resolved.output not in resolved.item.letters.values():
                raise CellRefused("system", f"“{answer_row.system}” is not among the outputs shown.")
        if answer_row.chosen:
            resolved.chosen = _resolve_output(study_index, answer_row, answer_row.chosen, "chosen")
    elif answer_row.system or answer_row.chosen:
        raise CellRefused("prompt_key", "must name the prompt, because the row names a system.")
    return resolved


def _resolve_question(study_index: StudyIndex, answer_row: AnswerRow) -> tuple[SectionWording, QuestionWording]:
    matches = [
        (section, question)
        for section, question in study_index.questions_with_key(answer_row.question)
        if answer_row.section in (None, section.position)
    ]
    if len(matches) == 1:
        return matches[0]
    if answer_row.section is not None and answer_row.section not in study_index.sections:
        raise CellRefused("section", f"the study has no section {answer_row.section}.")
    if not matches:
        keys = ", ".join(dict.fromkeys(question.key for _, question in study_index.questions_with_key(""))) or "none"
        raise CellRefused(
            "question", f"the study does not ask “{answer_row.question}”; its questions are {keys[:500]}."
        )
    places = ", ".join(f"{question.key} in section {section.position}" for section, question in matches[:5])
    raise CellRefused("question", f"matches several questions: {places}. Fill in the columns question and section.")


def _resolve_output(study_index: StudyIndex, answer_row: AnswerRow, system: str, column: str) -> int:
    """Return the output of the row's prompt and this system. The column ``sample`` selects one of several samples."""
    if system not in study_index.systems:
        known_names = ", ".join(sorted(study_index.systems)[:10]) or "none"
        raise CellRefused(column, f"the study has no system “{system}”; it has {known_names}.")
    samples = study_index.outputs.get((study_index.prompts[answer_row.prompt], study_index.systems[system]), {})
    if not samples:
        raise CellRefused(column, f"“{system}” has no output for “{answer_row.prompt}”.")
    if answer_row.sample in samples:
        return samples[answer_row.sample]
    raise CellRefused("sample", f"“{system}” has no sample {answer_row.sample} for “{answer_row.prompt}”.")


def _resolve_item(
    study_index: StudyIndex,
    answer_row: AnswerRow,
    section: SectionWording,
    items: dict[int, dict[ItemKey, ImportedItem]],
) -> ImportedItem:
    """Return the item that a row is about, shared by all its rows, with letters if the file gives them."""
    if answer_row.prompt not in study_index.prompts:
        raise CellRefused("prompt_key", f"the study has no prompt “{answer_row.prompt}”.")
    if not study_index.protocol(section).has_items:
        raise CellRefused("prompt_key", f"must be empty: section {section.position} shows no texts.")
    source = study_index.section_owning_items(section)
    width = study_index.item_sizes[source.position]
    if answer_row.shown:
        letters = {
            letter: _resolve_output(study_index, answer_row, system, f"shown:{letter}")
            for letter, system in answer_row.shown
        }
    else:
        letters = dict(zip(ascii_uppercase, _default_outputs(study_index, answer_row, width), strict=False))
    if width is not None and len(letters) != width:
        raise CellRefused(
            "prompt_key",
            f"section {section.position} shows {width} outputs at a time, but the row has {len(letters)}. "
            "Name the shown outputs in the columns shown:A, shown:B and so on.",
        )
    key = (
        study_index.section_ids[source.position],
        study_index.prompts[answer_row.prompt],
        tuple(sorted(letters.values())),
    )
    section_items = items.setdefault(source.position, {})
    item = section_items.get(key)
    if item is None:
        section_items[key] = item = ImportedItem(key, letters, bool(answer_row.shown))
    elif answer_row.shown and item.is_layout_known and letters != item.letters:
        raise CellRefused(
            f"shown:{answer_row.shown[0][0]}",
            f"differs from row {item.rows[0].answer_row.row}, which is about the same item.",
        )
    elif answer_row.shown and not item.is_layout_known:
        item.letters, item.is_layout_known = letters, True
    return item


def _default_outputs(study_index: StudyIndex, answer_row: AnswerRow, width: int | None) -> list[int]:
    """Return the outputs of an item without shown: columns: those of all systems, or the one that the row is about."""
    if width is None:
        if not (answer_row.system or answer_row.chosen):
            raise CellRefused("system", "must name the system whose output was shown.")
        column = "system" if answer_row.system else "chosen"
        return [_resolve_output(study_index, answer_row, answer_row.system or answer_row.chosen, column)]
    prompt = study_index.prompts[answer_row.prompt]
    with_output = [
        name for name in sorted(study_index.systems) if (prompt, study_index.systems[name]) in study_index.outputs
    ]
    return [_resolve_output(study_index, answer_row, name, "prompt_key") for name in with_output]


def _fill_section_pages(
    study_index: StudyIndex, number: int, rows: list[ResolvedRow], sitting: ImportedAssignment, problems: TableProblems
) -> None:
    """Put one section's rows on its pages."""
    section = rows[0].section
    protocol = study_index.protocol(section)
    items_by_id = {id(resolved.item): resolved.item for resolved in rows if resolved.item}
    shown_items = sorted(items_by_id.values(), key=lambda item: item.sort_key)
    orders = Counter(item.sort_key for item in shown_items)
    for item in shown_items:
        # Items with one time are in the order of their prompts' keys, which is not that of the screen.
        item.is_position_known = orders[item.sort_key] == 1 and item.sort_key != (SORTS_LAST, SORTS_LAST)
    numbers = {key: number for number, key in enumerate(sitting.items, 1)}
    for item in shown_items:
        if item.key not in numbers:  # a section may reuse the items of another section
            sitting.items.append(item.key)
            numbers[item.key] = len(sitting.items)
    items = tuple(
        PageItem(position, numbers[item.key], tuple(sorted(item.letters.items())))
        for position, item in enumerate(shown_items, 1)
    )
    by_item = {id(item): page_item for item, page_item in zip(shown_items, items, strict=True)}
    page_section = PageSection(number, section.m, section.settings, tuple(_questions(study_index, section, rows)))
    fields: FieldsBySubject = {}
    pages = [(page, protocol.page_fields(page)) for page in protocol.pages(page_section, items, {})]
    for _, asks in pages:
        for slot, ask in asks.items():
            fields.setdefault((ask.question_id, ask.item_id, ask.exposure_id, ask.choice), []).append((slot, ask))
    values: dict[str, Any] = {}
    problems_before = problems.count
    rows_by_slot: dict[str, tuple[ResolvedRow, PageField]] = {}
    for resolved in rows:
        try:
            shown_item = by_item[id(resolved.item)] if resolved.item else None
            slot, ask, value = find_field_and_clean_value(
                study_index, resolved, shown_item, fields, rows_by_slot, values
            )
            values[slot], rows_by_slot[slot] = value, (resolved, ask)
        except CellRefused as problem:
            problems.add(resolved.answer_row.row, problem.column, problem.text)
    if problems.count == problems_before:  # a refused row may be the missing mark
        for resolved, key in find_rows_without_marks(pages, rows_by_slot):
            message = (
                f"“{resolved.question.key}” also needs rows of “{key}” about this output. Add them; 0 is no error."
            )
            problems.add(resolved.answer_row.row, "question", message)
    _apply_page_rules(protocol, pages, values, rows_by_slot, problems)
    stored = {slot: _row(slot, *rows_by_slot[slot], value) for slot, value in values.items()}
    stored_values = {slot: answer_value(row) for slot, row in stored.items()}
    reachable = _reachable_slots(protocol, page_section, items, stored_values)
    for slot, row in stored.items():
        resolved = rows_by_slot[slot][0]
        line, label = resolved.answer_row.row, resolved.answer_row.label
        if slot not in reachable:
            problems.add(line, "question", f"“{resolved.question.key}” is not asked after the earlier answers.")
            continue
        if label and row.label != label:
            message = f"is {label}, but the shown: columns give the letter {row.label or 'none'}."
            problems.add(line, "label", message)
        sitting.answers.append(ImportedAnswer(resolved, row))


def _questions(study_index: StudyIndex, section: SectionWording, rows: list[ResolvedRow]) -> Iterator[PageQuestion]:
    """Yield the section's questions. If the file gives the letters, questions about two systems use them."""
    letters = {system: letter for resolved in rows for letter, system in resolved.answer_row.shown}
    indexes = {system: index for index, system in enumerate(letters)}
    for number, question in enumerate(section.questions, 1):
        known_systems = indexes if {question.x, question.y} <= set(indexes) else {}
        yield build_page_question(
            number, study_index.ids[section.position, question.key], question, known_systems, list(letters.values())
        )


def _apply_page_rules(
    protocol: Protocol,
    pages: Sequence[tuple[Page, Mapping[str, PageField]]],
    values: dict[str, Any],
    rows_by_slot: Mapping[str, tuple[ResolvedRow, PageField]],
    problems: TableProblems,
) -> None:
    """Apply the protocol's rules across fields to each page whose fields are all answered."""
    for page, asks in pages:
        if asks and all(slot in values for slot in asks):
            page_values = {slot: values[slot] for slot in asks}
            for slot, message in protocol.complete_data_and_find_errors(page, page_values).items():
                problems.add(rows_by_slot[slot][0].answer_row.row, None, message)
            values.update(page_values)


def _reachable_slots(
    protocol: Protocol, page_section: PageSection, items: Sequence[PageItem], answers: Mapping[str, Any]
) -> set[str]:
    """Return the slots that are asked after these answers."""
    return {slot for page in protocol.pages(page_section, items, answers) for slot in protocol.page_fields(page)}


def _row(slot: str, resolved: ResolvedRow, ask: PageField, value: Any) -> NewResponse:
    """Return the new response, with the letter and the position if the file gives them."""
    columns = response_column_values(ask, value) or {}
    answer_row, item = resolved.answer_row, resolved.item
    label = answer_row.label or (ask.label if item is None else "")
    if item is not None and item.is_layout_known:
        letters: dict[Any, str] = {output: letter for letter, output in item.letters.items()}
        label = letters.get(columns.get("chosen_id") if ask.answer_column == "chosen" else ask.exposure_id, "")
    position = answer_row.position if item is None else ask.position if item.is_position_known else None
    return NewResponse(0, ask.question_id, ask.item_id, ask.exposure_id, slot, label, position, **columns)
