"""What a plan says in sentences. Pure Python: the page shows them while somebody types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.report.planned import (
    counted,
    goal_text,
    inconclusive_sentence,
    money_text,
    percent,
    points_text,
    size_sentence,
    times_text,
)
from analysis.stats.plain_records import PlainRecord
from analysis.stats.planning.closed_forms import QuickPlan, quick_assurance, quick_plan, spread_draws
from analysis.stats.planning.inputs import FEWEST_PEOPLE, FEWEST_PROMPTS, MOST_PROMPTS, StudySize, Target, Variation
from analysis.stats.planning.sizes import most_power_by_people, needed_both, needed_people, needed_prompts, plan_budget

from .inputs import PlanInputs

# A power that rises by less than this with any number of people or prompts does not rise.
NO_HELP = 0.02


def size_and_cost_sentence(
    inputs: PlanInputs, currency: str, *, knows_fees: bool = True, minutes: float | None = None
) -> str:
    """Return people, prompts, minutes and money in a sentence, without the money where nobody is paid. ``minutes``: those that people read."""
    budget = plan_budget(inputs.size, inputs.pace, inputs.prices)
    if minutes is not None:
        budget = replace(budget, minutes_each=minutes)
    said = size_sentence(inputs.size, budget, currency, knows_fees=knows_fees)
    return said if budget.total else f"{said.rpartition(f', {money_text(0, currency)}')[0]}."


def finding_sentence(size: StudySize, target: Target, power: float, half_width: float | None, how: str) -> str:
    """Return the power and the expected interval. ``how``: approximate or simulated."""
    said = f"{goal_text(size, target)} with {percent(power)} power ({how})."
    return said if half_width is None else f"{said} Expected interval: ± {points_text(half_width, size.protocol)}."


def advice_sentences(inputs: PlanInputs) -> list[str]:
    """Return which resource is short, what the claim is about, and what an inconclusive result would mean."""
    size, target = inputs.size, inputs.target
    quick = quick_plan(size, target, inputs.variation)
    return [
        *_resource_sentences(inputs, quick),
        *_labels_sentences(inputs, quick),
        *_population_sentences(size, target, inputs.variation, quick),
        inconclusive_sentence(size, target, quick.half_width),
    ]


def simulated_advice(inputs: PlanInputs, plan: Mapping[str, Any]) -> list[str]:
    """Return the same from the simulated studies of a plan (`StudyPlan.as_dict`), each power with its Monte-Carlo error."""
    size, target, planned = inputs.size, inputs.target, plan["planned"]
    wanted = percent(target.wanted)
    power = _with_error(planned)
    if planned["power"] >= target.wanted:
        said = [f"The size is enough: its power is {power}, and {wanted} is wanted."]
    else:
        said = [f"The power is {power}, and {wanted} is wanted."]
        said += _simulated_resource(inputs, plan, "people", "people", f"the same {counted(size.prompts, 'prompt')}")
        if size.kind != "chance":
            own = f"the same {counted(size.people, 'person')} and as many answers"
            said += _simulated_resource(inputs, plan, "prompts", "prompts", own)
        if both := plan.get("needed_both"):
            enough = StudySize(**both["size"])
            said.append(
                f"Both together help: with {_both(enough)} the power is {_with_error(both)}{_extra_cost(inputs, enough)}."
            )
        elif _is_out_of_reach(plan, target.wanted):
            said.append(f"{_nothing_reaches(wanted).capitalize()}")
    quick = quick_plan(size, target, inputs.variation)
    said += _population_sentences(size, target, inputs.variation, quick)
    half_width = quick.half_width if planned["half_width"] is None else planned["half_width"]
    return [*said, inconclusive_sentence(size, target, half_width)]


def _with_error(simulated: Mapping[str, Any]) -> str:
    return f"{percent(simulated['power'])} (± {100 * simulated['power_error']:.0f} points)"


def _is_out_of_reach(plan: Mapping[str, Any], wanted: float) -> bool:
    """Return whether no simulated size has the wanted power."""
    sizes = [*plan["people"], *plan["prompts"], plan["needed_people"], plan["needed_prompts"]]
    return not any(one is not None and one["power"] >= wanted for one in sizes)


def _simulated_resource(inputs: PlanInputs, plan: Mapping[str, Any], kind: str, name: str, with_what: str) -> list[str]:
    """Return the smallest simulated size with more of one resource that is enough, or how far the largest gets."""
    noun = "person" if name == "people" else "prompt"
    now = getattr(inputs.size, name)
    found = [one for one in (*plan[kind], plan[f"needed_{kind}"]) if one is not None and one["size"][name] > now]
    if not found:
        return [f"More {name} are not possible with {with_what}."]
    found.sort(key=lambda one: one["size"][name])
    enough = next((one for one in found if one["power"] >= inputs.target.wanted), None)
    one = enough or found[-1]
    power = _with_error(one)
    who = counted(one["size"][name], noun)
    if enough is not None:
        return [
            f"{who} with {with_what} reach it: their power is {power}{_extra_cost(inputs, StudySize(**one['size']))}."
        ]
    if one["power"] - plan["planned"]["power"] < NO_HELP + 2 * one["power_error"]:
        return [f"More {name} will not help: with {who} and {with_what}, the power is {power}."]
    return [f"More {name} alone are not enough: with {who} and {with_what}, the power is {power}."]


def _resource_sentences(inputs: PlanInputs, quick: QuickPlan) -> list[str]:
    size, target, variation = inputs.size, inputs.target, inputs.variation
    wanted = percent(target.wanted)
    people, prompts = needed_people(size, target, variation), needed_prompts(size, target, variation)
    if quick.power >= target.wanted:
        said = [f"The size is enough: its power is {percent(quick.power)}, and {wanted} is wanted."]
        if people is not None and people.people < size.people:
            said.append(f"{counted(people.people, 'person')} with the same prompts would reach {wanted}, too.")
        return said
    few = f"With fewer than {FEWEST_PEOPLE} people the report makes no test."
    said = [few] if size.people < FEWEST_PEOPLE else []
    own = f"the same {counted(size.people, 'person')}"
    is_spa = size.kind == "chance"
    if people is not None and (prompts is not None or is_spa):
        said.append(
            f"{counted(people.people, 'person')} with the same {counted(size.prompts, 'prompt')} reach {wanted}{_extra_cost(inputs, people)}."
        )
        if prompts is not None:
            said.append(
                f"Or more prompts with as many answers: {counted(prompts.prompts, 'prompt')} with {own} reach {wanted}. "
                f"Each prompt is then judged {times_text(prompts.labels_per_prompt)}."
            )
    elif people is not None:
        ceiling = _most_power_by_prompts(inputs)
        said.append(
            f"{_no_help('prompts', ceiling, quick.power)}: with {own}, who answer about {size.prompts_each} each, the power stays "
            f"below {_ceiling(ceiling)}. {counted(people.people, 'person')} with the same prompts reach "
            f"{wanted}{_extra_cost(inputs, people)}."
        )
    else:
        ceiling = most_power_by_people(size, target, variation)
        said.append(
            f"{_no_help('people', ceiling, quick.power)}: with {counted(size.prompts, 'prompt')} the power stays below {_ceiling(ceiling)}."
        )
        if prompts is not None:
            said.append(f"{counted(prompts.prompts, 'prompt')} with {own} reach {wanted}.")
        else:
            said.append(_both_sentence(inputs, wanted))
    return said


def _no_help(resource: str, ceiling: float, power: float) -> str:
    return f"More {resource} will not help" if ceiling - power < NO_HELP else f"More {resource} alone are not enough"


def _ceiling(power: float) -> str:
    """Return the next hundredth above a power that is never reached."""
    return percent(min(0.99, int(100 * power + 1) / 100))


def _extra_cost(inputs: PlanInputs, other: StudySize) -> str:
    now, then = (plan_budget(size, inputs.pace, inputs.prices).total for size in (inputs.size, other))
    if not now or then < 1.05 * now:
        return ""
    return f", at {then / now:.1f} times the cost" if then < 10 * now else f", at {then / now:,.0f} times the cost"


def _most_power_by_prompts(inputs: PlanInputs) -> float:
    size = inputs.size
    most = replace(size, prompts=min(MOST_PROMPTS, size.people * size.prompts_each))
    return quick_plan(most, inputs.target, inputs.variation).power


def _both_sentence(inputs: PlanInputs, wanted: str) -> str:
    """Return an example of more people and more prompts together that is enough, or that nothing is."""
    enough = needed_both(inputs.size, inputs.target, inputs.variation)
    if enough is None:
        return f"More prompts alone are not enough, and {_nothing_reaches(wanted)}"
    return f"More prompts alone are not enough either. Both together are: {_both(enough)} reach {wanted}{_extra_cost(inputs, enough)}."


def _both(size: StudySize) -> str:
    return f"{counted(size.people, 'person')} and {counted(size.prompts, 'prompt')}"


def _nothing_reaches(wanted: str) -> str:
    return f"no study that heval can plan reaches {wanted}. Plan for a larger difference or a larger margin."


def _labels_sentences(inputs: PlanInputs, quick: QuickPlan) -> list[str]:
    """Compare one answer about each of more items with the planned answers about each item, at the same money."""
    size = inputs.size
    same = "With as many answers" if inputs.prices.reward == 0 else "At the same money"
    if size.kind == "chance" or size.is_between_conditions or size.labels_per_prompt < 1.5:
        return []
    most = replace(size, prompts=min(MOST_PROMPTS, size.answers))
    other = quick_plan(most, inputs.target, inputs.variation)
    if other.half_width > quick.half_width * 0.98:
        return [f"{same}, more prompts that are each judged fewer times change little, because prompts hardly vary."]
    return [
        f"{same}, {counted(most.prompts, 'prompt')}, each of them judged once, would narrow the interval from "
        f"± {points_text(quick.half_width, size.protocol)} to ± {points_text(other.half_width, size.protocol)}."
    ]


def reach_sentence(inputs: PlanInputs, smallest: float | None, power: float) -> str:
    """Return which difference a design finds; and, if more people would not help it, that it may be launched as it is."""
    wanted = percent(inputs.target.wanted)
    if smallest is None:
        return f"It finds no difference with {wanted} power, however large."
    found = f"{100 * smallest:.1f} % against 50 % (approximate)"
    is_limited = power < inputs.target.wanted and needed_people(inputs.size, inputs.target, inputs.variation) is None
    if is_limited and inputs.size.people >= FEWEST_PEOPLE:
        return f"The smallest difference that it finds with {wanted} power is {found}. If you expect one as large, you can launch the study as it is."
    return f"The smallest difference that it finds with {wanted} power is {found}."


def _population_sentences(size: StudySize, target: Target, variation: Variation, quick: QuickPlan) -> list[str]:
    if quick.population == "people_and_prompts":
        return []
    if target.is_sequential:
        fixed = quick_plan(size, replace(target, stopping="none"), variation).power
        return [
            f"The stopping rule checks after every person, which costs power: at this fixed size it would be {percent(fixed)}. "
            "The claim is about people like these and exactly these prompts."
        ]
    if target.population == "people":
        return ["The claim is about people like these and exactly these prompts."]
    if size.kind == "chance":
        return [
            "People read the same prompts, so the claim of this protocol is about exactly these prompts. It is about prompts like "
            "these if nobody reads the prompts of somebody else."
        ]
    return [f"With fewer than {FEWEST_PROMPTS} prompts the claim is about exactly these prompts."]


# The power that the page and REST show while one types, without numpy. With a pilot it is the assurance.


# Draws over which the live power is averaged. One takes .1 to 4 ms.
DRAWS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePower(PlainRecord):
    """The approximate power and half the width of the interval. 80 % of what a pilot leaves open have a power between the other two."""

    power: float
    half_width: float
    power_low: float | None = None
    power_high: float | None = None


def live_power(inputs: PlanInputs, draws: Sequence[Variation] = ()) -> LivePower:
    """Return the approximate power, averaged over draws that stand for all of them if there are any."""
    size, target = inputs.size, inputs.target
    if not draws:
        quick = quick_plan(size, target, inputs.variation)
        return LivePower(power=quick.power, half_width=quick.half_width)
    found = quick_assurance(size, target, spread_draws(size, draws, DRAWS))
    return LivePower(power=found.power, half_width=found.half_width, power_low=found.low, power_high=found.high)


def assurance_sentence(live: LivePower) -> str:
    """Return what the power is an average of, or '' without a pilot."""
    if live.power_low is None or live.power_high is None:
        return ""
    return (
        f"This power is averaged over what the pilot leaves open (80 % of it: {percent(live.power_low)} to {percent(live.power_high)}). "
        "The smallest difference, the advice and the curves take the pilot's estimates as exact."
    )
