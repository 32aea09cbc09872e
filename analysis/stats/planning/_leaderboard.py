"""Plans for leaderboard scores."""

from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.stats import generators, leaderboard
from analysis.stats.planning._plan import Plan, PlanOptions
from analysis.stats.planning._search import plan_by_simulation
from analysis.stats.planning._simulation import Outcomes, outcomes_from_estimates


def simulate_leaderboard_power(
    n_items: int,
    difference: float,
    *,
    worse_score: float = 0.7,
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **generator_options: Any,
) -> Plan:
    """Plan the difference of two systems on one draw of items with one label each, by simulation.

    Parameters
    ----------
    n_items : int
        Number of items.
    difference : float
        True difference, in 0..1.
    worse_score : float, default 0.7
        Score of the worse system, in 0..1.
    rng : numpy.random.Generator
        Source of the random draws.
    options : PlanOptions, optional
        Options of the planner.
    **generator_options : Any
        Arguments of `generators.simulate_leaderboard_answers`.

    Returns
    -------
    Plan
        The plan. The test is `leaderboard.score_difference_in_points`; estimate and width are in points of 100.

    Examples
    --------
    >>> plan = simulate_leaderboard_power(300, 0.1, rng=np.random.default_rng(0), options=PlanOptions(runs=40))
    >>> plan.power > 0.5, plan.labels, 5 < plan.detail["estimate"] < 15
    (True, 600.0, True)
    """
    chosen = options or PlanOptions()
    items, systems = np.tile(np.arange(n_items), 2), np.repeat([0, 1], n_items)

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.LeaderboardAnswers]:
        return lambda runs, generator: generators.simulate_leaderboard_answers(
            n_items, [worse_score + effect, worse_score], runs=runs, rng=generator, **generator_options
        )

    def analyse(simulated: generators.LeaderboardAnswers) -> Outcomes:
        return outcomes_from_estimates(
            leaderboard.score_difference_in_points(
                values.ravel(), systems, items, annotators.ravel(), x=0, y=1, level=1 - chosen.significance
            )
            for values, annotators in zip(simulated.values, simulated.annotators, strict=True)
        )

    return plan_by_simulation(
        generate,
        analyse,
        difference,
        largest=1.0 - worse_score,
        n_answers=2 * n_items,
        options=chosen,
        rng=rng,
        protocol="leaderboard",
        estimand="difference of two systems' scores, points of 100",
        n=int(generator_options.get("n_annotators", 50)),
        settings={"n_items": n_items, "score": worse_score, **generator_options},
    )
