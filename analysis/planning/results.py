"""What is stored of a simulated plan: its numbers, what each size costs, sequential designs and the advice."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from analysis.stats.planning.closed_forms import components, variance_of_person
from analysis.stats.planning.inputs import EQUIVALENCE, StudySize, Target, Variation
from analysis.stats.planning.sizes import Budget, plan_budget

from .advice import simulated_advice
from .inputs import PlanInputs

if TYPE_CHECKING:
    from analysis.stats.planning.study_plans import SimulatedSize, StudyPlan

LOOKS = 5
BET_RUNS = 400
# Beyond this many answers, watching each person is not simulated.
MOST_WATCHED_ANSWERS = 200_000
SHAPES = {"obrien_fleming": "O'Brien and Fleming", "pocock": "Pocock"}


def describe_plan(plan: "StudyPlan", sequential: dict[str, Any], inputs: PlanInputs) -> dict[str, Any]:
    """Return the stored result of a plan with the comparison of sequential designs, as JSON-safe values."""

    def cost(size: StudySize) -> Budget:
        return plan_budget(size, inputs.pace.in_protocol(inputs.size.protocol, size.protocol), inputs.prices)

    def costs(sizes: "Iterable[SimulatedSize]") -> list[dict[str, Any]]:
        return [cost(one.size).as_dict() for one in sizes]

    def one_cost(found: "SimulatedSize | None") -> dict[str, Any] | None:
        return cost(found.size).as_dict() if found else None

    simulated = plan.as_dict()
    return {
        "plan": simulated,
        "budget": cost(inputs.size).as_dict(),
        "budgets": {
            "people": costs(plan.people),
            "prompts": costs(plan.prompts),
            "protocols": costs(plan.protocols),
            "needed_people": one_cost(plan.needed_people),
            "needed_prompts": one_cost(plan.needed_prompts),
            "needed_both": one_cost(plan.needed_both),
        },
        "sequential": sequential,
        "advice": simulated_advice(inputs, simulated),
    }


def compare_claims(inputs: PlanInputs, draws: Sequence[Variation] = (), *, seed: int) -> dict[str, Any]:
    """Return the power of each comparison after the declared correction, as ``comparisons``. Empty with one comparison."""
    claims, families = inputs.comparisons.claims_of(inputs.target)
    if not claims:
        return {}
    from analysis.stats.planning.study_plans import simulate_claims

    found = simulate_claims(inputs.size, inputs.target, draws or inputs.variation, claims, families, seed=seed)
    return {"comparisons": found.as_dict()}


def compare_sequential(inputs: PlanInputs, *, seed: int) -> dict[str, Any]:
    """Return the fixed design, two group-sequential ones and one that is watched after each person, all with the same most people.

    All are about exactly these prompts: evidence is added person by person. `wrong` is the probability of a claim if there is
    no difference, or if it is exactly the margin.
    """
    size, target = inputs.size, inputs.target
    looks = sorted({max(2, round(size.people * k / LOOKS)) for k in range(1, LOOKS + 1)})
    if target.goal == EQUIVALENCE:
        return {"reason": "A study of equivalence has a fixed size: it needs all of its people.", "designs": []}
    if size.is_between_conditions:
        return {"reason": "A comparison between conditions has a fixed size: heval looks at it once.", "designs": []}
    if size.people < 6 or len(looks) < 2:
        return {"reason": "With fewer than six people there is nothing to stop early.", "designs": []}
    from analysis.stats.planning.simulated_studies import PlanOptions
    from analysis.stats.planning.stopping import compute_group_sequential_power
    from analysis.stats.stopping_boundaries import group_sequential_design

    parts = components(size, target, inputs.variation)
    sd = math.sqrt(variance_of_person(parts, size))
    distance = parts.mean - target.limit(size.null)
    options = PlanOptions(significance=target.significance, tests=target.tests)
    each = plan_budget(size, inputs.pace, inputs.prices).total / size.people
    designs = []
    for name, at, shape in (
        ("fixed", [size.people], "obrien_fleming"),
        *(("group", looks, shape) for shape in SHAPES),
    ):
        found, null = (
            compute_group_sequential_power(
                value, sd, at, shape=shape, is_one_sided=target.goal != "difference", options=options
            )
            for value in (distance, 0.0)
        )
        expected = found.detail["expected_n"]
        boundaries = group_sequential_design([n / at[-1] for n in at], shape=shape, significance=target.level)
        designs.append(
            {
                "name": name,
                "shape": shape if name == "group" else "",
                "power": found.power,
                "power_error": found.detail["simulation_error"],
                "wrong": null.power,
                "wrong_error": null.detail["simulation_error"],
                "expected_people": expected,
                "most_people": size.people,
                "expected_money": expected * each,
                "most_money": size.people * each,
                "looks": [
                    {"people": n, "p": float(p), "z": float(z), "stops": stops}
                    for n, p, z, stops in zip(
                        at, boundaries.nominal, boundaries.z, found.detail["stopping"], strict=True
                    )
                ],
            }
        )
    if size.answers <= MOST_WATCHED_ANSWERS:
        designs.append(_watched(inputs, target.limit(size.null), each, seed))
    return {"reason": "", "designs": designs}


def _watched(inputs: PlanInputs, limit: float, each: float, seed: int) -> dict[str, Any]:
    """Return the anytime-valid design: bets against the limit after every person."""
    from analysis.stats.bootstrap import monte_carlo_error
    from analysis.stats.planning.sizes import wrong_target

    size, target = inputs.size, inputs.target
    claims, stops = _bets(inputs, target, limit, (seed, 1_000_001))
    wrong, _ = _bets(inputs, wrong_target(size, target, inputs.variation), limit, (seed, 1_000_002))
    expected = sum(stops) / len(stops)
    return {
        "name": "anytime",
        "shape": "",
        "power": claims,
        "power_error": monte_carlo_error(claims, BET_RUNS),
        "wrong": wrong,
        "wrong_error": monte_carlo_error(wrong, BET_RUNS),
        "expected_people": expected,
        "most_people": size.people,
        "expected_money": expected * each,
        "most_money": size.people * each,
        "looks": [],
    }


def _bets(inputs: PlanInputs, target: Target, limit: float, seed: tuple[int, ...]) -> tuple[float, list[int]]:
    """Return the share of studies whose bets refute the limit, and after how many people each study ends."""
    from dataclasses import replace

    import numpy as np

    from analysis.stats.planning.simulated_studies import (
        assign_prompts,
        evidence_after_each_person,
        means_of_people,
        simulate_answers,
    )

    size = inputs.size
    rng = np.random.default_rng(seed)
    low, high = size.scale_ends
    n_blocks = max(20, math.ceil(BET_RUNS * size.answers / 400_000))
    refuted, ends = 0, []
    for block in range(n_blocks):
        runs = BET_RUNS // n_blocks + (block < BET_RUNS % n_blocks)
        if not runs:
            break
        people, prompts = assign_prompts(size, rng)
        about_these = replace(target, population="people")
        values = simulate_answers(size, about_these, inputs.variation, people, prompts, runs=runs, rng=rng)
        means = means_of_people(values, people, size)
        null = (limit - low) / (high - low)
        is_refuted = evidence_after_each_person(means, null, target.level) >= math.log(1 / target.level)
        if target.goal != "difference":  # a claim by a margin is about one side
            is_refuted &= np.cumsum(means, axis=1) / np.arange(1, size.people + 1) > null
        is_claimed = is_refuted.any(axis=1)
        refuted += int(is_claimed.sum())
        ends += np.where(is_claimed, is_refuted.argmax(axis=1) + 1, size.people).tolist()
    return refuted / len(ends), ends
