"""Read and check a file of outputs, store it as a submission, and let its team withdraw or publish it."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils.text import capfirst

from boards.models import Board, Submission, SubmittedOutput, Team, is_reserved, lookalike_key, numbered_name
from studies.models import audit
from studies.services.lifecycle import ActionRefused
from studies.stimuli.rows import TableLimits, TableProblems, read_rows
from studies.stimuli.texts import TextRefused, clean_name, clean_text, is_blank

from .boards import refuse_over_limits
from .rounds import keys_to_answer

COLUMNS = ("prompt", "output", "empty")
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_OUTPUT_CHARACTERS = 100_000
MAX_DESCRIPTION_CHARACTERS = 10_000
LISTED_KEYS = 5


class SubmissionRefused(ActionRefused):
    """A file that cannot be a submission. ``problems`` lists the reasons, with rows."""

    def __init__(self, problems: TableProblems):
        super().__init__("; ".join(str(problem) for problem in problems.first))
        self.problems = problems


@dataclass(slots=True)
class SubmittedFile:
    """The outputs of a file by prompt key, and the file's hash. An empty value is a declared empty output.

    A file has ``texts`` or ``images`` (the names of stored images), and never both.
    """

    filename: str
    sha256: str
    n_bytes: int
    keys: list[str]
    texts: dict[str, str] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)


class AnsweredPrompts:
    """Which of the board's prompts have an output so far. Problems go to the list of the file."""

    def __init__(self, keys: list[str], problems: TableProblems):
        self._keys, self._expected, self._problems = keys, set(keys), problems
        self._places: dict[str, str] = {}

    def take(self, value: Any, row: int | None, place: str) -> str:
        """Return the key of a prompt that has its first output at this place, or '' with a problem."""
        key = _key_of(value)
        where = "" if row is not None else f"{place}: "
        if not key:
            self._problems.add(
                row, "prompt", "The key of the prompt is empty. Enter the key of one of the board's prompts."
            )
        elif key not in self._expected:
            text = f"{where}“{key[:80]}” is not a prompt of this board. Remove the row or file, or correct the key."
            self._problems.add(row, "prompt", text)
        elif key in self._places:
            text = f"{where}The prompt “{key[:80]}” already has an output in {self._places[key]}. Keep one of the two."
            self._problems.add(row, "prompt", text)
        else:
            self._places[key] = place
            return key
        return ""

    def report_missing(self) -> None:
        """Add a problem for the prompts without an output, unless no row could be read at all."""
        missing = [key for key in self._keys if key not in self._places]
        if missing and not (self._problems and not self._places):
            listed = ", ".join(f"“{key[:80]}”" for key in missing[:LISTED_KEYS])
            more = f" and {len(missing) - LISTED_KEYS:,} more" if len(missing) > LISTED_KEYS else ""
            noun = "prompt has" if len(missing) == 1 else "prompts have"
            self._problems.add(None, None, f"{len(missing):,} {noun} no output: {listed}{more}. Add one for each.")


def read_outputs_file(filename: str, file: BinaryIO | bytes, keys: list[str]) -> SubmittedFile:
    """Read a CSV or JSON-lines file with one output for each of the board's prompts. Raise SubmissionRefused with all problems.

    Columns: ``prompt`` (its key), ``output``, and optionally ``empty``, which declares that the system returned nothing.
    """
    data = file if isinstance(file, bytes) else file.read(MAX_FILE_BYTES + 1)
    problems = TableProblems()
    if len(data) > MAX_FILE_BYTES:
        problems.add(None, None, f"The file is larger than {MAX_FILE_BYTES // 2**20} MB. Send a smaller file.")
        raise SubmissionRefused(problems)
    read = SubmittedFile(filename[:200], hashlib.sha256(data).hexdigest(), len(data), keys)
    limits = TableLimits(bytes=MAX_FILE_BYTES, rows=len(keys) + 10_000)
    rows = read_rows(
        filename,
        data,
        known_columns=COLUMNS,
        required_columns=("prompt", "output"),
        limits=limits,
        problems=problems,
    )
    answered = AnsweredPrompts(keys, problems)
    for row in rows:
        if key := answered.take(row.values.get("prompt"), row.number, f"row {row.number}"):
            output = _output_text(row.values, row.number, problems)
            if output is not None:
                read.texts[key] = output
    answered.report_missing()
    if problems:
        problems.sort_by_row()
        raise SubmissionRefused(problems)
    return read


def _key_of(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else ""


def is_declared_empty(values: Mapping[str, Any]) -> bool:
    return str(values.get("empty") or "").strip().lower() in ("true", "yes", "1", "x")


def _output_text(values: Mapping[str, Any], row: int, problems: TableProblems) -> str | None:
    """Return the text of an output, '' if it is declared empty, or None with a problem."""
    try:
        text = clean_text(values.get("output") or "", max_length=MAX_OUTPUT_CHARACTERS, field="output")
    except TextRefused as refused:
        problems.add(row, "output", str(refused).removeprefix("output: "))
        return None
    is_declared = is_declared_empty(values)
    if is_blank(text):
        if is_declared:
            return ""
        problems.add(
            row, "output", "The output is empty. If the system returned nothing, write “yes” in the column “empty”."
        )
        return None
    if is_declared:
        problems.add(row, "empty", "The row is marked as empty, but it has an output. Remove the mark or the output.")
        return None
    return text


def submit_outputs(
    board: Board,
    team: Team,
    name: str,
    filename: str,
    file: BinaryIO | bytes,
    *,
    description: str = "",
    url: str = "",
    is_anonymous: bool = False,
    request_token: str | None = None,
) -> tuple[Submission, bool]:
    """Store a file as a submission. Return it, and whether it is new: a repeated request returns the first one's submission.

    Raise SubmissionRefused with the problems of the file, ValidationError with those of the other fields, and ActionRefused if the
    board takes no submissions.
    """
    if earlier := find_repeated_request(team, request_token):
        return earlier, False
    fields = check_fields(board, Board.OutputKind.TEXT, name, description, url, is_anonymous)
    if not board.submissions.filter(team=team, name=fields["name"]).exists():
        refuse_over_limits(board, team)  # before the file is read
    try:
        read = read_outputs_file(filename, file, keys_to_answer(board))
    except SubmissionRefused as refused:
        _add_problems_of_fields(refused.problems, board, team, fields)
        raise
    return store_submission(board, team, fields, read, request_token)


def _add_problems_of_fields(
    problems: TableProblems, board: Board, team: Team, fields: Mapping[str, str | bool]
) -> None:
    """Add what is wrong with the other fields, so that nobody corrects a file first and learns of a taken name afterwards."""
    checks: dict[str, Callable[[], object]] = {
        "name": lambda: find_same_submission(board, team, str(fields["name"]), ""),
        "url": lambda: fields["url"] and Submission._meta.get_field("url").clean(fields["url"], None),
    }
    for name, check in checks.items():
        try:
            check()
        except ValidationError as wrong:
            for text in wrong.messages:
                problems.add(None, name, text)
    problems.sort_by_row()


def find_repeated_request(team: Team, request_token: str | None) -> Submission | None:
    return Submission.objects.filter(team=team, request_token=request_token).first() if request_token else None


def check_fields(
    board: Board, kind: str, name: str, description: str, url: str, is_anonymous: bool
) -> dict[str, str | bool]:
    """Return the cleaned fields beside the file. Raise ValidationError, or ActionRefused if the board does not take such a file now."""
    refuse_unless_open(board)
    if board.output_kind != kind:
        raise ActionRefused(
            "This board takes images. Send a ZIP file with one image for each prompt."
            if board.takes_images
            else "This board takes texts. Send CSV or JSON lines with one text for each prompt."
        )
    limit = MAX_DESCRIPTION_CHARACTERS
    return {
        "name": _cleaned("name", lambda: clean_name(name, max_length=100)),
        "description": _cleaned("description", lambda: clean_text(description, max_length=limit, field="description")),
        "url": url,
        "is_anonymous": is_anonymous,
    }


def find_same_submission(board: Board, team: Team, name: str, sha256: str) -> Submission | None:
    """Return the team's submission of the same file under this name. Raise ValidationError if another one has the name.

    What other teams hide has no part in the answer, so that nobody can test names.
    """
    same = board.submissions.filter(team=team, name=name).first()
    if same is not None and same.sha256 == sha256 and not same.withdrawn_at:
        return same
    refusal = ""
    if same is not None:
        refusal = f"Your team already has a submission named “{name}”, and submissions are never overwritten. Choose another name."
    elif is_reserved(name):
        refusal = (
            "Pages call hidden submissions by such names. Choose a name without the word “submission” before a number."
        )
    elif shown_with_name(board, name).exists():
        refusal = (
            f"This board already has a submission named “{name}”, or one whose name looks like it. Choose another name."
        )
    if refusal:
        raise ValidationError({"name": refusal})
    return None


def shown_with_name(board: Board, name: str) -> QuerySet[Submission]:
    """Return the submission that everybody may know by a name that looks like this one."""
    return board.submissions.filter(name_key=lookalike_key(name), is_anonymous=False, withdrawn_at=None)


@transaction.atomic
def store_submission(
    board: Board, team: Team, fields: Mapping[str, Any], read: SubmittedFile, request_token: str | None
) -> tuple[Submission, bool]:
    """Store the outputs of a file that was read. Return the submission, and whether it is new. Raise as ``submit_outputs``."""
    # One submission of a board at a time, so that numbers have no gaps and no name is taken twice.
    board = Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=board.pk)
    refuse_unless_open(board)
    earlier = find_repeated_request(team, request_token)
    if earlier := earlier or find_same_submission(board, team, fields["name"], read.sha256):
        return earlier, False
    if keys_to_answer(board) != read.keys:
        raise ActionRefused("The board's prompts have changed while the file was read. Get the prompts again.")
    refuse_over_limits(board, team, read.n_bytes)
    submission = Submission(
        **fields,
        board=board,
        number=next_submission_number(board),
        team=team,
        filename=read.filename,
        sha256=read.sha256,
        n_bytes=read.n_bytes,
        n_outputs=len(read.texts) + len(read.images),
        request_token=request_token or None,
    )
    submission.full_clean()
    submission.save(force_insert=True)
    contents = [(key, text, "") for key, text in read.texts.items()]
    contents += [(key, "", media) for key, media in read.images.items()]
    SubmittedOutput.objects.bulk_create(
        (
            SubmittedOutput(submission=submission, prompt_key=key, text=text, media=media, is_empty=not (text or media))
            for key, text, media in contents
        ),
        batch_size=2000,
    )
    audit.record(
        "submit to board",
        by=None,
        board=board.slug,
        team=team.name,
        submission=submission.number,
        sha256=read.sha256,
    )
    submission.refresh_from_db()
    return submission, True


def _cleaned(field: str, clean: Callable[[], str]) -> str:
    try:
        return clean()
    except TextRefused as refused:
        raise ValidationError({field: capfirst(str(refused).removeprefix(f"{field}: "))}) from None


def next_submission_number(board: Board) -> int:
    return (board.submissions.aggregate(n=Max("number"))["n"] or 0) + 1


def refuse_unless_open(board: Board) -> None:
    if board.state == Board.State.DRAFT:
        raise ActionRefused("The board is not open yet. Wait until its owner opens it.")
    if board.state == Board.State.CLOSED:
        raise ActionRefused("The board is closed and takes no more submissions. Ask its owner.")


@transaction.atomic
def withdraw(submission: Submission, by) -> bool:
    """Withdraw a submission. Return whether it was not withdrawn before. ``by``: the member who does it, or None for its team.

    Later rounds do not score it, and later snapshots leave it out. A round that is running ends as planned, so that no
    annotator loses work. Its name disappears from all pages.
    """
    # A round that opens in the same moment has either taken the submission before, or never takes it.
    Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=submission.board_id)
    if not Submission.objects.filter(pk=submission.pk, withdrawn_at=None).update(withdrawn_at=Now(), is_anchor=False):
        return False
    audit.record("withdraw from board", by=by, board=submission.board.slug, submission=submission.number)
    return True


@transaction.atomic
def publish(submission: Submission) -> bool:
    """Show the name of an anonymous submission. Return whether it was anonymous. It cannot be made anonymous again.

    If another submission is shown by such a name meanwhile, the name gets the submission's number.
    """
    # One of two that are published in the same moment finds the other's name.
    Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=submission.board_id)
    name = submission.name
    if shown_with_name(submission.board, name).exclude(pk=submission.pk).exists():
        name = numbered_name(submission)
    rows = Submission.objects.filter(pk=submission.pk, is_anonymous=True, withdrawn_at=None)
    if not rows.update(is_anonymous=False, published_at=Now(), name=name, name_key=lookalike_key(name)):
        return False
    audit.record("publish submission", by=None, board=submission.board.slug, submission=submission.number)
    return True
