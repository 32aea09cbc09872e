"""Run a whole import: read the file and report. If it is confirmed, write what was reported."""

import hashlib
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

from django.db import transaction

from studies.access import Action, check_permission_or_404
from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts
from studies.models import AuditEvent, Study, audit
from studies.services import lifecycle
from studies.stimuli.archives import Archive, read_zip
from studies.stimuli.rows import Rows, read_rows

from .cells import RecordReader
from .columns import StimulusReader, known_column_names
from .existing import load_existing_stimuli
from .images import ImportedImages
from .options import Options
from .pairing import pair_texts_by_attributes_and_length
from .plan import ImportPlan
from .result import ImportReport
from .writing import StudyChanged, reason_not_importable, write_import_plan

ProgressCallback = Callable[[int, int, str], None]
PROGRESS_EVERY = 1000
AUDIT_VERB = "import"


def no_progress(done: int, total: int, doing: str = "") -> None:
    """Report no progress."""


def import_stimuli_file(
    study: Study,
    path: Path,
    *,
    by: Any,
    filename: str = "",
    options: Options | None = None,
    is_dry_run: bool = False,
    expected_outcome: dict[str, Any] | None = None,
    progress: ProgressCallback = no_progress,
) -> ImportReport:
    """Import a file into a draft: either all of it, or nothing and a report with the reasons.

    A dry run writes nothing. ``expected_outcome`` is the outcome of the dry run that a researcher confirmed. If it would differ
    now, write nothing and raise StudyChanged. Importing the same file a second time changes nothing.
    """
    check_permission_or_404(by, Action.EDIT, study)
    options = options or Options()
    if refusal := reason_not_importable(study):
        raise lifecycle.ActionRefused(refusal)
    filename = filename or path.name
    report = ImportReport(filename=filename, sha256=file_sha256(path))
    with ExitStack() as stack:
        archive, rows = _opened(path, filename, stack)
        report.problems = rows.problems
        pairing = None
        if options.makes_pairs:
            rows, pairing = pair_texts_by_attributes_and_length(rows, options, study.seed)
        images = stack.enter_context(ImportedImages(archive, stores=not is_dry_run))
        journal = None if is_dry_run else stack.enter_context(tempfile.TemporaryFile("w+", encoding="ascii"))
        plan = ImportPlan(study, options, load_existing_stimuli(study), images, report, journal)
        entries = StimulusReader(rows, options, report.problems)
        size = path.stat().st_size
        for number, entry in enumerate(entries, 1):
            plan.add(entry)
            if number % PROGRESS_EVERY == 0:
                progress(number, 0, f"Reading row {number:,} ({size / 1e6:,.0f} MB)")
        report.rows = entries.count
        plan.complete_report()
        add_file_findings(study, report, entries, AUDIT_VERB)
        if study.preparation:
            report.add_finding("preparation", "The study's preparation will be applied to the imported texts.")
        if pairing is not None:
            refusal = f"{len(pairing.pairs):,} pairs of texts were made; each is a prompt without a text."
            report.add_finding("pairs", refusal, pairing.notes(), len(pairing.pairs))
        check_expected_outcome(report, expected_outcome)
        if is_dry_run or not report.is_sound or not report.has_changes:
            return report
        progress(report.rows, report.rows, "Writing")
        with images.storing_used_images(), transaction.atomic():
            write_import_plan(plan)
            audit.record(
                AUDIT_VERB, study=study, by=by, filename=filename[:200], options=options.as_json(), **report.outcome()
            )
            study.refresh_from_db()
            if study.preparation:
                prepared = prepare_stimuli_and_delete_dropped_prompts(study, study.preparation, by=by)
                report.add_finding("prepared", f"The study's preparation changed {prepared.changes_text()}.")
        report.is_written = True
    study.refresh_from_db()
    return report


def _opened(path: Path, filename: str, stack: ExitStack) -> tuple[Archive | None, Rows]:
    file = stack.enter_context(path.open("rb"))
    if PurePosixPath(filename).suffix.lower() == ".zip":
        archive = stack.enter_context(read_zip(filename, file, known_columns=tuple(known_column_names())))
        return archive, archive.rows
    return None, read_rows(filename, file, known_columns=tuple(known_column_names()))


def add_file_findings(study: Study, report: ImportReport, records: RecordReader, audit_verb: str) -> None:
    """Add the findings of every importer: ignored columns, and an earlier import of the same file."""
    if records.ignored:
        report.add_finding("ignored_columns", "Columns that are not imported.", sorted(records.ignored))
    before = AuditEvent.objects.filter(study=study, verb=audit_verb, data__sha256=report.sha256).order_by("pk").last()
    if before:
        report.add_finding("imported_before", f"The same file was imported on {before.at:%d %B %Y at %H:%M} UTC.")


def check_expected_outcome(report: ImportReport, expected_outcome: dict[str, Any] | None) -> None:
    """Raise StudyChanged if the import would differ from the confirmed dry run."""
    if expected_outcome is not None and report.outcome() != expected_outcome:
        raise StudyChanged(
            "The study was changed after the file was checked. Check the new report, then confirm again."
        )


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
