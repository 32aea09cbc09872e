"""The numbers of a snapshot: scores with intervals, rank sets, and differences from the best, for each criterion."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from boards.models import Board
from boards.scoring.rows import Criterion, board_kind, find_criteria

from .comparisons import stored_differences

if TYPE_CHECKING:
    from pandas import DataFrame

RESAMPLES = 1999
LEVEL = 0.95


def compute_board_result(board: Board, rows: "DataFrame", rounds: Sequence[int]) -> dict[str, Any]:
    """Return criteria, rows and blocks of a snapshot, as JSON values. ``rows``: those of ``read_board_rows``."""
    from analysis.data.frames import frame_sha256
    from analysis.stats.seeds import seed_hex

    criteria = find_criteria(board.template)
    seed = seed_hex("board", board.slug, board.seed, len(rows), frame_sha256(rows))
    by_number: dict[int, dict[str, Any]] = {}
    tables = {}
    for criterion in criteria:
        mine = rows[rows["criterion"] == criterion.key]
        tables[criterion.key] = _add_criterion(board, criterion, mine, by_number, seed)
    overall = criteria[0].key
    ordered = sorted(
        by_number.values(),
        key=lambda row: (-(row["scores"].get(overall, {}).get("estimate") or -1e9), row["submission"]),
    )
    return {
        "kind": board_kind(board.template),
        "level": LEVEL,
        "seed": seed,
        "criteria": [
            {"key": one.key, "label": one.label, "is_overall": one.is_overall, "is_mean": one.is_mean}
            for one in criteria
        ],
        "rows": ordered,
        "tables": tables,
    }


def _add_criterion(
    board: Board, criterion: Criterion, rows: "DataFrame", by_number: dict[int, dict[str, Any]], seed: str
) -> dict[str, Any]:
    """Add the scores of one criterion to the rows of the systems. Return what concerns all systems."""
    from analysis.stats import leaderboard
    from analysis.stats.seeds import seeded_generator

    if rows.empty:
        return {"status": "no_data", "reason": "no answer to analyse"}
    arguments = (
        rows["value"].to_numpy(float),
        rows["system"].to_numpy(),
        rows["prompt"].to_numpy(),
        rows["annotator"].to_numpy(),
    )
    result = leaderboard.leaderboard(
        *arguments,
        rng=seeded_generator(seed, criterion.key),
        level=LEVEL,
        items_sampled=board.population == Board.Population.PROMPTS,
        resamples=RESAMPLES,
    )
    ranks = result.ranks
    counts = rows.groupby("system").agg(
        labels=("value", "size"), annotators=("annotator", "nunique"), prompts=("prompt", "nunique")
    )
    for place, system in enumerate(ranks.systems):
        number = int(system)
        row = by_number.setdefault(number, {"submission": number, "scores": {}})
        score, distance = result.scores[place], result.from_best[place]
        row["scores"][criterion.key] = {
            "estimate": score.estimate,
            "low": score.interval.low if score.interval else None,
            "high": score.interval.high if score.interval else None,
            "status": score.status,
            "reason": score.reason,
            "method": score.interval.method if score.interval else "",
            "warnings": [warning.code for warning in score.warnings],
            "rank_low": ranks.low[place] if ranks.low else None,
            "rank_high": ranks.high[place] if ranks.high else None,
            "is_best": bool(ranks.best[place]) if ranks.best else None,
            "from_best": distance.estimate,
            "from_best_low": distance.interval.low if distance.interval else None,
            "from_best_high": distance.interval.high if distance.interval else None,
            **{name: int(value) for name, value in counts.loc[system].items()},
        }
    pairs = {
        "systems": [int(system) for system in ranks.systems],
        "differences": stored_differences(result.differences),
    }
    return {
        **(pairs if criterion.is_overall else {}),
        "status": ranks.status,
        "reason": ranks.reason,
        "annotators": int(rows["annotator"].nunique()),
        "labels": len(rows),
        "prompts": int(rows["prompt"].nunique()),
        "warnings": [warning.code for warning in ranks.warnings],
    }
