"""The number of labels that a labelling strategy needs to reach a decision."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, validate_level
from analysis.stats.bootstrap import percentile_interval
from analysis.stats.choice._strategies import RequestProbabilities, Strategy, probabilities_from_labels
from analysis.stats.results import Estimate, Record, ResultWarning
from analysis.stats.sequential import Boundaries, find_boundary_crossings

# Number of (run, request) cells in memory at once.
CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Effort(Record):
    """The effort to a decision in each of R runs.

    `n_requests` (R,) is the number of requests, 0 without a decision. `winner` (R,) is 1 for A, -1 for B, 0 for none.
    `n_labels` (R,) is the number of labels paid up to the decision (all labels without one). `is_same_requests`: the
    runs repeat the labelling of one set of requests, so they say nothing about another set.
    """

    strategy: Strategy
    n_requests: IntArray
    n_labels: IntArray
    winner: IntArray
    is_same_requests: bool
    settings: dict[str, Any]


def simulate_effort_to_decision(
    draw_probabilities: Callable[[int], RequestProbabilities],
    rule: Boundaries,
    strategy: Strategy,
    *,
    runs: int,
    reading: str,
    is_same_requests: bool,
    rng: np.random.Generator,
    settings: dict[str, Any] | None = None,
) -> Effort:
    """Simulate a labelling `runs` times and record when the rule decides and how many labels were paid.

    Parameters
    ----------
    draw_probabilities : callable[[int], RequestProbabilities]
        Takes a number of runs and returns their probabilities, of shape (n,) if all runs are alike or (size, n) with
        one row per run. n is the number of requests of `rule`.
    rule : Boundaries
        Stopping rule.
    strategy : Strategy
        Labelling strategy.
    runs : int
        Number of runs, at least 1.
    reading : {"first", "stays"}
        As in `sequential.find_boundary_crossings`.
    is_same_requests : bool
        Stored in the result.
    rng : numpy.random.Generator
        Source of the random draws.
    settings : dict[str, Any], optional
        Settings that are stored in the result.

    Returns
    -------
    Effort
        The effort in each run.

    Raises
    ------
    ValueError
        If `runs` is less than 1.

    Examples
    --------
    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> law = probabilities_from_labels([10] * 30, [10] * 30, Strategy("one"))
    >>> effort = simulate_effort_to_decision(lambda size: law, hoeffding_boundaries(30, delta=0.01), Strategy("one"), runs=3,
    ...                             reading="stays", is_same_requests=True, rng=np.random.default_rng(0))
    >>> effort.n_labels.tolist()
    [10, 10, 10]
    """
    if runs < 1:
        raise ValueError(f"runs: {runs} is less than 1")
    n = len(rule.upper)
    size = max(1, CELLS // n)
    requests, labels, winners = [], [], []
    for start in range(0, runs, size):
        n_block = min(size, runs - start)
        law = draw_probabilities(n_block)
        uniform = rng.random((n_block, n), dtype=np.float32)
        at_once = uniform < law.a_at_once.astype(np.float32)
        if strategy.name != "max_three":
            crossings = find_boundary_crossings(at_once, rule, reading=reading)
            paid = law.labels * np.where(crossings.n > 0, crossings.n, n)
        else:
            up_to_a = law.a_at_once + law.a_by_third
            at_once_b = uniform >= (up_to_a + law.b_by_third).astype(np.float32)
            crossings = find_boundary_crossings(uniform < up_to_a.astype(np.float32), rule, reading=reading)
            thirds = {
                "on_disagreement": ~(at_once | at_once_b),
                "unless_both_a": ~at_once,
                "unless_both_b": ~at_once_b,
            }[strategy.counting]
            used = np.where(crossings.n > 0, crossings.n, n)
            paid = law.labels * used + np.cumsum(thirds, axis=1, dtype=np.int32)[np.arange(n_block), used - 1]
        requests.append(crossings.n)
        labels.append(paid)
        winners.append(crossings.winner)
    return Effort(
        strategy,
        np.concatenate(requests),
        np.concatenate(labels).astype(np.int64),
        np.concatenate(winners),
        is_same_requests,
        dict(settings or {}),
    )


def effort_from_resampled_labels(
    wins: npt.ArrayLike,
    n_labels: npt.ArrayLike,
    strategy: Strategy,
    *,
    rule: Boundaries,
    reading: str = "first",
    runs: int = 1000,
    rng: np.random.Generator,
) -> Effort:
    """Estimate how many labels a strategy would have needed, by resampling items with more labels than it asks for.

    `wins` and `n_labels` count the labels for A and all labels of each item, in the order of the items, which is the
    same in all runs. Each run draws labels without replacement within items; `rule` is the stopping rule for as many
    requests as there are items, and `reading` is as in `sequential.find_boundary_crossings`. It is an error if the rule
    is for another number of items, or if an item has fewer labels than the strategy asks for. The paper's Table 6
    (section 5.5) uses Hoeffding's rule, reading "stays", 100 runs, and the items in the order of their ids. See
    `estimate_mean_labels_to_decision` for what a report may print.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> rule = hoeffding_boundaries(50, delta=0.01)
    >>> result = effort_from_resampled_labels([9] * 50, [10] * 50, Strategy("majority", 7), rule=rule, rng=np.random.default_rng(0))
    >>> set(result.n_labels.tolist())
    {70}
    """
    law = probabilities_from_labels(wins, n_labels, strategy)
    if len(rule.upper) != len(law.a_at_once):
        raise ValueError(f"rule: made for {len(rule.upper)} items where there are {len(law.a_at_once)}")
    return simulate_effort_to_decision(
        lambda size: law,
        rule,
        strategy,
        runs=runs,
        reading=reading,
        is_same_requests=True,
        rng=rng,
        settings={"rule": rule.name, "reading": reading, "runs": runs, "items": len(law.a_at_once)},
    )


def estimate_mean_labels_to_decision(
    effort: Effort,
    *,
    mode: str = "recommended",
    level: float = 0.99,
    resamples: int = 1000,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate the mean number of labels to a decision over runs, with a percentile bootstrap interval over runs.

    Mode "recommended" averages all runs, and a run without a decision counts with all labels it paid, a lower bound
    (warning `undecided`). Mode "paper" averages the runs with a decision, which is too low if some have none (warning
    `decided_only`, severity block). If the runs share one set of requests, the interval is about these requests only
    (warning `same_requests`), and the mean of another set can be far outside. `detail` has `share_decided` (the paper's
    Table 7), `share_a`, `share_b`, both means, and `median` and `quantile_90` (None if too few runs decided). The
    paper's Tables 3, 6 and 7 have level .99 and 1,000 resamples.

    >>> effort = Effort(Strategy("one"), np.array([10, 0, 30]), np.array([10, 50, 30]), np.array([1, 0, 1]), True, {})
    >>> paper = estimate_mean_labels_to_decision(effort, mode="paper", rng=np.random.default_rng(0))
    >>> paper.estimate, paper.n, estimate_mean_labels_to_decision(effort, rng=np.random.default_rng(0)).estimate
    (20.0, 2, 30.0)
    """
    validate_level(level)
    is_decided = effort.n_requests > 0
    runs = len(is_decided)
    averaged = effort.n_labels[is_decided] if mode == "paper" else effort.n_labels
    decided = effort.n_labels[is_decided]
    # A run without a decision is larger than all others, so the median is known only if half of all runs decided.
    ranked = np.sort(np.where(is_decided, effort.n_labels.astype(np.float64), math.inf))
    warnings = []
    if len(decided) < runs:
        detail: dict[str, Any] = {"share_undecided": 1 - len(decided) / runs}
        if mode == "paper":
            warnings.append(ResultWarning("decided_only", "block", detail))
        else:
            warnings.append(ResultWarning("undecided", "warn", detail))
    if effort.strategy.counting != "on_disagreement":
        warnings.append(ResultWarning("third_labels_miscounted", "block", {"counting": effort.strategy.counting}))
    if effort.is_same_requests:
        warnings.append(ResultWarning("same_requests", "info"))
    common: dict[str, Any] = {
        "analysis": "choice.replay",
        "estimand": "mean number of labels to a decision" + (", among runs that decide" if mode == "paper" else ""),
        "unit": "run",
        "mode": mode,
        "n": len(averaged),
        "n_rows": runs,
        "warnings": tuple(warnings),
        "detail": {
            "share_decided": len(decided) / runs if runs else None,
            "share_a": float(np.mean(effort.winner == 1)) if runs else None,
            "share_b": float(np.mean(effort.winner == -1)) if runs else None,
            "median": _quantile(ranked, 0.5),
            "quantile_90": _quantile(ranked, 0.9),
            "mean_decided": float(np.mean(decided)) if len(decided) else None,
            "mean_all": float(np.mean(effort.n_labels)) if runs else None,
        },
        "settings": {
            "strategy": effort.strategy.name,
            "workers": effort.strategy.workers,
            "counting": effort.strategy.counting,
            "level": level,
            "resamples": resamples,
            **effort.settings,
        },
    }
    if len(averaged) == 0:
        return Estimate(status="no_data", reason="no run came to a decision", **common)
    mean = float(np.mean(averaged))
    if len(averaged) == 1:
        return Estimate(status="n_lt_2", reason="one run has no spread", estimate=mean, **common)
    distinct, counts = np.unique(averaged, return_counts=True)
    drawn = rng.multinomial(len(averaged), counts / len(averaged), size=resamples)
    interval = percentile_interval(drawn @ distinct / len(averaged), level)
    if len(distinct) == 1 and mode != "paper":
        return Estimate(status="zero_variance", reason="all runs paid the same", estimate=mean, **common)
    # The paper prints an interval of width 0 if all runs paid the same: 70 [70-70].
    return Estimate(estimate=mean, interval=interval, **common)


def _quantile(ranked: FloatArray, share: float) -> float | None:
    """Return the least value that this share of the runs do not exceed, or None if that run has no decision."""
    if len(ranked) == 0:
        return None
    quantile = float(ranked[max(0, math.ceil(share * len(ranked)) - 1)])
    return quantile if math.isfinite(quantile) else None
