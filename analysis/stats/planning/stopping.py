"""Plans with a stopping rule: group-sequential, and labelling strategies."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from analysis.stats import agents, choice, stopping_boundaries
from analysis.stats.arrays import FloatArray
from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.planning.simulated_studies import Plan, PlanOptions
from analysis.stats.results import Interval, Record
from analysis.stats.stopping_boundaries import Boundaries

# The plan of a test with looks, by simulation.


# Simulated studies of a test with looks: the standard error of a power of .9 is .001.
CROSSING_RUNS = 100_000


def compute_group_sequential_power(
    difference: float,
    sd: float,
    looks: Sequence[int],
    *,
    shape: str = "obrien_fleming",
    is_one_sided: bool = False,
    options: PlanOptions | None = None,
) -> Plan:
    """Compute the power of a test of a mean with planned looks, and the expected numbers of units and labels.

    `difference` is that of the mean from its null, `sd` is the standard deviation of a unit, and `looks` are the
    numbers of units at the looks, ascending from at least 2. `shape` is as in
    `stopping_boundaries.group_sequential_design`. With `is_one_sided` only a mean above the null is a claim, as for goals
    by a margin, and each look has half the level. The boundaries are those of a large sample, and each look is a t
    test. With few units the power is clearly below that of a z test, so it is simulated, for normal values and with a
    fixed seed, from the means and variances of the units between two looks. `detail["simulation_error"]` is the
    standard error of the power.

    >>> plan = compute_group_sequential_power(0.075, 0.27, [40, 80, 120, 160, 200])
    >>> round(plan.power, 2), round(plan.detail["expected_n"], -1)
    (0.97, 130.0)
    """
    chosen = options or PlanOptions()
    at = np.asarray(looks, dtype=np.float64)
    # A planner raises the same errors as the test itself.
    if at.ndim != 1 or len(at) == 0 or np.any(at != np.round(at)) or at[0] < 2 or not np.all(np.diff(at) > 0):
        raise ValueError(f"looks: {list(looks)} are not whole numbers that ascend from at least 2")
    boundaries = stopping_boundaries.group_sequential_design(
        at / at[-1], shape=shape, significance=chosen.significance / chosen.tests
    )
    if not math.isfinite(difference):
        raise ValueError(f"difference: {difference!r} is not finite")
    if not (math.isfinite(sd) and sd > 0):
        raise ValueError(f"sd: {sd!r} is not a positive number")
    leaving = _simulated_crossings(at, boundaries.nominal, difference / sd, is_one_sided)
    total_power = float(leaving.sum())
    expected = float(leaving @ at) + (1 - total_power) * float(at[-1])
    return Plan(
        protocol="mean",
        estimand="mean of one value a unit, against its null, at planned looks",
        method="simulation",
        unit="annotator",
        n=int(at[-1]),
        effect=difference,
        power=total_power,
        labels=expected,
        significance=chosen.significance,
        tests=chosen.tests,
        wanted=chosen.wanted,
        detail={
            "expected_n": expected,
            "stopping": leaving.tolist(),
            "simulation_error": math.sqrt(total_power * (1 - total_power) / CROSSING_RUNS),
        },
        settings={
            "sd": sd,
            "looks": [int(look) for look in at],
            "shape": shape,
            "answers_each": 1,
            "is_one_sided": is_one_sided,
        },
    )


def _simulated_crossings(looks: FloatArray, nominal: FloatArray, effect: float, is_one_sided: bool) -> FloatArray:
    """Return the share of simulated studies whose t test first makes a claim at each look; `effect` in units of sd."""
    rng = np.random.default_rng(0)
    mean, squares, crossed_before = (
        np.zeros(CROSSING_RUNS),
        np.zeros(CROSSING_RUNS),
        np.zeros(CROSSING_RUNS, dtype=bool),
    )
    leaving, seen = [], 0.0
    for n, boundary in zip(looks.tolist(), nominal.tolist(), strict=True):
        added = n - seen
        new_mean = effect + rng.normal(size=CROSSING_RUNS) / math.sqrt(added)
        new_squares = rng.chisquare(added - 1, CROSSING_RUNS) if added > 1 else 0.0
        squares = squares + new_squares + (new_mean - mean) ** 2 * seen * added / n
        mean = mean + (new_mean - mean) * added / n
        statistic = mean * np.sqrt(n * (n - 1) / squares)
        claims = statistic if is_one_sided else np.abs(statistic)
        crosses = (2 * special.stdtr(n - 1, -claims) <= boundary) & ~crossed_before
        leaving.append(float(crosses.mean()))
        crossed_before |= crosses
        seen = n
    return np.array(leaving)


# Plans of labelling strategies with a stopping rule: how many labels, and which decision.


STRATEGIES: Mapping[str, choice.Strategy] = {
    "one": choice.Strategy("one"),
    "fixed": choice.Strategy("fixed"),
    "max_three": choice.Strategy("max_three"),
    "majority_5": choice.Strategy("majority", 5),
    "majority_7": choice.Strategy("majority", 7),
}


# Other draws of annotators and requests, and simulated studies with each: their error widens the spread of the means
# of seven annotators in Table 3 by 4 %.
OTHER_DRAWS, STUDIES_OF_A_DRAW = 40, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyPlan(Record):
    """What simulated studies with one labelling strategy cost and decide.

    Attributes
    ----------
    strategy : str
        Name of the strategy.
    right, wrong : float
        Shares of studies that decide for the better system, and for the other. Without a difference, `right` is 0 and
        `wrong` is the share that decides at all.
    decided, decided_error : float
        Share of studies that decide, with its Monte-Carlo standard error.
    labels, labels_error, labels_median, labels_90 : float
        Paid labels of a study: mean with its Monte-Carlo standard error, median and 90 % quantile. Studies without a
        decision pay for all requests.
    labels_low, labels_high : float or None
        The 99 % percentile bootstrap interval of `labels` over the simulated studies. With one draw it is about these
        annotators and requests only. None if all studies paid the same.
    draws_low, draws_high : float or None
        With one draw: the 5 % and 95 % quantiles of the mean of `labels` over OTHER_DRAWS other draws. Otherwise None.
    requests : float
        Mean number of requests (items) that were labelled.
    runs : int
        Number of simulated studies.
    """

    strategy: str
    right: float
    wrong: float
    decided: float
    decided_error: float
    labels: float
    labels_error: float
    labels_median: float
    labels_90: float
    labels_low: float | None
    labels_high: float | None
    draws_low: float | None
    draws_high: float | None
    requests: float
    runs: int
    settings: dict[str, Any] = field(default_factory=dict)


def plan_labelling_strategies(
    mean_difficulty: float,
    n_requests: int,
    *,
    rule: Boundaries,
    rng: np.random.Generator,
    strategies: Sequence[str] = tuple(STRATEGIES),
    runs: int = 400,
    is_one_draw: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **agent_options: Any,
) -> tuple[StrategyPlan, ...]:
    """Plan labelling strategies of two choices with one stopping rule, by simulation.

    There is one plan for each key of `STRATEGIES` in `strategies`. `mean_difficulty` is in -1..1: the share of
    annotators for x is (1 + capability difficulty) / 2. `n_requests` is the largest number of requests, for which
    `rule` is made, and studies without a decision pay for all. `progress` is called with (done, total) after each
    strategy and may raise to cancel. `agent_options` are `spread`, `spread_kind`, `capability` and `reading` of
    `agents.simulate_effort_of_new_agents`, which draws annotators and requests again in every study. The
    source is Thorleiksdóttir et al., Dynamic Human Evaluation for Relative Model Comparisons, Table 3 and Figure 1; the
    paper holds one draw of 100 annotators and the requests fixed, so its intervals are too narrow for another study.
    `is_one_draw` does the same, and adds what other draws give.

    >>> from analysis.stats.sequential import beta_binomial_boundaries
    >>> one, three = plan_labelling_strategies(0.25, 1000, rule=beta_binomial_boundaries(1000), rng=np.random.default_rng(0),
    ...                                        strategies=("one", "max_three"), runs=100)
    >>> one.right, three.right, one.labels < three.labels
    (1.0, 1.0, True)
    """
    unknown = [name for name in strategies if name not in STRATEGIES]
    if unknown:
        raise ValueError(f"strategies: {unknown[0]!r} is not one of {', '.join(STRATEGIES)}.")
    drawing = {name: value for name, value in agent_options.items() if name != "reading"}
    reading = agent_options.get("reading", "first")
    drawn = [
        agents.draw_agents(mean_difficulty, n_requests, rng=rng, **drawing)
        for _ in range(1 + OTHER_DRAWS if is_one_draw else 0)
    ]
    settings = {"n_requests": n_requests, "rule": rule.name, "is_one_draw": is_one_draw, **agent_options}
    plans = []
    for number, name in enumerate(strategies):
        strategy, means = STRATEGIES[name], []
        if is_one_draw:
            effort, *others = (
                agents.simulate_effort_of_same_agents(
                    one, strategy, rule=rule, reading=reading, runs=STUDIES_OF_A_DRAW if place else runs, rng=rng
                )
                for place, one in enumerate(drawn)
            )
            means = [float(np.mean(other.n_labels)) for other in others]
        else:
            effort = agents.simulate_effort_of_new_agents(
                mean_difficulty, n_requests, strategy, rule=rule, runs=runs, rng=rng, **agent_options
            )
        interval = choice.estimate_mean_labels_to_decision(effort, rng=rng.spawn(1)[0]).interval
        plans.append(_summary(name, effort, mean_difficulty, interval, means, settings))
        if progress is not None:
            progress(number + 1, len(strategies))
    return tuple(plans)


def _summary(
    name: str,
    effort: choice.Effort,
    mean_difficulty: float,
    interval: Interval | None,
    means_of_draws: Sequence[float],
    settings: dict[str, Any],
) -> StrategyPlan:
    winner, labels = np.asarray(effort.winner), np.asarray(effort.n_labels, dtype=np.float64)
    decided = float(np.mean(winner != 0))
    draws = np.quantile(means_of_draws, (0.05, 0.95)).tolist() if means_of_draws else (None, None)
    right = float(np.mean(winner == np.sign(mean_difficulty))) if mean_difficulty else 0.0
    return StrategyPlan(
        strategy=name,
        right=right,
        wrong=decided - right,
        decided=decided,
        decided_error=monte_carlo_error(decided, len(winner)),
        labels=float(np.mean(labels)),
        labels_error=float(np.std(labels) / np.sqrt(len(labels))),
        labels_median=float(np.median(labels)),
        labels_90=float(np.quantile(labels, 0.9)),
        labels_low=interval.low if interval else None,
        labels_high=interval.high if interval else None,
        draws_low=draws[0],
        draws_high=draws[1],
        requests=float(np.mean(effort.n_requests)),
        runs=len(winner),
        settings={"mean_difficulty": mean_difficulty, **settings},
    )
