"""The plan of the study's size beside what the study reached, for each primary comparison."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db.models import Sum

from analysis.protocols import planned_block
from analysis.protocols.blocks import Block, apa
from analysis.protocols.blocks.cells import comparison_label, contrast_of, interval_bounds
from analysis.protocols.blocks.tables import Table, build_table
from analysis.stats.plan_inputs import StudySize, Target, Variation
from analysis.stats.plan_reached import components_of_variances
from analysis.stats.quick_power import Components, components, smallest_difference
from annotators.models import Payment
from studies.models import Study

from .plan_sentences import percent, power_text, preregistration_sentences

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

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
    found = None if prompts is None else _components(estimate, prompts)
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


def _components(estimate: "Estimate", prompts: int) -> Components | None:
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
        f" {apa.format_interval(reached['interval'], 'number', references=[one['null']])}"
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
        f"{power_text(planned['power'])}, Monte-Carlo error {apa.format_proportion(planned['power_error'], 3)}",
        "",
    )
    yield (
        f"Smallest difference found with power {power_text(compared['wanted_power'])}",
        _against_baseline(planned["detectable"], planned),
        _against_baseline(reached["detectable"], planned),
    )


def _number(value: float | None, digits: int = 2) -> str:
    return apa.format_number(value, digits)


def _against_baseline(difference: float | None, planned: dict[str, Any]) -> str:
    baseline = planned.get("baseline", 0.5)
    return "none" if difference is None else f"{percent(difference)} against {percent(baseline)}"
