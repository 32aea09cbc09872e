"""Plans for pairwise choices."""

from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.stats import choice, choice_simulation, generators
from analysis.stats.planning._clustered import clustered_mean_outcomes
from analysis.stats.planning._plan import Plan, PlanOptions, build_plan
from analysis.stats.planning._search import plan_by_simulation, simulate_with_plan_options
from analysis.stats.planning._simulation import Outcomes, outcomes_from_estimates
from analysis.stats.sequential import Boundaries


def simulate_strategy_power_and_effort(
    mean_difficulty: float,
    n_requests: int,
    strategy: choice.Strategy,
    *,
    rule: Boundaries,
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **agent_options: Any,
) -> Plan:
    """Plan a labelling strategy with its stopping rule, by simulation.

    Parameters
    ----------
    mean_difficulty : float
        Mean difficulty of the requests, as in `choice_simulation.draw_annotators_and_requests`.
    n_requests : int
        Largest number of requests. Runs without a decision pay for all.
    strategy : choice.Strategy
        Labelling strategy.
    rule : Boundaries
        Stopping rule for `n_requests`.
    rng : numpy.random.Generator
        Source of the random draws.
    options : PlanOptions, optional
        Options of the planner.
    **agent_options : Any
        Arguments of `choice_simulation.simulate_effort_of_new_agents`, which draws annotators and requests again in
        every run.

    Returns
    -------
    Plan
        The plan: how often the better system wins, and the effort.

    Examples
    --------
    >>> from analysis.stats.sequential import beta_binomial_boundaries
    >>> plan = simulate_strategy_power_and_effort(0.25, 1000, choice.Strategy("max_three"), rule=beta_binomial_boundaries(1000),
    ...                      rng=np.random.default_rng(0), options=PlanOptions(runs=100))
    >>> plan.power, 200 < plan.labels < 600
    (1.0, True)
    """
    chosen = options or PlanOptions()

    def generate(size: int, generator: np.random.Generator) -> choice.Effort:
        return choice_simulation.simulate_effort_of_new_agents(
            mean_difficulty, n_requests, strategy, rule=rule, runs=size, rng=generator, **agent_options
        )

    def analyse(effort: choice.Effort) -> Outcomes:
        # The `estimate` holds the winner, `low` and `high` the numbers of requests and of labels.
        winner = effort.winner.astype(np.float64)
        return Outcomes(winner, effort.n_requests.astype(np.float64), effort.n_labels.astype(np.float64), winner)

    outcomes = simulate_with_plan_options(generate, analyse, n_requests * strategy.max_labels_per_item, chosen, rng)
    side = 1.0 if mean_difficulty > 0 else -1.0
    is_right = outcomes.estimate == side if mean_difficulty else outcomes.estimate != 0
    labels = outcomes.high
    return build_plan(
        chosen,
        protocol="choice",
        estimand="share of A among requests decided by the strategy",
        method="monte_carlo",
        unit="request",
        n=n_requests,
        effect=mean_difficulty,
        power=float(np.mean(is_right)),
        labels=float(np.mean(labels)),
        detail={
            "decided_share": float(np.mean(outcomes.estimate != 0)),
            "wrong_share": float(np.mean(outcomes.estimate == -side)) if mean_difficulty else None,
            "labels_median": float(np.median(labels)),
            "labels_90": float(np.quantile(labels, 0.9)),
        },
        settings={
            "mean_difficulty": mean_difficulty,
            "strategy": strategy.name,
            "workers": strategy.workers,
            "rule": rule.name,
            **agent_options,
        },
    )


def simulate_choice_power(
    n_annotators: int,
    n_each: int,
    mean_difficulty: float,
    *,
    rng: np.random.Generator,
    options: PlanOptions | None = None,
    **generator_options: Any,
) -> Plan:
    """Plan pairwise choices at a fixed n, by simulation.

    Parameters
    ----------
    n_annotators, n_each : int
        Number of annotators, and of labels per annotator.
    mean_difficulty : float
        Mean difficulty of the requests.
    rng : numpy.random.Generator
        Source of the random draws.
    options : PlanOptions, optional
        Options of the planner.
    **generator_options : Any
        Arguments of `generators.simulate_choice_answers`.

    Returns
    -------
    Plan
        The plan. `detail["estimate"]` is the mean share of A, .5 + about .45 times the mean difficulty.

    Notes
    -----
    The test is t on annotators' means (`choice.annotator_weighted_preference_share`); with one label each, the exact binomial test.

    Examples
    --------
    >>> plan = simulate_choice_power(100, 5, 0.25, rng=np.random.default_rng(0), options=PlanOptions(runs=200))
    >>> plan.power > 0.95, round(plan.detail["estimate"], 2), plan.labels
    (True, 0.61, 500.0)
    """
    chosen = options or PlanOptions()
    level = 1 - chosen.significance

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.ChoiceAnswers]:
        return lambda runs, generator: generators.simulate_choice_answers(
            n_annotators, n_each, mean_difficulty=effect, runs=runs, rng=generator, **generator_options
        )

    def analyse(answers: generators.ChoiceAnswers) -> Outcomes:
        if n_each > 1:
            return clustered_mean_outcomes(answers.chose_a.mean(axis=2), level=level, bounds=(0.0, 1.0))
        # The test depends only on the number of labels for A, so each number is analysed once.
        _, first, which = np.unique(answers.chose_a.sum(axis=(1, 2)), return_index=True, return_inverse=True)
        annotators = np.arange(n_annotators)
        outcomes = outcomes_from_estimates(
            choice.annotator_weighted_preference_share(answers.chose_a[row, :, 0], annotators, level=level)
            for row in first
        )
        return Outcomes(outcomes.estimate[which], outcomes.low[which], outcomes.high[which], outcomes.pvalue[which])

    return plan_by_simulation(
        generate,
        analyse,
        mean_difficulty,
        largest=1.0,
        n_answers=n_annotators * n_each,
        options=chosen,
        rng=rng,
        protocol="choice",
        estimand="annotator-weighted share of A",
        n=n_annotators,
        settings={"n_each": n_each, **generator_options},
    )
