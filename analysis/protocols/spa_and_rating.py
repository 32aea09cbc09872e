"""Stated chances next to ratings: Table 1 of the source, recommended and as there, and sentences for the summary.

Source: Ethayarajh and Jurafsky 2022, Table 1.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from studies.design.subjects import join_words

from .blocks import Block, Overview, cells, select_estimates
from .blocks.cells import (
    EXPECTATION_LABELS,
    claim_of,
    comparison_label,
    comparisons_note,
    contrast_of,
    direction_symbol_as_published,
    expectation_outcome,
    is_not_tested,
    reported_pvalue,
    subject_note,
    verdict_direction_symbol,
    verdict_text,
)
from .blocks.common_tables import reliability_table
from .blocks.layouts import Table, build_table, prefixed_cells
from .blocks.populations import heading
from .method_tables import method_comparison_tables

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

PAPER = "Ethayarajh and Jurafsky 2022"
ONE_ORDER = "one order"
PAIR_COLUMNS = "x|System x|text; y|System y|text; about|On|text; expected|Expected|text; "
COUNTING_METHODS = (
    ("recovered", "p_xy", "stated chances (recommended)"),
    ("paper_recovered", "paper", f"stated chances ({ONE_ORDER})"),
    ("above_recovered", "above", "ratings (rated higher)"),
    ("delta_recovered", "delta", "ratings (difference of means)"),
)


def build_overview(blocks: Sequence[Block], star_scheme: str) -> Overview:
    rows = _comparison_rows(blocks)
    summary = [*_summary_sentences(rows), *_naming_order_sentences(select_estimates(blocks, "spa.order"))]
    batches = _batch_variance_table(select_estimates(blocks, "spa.pairs"))
    stated, rated = select_estimates(blocks, "spa.pairs"), select_estimates(blocks, "rating.superiority")
    first, second = _comparison_tables(rows, star_scheme, comparisons_note(stated or rated))
    first["title"] = heading(first["title"], stated)
    second["title"] = heading(second["title"], [*stated, *rated])
    return Overview([first, second, *method_comparison_tables(blocks), batches], summary, _limits(rows))


def score_unit_and_range_text(estimate: "Estimate | None") -> str:
    """Return the unit of a rating's mean or difference: the ends of its question's scores."""
    return "" if estimate is None else str(estimate.settings.get("scored", ""))


def _comparison_rows(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Return a row for each comparison of stated chances and each question that rates the same, or only of ratings."""
    stated = select_estimates(blocks, "spa.pairs")
    stated_paper = {
        contrast_of(estimate)["key"]: estimate for estimate in select_estimates(blocks, "spa.pairs", "paper")
    }
    differences = {
        contrast_of(estimate)["key"]: estimate for estimate in select_estimates(blocks, "rating.difference", "paper")
    }
    rated: dict[tuple[str, ...], list[Estimate]] = {}
    for estimate in select_estimates(blocks, "rating.superiority"):
        contrast = contrast_of(estimate)
        rated.setdefault((contrast["x"], contrast["y"], contrast["criterion"]), []).append(estimate)
    rows = []
    for estimate in stated:
        contrast = contrast_of(estimate)
        x, y, criterion = contrast["x"], contrast["y"], contrast["criterion"]
        ratings: Sequence[Estimate | None] = rated.get((x, y, criterion)) or rated.get((x, y, "")) or [None]
        rows += [
            _comparison_row(contrast, estimate, stated_paper.get(contrast["key"]), above, differences)
            for above in ratings
        ]
    if not stated:
        rows = [
            _comparison_row(contrast_of(above), None, None, above, differences)
            for superiorities in rated.values()
            for above in superiorities
        ]
    return rows


def _comparison_row(
    contrast: Mapping[str, Any],
    stated: "Estimate | None",
    stated_paper: "Estimate | None",
    superiority: "Estimate | None",
    differences: Mapping[str, "Estimate"],
) -> dict[str, Any]:
    delta = differences.get(contrast_of(superiority)["key"]) if superiority else None
    expected = contrast.get("expected", "")
    direction = verdict_direction_symbol(stated)
    reasons = {estimate.reason for estimate in (stated, superiority) if estimate and estimate.reason}
    return {
        "x": contrast["x"],
        "y": contrast["y"],
        "about": join_words(*dict.fromkeys(filter(None, map(subject_note, filter(None, (stated, superiority)))))),
        "expected": EXPECTATION_LABELS[expected],
        "level": contrast["level"],
        "found": "not tested"
        if stated and is_not_tested(stated)
        else verdict_text(stated)
        if stated and claim_of(stated).limit is not None
        else {"?": "open"}.get(direction) or EXPECTATION_LABELS[direction],
        "recovered": expectation_outcome(expected, direction),
        **prefixed_cells("p_xy", stated),
        "n": stated.n if stated else None,
        **prefixed_cells("paper", stated_paper),
        "paper_n": stated_paper.n if stated_paper else None,
        "paper_recovered": expectation_outcome(expected, direction_symbol_as_published(stated_paper, 0.5)),
        **prefixed_cells("delta", delta),
        "scored": score_unit_and_range_text(delta),
        "delta_n": delta.n if delta else None,
        "delta_recovered": expectation_outcome(expected, direction_symbol_as_published(delta, 0.0)),
        **prefixed_cells("above", superiority),
        "above_n": superiority.n if superiority else None,
        "above_recovered": expectation_outcome(expected, verdict_direction_symbol(superiority)),
        "reason": "; ".join(sorted(reasons)),
    }


def _comparison_tables(rows: Sequence[Mapping[str, Any]], scheme: str, about: str) -> list[Table]:
    thresholds = ", ".join(f"{'*' * n} p < {level}" for n, level in enumerate(_star_thresholds(scheme), 1))
    stars = f"Stars on adjusted p: {thresholds} (scheme {scheme})."
    first = build_table(
        "table1",
        "What was expected and what was found" if any(row["expected"] for row in rows) else "What was found",
        PAIR_COLUMNS
        + "p_xy|P[x > y]|probability; p_xy_interval|95% CI|interval; p_xy_pvalue|adj. p|p; p_xy_stars|Stars|text; "
        "n|n annotators|integer; recovered|As expected?|text; above|P(rated higher)|probability; above_interval|95% CI, rated higher|interval; "
        "above_pvalue|adj. p, rated higher|p; above_n|n, rated higher|integer; above_recovered|As expected? (rated higher)|text; delta|Rating Δ|points; scored|Δ in|text; delta_pvalue|adj. p, Δ|p; "
        "delta_stars|Stars, Δ|text; delta_n|n, Δ|integer; delta_recovered|As expected? (Δ)|text; reason|Undefined because|text",
        rows,
        "first",
        f"{_columns_note(rows)} {stars}{about}",
    )
    second = build_table(
        "ways_of_counting",
        f"Recommended, and as in {PAPER}",
        PAIR_COLUMNS
        + "p_xy|P[x > y], recommended|probability; p_xy_interval|95% CI|interval; p_xy_pvalue|adj. p|p; n|n annotators|integer; "
        "found|Found|text; recovered|As expected?|text; "
        f"paper|P[x > y], {ONE_ORDER}|probability; paper_interval|95% CI, {ONE_ORDER}|interval; paper_pvalue|adj. p, {ONE_ORDER}|p; paper_stars|Stars, {ONE_ORDER}|text; "
        f"paper_n|n, {ONE_ORDER}|integer; paper_recovered|As expected? ({ONE_ORDER})|text; "
        "above|P(rated higher), recommended|probability; above_interval|95% CI, rated higher|interval; above_pvalue|adj. p, rated higher|p; "
        "above_n|n, rated higher|integer; above_recovered|As expected? (rated higher)|text; delta|Rating Δ|points; scored|Δ in|text; "
        "delta_pvalue|adj. p, Δ|p; delta_stars|Stars, Δ|text; delta_n|n, Δ|integer; delta_recovered|As expected? (Δ)|text",
        rows,
        "first",
        f"{_ways_of_counting_note(rows)} {stars}",
    )
    return [first, {**second, "paper": PAPER}]


def _columns_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what the numbers of the first table are, for those that it holds."""
    notes = [
        "P[x > y]: mean stated chance that x is better, both orders combined." if _has(rows, "p_xy") else "",
        "P(rated higher): chance that an annotator rates x above y, ties half." if _has(rows, "above") else "",
        f"Rating Δ: mean difference of ratings, as in {PAPER}, with its own p." if _has(rows, "delta") else "",
    ]
    return " ".join(filter(None, notes))


def _ways_of_counting_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how the two ways of counting differ, for the columns that the table holds."""
    notes = [
        f"As in {PAPER}, “{ONE_ORDER}” takes one order of naming, after all primary exclusion rules, and the recommended columns "
        "combine both orders, after the primary rules that do not look at answers."
        if _has(rows, "paper")
        else "",
        "“Rating Δ” compares annotators' mean ratings by a paired t test after all primary exclusion rules."
        if _has(rows, "delta")
        else "",
        "Both count a result that is not significant at the level of its comparison as x ~ y. The recommended columns call x ~ y only a "
        "result within the margin, and the rest is open."
        if _has(rows, "paper") and _has(rows, "delta")
        else "Such a column counts a result that is not significant at the level of its comparison as x ~ y. The recommended columns "
        "call x ~ y only a result within the margin, and the rest is open."
        if _has(rows, "paper") or _has(rows, "delta")
        else "",
    ]
    return " ".join(filter(None, notes))


def _has(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    return any(row.get(key) is not None for row in rows)


def _star_thresholds(scheme: str) -> list[str]:
    return [f"{float(part) / 100:g}".replace("0.", ".", 1) for part in scheme.split("/")]


def _summary_sentences(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return how many expectations each method recovers, and whether ratings and stated chances agree on the direction."""
    lines, counts = [], []
    expected = [row for row in rows if row["expected"]]
    for key, value, method_label in COUNTING_METHODS:
        usable = [row for row in expected if row.get(value) is not None]
        if usable:
            counts.append(f"{method_label} {sum(row[key] == 'recovered' for row in usable)} of {len(usable)}")
    if counts:
        levels = " or ".join(
            cells.format_proportion(level, 3).rstrip("0") for level in sorted({row["level"] for row in expected})
        )
        lines.append(f"Expectations recovered at p < {levels}: {'; '.join(counts)}.")
    comparable = [row for row in rows if row.get("p_xy") is not None and row.get("above") is not None]
    if comparable:
        n_same = sum(
            (row["p_xy"] > 0.5) == (row["above"] > 0.5) for row in comparable if 0.5 not in (row["p_xy"], row["above"])
        )
        lines.append(f"Stated chances and ratings point the same way in {n_same} of {len(comparable)} comparisons.")
    return lines


def _limits(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return that ratings of the same systems do not show what the stated chances show, if they recover fewer expectations."""
    both = [row for row in rows if row["expected"] and row.get("p_xy") is not None and row.get("above") is not None]
    stated, rated = (sum(row[key] == "recovered" for row in both) for key in ("recovered", "above_recovered"))
    if rated >= stated:
        return []
    return [
        f"ratings of the same systems agree: they recover {rated} of {len(both)} expectations, the stated chances {stated}"
    ]


def _naming_order_sentences(gaps: Sequence["Estimate"]) -> list[str]:
    """Return a sentence about the largest gap between the two directions of a pair."""
    estimated = [estimate for estimate in gaps if estimate.estimate is not None]
    if not estimated:
        return []
    worst = max(estimated, key=lambda estimate: abs(estimate.estimate or 0))
    p = reported_pvalue(worst)
    return [
        f"Naming order: the largest gap between the two directions of a pair is {cells.format_number(100 * (worst.estimate or 0), 1)} points "
        f"({comparison_label(worst)}{'; ' + cells.format_equation('p', cells.format_pvalue(p)) if p is not None else ''}; {cells.format_sample_size(worst.n, worst.unit)})."
    ]


def _batch_variance_table(estimates: Sequence["Estimate"]) -> Table:
    """Return the reliability of both protocols, with the share of the variance between batches."""
    rows = []
    for estimate in estimates:
        if parts := estimate.detail.get("batches"):
            rows.append(
                {
                    "where": comparison_label(estimate),
                    "what": "share of the variance that lies between batches (ICC)",
                    "estimate": parts.icc,
                    "n": parts.n_clusters,
                    "unit": "batch",
                    "reason": "" if parts.icc is not None else "each batch was answered once, or nothing varies",
                }
            )
    return reliability_table(rows)
