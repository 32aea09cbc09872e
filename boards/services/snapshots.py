"""What happened to submissions so far: waiting, in a round, scored, or withdrawn."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Sum

from analysis.metrics.scoring import find_criteria, read_scored_rows
from annotators.counting import is_simulated
from annotators.models import Payment
from boards.access import BoardAction, check_permission_or_404
from boards.models import Board, BoardRound, BoardSnapshot, RoundEntry, Submission
from studies.design.serialization import sha256_of
from studies.models import Job, Prompt, Study, audit
from studies.services import jobs
from studies.services.lifecycle import ActionRefused
from studies.stimuli.texts import word_count

from .preferences import cost_and_precision
from .results import compute_board_result, expert_scores
from .rounds import RoundSample, keys_to_answer, samples_of_rounds

if TYPE_CHECKING:
    from pandas import DataFrame


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


# Take snapshots: the results of a board over its closed rounds, computed once and stored.


KIND = "board_snapshot"
FORMAT = "heval.board/1"


def closed_rounds(board: Board):
    """Return the rounds whose results may be shown: their studies are closed."""
    rounds = BoardRound.objects.filter(board=board, launched_at__isnull=False, study__state=Study.State.CLOSED)
    return rounds.select_related("study").order_by("number")


def request_snapshot(board: Board, by, request_token: str | None = None) -> Job:
    """Submit a job that takes a snapshot. Raise ActionRefused if no round is closed."""
    check_permission_or_404(by, BoardAction.RUN, board)
    if not closed_rounds(board).exists():
        raise ActionRefused("No round is closed yet. Results appear after the first round has closed.")
    return jobs.submit(KIND, by=by, request_token=request_token, board=board.pk)


def read_board_rows(board: Board, *, of_experts: bool = False) -> "DataFrame":
    """Return the scored rows of all closed rounds. Systems are the numbers of submissions; ``round`` is the round's number.

    ``of_experts``: as in ``read_scored_rows``.
    """
    import pandas as pd

    criteria = find_criteria(board.template)
    frames = []
    for one in closed_rounds(board):
        numbers = dict(
            RoundEntry.objects.filter(round=one, submission__withdrawn_at=None).values_list(
                "system__name", "submission__number"
            )
        )
        rows = read_scored_rows(one.study, criteria, of_experts=of_experts)
        rows = rows.assign(round=one.number, system=rows["system"].map(numbers), other_name=rows["other"])
        rows["other"] = rows["other"].map(numbers)
        # A pair with a withdrawn system says nothing about the other one.
        rows = rows[rows["system"].notna() & (rows["other"].notna() | rows["other_name"].isna())]
        frames.append(rows.drop(columns=["other_name"]).astype({"system": int}))
    if not frames:
        raise ActionRefused("No round is closed yet. Results appear after the first round has closed.")
    return pd.concat(frames, ignore_index=True)


def take_snapshot(board: Board, by) -> BoardSnapshot:
    """Compute and store the results over all closed rounds. If nothing has changed since the last snapshot, return that one."""
    from analysis.stats.seeds import canonical_json

    check_permission_or_404(by, BoardAction.RUN, board)
    rows = read_board_rows(board)
    rounds = list(closed_rounds(board))
    # The newest sample of closed rounds. One that only a running round scores is not revealed.
    scored = samples_of_rounds(board)
    of_rounds = {one.number: scored[one.number] for one in rounds}
    newest = of_rounds[max(of_rounds)].sample
    last = board.snapshots.order_by("-number").first()
    entries = RoundEntry.objects.filter(round__in=rounds, is_new=True)
    new_in_round = dict(entries.values_list("submission__number", "round__number"))
    result = {
        "format": FORMAT,
        "population": board.population,
        "sample": {
            "prompts": len(newest.keys),
            "seed": newest.seed,
            "keys_sha256": sha256_of("\n".join(newest.keys)),
        },
        **({"samples": _sample_facts(of_rounds)} if newest.number > 1 else {}),
        "datasets": _dataset_facts(board, newest.keys),
        "design_sha256": board.design_sha256,
        "is_simulated": any(is_simulated(one.study) for one in rounds),
        "rounds": [_round_facts(one, rows) for one in rounds],
        **compute_board_result(board, rows, new_in_round, last.result if last else None),
    }
    _add_costs(result, new_in_round)
    has_experts = any(one.study.recruitments.filter(is_for_experts=True).exists() for one in rounds)
    if has_experts and result["kind"] == "scores":
        result["experts"] = expert_scores(rows, read_board_rows(board, of_experts=True), result["seed"])
    if result["kind"] == "scores":
        main = rows[rows["criterion"] == result["criteria"][0]["key"]]
        total = sum(float(facts["cost"]) for facts in result["rounds"])
        result["precision"] = cost_and_precision(main, total / max(1, len(main)))
    text = canonical_json(result)
    with transaction.atomic():
        board = Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=board.pk)
        last = board.snapshots.order_by("-number").first()
        if last is not None and last.result_sha256 == sha256_of(text):
            return last
        snapshot = BoardSnapshot.objects.create(
            board=board,
            number=(last.number if last else 0) + 1,
            result=result,
            result_sha256=sha256_of(text),
            n_labels=int((rows["criterion"] == result["criteria"][0]["key"]).sum()),
            by=by,
        )
        audit.record(
            "take snapshot", by=by, board=board.slug, number=snapshot.number, result_sha256=snapshot.result_sha256
        )
    snapshot.refresh_from_db()
    return snapshot


def _dataset_facts(board: Board, sampled_keys: Iterable[str]) -> list[dict[str, Any]]:
    """Return for each domain how many prompts the template and the sample have, and the median words of one of the sample."""
    sampled = set(sampled_keys)
    n_prompts: Counter[str] = Counter()
    words: dict[str, list[int]] = {}
    for key, domain, text, source in board.template.prompts.values_list("key", "domain", "text", "source"):
        n_prompts[domain] += 1
        if key in sampled:
            words.setdefault(domain, []).append(word_count(text) + word_count(source))
    return [
        {
            "domain": domain,
            "prompts": n,
            "sampled": len(words.get(domain, ())),
            "median_words": float(median(words[domain])) if domain in words else None,
        }
        for domain, n in sorted(n_prompts.items())
    ]


def _sample_facts(of_rounds: Mapping[int, RoundSample]) -> list[dict[str, Any]]:
    """Return what everybody may know of the samples: size, seed, date, how many prompts were new, and in which round both were scored."""
    found: list[dict[str, Any]] = []
    for number, one in sorted(of_rounds.items()):
        if not found or found[-1]["number"] != one.sample.number:
            found.append(
                {
                    "number": one.sample.number,
                    "prompts": len(one.sample.keys),
                    "renewed": len(one.renewed),
                    "seed": one.sample.seed,
                    "date": one.sample.at.date().isoformat(),
                    "first_round": number,
                }
            )
    return found


def _round_facts(one: BoardRound, rows: "DataFrame") -> dict[str, Any]:
    mine = rows[rows["round"] == one.number]
    return {
        "number": one.number,
        "launched": one.study.launched_at.date().isoformat() if one.study.launched_at else None,
        "closed": one.study.closed_at.date().isoformat() if one.study.closed_at else None,
        "annotators": int(mine["annotator"].nunique()),
        "labels": len(mine[mine["criterion"] == mine["criterion"].iloc[0]]) if len(mine) else 0,
        "systems": sorted(int(number) for number in mine["system"].unique()),
        "cost": str(round_cost(one)),
        "currency": one.study.currency,
    }


def round_cost(one: BoardRound) -> Decimal:
    """Return what the round's study has paid, ordered and owes by its records; before there are any, the expected cost."""
    payments = Payment.objects.filter(assignment__study=one.study).exclude(state=Payment.State.FAILED)
    recorded = payments.aggregate(amount=Sum("amount"))["amount"]
    return one.expected_cost if recorded is None else recorded


def _add_costs(result: dict[str, Any], first_round: Mapping[int, int]) -> None:
    """Add to each submission its share of the cost of the round that scored it first: equal parts of new submissions."""
    n_new: dict[int, int] = {}
    for number in first_round.values():
        n_new[number] = n_new.get(number, 0) + 1
    cost_of = {facts["number"]: Decimal(facts["cost"]) for facts in result["rounds"]}
    for row in result["rows"]:
        scored_in = first_round.get(row["submission"])
        row["round"] = scored_in
        row["cost"] = str((cost_of[scored_in] / n_new[scored_in]).quantize(Decimal("0.01"))) if scored_in else None


def submit_due_snapshots() -> int:
    """Submit a snapshot for each board with a closed round that its last snapshot does not have. Return their number."""
    newer = BoardRound.objects.filter(board=OuterRef("pk"), launched_at__isnull=False, study__state=Study.State.CLOSED)
    n = 0
    for board in Board.objects.filter(Exists(newer)).annotate(last_round=Max("rounds__number")):
        closed = set(closed_rounds(board).values_list("number", flat=True))
        last = board.snapshots.order_by("-number").first()
        known = {facts["number"] for facts in last.result["rounds"]} if last else set()
        if closed - known:
            jobs.submit(KIND, by=board.owner, request_token=f"board-{board.pk}-snapshot-{max(closed)}", board=board.pk)
            n += 1
    return n


def public_facts(board: Board) -> dict[int, dict[str, Any]]:
    """Return what everybody may see now of each submission, by its number. Anonymous and withdrawn ones have no name."""
    columns = ("board", "number", "name", "is_anonymous", "withdrawn_at", "published_at", "is_anchor", "is_human")
    found = {}
    for one in board.submissions.select_related("team").only(*columns, "received_at", "url", "team__name"):
        is_named = not (one.is_anonymous or one.withdrawn_at)
        found[one.number] = {
            "name": one.public_name,
            "team": one.team.name if one.team and is_named else "",
            "url": one.url if is_named else "",
            "is_anchor": one.is_anchor,
            "is_human": one.is_human,
            "is_reference": one.team_id is None,
            "is_withdrawn": bool(one.withdrawn_at),
            "is_named": is_named,
            "received": one.received_at.date().isoformat(),
            "changed_at": max((time for time in (one.withdrawn_at, one.published_at) if time), default=None),
        }
    return found


def public_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as everybody may read it. Snapshots from before 2026-11-29 have the codes of rounds' studies."""
    rounds = [{name: value for name, value in facts.items() if name != "study"} for facts in result["rounds"]]
    return {**result, "rounds": rounds}


def display_rows(snapshot: BoardSnapshot) -> list[Mapping[str, Any]]:
    """Return the rows of a snapshot with the names that everybody may see now, from the best score to the worst."""
    facts = public_facts(snapshot.board)
    return [row | facts[row["submission"]] for row in snapshot.result["rows"]]
