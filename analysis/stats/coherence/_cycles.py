"""Cycles of systems, and sums of log-odds around them."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import bootstrap
from analysis.stats.arrays import MIN_SPREAD, FloatArray, validate_level
from analysis.stats.coherence._graph import (
    Pairs,
    _arrows,
    _fundamental_cycles,
    _means,
    _table,
    is_cyclic,
    shortest_cycles,
)
from analysis.stats.results import Estimate, ResultWarning


def cycle_probability_of_means(
    values: npt.ArrayLike,
    pairs: Pairs,
    draws: FloatArray,
    *,
    n_systems: int,
) -> tuple[Estimate, tuple[tuple[int, ...], ...]]:
    """Estimate the bootstrap probability that the mean preferences form a cycle.

    `values`, of shape (n_annotators, n_pairs), are P[x > y] in 0..1, NaN where missing, for the system numbers (x, y)
    of each column in `pairs`; `draws` are the result of `bootstrap_pair_means`. x beats y if the mean of P[x > y]
    exceeds .5. The result is the share of resamples with a cycle, and one shortest cycle for each group of systems that
    beat one another in a circle.

    >>> draws = np.array([[0.6, 0.6, 0.4], [0.6, 0.6, 0.6]])
    >>> result, cycles = cycle_probability_of_means([[0.6, 0.6, 0.4]], [(0, 1), (1, 2), (0, 2)], draws, n_systems=3)
    >>> result.estimate, cycles
    (0.5, ((0, 1, 2),))
    """
    table = _table(values, pairs, n_systems)
    n = int((~np.isnan(table)).any(axis=1).sum())
    common: dict[str, Any] = {
        "analysis": "spa.coherence.cycle",
        "estimand": "probability that the mean preferences contain a cycle",
        "unit": "annotator",
        "n": n,
        "n_rows": int((~np.isnan(table)).sum()),
        "settings": {"resamples": len(draws)},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no comparison to analyse", **common), ()
    if n_systems < 3 or len(pairs) < 3:
        return Estimate(status="not_applicable", reason="fewer than three pairs cannot form a cycle", **common), ()
    beats = _arrows(_means(table)[None], pairs, n_systems)[0]
    cycles = shortest_cycles(beats)
    share = float(np.mean(is_cyclic(_arrows(draws, pairs, n_systems)))) if len(draws) else float(bool(cycles))
    detail = {
        "is_cyclic": bool(cycles),
        "cycles": cycles,
        "monte_carlo_error": bootstrap.monte_carlo_error(share, max(1, len(draws))),
    }
    return Estimate(estimate=share, detail=detail, **common), cycles


def fundamental_cycle_log_odds_sums(
    values: npt.ArrayLike,
    pairs: Pairs,
    draws: FloatArray,
    *,
    n_systems: int,
    level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the sum S of the mean preferences' log-odds around each independent cycle of questions.

    `values`, `pairs` and `draws` are as in `cycle_probability_of_means`, and there is one estimate per cycle. With one
    Bradley-Terry scale for all annotators and no effect of the order of naming, every S is 0. The converse is false: a
    mixture of coherent annotators can have S far from 0, so S is evidence against one scale, not for an effect of
    wording (warning `not_one_scale`). The cycles are the fundamental ones of the undirected graph of pairs, in the
    direction of most questions; `detail["implied_framing"]` is S divided by the difference of forward and backward
    questions, and a mean of 0 or 1 gives `not_identified`. The interval is the percentile bootstrap over annotators.
    Resamples without an answer to one of the questions are left out, and there is no interval if they are half of all;
    the warning `undefined_resamples` counts these and those with a mean of 0 or 1.

    >>> table_1 = [[0.420, 0.688, 0.630, 0.575, 0.544]]
    >>> result = fundamental_cycle_log_odds_sums(table_1, [(0, 4), (1, 0), (2, 1), (3, 2), (4, 3)], np.empty((0, 5)), n_systems=5)
    >>> round(result[0].estimate, 4), round(result[0].detail["implied_framing"], 4)
    (1.479, 0.2958)
    """
    validate_level(level)
    table = _table(values, pairs, n_systems)
    means = _means(table)
    is_asked = ~np.isnan(means)
    results = []
    for nodes, steps in _fundamental_cycles(pairs, is_asked, n_systems):
        columns = np.array([column for column, _ in steps], dtype=np.int64)
        signs = np.array([sign for _, sign in steps], dtype=np.float64)
        n = int((~np.isnan(table[:, columns])).any(axis=1).sum())
        common: dict[str, Any] = {
            "analysis": "spa.coherence.cycle_sum",
            "estimand": "sum of log-odds around a cycle of questions",
            "unit": "annotator",
            "n": n,
            "n_rows": int((~np.isnan(table[:, columns])).sum()),
            "settings": {"level": level, "resamples": len(draws)},
        }
        detail: dict[str, Any] = {"cycle": nodes, "means": means[columns], "signs": signs}
        if np.any((means[columns] <= 0) | (means[columns] >= 1)):
            reason = "a mean of 0 or 1 has no log-odds"
            results.append(Estimate(status="not_identified", reason=reason, detail=detail, **common))
            continue
        total = float(special.logit(means[columns]) @ signs)
        net = float(signs.sum())
        detail["implied_framing"] = total / net if net else None
        warnings = [
            ResultWarning("not_one_scale", "info", {"meaning": "S differs from 0 also where annotators merely differ"})
        ]
        interval, status, reason = None, "ok", ""
        if n == 1:
            status, reason = "n_lt_2", "one annotator has no spread"
        elif len(draws):
            # A resample without answers to one of the questions has no sum. With a mean of 0 or 1 it is infinite.
            answered = draws[~np.isnan(draws[:, columns]).any(axis=1)][:, columns]
            if len(answered) and float(np.ptp(answered, axis=0).max()) < MIN_SPREAD:
                # Equal answers do not give certainty, so an interval of width 0 is not shown.
                status, reason = "zero_variance", "all resamples give the same sum"
            elif len(answered) > len(draws) / 2:
                interval = bootstrap.percentile_interval(special.logit(answered) @ signs, level)
            undefined = 1 - float(np.mean(((draws[:, columns] > 0) & (draws[:, columns] < 1)).all(axis=1)))
            if undefined:
                warnings.append(ResultWarning("undefined_resamples", "warn", {"share": undefined}))
        common |= {"status": status, "reason": reason, "interval": interval, "warnings": tuple(warnings)}
        results.append(Estimate(estimate=total, detail=detail, **common))
    return tuple(results)
