"""Tables and figures of error marks. This module only arranges values."""

from collections.abc import Iterable, Sequence
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
from analysis.protocols.blocks.tables import Column, Table, build_table, parse_columns
from studies.protocols.marks import PENALTY, SCORE

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

ESTIMAND_LABELS = {SCORE: "score", PENALTY: "penalty"}


def pairs_table(estimates: Sequence["Estimate"], estimand: str) -> Table:
    """Return the table of all pairs of systems on one estimand."""
    rows = []
    for estimate in estimates:
        contrast = contrast_of(estimate)
        rows.append(
            {
                "pair": comparison_label(estimate),
                "role": role_label(contrast),
                "difference": estimate.estimate,
                "interval": interval_bounds(estimate),
                "p": pvalue_cell(estimate),
                "verdict": verdict_text(estimate),
                "n": estimate.n,
                "n_rows": estimate.n_rows,
                "reason": estimate.reason,
            }
        )
    difference_text = {SCORE: "score of x minus score of y", PENALTY: "penalty of y minus penalty of x"}[estimand]
    unit = {SCORE: "points", PENALTY: "weight of errors"}[estimand]
    return build_table(
        f"marks_{estimand}_pairs",
        f"Which is better, by {ESTIMAND_LABELS[estimand]}",
        f"pair|Pair|text; role|Role|text; difference|Difference, {unit}|number; interval|95% CI|wide_interval; p|adj. p|p; "
        "verdict|Verdict|text; n|n annotators|integer; n_rows|Pairs of outputs|integer; reason|Undefined because|text",
        rows,
        "first",
        f"Difference: {difference_text}, within an annotator and prompt. Above 0, x is better. p is adjusted within "
        f"each planned family and within all unplanned pairs.{comparisons_note(estimates)}",
    )


def differences_figure(estimates: Sequence["Estimate"], estimand: str) -> Figure:
    rows = [figure_row(estimate, comparison_label(estimate), ESTIMAND_LABELS[estimand]) for estimate in estimates]
    return build_figure(
        f"marks_{estimand}_pairs",
        f"Differences of {ESTIMAND_LABELS[estimand]}",
        rows,
        description="Above 0, the first system of a pair is better.",
        axis=f"difference of {ESTIMAND_LABELS[estimand]}",
        reference=0.0,
    )


def systems_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    estimates_by_key = {(estimate.settings["system"], estimate.settings["measure"]): estimate for estimate in estimates}
    rows = []
    for system in dict.fromkeys(system for system, _ in estimates_by_key):
        score, penalty, clean = (
            estimates_by_key.get((system, "score")),
            estimates_by_key[system, "penalty"],
            estimates_by_key[system, "clean"],
        )
        rows.append(
            {
                "system": system,
                "reference": judged_outputs.references.kind_of(system),
                "score": score and score.estimate,
                "score_interval": interval_bounds(score),
                "penalty": penalty.estimate,
                "penalty_interval": interval_bounds(penalty),
                "clean": clean.estimate,
                "clean_interval": interval_bounds(clean),
                "n": penalty.n,
                "outputs": penalty.n_rows,
                "reason": penalty.reason,
            }
        )
    rows.sort(key=lambda row: (bool(row["reference"]), row["penalty"] is None, row["penalty"], row["system"]))
    weights = ", ".join(f"{severity.label} {severity.weight:f}" for severity in judged_outputs.codebook.severities)
    return build_table(
        "marks_systems",
        f"Score, penalty and outputs without error, by system{in_parentheses(judged_outputs.title)}",
        f"system|System|text; {_reference_column(rows)}score|Score|number; score_interval|95% CI, score|wide_interval; penalty|Penalty|number; "
        "penalty_interval|95% CI, penalty|wide_interval; clean|Without error|percent; clean_interval|95% CI, without|interval; "
        "n|n annotators|integer; outputs|Outputs judged|integer; reason|Undefined because|text",
        rows,
        "first",
        f"The smallest penalty comes first. The penalty of an output is the sum of the weights of its errors ({weights}). Means over "
        "judged outputs.",
    )


def _reference_column(rows: Sequence[dict[str, Any]]) -> str:
    """Return the column that marks planted references, or '' if there are none."""
    return "reference|Planted as|text; " if any(row["reference"] for row in rows) else ""


def evaluated_systems_penalties_figure(estimates: Sequence["Estimate"], judged_outputs: Any) -> Figure:
    rows = [
        figure_row(estimate, estimate.settings["system"], "penalty")
        for estimate in estimates
        if estimate.settings["measure"] == "penalty"
        and not judged_outputs.references.kind_of(estimate.settings["system"])
    ]
    return build_figure(
        "marks_penalties",
        f"Mean penalty of each system{in_parentheses(judged_outputs.title)}",
        rows,
        description="Lower is better.",
        axis="penalty per output",
    )


def error_rates_by_kind_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    """Return a table with one row per error category or severity level, and one column per system, readable also for a long codebook."""
    systems = sorted({estimate.settings["system"] for estimate in estimates})
    estimates_by_kind: dict[tuple[str, str], dict[str, Any]] = {}
    for estimate in estimates:
        estimates_by_kind.setdefault((estimate.settings["sort"], estimate.settings["measure"]), {})[
            estimate.settings["system"]
        ] = estimate
    rows = [
        {
            "sort": sort,
            "what": label,
            "n": _count_range(estimate.n for estimate in kind_estimates.values()),
            "outputs": _count_range(estimate.n_rows for estimate in kind_estimates.values()),
            **{
                f"rate{number}": kind_estimates[system].estimate
                for number, system in enumerate(systems)
                if system in kind_estimates
            },
            **{
                f"interval{number}": interval_bounds(kind_estimates[system])
                for number, system in enumerate(systems)
                if system in kind_estimates
            },
            "reason": "; ".join(sorted({estimate.reason for estimate in kind_estimates.values() if estimate.reason})),
        }
        for (sort, label), kind_estimates in estimates_by_kind.items()
    ]
    heads = parse_columns("what|Error|text; sort|Category or severity|text")
    for number, name in enumerate(systems):
        heads.append(Column(key=f"rate{number}", label=name, kind="number"))
        heads.append(Column(key=f"interval{number}", label=f"95% CI, {name}", kind="wide_interval"))
    heads += parse_columns("n|n annotators|text; outputs|Outputs judged of each|text; reason|Undefined because|text")
    return build_table(
        "marks_kinds",
        f"Errors per output, by category and by severity{in_parentheses(judged_outputs.title)}",
        heads,
        rows,
        "sure",
        "The average number of such errors in an output of the system. Each interval is for one rate and is not adjusted for the "
        "number of rates.",
    )


def _count_range(counts: Iterable[int]) -> str:
    """Return one number if all systems have the same, else the smallest and the largest."""
    distinct = sorted(set(counts))
    return f"{distinct[0]}" if len(distinct) == 1 else f"{distinct[0]} to {distinct[-1]}"


def mark_agreement_and_score_checks_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    rows = [
        {
            "what": estimate.estimand,
            "estimate": estimate.estimate,
            "interval": interval_bounds(estimate),
            "agreement": estimate.detail.get("percent_agreement"),
            "p": pvalue_cell(estimate),
            "n": estimate.n,
            "unit": estimate.unit,
            "reason": estimate.reason,
        }
        for estimate in estimates
    ]
    return build_table(
        "marks_checks",
        f"Do annotators mark the same, and do scores follow marks?{in_parentheses(judged_outputs.title)}",
        "what|What|text; estimate|Estimate|number; interval|95% CI|wide_interval; agreement|Same answer|percent; p|p|p; n|n|integer; "
        "unit|Unit|text; reason|Undefined because|text",
        rows,
        "sure",
        "Alpha is low if errors are rare, even if people usually agree that there is no error: see the share of same answers. "
        "Its interval resamples whole outputs, not people, so it applies only to these annotators.",
    )


def campaign_style_table(estimates: Sequence["Estimate"], judged_outputs: Any) -> Table:
    rows_by_system: dict[str, dict[str, Any]] = {}
    for estimate in estimates:
        system = estimate.settings["system"]
        labels = {
            "system": system,
            "reference": judged_outputs.references.kind_of(system),
            "n": estimate.n,
            **estimate.detail,
        }
        row = rows_by_system.setdefault(system, labels)
        row[estimate.settings["measure"]] = estimate.estimate
    rows = sorted(rows_by_system.values(), key=lambda row: (bool(row["reference"]), row["penalty"], row["system"]))
    return build_table(
        "marks_standard",
        f"As campaigns print it{in_parentheses(judged_outputs.title)}",
        f"system|System|text; {_reference_column(rows)}penalty|Penalty per output|number; per_100_words|Penalty per 100 words|number; score|Mean score|number; "
        "errors|Errors|integer; words|Words|integer; n|Outputs judged|integer; annotators|Annotators|integer",
        rows,
        "sure",
        "After all primary rules. Words count once for each judgement of their output.",
    )
