"""Stated chances beside ratings: the paper's Table 1, both ways of counting, and what a summary says of them.

Source: Ethayarajh and Jurafsky 2022, Table 1.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .blocks import Block, Overview, apa, estimates_of
from .blocks.cells import EXPECTED_WORDS, contrast_of, found_direction, label, pvalue, recovered
from .blocks.common_tables import reliability
from .blocks.tables import Table, filled_cells, table
from .method_tables import method_tables

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

WHO = "x|System x|text; y|System y|text; criterion|Criterion|text; section|Section|integer; expected|Expected|text; "
WAYS = (
    ("recovered", "p_xy", "stated chances (recommended)"),
    ("paper_recovered", "paper", "stated chances (as in the paper)"),
    ("above_recovered", "above", "ratings (rated higher)"),
    ("delta_recovered", "delta", "ratings (difference, as in the paper)"),
)


def overview(blocks: Sequence[Block], star_scheme: str) -> Overview:
    rows = _rows(blocks)
    summary = [*_summary(rows), *_naming(estimates_of(blocks, "spa.order"))]
    batches = _batches(estimates_of(blocks, "spa.pairs"))
    return Overview([*_tables(rows, star_scheme), *method_tables(blocks), batches], summary)


def scored_in(one: "Estimate | None") -> str:
    """The unit of a rating's mean or difference: what its question's points are scored between."""
    return "" if one is None else str(one.settings.get("scored", ""))


def _rows(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """A row for each comparison of stated chances and each question that rates the same; without stated chances, of ratings alone."""
    stated = estimates_of(blocks, "spa.pairs")
    stated_paper = {contrast_of(one)["key"]: one for one in estimates_of(blocks, "spa.pairs", "paper")}
    differences = {contrast_of(one)["key"]: one for one in estimates_of(blocks, "rating.difference", "paper")}
    rated: dict[tuple[str, ...], list[Estimate]] = {}
    for one in estimates_of(blocks, "rating.superiority"):
        contrast = contrast_of(one)
        rated.setdefault((contrast["x"], contrast["y"], contrast["criterion"]), []).append(one)
    rows = []
    for one in stated:
        contrast = contrast_of(one)
        x, y, criterion = contrast["x"], contrast["y"], contrast["criterion"]
        beside = rated.get((x, y, criterion)) or rated.get((x, y, "")) or [None]
        rows += [_row(contrast, one, stated_paper.get(contrast["key"]), above, differences) for above in beside]
    if not stated:
        rows = [_row(contrast_of(above), None, None, above, differences) for found in rated.values() for above in found]
    if any(row["criterion"] for row in rows):
        rows = [row | {"criterion": row["criterion"] or "overall"} for row in rows]
    if len({row["section"] for row in rows}) == 1:
        rows = [row | {"section": None} for row in rows]
    return rows


def _row(
    contrast: Mapping[str, Any],
    stated: "Estimate | None",
    stated_paper: "Estimate | None",
    above: "Estimate | None",
    differences: Mapping[str, "Estimate"],
) -> dict[str, Any]:
    delta = differences.get(contrast_of(above)["key"]) if above else None
    expected = contrast.get("expected", "")
    found = found_direction(stated, 0.5)
    reasons = {one.reason for one in (stated, above) if one and one.reason}
    return {
        "x": contrast["x"],
        "y": contrast["y"],
        "criterion": contrast["criterion"],
        "section": contrast["section"],
        "expected": EXPECTED_WORDS[expected],
        "found": {"?": "open"}.get(found) or EXPECTED_WORDS[found],
        "recovered": recovered(expected, found),
        **filled_cells("p_xy", stated),
        "n": stated.n if stated else None,
        **filled_cells("paper", stated_paper),
        "paper_n": stated_paper.n if stated_paper else None,
        "paper_recovered": recovered(expected, found_direction(stated_paper, 0.5, True)),
        **filled_cells("delta", delta),
        "scored": scored_in(delta),
        "delta_n": delta.n if delta else None,
        "delta_recovered": recovered(expected, found_direction(delta, 0.0, True)),
        **filled_cells("above", above),
        "above_n": above.n if above else None,
        "above_recovered": recovered(expected, found_direction(above, 0.5)),
        "reason": "; ".join(sorted(reasons)),
    }


def _tables(rows: Sequence[Mapping[str, Any]], scheme: str) -> list[Table]:
    thresholds = ", ".join(f"{'*' * n} p < {level}" for n, level in enumerate(_thresholds(scheme), 1))
    stars = f"Stars on adjusted p: {thresholds} (scheme {scheme})."
    first = table(
        "table1",
        "What was expected and what was found",
        WHO + "p_xy|P[x > y]|probability; p_xy_interval|95% CI|interval; p_xy_pvalue|adj. p|p; p_xy_stars|Stars|text; "
        "n|n annotators|integer; recovered|As expected?|text; delta|Rating Δ|points; scored|Δ in|text; delta_pvalue|adj. p, Δ|p; "
        "delta_stars|Stars, Δ|text; delta_n|n, Δ|integer; delta_recovered|As expected? (Δ)|text; reason|Undefined because|text",
        rows,
        "first",
        f"P[x > y]: mean stated chance that x is better, both orders combined. Rating Δ: mean difference of ratings, as in the paper. {stars}",
    )
    both = table(
        "ways_of_counting",
        "Recommended, and as in the paper",
        WHO
        + "p_xy|P[x > y], recommended|probability; p_xy_interval|95% CI|interval; p_xy_pvalue|adj. p|p; n|n annotators|integer; "
        "found|Found|text; recovered|As expected?|text; "
        "paper|P[x > y], paper|probability; paper_interval|95% CI, paper|interval; paper_pvalue|adj. p, paper|p; paper_stars|Stars, paper|text; "
        "paper_n|n, paper|integer; paper_recovered|As expected? (paper)|text; "
        "above|P(rated higher), recommended|probability; above_interval|95% CI, rated higher|interval; above_pvalue|adj. p, rated higher|p; "
        "above_n|n, rated higher|integer; above_recovered|As expected? (rated higher)|text; delta|Rating Δ, paper|points; scored|Δ in|text; "
        "delta_pvalue|adj. p, Δ|p; delta_stars|Stars, Δ|text; delta_n|n, Δ|integer; delta_recovered|As expected? (Δ)|text",
        rows,
        "first",
        "They differ because the paper takes one order of naming, leaves people out by rules that look at answers, and counts no star as "
        "x ~ y. The recommended columns combine both orders, pass over such rules, and call x ~ y only what lies within the margin; "
        f"the rest is open. {stars}",
    )
    return [first, both]


def _thresholds(scheme: str) -> list[str]:
    return [f"{float(part) / 100:g}".replace("0.", ".", 1) for part in scheme.split("/")]


def _summary(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many expectations each way of counting recovers, and whether ratings point the same way as stated chances."""
    lines, counts = [], []
    expected = [row for row in rows if row["expected"]]
    for key, value, words in WAYS:
        usable = [row for row in expected if row.get(value) is not None]
        if usable:
            counts.append(f"{words} {sum(row[key] == 'recovered' for row in usable)} of {len(usable)}")
    if counts:
        lines.append(f"Expectations recovered: {'; '.join(counts)}.")
    both = [row for row in rows if row.get("p_xy") is not None and row.get("above") is not None]
    if both:
        same = sum(
            (row["p_xy"] > 0.5) == (row["above"] > 0.5) for row in both if 0.5 not in (row["p_xy"], row["above"])
        )
        lines.append(f"Stated chances and ratings point the same way in {same} of {len(both)} comparisons.")
    return lines


def _naming(gaps: Sequence["Estimate"]) -> list[str]:
    """The largest gap between the two directions of a pair."""
    known = [one for one in gaps if one.estimate is not None]
    if not known:
        return []
    worst = max(known, key=lambda one: abs(one.estimate or 0))
    p = pvalue(worst)
    return [
        f"Naming order: the largest gap between the two directions of a pair is {apa.number(100 * (worst.estimate or 0), 1)} points "
        f"({label(worst)}{'; ' + apa.equation('p', apa.pvalue(p)) if p is not None else ''}; {apa.units(worst.n, worst.unit)})."
    ]


def _batches(estimates: Sequence["Estimate"]) -> Table:
    """How much of the spread lies between batches, below the reliability of both."""
    rows = []
    for one in estimates:
        if parts := one.detail.get("batches"):
            rows.append(
                {
                    "where": label(one, True),
                    "what": "share of the variance that lies between batches (ICC)",
                    "estimate": parts.icc,
                    "n": parts.n_clusters,
                    "unit": "batch",
                    "reason": "" if parts.icc is not None else "each batch was answered once, or nothing varies",
                }
            )
    return reliability(rows)
