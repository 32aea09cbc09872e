"""Simulated power, and the smallest effect with enough power."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from analysis.stats.arrays import FloatArray
from analysis.stats.planning._plan import Plan, PlanOptions, build_plan
from analysis.stats.planning._simulation import Outcomes, T, simulate
from analysis.stats.results import ResultWarning

# Number of halvings; a simulated power is too coarse for more.
HALVINGS = 10


def plan_by_simulation(
    generate: Callable[[float], Callable[[int, np.random.Generator], T]],
    analyse: Callable[[T], Outcomes],
    effect: float,
    *,
    largest: float,
    n_answers: int,
    options: PlanOptions,
    rng: np.random.Generator,
    **plan_fields: Any,
) -> Plan:
    """Return the plan of one comparison by simulation, with the least effect in 0..`largest` if asked for."""
    level = options.significance / options.tests
    outcomes = simulate_with_plan_options(generate(effect), analyse, n_answers, options, rng)
    detectable, warnings = least_detectable_effect_if_requested(
        lambda other, seeded, hooks: float(
            np.mean(simulate_with_plan_options(generate(other), analyse, n_answers, hooks, seeded).pvalue < level)
        ),
        largest,
        options,
        rng,
    )
    means = mean_estimate_and_width(outcomes, None)
    return build_plan(
        options,
        method="monte_carlo",
        unit="annotator",
        effect=effect,
        power=float(np.mean(outcomes.pvalue < level)),
        detectable=detectable,
        width=means["width"],
        labels=float(n_answers),
        warnings=warnings,
        detail={"estimate": means["estimate"], "n_undefined": int(np.isnan(outcomes.pvalue).sum())},
        **plan_fields,
    )


def simulate_with_plan_options(
    generate: Callable[[int, np.random.Generator], T],
    analyse: Callable[[T], Outcomes],
    n_answers: int,
    options: PlanOptions,
    rng: np.random.Generator,
) -> Outcomes:
    """Simulate the number of runs in the options, with their hooks."""
    return simulate(
        generate,
        analyse,
        n_answers=n_answers,
        runs=options.runs,
        rng=rng,
        progress=_progress_hook(options, 0),
        is_cancelled=options.is_cancelled,
    )


def _progress_hook(chosen: PlanOptions, before: int) -> Callable[[int, int], None] | None:
    """Return a hook for the progress of the whole job, most of it the search for a detectable effect."""
    report_progress = chosen.progress
    if report_progress is None:
        return None
    total = chosen.runs * (1 + (HALVINGS + 1 if chosen.find_detectable else 0))
    return lambda done, _: report_progress(min(total, before + done), total)


def least_detectable_effect_if_requested(
    power_at: Callable[[float, np.random.Generator, PlanOptions], float],
    largest_effect: float,
    options: PlanOptions,
    rng: np.random.Generator,
) -> tuple[float | None, tuple[ResultWarning, ...]]:
    """Search the least effect with the wanted power by bisection, with the same random numbers in each simulation."""
    if not options.find_detectable:
        return None, ()
    seed = int(rng.integers(2**63))

    def at(effect: float, number: int) -> float:
        report_progress = _progress_hook(options, options.runs * (1 + number))
        hooks = replace(options, find_detectable=False, progress=report_progress)
        return power_at(effect, np.random.default_rng(seed), hooks)

    if at(largest_effect, 0) < options.wanted:
        # The rest of the search is skipped, so report it as done.
        if (report_progress := _progress_hook(options, options.runs * (HALVINGS + 1))) is not None:
            report_progress(options.runs, options.runs)
        return None, (ResultWarning("not_detectable", "warn", {"largest": largest_effect, "wanted": options.wanted}),)
    low, high = 0.0, largest_effect
    for number in range(1, HALVINGS + 1):
        middle = (low + high) / 2
        if at(middle, number) >= options.wanted:
            high = middle
        else:
            low = middle
    return high, ()


def mean_estimate_and_width(outcomes: Outcomes, column: int | None) -> dict[str, float | None]:
    """Return the mean estimate and interval width over runs, of one comparison if there are several."""
    chosen = slice(None) if column is None else (slice(None), column)
    return {
        "estimate": nan_mean_or_none(outcomes.estimate[chosen]),
        "width": nan_mean_or_none((outcomes.high - outcomes.low)[chosen]),
    }


def nan_mean_or_none(values: FloatArray) -> float | None:
    """Return the mean of the values that are not NaN, or None."""
    observed = values[~np.isnan(values)]
    return float(np.mean(observed)) if observed.size else None
