"""Plans of labelling strategies with a stopping rule: how many labels, and which decision."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from analysis.stats import choice, choice_simulation
from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.results import Record
from analysis.stats.sequential import Boundaries

STRATEGIES: Mapping[str, choice.Strategy] = {
    "one": choice.Strategy("one"),
    "fixed": choice.Strategy("fixed"),
    "max_three": choice.Strategy("max_three"),
    "majority_5": choice.Strategy("majority", 5),
    "majority_7": choice.Strategy("majority", 7),
}


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
    progress: Callable[[int, int], None] | None = None,
    **agent_options: Any,
) -> tuple[StrategyPlan, ...]:
    """Plan labelling strategies of two choices with one stopping rule, by simulation.

    There is one plan for each key of `STRATEGIES` in `strategies`. `mean_difficulty` is in -1..1: the share of
    annotators for x is (1 + capability difficulty) / 2. `n_requests` is the largest number of requests, for which
    `rule` is made, and studies without a decision pay for all. `progress` is called with (done, total) after each
    strategy and may raise to cancel. `agent_options` are `spread`, `spread_kind`, `capability` and `reading` of
    `choice_simulation.simulate_effort_of_new_agents`, which draws annotators and requests again in every study. The
    source is Thorleiksdóttir et al., Dynamic Human Evaluation for Relative Model Comparisons, Table 3 and Figure 1; the
    paper holds one draw of requests and annotators fixed, so its intervals are too narrow for another study.

    >>> from analysis.stats.sequential import beta_binomial_boundaries
    >>> one, three = plan_labelling_strategies(0.25, 1000, rule=beta_binomial_boundaries(1000), rng=np.random.default_rng(0),
    ...                                        strategies=("one", "max_three"), runs=100)
    >>> one.right, three.right, one.labels < three.labels
    (1.0, 1.0, True)
    """
    unknown = [name for name in strategies if name not in STRATEGIES]
    if unknown:
        raise ValueError(f"strategies: {unknown[0]!r} is not one of {', '.join(STRATEGIES)}.")
    plans = []
    for number, name in enumerate(strategies):
        effort = choice_simulation.simulate_effort_of_new_agents(
            mean_difficulty, n_requests, STRATEGIES[name], rule=rule, runs=runs, rng=rng, **agent_options
        )
        plans.append(
            _summary(name, effort, mean_difficulty, {"n_requests": n_requests, "rule": rule.name, **agent_options})
        )
        if progress is not None:
            progress(number + 1, len(strategies))
    return tuple(plans)


def _summary(name: str, effort: choice.Effort, mean_difficulty: float, settings: dict[str, Any]) -> StrategyPlan:
    winner, labels = np.asarray(effort.winner), np.asarray(effort.n_labels, dtype=np.float64)
    decided = float(np.mean(winner != 0))
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
        requests=float(np.mean(effort.n_requests)),
        runs=len(winner),
        settings={"mean_difficulty": mean_difficulty, **settings},
    )
