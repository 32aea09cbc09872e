"""Tables and figures of pairwise choices: decisions and their rules, cost, agreement and sides."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks import cells
from analysis.protocols.blocks.cells import (
    EXPECTATION_LABELS,
    MARGIN_VERDICT_LABELS,
    claim_of,
    comparison_label,
    comparisons_note,
    contrast_of,
    expectation_outcome,
    is_not_tested,
    is_sequential,
    unclaimed_phrase,
    verdict_direction_symbol,
)
from analysis.protocols.blocks.layouts import (
    Figure,
    Table,
    build_figure,
    build_table,
    estimate_row,
    figure_row,
    prefixed_cells,
)

if TYPE_CHECKING:
    from analysis.stats.results import Estimate
    from analysis.stats.sequential import RunningShare

RUNNING_POINTS = 100
PAPER = "Thorleiksdóttir et al. 2022"
OUTCOME_LABELS = {
    "a_better": "x is better",
    "b_better": "y is better",
    "equivalent": "equivalent within the margin",
    "different_but_trivial": "different, by less than the margin",
    "budget_exhausted": "not decided by all planned annotators",
    "inconclusive": "open",
}


def decisions_table(
    recommended: Sequence["Estimate"], paper: Sequence["Estimate"], logged_outcomes: Sequence[Mapping[str, Any] | None]
) -> Table:
    rows = []
    for estimate, paper_estimate, outcome in zip(recommended, paper, logged_outcomes, strict=True):
        expected = contrast_of(estimate)["expected"]
        rows.append(
            estimate_row(
                estimate,
                "share",
                expected=EXPECTATION_LABELS[expected],
                rule="anytime-valid" if is_sequential(estimate) else "fixed n",
                level=cells.format_confidence_level(estimate),
                outcome=_outcome(estimate),
                stopped=estimate.detail.get("stopped_at"),
                recovered=expectation_outcome(expected, verdict_direction_symbol(estimate)),
                logged=OUTCOME_LABELS.get(outcome["verdict"], "") if outcome else "",
                **_paper_cells(paper_estimate),
            )
        )
    return build_table(
        "choices",
        "Which was chosen, and by which rule that was decided",
        "x|System x|text; y|System y|text; about|On|text; outcome|Outcome|text; share|P(x chosen)|probability; "
        "interval|CI|interval; level|CI at|text; p|p|p; n|n annotators|integer; rule|Rule|text; stopped|Decided after|integer; expected|Expected|text; "
        "recovered|As expected?|text; logged|As logged|text; paper|Items for x|probability; paper_outcome|First crossing of Hoeffding's bound|text; "
        "paper_n|Items to it|integer; stays|Crossing that stays|text; stays_n|Items to that|integer; reason|Undefined because|text",
        rows,
        "first",
        "P(x chosen) weighs annotators equally. The level of an interval is that of its rule, divided if a rule decides about several "
        f"comparisons. An anytime-valid rule keeps its error rate with any number of checks; Hoeffding's bound, as {PAPER} use it over items, does not. "
        "The crossing that stays is known only afterwards. A fixed n assumes no earlier checks."
        + comparisons_note(recommended),
    )


def _outcome(estimate: "Estimate") -> str:
    """Return the outcome of the stopping rule, or else of the test at a fixed n."""
    if is_not_tested(estimate):
        return "not tested"
    if estimate.detail.get("outcome") in OUTCOME_LABELS:
        return OUTCOME_LABELS[estimate.detail["outcome"]]
    claim = claim_of(estimate)
    if claim.verdict in MARGIN_VERDICT_LABELS:
        return f"{MARGIN_VERDICT_LABELS[claim.verdict]}{unclaimed_phrase(claim)}"
    if claim.verdict in ("different", "better", "worse"):
        return OUTCOME_LABELS["a_better" if claim.side == ">" else "b_better"]
    return f"{OUTCOME_LABELS.get(claim.verdict or 'inconclusive', 'open')}{unclaimed_phrase(claim)}"


def _paper_cells(paper: "Estimate") -> dict[str, Any]:
    final = next(iter(paper.sensitivity), None)
    return {
        "paper": paper.estimate,
        "paper_outcome": _winner_label(paper),
        "paper_n": paper.detail.get("n_decision"),
        "stays": _winner_label(final) if final else "",
        "stays_n": final.detail.get("n_decision") if final else None,
    }


def _winner_label(estimate: "Estimate") -> str:
    return {"a": OUTCOME_LABELS["a_better"], "b": OUTCOME_LABELS["b_better"]}.get(
        estimate.detail.get("winner") or "", "not decided"
    )


def shares_figure(recommended: Sequence["Estimate"], paper: Sequence["Estimate"]) -> Figure:
    """Return the figure of the shares of choices and of items."""
    rows = [figure_row(estimate, comparison_label(estimate), "choices (recommended)") for estimate in recommended]
    rows += [figure_row(estimate, comparison_label(estimate), f"items ({PAPER})") for estimate in paper]
    return build_figure(
        "choices",
        "Share of choices for x",
        sorted(rows, key=lambda row: row["label"]),
        description="Points are shares; 50 % is no preference.",
        axis="P(x chosen)",
        reference=0.5,
        limits=[0, 1],
    )


def running_share_figure(
    name: str, estimate: "Estimate", running: "RunningShare", *, unit: str, bounds: str, decided_at: int | None
) -> Figure:
    """Return the running share of choices for x with the bounds of its rule, as in the paper's Figure 1."""
    decision = (
        f"The bounds exclude 50 % after {decided_at} {unit}s" if decided_at else "The bounds have not excluded 50 %"
    )
    return build_figure(
        name,
        f"Running share of choices for x: {comparison_label(estimate)}",
        [
            {
                "label": f"after {n} {unit}{'s' if n != 1 else ''}",
                "series": "share",
                "estimate": share,
                "low": low,
                "high": high,
                "n": n,
                "unit": unit,
            }
            for n, share, low, high in running.thinned(RUNNING_POINTS)
        ],
        description=f"The share after each {unit}, with {bounds}; 50 % is no preference. {decision}.",
        axis="P(x chosen)",
        reference=0.5,
        limits=[0, 1],
        kind="running",
        decided_at=decided_at,
    )


def labels_paid_table(comparison_estimates: Sequence["Estimate"]) -> Table:
    estimates_by_name = {estimate.analysis.rpartition(".")[2]: estimate for estimate in comparison_estimates}
    rows = []
    if paid := estimates_by_name.get("labels"):
        rows.append(
            {
                "contrast": comparison_label(paid),
                "strategy": paid.detail["strategy"].replace("_", " "),
                "items": paid.detail["items"],
                "answered": paid.detail["items_answered"],
                "open": paid.detail["items_open"],
                "labels": paid.detail["labels"],
                "each": paid.estimate,
                **{name: _rounded_estimate(estimates_by_name.get(name)) for name in ("first", "stays", "overrun")},
            }
        )
    return build_table(
        "choice_effort",
        "What it cost",
        "contrast|Comparison|text; strategy|Strategy|text; items|Items|integer; answered|Items with an answer|integer; open|Still open|integer; "
        "labels|Labels paid|integer; each|Labels an item|number; first|Labels to the first crossing|integer; "
        "stays|Labels to the crossing that stays|integer; overrun|Labels after the decision|integer",
        rows,
        "sure",
        f"Crossings are those of Hoeffding's bound ({PAPER}). An item that lacks labels, has no majority or has only ties has no answer. Labels after the decision were paid but change nothing.",
    )


def work_times_table(estimates: Sequence["Estimate"]) -> Table:
    rows = [
        {
            "contrast": comparison_label(estimate) if contrast_of(estimate) else "all comparisons",
            "median": estimate.estimate,
            "quartiles": estimate.detail.get("quartiles"),
            "mean": estimate.detail.get("mean"),
            "n": estimate.n,
            "people": estimate.n_clusters,
            "untimed": estimate.detail["untimed"],
            "reason": estimate.reason,
        }
        for estimate in estimates
    ]
    return build_table(
        "choice_times",
        "Work time of a label",
        "contrast|Comparison|text; median|Median, seconds|number; quartiles|Quartiles, seconds|wide_interval; mean|Mean, seconds|number; "
        "n|n labels|integer; people|n annotators|integer; untimed|Labels without a time|integer; reason|Undefined because|text",
        rows,
        "sure",
        "The time of a label is that of its page: while the page was visible and used, or from showing to sending if a browser counted nothing. "
        "Imported labels, pages with an attention check and pages with several labels have no time here.",
    )


def metrics_table(pairs: Sequence[tuple["Estimate", "Estimate"]]) -> Table:
    """Return the table of metrics: the difference by each metric, and people's share beside it."""
    rows = []
    for difference, people in pairs:
        detail = difference.detail
        rows.append(
            estimate_row(
                difference,
                "difference",
                metric=f"{detail['metric']} {detail['version']}",
                better="lower" if detail["is_lower_better"] else "higher",
                **{f"{side}_{key}": value for side, one in detail["systems"].items() for key, value in one.items()},
                people=people.estimate,
                people_interval=cells.interval_bounds(people),
            )
        )
    return build_table(
        "choice_metrics",
        "Metrics beside the choices of people",
        "x|System x|text; y|System y|text; about|On|text; metric|Metric|text; better|Better if|text; x_mean|Mean of x|number; x_n|Outputs of x|integer; "
        "y_mean|Mean of y|number; y_n|Outputs of y|integer; difference|x minus y|number; interval|95% CI|wide_interval; n|n prompts|integer; "
        "people|P(x chosen)|probability; people_interval|CI|interval; reason|Undefined because|text",
        rows,
        "more",
        "Means are over all outputs that the metric scored, on its own scale, and differences over prompts with scores of both systems. Nothing is "
        "adjusted for several metrics. The last numbers are people's, as in the table of choices.",
    )


def _rounded_estimate(estimate: "Estimate | None") -> int | None:
    return None if estimate is None or estimate.estimate is None else round(estimate.estimate)


COUNTING_NOTE = (
    f" {PAPER} counted a third label unless both first labels chose the system that their file named first. The two rows of that count are to be "
    "compared with their Table 6; the labels that were needed are in the row “max three workers”."
)


def labels_needed_by_strategy_table(replays: Sequence[tuple["Estimate | None", "Estimate"]]) -> Table:
    """Return the table of the replays: those of the first crossing, and the paper's of the crossing that stays."""
    rows = []
    for recommended, paper in replays:
        shown = recommended or paper
        row = estimate_row(
            shown,
            "mean",
            strategy=shown.settings["system"],
            certainty=f"{1 - shown.settings['delta']:g}" if "delta" in shown.settings else None,
            items=shown.settings["items"],
            decided=shown.detail.get("share_decided"),
            median=shown.detail.get("median"),
            paper_decided=paper.detail.get("share_decided"),
            **prefixed_cells("paper", paper),
        )
        rows.append(row if recommended else row | dict.fromkeys(("mean", "interval", "decided", "median")))
    has_deltas = any(row["certainty"] for row in rows)
    return build_table(
        "choice_replays",
        "Labels that each strategy would have needed",
        f"contrast|Comparison|text; {'certainty|1 − delta|text; ' if has_deltas else ''}strategy|Strategy|text; items|Items|integer; mean|Mean labels, first crossing|number; interval|99% CI|wide_interval; "
        "decided|Runs that decide|percent; median|Median|number; paper|Mean labels, crossing that stays|number; paper_interval|99% CI, crossing that stays|wide_interval; "
        "paper_decided|Runs with a crossing that stays|percent; reason|Undefined because|text",
        rows,
        "more",
        "Each strategy is drawn a thousand times from these labels with Hoeffding's bound, without ties. All use the same items: those with "
        "enough labels for the last strategy here, which half of the items must have. A run that does not decide counts with the full cost of its "
        f"items, so the mean is lower than the cost of decisions. As in {PAPER}: the crossing that stays, averaged only over "
        "runs that decide, which is too low if some do not. The intervals apply only to these items; other items would differ more."
        + COUNTING_NOTE
        * has_deltas,
    )


def agreement_table(estimates: Sequence["Estimate"]) -> Table:
    rows = [
        estimate_row(
            estimate,
            observed=estimate.detail["observed_by_side" if "side" in estimate.estimand else "observed_by_system"],
        )
        for estimate in estimates
    ]
    return build_table(
        "choice_agreement",
        "Agreement, by side and by system",
        "contrast|Comparison|text; what|Measure|text; estimate|Estimate|number; interval|95% CI|wide_interval; observed|Observed agreement|percent; "
        "n|n|integer; unit|Unit|text; reason|Undefined because|text",
        rows,
        "sure",
        f"{PAPER} print kappa by side of the screen. Third labels, requested if two differ, are left out. Intervals resample items, not "
        "people, so they apply only to these annotators. Low agreement about preferences is information about people, so no exclusion rule may use it.",
    )


def position_effects_table(estimates: Sequence["Estimate"]) -> Table:
    rows = [
        estimate_row(
            estimate,
            "effect",
            first=estimate.detail.get("share_first"),
            balanced=estimate.detail.get("balanced_share"),
        )
        for estimate in estimates
    ]
    return build_table(
        "choice_sides",
        "Did the side matter?",
        "contrast|Comparison|text; effect|Chosen more often for being first|fine_probability; interval|95% CI|fine_interval; p|p|p; "
        "first|Choices of the first side|percent; balanced|P(x chosen), sides balanced|probability; n|n annotators|integer; reason|Undefined because|text",
        rows,
        "sure",
        "P(x chosen | x first) minus P(x chosen | x second), annotators as clusters. Sides are random, so this does not bias the share.",
    )
