"""Write imported answers: a batch and an assignment for each annotator, and their responses."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from string import ascii_uppercase
from tempfile import TemporaryFile
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Exists, Max, OuterRef, QuerySet
from django.utils import timezone

from annotators.models import Annotator, Assignment, Response
from annotators.models.identity import keyed_hash
from annotators.pages.form_data import NewResponse, answer_value, response_column_values
from annotators.pages.sequence import build_page_question
from annotators.places.batch_plan import erase_test_run_data
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.design.unfinished import chunks_of, publish_rows, unfinished_rows
from studies.design.wording import QuestionWording, SectionWording
from studies.imports.tables.columns import CellRefused
from studies.imports.tables.run import KIND
from studies.imports.tables.writing import ItemWriter, NewItem, Turns, refuse_changed, remove_in_turns
from studies.models import FIRST_TEST_NUMBER, Batch, Exposure, Item, Job, Output, Placement, Study
from studies.models.fields import FIRST_IMPORT_NUMBER
from studies.models.guards import allowing_amendment
from studies.protocols import Page, PageField, PageItem, PageQuestion, PageSection, Protocol
from studies.services import lifecycle
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
    imports_fingerprint,
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
            _resolve_output(study_index, answer_row._replace(sample=sample), system, "outputs")
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
    orders = {key: item.sort_key for key, item in items_by_id.items()}
    shown_items = sorted(items_by_id.values(), key=lambda item: orders[id(item)])
    alike = Counter(orders.values())
    for item in shown_items:
        # Items with one time are in the order of their prompts' keys, which is not that of the screen.
        order = orders[id(item)]
        item.is_position_known = alike[order] == 1 and order != (SORTS_LAST, SORTS_LAST)
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
    asked = {slot for _, asks in pages for slot in asks}
    later = list(protocol.pages(page_section, items, stored_values))
    if later != [page for page, _ in pages]:  # what is asked depends on the answers
        asked = {slot for page in later for slot in protocol.page_fields(page)}
    for slot, row in stored.items():
        resolved = rows_by_slot[slot][0]
        line, label = resolved.answer_row.row, resolved.answer_row.label
        if slot not in asked:
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


# Write the answers of a file in short transactions, so that others write in between.
#
# Until the last transaction the rows are those of a test run that has the import's job as source: nothing counts or shows them. A
# process that ends early leaves them behind, and the next run of the job, or periodic work, removes them.


CHUNK = 1000  # answers of annotators whose batches are made in one transaction
BATCHES_IN_CHUNK = 500
WRITING = "Writing answers"


class StoredSitting(NamedTuple):
    """What is written of an annotator. Items are ``CheckedAnswers.positions``, and times are texts."""

    person: str  # the keyed name
    arm: int
    times: list[str]  # the first and the last
    answered_items: list[int]
    answers: list[list[Any]]


# The columns of a response, in the order of ``ImportWriter._response``.
RESPONSE_COLUMNS = (
    "assignment_id", "question_id", "item_id", "exposure_id", "chosen_id", "value", "received_at", "slot", "label", "position",
    "choice", "part", "text", "skip_reason",
)  # fmt: skip


class CheckedAnswers:
    """The new answers of a checked file, in a temporary file, so that memory does not grow with them. Iterate over its sittings."""

    def __init__(self, study: Study, earlier: EarlierImports, stores: bool):
        self.study, self.earlier = study, earlier
        # Taken before the rows are checked against the design.
        self.design_sha256 = sha256_of(canonical_json(serialize_design(study))) if stores else ""
        self.positions: dict[ItemKey, int] = {}  # of the items, in the order in which they come
        self.count = 0
        self._journal = TemporaryFile("w+", encoding="ascii") if stores else None  # noqa: SIM115 - closed with this object

    def add(self, sitting: ImportedAssignment, new: Sequence[ImportedAnswer]) -> None:
        """Keep these answers of an annotator."""
        self.count += len(new)
        if self._journal is None or not new:
            return
        answered = {answer.row.item_id for answer in new}
        items = {
            number: self.positions.setdefault(key, len(self.positions))
            for number, key in enumerate(sitting.items, 1)
            if number in answered
        }
        times = [answer.resolved.answer_row.time for answer in new if answer.resolved.answer_row.time]
        rows = [
            (
                row.question_id, items[row.item_id] if row.item_id else None, row.exposure_id, row.chosen_id, row.value,
                answer.resolved.answer_row.time, row.slot, row.label, row.position, row.choice, row.part, row.text, row.skip_reason,
            )
            for answer in new for row in [answer.row]
        ]  # fmt: skip
        person = imported_person_hash(self.study, sitting.name)
        stored = (person, sitting.arm, times and [min(times), max(times)], list(items.values()), rows)
        self._journal.write(json.dumps(stored, default=str) + "\n")

    def __iter__(self) -> Iterator[StoredSitting]:
        if self._journal is not None:
            self._journal.seek(0)
            yield from (StoredSitting(*json.loads(line)) for line in self._journal)


class ImportWriter:
    """Write checked answers into a study. ``store`` takes any number of short transactions, and ``publishing`` is the last one."""

    def __init__(self, study: Study, by: Any, source: Job, answers: CheckedAnswers, progress: Callable[..., None]):
        self.study, self.by, self.source, self.answers = study, by, source, answers
        self._turns = Turns(study, source, answers.count, progress)
        self._turn = self._turns.turn

    def store(self) -> None:
        """Store everything so that nothing counts it yet."""
        remove_unfinished_import(self.study, self.source)
        with self._turn("Deleting test runs") as study:
            refuse_changed(imports_fingerprint(study) != self.answers.earlier.fingerprint)
            erase_test_run_data(study, spares_imports=True)
        self._store_items()
        last = self.study.batches.filter(number__lt=FIRST_TEST_NUMBER).aggregate(n=Max("number"))["n"]
        self._next_batch = FIRST_IMPORT_NUMBER + (0 if last is None else last + 1)
        sittings = iter(self.answers)
        while group := list(_take_rows(sittings, CHUNK)):
            self._store_sittings(group)

    @contextmanager
    def publishing(self, outcome: dict[str, Any]) -> Iterator[Study]:
        """Open the last transaction, which lets the stored answers count. A draft is frozen and closed. Yield the study."""
        with self._turn("Freezing the design" if self.study.is_draft else "Finishing") as study:
            if study.is_draft:
                study = lifecycle.freeze_and_close(study, self.by)
            design = study.designs.order_by("version").last()
            found = (design and design.sha256, imports_fingerprint(study))
            refuse_changed(found != (self.answers.design_sha256, self.answers.earlier.fingerprint))
            with allowing_amendment():
                _unfinished_assignments(study).update(origin=Assignment.Origin.IMPORTED, design=design)
                publish_rows(study, Batch.Origin.ANSWERED)
            Job.objects.filter(pk=self.source.pk).update(result=outcome)
            yield study

    def _store_items(self) -> None:
        """Create the missing items. They are numbered in the natural order of their prompts' keys."""
        writer, keys = ItemWriter(self.study), list(self.answers.positions)
        items = [NewItem(*key) for key in keys]
        for chunk in chunks_of(self._sorted_items(keys), CHUNK // 4):
            if missing := [items[index] for index in chunk if items[index].key not in writer.ids]:
                with self._turn("Writing items"):
                    writer.add_missing(missing)
        self._items = [writer.ids[item.key] for item in items]
        exposures = Exposure.objects.filter(item__study=self.study).values_list("item_id", "output_id", "pk")
        self._exposures = {(item, output): pk for item, output, pk in exposures.iterator(CHUNK)}

    def _sorted_items(self, item_keys: list[ItemKey]) -> list[int]:
        """Return the positions of the items in the natural order of their prompts' keys."""
        keys = dict(self.study.prompts.values_list("pk", "key"))
        rows = Output.objects.filter(system__study=self.study).values_list("pk", "system__name", "sample")
        outputs = {pk: (system, sample) for pk, system, sample in rows.iterator(CHUNK)}

        def order(index: int) -> tuple[Any, ...]:
            section, prompt, shown = item_keys[index]
            return (natural_sort_key(keys[prompt]), keys[prompt], section, sorted(outputs[pk] for pk in shown))

        return sorted(range(len(item_keys)), key=order)

    def _store_sittings(self, sittings: list[StoredSitting]) -> None:
        study, now = self.study, timezone.now()
        with self._turn(WRITING):
            people = _get_or_create_annotators(study, [sitting.person for sitting in sittings])
            batches = Batch.objects.bulk_create(
                Batch(study=study, arm_id=sitting.arm, number=number, claimed=1, origin=Batch.Origin.TEST)
                for number, sitting in enumerate(sittings, self._next_batch)
            )
            assignments = Assignment.objects.bulk_create(
                Assignment(
                    study=study,
                    batch=batch,
                    annotator_id=people[sitting.person],
                    origin=Assignment.Origin.TEST,
                    source=self.source,
                    ordinal=self.answers.earlier.ordinals.get(people[sitting.person], 0) + 1,
                    claimed_at=began,
                    started_at=began,
                    submitted_at=ended,
                )
                for sitting, batch in zip(sittings, batches, strict=True)
                for began, ended in [map(datetime.fromisoformat, sitting.times) if sitting.times else (now, now)]
            )
        self._next_batch += len(sittings)
        placements = (
            (batch.pk, self._items[item], number)
            for sitting, batch in zip(sittings, batches, strict=True)
            for number, item in enumerate(sitting.answered_items)
        )
        self._turns.insert(Placement, ("batch_id", "item_id", "number"), placements, WRITING)
        responses = (
            self._response(assignment.pk, answer, now)
            for sitting, assignment in zip(sittings, assignments, strict=True)
            for answer in sitting.answers
        )
        self._turns.insert(Response, RESPONSE_COLUMNS, responses, WRITING)
        self._turns.n_written += sum(len(sitting.answers) for sitting in sittings)

    def _response(self, assignment: int, answer: list[Any], now: datetime) -> tuple[Any, ...]:
        question, item, exposure, chosen, value, at, *texts = answer
        item_pk: Any = None if item is None else self._items[item]
        shown, picked = (output and self._exposures[item_pk, output] for output in (exposure, chosen))
        return (assignment, question, item_pk, shown, picked, value and Decimal(value), _time(at) or now, *texts)


def _get_or_create_annotators(study: Study, people: Sequence[str]) -> dict[str, int]:
    """Return the ids of the annotators by keyed name. Create missing annotators.

    Their codes follow from the keyed names: reports sort annotators by pseudonyms of the codes, so the same file gives the same
    numbers whenever it is imported into this study.
    """
    pool = import_pool_name(study)
    Annotator.objects.bulk_create(
        (Annotator(code=_annotator_code(key), pool=pool, external_id=key) for key in sorted(people)),
        ignore_conflicts=True,
    )
    return dict(Annotator.objects.filter(pool=pool, external_id__in=people).values_list("external_id", "pk"))


def _annotator_code(external_id: str) -> UUID:
    return UUID(hex=keyed_hash("imported annotator", external_id)[:32])


def _take_rows(sittings: Iterator[StoredSitting], n: int) -> Iterator[StoredSitting]:
    """Yield annotators until they have this many answers."""
    taken = 0
    while taken < n and (sitting := next(sittings, None)) is not None:
        taken += max(len(sitting.answers), n // BATCHES_IN_CHUNK)
        yield sitting


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _unfinished_assignments(study: Study) -> QuerySet:
    return Assignment.objects.filter(study=study, origin=Assignment.Origin.TEST, source__isnull=False)


def remove_unfinished_import(study: Study, job: Job | None) -> None:
    """Remove what imports of answers have stored without publishing it. ``job``: see ``remove_in_turns``."""
    assignments = _unfinished_assignments(study)
    rows = [
        Response.objects.filter(assignment__in=assignments.values("pk")),
        assignments,
        *unfinished_rows(study),
        Annotator.objects.filter(pool=import_pool_name(study), assignments=None),
    ]
    remove_in_turns(study, job, rows)


def remove_unfinished_imports() -> int:
    """Remove what killed imports and launches have left. Return the number of studies."""
    stopped = Job.objects.filter(kind__in=[KIND, "launch"], state__in=[Job.State.FAILED, Job.State.CANCELLED])
    number = {"number__gte": FIRST_IMPORT_NUMBER}
    batches = Batch.objects.filter(study=OuterRef("pk"), **number)
    items = Item.objects.filter(section__study=OuterRef("pk"), **number)
    n = 0
    for study in Study.objects.filter(Exists(batches) | Exists(items), pk__in=stopped.values("study")):
        with suppress(lifecycle.ActionRefused):  # another process has begun to import
            remove_unfinished_import(study, None)
            n += 1
    return n
