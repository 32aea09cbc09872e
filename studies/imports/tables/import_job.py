"""Import an upload: at once if it is small, otherwise as a job.

Each importer handles one kind of file. Other apps register their importers in ready().
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from studies.models import Job, Study
from studies.services import jobs, lifecycle

from . import uploads
from .options import Options
from .result import ImportReport
from .run import ProgressCallback, import_stimuli_file, no_progress
from .uploads import Upload
from .writing import StudyChanged, reason_not_importable

KIND = "import"
SMALL_BYTES = 2 * 1024 * 1024
USER_FACING_ERRORS = (lifecycle.ActionRefused,)


@dataclass(frozen=True, slots=True)
class Importer:
    """The importer of one kind of file. ``read`` takes (study, path), and filename, options as JSON, by, is_dry_run,
    expected_outcome, progress and job as keywords.

    ``reason_not_importable``: why the study does not accept such a file now, or ''. ``page``: the name of the upload page's URL.
    """

    read: Callable[..., ImportReport]
    reason_not_importable: Callable[[Study], str]
    page: str
    confirm_label: str = "Import into the study"


def import_stimuli_with_json_options(
    study: Study, path, *, options: dict[str, Any], job: Job | None = None, **how: Any
) -> ImportReport:
    return import_stimuli_file(study, path, options=Options.from_json(options), **how)


_importers: dict[str, Importer] = {}


def register_importer(kind: str, importer: Importer) -> None:
    """Register the importer of a kind of file. You may register the same importer again."""
    if _importers.setdefault(kind, importer) != importer:
        raise ValueError(f"Two importers are registered for the kind of file {kind!r}.")


def get_importer(kind: str) -> Importer:
    return _importers[kind]


def importer_of(upload: Upload) -> Importer:
    return get_importer(upload.kind)


register_importer("stimuli", Importer(import_stimuli_with_json_options, reason_not_importable, "import"))


def _read(study: Study, upload: Upload, by, progress: ProgressCallback, **how: Any) -> ImportReport:
    return importer_of(upload).read(
        study, upload.path, filename=upload.filename, options=upload.options, by=by, progress=progress, **how
    )


def dry_run_upload(study: Study, upload: Upload, by, progress: ProgressCallback = no_progress) -> None:
    """Run a dry run, and store its report beside the file."""
    _check(upload)
    report = _read(study, upload, by, progress, is_dry_run=True)
    upload.report, upload.fault = report.as_json(), ""
    upload.save()


def import_upload_and_delete_file(
    study: Study, upload: Upload, by, progress: ProgressCallback = no_progress, job: Job | None = None
) -> None:
    """Write what the dry run reported. If the study has changed since, store a new report and raise StudyChanged."""
    _check(upload)
    agreed = ImportReport.from_json(upload.report).outcome() if upload.report else None
    try:
        report = _read(study, upload, by, progress, expected_outcome=agreed, job=job)
    except StudyChanged as moved:
        dry_run_upload(study, upload, by, progress)
        upload.is_confirmed, upload.fault = False, str(moved)
        upload.save()
        raise
    upload.report, upload.fault, upload.is_confirmed = report.as_json(), "", report.is_sound
    upload.save()
    if report.is_sound:
        upload.delete_file()


def process_or_queue_upload(study: Study, upload: Upload, by, *, is_confirmed: bool) -> Job | None:
    """Dry-run or import the upload: at once if it is small, otherwise by a job. Return the job, or None if it is done."""
    if upload.size <= SMALL_BYTES:
        (import_upload_and_delete_file if is_confirmed else dry_run_upload)(study, upload, by)
        return None
    if is_confirmed and (writing := _unfinished_writing(upload)):
        return writing
    # Two simultaneous confirmations share one job. A confirmation after a fault starts a new one.
    # Another dry run of the same file has other options.
    attempt = f"{'write' if is_confirmed else 'look'}-{upload.job[:8]}"
    job = jobs.submit(
        KIND,
        study=study,
        by=by,
        request_token=f"import-{upload.token}-{attempt}",
        upload=upload.token,
        is_confirmed=is_confirmed,
        filename=upload.filename,
        sha256=upload.sha256,
    )
    upload.job, upload.fault = str(job.code), ""
    upload.save()
    return job


def job_of(upload: Upload) -> Job | None:
    """Return the job that reads the upload or did so last."""
    return Job.objects.filter(code=uuid.UUID(upload.job)).first() if upload.job else None


def _unfinished_writing(upload: Upload) -> Job | None:
    job = job_of(upload)
    is_unfinished_writing = job is not None and job.arguments.get("is_confirmed") and job.state not in jobs.ENDED
    return job if is_unfinished_writing else None


def _check(upload: Upload) -> None:
    if not upload.is_intact():
        raise lifecycle.ActionRefused(
            "The uploaded file no longer exists: heval keeps uploads for one day. Upload it again."
        )


@jobs.register(KIND, is_one_per_study=True, user_facing_errors=USER_FACING_ERRORS)
def dry_run_or_import_upload_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Import a large file. A second run after a crash finds everything written and changes nothing."""
    upload = uploads.get_upload(job.arguments["upload"], job.study_id)
    if upload is None:
        raise lifecycle.ActionRefused(
            "The uploaded file no longer exists: heval keeps uploads for one day. Upload it again."
        )
    is_confirmed = bool(job.arguments["is_confirmed"])
    if not (is_confirmed and upload.is_confirmed):
        if is_confirmed:
            import_upload_and_delete_file(job.study, upload, job.by, progress, job)
        else:
            dry_run_upload(job.study, upload, job.by, progress)
    report = upload.report or {}
    return {key: report.get(key) for key in ("sha256", "rows", "counts", "is_written")} | {
        "problems": (report.get("problems") or {}).get("count", 0)
    }


@jobs.register_periodic(60 * 60)
def purge_old_upload_files() -> int:
    """Delete uploads that are older than one day."""
    return uploads.purge_old_files()
