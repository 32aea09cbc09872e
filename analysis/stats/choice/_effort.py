"""How many labels it takes to a decision."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, refuse_level
from analysis.stats.bootstrap import percentile_interval
from analysis.stats.choice._strategies import RequestProbabilities, Strategy, probabilities_from_labels
from analysis.stats.results import Estimate, Record, ResultWarning
from analysis.stats.sequential import Boundaries, crossings

# How many (run, request) cells are held at once.
CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Effort(Record):
    """The effort to a decision in each of R runs: `n_requests` (R,) requests, 0 where none was reached, `winner` (R,)
    1 for A, -1 for B, 0 for none, `n_labels` (R,) labels paid up to the decision (all, where there is none).

    `is_same_requests`: the runs repeat the labelling of one set of requests, and say nothing of another set.
    """

    strategy: Strategy
    n_requests: IntArray
    n_labels: IntArray
    winner: IntArray
    is_same_requests: bool
    settings: dict[str, Any]


def effort_to_decision(
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
    """Repeat a labelling `runs` times and see when the rule decides and what had been paid by then.

    `draw_law(size)` gives the law of the next `size` runs, all alike with shape (n,) or one each with (size, n), n the
    number of requests that `rule` is for. `reading` as in `sequential.crossings`.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> law = probabilities_from_labels([10] * 30, [10] * 30, Strategy("one"))
    >>> effort = effort_to_decision(lambda size: law, hoeffding_boundaries(30, delta=0.01), Strategy("one"), runs=3,
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
        here = min(size, runs - start)
        law = draw_probabilities(here)
        uniform = rng.random((here, n), dtype=np.float32)
        at_once = uniform < law.a_at_once.astype(np.float32)
        if strategy.name != "max_three":
            found = crossings(at_once, rule, reading=reading)
            paid = law.labels * np.where(found.n > 0, found.n, n)
        else:
            up_to_a = law.a_at_once + law.a_by_third
            at_once_b = uniform >= (up_to_a + law.b_by_third).astype(np.float32)
            found = crossings(uniform < up_to_a.astype(np.float32), rule, reading=reading)
            thirds = {
                "on_disagreement": ~(at_once | at_once_b),
                "unless_both_a": ~at_once,
                "unless_both_b": ~at_once_b,
            }[strategy.counting]
            used = np.where(found.n > 0, found.n, n)
            paid = law.labels * used + np.cumsum(thirds, axis=1, dtype=np.int32)[np.arange(here), used - 1]
        requests.append(found.n)
        labels.append(paid)
        winners.append(found.winner)
    return Effort(
        strategy,
        np.concatenate(requests),
        np.concatenate(labels).astype(np.int64),
        np.concatenate(winners),
        is_same_requests,
        dict(settings or {}),
    )


def resampled_effort(
    wins: npt.ArrayLike,
    n_labels: npt.ArrayLike,
    strategy: Strategy,
    *,
    rule: Boundaries,
    reading: str = "first",
    runs: int = 1000,
    rng: np.random.Generator,
) -> Effort:
    """How many labels a strategy would have needed on items that have been labelled more often than it asks for.

    `wins` of `n_labels` labels of each item chose A; both have shape (n_items,), in the order in which items are asked,
    the same in every run. In each run labels are drawn without replacement within items and `rule` is applied to the
    answers. The paper's Table 6: Hoeffding's rule, reading "stays", 100 runs, items in the order of their ids.

    Source: section 5.5. See `effort_summary` for what may be printed.

    >>> from analysis.stats.sequential import hoeffding_boundaries
    >>> rule = hoeffding_boundaries(50, delta=0.01)
    >>> found = resampled_effort([9] * 50, [10] * 50, Strategy("majority", 7), rule=rule, rng=np.random.default_rng(0))
    >>> set(found.n_labels.tolist())
    {70}
    """
    law = probabilities_from_labels(wins, n_labels, strategy)
    if len(rule.upper) != len(law.a_at_once):
        raise ValueError(f"rule: made for {len(rule.upper)} items where there are {len(law.a_at_once)}")
    return effort_to_decision(
        lambda size: law,
        rule,
        strategy,
        runs=runs,
        reading=reading,
        is_same_requests=True,
        rng=rng,
        settings={"rule": rule.name, "reading": reading, "runs": runs, "items": len(law.a_at_once)},
    )


def effort_summary(
    effort: Effort,
    *,
    mode: str = "recommended",
    level: float = 0.99,
    resamples: int = 1000,
    rng: np.random.Generator,
    analysis: str = "choice.effort",
) -> Estimate:
    """The mean number of labels to a decision over runs, with a percentile bootstrap interval over runs.

    "paper" averages the runs that decided, which is too low where some did not (warning `decided_only`, block);
    "recommended" averages all runs, an undecided one with everything it paid, which is a lower bound of what it would
    have needed (warning `undecided`). detail: `share_decided` (the paper's Table 7), `share_a`, `share_b`, `median`
    and `quantile_90` over all runs (None where too few decided), and both means. Where the runs share one set of
    requests the interval is about these very requests (warning `same_requests`): another set's mean lies many widths
    away.

    Source: Tables 3, 6 and 7: level .99, 1,000 resamples.

    >>> effort = Effort(Strategy("one"), np.array([10, 0, 30]), np.array([10, 50, 30]), np.array([1, 0, 1]), True, {})
    >>> paper = effort_summary(effort, mode="paper", rng=np.random.default_rng(0))
    >>> paper.estimate, paper.n, effort_summary(effort, rng=np.random.default_rng(0)).estimate
    (20.0, 2, 30.0)
    """
    refuse_level(level)
    is_decided = effort.n_requests > 0
    runs = len(is_decided)
    averaged = effort.n_labels[is_decided] if mode == "paper" else effort.n_labels
    decided = effort.n_labels[is_decided]
    # An undecided run lies beyond all others, so half of all runs must have decided for the median to be known.
    ranked = np.sort(np.where(is_decided, effort.n_labels.astype(np.float64), math.inf))
    warnings = []
    if len(decided) < runs:
        detail: dict[str, Any] = {"share_undecided": 1 - len(decided) / runs}
        warnings.append(
            ResultWarning(*(("decided_only", "block") if mode == "paper" else ("undecided", "warn")), detail)
        )
    if effort.strategy.counting != "on_disagreement":
        warnings.append(ResultWarning("third_labels_miscounted", "block", {"counting": effort.strategy.counting}))
    if effort.is_same_requests:
        warnings.append(ResultWarning("same_requests", "info"))
    common: dict[str, Any] = {
        "analysis": analysis,
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
    # In the paper runs that all paid the same have an interval of no width: 70 [70-70].
    return Estimate(estimate=mean, interval=interval, **common)


def _quantile(ranked: FloatArray, share: float) -> float | None:
    """The least value that this share of the runs do not exceed; None if that is a run without an end."""
    if len(ranked) == 0:
        return None
    found = float(ranked[max(0, math.ceil(share * len(ranked)) - 1)])
    return found if math.isfinite(found) else None
