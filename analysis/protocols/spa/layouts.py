"""Tables and figures of stated chances. This module only arranges values."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from analysis.protocols.blocks import cells
from analysis.protocols.blocks.cells import comparison_label, contrast_of, verdict_text
from analysis.protocols.blocks.layouts import (
    FOREST,
    Figure,
    Table,
    build_figure,
    build_table,
    estimate_row,
    figure_row,
    prefixed_cells,
)
from studies.design.subjects import join_words

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

PAPER = "Ethayarajh and Jurafsky 2022"
# With more comparisons, the figure of rule effects is longer than a page.
MAX_FIGURE_ROWS = 60


def forest_figure(recommended: Sequence["Estimate"], paper: Iterable["Estimate"]) -> Figure:
    rows = [figure_row(estimate, comparison_label(estimate), "both orders (recommended)") for estimate in recommended]
    rows += [figure_row(estimate, comparison_label(estimate), f"one order ({PAPER})") for estimate in paper]
    order = {comparison_label(estimate): n for n, estimate in enumerate(recommended)}
    return build_figure(
        FOREST,
        "Stated chance that x is better than y",
        sorted(rows, key=lambda row: order[row["label"]]),
        description="Points are means over annotators; 50 % is no preference.",
        axis="P[x > y]",
        reference=0.5,
        limits=[0, 1],
    )


def naming_order_gap_table(estimates: Iterable["Estimate"]) -> Table:
    rows = []
    for estimate in estimates:
        shares = estimate.detail.get("shares") or {}
        verdict = "" if estimate.estimate is None else verdict_text(estimate, if_open="")
        beyond = {name: (shares.get(name) or {}).get("share") for name in ("above", "within", "below")}
        rows.append(estimate_row(estimate, "gap", verdict=verdict, **beyond))
    return build_table(
        "gap",
        "Does it matter who is named first?",
        "contrast|Comparison|text; gap|Mean of p_xy + p_yx − 1|fine_probability; interval|95% CI|fine_interval; p|p|p; verdict|Verdict|text; "
        "above|Above +10 points|percent; within|Within 10 points|percent; below|Below −10 points|percent; n|n annotators|integer; reason|Undefined because|text",
        rows,
        "sure",
        "Computed before any rule that uses sums. A gap above 0 means that the system named first has an advantage. "
        "“Equivalent”: smaller than 5 points, shown by two one-sided tests.",
    )


def naming_order_gap_figure(estimates: Iterable["Estimate"]) -> Figure:
    return build_figure(
        "gap",
        "Gap between the two orders of naming",
        [figure_row(estimate, comparison_label(estimate), "gap") for estimate in estimates],
        description="Mean of p_xy + p_yx - 1; 0 is no effect of naming order.",
        axis="p_xy + p_yx − 1",
        reference=0.0,
    )


def coherence_table(estimates: Iterable["Estimate"], cycles: Sequence[str], title: str) -> Table:
    rows = [
        estimate_row(
            estimate,
            block=title,
            what=_cycle_label(estimate),
            cycles="; ".join(cycles) if "cycle" in estimate.analysis else "",
        )
        for estimate in estimates
    ]
    return build_table(
        "coherence",
        "Coherence of the pairs",
        "block|Where|text; what|Measure|text; estimate|Estimate|number; interval|95% CI|wide_interval; cycles|Cycles|text; "
        "n|n annotators|integer; n_rows|Answers or triples|integer; reason|Undefined because|text",
        rows,
        "sure",
        "A sum of log-odds around a cycle that is not 0 says that one scale does not fit all annotators, not that wording mattered.",
    )


def _cycle_label(estimate: "Estimate") -> str:
    systems, cycle = estimate.settings.get("systems"), estimate.detail.get("cycle")
    if systems and cycle and all(isinstance(n, int) and n < len(systems) for n in cycle):
        return "sum of log-odds around " + " – ".join(systems[n] for n in cycle)
    return estimate.estimand


def rule_effects_table(changes: Iterable["Estimate"]) -> Table:
    rows, idle_rules = [], set()
    for estimate in changes:
        if estimate.status == "not_applicable":
            idle_rules.add(estimate.settings["rule"])
            continue
        against = next(iter(estimate.sensitivity), None)
        counts = {name: estimate.detail.get(name) for name in ("before", "after", "n_before", "n_after")}
        left_out = prefixed_cells("out", against)
        rows.append(estimate_row(estimate, "change", rule=estimate.settings["rule"], **counts, **left_out))
    nobody = f" Rules that exclude no one: {', '.join(sorted(idle_rules))}." if idle_rules else ""
    return build_table(
        "before_after",
        "What each rule does to each comparison",
        "rule|Rule|text; contrast|Comparison|text; before|P[x > y] before|fine_probability; after|after|fine_probability; change|Change|fine_probability; "
        "interval|95% CI of the change|fine_interval; n_before|n before|integer; n_after|n after|integer; "
        "out|Left out less kept|fine_probability; out_interval|95% CI, Welch|fine_interval; reason|No interval because|text",
        rows,
        "sure",
        f"Before: all annotators who submitted. The change is resampled with the same annotators on both sides.{nobody}",
    )


def rule_effects_figure(changes: Iterable["Estimate"]) -> Figure:
    defined_changes = [estimate for estimate in changes if estimate.status == "ok"]
    rows = [
        figure_row(
            estimate,
            f"{comparison_label(estimate)}: {estimate.settings['rule']}",
            estimate.settings["rule"],
        )
        for estimate in defined_changes
    ]
    return build_figure(
        "rules",
        "What each exclusion rule changes",
        rows if len(rows) <= MAX_FIGURE_ROWS else [],
        description="Mean after the rule minus mean before it.",
        axis="Change of P[x > y]",
        reference=0.0,
    )


def examples_in_words(m: int) -> str:
    return f"after {cells.format_count(m, 'example')}"


def comparison_after_exposures_label(estimate: "Estimate") -> str:
    """Return the label of a comparison after m exposures."""
    settings = estimate.settings
    return comparison_after_exposures_words(settings["m"], settings["x"], settings["y"], settings["criterion"])


def comparison_after_exposures_words(m: int, x: str, y: str, criterion: str) -> str:
    return join_words(f"{x} > {y}", criterion, examples_in_words(m))


def stated_chance_by_exposure_table(estimates: Iterable["Estimate"]) -> Table:
    """Return the stated chance after each m, in both orders and in each, and the conviction."""
    rows = []
    for estimate in estimates:
        xy, yx = (
            next((one for one in estimate.sensitivity if one.analysis.endswith(f".{name}")), None)
            for name in ("xy", "yx")
        )
        row = estimate_row(
            estimate, what=comparison_after_exposures_label(estimate), conviction=estimate.detail.get("conviction")
        )
        rows.append(row | prefixed_cells("xy", xy) | prefixed_cells("yx", yx))
    return build_table(
        "exposure_levels",
        "The stated chance by what was seen",
        "what|Comparison|text; estimate|P[x > y]|probability; interval|95% CI|interval; p|adj. p|p; n|n annotators|integer; "
        "xy|P[x > y], x named first|probability; xy_p|adj. p, x first|p; yx|P[y > x], y named first|probability; yx_p|adj. p, y first|p; "
        "conviction|Conviction|probability; reason|Undefined because|text",
        rows,
        "sure",
        "p adjusted (Holm) over the numbers of examples of one comparison. Conviction is the distance from 50 %; noise alone inflates it.",
    )


def stated_chance_by_exposure_figure(estimates: Iterable["Estimate"]) -> Figure:
    return build_figure(
        "exposure",
        "The stated chance by what was seen",
        [figure_row(estimate, comparison_after_exposures_label(estimate), "both orders") for estimate in estimates],
        description="Mean P[x > y], both orders combined; the same annotators answered after each number of examples.",
        axis="P[x > y]",
        reference=0.5,
        limits=[0, 1],
    )


def estimates_table(estimates: Iterable["Estimate"], name: str, title: str, place: str) -> Table:
    """Return a simple table with one line per estimate."""
    return build_table(
        name,
        title,
        "what|What|text; where|Where|text; estimand|Estimand|text; estimate|Estimate|number; interval|95% CI|wide_interval; p|p|p; n|n|integer; "
        "unit|Unit|text; reason|Undefined because|text",
        [
            estimate_row(
                estimate,
                what=comparison_label(estimate) if contrast_of(estimate) else estimate.estimand,
                where="",
                estimand=estimate.estimand,
            )
            for estimate in estimates
        ],
        place,
    )
