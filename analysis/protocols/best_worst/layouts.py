"""Tables and figures of best-worst answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..blocks.cells import (
    claims_note,
    comparison_label,
    contrast_of,
    interval_bounds,
    pvalue_cell,
    reported_pvalue,
    role_label,
    verdict_text,
)
from ..blocks.figures import Figure, build_figure, figure_row
from ..blocks.subjects import in_parentheses
from ..blocks.tables import Table, build_table

if TYPE_CHECKING:
    from analysis.stats.best_worst import MaxDiffScores
    from analysis.stats.ranks import RankSets
    from analysis.stats.results import Estimate


def _descending_order(estimate: "Estimate") -> tuple[bool, float, str]:
    """Return the sort key that puts the largest estimate first and undefined ones last."""
    return estimate.estimate is None, -(estimate.estimate or 0), estimate.settings["system"]


def pairs_table(estimates: Sequence["Estimate"]) -> Table:
    rows = [
        {
            "pair": comparison_label(estimate),
            "role": role_label(contrast_of(estimate)),
            "difference": estimate.estimate,
            "interval": interval_bounds(estimate),
            "p": pvalue_cell(estimate),
            "verdict": verdict_text(estimate),
            "n": estimate.n,
            "answers": estimate.n_rows,
            "reason": estimate.reason,
        }
        for estimate in estimates
    ]
    return build_table(
        "best_worst_pairs",
        "Which was picked as better",
        "pair|Pair|text; role|Role|text; difference|Difference, log-odds|number; interval|95% CI|wide_interval; p|adj. p|p; "
        "verdict|Verdict|text; n|n annotators|integer; answers|Answers|integer; reason|Undefined because|text",
        rows,
        "first",
        "Above 0, the first system is chosen over the second. p tests 0 with annotators as clusters. It is adjusted within each planned "
        "family and within all unplanned pairs." + claims_note(estimates),
    )


def pairs_figure(estimates: Sequence["Estimate"]) -> Figure:
    rows = [figure_row(estimate, comparison_label(estimate), "log-odds") for estimate in estimates]
    return build_figure(
        "best_worst_pairs",
        "Difference of strengths of x and y",
        rows,
        description="Above 0, the first system of a pair is picked as better.",
        axis="log-odds",
        reference=0.0,
    )


def systems_table(strengths: Sequence["Estimate"], joint_test: "Estimate", rank_sets: "RankSets", title: str) -> Table:
    """Return the table of systems, strongest first, with their sets of ranks."""
    bounds = dict(zip(rank_sets.systems, zip(rank_sets.low or (), rank_sets.high or (), strict=True), strict=False))
    rows = []
    for estimate in sorted(strengths, key=_descending_order):
        high, low = bounds.get(estimate.settings["system"], (None, None))
        rows.append(
            {
                "system": estimate.settings["system"],
                "strength": estimate.estimate,
                "interval": interval_bounds(estimate),
                "highest": high,
                "lowest": low,
                "n": estimate.n,
                "answers": estimate.n_rows,
                "reason": "; ".join(filter(None, [estimate.reason, rank_sets.reason])),
            }
        )
    joint = reported_pvalue(joint_test)
    joint_text = (
        f"The joint test that all are equal: p = {joint:.3f}."
        if joint is not None
        else f"No joint test: {joint_test.reason}."
    )
    return build_table(
        "best_worst_systems",
        f"Systems by strength{in_parentheses(title)}",
        "system|System|text; strength|Strength, log-odds|number; interval|95% CI|wide_interval; highest|May be as high as|integer; "
        "lowest|May be as low as|integer; n|n annotators|integer; answers|Answers|integer; reason|Note|text",
        rows,
        "first",
        f"Strengths have the sum 0. The sets of ranks hold jointly at the stated level. {joint_text}",
        rank_sets.warnings,
    )


def systems_figure(strengths: Sequence["Estimate"], title: str) -> Figure:
    return build_figure(
        "best_worst_systems",
        f"Strength of each system{in_parentheses(title)}",
        [figure_row(estimate, estimate.settings["system"], "strength") for estimate in strengths],
        description="Above 0, a system is chosen more often than the mean of all.",
        axis="strength, log-odds",
        reference=0.0,
    )


def counts_table(scores: Sequence["Estimate"], counts: "MaxDiffScores", title: str) -> Table:
    rows = [
        {
            "system": estimate.settings["system"],
            "shown": estimate.detail["n_shown"],
            "best": estimate.detail["n_best"],
            "worst": estimate.detail["n_worst"],
            "score": estimate.estimate,
            "interval": interval_bounds(estimate),
            "n": estimate.n,
            "reason": estimate.reason,
        }
        for estimate in sorted(scores, key=_descending_order)
    ]
    return build_table(
        "best_worst_counts",
        f"How often each system was the best and the worst{in_parentheses(title)}",
        "system|System|text; shown|Shown|integer; best|Best|integer; worst|Worst|integer; score|Score|number; interval|95% CI|wide_interval; "
        "n|n annotators|integer; reason|Undefined because|text",
        rows,
        "first",
        f"The score is (best − worst) / shown, from −1 to 1; {counts.n_rows} answers of {counts.n_clusters} annotators.",
    )


def counts_figure(scores: Sequence["Estimate"], title: str) -> Figure:
    return build_figure(
        "best_worst_counts",
        f"MaxDiff score of each system{in_parentheses(title)}",
        [figure_row(estimate, estimate.settings["system"], "score") for estimate in scores],
        description="(Best − worst) / shown.",
        axis="score",
        reference=0.0,
        limits=[-1, 1],
    )
