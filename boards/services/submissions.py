"""Read and check a file of outputs, store it as a submission, and let its team withdraw or publish it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, BinaryIO

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils.text import capfirst

from analysis.data.frames import SECOND_SAMPLE
from analysis.metrics.computed import reference_systems
from analysis.protocols.blocks.populations import population_of
from boards.models import Board, Submission, SubmittedOutput, Team, is_reserved, lookalike_key, numbered_name
from studies.models import audit
from studies.services import jobs
from studies.services.lifecycle import ActionRefused, FileRefused
from studies.stimuli.columns import EMPTY, KEY, OUTPUT, PROMPT_ALIASES, Columns
from studies.stimuli.rows import TableLimits, TableProblems, read_rows
from studies.stimuli.texts import SettingsRefused, TextRefused, clean_name, clean_text, is_blank, name_key

from .boards import refuse_over_limits
from .rounds import keys_to_answer, samples_of_rounds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from pandas import DataFrame


# What a snapshot says about its own results: claims over submissions, probes, and how much a first place rests on.


# The samples that each round scored: their numbers and prompts.
Samples = Mapping[int, Sequence[tuple[int, Sequence[str]]]]

ALPHA = 0.05
RESAMPLES = 1999


def answer_arrays(rows: "DataFrame") -> tuple[Any, ...]:
    """Return values, systems, prompts and annotators, as the statistics take them."""
    return (
        rows["value"].to_numpy(float),
        rows["system"].to_numpy(),
        rows["prompt"].to_numpy(),
        rows["annotator"].to_numpy(),
    )


def renewed_samples(board: Board) -> Samples | None:
    """Return the samples that each round scored, by number and with their prompts; None if no sample was renewed."""
    of_rounds = samples_of_rounds(board)
    if not any(one.previous for one in of_rounds.values()):
        return None
    return {
        number: [(sample.number, sample.keys) for sample in (one.previous, one.sample) if sample is not None]
        for number, one in of_rounds.items()
    }


def count_in_samples(rows: "DataFrame", samples: Samples | None) -> tuple["DataFrame", "npt.NDArray[np.int64] | None"]:
    """Return the rows as often as samples count them, and the sample of each; the rows as they are, if none was renewed."""
    from analysis.stats import board_rounds

    if samples is None:
        return rows, None
    places, numbers = board_rounds.rows_of_samples(
        rows["system"].to_numpy(), rows["prompt"].to_numpy(), rows["round"].to_numpy(), samples
    )
    return rows.iloc[places], numbers


def _with_occasions(rows: "DataFrame", samples: Samples | None) -> tuple["DataFrame", "npt.NDArray[np.int64]"]:
    """Return the rows as samples count them, and a number for each pair of round and sample, in their order."""
    import numpy as np

    counted, numbers = count_in_samples(rows, samples)
    of_rows = counted["round"].to_numpy(dtype=np.int64)
    return counted, of_rows if numbers is None else of_rows * (int(numbers.max(initial=0)) + 1) + numbers


def _on_common_prompts(rows: "DataFrame", samples: Samples | None) -> "DataFrame":
    if samples is None:
        return rows
    common = set.intersection(*(set(keys) for of_round in samples.values() for _, keys in of_round))
    return rows[rows["prompt"].isin(common)]


def better_than_best_before(
    rows: "DataFrame",
    new_in_round: Mapping[int, int],
    is_new_prompts: bool,
    decided: Sequence[Mapping[str, Any]] = (),
    samples: Samples | None = None,
) -> list[dict[str, Any]]:
    """Return, for each submission in the order of rounds and numbers, whether it is better than the best before it.

    Each is compared with all systems that were scored in earlier rounds or came earlier to the same round. Over all submissions of
    the board, at most 5 % of boards ever make a false claim. ``decided``: the verdicts of the last snapshot. They stay as they
    are, because later rounds and withdrawals must not change what was said.
    """
    from analysis.stats import leaderboard

    rows, occasions = _with_occasions(rows, samples)
    found = [dict(one) for one in decided]
    known = {one["submission"] for one in found}
    for number in sorted(set(new_in_round.values())):
        until, of_rows = rows[rows["round"] <= number], occasions[(rows["round"] <= number).to_numpy()]
        scored = set(until["system"].unique().tolist())
        new = sorted(one for one in scored - known if new_in_round.get(one) == number)
        # Systems of the template and other anchors that no round scored as new were there before.
        earlier = sorted(scored - set(new))
        if not earlier and new:
            earlier, new = new[:1], new[1:]  # nothing came before the first submission
        if not new:
            continue
        estimates = leaderboard.compare_each_with_best_before(
            *answer_arrays(until),
            item_groups=until[SECOND_SAMPLE].to_numpy(),
            new=new,
            earlier=earlier,
            was_better=[one["is_better"] for one in found],
            alpha=ALPHA,
            rounds=of_rows if len(set(of_rows.tolist())) > 1 else None,
            items_sampled=is_new_prompts,
        )
        found += [
            {
                "submission": one,
                "round": number,
                "alpha": estimate.settings["alpha"],
                "is_better": bool(estimate.detail.get("is_better", False)),
                "best_before": None if estimate.detail.get("best") is None else int(estimate.detail["best"]),
                "estimate": estimate.estimate,
                "low": estimate.interval.low if estimate.interval else None,
                "high": estimate.interval.high if estimate.interval else None,
                "pvalue": estimate.pvalue,
                "status": estimate.status,
                "reason": estimate.reason,
                "n": estimate.n,
                "unit": estimate.unit,
                "population": population_of(estimate),
            }
            for one, estimate in zip(new, estimates, strict=True)
        ]
    return found


def audit_of_scores(
    rows: "DataFrame", is_new_prompts: bool, rng: "np.random.Generator", samples: Samples | None = None
) -> list[dict[str, Any]]:
    """Return the probes of a board of scores, each with its verdict, its number and its limit."""
    from analysis.stats import board_audit

    if rows.empty:
        return []
    rows, sample_of_row = count_in_samples(rows, samples)
    positions = rows["is_first"]
    probes = board_audit.audit_scores(
        *answer_arrays(rows),
        item_groups=rows[SECOND_SAMPLE].to_numpy(),
        rng=rng,
        positions=positions.astype(float).to_numpy() if positions.notna().all() else None,
        rounds=rows["round"].to_numpy() if rows["round"].nunique() > 1 else None,
        samples=sample_of_row,
        alpha=ALPHA,
        items_sampled=is_new_prompts,
        resamples=RESAMPLES,
    )
    return [probe_fields(probe) for probe in probes]


def probe_fields(probe: Any) -> dict[str, Any]:
    """Return the fields of a probe that pages show."""
    estimate = probe.estimate
    return {
        "name": probe.name,
        "fires": bool(probe.fires),
        "limit": float(probe.limit),
        "estimate": estimate.estimate,
        "pvalue": estimate.pvalue,
        "estimand": estimate.estimand,
        "status": estimate.status,
        "reason": estimate.reason,
        "unit": estimate.unit,
        "n": estimate.n,
        "population": population_of(estimate),
    }


def sensitivity_of_first_place(rows: "DataFrame", samples: Samples | None = None) -> dict[str, Any] | None:
    """Return how few answers, and how few people, decide the first place; None with one system.

    After a renewal it is about prompts that all samples have: elsewhere the systems have answered different prompts.
    """
    from analysis.stats import first_place

    rows = _on_common_prompts(rows, samples)
    if rows.empty or rows["system"].nunique() < 2:
        return None
    return sensitivity_fields(first_place.first_place_sensitivity(*answer_arrays(rows)))


def sensitivity_fields(found: Any, systems: Sequence[int] | None = None) -> dict[str, Any]:
    """Return how few answers and people decide a first place. ``systems``: the submissions, if ``found`` numbers them from 0."""

    def number_of(system: Any) -> int | None:
        if system is None:
            return None
        return int(system) if systems is None else systems[int(system)]

    return {
        "first": number_of(found.first),
        **{
            name: {
                "unit": removal.unit,
                "n": removal.n,
                "total": removal.total,
                "share": removal.share,
                "is_confirmed": removal.is_confirmed,
                "challenger": number_of(removal.challenger),
                "status": removal.status,
                "reason": removal.reason,
            }
            for name, removal in (("answers", found.answers), ("people", found.people))
        },
    }


def effects_of_days(rows: "DataFrame", rng: "np.random.Generator", samples: Samples | None = None) -> dict[str, Any]:
    """Return how answers about the same systems differ between days, and between weekdays, each with a joint test.

    After a renewal they are those on prompts that all samples have, because days differ in the others.
    """
    from analysis.stats import board_rounds

    rows = _on_common_prompts(rows, samples)
    known = rows[rows["day"].notna()]
    found: dict[str, Any] = {}
    for name, labels in (("day", known["day"].astype(str)), ("weekday", known["day"].map(_weekday))):
        if labels.nunique() < 2:
            continue
        values, systems, prompts, people = answer_arrays(known)
        estimates, joint = board_rounds.day_effects(
            values, systems, prompts, people, labels.to_numpy(), rng=rng, resamples=RESAMPLES
        )
        found[name] = {
            "pvalue": joint.pvalue,
            "status": joint.status,
            "reason": joint.reason,
            "unit": joint.unit,
            "n": joint.n,
            "population": population_of(joint),
            "effects": [
                {
                    "name": label,
                    "estimate": one.estimate,
                    "low": one.interval.low if one.interval else None,
                    "high": one.interval.high if one.interval else None,
                    "status": one.status,
                    "reason": one.reason,
                    "population": population_of(one),
                }
                for label, one in zip(sorted(labels.unique().tolist()), estimates, strict=True)
            ],
        }
    return found


def _weekday(day: str) -> str:
    """Return a weekday with its number, so that weekdays sort by their order.

    >>> _weekday("2026-11-27")
    '5 Friday'
    """
    return date.fromisoformat(day).strftime("%u %A")


# The job that computes metrics of a submission when it arrives.
METRICS_KIND = "submission_metrics"
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_OUTPUT_CHARACTERS = 100_000
MAX_DESCRIPTION_CHARACTERS = 10_000
LISTED_KEYS = 5


class SubmissionRefused(FileRefused):
    """A file that cannot be a submission."""


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
        self._keys, self._problems = keys, problems
        # Keys are compared as everywhere: case, blanks and composition make no other name.
        self._expected = {name_key(key): key for key in keys}
        self._places: dict[str, str] = {}

    def take(self, value: Any, row: int | None, place: str) -> str:
        """Return the key of a prompt that has its first output at this place, or '' with a problem."""
        key = self._expected.get(name_key(_key_of(value)), _key_of(value))
        where = "" if row is not None else f"{place}: "
        if not key:
            self._problems.add(
                row, "prompt", "The key of the prompt is empty. Enter the key of one of the board's prompts."
            )
        elif name_key(key) not in self._expected:
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


def read_outputs_file(
    filename: str, file: BinaryIO | bytes, keys: list[str], mapping: Sequence[str] = (), *, proposes: bool = True
) -> SubmittedFile:
    """Read a CSV or JSON-lines file with one output for each of the board's prompts. Raise SubmissionRefused with all problems.

    Columns: ``prompt`` (its key), ``output``, and optionally ``empty``, which declares that the system returned nothing. ``mapping`` and
    ``proposes``: see ``Columns``.
    """
    data = file if isinstance(file, bytes) else file.read(MAX_FILE_BYTES + 1)
    problems = TableProblems()
    if len(data) > MAX_FILE_BYTES:
        problems.add(None, None, f"The file is larger than {MAX_FILE_BYTES // 2**20} MB. Send a smaller file.")
        raise SubmissionRefused(problems)
    read = SubmittedFile(filename[:200], hashlib.sha256(data).hexdigest(), len(data), keys)
    limits = TableLimits(bytes=MAX_FILE_BYTES, rows=len(keys) + 10_000)
    try:
        columns = Columns(
            ("prompt", "output"),
            ("empty",),
            aliases=PROMPT_ALIASES,
            meanings={"prompt": KEY, "output": OUTPUT, "empty": EMPTY},
            contents={"prompt": set(keys).__contains__},
            mapping=mapping,
            proposes=proposes,
        )
    except SettingsRefused as refused:
        problems.add(None, None, str(refused))
        raise SubmissionRefused(problems) from None
    rows = read_rows(filename, data, columns=columns, limits=limits, problems=problems)
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
    columns: Sequence[str] | None = None,
) -> tuple[Submission, bool]:
    """Store a file as a submission. Return it, and whether it is new: a repeated request returns the first one's submission.

    ``columns``: what columns with other names are, such as ``prompt_key=id``. None: what only contents show is read without asking.
    Raise SubmissionRefused with the problems of the file, ValidationError with those of the other fields, and ActionRefused if the
    board takes no submissions.
    """
    if earlier := find_repeated_request(team, request_token):
        return earlier, False
    fields = check_fields(board, Board.OutputKind.TEXT, name, description, url, is_anonymous)
    if not board.submissions.filter(team=team, name=fields["name"]).exists():
        refuse_over_limits(board, team)  # before the file is read
    try:
        read = read_outputs_file(filename, file, keys_to_answer(board), columns or (), proposes=columns is None)
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
            else "This board takes texts. Send a table with one text for each prompt."
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
    if not board.takes_images and reference_systems(board.template):
        jobs.submit(METRICS_KIND, by=None, board=board.pk, submission=submission.pk)
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
