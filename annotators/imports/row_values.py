"""Find the form field of a page that a row answers, and check the row's answer as this field checks it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from annotators.counting import UNSEEN
from annotators.pages.form_data import clean_answer
from studies.imports.tables.cells import CellRefused
from studies.protocols import Page, PageField, PageItem
from studies.protocols.base.fields import Answer, AnswerRefused, ColumnRefused

from .resolved_rows import ResolvedRow
from .study_index import StudyIndex

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
