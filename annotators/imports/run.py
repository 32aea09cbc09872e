"""An import of answers from end to end: read, hold against the study, report; and, when confirmed, write what was reported."""

from itertools import chain
from pathlib import Path
from typing import Any

from django.db import transaction

from annotators.models import Assignment
from studies.access import Action, check_permission
from studies.design.checklist import find_analysis_blockers
from studies.imports.tables import ImportReport
from studies.imports.tables.result import Count
from studies.imports.tables.run import (
    ProgressCallback,
    add_file_findings,
    check_expected_outcome,
    no_progress,
    sha256_of,
)
from studies.models import Job, Study, audit
from studies.services import lifecycle
from studies.stimuli.rows import TableLimits, read_rows

from .columns import COLUMN_ALIASES, COLUMNS, AnswerReader, AnswerRow
from .imported_assignments import ImportedAnswer, ImportedAssignment, build_imported_assignment
from .options import Options
from .study_index import ERASED_ANSWER, EarlierImports, StudyIndex, build_study_index, load_earlier_imports, person_key
from .writing import write_imported_answers

AUDIT_VERB = "import answers"
MAX_ROWS = 500_000
PROGRESS_EVERY = 2000
MAX_EXAMPLE_ROWS = 10
COUNTED_KINDS = ("annotators", "items", "answers")


def reason_not_importable(study: Study) -> str:
    """Why answers cannot be imported into the study now; '' where they can."""
    if study.state == Study.State.DRAFT:
        return ""
    if study.state != Study.State.CLOSED:
        return "Answers given elsewhere never stand beside those that a study still collects: clone it, and import them into the clone."
    if study.assignments.filter(origin=Assignment.Origin.LIVE).exists():
        return "The study has answers of its own. Answers given elsewhere belong into a study of their own: clone it."
    return ""


def import_answers(
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
    """Read a file of answers into a study: all of it, or nothing and a report that says why.

    A draft is frozen and closed by it. The same file a second time changes nothing. ``agreed``: see ``studies.imports.tables``.
    """
    check_permission(by, Action.EDIT, study)
    how = options if isinstance(options, Options) else Options.from_json(options or {})
    if words := reason_not_importable(study):
        raise lifecycle.ActionRefused(words)
    filename = filename or path.name
    report = ImportReport(filename=filename, sha256=sha256_of(path), counts={kind: Count() for kind in COUNTED_KINDS})
    rows = _read_rows(study, path, how, report, progress)
    if study.is_draft:
        for problem in find_analysis_blockers(study):
            report.problems.add(None, None, f"The study is not ready: {problem.text}")
    sittings: list[ImportedAssignment] = []
    if report.is_sound:
        ground = build_study_index(study)
        sittings = _build_imports(ground, rows, report, progress)
        _count_new_and_known(ground, load_earlier_imports(study), sittings, report)
    _add_findings(study, report, rows)
    check_expected_outcome(report, expected_outcome)
    if is_dry_run or not report.is_sound or not report.has_changes:
        return report
    progress(report.rows, report.rows, "Writing")
    with transaction.atomic():
        if study.is_draft:
            study = lifecycle.freeze_and_close(study, by)
        # Under the study's lock nobody else imports, and what is counted is what is written.
        study = Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        if words := reason_not_importable(study):
            raise lifecycle.ActionRefused(words)
        before = load_earlier_imports(study)
        new = [one for one in (_only_new_answers(ground, before, sitting) for sitting in sittings) if one.answers]
        write_imported_answers(study, ground, before, new, job or _create_done_job(study, by, report))
        audit.record(AUDIT_VERB, study=study, by=by, filename=filename[:200], options=how.as_json(), **report.outcome())
    report.is_written = True
    return report


def _read_rows(
    study: Study, path: Path, how: Options, report: ImportReport, progress: ProgressCallback
) -> dict[str, list[AnswerRow]]:
    """The rows by annotator, annotators in the order in which the file names them first."""
    known = (*COLUMNS, *COLUMN_ALIASES, *how.columns.values())
    limits = TableLimits(rows=MAX_ROWS)
    found: dict[str, list[AnswerRow]] = {}
    with path.open("rb") as file:
        table = read_rows(report.filename, file, known=known, limits=limits, problems=report.problems)
        answers = AnswerReader(table, how.columns, report.problems)
        for said in answers:
            found.setdefault(said.annotator, []).append(said)
            if answers.count % PROGRESS_EVERY == 0:
                progress(answers.count, 0, f"Reading row {answers.count:,}")
        report.rows = answers.count
    add_file_findings(study, report, answers, AUDIT_VERB)
    return found


def _build_imports(
    ground: StudyIndex, rows: dict[str, list[AnswerRow]], report: ImportReport, progress: ProgressCallback
) -> list[ImportedAssignment]:
    found, done = [], 0
    for name, mine in rows.items():
        sitting = build_imported_assignment(ground, name, mine, report.problems)
        if sitting is not None:
            found.append(sitting)
        done += len(mine)
        progress(done, report.rows, f"Answers of {len(found):,} of {len(rows):,} annotators fit")
    for answer in sorted(chain.from_iterable(one.answers for one in found), key=lambda one: one.about.said.row)[
        :MAX_EXAMPLE_ROWS
    ]:
        report.first.append(_example_row(answer))
    return found


def _example_row(answer: ImportedAnswer) -> dict[str, Any]:
    """A row as it was understood, for a table."""
    about, row = answer.about, answer.row
    said = (
        row.value
        if row.value is not None
        else row.choice or row.text or row.skip_reason or about.said.chosen or row.label
    )
    of = f"{about.question.key}{f' ({about.said.system})' if about.said.system else ''}"
    place = f" (shown as {row.label})" if row.label and not about.question.x else ""
    return {
        "row": about.said.row,
        "batch": about.said.annotator,
        "prompt": about.said.prompt or f"section {about.section.position}",
        "prompt_text": "",
        "outputs": [[of, f"{said}{place}"[:160]]],
    }


def _answer_key(answer: ImportedAnswer) -> tuple[Any, ...]:
    row = answer.row
    return (row.value, row.chosen_id, row.choice, row.part, row.text, row.skip_reason)


def _count_new_and_known(
    ground: StudyIndex, before: EarlierImports, sittings: list[ImportedAssignment], report: ImportReport
) -> None:
    """What is new and what is the study's already; an answer that differs from the one stored is a problem."""
    items, people, answers = (report.counts[kind] for kind in ("items", "annotators", "answers"))
    n_gone = 0
    for sitting in sittings:
        person = before.people.get(person_key(ground.study, sitting.name))
        people.new += person is None
        people.same += person is not None
        for answer in sitting.answers:
            standing = _import_status(before, person, sitting, answer)
            n_gone += standing == "gone"
            answers.same += standing != "new"
            answers.new += standing == "new"
            if standing == "other":
                words = f"“{sitting.name}” is stored with another answer to this; what was answered is never changed."
                report.problems.add(answer.about.said.row, None, words)
    keys = {key for sitting in sittings for key in sitting.items}
    items.same = len(keys & before.items)
    items.new = len(keys) - items.same
    if n_gone:
        report.add_finding(
            "gone", f"{n_gone:,} answers were erased or withdrawn since they were imported; they do not come back."
        )


def _import_status(
    before: EarlierImports, person: int | None, sitting: ImportedAssignment, answer: ImportedAnswer
) -> str:
    """new | same | other | gone: how an answer stands to what was imported before."""
    if person is None:
        return "new"
    if person in before.withdrawn:
        return "gone"
    row = answer.row
    item = sitting.items[row.item_id - 1] if row.item_id else None
    there = before.said.get((person, row.question_id, item, row.exposure_id), [])
    mine = _answer_key(answer)
    is_one_of_many = answer.about.question.scale.kind == "multiple" or bool(row.part)
    if is_one_of_many:
        there = [one for one in there if one == ERASED_ANSWER or (one[2], one[3]) == (row.choice, row.part)]
    if not there:
        return "new"
    return "gone" if ERASED_ANSWER in there else "same" if mine in there else "other"


def _only_new_answers(ground: StudyIndex, before: EarlierImports, sitting: ImportedAssignment) -> ImportedAssignment:
    """The part of a sitting that is not stored yet."""
    person = before.people.get(person_key(ground.study, sitting.name))
    kept = [one for one in sitting.answers if _import_status(before, person, sitting, one) == "new"]
    return ImportedAssignment(sitting.name, sitting.arm, sitting.items, kept)


def _add_findings(study: Study, report: ImportReport, rows: dict[str, list[AnswerRow]]) -> None:
    if study.is_draft:
        report.add_finding(
            "freezes",
            "The study is a draft. Writing these answers freezes its design and closes it: nobody can be sent to it afterwards. "
            "Clone it to collect answers of your own.",
        )
    every = list(chain.from_iterable(rows.values()))
    if n := sum(not said.has_utc_offset for said in every):
        report.add_finding("no_offset", f"{n:,} times do not say how far from UTC they are; they are read as UTC.")
    if every and not any(said.time for said in every):
        report.add_finding("no_times", "The file has no times: when answers were given stays unknown.")
    if any(said.prompt for said in every) and not any(said.shown or said.label for said in every):
        report.add_finding(
            "no_places", "The file does not say what stood where: whether the place mattered cannot be found."
        )


def _create_done_job(study: Study, by: Any, report: ImportReport) -> Job:
    """What imported answers name as their source, where no job read them: the same row, done."""
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
