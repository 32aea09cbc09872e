"""What a snapshot says about its own results: claims over submissions, probes, and how much a first place rests on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

ALPHA = 0.05
RESAMPLES = 1999


def _arrays(rows: "DataFrame") -> tuple[Any, ...]:
    return (
        rows["value"].to_numpy(float),
        rows["system"].to_numpy(),
        rows["prompt"].to_numpy(),
        rows["annotator"].to_numpy(),
    )


def better_than_best_before(
    rows: "DataFrame", new_in_round: Mapping[int, int], is_new_prompts: bool
) -> list[dict[str, Any]]:
    """Return, for each submission in the order of rounds and numbers, whether it is better than the best before it.

    Each is compared with all systems that were scored in earlier rounds or came earlier to the same round. Over all submissions of
    the board, at most 5 % of boards ever make a false claim. Earlier decisions are computed again from the same rows, and later
    rounds do not change them: a submission is judged by the rows of its own and earlier rounds only.
    """
    from analysis.stats import leaderboard

    order = sorted(new_in_round, key=lambda number: (new_in_round[number], number))
    found: list[dict[str, Any]] = []
    decisions: list[bool] = []
    for place, number in enumerate(order):
        alpha = float(leaderboard.alphas_of_submissions(decisions, alpha=ALPHA)[-1])
        until = rows[(rows["round"] <= new_in_round[number])]
        known = set(until["system"].unique())
        # Systems of the template and other anchors that no round scored as new were there before.
        others = known - set(order[place:])
        if number not in known or not others:
            continue
        estimate = leaderboard.compare_with_best_before(
            *_arrays(until),
            new=number,
            earlier=sorted(int(one) for one in others),
            alpha=alpha,
            rounds=until["round"].to_numpy() if until["round"].nunique() > 1 else None,
            items_sampled=is_new_prompts,
        )
        is_better = bool(estimate.detail.get("is_better", False))
        decisions.append(is_better)
        best = estimate.detail.get("best")
        found.append(
            {
                "submission": number,
                "round": new_in_round[number],
                "alpha": alpha,
                "is_better": is_better,
                "best_before": int(best) if best is not None else None,
                "estimate": estimate.estimate,
                "low": estimate.interval.low if estimate.interval else None,
                "high": estimate.interval.high if estimate.interval else None,
                "pvalue": estimate.pvalue,
                "status": estimate.status,
                "reason": estimate.reason,
                "n": estimate.n,
                "unit": estimate.unit,
            }
        )
    return found


def audit_of_scores(rows: "DataFrame", is_new_prompts: bool, rng: "np.random.Generator") -> list[dict[str, Any]]:
    """Return the probes of a board of scores, each with its verdict, its number and its limit."""
    from analysis.stats import board_audit

    if rows.empty:
        return []
    positions = rows["is_first"]
    probes = board_audit.audit_scores(
        *_arrays(rows),
        rng=rng,
        positions=positions.astype(float).to_numpy() if positions.notna().all() else None,
        rounds=rows["round"].to_numpy() if rows["round"].nunique() > 1 else None,
        alpha=ALPHA,
        items_sampled=is_new_prompts,
        resamples=RESAMPLES,
    )
    return [
        {
            "name": probe.name,
            "fires": bool(probe.fires),
            "limit": float(probe.limit),
            "estimate": probe.estimate.estimate,
            "pvalue": probe.estimate.pvalue,
            "estimand": probe.estimate.estimand,
            "status": probe.estimate.status,
            "reason": probe.estimate.reason,
            "unit": probe.estimate.unit,
            "n": probe.estimate.n,
        }
        for probe in probes
    ]


def sensitivity_of_first_place(rows: "DataFrame") -> dict[str, Any] | None:
    """Return how few answers, and how few people, decide the first place; None with one system."""
    from analysis.stats import first_place

    if rows.empty or rows["system"].nunique() < 2:
        return None
    found = first_place.first_place_sensitivity(*_arrays(rows))
    return {
        "first": int(found.first),
        **{
            name: {
                "unit": removal.unit,
                "n": removal.n,
                "total": removal.total,
                "share": removal.share,
                "is_confirmed": removal.is_confirmed,
                "challenger": None if removal.challenger is None else int(removal.challenger),
                "status": removal.status,
                "reason": removal.reason,
            }
            for name, removal in (("answers", found.answers), ("people", found.people))
        },
    }
