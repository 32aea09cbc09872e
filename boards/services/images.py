"""Prompts with images: one ZIP for teams, with the prompts as JSON lines and the images that they name."""

import json
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet

from boards.models import Board, Submission, Team
from studies.imports.tables.existing import ImportedImages
from studies.imports.tables.run import StoredFile, path_of_file, store_file
from studies.models import Job, Prompt
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from studies.stimuli.columns import EMPTY, IMAGE, KEY, PROMPT_ALIASES, Columns
from studies.stimuli.images import Archive, ImageRefused, image_path, read_zip

from .boards import refuse_over_limits
from .rounds import keys_to_answer
from .snapshots import prompts_to_answer
from .submissions import (
    AnsweredPrompts,
    SubmissionRefused,
    SubmittedFile,
    check_fields,
    find_repeated_request,
    find_same_submission,
    is_declared_empty,
    store_submission,
)


def _names_by_key(board: Board) -> dict[str, str]:
    """Return the stored images of the board's prompts. Prompts outside the subsample are not for teams."""
    keys = set(keys_to_answer(board))
    rows = Prompt.objects.filter(study=board.template_id).exclude(media="").values_list("key", "media")
    return {key: media for key, media in rows if key in keys}


def has_prompt_images(board: Board) -> bool:
    return bool(_names_by_key(board))


def prompts_with_images(board: Board) -> list[dict[str, str]]:
    """Return the prompts to answer. ``image``: the path in the ZIP of prompts, or empty."""
    names = _names_by_key(board)
    path_of = {key: f"images/{name}" for key, name in names.items()}
    return [row | {"image": path_of.get(row["prompt"], "")} for row in prompts_to_answer(board)]


def write_prompts_archive(board: Board) -> IO[bytes]:
    """Return an open temporary ZIP with ``prompts.jsonl`` and ``images/``."""
    rows = prompts_with_images(board)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("prompts.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        for name in sorted(set(_names_by_key(board).values())):
            archive.write(image_path(settings.MEDIA_ROOT, name), f"images/{name}")
    file.seek(0)
    return file


# Submissions of images: one ZIP, read by a job by the same rules as an import of a study.


KIND = "board_submission"
COLUMNS = Columns(
    ("prompt", "image"), ("empty",), aliases=PROMPT_ALIASES, meanings={"prompt": KEY, "image": IMAGE, "empty": EMPTY}
)
# Decoding costs by pixels, and few bytes can hold many: the largest allowed image takes a second. So no request decodes any,
# and a job decodes as many as 32 of the largest, or 2048 x 2048 for each prompt.
MIN_PIXELS_ALLOWED = 32 * 4096 * 4096
PIXELS_PER_PROMPT = 2048 * 2048
Progress = Callable[[int, int, str], object]


def submit_images(
    board: Board,
    team: Team,
    name: str,
    filename: str,
    chunks: Iterable[bytes],
    *,
    description: str = "",
    url: str = "",
    is_anonymous: bool = False,
    request_token: str | None = None,
) -> tuple[Submission | Job, bool]:
    """Return the job that checks a ZIP of images and stores it, or the submission of a repeated request; and whether it is new.

    Raise as ``submissions.submit_outputs``. The job's result has the submission's number, or the problems.
    """
    if earlier := find_repeated_request(team, request_token):
        return earlier, False
    fields = check_fields(board, Board.OutputKind.IMAGE, name, description, url, is_anonymous)
    file = store_file(chunks)
    is_kept = False
    try:
        if same := find_same_submission(board, team, str(fields["name"]), file.sha256):
            return same, False
        refuse_over_limits(board, team, file.size)
        with _opened(filename, file.path) as archive:
            if archive.problems:
                raise SubmissionRefused(archive.problems)
        job, is_kept = _find_or_submit_job(board, team, fields, filename, file, request_token)
        return job, is_kept
    finally:
        if not is_kept:
            file.path.unlink(missing_ok=True)


@contextmanager
def _opened(filename: str, path: Path) -> Iterator[Archive]:
    with path.open("rb") as file:
        archive = read_zip(filename, file, columns=COLUMNS, needs_table=False)
        with archive:
            yield archive


@transaction.atomic
def _find_or_submit_job(
    board: Board, team: Team, fields: dict[str, Any], filename: str, file: StoredFile, request_token: str | None
) -> tuple[Job, bool]:
    Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=board.pk)
    running = checks_of(team).filter(state__in=(Job.State.WAITING, Job.State.RUNNING)).first()
    if running is not None:
        if (running.arguments["sha256"], running.arguments["fields"]) == (file.sha256, fields):
            return running, False
        raise ActionRefused("heval is checking another file of this team. Wait until it has finished.")
    job = jobs.submit(
        KIND,
        by=None,
        board=board.pk,
        team=team.pk,
        fields=fields,
        filename=filename[:200],
        upload=file.token,
        sha256=file.sha256,
        submission_token=request_token,
    )
    return job, True


def checks_of(team: Team) -> QuerySet[Job]:
    """Return the jobs that check files of a team, the newest first."""
    return Job.objects.filter(kind=KIND, arguments__board=team.board_id, arguments__team=team.pk).order_by("-pk")


def find_check(board: Board, team: Team | None, code: uuid.UUID) -> Job | None:
    """Return a job that checks a file of a team. ``team``: None for members, who may know all."""
    found = Job.objects.filter(kind=KIND, code=code, arguments__board=board.pk)
    return (found if team is None else found.filter(arguments__team=team.pk)).first()


def run_check(job: Job, progress: Progress) -> dict[str, Any]:
    """Check the file of a job. Return the number of the submission, or the problems. A second run finds the first one's submission."""
    sent = job.arguments
    team = Team.objects.select_related("board").get(pk=sent["team"], board=sent["board"])
    path = path_of_file(sent["upload"])
    same = find_repeated_request(team, sent["submission_token"])
    if same is None and not path.exists():
        raise ActionRefused("The uploaded file no longer exists: heval keeps uploads for one day. Upload it again.")
    result = {"submission": same.number} if same else _checked(team, sent, path, progress)
    path.unlink(missing_ok=True)
    return result


def _checked(team: Team, sent: dict[str, Any], path: Path, progress: Progress) -> dict[str, Any]:
    how = (sent["filename"], path, sent["sha256"], sent["submission_token"])
    try:
        stored, _ = _check_and_store(team.board, team, sent["fields"], *how, progress)
    except SubmissionRefused as refused:
        listed = [[one.row, one.column, one.text] for one in refused.problems]
        return {"problems": listed, "n_problems": refused.problems.count}
    except ValidationError as refused:
        found = refused.message_dict if hasattr(refused, "error_dict") else {"": refused.messages}
        listed = [[None, name or None, text] for name, texts in found.items() for text in texts]
        return {"problems": listed, "n_problems": len(listed)}
    return {"submission": stored.number}


def _check_and_store(
    board: Board,
    team: Team,
    fields: dict[str, Any],
    filename: str,
    path: Path,
    sha256: str,
    request_token: str | None,
    progress: Progress,
) -> tuple[Submission, bool]:
    with _opened(filename, path) as archive, ImportedImages(archive, stores=True) as images:
        read = SubmittedFile(filename[:200], sha256, path.stat().st_size, keys_to_answer(board))
        read.images = _read_images(archive, images, read.keys, progress)
        with images.storing_used_images():
            return store_submission(board, team, fields, read, request_token)


@dataclass(frozen=True, slots=True)
class _Entry:
    """The image of a prompt, or '' for a declared empty output. ``row``: of the table, if the archive has one."""

    key: str
    image: str
    row: int | None


def _read_images(archive: Archive, images: ImportedImages, keys: list[str], progress: Progress) -> dict[str, str]:
    """Return the names of encoded images by prompt. Raise SubmissionRefused with all problems."""
    problems = archive.problems
    answered = AnsweredPrompts(keys, problems)
    entries = list(_rows_of_table(archive, answered) if archive.has_table else _named_files(archive, answered))
    answered.report_missing()
    found = {}
    for number, entry in enumerate(entries, 1):
        try:
            found[entry.key] = images.stored_name(entry.image) if entry.image else ""
        except ImageRefused as refused:
            problems.add(entry.row, "image" if entry.row else None, str(refused))
        progress(number, len(entries), "Reading images")
        if images.n_pixels > (allowed := max(MIN_PIXELS_ALLOWED, len(keys) * PIXELS_PER_PROMPT)):
            text = f"The images have more than {allowed:,} pixels together. Make them smaller."
            problems.add(None, None, text)
            break
    if archive.has_table:
        named = {entry.image.removeprefix("./") for entry in entries}
        for image in sorted(archive.images - named):
            problems.add(None, None, f"No row names the image “{image[:200]}”. Add a row, or remove the image.")
    if problems:
        problems.sort_by_row()
        raise SubmissionRefused(problems)
    return found


def _rows_of_table(archive: Archive, answered: AnsweredPrompts) -> Iterator[_Entry]:
    for row in archive.rows:
        key = answered.take(row.values.get("prompt"), row.number, f"row {row.number}")
        value = row.values.get("image")
        image = value.strip() if isinstance(value, str) else ""
        is_empty = is_declared_empty(row.values)
        if not image and not is_empty:
            archive.problems.add(
                row.number,
                "image",
                "There is no image. If the system returned nothing, write “yes” in the column “empty”.",
            )
        elif image and is_empty:
            archive.problems.add(
                row.number, "empty", "The row is marked as empty, but it has an image. Remove the mark or the image."
            )
        elif key:
            yield _Entry(key, image, row.number)


def _named_files(archive: Archive, answered: AnsweredPrompts) -> Iterator[_Entry]:
    """Yield the images of an archive without a table. The name of a file, without its folder and extension, is the key of its prompt."""
    for image in sorted(archive.images):
        name = image.rpartition("/")[2].rpartition(".")[0]
        if key := answered.take(name, None, f"“{image[:200]}”"):
            yield _Entry(key, image, None)
