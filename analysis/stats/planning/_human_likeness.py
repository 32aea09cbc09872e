"""Plans for human-likeness studies."""

from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.stats import generators, groups
from analysis.stats.planning._clustered import two_way_clustered_mean_outcomes
from analysis.stats.planning._plan import Plan, PlanOptions
from analysis.stats.planning._search import plan_by_simulation
from analysis.stats.planning._simulation import Outcomes, outcomes_from_estimates


def simulate_human_likeness_power(
    n_annotators: int,
    n_each: int,
    d_prime: float,
    *,
    measure: str = "accuracy",
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **generator_options: Any,
) -> Plan:
    """Plan a human-likeness study, by simulation.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of texts per annotator.
    d_prime : float
        True sensitivity.
    measure : {"accuracy", "sensitivity"}, default 'accuracy'
        "accuracy": share correct against .5 (`detection.accuracy`). "sensitivity": marginal d' against 0
        (`detection.sensitivity`).
    rng : numpy.random.Generator
        Source of the random draws.
    options : PlanOptions, optional
        Options of the planner.
    **generator_options : Any
        Arguments of `generators.simulate_human_likeness_ratings`; with `n_texts` annotators share texts.

    Returns
    -------
    Plan
        The plan.

    Raises
    ------
    ValueError
        If `measure` is not allowed.

    Notes
    -----
    To compare training conditions between annotators, use `compute_two_group_test_power` on their accuracies.

    Examples
    --------
    >>> plan = simulate_human_likeness_power(130, 5, 0.5, n_texts=100, rng=np.random.default_rng(0), options=PlanOptions(runs=200))
    >>> plan.power > 0.9, round(plan.detail["estimate"], 1), plan.labels
    (True, 0.6, 650.0)
    """
    chosen = options or PlanOptions()
    if measure not in ("accuracy", "sensitivity"):
        raise ValueError(f"measure: {measure!r} is neither accuracy nor sensitivity")
    annotators = np.repeat(np.arange(n_annotators), n_each)
    level = 1 - chosen.significance

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.HumanLikeRatings]:
        return lambda runs, generator: generators.simulate_human_likeness_ratings(
            n_annotators, n_each, d_prime=effect, runs=runs, rng=generator, **generator_options
        )

    def analyse(simulated: generators.HumanLikeRatings) -> Outcomes:
        says = (simulated.ratings > 2.5).reshape(len(simulated.ratings), -1)
        texts = simulated.texts.ravel()
        truth = simulated.is_machine[texts]
        if measure == "accuracy":
            return two_way_clustered_mean_outcomes(says == truth, annotators, texts, level=level, bounds=(0.0, 1.0))
        return outcomes_from_estimates(
            groups.cell_contrast(
                answers,
                truth,
                {True: 1.0, False: -1.0},
                annotators,
                texts,
                link="probit",
                is_log_linear_corrected=True,
                level=level,
            )
            for answers in says.astype(np.float64)
        )

    return plan_by_simulation(
        generate,
        analyse,
        d_prime,
        largest=4.0,
        n_answers=n_annotators * n_each,
        options=chosen,
        rng=rng,
        protocol="humanlike",
        estimand="share of correct answers" if measure == "accuracy" else "marginal d'",
        n=n_annotators,
        settings={"n_each": n_each, "measure": measure, **generator_options},
    )
