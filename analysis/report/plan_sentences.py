"""What a plan of a study's size says in sentences: for its page, the preregistration and the methods. Pure Python."""

from typing import Any

from analysis.stats.margin_names import NONINFERIORITY
from analysis.stats.plan_budget import Budget
from analysis.stats.plan_claims import Comparisons, families_in_order
from analysis.stats.plan_inputs import EQUIVALENCE, KINDS, OF_SINGLE_OUTPUTS, StudySize, Target, Variation
from analysis.stats.priors import PRIORS
from studies.design.workload import minutes_text
from studies.models import SizePlan

# Kinds of answers whose headline is no probability: how a distance is shown.
SCALES = {
    "point": (1.0, "scale points", 2),
    "score": (1.0, "score points", 1),
    "sensitivity": (1.0, "units of d'", 2),
}
CORRECTION_LABELS = {"bonferroni": "Bonferroni", "holm": "Holm", "hommel": "Hommel"}


def percent(share: float) -> str:
    """Return a probability in whole percent, which never rounds to certainty.

    >>> percent(0.776), percent(0.9999)
    ('78 %', 'more than 99 %')
    """
    return "more than 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def power_text(power: float) -> str:
    """Return a power with two decimals, as papers print it. It never rounds to certainty.

    >>> power_text(0.554), power_text(0.9999), power_text(0.0)
    ('.55', 'above .99', '.00')
    """
    return "above .99" if power > 0.994 else f"{power:.2f}".removeprefix("0")


def scale_of(protocol: str) -> tuple[float, str, int]:
    """Return by what a distance on the scale of a protocol's headline is multiplied for readers, its unit, and decimals."""
    return SCALES.get(KINDS[protocol], (100.0, "points", 1))


def points_text(value: float, protocol: str) -> str:
    """Return a distance on the scale of a protocol's headline, with its unit.

    >>> points_text(0.072, "two_choice"), points_text(0.3, "relative"), points_text(4.2, "marks")
    ('7.2 points', '0.30 scale points', '4.2 score points')
    """
    factor, unit, digits = scale_of(protocol)
    return f"{factor * value:.{digits}f} {unit}"


def money_text(amount: float, currency: str) -> str:
    return f"{amount:,.0f} {currency}"


def counted(n: float, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "prompt"), counted(1200, "prompt"), counted(1, "person")
    ('1 prompt', '1,200 prompts', '1 person')
    """
    plural = "people" if noun == "person" else f"{noun}s"
    return f"{n:,.0f} {noun if n == 1 else plural}"


def times_text(times: float) -> str:
    """Return how often something happens.

    >>> times_text(1), times_text(12), times_text(7.0588)
    ('once', '12 times', '7.1 times')
    """
    return "once" if times == 1 else f"{times:.1f}".removesuffix(".0") + " times"


def size_sentence(size: StudySize, budget: Budget, currency: str, *, knows_fees: bool = True) -> str:
    """Return people, prompts, labels, minutes and money in a sentence."""
    who = counted(size.people, "person")
    if size.is_between_conditions:
        who = f"{who} in {size.conditions} conditions"
    most_of = f"every prompt {'read' if size.kind == 'chance' else 'judged'} {times_text(size.labels_per_prompt)}"
    return (
        f"{who}, {counted(size.prompts_each, 'prompt')} each, {most_of}, "
        f"{minutes_text(budget.minutes_each)} minutes, {money_text(budget.total, currency)} {'with' if knows_fees else 'without'} fees."
    )


def goal_text(size: StudySize, target: Target) -> str:
    """Return what the study is to find, as the end of a sentence that begins with its subject."""
    right = "right answers" if size.protocol in OF_SINGLE_OUTPUTS else ""
    assumed = f"{100 * target.difference:.4g} %"
    if target.is_sequential and target.goal == "difference":
        return f"With the anytime-valid stopping rule, finds {assumed} against {100 * target.baseline:.4g} %"
    if target.goal == "difference":
        there = " in another condition" if size.is_between_conditions else ""
        return f"Finds {assumed} {right} against {100 * target.baseline:.4g} %{there}".replace("  ", " ")
    margin = points_text(target.margin or 0.0, size.protocol)
    if size.is_between_conditions:
        rights = f"{assumed} and {100 * target.baseline:.4g} % of answers are right"
        return f"Shows that two conditions differ by less than {margin}, if {rights},"
    if target.goal == EQUIVALENCE:
        rule = "With the anytime-valid stopping rule, shows" if target.is_sequential else "Shows"
        claim = f"{rule} that x and y differ by less than {margin}"
    elif target.goal == NONINFERIORITY:
        claim = f"Shows that x is not worse than y by more than {margin}"
    else:
        claim = f"Shows that x is better than y by more than {margin}"
    return f"{claim}, if {assumed} prefer x,"


def inconclusive_sentence(size: StudySize, target: Target, half_width: float) -> str:
    """Return what a result without a claim would mean."""
    width = points_text(half_width, size.protocol)
    compared = "conditions" if size.is_between_conditions else "systems"
    if target.goal == EQUIVALENCE:
        return f"If equivalence is not shown, the {compared} need not differ: the interval reaches {width} to both sides of the estimate."
    # An interval that holds the null has one end at least half its width away from it.
    return f"An inconclusive result would not mean that the {compared} are equal: a difference of {width} would still be possible."


def preregistration_sentences(plan: SizePlan, currency: str) -> list[str]:
    """Return the chosen plan as a paragraph of a preregistration: what was assumed, and what the simulated studies found."""
    inputs, planned = plan.inputs, plan.result["plan"]["planned"]
    size, target = StudySize(**inputs["size"]), Target(**inputs["target"])
    found = [
        f"The size was planned before the first answer: {size_sentence(size, Budget(**plan.result['budget']), currency)} "
        f"There are {counted(size.prompts, 'prompt')}.",
        f"{goal_text(size, target)} with a power of {power_text(planned['power'])}: the share of {planned['runs']:,} simulated studies, with "
        f"a Monte-Carlo error of {_decimals(planned['power_error'], 2)}. {_level_text(target)}",
        *_comparisons_sentences(Comparisons.from_dict(inputs.get("comparisons", {})), target, plan.result),
        _variation_sentence(Variation(**inputs["variation"]), inputs["prior"], plan.result["plan"]["settings"]),
    ]
    if planned["half_width"] is not None:
        found += [
            f"The expected interval is ± {points_text(planned['half_width'], size.protocol)}.",
            inconclusive_sentence(size, target, planned["half_width"]),
        ]
    return found


def _level_text(target: Target) -> str:
    level = f"The significance level is {_decimals(target.significance, 2)}"
    return f"{level}." if target.tests == 1 else f"{level}, divided by {target.tests} comparisons."


def comparisons_text(comparisons: Comparisons) -> str:
    """Return how many comparisons there are, and how their families are corrected.

    >>> from analysis.stats.plan_claims import PlannedClaim
    >>> comparisons_text(Comparisons(claims=(PlannedClaim(name="a > b", x="a", y="b", family="primary"),)))
    '1 in primary (Bonferroni)'
    """
    return ", ".join(
        f"{sum(claim.family == family.name for claim in comparisons.claims)} in {family.name} ({CORRECTION_LABELS[family.method]}"
        f"{f', after {family.after}' if family.after else ''})"
        for family in families_in_order(comparisons.claims, comparisons.families)
    )


def _comparisons_sentences(comparisons: Comparisons, target: Target, result: dict[str, Any]) -> list[str]:
    found = result.get("comparisons")
    if not found:  # one comparison, or a plan from before comparisons were simulated together
        return []
    declared = comparisons_text(comparisons) or f"{target.tests} ({CORRECTION_LABELS[comparisons.method]})"
    return [
        f"With the correction of several comparisons, {declared}, at least one is shown with a power of {power_text(found['any_shown'])} and all "
        f"are with a power of {power_text(found['all_shown'])}."
    ]


def _variation_sentence(variation: Variation, prior: str, settings: dict[str, Any]) -> str:
    public = next((one.label for one in PRIORS if one.key == prior), "")
    source = public or variation.source or prior or "entered by hand"
    drawn = f", with its uncertainty ({settings['n_draws']} draws)" if settings.get("n_draws") else ""
    return (
        f"In units of one person's answer about one prompt, people have a standard deviation of {variation.sd_people:.2g} and prompts of "
        f"{variation.sd_prompts:.2g} (source: {source}{drawn})."
    )


def _decimals(value: float, digits: int) -> str:
    """Return a number below 1 as papers print it."""
    return f"{value:.{digits}g}".removeprefix("0")
