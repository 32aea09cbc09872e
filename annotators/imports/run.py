"""Import a file of answers: read it, check it against the study, report, and write it after confirmation."""

from itertools import chain
from pathlib import Path
from typing import Any

from django.db import transaction

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
)
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
    StudyIndex,
    build_study_index,
    imported_person_hash,
    load_earlier_imports,
)
from .writing import ImportedAnswer, ImportedAssignment, build_imported_assignment, write_imported_answers

AUDIT_VERB = "import answers"
MAX_ROWS = 500_000
# A row can have many answers.
MAX_ANSWERS = 500_000
MAX_COLUMNS = 1_000
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
    filename = filename or path.name
    report = ImportReport(
        filename=filename, sha256=file_sha256(path), counts={kind: RowCounts() for kind in COUNTED_KINDS}
    )
    if study.is_draft:
        for problem in find_analysis_blockers(study):
            report.problems.add(None, None, f"The study is not ready: {problem.text}")
    study_index = build_study_index(study) if report.is_sound else None
    rows = _read_rows(study, path, import_options, report, study_index, progress)
    sittings: list[ImportedAssignment] = []
    if report.is_sound and study_index:
        sittings = _build_imports(study_index, rows, report, progress)
        _count_new_and_known(study_index, load_earlier_imports(study), sittings, report)
    _add_findings(study, report, rows)
    check_expected_outcome(report, expected_outcome)
    if is_dry_run or not report.is_sound or not report.has_changes or study_index is None:
        return report
    progress(report.rows, report.rows, "Writing")
    with transaction.atomic():
        if study.is_draft:
            study = lifecycle.freeze_and_close(study, by)
        # The study's lock excludes other imports, so the written rows match the counts.
        study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        if obstacle := reason_answers_not_importable(study):
            raise lifecycle.ActionRefused(obstacle)
        earlier = load_earlier_imports(study)
        new_parts = (_only_new_answers(study_index, earlier, sitting) for sitting in sittings)
        new = [sitting for sitting in new_parts if sitting.answers]
        write_imported_answers(study, study_index, earlier, new, job or _create_done_job(study, by, report))
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


def _read_rows(
    study: Study,
    path: Path,
    options: Options,
    report: ImportReport,
    study_index: StudyIndex | None,
    progress: ProgressCallback,
) -> dict[str, list[AnswerRow]]:
    """Return the answers by annotator, in the order in which annotators first appear in the file."""
    known_columns = Columns(optional=(*OWN_NAMES, *options.columns.values()))
    limits = TableLimits(rows=MAX_ROWS, columns=MAX_COLUMNS)
    rows_by_annotator: dict[str, list[AnswerRow]] = {}
    n_answers = 0
    with path.open("rb") as file:
        table = read_rows(report.filename, headed(file), columns=known_columns, limits=limits, problems=report.problems)
        kinds = dict(Question.objects.filter(section__study=study).values_list("key", "scale__kind"))
        names = study_index.names if study_index else None
        table, proposal = mapped(flattened_answers(table, kinds, options.columns), names, options, report)
        answers = AnswerReader(table, proposal.roles, names, report.problems)
        for given in answers:
            for row in given:
                rows_by_annotator.setdefault(row.annotator, []).append(row)
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
    return rows_by_annotator


def _build_imports(
    study_index: StudyIndex, rows: dict[str, list[AnswerRow]], report: ImportReport, progress: ProgressCallback
) -> list[ImportedAssignment]:
    sittings, n_done = [], 0
    # Not the order of the file: batches, items and answers are numbered in this order, and the report's random draws depend on them.
    for name, own_rows in sorted(rows.items(), key=lambda named: (natural_sort_key(named[0]), named[0])):
        own_rows = sorted(own_rows, key=lambda row: row.canonical_order)
        sitting = build_imported_assignment(study_index, name, own_rows, report.problems)
        if sitting is not None:
            sittings.append(sitting)
        n_done += len(own_rows)
        progress(n_done, report.rows, f"Checked the answers of {len(sittings):,} of {len(rows):,} annotators")
    report.problems.sort_by_row()
    answers = chain.from_iterable(sitting.answers for sitting in sittings)
    for answer in sorted(answers, key=lambda answer: answer.resolved.answer_row.row)[:MAX_EXAMPLE_ROWS]:
        report.first.append(_example_row(answer))
    return sittings


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


def _count_new_and_known(
    study_index: StudyIndex, earlier: EarlierImports, sittings: list[ImportedAssignment], report: ImportReport
) -> None:
    """Count the new answers and those that are already stored. A different stored answer is a problem."""
    items, people, answers = (report.counts[kind] for kind in ("items", "annotators", "answers"))
    n_gone = 0
    for sitting in sittings:
        person = earlier.people.get(imported_person_hash(study_index.study, sitting.name))
        people.new += person is None
        people.same += person is not None
        for answer in sitting.answers:
            status = _import_status(earlier, person, sitting, answer)
            n_gone += status == "gone"
            answers.same += status != "new"
            answers.new += status == "new"
            if status == "other":
                message = (
                    f"another answer of “{sitting.name}” to this is already stored. Stored answers are never changed."
                )
                report.problems.add(answer.resolved.answer_row.row, None, message)
    keys = {key for sitting in sittings for key in sitting.items}
    items.same = len(keys & earlier.items)
    items.new = len(keys) - items.same
    if n_gone:
        report.add_finding(
            "gone", f"{n_gone:,} answers were erased or withdrawn after their import. They are not imported again."
        )


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


def _only_new_answers(
    study_index: StudyIndex, earlier: EarlierImports, sitting: ImportedAssignment
) -> ImportedAssignment:
    """Return the imported assignment with only the answers that are not stored yet."""
    person = earlier.people.get(imported_person_hash(study_index.study, sitting.name))
    new_answers = [answer for answer in sitting.answers if _import_status(earlier, person, sitting, answer) == "new"]
    return ImportedAssignment(sitting.name, sitting.arm, sitting.items, new_answers)


def _add_findings(study: Study, report: ImportReport, rows: dict[str, list[AnswerRow]]) -> None:
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
    all_rows = list(chain.from_iterable(rows.values()))
    if refused := {row.row for row in all_rows if name_key(row.status) in NOT_COUNTED}:
        report.add_finding(
            "rejected",
            f"{len(refused):,} rows are of rejected work or previews. They are imported; remove them from the file if they should not count.",
            [f"row {row}" for row in sorted(refused)],
        )
    if n := sum(not row.has_utc_offset for row in all_rows):
        report.add_finding("no_offset", f"{n:,} times have no UTC offset. They are read as UTC.")
    if all_rows and not any(row.time for row in all_rows):
        report.add_finding("no_times", "The file has no times, so the times of the answers are unknown.")
    if any(row.prompt for row in all_rows) and not any(row.shown or row.label for row in all_rows):
        report.add_finding(
            "no_places",
            "The file does not say where each output was shown, so position effects cannot be analysed.",
        )


def _create_done_job(study: Study, by: Any, report: ImportReport) -> Job:
    """Create a finished job as the source of imported answers, if no job read them."""
    from django.db.models.functions import Now

    return Job.objects.create(
        kind="import",
        study=study,
        by=by,
        state=Job.State.DONE,
        done=report.rows,
        total=report.rows,
        started_at=Now(),
        ended_at=Now(),
        arguments={"filename": report.filename[:200], "sha256": report.sha256},
        result=report.outcome(),
    )
