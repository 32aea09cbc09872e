"""Compute x's share of the choices, with the rule that decided, and the paper's decision over items."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import is_sequential
from analysis.protocols.blocks.populations import about_groups
from studies.protocols.two_choice import PREFERENCE

from . import layouts
from .labels import ComparisonLabels, logged_stopping_outcome

if TYPE_CHECKING:
    from analysis.stats.arrays import FloatArray
    from analysis.stats.results import Estimate

# Map anytime-valid verdicts to the verdicts that all comparisons share.
VERDICTS = {
    "a_better": "different",
    "b_better": "different",
    "equivalent": "equivalent",
    "different_but_trivial": "different_but_trivial",
}


def preference_blocks(comparisons: Sequence[ComparisonLabels], recommended: tuple["Estimate", ...]) -> list[Block]:
    """Return the recommended and the paper's blocks of all sections."""
    paper = tuple(labels.comparison.tag_estimate(paper_decision_estimate(labels), PREFERENCE) for labels in comparisons)
    return [
        Block(
            "choice.preference",
            "Share of choices for x",
            estimates=recommended,
            conclusions=build_planned_conclusions(recommended, preference_phrases, include_estimand_in_name=False),
            tables=[
                layouts.decisions_table(
                    recommended,
                    paper,
                    [logged_stopping_outcome(labels) for labels in comparisons],
                )
            ],
            figures=[
                layouts.shares_figure(recommended, paper),
                *(
                    _running_share_figure(f"running_share_{number}", *one)
                    for number, one in enumerate(zip(comparisons, recommended, paper, strict=True), 1)
                ),
            ],
            note="All annotators have the same weight, regardless of their number of labels. With a stopping rule, the interval and the p-value are "
            "valid whenever it stopped. Without one, the test assumes a number of annotators fixed beforehand.",
        ),
        Block(
            "choice.preference",
            f"Share of items on which x was chosen, as in {layouts.PAPER}",
            "paper",
            estimates=paper,
            note="One answer per item by the labelling strategy, with Hoeffding's bound after each. A running study can use the first crossing; "
            "published tables use the crossing that stays to the end. Neither keeps its error rate with so many checks.",
        ),
    ]


def _running_share_figure(
    name: str, labels: ComparisonLabels, recommended: "Estimate", paper: "Estimate"
) -> layouts.Figure:
    """Return the paper's Figure 1 for one comparison: with the anytime-valid rule over people, else with its bound over items."""
    from analysis.stats.sequential import hoeffding_running_share

    status = labels.anytime_status
    if status is not None and status.running is not None:
        sequence = "its confidence sequence, which holds after all annotators at once"
        return layouts.running_share_figure(
            name, recommended, status.running, unit="annotator", bounds=sequence, decided_at=status.stopped_at
        )
    running = hoeffding_running_share(_values_up_to_open_items(labels), delta=labels.settings["delta"])
    bound = f"Hoeffding's bound as in {layouts.PAPER}, which holds after one number of items only"
    decided_at = paper.detail.get("n_decision")
    return layouts.running_share_figure(name, recommended, running, unit="item", bounds=bound, decided_at=decided_at)


PHRASES = ConclusionPhrases(
    above_claim="{x} was chosen over {y}{about}.",
    below_claim="{x} was chosen less often than {y}{about}.",
    same="{x} and {y} are indistinguishable{about}",
    open="It remains open whether {x} or {y} is chosen more often{about}.",
    before="Annotators chose {x} over {y} in",
    after=" of their choices on average",
    symbol="P({x} chosen over {y})",
    subject="{x} and {y}{about}",
    kind="percent",
)


def preference_phrases(estimate: "Estimate") -> ConclusionPhrases:
    """Return the phrases of a comparison, with the name of its interval and what its stopping rule did."""
    interval = "confidence sequence" if is_sequential(estimate) else "confidence interval"
    phrases = PHRASES.about_comparison(estimate)
    return replace(phrases, interval=interval, closing_text=_stopping_sentence(estimate))


def _stopping_sentence(estimate: "Estimate") -> str:
    """Return a sentence about what the stopping rule did, or '' if there was none."""
    if not is_sequential(estimate):
        return ""
    return f"{_stopping_outcome(estimate)}{_family_of_rule(estimate)}"


def _family_of_rule(estimate: "Estimate") -> str:
    """Return a sentence if the rule's threshold does not count all comparisons of the family, which no row declared."""
    if not (family := estimate.detail.get("family_not_counted")):
        return ""
    name, size = family
    return f" Its threshold counts the primary comparisons of its section only, not all {size} of the family {name}."


def _stopping_outcome(estimate: "Estimate") -> str:
    detail = estimate.detail
    if detail.get("stopped_at"):
        overrun = detail.get("labels_overrun") or 0
        after = f" {overrun} label{'s' if overrun != 1 else ''} came after that and change nothing." if overrun else ""
        return f" The stopping rule decided after {detail['stopped_at']} {estimate.unit}s.{after}"
    if detail.get("outcome") == "budget_exhausted":
        return " All planned annotators have answered, and the stopping rule has not decided."
    return " The stopping rule has not decided."


def recommended_estimate(labels: ComparisonLabels, context: AnalysisContext) -> "Estimate":
    """Return the estimate of the anytime-valid rule with the fixed-n test as a companion, or only the fixed-n test."""
    fixed = _fixed_n_estimate(labels, context)
    status = labels.anytime_status
    if status is None:
        return fixed
    # The data chose n, so the p-value would claim too much. The estimate and interval are kept for comparison.
    companion = replace(fixed, test=None, sensitivity=(), analysis="choice.preference.all_labels")
    outcome = (
        status.verdict if status.verdict != "inconclusive" or not _is_target_reached(labels) else "budget_exhausted"
    )
    return replace(
        status.estimate,
        analysis="choice.preference.sequential",
        sensitivity=(companion,),
        # The units of the evidence are people, so the claim is about exactly these prompts.
        settings={**status.estimate.settings, "population": "people"},
        detail={
            **status.estimate.detail,
            "n_prompts": labels.shares["prompt"].nunique(),
            "outcome": outcome,
            "stopped_at": status.stopped_at,
            "labels_overrun": status.n_overrun,
            "verdict": VERDICTS.get(str(status.verdict), "inconclusive"),
        },
    )


def _is_target_reached(labels: ComparisonLabels) -> bool:
    """Return whether the number of submissions has reached the target, without third labels."""
    target = labels.section.study.target_n
    return bool(target and labels.n_submitted >= target)


def _fixed_n_estimate(labels: ComparisonLabels, context: AnalysisContext) -> "Estimate":
    """Return x's share at an n fixed beforehand."""
    from analysis.stats import choice

    values, people, prompts = labels.values_annotators_and_prompts
    estimate = choice.annotator_weighted_preference_share(
        values,
        people,
        prompts,
        population=labels.comparison.population,
        level=context.level,
    )
    population = labels.comparison.population
    estimate = about_groups(estimate, labels.rows_with_values, population)
    # Use the comparison's own level, which may differ from the report's.
    estimate = labels.comparison.with_equivalence_tests(estimate, null=0.5)
    n_ties = int((values == 0.5).sum())
    skipped = int((labels.shares["skip_reason"] != "").sum())
    return replace(estimate, detail={**estimate.detail, "n_ties": n_ties, "n_skipped": skipped})


def _values_up_to_open_items(labels: ComparisonLabels) -> "FloatArray":
    """Return the answers of the items. With max three they end before the first item that waits for a third label.

    Such items are in disagreement. Without them, the others would look too unanimous.
    """
    is_complete = labels.answers.is_complete
    if labels.settings["strategy"] != "max_three" or is_complete.all():
        return labels.answers.values
    return labels.answers.values[: int(is_complete.argmin())]


def paper_decision_estimate(labels: ComparisonLabels) -> "Estimate":
    """Return the paper's decision at the first crossing, with the crossing that stays as a companion."""
    from analysis.stats import sequential, stopping_boundaries
    from analysis.stats.results import ResultWarning

    settings = labels.settings
    values = _values_up_to_open_items(labels)
    warnings: tuple[ResultWarning, ...] = ()
    if len(values) < len(labels.answers.values):
        n_open = int((~labels.answers.is_complete).sum())
        warnings = (ResultWarning("open_items", "warn", {"n_open": n_open, "n_used": len(values)}),)
    first, final = (
        sequential.hoeffding_decision(values, delta=settings["delta"], reading=reading).labelled(
            analysis=f"choice.hoeffding.{reading}", estimand="share of items on which x was chosen"
        )
        for reading in stopping_boundaries.READINGS
    )
    final = replace(final, warnings=(*final.warnings, *warnings))
    return replace(first, warnings=(*first.warnings, *warnings), sensitivity=(final,))
