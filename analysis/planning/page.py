"""What the page Plan shows: approximate numbers of the current inputs, and what a stored plan says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.report.planned import (
    CORRECTION_LABELS,
    counted,
    money_text,
    percent,
    points_text,
    preregistration_sentences,
    scale_of,
)
from analysis.stats.planning.closed_forms import quick_plan, smallest_difference
from analysis.stats.planning.comparisons import BY_HAND, quick_claims
from analysis.stats.planning.inputs import StudySize
from analysis.stats.planning.priors import OBSERVED_DIFFERENCES, PRIORS
from analysis.stats.planning.sizes import other_protocols, plan_budget
from studies.design.workload import minutes_text
from studies.models import SizePlan

from .advice import (
    advice_sentences,
    assurance_sentence,
    finding_sentence,
    live_power,
    reach_sentence,
    size_and_cost_sentence,
)
from .inputs import PlanInputs, claim_labels
from .pilots import ResolvedPrior
from .results import SHAPES, design_curves

# A simulated power that differs by more than this from the formulas is said to.
SURPRISING = 0.05
# What the percentages of a difference are about, by the kind of answers.
PERCENTAGES = {
    "preference": "The percentages say how often people prefer the better system.",
    "superiority": "The percentages say how often a rating of the better system is higher than a rating of the other system.",
}
DESIGN_NAMES = {
    "fixed": "Fixed size",
    "group": "Five looks",
    "anytime": "After every person",
}


def live_context(
    inputs: PlanInputs,
    currency: str,
    stored: SizePlan | None = None,
    pilot: ResolvedPrior | None = None,
    *,
    knows_fees: bool = True,
    labels: Mapping[str, str] | None = None,
    minutes: float | None = None,
) -> dict[str, Any]:
    """Return the approximate numbers of a plan, and the simulated ones if it is ``stored``. It loads no numpy.

    ``pilot``: where the variation comes from. The power is then averaged over what it leaves open. ``labels``: the words for
    the names of comparisons (``declared.claim_labels``). ``minutes``: those that people read, if they are known.
    """
    size, target = inputs.size, inputs.target
    live = live_power(inputs, () if pilot is None else pilot.draws)
    found = smallest_difference(size, target, inputs.variation) if target.goal == "difference" else None
    return {
        "size_sentence": size_and_cost_sentence(inputs, currency, knows_fees=knows_fees, minutes=minutes),
        "finding_sentence": finding_sentence(size, target, live.power, live.half_width, "approximate")
        if stored is None
        else _simulated_sentence(inputs, stored),
        "stored": stored_context(stored, currency) if stored else None,
        "pilot_sentence": "" if pilot is None else pilot.sentence,
        "assured": assurance_sentence(live) if stored is None else "",
        "recruits": _recruits(inputs, currency, knows_fees),
        "is_difference": target.goal == "difference",
        "reach": reach_sentence(inputs, found, live.power),
        "percentage": PERCENTAGES.get(size.kind, "") if size.headline.outputs > 1 else "",
        "advice": advice_sentences(inputs) if stored is None else stored.result["advice"],
        "comparisons": _comparison_rows(inputs, labels or {}) if stored is None else [],
        "curves": design_curves(inputs, currency, () if pilot is None else pilot.own, labels),
        "protocols": _protocol_rows(inputs, currency),
    }


def _simulated_sentence(inputs: PlanInputs, stored: SizePlan) -> str:
    planned = stored.result["plan"]["planned"]
    return finding_sentence(inputs.size, inputs.target, planned["power"], planned["half_width"], "simulated")


def _recruits(inputs: PlanInputs, currency: str, knows_fees: bool) -> str:
    budget = plan_budget(inputs.size, inputs.pace, inputs.prices)
    arriving = f" of {counted(budget.arriving, 'person')} who arrive" if budget.arriving > budget.starting else ""
    screened = f", screened-out people {money_text(budget.screen_outs, currency)}" if budget.screen_outs else ""
    start = f"{counted(budget.starting, 'person')}{arriving} start, {budget.finishing} finish"
    if not budget.total:
        return f"{start}, {inputs.size.people} count."
    return (
        f"{start} and are paid, {inputs.size.people} count. "
        f"Each gets {budget.reward:.2f} {currency}. Pay {money_text(budget.pay, currency)}{screened}, "
        f"fees {money_text(budget.fees, currency) if knows_fees else 'not counted'}."
    )


def _protocol_rows(inputs: PlanInputs, currency: str) -> list[dict[str, Any]]:
    """Return the same question in other protocols. A margin is on the scale of its own protocol, so a plan with one has no others."""
    others = other_protocols(inputs.size) if inputs.target.goal == "difference" else []
    rows = []
    for size in (inputs.size, *others) if others else ():
        budget = plan_budget(size, inputs.pace.in_protocol(inputs.size.protocol, size.protocol), inputs.prices)
        target = inputs.target if size == inputs.size else replace(inputs.target, stopping="none")
        quick = quick_plan(size, target, inputs.variation)
        rows.append(
            _protocol_row(size, budget.as_dict(), quick.population, currency)
            | {
                "is_planned": size == inputs.size,
                "power": percent(quick.power),
                "width": f"± {points_text(quick.half_width, size.protocol)}",
            }
        )
    return rows


def _comparison_rows(inputs: PlanInputs, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the approximate power of each comparison after the correction. Comparisons that differ only by their name are one row."""
    claims, families = inputs.comparisons.claims_of(inputs.target)
    after = {family.name: family.after for family in families}
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in quick_claims(inputs.size, inputs.target, inputs.variation, claims, families):
        claim = one.claim
        key = (claim.family, claim.goal, claim.margin, claim.significance)
        row = rows.setdefault(
            key,
            {
                "names": [],
                "family": _family_text(claim.family, one.method, one.family_size, after.get(claim.family, "")),
                "level": f"{100 * claim.significance / one.family_size:.3g} %",
                "power": percent(one.power)
                if one.method == "bonferroni"
                else f"{percent(one.power)} to {percent(one.power_at_most)}",
            },
        )
        row["names"].append(labels.get(claim.name, claim.name))
    return list(rows.values())


def _family_text(name: str, method: str, size: int, after: str) -> str:
    waits = f", only if all of {after} is shown" if after else ""
    return f"{'' if name == BY_HAND else f'{name}: '}{CORRECTION_LABELS[method]}, {counted(size, 'comparison')}{waits}"


def _simulated_comparisons(plan: SizePlan, inputs: PlanInputs) -> dict[str, Any] | None:
    found = plan.result.get("comparisons")
    if not found:
        return None
    labels = claim_labels(plan.study)
    after = {family.name: family.after for family in inputs.comparisons.families}
    return {
        "runs": found["runs"],
        "all": _with_error(found["all_shown"], found["all_shown_error"]),
        "any": _with_error(found["any_shown"], found["any_shown_error"]),
        "rows": [
            {
                "name": labels.get(one["name"], one["name"]),
                "family": _family_text(one["family"], one["method"], one["family_size"], after.get(one["family"], "")),
                "power": _with_error(one["power"], one["power_error"]),
                "alone": _with_error(one["alone"], one["alone_error"]),
            }
            for one in found["claims"]
        ],
    }


def _protocol_row(size: StudySize, budget: Mapping[str, Any], population: str, currency: str) -> dict[str, Any]:
    return {
        "protocol": size.headline.label,
        "people": size.people,
        "prompts_each": size.prompts_each,
        "minutes": minutes_text(budget["minutes_each"]),
        "money": money_text(budget["total"], currency),
        "about": "people and prompts" if population == "people_and_prompts" else "people, these prompts",
    }


def public_numbers() -> dict[str, Any]:
    """Return the observed differences and variations, each with its source."""
    return {
        "differences": [{"text": f"{100 * one.probability:.1f}", "observed": one} for one in OBSERVED_DIFFERENCES],
        "priors": PRIORS,
    }


def _with_error(value: float | None, error: float | None, scale: float = 100, unit: str = " %") -> str:
    """Return a number with its Monte-Carlo standard error."""
    if value is None:
        return "–"
    digits = 1 if scale == 100 or abs(scale * value) >= 10 else 3
    own = f"{scale * value:.{digits}f}{unit}"
    return own if error is None else f"{own} (± {scale * error:.{max(digits, 2)}f})"


def stored_context(plan: SizePlan, currency: str) -> dict[str, Any]:
    """Return what the simulated studies of a stored plan said, beside the approximate numbers."""
    inputs = PlanInputs.from_json(plan.inputs)
    size, target, result = inputs.size, inputs.target, plan.result
    simulated = result["plan"]
    planned, wrong = simulated["planned"], simulated["false_decision"]
    quick = quick_plan(size, target, inputs.variation)
    scale, unit, _ = scale_of(size.protocol)
    found = smallest_difference(size, target, inputs.variation) if target.goal == "difference" else None
    rows = [
        ("Power", percent(quick.power), _with_error(planned["power"], planned["power_error"])),
        (
            "Interval, half its width",
            points_text(quick.half_width, size.protocol),
            _with_error(planned["half_width"], planned["half_width_error"], scale, f" {unit}"),
        ),
        (
            f"Smallest difference found with {percent(target.wanted)} power",
            "–" if found is None else f"{100 * found:.1f} %",
            _with_error(simulated["detectable"], simulated["detectable_error"]),
        ),
        ("Any decision", "–", _with_error(planned["decided"], planned["decided_error"])),
        (
            "A claim of the opposite",
            "–",
            _with_error(planned["wrong_direction"], planned["wrong_direction_error"]),
        ),
        (
            _wrong_label(target.goal),
            f"{100 * target.level:.3g} % at most",
            _with_error(wrong["power"], wrong["power_error"]),
        ),
    ]
    return {
        "plan": plan,
        "is_outdated": simulated["settings"]["method_version"] != inputs.method_version,
        "seed": str(plan.seed),
        "sentence": size_and_cost_sentence(inputs, currency),
        "runs": planned["runs"],
        "rows": rows,
        "by_bets": percent(planned["by_bets"]) if planned["by_bets"] > 0.005 else "",
        "is_surprising": abs(planned["power"] - quick.power) > SURPRISING + 2 * planned["power_error"],
        "protocols": _simulated_protocols(result, currency),
        "comparisons": _simulated_comparisons(plan, inputs),
        "is_sequential": target.is_sequential,
        "designs": [
            _design_row(one, currency) | {"is_declared": target.is_sequential and one["name"] == "anytime"}
            for one in result["sequential"]["designs"]
        ],
        "looks": _look_rows(result["sequential"]["designs"]),
        "no_designs": result["sequential"]["reason"],
        "prior": next((one.label for one in PRIORS if one.key == inputs.prior), inputs.variation.source),
        "inputs": inputs,
        "preregistration": preregistration_sentences(plan, currency),
    }


def _wrong_label(goal: str) -> str:
    if goal == "difference":
        return "A claim where there is no difference"
    return "A claim where the difference is the margin"


def _simulated_protocols(result: Mapping[str, Any], currency: str) -> list[dict[str, Any]]:
    found = result["plan"]["protocols"]
    if len(found) < 2:
        return []
    rows = []
    for one, budget in zip(found, result["budgets"]["protocols"], strict=True):
        size = StudySize(**one["size"])
        scale, unit, _ = scale_of(size.protocol)
        rows.append(
            _protocol_row(size, budget, one["population"], currency)
            | {
                "is_planned": one["kind"] == "planned",
                "power": _with_error(one["power"], one["power_error"]),
                "width": f"± {_with_error(one['half_width'], None, scale, ' ' + unit)}",
            }
        )
    return rows


def _design_row(one: Mapping[str, Any], currency: str) -> dict[str, Any]:
    return {
        "name": DESIGN_NAMES[one["name"]],
        "shape": SHAPES.get(one["shape"], "anytime-valid bets" if one["name"] == "anytime" else ""),
        "power": _with_error(one["power"], one["power_error"]),
        "wrong": _with_error(one["wrong"], one["wrong_error"]),
        "people": f"{one['expected_people']:.0f}",
        "most_people": one["most_people"],
        "money": money_text(one["expected_money"], currency),
        "most_money": money_text(one["most_money"], currency),
    }


def _look_rows(designs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "shape": SHAPES[one["shape"]],
            "people": look["people"],
            "p": f"{look['p']:.4f}" if look["p"] >= 0.00005 else "below 0.0001",
            "stops": percent(look["stops"]),
        }
        for one in designs
        if one["name"] == "group"
        for look in one["looks"]
    ]
