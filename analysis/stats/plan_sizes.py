"""Other sizes of a planned study: those of its curves, and the smallest ones with enough power. Without numpy."""

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

from analysis.stats.plan_inputs import (
    FEWEST_PEOPLE,
    FEWEST_PROMPTS,
    KINDS,
    MOST_ANSWERS,
    MOST_PEOPLE,
    MOST_PROMPTS,
    OF_SINGLE_OUTPUTS,
    StudySize,
    Target,
    Variation,
)
from analysis.stats.quick_power import components, plan_of_components, quick_plan, smallest_difference

_NORMAL = NormalDist()
PEOPLE_FACTORS = (0.25, 0.5, 0.75, 1.5, 2.0, 3.0, 4.0)
DIFFERENCE_QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
# Prompts that each person reads in the size with SPA among the other protocols.
SPA_PROMPTS_EACH = 4


def wrong_target(size: StudySize, target: Target, variation: Variation) -> Target:
    """Return the target under which reaching the goal is a wrong decision: no difference, or exactly the margin.

    Parameters
    ----------
    size, target, variation : StudySize, Target, Variation
        As in `plan_parts`.

    Returns
    -------
    Target
        The target. For a goal by a margin, its difference lies at the limit of the claim.

    Examples
    --------
    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> round(wrong_target(size, Target(goal="equivalence", margin=0.05), Variation()).difference, 3)
    0.55
    """
    if target.goal == "difference":
        return replace(target, difference=target.baseline)
    limit = target.limit(size.null)
    low, high = 1e-6, 1 - 1e-6
    for _ in range(40):
        middle = (low + high) / 2
        if components(size, replace(target, difference=middle), variation).mean < limit:
            low = middle
        else:
            high = middle
    return replace(target, difference=(low + high) / 2)


def most_power_by_people(size: StudySize, target: Target, variation: Variation) -> float:
    """Return the approximate power with the same prompts and any number of people.

    Examples
    --------
    >>> size = StudySize(protocol="two_choice", people=40, prompts=10, prompts_each=10)
    >>> round(most_power_by_people(size, Target(), Variation()), 2)
    0.24
    """
    return quick_plan(_with_people(size, MOST_PEOPLE), target, variation).power


def needed_people(size: StudySize, target: Target, variation: Variation) -> StudySize | None:
    """Return the smallest size with the wanted power by other people alone, or None if no number of people has it.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> needed_people(size, Target(), Variation()).people
    44
    """
    parts = components(size, target, variation)
    return _smallest(
        lambda n: _with_people(size, n),
        max(6, math.ceil(size.prompts / size.prompts_each)),
        MOST_PEOPLE,
        lambda own: plan_of_components(parts, own, target).power >= target.wanted,
    )


def needed_prompts(size: StudySize, target: Target, variation: Variation) -> StudySize | None:
    """Return the smallest size with the wanted power by other prompts alone, or None if no number of prompts has it.

    Each person answers about as many as before, so more prompts mean fewer people for each.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> needed_prompts(size, Target(), Variation()).prompts
    68
    """
    if size.kind == "chance":
        return None
    parts = components(size, target, variation)
    return _smallest(
        lambda n: replace(size, prompts=n),
        max(FEWEST_PROMPTS, size.prompts_each),
        size.people * size.prompts_each,
        lambda own: plan_of_components(parts, own, target).power >= target.wanted,
    )


def needed_both(size: StudySize, target: Target, variation: Variation) -> StudySize | None:
    """Return about the smallest size with the wanted power by more people and more prompts together, in the same proportion.

    None if the size has the power already, or if no size that can be planned has it.

    >>> size = StudySize(protocol="two_choice", people=12, prompts=20, prompts_each=10)
    >>> found = needed_both(size, Target(), Variation())
    >>> found.people, found.prompts
    (46, 78)
    """
    parts = components(size, target, variation)

    def sized(factor: float) -> StudySize:
        people = max(FEWEST_PEOPLE, round(size.people * factor))
        prompts = max(FEWEST_PROMPTS, round(size.prompts * factor))
        return replace(size, people=people, prompts=min(prompts, people * size.prompts_each))

    def is_enough(factor: float) -> bool:
        return plan_of_components(parts, sized(factor), target).power >= target.wanted

    most = min(MOST_PEOPLE / size.people, MOST_PROMPTS / size.prompts, MOST_ANSWERS / size.answers)
    low, high = 1.0, 1.0
    while not is_enough(high):
        low, high = high, 2 * high
        if high > most:
            return None
    for _ in range(8 if high > 1 else 0):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return sized(high) if high > 1 else None


def _smallest(
    sized: Callable[[int], StudySize], low: int, high: int, is_enough: Callable[[StudySize], bool]
) -> StudySize | None:
    """Return the smallest size that is enough, by bisection."""
    if low > high or not is_enough(sized(high)):
        return None
    while low < high:
        middle = (low + high) // 2
        if is_enough(sized(middle)):
            high = middle
        else:
            low = middle + 1
    return sized(low)


def _with_people(size: StudySize, people: int) -> StudySize:
    """Return the size with other people, and as many prompts each as fit."""
    most_each = max(1, 5_000_000 // people)
    return replace(size, people=people, prompts_each=min(size.prompts_each, most_each))


def other_differences(size: StudySize, target: Target, variation: Variation) -> list[float]:
    """Return differences around the smallest one that is found, on the side of the target.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> [round(one, 2) for one in other_differences(size, Target(), Variation())]
    [0.53, 0.55, 0.57, 0.59, 0.62, 0.64]
    """
    found = smallest_difference(size, replace(target, wanted=target.wanted), variation)
    middle = max(0.9, (1 + target.baseline) / 2) if found is None else found
    none = target.baseline
    spread = (middle - none) / (_NORMAL.inv_cdf(1 - target.level / 2) + _NORMAL.inv_cdf(target.wanted))
    critical = none + spread * _NORMAL.inv_cdf(1 - target.level / 2)
    sign = 1 if target.difference >= none else -1
    wanted = [critical + spread * _NORMAL.inv_cdf(q) for q in DIFFERENCE_QUANTILES]
    return [round(none + sign * (d - none), 4) for d in wanted if none < d < min(0.99, 0.99 if sign > 0 else 2 * none)]


def other_people(size: StudySize) -> list[StudySize]:
    """Return other numbers of people with the same prompts, at least six and as many as see all prompts.

    >>> [one.people for one in other_people(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20))]
    [9, 18, 27, 54, 72, 108, 144]
    """
    fewest = math.ceil(size.prompts / size.prompts_each)
    numbers = {max(6, fewest, round(size.people * factor)) for factor in PEOPLE_FACTORS} - {size.people}
    return [replace(size, people=n) for n in sorted(numbers) if n * size.prompts_each <= 1_000_000]


def other_prompts(size: StudySize) -> list[StudySize]:
    """Return other numbers of prompts with the same answers, from everybody sees the same to nobody does.

    >>> [one.prompts for one in other_prompts(StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20))]
    [20, 36, 66, 120, 218, 396, 720]
    """
    if size.kind == "chance":
        return []
    fewest, most = size.prompts_each, size.people * size.prompts_each
    numbers = {round(fewest * (most / fewest) ** (k / 6)) for k in range(7)} - {size.prompts}
    return [replace(size, prompts=n) for n in sorted(numbers) if fewest <= n <= most]


def other_protocols(size: StudySize) -> list[StudySize]:
    """Return sizes with the same people in other protocols that compare pairs; in SPA each person reads fewer prompts.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> [(one.protocol, one.prompts_each) for one in other_protocols(size)]
    [('rating', 20), ('ranking', 20), ('relative', 20), ('spa', 4)]
    """
    others = [p for p in ("rating", "two_choice", "ranking", "relative", "spa") if p != size.protocol]
    if size.protocol in OF_SINGLE_OUTPUTS:
        return []
    sizes = []
    for protocol in others:
        each = min(SPA_PROMPTS_EACH, size.prompts_each) if KINDS[protocol] == "chance" else size.prompts_each
        sizes.append(replace(size, protocol=protocol, prompts_each=each, prompts=min(size.prompts, size.people * each)))
    return sizes
