"""The parts of a plan: studies of one size each, simulated and analysed in a piece of work of its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.plan_inputs import EQUIVALENCE, StudySize, Target, Variation
from analysis.stats.plan_sizes import (
    needed_both,
    needed_people,
    needed_prompts,
    other_differences,
    other_people,
    other_prompts,
    other_protocols,
    wrong_target,
)
from analysis.stats.planning._answers import assign_prompts, simulate_answers
from analysis.stats.planning._headline import Headlines
from analysis.stats.planning._judge import judge_studies
from analysis.stats.results import Record

# Runs of the planned size, and of each other size. The Monte-Carlo errors of a power of .8 are .009 and .018.
RUNS, OTHER_RUNS = 2000, 500
# Answers of a block of runs, and answers of one part in all. Larger studies are simulated less often.
BLOCK, MOST_SIMULATED = 400_000, 40_000_000
FEWEST_RUNS = 100
# A part stops after the block with its last bet of this many, or as many as a quarter of its runs: bets take 100 times as long as a t test.
MOST_BETS = 150
# Least number of layouts (who sees which prompts together) in a part.
LAYOUTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPart(Record):
    """One size to simulate: an independent piece of work with a seed of its own.

    `kind` says where its result belongs: planned, difference, people, prompts, protocol, margin, null, needed_people,
    needed_prompts or needed_both.
    """

    kind: str
    size: StudySize
    target: Target
    runs: int
    seed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSize(Record):
    """What simulated studies of one size said, each share with its Monte-Carlo standard error.

    Attributes
    ----------
    power, power_error : float
        Share of studies that reach the goal.
    half_width, half_width_error : float or None
        Half the mean width of the interval, on the scale of the headline. None if no study has an interval.
    value : float
        Mean headline.
    decided, decided_error : float
        Share of studies that claim a difference or reach the goal.
    wrong_direction, wrong_direction_error : float or None
        Share of studies that claim the opposite of the true difference. None if there is no difference.
    by_bets : float
        Share of studies in which bets replace the t test.
    population : str
        What the claim is about: "people_and_prompts" or "people".
    runs : int
        Number of simulated studies.
    """

    kind: str
    size: StudySize
    difference: float
    power: float
    power_error: float
    half_width: float | None
    half_width_error: float | None
    value: float
    decided: float
    decided_error: float
    wrong_direction: float | None
    wrong_direction_error: float | None
    by_bets: float
    population: str
    runs: int


def plan_parts(
    size: StudySize,
    target: Target,
    variation: Variation,
    *,
    seed: int,
    runs: int = RUNS,
    other_runs: int = OTHER_RUNS,
) -> tuple[PlanPart, ...]:
    """Return the pieces of work of a plan, the planned size first; each can run in another process.

    `seed` is stored with the plan. `runs` and `other_runs` are the simulated studies of the planned size, and of each
    other size.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> parts = plan_parts(size, Target(), Variation(), seed=1)
    >>> parts[0].kind, parts[0].runs, sorted({part.kind for part in parts})[:3]
    ('planned', 2000, ['difference', 'needed_people', 'needed_prompts'])
    """
    todo: list[tuple[str, StudySize, Target, int]] = [("planned", size, target, runs)]
    todo.append(("margin" if target.goal == EQUIVALENCE else "null", size, wrong_target(size, target, variation), runs))
    if target.goal != EQUIVALENCE:
        todo += [
            ("difference", size, replace(target, difference=d), other_runs)
            for d in other_differences(size, target, variation)
        ]
    todo += [("people", other, target, other_runs) for other in other_people(size)]
    todo += [("prompts", other, target, other_runs) for other in other_prompts(size)]
    if target.goal == "difference":
        todo += [("protocol", o, replace(target, stopping="none"), other_runs) for o in other_protocols(size)]
    alone = {
        "needed_people": needed_people(size, target, variation),
        "needed_prompts": needed_prompts(size, target, variation),
    }
    # Where neither alone is enough, more of both may be.
    both = None if any(alone.values()) else needed_both(size, target, variation)
    for kind, needed in (*alone.items(), ("needed_both", both)):
        if needed is not None:
            todo.append((kind, needed, target, other_runs))
    return tuple(
        PlanPart(kind=kind, size=own, target=aim, runs=_affordable_runs(own, n), seed=(seed, number))
        for number, (kind, own, aim, n) in enumerate(todo)
    )


def simulate_part(part: PlanPart, variations: Variation | Sequence[Variation]) -> SimulatedSize:
    """Simulate the studies of one part of a plan.

    Several `variations` are draws from what a pilot says: each serves an equal share of the runs, so the power is the
    assurance.

    >>> size = StudySize(protocol="two_choice", people=36, prompts=60, prompts_each=20)
    >>> part = PlanPart(kind="planned", size=size, target=Target(), runs=400, seed=(1, 0))
    >>> 0.7 < simulate_part(part, Variation()).power < 0.85
    True
    """
    draws = (variations,) if isinstance(variations, Variation) else tuple(variations)
    size, target = part.size, part.target
    rng = np.random.default_rng(part.seed)
    # Each block has a layout of its own: which prompts meet in a batch is drawn, too.
    n_blocks = max(LAYOUTS, len(draws), math.ceil(part.runs * size.answers / BLOCK))
    found: list[Headlines] = []
    n_bets = 0
    for number, runs in enumerate(_split(part.runs, n_blocks)):
        if not runs or n_bets >= max(MOST_BETS, part.runs // 4):
            break
        people, prompts = assign_prompts(size, rng)
        values = simulate_answers(size, target, draws[number % len(draws)], people, prompts, runs=runs, rng=rng)
        found.append(judge_studies(values, people, prompts, size, target))
        n_bets += int(found[-1].by_bets.sum())
    estimate, low, high = (
        np.concatenate([getattr(one, name) for one in found]) for name in ("estimate", "low", "high")
    )
    is_difference = np.concatenate([one.is_difference for one in found])
    is_reached = np.concatenate([one.is_reached for one in found])
    beyond = target.difference - target.baseline
    true_sign = math.copysign(1.0, beyond) if abs(beyond) > 1e-9 else 0.0
    wrong = float(np.mean(is_difference & ((estimate - size.null) * true_sign < 0))) if true_sign else None
    half = (high - low)[~np.isnan(low)] / 2
    power, decided, runs = float(np.mean(is_reached)), float(np.mean(is_reached | is_difference)), len(estimate)
    return SimulatedSize(
        kind=part.kind,
        size=size,
        difference=target.difference,
        power=power,
        power_error=monte_carlo_error(power, runs),
        half_width=float(np.mean(half)) if len(half) else None,
        half_width_error=float(np.std(half) / math.sqrt(len(half))) if len(half) else None,
        value=float(np.mean(estimate)),
        decided=decided,
        decided_error=monte_carlo_error(decided, runs),
        wrong_direction=wrong,
        wrong_direction_error=None if wrong is None else monte_carlo_error(wrong, runs),
        by_bets=float(np.mean(np.concatenate([one.by_bets for one in found]))),
        population="people_and_prompts" if size.is_about_prompts(target.population) else "people",
        runs=runs,
    )


def _affordable_runs(size: StudySize, runs: int) -> int:
    return max(min(runs, FEWEST_RUNS), min(runs, MOST_SIMULATED // size.answers))


def _split(runs: int, n_blocks: int) -> list[int]:
    return [runs // n_blocks + (number < runs % n_blocks) for number in range(n_blocks)]
