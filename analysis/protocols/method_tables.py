"""Tables of all methods for each comparison of stated chances and ratings, and whether they agree on the direction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .blocks import Block, cells, select_estimates
from .blocks.cells import comparison_label, interval_bounds, pvalue_cell
from .blocks.layouts import Table, build_table
from .blocks.populations import population_of, population_words

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

PAPER = "Ethayarajh and Jurafsky 2022"
# The label of each method, and the null value above which its estimate favours x.
METHODS = {
    "spa.pair": ("both orders combined, t test", 0.5),
    "spa.pair.sign_flip": ("sign flips (permutation)", 0.5),
    "spa.pair.wilcoxon": ("Wilcoxon: symmetry about 50 %, not the mean", 0.0),
    "spa.pair.bca": ("bootstrap (BCa)", 0.5),
    "spa.pair.bayesian_bootstrap": ("Bayesian bootstrap: chance that the mean exceeds 50 %", 0.5),
    "spa.pair.sign_test": ("sign test: share of annotators above 50 %", 0.5),
    "spa.pair.tau": ("after leaving out by tau", 0.5),
    "spa.pair.tau_symmetric": ("after leaving out by tau, both sides", 0.5),
    "spa.pair.by_annotator": ("annotators as clusters, for exactly these prompts", 0.5),
    "spa.pair.equivalence": ("equivalence (two one-sided t tests)", 0.5),
    "rating.superiority": ("ratings: probability of superiority", 0.5),
    "rating.superiority.by_annotator": ("ratings: superiority, for exactly these prompts", 0.5),
    "rating.superiority.equivalence": ("ratings: equivalence of superiority", 0.5),
    "rating.sign_test": ("ratings: sign test", 0.5),
    "rating.wilcoxon": ("ratings: Wilcoxon, symmetry about 0", 0.0),
    "rating.cumulative_logit": ("ratings: cumulative logit (log odds ratio)", 0.0),
    "rating.mean_difference": ("ratings: difference of means", 0.0),
    "rating.mean_difference.by_annotator": ("ratings: difference of means, for exactly these prompts", 0.0),
    "rating.mean_difference.equivalence": ("ratings: equivalence of means", 0.0),
    "rating.mean_difference.z": ("ratings: difference of means (standard deviations of each annotator's own)", 0.0),
    "rating.superiority_unpaired": ("ratings: probability of superiority, not side by side", 0.5),
    "rating.mean_difference_unpaired": ("ratings: difference of means, not side by side", 0.0),
}
# What a part of the name of a companion adds to the label of its method.
VARIANTS = {
    "cluster_means": "mean of annotators' means",
    "by_annotator": "for exactly these prompts",
    "equivalence": "equivalence",
}


def method_comparison_tables(blocks: Sequence[Block]) -> list[Table]:
    """Return a table of how many methods agree with the first on the direction, and a table of all methods."""
    groups = _rows_by_comparison(blocks)
    return [_agreement_table(groups), _methods_table(groups)]


def _rows_by_comparison(blocks: Sequence[Block]) -> dict[str, list[dict[str, Any]]]:
    stated = [(estimate, _estimate_rows(estimate)) for estimate in select_estimates(blocks, "spa.pairs")]
    stated += [
        (estimate, [_estimate_row(estimate, f"one order, as in {PAPER}", 0.5)])
        for estimate in select_estimates(blocks, "spa.pairs", "paper")
    ]
    rated = [
        (estimate, _estimate_rows(estimate))
        for name in ("rating.superiority", "rating.difference")
        for estimate in select_estimates(blocks, name)
    ]
    rated += [
        (estimate, [_estimate_row(estimate, f"ratings: paired difference, as in {PAPER}", 0.0)])
        for estimate in select_estimates(blocks, "rating.difference", "paper")
    ]
    groups: dict[str, list[dict[str, Any]]] = {}
    for estimate, rows in [*stated, *rated]:
        groups.setdefault(comparison_label(estimate), []).extend(rows)
    for rows in groups.values():
        head = rows[0]["side"]
        for row in rows:
            row["agrees"] = "" if not row["side"] or not head else ("yes" if row["side"] == head else "no")
    return groups


def _methods_table(groups: dict[str, list[dict[str, Any]]]) -> Table:
    return build_table(
        "methods",
        "Every method",
        "contrast|Comparison|text; method|Method|text; estimate|Estimate|number; interval|CI|wide_interval; level|CI at|text; p|p|p; "
        "population|Holds for|text; n|n|integer; unit|Unit|text; agrees|Same direction as the first|text; reason|Undefined because|text",
        [row | {"contrast": contrast} for contrast, rows in groups.items() for row in rows],
        "more",
        "p is adjusted within its family for the first method of each kind, and unadjusted for the others.",
    )


def _agreement_table(groups: dict[str, list[dict[str, Any]]]) -> Table:
    """Return how many methods agree with the first on the direction, and which do not, for each comparison."""
    rows = [
        {
            "contrast": contrast,
            "first": rows[0]["estimate"],
            "same": sum(row["agrees"] == "yes" for row in rows),
            "of": sum(row["agrees"] != "" for row in rows),
            "other": "; ".join(row["method"] for row in rows if row["agrees"] == "no"),
            "undefined": sum(row["agrees"] == "" for row in rows),
        }
        for contrast, rows in groups.items()
    ]
    return build_table(
        "agreement",
        "Do the methods agree?",
        "contrast|Comparison|text; first|Estimate of the first|number; same|Methods of the same direction|integer; of|of|integer; "
        "undefined|Without a direction|integer; other|The other direction|text",
        rows,
        "sure",
        "This count gives no p-value. “Every method” shows each method.",
    )


def _estimate_rows(estimate: "Estimate") -> list[dict[str, Any]]:
    return [
        _estimate_row(method_estimate, *_method_label_and_null(method_estimate.analysis))
        for method_estimate in (estimate, *estimate.sensitivity)
    ]


def _method_label_and_null(analysis: str) -> tuple[str, float]:
    """Return the label and the null of a method: of its longest known part, and what the rest of its name adds."""
    parts = analysis.split(".")
    for n in range(len(parts), 0, -1):
        if found := METHODS.get(".".join(parts[:n])):
            label, null = found
            return "; ".join((label, *(VARIANTS.get(part, part.replace("_", " ")) for part in parts[n:]))), null
    return " ".join(parts).replace("_", " "), 0.0


def _estimate_row(estimate: "Estimate", name: str, null: float) -> dict[str, Any]:
    value = estimate.estimate
    return {
        "method": name,
        "estimate": value,
        "interval": interval_bounds(estimate),
        "level": cells.format_confidence_level(estimate),
        "p": pvalue_cell(estimate),
        "population": "" if estimate.mode == "paper" else population_words(population_of(estimate)),
        "n": estimate.n,
        "unit": estimate.unit,
        "side": "" if value is None or value == null else (">" if value > null else "<"),
        "reason": estimate.reason,
    }
