"""Tables and figures of ratings. This module only arranges values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.cells import comparison_label, comparisons_note, pvalue_cell
from analysis.protocols.blocks.layouts import (
    RATINGS,
    Figure,
    Table,
    build_figure,
    build_table,
    by_value,
    estimate_row,
    figure_row,
    prefixed_cells,
    rank_cells,
)
from studies.design.subjects import join_words

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

PAPER = "Ethayarajh and Jurafsky 2022"


def rating_comparisons_table(
    superiority: Sequence["Estimate"], differences: Sequence["Estimate"], paper: Sequence["Estimate"]
) -> Table:
    """Return the table of rating differences, their ordinal companions and the reversal guard."""
    return build_table(
        "ratings",
        "Ratings, and methods that use only their order",
        "contrast|Comparison|text; scored|Δ in|text; paper|Δ, paired t|points; paper_pvalue|adj. p, paired t|p; paper_stars|Stars, paired t|text; "
        "delta|Δ|points; delta_interval|95% CI, Δ|wide_interval; delta_pvalue|adj. p, Δ|p; "
        "above|P(rated higher)|probability; above_interval|95% CI|interval; above_pvalue|adj. p|p; cliff|Cliff's δ|probability; "
        "ties|Ties|integer; sign|Sign test, share|probability; sign_pvalue|p, sign test|p; wilcoxon_pvalue|p, Wilcoxon (symmetry)|p; "
        "logit|Cumulative logit|number; logit_interval|95% CI, logit|wide_interval; logit_pvalue|p, logit|p; logit_reason|No logit because|text; "
        "guard|True Δ lies in|wide_interval; reversal|Reversed preference|text; n|n annotators|integer; reason|Undefined because|text",
        [_rating_row(*estimates) for estimates in zip(superiority, differences, paper, strict=True)],
        "sure",
        f"Paired t: one difference per annotator, as in {PAPER}. Reversed preference: in the worst case, rounding to whole points changed the sign. “Cannot be excluded” does not mean that "
        "it happened." + comparisons_note(superiority),
    )


def _rating_row(superiority: "Estimate", difference: "Estimate", paper: "Estimate") -> dict[str, Any]:
    guard = difference.detail.get("reversal_guard") or {}
    others = {other.analysis: other for other in superiority.sensitivity}
    logit, sign = others.get("rating.cumulative_logit"), others.get("rating.sign_test")
    return {
        **estimate_row(superiority, scored=difference.settings["scored"]),
        **prefixed_cells("paper", paper),
        **prefixed_cells("delta", difference),
        **prefixed_cells("above", superiority),
        "cliff": superiority.detail.get("cliff_delta"),
        "ties": superiority.detail.get("n_ties"),
        "sign": sign.estimate if sign else None,
        "sign_pvalue": pvalue_cell(sign),
        "wilcoxon_pvalue": pvalue_cell(others.get("rating.wilcoxon")),
        **prefixed_cells("logit", logit),
        "logit_reason": logit.reason if logit else "",
        "guard": [guard["low"], guard["high"]] if guard else None,
        "reversal": "" if not guard else "cannot be excluded" if guard["is_reversal_possible"] else "excluded",
    }


def superiority_figure(estimates: Sequence["Estimate"]) -> Figure:
    return build_figure(
        RATINGS,
        "Chance of being rated higher",
        [figure_row(estimate, comparison_label(estimate), "probability of superiority") for estimate in estimates],
        description="Probability that an annotator rates x above y, ties half.",
        axis="P(x rated above y)",
        reference=0.5,
        limits=[0, 1],
    )


def means_table(estimates: Sequence["Estimate"], rank_sets: Any, title: str) -> Table:
    """Return the mean rating of each system, best first within a question, with its set of ranks."""
    rows, ranks = [], rank_cells(rank_sets)
    for estimate in sorted(estimates, key=by_value):
        bounds = ranks.get(estimate.settings["system"], {}) | {"reason": estimate.reason or rank_sets.reason}
        rows.append(estimate_row(estimate, "mean", where=title, scored=estimate.settings["scored"], **bounds))
    return build_table(
        "means",
        "Mean rating of each system",
        "where|Question|text; system|System|text; mean|Mean|number; scored|In|text; interval|95% CI|wide_interval; rank|Rank|integer; "
        "highest|May be as high as|integer; lowest|May be as low as|integer; n|n annotators|integer; reason|Note|text",
        rows,
        "more",
        "Every annotator has the same weight. The sets of ranks hold jointly at the stated level.",
        rank_sets.warnings,
    )


def means_figure(estimates: Sequence["Estimate"], title: str) -> Figure:
    return build_figure(
        "means",
        "Mean rating of each system",
        [
            figure_row(estimate, join_words(estimate.settings["system"], title), "mean")
            for estimate in sorted(estimates, key=by_value)
        ],
        description="On the scale of the scores, with the same weight for every annotator.",
        axis="Mean rating",
    )
