"""What happened to submissions so far: waiting, in a round, scored, or withdrawn."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F

from boards.models import Board, BoardRound, BoardSnapshot, RoundEntry, Submission
from studies.models import Prompt

from .samples import keys_to_answer

WAITING, IN_ROUND, SCORED, WITHDRAWN = STATES = ("waiting", "in_round", "scored", "withdrawn")
PROMPT_COLUMNS = ("prompt", "text", "source", "domain", "language")


@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    """The state of a submission. ``round``: the round that scores it first. ``row``: its row in the newest snapshot.

    ``overall``: the key of the overall criterion in the row's scores.
    """

    state: str
    round: int | None = None
    snapshot: int | None = None
    row: Mapping[str, Any] | None = None
    overall: str | None = None


def public_draws(board: Board) -> list[dict[str, Any]]:
    """Return what everybody may know of each launched round: when it was launched and closed, and its draw."""
    rounds = BoardRound.objects.filter(board=board, launched_at__isnull=False).select_related("study")
    return [
        {"round": one.number, "launched_at": one.launched_at, "closed_at": one.study.closed_at, **one.public_draw}
        for one in rounds.order_by("number")
    ]


def scored_withdrawals(board: Board) -> list[datetime]:
    """Return when teams withdrew submissions whose round had closed, so that they could know the scores."""
    known = RoundEntry.objects.filter(
        submission__board=board, round__study__closed_at__lte=F("submission__withdrawn_at")
    )
    return list(dict(known.values_list("submission", "submission__withdrawn_at")).values())


def newest_snapshot(board: Board) -> BoardSnapshot | None:
    return board.snapshots.select_related("board").order_by("-number").first()


def rows_by_submission(snapshot: BoardSnapshot | None) -> dict[int, Mapping[str, Any]]:
    """Return the rows of a snapshot by the numbers of their submissions."""
    return {row["submission"]: row for row in snapshot.result["rows"]} if snapshot else {}


def find_statuses(
    board: Board, submissions: Iterable[Submission], snapshot: BoardSnapshot | None
) -> dict[int, SubmissionStatus]:
    """Return the status of each of these submissions by its number. ``snapshot``: the newest one of the board."""
    submissions = list(submissions)
    rows = rows_by_submission(snapshot)
    entries = RoundEntry.objects.filter(submission__in=submissions, round__cancelled_at=None).order_by("-round__number")
    first_rounds = dict(entries.values_list("submission__number", "round__number"))
    found = {}
    for one in submissions:
        row, number = rows.get(one.number), first_rounds.get(one.number)
        if one.withdrawn_at:
            found[one.number] = SubmissionStatus(WITHDRAWN, number)
        elif row is not None and snapshot is not None:
            overall = snapshot.result["criteria"][0]["key"]
            found[one.number] = SubmissionStatus(SCORED, number, snapshot.number, row, overall)
        else:
            found[one.number] = SubmissionStatus(WAITING if number is None else IN_ROUND, number)
    return found


def prompts_to_answer(board: Board) -> list[dict[str, str]]:
    """Return the prompts that a submission answers now, in the order of their keys: what a system is given, and nothing else."""
    keys = set(keys_to_answer(board))
    prompts = Prompt.objects.filter(study=board.template_id).order_by("key")
    rows = prompts.values_list("key", "text", "source", "domain", "language")
    return [dict(zip(PROMPT_COLUMNS, row, strict=True)) for row in rows if row[0] in keys]
