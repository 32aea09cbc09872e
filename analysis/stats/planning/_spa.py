"""Plans for system-level probabilities (SPA)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from analysis.stats import generators, multiplicity, spa
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray
from analysis.stats.planning._clustered import clustered_mean_outcomes
from analysis.stats.planning._plan import Plan, PlanOptions, build_plan
from analysis.stats.planning._search import (
    least_detectable_effect_if_requested,
    mean_estimate_and_width,
    nan_mean_or_none,
    simulate_with_plan_options,
)
from analysis.stats.planning._simulation import Outcomes, one_sample_t_test_outcomes
from analysis.stats.results import MODES


def simulate_spa_power(
    n_annotators: int,
    preferences: float | Sequence[float],
    *,
    mode: str = "recommended",
    tau: float | None = None,
    margin: float | None = None,
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **generator_options: Any,
) -> Plan:
    """Plan a study of system-level probabilities, by simulation.

    Parameters
    ----------
    n_annotators : int
        Number of annotators recruited; excluded ones are paid too.
    preferences : float or sequence[float]
        True P[x > y], one or one per pair.
    mode : {"recommended", "paper"}, default 'recommended'
        "recommended": t on the combined answers. "paper": t on the answers with x named first.
    tau : float, optional
        Exclude annotators by the rule `tau`, to see its effect.
    margin : float, optional
        Equivalence margin.
    rng : numpy.random.Generator
        Source of the random draws.
    options : PlanOptions, optional
        Options of the planner.
    **generator_options : Any
        Arguments of `generators.simulate_spa_answers`.

    Returns
    -------
    Plan
        The plan. With several pairs, `power` is the mean over pairs with a preference other than .5; with all at .5,
        the share of runs with a false finding. `detail["by_pair"]` has each pair, `detail["all_found"]` the share of
        runs that found all. The detectable effect is a distance from .5 shared by all pairs.

    Raises
    ------
    ValueError
        If `mode` is not allowed.

    Notes
    -----
    Several preferences are pairs of one study, with Holm over them in each run, in addition to `options.tests` for a
    larger family.

    Examples
    --------
    >>> plan = simulate_spa_power(90, 0.6, annotator_sd=0.28, order_sd=0.1, rng=np.random.default_rng(0), options=PlanOptions(runs=200))
    >>> 0.8 < plan.power < 0.97, plan.labels, round(plan.detail["by_pair"][0]["estimate"], 1)
    (True, 180.0, 0.6)
    """
    chosen = options or PlanOptions()
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not one of {', '.join(MODES)}")
    probabilities = np.atleast_1d(np.asarray(preferences, dtype=np.float64))
    n_orders = 2 if mode == "recommended" or tau is not None else 1
    size = n_annotators * len(probabilities) * n_orders

    def generate(distance: float | None) -> Callable[[int, np.random.Generator], generators.SpaAnswers]:
        pairs = probabilities if distance is None else np.full(len(probabilities), 0.5 + distance)
        return lambda runs, generator: generators.simulate_spa_answers(
            n_annotators, pairs.tolist(), runs=runs, rng=generator, **generator_options
        )

    def analyse(simulated: generators.SpaAnswers) -> Outcomes:
        values = _spa_values(simulated, mode, tau)
        analyse_pair = clustered_mean_outcomes if mode == "recommended" and tau is None else one_sample_t_test_outcomes
        pair_outcomes = [
            analyse_pair(values[:, :, pair], level=1 - chosen.significance, bounds=spa.BOUNDS, margin=margin)
            for pair in range(values.shape[2])
        ]
        return _beside(pair_outcomes)

    is_real = np.abs(probabilities - 0.5) > MIN_SPREAD

    def share(outcomes: Outcomes, real: BoolArray) -> float:
        is_found = _holm_found(outcomes.pvalue, chosen)
        return float(np.mean(is_found[:, real])) if real.any() else float(np.mean(is_found.any(axis=1)))

    simulated_outcomes = simulate_with_plan_options(generate(None), analyse, size, chosen, rng)
    is_found = _holm_found(simulated_outcomes.pvalue, chosen)
    detectable, warnings = least_detectable_effect_if_requested(
        lambda distance, seeded, hooks: share(
            simulate_with_plan_options(generate(distance), analyse, size, hooks, seeded),
            np.ones(len(probabilities), dtype=np.bool_),
        ),
        0.5,
        chosen,
        rng,
    )
    by_pair = [
        {
            "preference": float(probabilities[pair]),
            "power": float(np.mean(is_found[:, pair])),
            **mean_estimate_and_width(simulated_outcomes, pair),
            "equivalence_power": None
            if simulated_outcomes.is_equivalent is None
            else float(np.mean(simulated_outcomes.is_equivalent[:, pair])),
        }
        for pair in range(len(probabilities))
    ]
    return build_plan(
        chosen,
        protocol="spa",
        estimand="mean over annotators of P[x > y]",
        method="monte_carlo",
        unit="annotator",
        n=n_annotators,
        effect=float(np.mean(np.abs(probabilities[is_real] - 0.5))) if is_real.any() else 0.0,
        power=share(simulated_outcomes, is_real),
        detectable=detectable,
        width=nan_mean_or_none(simulated_outcomes.high - simulated_outcomes.low),
        labels=float(size),
        warnings=warnings,
        detail={
            "by_pair": by_pair,
            "all_found": float(np.mean(is_found[:, is_real].all(axis=1))) if is_real.any() else None,
            "n_undefined": int(np.isnan(simulated_outcomes.pvalue).sum()),
        },
        settings={
            "preferences": probabilities.tolist(),
            "mode": mode,
            "tau": tau,
            "margin": margin,
            **generator_options,
        },
    )


def _spa_values(simulated: generators.SpaAnswers, mode: str, tau: float | None) -> FloatArray:
    values = (
        spa.combine_orders(simulated.xy_percent, simulated.yx_percent)
        if mode == "recommended"
        else simulated.xy_percent / 100
    )
    if tau is None:
        return np.asarray(values)
    # The rule judges each annotator alone, so all runs' annotators are judged in one call.
    flat = (-1, simulated.xy_percent.shape[2])
    flags = spa.tau_incoherence_flags(simulated.xy_percent.reshape(flat), simulated.yx_percent.reshape(flat), tau=tau)
    incoherent = flags.incoherent.reshape(simulated.xy_percent.shape[:2])
    return np.where(incoherent[:, :, None], np.nan, values)


def _beside(parts: Sequence[Outcomes]) -> Outcomes:
    equivalent = [part.is_equivalent for part in parts if part.is_equivalent is not None]
    return Outcomes(
        np.stack([part.estimate for part in parts], axis=1),
        np.stack([part.low for part in parts], axis=1),
        np.stack([part.high for part in parts], axis=1),
        np.stack([part.pvalue for part in parts], axis=1),
        np.stack(equivalent, axis=1) if equivalent else None,
    )


def _holm_found(pvalues: FloatArray, chosen: PlanOptions) -> BoolArray:
    """Return which comparisons each run finds, with Holm within the run's family."""
    size = max(chosen.tests, pvalues.shape[1])
    if size == 1:
        return np.asarray(pvalues < chosen.significance)
    after = [multiplicity.holm(row, size=size) for row in pvalues.tolist()]
    table = np.array(after, dtype=np.float64).reshape(pvalues.shape)
    return np.asarray(table < chosen.significance)
