"""Import a file of answers: read it, check it against the study, report, and write it after confirmation."""

import json
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from heapq import nsmallest
from itertools import chain
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from annotators.models import Assignment
from studies.access import Action, check_permission_or_404
from studies.design.checklist import find_analysis_blockers
from studies.imports.formats import flattened_answers, headed
from studies.imports.tables import ImportReport
from studies.imports.tables.result import RowCounts
from studies.imports.tables.run import (
    ProgressCallback,
    add_file_findings,
    check_expected_outcome,
    file_sha256,
    no_progress,
    removing_if_stopped,
    running_import,
)
from studies.imports.tables.writing import remove_unfinished_stimuli
from studies.models import Job, Question, Study, audit
from studies.services import lifecycle
from studies.stimuli.columns import Columns
from studies.stimuli.rows import TableLimits, read_rows
from studies.stimuli.texts import is_shortened_number, lookalikes, name_key

from .columns import NOT_COUNTED, OWN_NAMES, AnswerReader, AnswerRow, Options, natural_sort_key
from .mapping import mapped
from .rows import (
    ERASED_ANSWER,
    EarlierImports,
    ItemKey,
    StudyIndex,
    build_study_index,
    imported_person_hash,
    load_earlier_imports,
)
from .writing import (
    CheckedAnswers,
    ImportedAnswer,
    ImportedAssignment,
    ImportWriter,
    build_imported_assignment,
    remove_unfinished_import,
)

AUDIT_VERB = "import answers"
MAX_ROWS = 5_000_000
# A row can have many answers.
MAX_ANSWERS = 5_000_000
MAX_COLUMNS = 1_000
ROWS_IN_MEMORY = 50_000
ANNOTATORS_PER_QUERY = 100
PROGRESS_EVERY = 2000
MAX_EXAMPLE_ROWS = 10
COUNTED_KINDS = ("annotators", "items", "answers")


def reason_answers_not_importable(study: Study) -> str:
    """Return why answers cannot be imported into the study now, or ''."""
    if study.state == Study.State.DRAFT:
        return ""
    if study.state != Study.State.CLOSED:
        return "A study that collects answers cannot import others. Clone it, and import the answers into the clone."
    if study.assignments.filter(origin=Assignment.Origin.LIVE).exists():
        return "The study has collected answers, so it cannot import others. Clone it, and import the answers into the clone."
    return ""


def import_answers_and_close_draft(
    study: Study,
    path: Path,
    *,
    by: Any,
    filename: str = "",
    options: Options | dict[str, Any] | None = None,
    is_dry_run: bool = False,
    expected_outcome: dict[str, Any] | None = None,
    progress: ProgressCallback = no_progress,
    job: Job | None = None,
) -> ImportReport:
    """Import a file of answers into a study: the whole file, or nothing and a report with the reasons.

    A draft is frozen and closed. Importing the same file again changes nothing. ``expected_outcome``: see
    ``studies.imports.tables``. Raises ActionRefused if the study cannot import answers.
    """
    check_permission_or_404(by, Action.EDIT, study)
    import_options = options if isinstance(options, Options) else Options.from_json(options or {})
    if obstacle := reason_answers_not_importable(study):
        raise lifecycle.ActionRefused(obstacle)
    remove_unfinished_stimuli(study, job)
    filename = filename or path.name
    report = ImportReport(
        filename=filename, sha256=file_sha256(path), counts={kind: RowCounts() for kind in COUNTED_KINDS}
    )
    study = Study.objects.get(pk=study.pk)  # the version that is checked must not change until the answers are written
    if study.is_draft:
        for problem in find_analysis_blockers(study):
            report.problems.add(None, None, f"The study is not ready: {problem.text}")
    study_index = build_study_index(study) if report.is_sound else None
    rows = _read_rows(study, path, import_options, report, study_index, progress)
    answers = CheckedAnswers(study, load_earlier_imports(study), stores=not is_dry_run)
    if report.is_sound and study_index:
        _check(answers, study_index, rows, report, progress)
    _add_findings(study, report, rows)
    if job is not None and Assignment.objects.filter(source=job, origin=Assignment.Origin.IMPORTED).exists():
        report.is_written = True  # by an earlier run of the job, whose end was not recorded
        return report
    check_expected_outcome(report, expected_outcome)
    if is_dry_run or not report.is_sound or not report.has_changes:
        return report
    with ExitStack() as stack:
        job, progress = stack.enter_context(running_import(job, "answers", study, by, report, progress))
        lifecycle.refuse_other_import(study, job)
        stack.enter_context(removing_if_stopped(partial(remove_unfinished_import, study, job)))
        writer = ImportWriter(study, by, job, answers, progress)
        writer.store()
        with writer.publishing(report.outcome()) as study:
            audit.record(
                AUDIT_VERB,
                study=study,
                by=by,
                filename=filename[:200],
                options=import_options.as_json(),
                **report.outcome(),
            )
    report.is_written = True
    return report


class RowsOfAnnotators:
    """The rows of a file by annotator, in a temporary file, so that memory does not grow with them."""

    def __init__(self) -> None:
        self.n_without_offset = 0
        self.rejected: set[int] = set()  # rows of work that a panel does not count
        self.has_times = self.has_prompts = self.has_places = False
        self._waiting: dict[str, list[AnswerRow]] = {}
        self._n_waiting = 0
        self._places: dict[str, array[int]] = {}  # where the file has rows of each annotator
        # The names of columns, which many rows share, and the place of each in the list.
        self._columns: list[dict[str, str]] = []
        self._places_of_columns: dict[tuple[tuple[str, str], ...], int] = {}
        self._file = TemporaryFile("w+b")  # noqa: SIM115 - it is closed with this object

    def __iter__(self) -> Iterator[str]:
        """Yield the annotators in the order in which they first appear."""
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def add(self, row: AnswerRow) -> None:
        self.n_without_offset += not row.has_utc_offset
        self.has_times |= row.time is not None
        if row.status and name_key(row.status) in NOT_COUNTED:
            self.rejected.add(row.row)
        self.has_prompts |= bool(row.prompt)
        self.has_places |= bool(row.shown or row.label)
        self._places.setdefault(row.annotator, array("Q"))
        self._waiting.setdefault(row.annotator, []).append(row)
        self._n_waiting += 1
        if self._n_waiting >= ROWS_IN_MEMORY:
            self._store_waiting()

    def of(self, annotator: str) -> list[AnswerRow]:
        rows = []
        for place in self._places[annotator]:
            self._file.seek(place)
            rows += [self._row(values) for values in json.loads(self._file.readline())]
        return rows + self._waiting.get(annotator, [])

    def _store_waiting(self) -> None:
        self._file.seek(0, SEEK_END)
        for annotator, rows in self._waiting.items():
            self._places[annotator].append(self._file.tell())
            self._file.write(json.dumps([self._values(row) for row in rows], default=str).encode() + b"\n")
        self._waiting, self._n_waiting = {}, 0

    def _values(self, row: AnswerRow) -> tuple[Any, ...]:
        place = self._places_of_columns.setdefault(tuple(row.columns.items()), len(self._columns))
        if place == len(self._columns):
            self._columns.append(dict(row.columns))
        return *row[:-1], place

    def _row(self, values: list[Any]) -> AnswerRow:
        row = AnswerRow(*values)
        return row._replace(
            time=row.time and datetime.fromisoformat(str(row.time)),
            shown=tuple((letter, system) for letter, system in row.shown),
            outputs=tuple((system, sample) for system, sample in row.outputs),
            columns=self._columns[values[-1]],
        )


def _read_rows(
    study: Study,
    path: Path,
    options: Options,
    report: ImportReport,
    study_index: StudyIndex | None,
    progress: ProgressCallback,
) -> RowsOfAnnotators:
    known_columns = Columns(optional=(*OWN_NAMES, *options.columns.values()))
    limits = TableLimits(rows=MAX_ROWS, columns=MAX_COLUMNS)
    rows = RowsOfAnnotators()
    n_answers = 0
    with path.open("rb") as file:
        how: dict[str, Any] = {"columns": known_columns, "limits": limits, "problems": report.problems}
        table = read_rows(report.filename, headed(file), sheet=options.sheet, **how)
        kinds = dict(Question.objects.filter(section__study=study).values_list("key", "scale__kind"))
        names = study_index.names if study_index else None
        table, proposal = mapped(flattened_answers(table, kinds, options.columns), names, options, report)
        answers = AnswerReader(table, proposal.roles, names, report.problems)
        for given in answers:
            for row in given:
                rows.add(row)
            n_answers += len(given)
            if n_answers > MAX_ANSWERS:
                report.problems.add(
                    None, None, f"The file has more than {MAX_ANSWERS:,} answers. Split it by annotators."
                )
                break
            if answers.count % PROGRESS_EVERY == 0:
                progress(answers.count, 0, f"Reading row {answers.count:,}")
        report.rows = answers.count
    add_file_findings(study, report, answers, AUDIT_VERB)
    if renamed := [*proposal.renamed, *proposal.guessed]:
        report.add_finding(
            "renamed_columns",
            "Columns that were read under another name than heval's. If one is something else, change its role.",
            [f"{role} = {proposal.roles[role]}" for role in renamed],
        )
    for cause, numbers in answers.left_out.items():
        text = f"{len(numbers):,} rows of this export are {cause}. They are not imported."
        report.add_finding("left_out", text, [f"row {number}" for number in numbers])
    if answers.n_empty:
        report.add_finding("empty_cells", f"{answers.n_empty:,} empty cells are no answers.")
    return rows


def _check(
    answers: CheckedAnswers,
    study_index: StudyIndex,
    rows: RowsOfAnnotators,
    report: ImportReport,
    progress: ProgressCallback,
) -> None:
    """Check the rows of each annotator against the study, count new and known answers, and keep the new ones."""
    earlier = answers.earlier
    # Not the order of the file: batches, items and answers are numbered in this order, and the report's random draws depend on them.
    names = sorted(rows, key=lambda name: (natural_sort_key(name), name))
    first: list[ImportedAnswer] = []
    items: set[ItemKey] = set()
    n_done = n_gone = 0
    for number, name in enumerate(names, 1):
        if earlier.people and number % ANNOTATORS_PER_QUERY == 1:
            group = names[number - 1 : number - 1 + ANNOTATORS_PER_QUERY]
            earlier.read_answers(answers.study, [imported_person_hash(answers.study, one) for one in group])
        own_rows = sorted(rows.of(name), key=lambda row: row.canonical_order)
        sitting = build_imported_assignment(study_index, name, own_rows, report.problems)
        if sitting is not None:
            n_gone += _keep_new(answers, sitting, report)
            items.update(sitting.items)
            first = nsmallest(MAX_EXAMPLE_ROWS, chain(first, sitting.answers), key=_row_number)
        n_done += len(own_rows)
        progress(n_done, report.rows, f"Checked the answers of {number:,} of {len(names):,} annotators")
    report.problems.sort_by_row()
    report.first += map(_example_row, first)
    count = report.counts["items"]
    count.same = len(items.intersection(earlier.items.values()))
    count.new = len(items) - count.same
    if n_gone:
        report.add_finding(
            "gone", f"{n_gone:,} answers were erased or withdrawn after their import. They are not imported again."
        )


def _row_number(answer: ImportedAnswer) -> int:
    return answer.resolved.answer_row.row


def _example_row(answer: ImportedAnswer) -> dict[str, Any]:
    """Return a row as heval understood it, for the table of examples."""
    resolved, row = answer.resolved, answer.row
    value = (
        row.value
        if row.value is not None
        else row.choice or row.text or row.skip_reason or resolved.answer_row.chosen or row.label
    )
    question_label = (
        f"{resolved.question.key}{f' ({resolved.answer_row.system})' if resolved.answer_row.system else ''}"
    )
    letter_note = f" (shown as {row.label})" if row.label and not resolved.question.x else ""
    return {
        "row": resolved.answer_row.row,
        "batch": resolved.answer_row.annotator,
        "prompt": resolved.answer_row.prompt or f"section {resolved.section.position}",
        "prompt_text": "",
        "outputs": [[question_label, f"{value}{letter_note}"[:160]]],
    }


def _answer_key(answer: ImportedAnswer) -> tuple[Any, ...]:
    row = answer.row
    return (row.value, row.chosen_id, row.choice, row.part, row.text, row.skip_reason)


def _keep_new(answers: CheckedAnswers, sitting: ImportedAssignment, report: ImportReport) -> int:
    """Keep the new answers of an annotator, and return how many are gone. A different stored answer is a problem."""
    people, count = report.counts["annotators"], report.counts["answers"]
    person = answers.earlier.people.get(imported_person_hash(answers.study, sitting.name))
    people.new += person is None
    people.same += person is not None
    new, n_gone = [], 0
    for answer in sitting.answers:
        status = _import_status(answers.earlier, person, sitting, answer)
        n_gone += status == "gone"
        if status == "new":
            new.append(answer)
        elif status == "other":
            message = f"another answer of “{sitting.name}” to this is already stored. Stored answers are never changed."
            report.problems.add(_row_number(answer), None, message)
    count.new += len(new)
    count.same += len(sitting.answers) - len(new)
    answers.add(sitting, new)
    return n_gone


def _import_status(
    earlier: EarlierImports, person: int | None, sitting: ImportedAssignment, answer: ImportedAnswer
) -> str:
    """Return "new", "same", "other" (a different answer is stored) or "gone" (it was erased or withdrawn)."""
    if person is None:
        return "new"
    if person in earlier.withdrawn:
        return "gone"
    row = answer.row
    item = sitting.items[row.item_id - 1] if row.item_id else None
    stored = earlier.answers.get((person, row.question_id, item, row.exposure_id), [])
    if answer.resolved.question.scale.kind == "multiple":
        stored = [key for key in stored if key == ERASED_ANSWER or key[2] == row.choice]
    if not stored:
        return "new"
    return "gone" if ERASED_ANSWER in stored else "same" if _answer_key(answer) in stored else "other"


def _add_findings(study: Study, report: ImportReport, rows: RowsOfAnnotators) -> None:
    if study.is_draft:
        report.add_finding(
            "freezes",
            "The study is a draft. Writing these answers freezes its design and closes it. Clone it first to collect answers of "
            "your own.",
        )
    if alike := lookalikes(rows):
        report.add_finding(
            "alike_people",
            "Annotators whose ids differ only in case, width, blanks or composition. They count as different people; if they are "
            "the same, correct the file.",
            [", ".join(f"“{name}”" for name in names) for names in alike],
        )
    if shortened := [name for name in rows if is_shortened_number(name)]:
        report.add_finding(
            "shortened_ids",
            "A spreadsheet shortened ids of annotators, so different people may count as one. Export the file again with this "
            "column as text.",
            [f"“{name}”" for name in shortened],
        )
    if rows.rejected:
        report.add_finding(
            "rejected",
            f"{len(rows.rejected):,} rows are of rejected work or previews. They are imported; remove them from the file if they should not count.",
            [f"row {row}" for row in sorted(rows.rejected)],
        )
    if n := rows.n_without_offset:
        report.add_finding("no_offset", f"{n:,} times have no UTC offset. They are read as UTC.")
    if len(rows) and not rows.has_times:
        report.add_finding("no_times", "The file has no times, so the times of the answers are unknown.")
    if rows.has_prompts and not rows.has_places:
        report.add_finding(
            "no_places",
            "The file does not say where each output was shown, so position effects cannot be analysed.",
        )
