"""Tables and figures of rankings. This module only arranges values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.cells import (
    comparison_label,
    comparisons_note,
    contrast_of,
    interval_bounds,
    pvalue_cell,
    role_label,
    verdict_text,
)
from analysis.protocols.blocks.figures import Figure, build_figure, figure_row
from analysis.protocols.blocks.subjects import in_parentheses
from analysis.protocols.blocks.tables import Table, build_table

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


def pairs_table(estimates: Sequence["Estimate"]) -> Table:
    """Return the table of all pairs of systems: which was ranked higher, and how often."""
    rows = []
    for estimate in estimates:
        contrast, detail = contrast_of(estimate), estimate.detail
        rows.append(
            {
                "pair": comparison_label(estimate),
                "role": role_label(contrast),
                "share": estimate.estimate,
                "interval": interval_bounds(estimate),
                "p": pvalue_cell(estimate),
                "verdict": verdict_text(estimate),
                "above": detail["n_above"],
                "ties": detail["n_ties"],
                "below": detail["n_below"],
                "n": estimate.n,
                "reason": estimate.reason,
            }
        )
    return build_table(
        "ranking_pairs",
        "Which was ranked higher",
        "pair|Pair|text; role|Role|text; share|Share above|percent; interval|95% CI|interval; p|adj. p|p; verdict|Verdict|text; "
        "above|Above|integer; ties|Same place|integer; below|Below|integer; n|n annotators|integer; reason|Undefined because|text",
        rows,
        "first",
        "Shares of the rankings that hold both systems; the same place counts half. p tests 50 %. It is adjusted within each "
        "planned family and within all unplanned pairs." + comparisons_note(estimates),
    )


def shares_figure(estimates: Sequence["Estimate"]) -> Figure:
    rows = [figure_row(estimate, comparison_label(estimate), "share of rankings") for estimate in estimates]
    return build_figure(
        "ranking_pairs",
        "Share of rankings with x above y",
        rows,
        description="Above 50 %, the first system of a pair ranks higher; the same place counts half.",
        axis="P(x above y)",
        reference=0.5,
        limits=[0, 1],
    )


def systems_table(means: Sequence[Any], rank_sets: Any, strengths: Sequence[Any], title: str) -> Table:
    """Return the table of systems, best first: mean rank, set of ranks and strength."""
    bounds = dict(zip(rank_sets.systems, zip(rank_sets.low or (), rank_sets.high or (), strict=True), strict=False))
    by_system = {strength.detail.get("system"): strength for strength in strengths}
    rows = []
    for estimate in sorted(
        means, key=lambda estimate: (estimate.estimate is None, estimate.estimate, estimate.settings["system"])
    ):
        system = estimate.settings["system"]
        strength = by_system.get(system)
        low, high = bounds.get(system, (None, None))
        rows.append(
            {
                "system": system,
                "mean": estimate.estimate,
                "interval": interval_bounds(estimate),
                "highest": low,
                "lowest": high,
                "strength": strength.estimate if strength else None,
                "strength_interval": interval_bounds(strength) if strength else None,
                "n": estimate.n,
                "rankings": estimate.n_rows,
                "reason": "; ".join(
                    filter(None, [estimate.reason, rank_sets.reason, strength.reason if strength else ""])
                ),
            }
        )
    return build_table(
        "ranking_systems",
        f"Systems by mean rank{in_parentheses(title)}",
        "system|System|text; mean|Mean rank|number; interval|95% CI|wide_interval; highest|May be as high as|integer; "
        "lowest|May be as low as|integer; strength|Strength, log-odds|number; strength_interval|95% CI, strength|wide_interval; "
        "n|n annotators|integer; rankings|Rankings|integer; reason|Note|text",
        rows,
        "first",
        "Rank 1 is the best. The sets of ranks hold jointly at the stated level. Strengths are from Davidson's model and have the sum 0.",
        rank_sets.warnings,
    )


def mean_ranks_figure(estimates: Sequence["Estimate"], title: str) -> Figure:
    rows = [figure_row(estimate, estimate.settings["system"], "mean rank") for estimate in estimates]
    return build_figure(
        "ranking_means",
        f"Mean rank of each system{in_parentheses(title)}",
        rows,
        description="1 is the best rank.",
        axis="mean rank, 1 the best",
    )


def rank_agreement_table(estimates: Sequence["Estimate"], title: str) -> Table:
    rows = [
        {
            "what": estimate.estimand,
            "estimate": estimate.estimate,
            "interval": interval_bounds(estimate),
            "p": pvalue_cell(estimate),
            "n": estimate.n,
            "unit": estimate.unit,
            "reason": estimate.reason,
        }
        for estimate in estimates
    ]
    return build_table(
        "ranking_checks",
        f"Agreement of the rankings{in_parentheses(title)}",
        "what|What|text; estimate|Estimate|number; interval|95% CI|wide_interval; p|p|p; n|n|integer; unit|Unit|text; "
        "reason|Undefined because|text",
        rows,
        "sure",
        "Kendall's W uses one ranking per annotator; its p is Friedman's. Without any agreement W is 1 / n on average, not 0. "
        "The interval of alpha resamples whole prompts, not people, so it applies only to these annotators.",
    )


def share_below_planted_references_table(estimates: Sequence["Estimate"], title: str) -> Table:
    rows = [
        {
            "system": estimate.settings["system"],
            "reference": estimate.settings["reference"],
            "share": estimate.estimate,
            "interval": interval_bounds(estimate),
            "n": estimate.n,
            "rankings": estimate.n_rows,
            "reason": estimate.reason,
        }
        for estimate in estimates
    ]
    return build_table(
        "ranking_references",
        f"Ranks of the planted references{in_parentheses(title)}",
        "system|System|text; reference|Planted as|text; share|Share of systems below it|percent; interval|95% CI|interval; "
        "n|n annotators|integer; rankings|Rankings|integer; reason|Undefined because|text",
        rows,
        "sure",
        "Planted references are not systems under evaluation. Ranks, strengths and agreement use only the other systems.",
    )
