"""The plan of a whole study: its simulated power, what it would be with other sizes, and which resource is short."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from analysis.stats.plan_inputs import EQUIVALENCE, KINDS, StudySize, Target, Variation
from analysis.stats.plan_sizes import most_power_by_people
from analysis.stats.planning._parts import SimulatedSize
from analysis.stats.results import Record

_NORMAL = NormalDist()
_ORDER = tuple(KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan(Record):
    """The plan of a study with one comparison, or with several at an equal level.

    Attributes
    ----------
    planned : SimulatedSize
        The size that was asked for.
    differences, people, prompts, protocols : tuple[SimulatedSize, ...]
        Other true differences; other numbers of people with the same prompts; other numbers of prompts with the same
        answers, so with fewer labels for each; other protocols with the same people and prompts.
    detectable, detectable_error : float or None
        The smallest difference found with the wanted power, by interpolation of `differences`.
    false_decision : SimulatedSize
        The same size where there is no difference: its share of decisions is that of wrong ones. With the goal
        equivalence: the same size at the margin, where every claim of equivalence is wrong.
    most_power_by_people : float
        The power with the same prompts and any number of people (approximate).
    needed_people, needed_prompts, needed_both : SimulatedSize or None
        The smallest size with the wanted power by one resource alone, or by both together. None if no size has it.
    settings : dict
        What was planned, with the seed.
    """

    planned: SimulatedSize
    differences: tuple[SimulatedSize, ...]
    people: tuple[SimulatedSize, ...]
    prompts: tuple[SimulatedSize, ...]
    protocols: tuple[SimulatedSize, ...]
    detectable: float | None
    detectable_error: float | None
    false_decision: SimulatedSize
    most_power_by_people: float
    needed_people: SimulatedSize | None
    needed_prompts: SimulatedSize | None
    needed_both: SimulatedSize | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def assemble_plan(
    size: StudySize,
    target: Target,
    variation: Variation,
    simulated: Sequence[SimulatedSize],
    *,
    settings: Mapping[str, Any] | None = None,
) -> StudyPlan:
    """Return the plan from the results of all its parts.

    `size`, `target` and `variation` are as in `plan_parts`, and the results in `simulated` have any order. If the
    planned size is not among them, the function raises ValueError. `settings` is stored with the plan and has its seed,
    for example.

    >>> size, target = StudySize(protocol="two_choice", people=20, prompts=40, prompts_each=10), Target(difference=0.7)
    >>> parts = plan_parts(size, target, Variation(), seed=1, runs=100, other_runs=100)
    >>> plan = assemble_plan(size, target, Variation(), [simulate_part(part, Variation()) for part in parts])
    >>> plan.planned.power > 0.9, len(plan.people) > 4
    (True, True)
    """
    by_kind: dict[str, list[SimulatedSize]] = {}
    for one in simulated:
        by_kind.setdefault(one.kind, []).append(one)
    if "planned" not in by_kind:
        raise ValueError("simulated: the planned size is not among the results.")
    planned = by_kind["planned"][0]
    curve = tuple(sorted([*by_kind.get("difference", []), planned], key=lambda one: one.difference))
    detectable, error = (
        (None, None) if target.goal == EQUIVALENCE else _detectable(curve, target.wanted, target.baseline)
    )

    def in_order(kind: str, key: Callable[[SimulatedSize], Any]) -> tuple[SimulatedSize, ...]:
        return tuple(sorted([*by_kind.get(kind, []), planned], key=key))

    return StudyPlan(
        planned=planned,
        differences=curve,
        people=in_order("people", lambda one: one.size.people),
        prompts=in_order("prompts", lambda one: one.size.prompts),
        protocols=in_order("protocol", lambda one: _ORDER.index(one.size.protocol)),
        detectable=detectable,
        detectable_error=error,
        false_decision=by_kind["margin" if target.goal == EQUIVALENCE else "null"][0],
        most_power_by_people=most_power_by_people(size, target, variation),
        needed_people=next(iter(by_kind.get("needed_people", [])), None),
        needed_prompts=next(iter(by_kind.get("needed_prompts", [])), None),
        needed_both=next(iter(by_kind.get("needed_both", [])), None),
        settings={
            "size": size.as_dict(),
            "target": target.as_dict(),
            "variation": variation.as_dict(),
            **(settings or {}),
        },
    )


def _detectable(curve: Sequence[SimulatedSize], wanted: float, baseline: float) -> tuple[float | None, float | None]:
    """Return where the curve crosses the wanted power, with its Monte-Carlo error: weighted least squares of probits near it."""
    points = [one for one in curve if 0.02 < one.power < 0.98 and one.difference != baseline]
    if len(points) < 2 or not min(one.power for one in points) < wanted < max(one.power for one in curve):
        return None, None
    x = np.array([one.difference for one in points])
    p = np.array([one.power for one in points])
    z = np.array([_NORMAL.inv_cdf(value) for value in p])
    density = np.array([_NORMAL.pdf(value) for value in z])
    weights = np.array([one.runs for one in points]) * density**2 / (p * (1 - p))
    mean_x, mean_z = np.average(x, weights=weights), np.average(z, weights=weights)
    slope = float(np.sum(weights * (x - mean_x) * (z - mean_z)) / np.sum(weights * (x - mean_x) ** 2))
    if abs(slope) < 1e-9:
        return None, None
    found = float(mean_x + (_NORMAL.inv_cdf(wanted) - mean_z) / slope)
    variance = 1 / np.sum(weights) + (found - mean_x) ** 2 / np.sum(weights * (x - mean_x) ** 2)
    return found, float(np.sqrt(variance) / abs(slope))
