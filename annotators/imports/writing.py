"""Write imported answers: a batch and an assignment for each annotator, and their responses.

The caller opens the transaction.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from string import ascii_uppercase
from typing import Any
from uuid import UUID

from django.db.models import Max
from django.utils import timezone

from annotators.models import Annotator, Assignment, Response
from annotators.models.identity import keyed_hash
from annotators.pages.form_data import NewResponse, answer_value, response_column_values
from annotators.pages.sequence import build_page_question
from studies.design.draw import DrawnBatch, create_missing_and_get_all_items, item_key, store_drawn_batches
from studies.design.wording import QuestionWording, SectionWording
from studies.imports.tables.columns import CellRefused
from studies.models import Batch, Exposure, Item, Job, Output, Prompt, Study
from studies.protocols import DrawnItem, Page, PageField, PageItem, PageQuestion, PageSection, Protocol
from studies.stimuli.rows import TableProblems

from .columns import AnswerRow, natural_sort_key
from .rows import (
    SORTS_LAST,
    EarlierImports,
    FieldsBySubject,
    ImportedItem,
    ItemKey,
    ResolvedRow,
    StudyIndex,
    find_field_and_clean_value,
    find_rows_without_marks,
    import_pool_name,
    imported_person_hash,
)

# Check one annotator's rows against the pages that they would have seen.
#
# Each row is matched to the form field of a protocol's page that it answers, and this field checks the answer. So a
# file can contain every answer that a page could have stored, and no other.


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
            problems.add(row.row, row.column(problem.column), problem.text)
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
    answer_row = answer_row.understood(question, study_index.names.systems)
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
    elif answer_row.outputs:
        outputs = [
            _resolve_output(study_index, replace(answer_row, sample=sample), system, "outputs")
            for system, sample in answer_row.outputs
        ]
        letters = dict(zip(ascii_uppercase, outputs, strict=False))
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
    if answer_row.outputs and answer_row.label and (about := answer_row.system or answer_row.chosen):
        _give_letter(item.letters, answer_row.label, _resolve_output(study_index, answer_row, about, "system"))
    return item


def _give_letter(letters: dict[str, int], letter: str, output: int) -> None:
    """Put an output under the letter that its row names. The output that was there gets the other letter."""
    before = next((other for other, pk in letters.items() if pk == output), letter)
    if before != letter:
        moved = letters.pop(letter, None)
        del letters[before]
        letters |= {letter: output} | ({} if moved is None else {before: moved})


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
            column = resolved.answer_row.column(problem.column)
            problems.add(resolved.answer_row.row, column, problem.text)
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


def write_imported_answers(
    study: Study,
    study_index: StudyIndex,
    earlier_imports: EarlierImports,
    imported_assignments: Sequence[ImportedAssignment],
    job: Job,
) -> None:
    """Write the answers of a frozen and locked study.

    Items are numbered in the natural order of their prompts' keys, and batches in the order of ``imported_assignments``.
    """
    items = _get_or_create_items(study, {key for sitting in imported_assignments for key in sitting.items})
    # An item without new answers is not placed again.
    drawn_batches = [
        DrawnBatch(0, sitting.arm, tuple(_answered_items(sitting, items))) for sitting in imported_assignments
    ]
    last = Batch.objects.filter(study=study).exclude(origin=Batch.Origin.TEST).aggregate(n=Max("number"))["n"]
    batches = store_drawn_batches(
        study,
        drawn_batches,
        places_per_batch=1,
        origin=Batch.Origin.ANSWERED,
        first_number=0 if last is None else last + 1,
    )
    Batch.objects.filter(pk__in=[batch.pk for batch in batches]).update(claimed=1)
    people = _get_or_create_annotators(study, imported_assignments)
    now = timezone.now()
    design = study.designs.order_by("version").last()
    assignments = []
    for sitting, batch in zip(imported_assignments, batches, strict=True):
        person = people[imported_person_hash(study, sitting.name)]
        started_at, submitted_at = min(sitting.times, default=now), max(sitting.times, default=now)
        assignments.append(
            Assignment(
                study=study,
                batch=batch,
                annotator_id=person,
                origin=Assignment.Origin.IMPORTED,
                source=job,
                design=design,
                ordinal=earlier_imports.ordinals.get(person, 0) + 1,
                claimed_at=started_at,
                started_at=started_at,
                submitted_at=submitted_at,
            )
        )
    Assignment.objects.bulk_create(assignments, batch_size=500)
    Response.objects.bulk_create(_responses(imported_assignments, assignments, items, now), batch_size=1000)


def _get_or_create_items(study: Study, item_keys: set[ItemKey]) -> dict[ItemKey, int]:
    """Return the ids of these items. Create missing items."""
    prompts = {prompt for _, prompt, _ in item_keys}
    keys = {pk: key for pk, key in Prompt.objects.filter(study=study).values_list("pk", "key") if pk in prompts}
    outputs = {
        pk: (system, sample)
        for pk, system, sample in Output.objects.filter(prompt__study=study).values_list("pk", "system__name", "sample")
    }
    ordered = sorted(
        item_keys,
        key=lambda item: (
            natural_sort_key(keys[item[1]]),
            keys[item[1]],
            item[0],
            sorted(outputs[pk] for pk in item[2]),
        ),
    )
    records = {key: (key[0], DrawnItem(key[1], key[2])) for key in ordered}
    written = create_missing_and_get_all_items(study, records.values())
    return {key: written[item_key(*record)].pk for key, record in records.items()}


def _answered_items(sitting: ImportedAssignment, items: dict[ItemKey, int]) -> Iterator[tuple[int, DrawnItem]]:
    item_ids = {answer.row.item_id for answer in sitting.answers}
    for number, key in enumerate(sitting.items, 1):
        if number in item_ids:
            yield key[0], DrawnItem(item=items[key])


def _get_or_create_annotators(study: Study, sittings: Sequence[ImportedAssignment]) -> dict[str, int]:
    """Return the ids of the annotators by keyed name. Create missing annotators.

    Their codes follow from the keyed names: reports sort annotators by pseudonyms of the codes, so the same file gives the same
    numbers whenever it is imported into this study.
    """
    pool = import_pool_name(study)
    keys = {imported_person_hash(study, sitting.name) for sitting in sittings}
    existing = set(Annotator.objects.filter(pool=pool).values_list("external_id", flat=True))
    Annotator.objects.bulk_create(
        (Annotator(code=_annotator_code(key), pool=pool, external_id=key) for key in sorted(keys - existing)),
        batch_size=500,
    )
    return dict(Annotator.objects.filter(pool=pool).values_list("external_id", "pk"))


def _annotator_code(external_id: str) -> UUID:
    return UUID(hex=keyed_hash("imported annotator", external_id)[:32])


def _responses(
    sittings: Sequence[ImportedAssignment], assignments: Sequence[Assignment], items: dict[ItemKey, int], now: datetime
) -> Iterator[Response]:
    exposures: dict[tuple[int | None, int], int] = {}
    if assignments:
        rows = Exposure.objects.filter(item__in=Item.objects.filter(study=assignments[0].study_id))
        exposures = {
            (item, output): pk for item, output, pk in rows.values_list("item_id", "output_id", "pk").iterator(2000)
        }
    for sitting, assignment in zip(sittings, assignments, strict=True):
        for answer in sitting.answers:
            row = answer.row
            item = items[sitting.items[row.item_id - 1]] if row.item_id else None
            yield Response(
                assignment=assignment,
                question_id=row.question_id,
                item_id=item,
                slot=row.slot,
                label=row.label,
                position=row.position,
                exposure_id=exposures[item, row.exposure_id] if row.exposure_id else None,
                chosen_id=exposures[item, row.chosen_id] if row.chosen_id else None,
                value=row.value,
                choice=row.choice,
                part=row.part,
                text=row.text,
                skip_reason=row.skip_reason,
                received_at=answer.resolved.answer_row.time or now,
            )
