"""Run a whole import: read the file and report. If it is confirmed, write what was reported."""

import hashlib
import json
import os
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.db import transaction

from studies.access import Action, check_permission_or_404
from studies.imports.formats import dataset_folder, flattened, headed, objects_of_file, rows_of_object
from studies.imports.preparation import prepare_stimuli_and_delete_dropped_prompts
from studies.models import AuditEvent, Job, Study, audit
from studies.services import drafts, jobs, lifecycle
from studies.services.lifecycle import ActionRefused
from studies.stimuli.images import Archive, read_zip
from studies.stimuli.lines import UnreadableFile
from studies.stimuli.rows import Rows, TableLimits, TableProblems, read_rows, rows_of_objects
from studies.stimuli.texts import name_key

from .columns import KNOWN_COLUMNS, Options, RecordReader, StimulusReader
from .existing import ImportedImages
from .mapping import apply_mapping, describe_columns, look_at, parse_mapping, propose_mapping
from .plan import ImportPlan, pair_texts_by_attributes_and_length
from .result import ImportReport
from .writing import StimuliWriter, StudyChanged, Turns, remove_unfinished_stimuli

ProgressCallback = Callable[[int, int, str], None]
PROGRESS_EVERY = 1000
# Earlier imports of the study whose mapping of columns may fit a new file.
SEEN_IMPORTS = 30
AUDIT_VERB = "import"
# The finding that an earlier mapping was used.
REUSED = "reused_columns"


def reason_not_importable(study: Study) -> str:
    """Return why stimuli cannot be imported into the study now, or '' if they can."""
    return "" if study.is_draft else "Stimuli can only be imported into a draft. Clone the study."


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
    check: Callable[[ImportReport], None] | None = None,
    job: Job | None = None,
) -> ImportReport:
    """Import a file into a draft: either all of it, or nothing and a report with the reasons.

    A study that is not stored yet is stored as a draft before the first row is written, and deleted if the import is stopped. A dry run
    writes nothing. ``expected_outcome`` is the outcome of the dry run that a researcher confirmed. If it would differ
    now, write nothing and raise StudyChanged. Importing the same file a second time changes nothing. ``check`` sees the report before
    anything is written, and may raise.
    """
    check_permission_or_404(by, *((Action.EDIT, study) if study.pk else (Action.CREATE,)))
    options = options or Options()
    if study.pk:
        remove_unfinished_stimuli(study, job)
        study.refresh_from_db()  # this version must not change until the rows are written
    if refusal := reason_not_importable(study):
        raise lifecycle.ActionRefused(refusal)
    filename = filename or path.name
    report = ImportReport(filename=filename, sha256=file_sha256(path))
    with ExitStack() as stack:
        archive, rows = open_file(path, filename, options.sheet, stack)
        report.problems = rows.problems
        rows = _mapped(rows, options, report, study)
        pairing = None
        if options.makes_pairs:
            rows, pairing = pair_texts_by_attributes_and_length(rows, options, study.seed)
        images = stack.enter_context(ImportedImages(archive, stores=not is_dry_run))
        plan = ImportPlan(study, options, images, report, stores=not is_dry_run)
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
        if job is not None and job.result is not None:
            report.is_written = True  # by an earlier run of the job, whose end was not recorded
            return report
        check_expected_outcome(report, expected_outcome)
        if check is not None:
            check(report)
        if is_dry_run or not report.is_sound or not report.has_changes:
            return report
        is_new = not study.pk
        with transaction.atomic():
            if is_new:
                drafts.create_draft_with_default_arm(study, by)
            marks = {lifecycle.UNFINISHED: {"is_new_study": True}} if is_new else {}
            job, progress = stack.enter_context(running_import(job, "stimuli", study, by, report, progress, **marks))
        lifecycle.refuse_other_import(study, job)
        writer = StimuliWriter(plan, Turns(study, job, plan.n_operations, progress))
        with removing_if_stopped(lambda: remove_unfinished_stimuli(study, job)), images.storing_used_images():
            writer.store()
            with writer.publishing(report.outcome()):
                audit.record(
                    AUDIT_VERB,
                    study=study,
                    by=by,
                    filename=filename[:200],
                    options=options.as_json(),
                    **report.outcome(),
                )
                study.refresh_from_db()
                if study.preparation:
                    prepared = prepare_stimuli_and_delete_dropped_prompts(
                        study, study.preparation, by=by, is_import=True
                    )
                    report.add_finding("prepared", f"The study's preparation changed {prepared.changes_text()}.")
        report.is_written = True
    study.refresh_from_db()
    return report


@contextmanager
def running_import(
    job: Job | None,
    imports: str,
    study: Study,
    by: Any,
    report: ImportReport,
    progress: ProgressCallback,
    **arguments: Any,
) -> Iterator[tuple[Job, ProgressCallback]]:
    """Yield the job of an import and its progress. A command or a request, which has none, gets one that this process runs."""
    if job is not None:
        yield job, progress
        return
    arguments |= {"imports": imports, "is_confirmed": True, "filename": report.filename[:200], "sha256": report.sha256}
    with jobs.running_here(KIND, study=study, by=by, **arguments) as (own_job, renew):

        def renew_and_report(done: int, total: int, doing: str = "") -> None:
            renew(done, total, doing)
            progress(done, total, doing)

        yield own_job, renew_and_report


@contextmanager
def removing_if_stopped(remove: Callable[[], None]) -> Iterator[None]:
    """Remove what an import has stored if it does not come to its end."""
    try:
        yield
    except jobs.LeaseLost:
        raise  # another process has the job now, and the rows are its own
    except BaseException:
        remove()
        raise


def _mapped(rows: Rows, options: Options, report: ImportReport, study: Study) -> Rows:
    """Return the rows under heval's names of columns, by the given mapping, an earlier one of such a file, or the proposed one."""
    if not (options.columns or options.proposes_columns) or not rows.columns:
        return rows
    looks, rows = look_at(rows)
    columns: Sequence[str] = options.columns
    if not columns and (columns := propose_mapping(looks)) and (used := _mapping_used_before(study, rows.columns)):
        report.proposed, (columns, filename) = columns, used
        report.add_finding(REUSED, f"The columns are read as in this study's import of “{filename}”.")
    report.columns, report.is_mapped = describe_columns(looks, columns), bool(columns)
    return apply_mapping(rows, columns) if columns else rows


def _mapping_used_before(study: Study, columns: Sequence[str]) -> tuple[list[str], str] | None:
    """Return the last mapping that was confirmed in this study, or in the study that it is a clone of, and the file's name."""
    present = {name_key(column) for column in columns}
    studies = [pk for pk in (study.pk, study.clone_of_id) if pk]
    imports = AuditEvent.objects.filter(verb=AUDIT_VERB, study__in=studies)
    for data in imports.order_by("-pk").values_list("data", flat=True)[:SEEN_IMPORTS]:
        mapping = data["options"].get("columns")
        if mapping and present.issuperset(parse_mapping(mapping)):
            return mapping, data["filename"]
    return None


def open_file(path: Path, filename: str, sheet: str, stack: ExitStack) -> tuple[Archive | None, Rows]:
    """Return the rows of a table or of a known tool's file, and the archive of images that the table came in."""
    file = stack.enter_context(path.open("rb"))
    problems, limits = TableProblems(), TableLimits()
    try:
        if PurePosixPath(filename).suffix.lower() == ".zip":
            if (
                rows := dataset_folder.rows_of_archive(file, sheet, stack, KNOWN_COLUMNS, limits, problems)
            ) is not None:
                return None, flattened(rows)
            archive = stack.enter_context(read_zip(filename, file, columns=KNOWN_COLUMNS))
            return archive, flattened(archive.rows)
        if (objects := objects_of_file(filename, file, limits.bytes)) is not None:
            return None, rows_of_objects(iter(enumerate(objects, 1)), KNOWN_COLUMNS, limits, problems)
    except UnreadableFile as refused:
        problems.add(None, None, refused.text)
        problems.sheets = getattr(refused, "sheets", ())
        return None, Rows((), iter(()), problems)
    rows = read_rows(filename, headed(file), columns=KNOWN_COLUMNS, open_object=rows_of_object, sheet=sheet)
    return None, flattened(rows)


def add_file_findings(study: Study, report: ImportReport, records: RecordReader, audit_verb: str) -> None:
    """Add the findings of every importer: how the file was read, ignored columns, and an earlier import of the same file."""
    for note in records.rows.notes:
        report.add_finding("reading", note)
    if records.ignored:
        report.add_finding("ignored_columns", "Columns that are not imported:", sorted(records.ignored))
    before = (
        AuditEvent.objects.filter(study=study.pk, verb=audit_verb, data__sha256=report.sha256).order_by("pk").last()
    )
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


# Uploaded files between the dry run and the confirmation: the same bytes for both, private, and deleted after a day.
#
# Each file has a random name. A small JSON file beside it holds its user, its study and its report.


MAX_BYTES = TableLimits().bytes
RETENTION_SECONDS = 24 * 60 * 60

_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass
class Upload:
    """A stored file and its record."""

    token: str
    study: int
    user: int
    filename: str
    size: int
    sha256: str
    options: dict[str, Any] = field(default_factory=dict)
    job: str = ""  # the code of the job that reads it or did so last
    is_confirmed: bool = False
    report: dict[str, Any] | None = None
    fault: str = ""
    kind: str = "stimuli"  # what the file holds (import_job.register)
    notice: str = ""  # why its file was read again
    is_guided: bool = False  # whether it was uploaded on the pages of a new study, to which its pages lead back

    @property
    def path(self) -> Path:
        return path_of_file(self.token)

    def save(self) -> None:
        """Replace the record in one step, so that readers never see a part of it."""
        new = get_or_create_uploads_folder() / f".{self.token}.{secrets.token_hex(4)}"
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        os.chmod(new, 0o600)
        os.replace(new, _record(self.token))

    def delete_file(self) -> None:
        """Delete the file, but keep its record and report."""
        self.path.unlink(missing_ok=True)

    def is_intact(self) -> bool:
        """Return whether the file still exists with the same bytes."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


def get_or_create_uploads_folder() -> Path:
    """Return the folder of uploads. It is beside the media folder and never served."""
    path = Path(getattr(settings, "UPLOADS_ROOT", None) or Path(settings.MEDIA_ROOT).parent / "uploads")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _record(token: str) -> Path:
    return get_or_create_uploads_folder() / f"{token}.json"


def store_upload(
    chunks: Iterable[bytes],
    filename: str,
    *,
    study_id: int,
    user_id: int,
    options: dict[str, Any],
    kind: str = "stimuli",
    is_guided: bool = False,
) -> Upload:
    """Store a file while it arrives. Raise ActionRefused if it is empty or too large; then nothing remains."""
    file = store_file(chunks)
    name = PurePosixPath(filename.replace("\\", "/")).name
    name = "".join(c for c in name if c.isprintable())[:200] or "file"
    upload = Upload(
        file.token, study_id, user_id, name, file.size, file.sha256, options, kind=kind, is_guided=is_guided
    )
    upload.save()
    return upload


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the folder of uploads. It has no record of its own."""

    token: str
    size: int
    sha256: str

    @property
    def path(self) -> Path:
        return path_of_file(self.token)


def path_of_file(token: str) -> Path:
    return get_or_create_uploads_folder() / f"{token}.data"


def store_file(chunks: Iterable[bytes]) -> StoredFile:
    """Store a file while it arrives. Raise ActionRefused if it is empty or too large; then nothing remains."""
    token, size, digest = secrets.token_hex(16), 0, hashlib.sha256()
    path = path_of_file(token)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            for chunk in chunks:
                size += len(chunk)
                if size > MAX_BYTES:
                    raise ActionRefused(
                        f"The file has more than {MAX_BYTES:,} bytes, the maximum. Split it into smaller files."
                    )
                digest.update(chunk)
                file.write(chunk)
        if not size:
            raise ActionRefused("The file is empty.")
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return StoredFile(token, size, digest.hexdigest())


def get_upload(token: str, study_id: int | None) -> Upload | None:
    """Return the study's upload with this token, or None if the study has no such upload."""
    if not _TOKEN.fullmatch(token):
        return None
    try:
        upload = Upload(**json.loads(_record(token).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return upload if upload.study == study_id else None


def purge_old_files(older_than_seconds: float = RETENTION_SECONDS) -> int:
    """Remove files older than a day. Return their number."""
    before, n = time.time() - older_than_seconds, 0
    for path in get_or_create_uploads_folder().iterdir():
        with suppress(FileNotFoundError):  # another process purges too
            if path.stat().st_mtime < before:
                path.unlink()
                n += 1
    return n


# Import an upload: at once if it is small, otherwise as a job.
#
# Each importer handles one kind of file. Other apps register their importers in ready().


KIND = lifecycle.IMPORT_KIND
SMALL_BYTES = 2 * 1024 * 1024
USER_FACING_ERRORS = (lifecycle.ActionRefused,)


@dataclass(frozen=True, slots=True)
class Importer:
    """The importer of one kind of file. ``read`` takes (study, path), and filename, options as JSON, by, is_dry_run,
    expected_outcome, progress and job as keywords.

    ``reason_not_importable``: why the study does not accept such a file now, or ''. ``page``: the name of the upload page's URL.
    ``role_labels`` takes the study and the roles of the columns, and returns the roles that a person may choose. ``options_with_roles``
    takes the options and (role, column) of all columns; ``checked_options`` takes options as JSON. Both return options as JSON, and raise
    SettingsRefused.
    """

    read: Callable[..., ImportReport]
    reason_not_importable: Callable[[Study], str]
    checked_options: Callable[[dict[str, Any]], dict[str, Any]]
    page: str
    confirm_label: str = "Import into the study"
    role_labels: Callable[[Study, list[str]], dict[str, str]] | None = None
    options_with_roles: Callable[[dict[str, Any], list[tuple[str, str]]], dict[str, Any]] | None = None


def import_stimuli_with_json_options(
    study: Study, path, *, options: dict[str, Any], job: Job | None = None, **how: Any
) -> ImportReport:
    return import_stimuli_file(study, path, options=Options.from_json(options), job=job, **how)


_importers: dict[str, Importer] = {}


def register_importer(kind: str, importer: Importer) -> None:
    """Register the importer of a kind of file. You may register the same importer again."""
    if _importers.setdefault(kind, importer) != importer:
        raise ValueError(f"Two importers are registered for the kind of file {kind!r}.")


def get_importer(kind: str) -> Importer:
    return _importers[kind]


def importer_of(upload: Upload) -> Importer:
    return get_importer(upload.kind)


def checked_stimuli_options(options: dict[str, Any]) -> dict[str, Any]:
    return Options.from_json(options).as_json()


register_importer(
    "stimuli",
    Importer(import_stimuli_with_json_options, reason_not_importable, checked_stimuli_options, "import"),
)


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
    # Without systems that the researcher leaves out, what was reported has other counts.
    left_out = upload.options.get("left_out_systems")
    agreed = ImportReport.from_json(upload.report).outcome() if upload.report and not left_out else None
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
        imports=upload.kind,
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
    """Import a large file. A second run after a crash removes what the first one has stored, and begins again."""
    if "upload" not in job.arguments:  # a command or a request ran it
        if job.result is not None:
            return job.result
        remove_unfinished_stimuli(job.study, job)
        raise ActionRefused(
            "The process that imported this file ended early. Nothing is stored. Import the file again."
        )
    upload = get_upload(job.arguments["upload"], job.study_id)
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


@jobs.register_periodic(60)
def remove_unfinished_imports_of_stimuli() -> int:
    """Remove the stimuli of imports that were killed, or could not remove them. Return the number of studies."""
    stopped = Job.objects.filter(arguments__has_key=lifecycle.UNFINISHED, state__in=jobs.ENDED)
    n = 0
    for study in Study.objects.filter(pk__in=stopped.values("study")):
        with suppress(ActionRefused):  # another process has begun to import
            remove_unfinished_stimuli(study, None)
            n += 1
    return n


@jobs.register_periodic(60 * 60)
def purge_old_upload_files() -> int:
    """Delete uploads that are older than one day."""
    return purge_old_files()
