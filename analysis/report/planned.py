"""What a plan of a study's size says in sentences: for its page, the preregistration and the methods. Pure Python."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db.models import Sum

from analysis.protocols import planned_block
from analysis.protocols.blocks import Block, cells
from analysis.protocols.blocks.cells import comparison_label, contrast_of, interval_bounds
from analysis.protocols.blocks.layouts import Table, build_table
from analysis.stats.plain_records import NONINFERIORITY
from analysis.stats.planning.closed_forms import Components, components, smallest_difference
from analysis.stats.planning.comparisons import Comparisons, components_of_variances, families_in_order
from analysis.stats.planning.inputs import EQUIVALENCE, HEADLINES, StudySize, Target, Variation
from analysis.stats.planning.priors import PRIORS
from analysis.stats.planning.sizes import Budget
from annotators.models import Payment
from studies.design.workload import minutes_text
from studies.models import SizePlan, Study

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


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
    return SCALES.get(HEADLINES[protocol].kind, (100.0, "points", 1))


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
    fees = " with fees" if budget.fees else "" if knows_fees else " without fees"
    return (
        f"{who}, {counted(size.prompts_each, 'prompt')} each, {most_of}, "
        f"{minutes_text(budget.minutes_each).removesuffix('.0')} minutes, {money_text(budget.total, currency)}{fees}."
    )


def goal_text(size: StudySize, target: Target) -> str:
    """Return what the study is to find, as the end of a sentence that begins with its subject."""
    right = "right answers" if size.headline.outputs == 1 else ""
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

    >>> from analysis.stats.planning.comparisons import PlannedClaim
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


# The plan of the study's size beside what the study reached, for each primary comparison.


NOTE = (
    "Variances are those of one answer. The power is of the plan; a power computed from the observed difference would only repeat "
    "its p-value. The smallest difference that the reached size finds uses the planned variances."
)


def compare_plan_with_study(study: Study, blocks: Sequence[Block]) -> dict[str, Any]:
    """Return the plan in sentences, and what was planned and reached for each primary comparison. Empty without a chosen plan."""
    plan = study.size_plan
    if plan is None:
        return {}
    inputs, result = plan.inputs, plan.result["plan"]
    size, target, variation = StudySize(**inputs["size"]), Target(**inputs["target"]), Variation(**inputs["variation"])
    planned = result["planned"]
    promised = {
        "value": planned["value"],
        "half_width": planned["half_width"],
        "components": components(size, target, variation).as_dict(),
        "people": size.people,
        "prompts": size.prompts,
        "answers": size.answers,
        "pay": plan.result["budget"]["pay"],
        "power": planned["power"],
        "power_error": planned["power_error"],
        "detectable": result["detectable"],
    }
    if size.is_between_conditions:
        promised["baseline"] = target.baseline
    pay = _pay(study)
    return {
        "fingerprint": plan.fingerprint,
        "wanted_power": target.wanted,
        "currency": study.currency,
        "sentences": preregistration_sentences(plan, study.currency),
        "comparisons": [
            {
                "comparison": comparison_label(estimate),
                "null": size.null,
                "planned": promised,
                "reached": _reached(estimate, size, target, variation) | {"pay": pay},
            }
            for estimate in _headlines(blocks, size)
        ],
    }


def _headlines(blocks: Sequence[Block], size: StudySize) -> "Iterator[Estimate]":
    for block in blocks:
        if block.mode != "recommended" or block.name != planned_block(size.protocol):
            continue
        for estimate in block.estimates:
            contrast = contrast_of(estimate)
            is_primary = contrast.get("is_planned") and contrast.get("role") == "primary"
            if is_primary and estimate.settings.get("null") == size.null:
                yield estimate


def _pay(study: Study) -> float | None:
    """Return what annotators were or will be paid by the ledger, or None if it has no payment."""
    State = Payment.State
    owed = Payment.objects.filter(
        assignment__study=study, currency=study.currency, state__in=[State.PAID, State.ORDERED, State.DUE]
    ).aggregate(total=Sum("amount"))["total"]
    return None if owed is None else float(owed)


def _reached(estimate: "Estimate", size: StudySize, target: Target, variation: Variation) -> dict[str, Any]:
    bounds, detail = interval_bounds(estimate), estimate.detail
    prompts = detail.get("n_items") or detail.get("n_prompts")
    # An answer about all prompts that a person read belongs to none of them.
    answers = None if prompts is None else estimate.n_rows
    found = None if prompts is None else components_of_estimate(estimate, prompts)
    return {
        "value": estimate.estimate,
        "interval": bounds,
        "half_width": (bounds[1] - bounds[0]) / 2 if bounds else None,
        "components": found and found.as_dict(),
        "people": estimate.n,
        "prompts": prompts,
        "answers": answers,
        "detectable": _detectable(estimate.n, prompts, answers, size, target, variation),
    }


def components_of_estimate(estimate: "Estimate", prompts: int) -> Components | None:
    """Return the variances of one answer behind a reported mean, or None if they cannot be separated."""
    detail = estimate.detail
    names = ("variance_annotators", "variance_items", "variance_two_way")
    if estimate.estimate is None or not estimate.n_rows or any(detail.get(name) is None for name in names):
        return None
    return components_of_variances(
        estimate.estimate,
        *(detail[name] for name in names),
        people=estimate.n,
        prompts=prompts,
        answers=estimate.n_rows,
    )


def _detectable(
    people: int, prompts: int | None, answers: int | None, size: StudySize, target: Target, variation: Variation
) -> float | None:
    """Return the smallest difference that the reached size finds with the wanted power, if people and prompts vary as planned."""
    if target.goal != "difference" or people < (2 if size.is_between_conditions else 1):
        return None
    each = size.prompts_each if answers is None else max(1, round(answers / people))
    prompts = max(1, min(prompts or size.prompts, people * each))
    reached = replace(
        size,
        people=people,
        prompts=prompts,
        prompts_each=min(each, prompts),
        conditions=2 if size.is_between_conditions else 1,
    )
    return smallest_difference(reached, target, variation)


def planned_and_reached_table(compared: dict[str, Any]) -> Table:
    """Return a row for each quantity of each primary comparison. Its numbers are in `planned_and_reached` of the report as JSON."""
    comparisons = compared.get("comparisons", ())
    title, columns = "Planned and reached", "quantity|Quantity|text; planned|Planned|text; reached|Reached|text"
    if len(comparisons) == 1:
        title = f"{title}: {comparisons[0]['comparison']}"
    else:
        columns = f"comparison|Comparison|text; {columns}"
    rows = [
        {"comparison": one["comparison"], "quantity": quantity, "planned": planned, "reached": reached}
        for one in comparisons
        for quantity, planned, reached in _quantities(one, compared)
    ]
    return build_table("planned_and_reached", title, columns, rows, "sure", NOTE)


def _quantities(one: dict[str, Any], compared: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    planned, reached = one["planned"], one["reached"]
    interval = (
        f" {cells.format_interval(reached['interval'], 'number', references=[one['null']])}"
        if reached["interval"]
        else ""
    )
    yield "Estimate", _number(planned["value"]), f"{_number(reached['value'])}{interval}"
    yield "Half the width of its interval", _number(planned["half_width"], 3), _number(reached["half_width"], 3)
    for name, words in (("people", "over people"), ("prompts", "over prompts"), ("rest", "of the rest")):
        found = reached["components"]
        yield (
            f"Variance {words}",
            _number(planned["components"][name], 4),
            _number(found[name], 4) if found else "not estimated",
        )
    for name in ("people", "prompts", "answers"):
        yield name.capitalize(), f"{planned[name]:,}", "" if reached[name] is None else f"{reached[name]:,}"
    currency = compared["currency"]
    owed = "nothing in the ledger" if reached["pay"] is None else f"{reached['pay']:,.2f} {currency}"
    yield "Pay without fees", f"{planned['pay']:,.2f} {currency}", owed
    yield (
        "Power of the plan",
        f"{power_text(planned['power'])}, Monte-Carlo error {cells.format_proportion(planned['power_error'], 3)}",
        "",
    )
    yield (
        f"Smallest difference found with power {power_text(compared['wanted_power'])}",
        _against_baseline(planned["detectable"], planned),
        _against_baseline(reached["detectable"], planned),
    )


def _number(value: float | None, digits: int = 2) -> str:
    return cells.format_number(value, digits)


def _against_baseline(difference: float | None, planned: dict[str, Any]) -> str:
    baseline = planned.get("baseline", 0.5)
    return "none" if difference is None else f"{percent(difference)} against {percent(baseline)}"
