"""Decide which submissions the next round scores, what it costs, and when it opens."""

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from operator import itemgetter
from zoneinfo import ZoneInfo

from django.db.models import Count, Max, Q, Sum
from django.utils import timezone

from analysis.metrics.scoring import SCORERS
from boards.models import Board, BoardRound, RoundEntry, Submission
from studies.design.serialization import canonical_json, serialize_design, sha256_of
from studies.models import Section, Study, System
from studies.protocols import REGISTRY
from studies.services.lifecycle import ActionRefused

from .samples import RoundSample, find_complete, next_round_sample, waiting_submissions

ZERO = Decimal(0)


def template_sha256(template: Study) -> str:
    """Return the hash of a template's design. The target and its plan are left out, because each round has its own."""
    design = serialize_design(template)
    design.pop("size_plan", None)
    design["study"] = {
        name: value for name, value in design["study"].items() if name not in ("target_n", "target_cap", "seed")
    }
    return sha256_of(canonical_json(design))


def refuse_unless_ready(board: Board) -> None:
    if board.state != Board.State.OPEN:
        raise ActionRefused(
            f"The board is {board.state}, so no round can open. "
            + ("Open the board first." if board.state == Board.State.DRAFT else "Make another board.")
        )
    if template_sha256(board.template) != board.design_sha256:
        raise ActionRefused(
            "The template has changed since the board was opened, and scores of its rounds would not be comparable. "
            "Undo the change, or make another board."
        )


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The next round: its submissions, its anchors, its places for annotators, its cost without panels' fees, and its prompts.

    ``n_waiting``: submissions that wait, with those that this round leaves for later. ``refusal``: why no round can open now;
    then ``submissions`` is empty.
    """

    submissions: tuple[Submission, ...]
    anchors: tuple[Submission, ...]
    places: int
    cost: Decimal
    n_waiting: int
    sample: RoundSample | None
    refusal: str = ""


def plan_round(board: Board, *, now: datetime | None = None) -> RoundPlan:
    """Return the next round as it would open now. Teams take turns, as far as the budget allows."""
    in_turns = waiting_in_turns(board)
    waiting, n_waiting = in_turns[: board.max_submissions_per_round], len(in_turns)
    sample = next_round_sample(board)
    if sample is None or not waiting:
        return _no_round(0, "No submission waits for a round.")
    # A submission that waits is not scored yet, so it comes in as a new one even if it is an anchor.
    anchors = list(
        board.submissions.filter(is_anchor=True, withdrawn_at=None)
        .exclude(pk__in=waiting_submissions(board).order_by().values("pk"))
        .annotate(n_rounds=Count("entries", filter=Q(entries__round__cancelled_at=None)))
        .order_by("n_rounds", "number")
    )
    fixed = [anchor for anchor in anchors if anchor.team_id is None]
    # A study shows only prompts that all its systems answer, so an anchor of an earlier sample drops out.
    complete = find_complete(anchors, sample.keys)
    named = [anchor for anchor in anchors if anchor.team_id is not None and anchor.pk in complete]
    spent = month_cost(board, now=now)
    refusal = ""
    for n in range(len(waiting), 0, -1):
        chosen = [*fixed, *named[: max(0, anchors_needed(board, n) - len(fixed))]]
        places = places_of_round(board, n + len(chosen), len(sample.keys))
        cost = places * reward_of_place(board)
        refusal = refusal_of_budget(board, cost, n, spent)
        if not refusal:
            return RoundPlan(tuple(waiting[:n]), tuple(chosen), places, cost, n_waiting, sample)
    return _no_round(n_waiting, refusal)


def waiting_in_turns(board: Board) -> list[Submission]:
    """Return the waiting submissions as rounds take them: one of each team in turn, and of a team the oldest first.

    A team whose last new submission was in an earlier round, or in none, comes first, so that a large board reaches every team.
    """
    new = RoundEntry.objects.filter(round__board=board, round__cancelled_at=None, is_new=True)
    last_round = dict(new.order_by().values_list("submission__team").annotate(last=Max("round__number")))
    turns = Counter[int | None]()
    keyed = []
    for one in waiting_submissions(board):
        keyed.append((turns[one.team_id], last_round.get(one.team_id, 0), one.number, one))
        turns[one.team_id] += 1
    return [one for *_, one in sorted(keyed, key=itemgetter(0, 1, 2))]


def _no_round(n_waiting: int, refusal: str) -> RoundPlan:
    return RoundPlan((), (), 0, ZERO, n_waiting, None, refusal)


def anchors_needed(board: Board, n_submissions: int) -> int:
    """Return how many anchors give the declared share of all systems in a round with this many new submissions."""
    share = float(board.anchor_share)
    return math.ceil(share * n_submissions / (1 - share) - 1e-9)


def reward_of_place(board: Board) -> Decimal:
    """Return the highest reward for one batch, of any arm."""
    arms = board.template.arms.exclude(reward=None).values_list("reward", flat=True)
    return max([board.template.reward or ZERO, *arms])


def places_of_round(board: Board, n_systems: int, n_prompts: int) -> int:
    """Return the places with which each output gets the declared number of labels in each live section."""
    template = board.template
    needed = 1
    sections = template.sections.filter(purpose=Section.Purpose.LIVE, reuses=None, m__gte=1, protocol__in=SCORERS)
    n_references = template.systems.filter(reference=System.Reference.ORDINARY).count()
    for section in sections:
        settings = REGISTRY[section.protocol].cleaned_settings(section)
        per_prompt = SCORERS[section.protocol].items_per_prompt(settings, n_systems, n_references)
        items = per_prompt * n_prompts * labels_per_output(board)
        needed = max(needed, math.ceil(items / section.m))
    per_batch = template.annotators_per_batch
    return math.ceil(needed / per_batch) * per_batch


def labels_per_output(board: Board) -> float:
    """Return the mean number of labels of an output, with the declared share of second labels."""
    return board.labels_per_output if board.labels_per_output > 1 else 1 + float(board.double_label_share)


def refusal_of_budget(board: Board, cost: Decimal, n_submissions: int, spent: Decimal) -> str:
    """Return why the budget does not allow a round, or ''."""
    currency = board.template.currency
    limit = board.budget_per_submission
    if limit is not None and cost > limit * n_submissions:
        return (
            f"A submission would cost {cost / n_submissions:.2f} {currency}, more than the budget of {limit:.2f} per submission. "
            "Raise the budget, or ask for fewer labels."
        )
    limit = board.budget_per_month
    if limit is not None and spent + cost > limit:
        return (
            f"The round would cost {cost:.2f} {currency}, and {spent:.2f} of this month's budget of {limit:.2f} are spent. "
            "Wait for the next month, or raise the budget."
        )
    return ""


def month_cost(board: Board, *, now: datetime | None = None) -> Decimal:
    """Return the expected cost of the rounds that opened in this calendar month, in the board's time zone."""
    local = (now or timezone.now()).astimezone(ZoneInfo(board.time_zone))
    start = local.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rounds = BoardRound.objects.filter(board=board, cancelled_at=None, planned_at__gte=start)
    return rounds.aggregate(cost=Sum("expected_cost"))["cost"] or ZERO


def next_launch_at(board: Board, *, now: datetime | None = None) -> datetime | None:
    """Return the beginning of the launch window that is open now or comes next; None if rounds do not open by themselves."""
    if not board.opens_by_itself or not board.launch_days:
        return None
    local = (now or timezone.now()).astimezone(ZoneInfo(board.time_zone))
    last = BoardRound.objects.filter(board=board).order_by("-planned_at").values_list("planned_at", flat=True).first()
    for days in range(8):
        day = (local + timedelta(days=days)).replace(hour=board.launch_hour, minute=0, second=0, microsecond=0)
        is_used = last is not None and last >= day
        if day.weekday() in board.launch_days and not is_used and (days or day.date() == local.date()):
            return day
    return None


def is_due(board: Board, *, now: datetime | None = None) -> bool:
    """Return whether the launch window is open and no round has opened in it yet. The window ends with its day."""
    begins = next_launch_at(board, now=now)
    return begins is not None and begins <= (now or timezone.now())
