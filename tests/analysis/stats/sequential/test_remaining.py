"""What remains of a study is simulated from what is known."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from analysis.stats import sequential, stopping_boundaries


def futures(series, runs, horizon, rng):
    """When each of many futures stops, with e as the ratio of two probabilities of the same count."""
    n, wins = len(series), sum(series)
    p = rng.beta(1 + wins, 1 + n - wins, size=runs)
    successes = wins + np.cumsum(rng.random((runs, horizon)) < p[:, None], axis=1)
    sizes = n + np.arange(1, horizon + 1)
    log_e = stats.betabinom.logpmf(successes, sizes, 10, 10) - stats.binom.logpmf(successes, sizes, 0.5)
    is_over = log_e >= math.log(20)
    return np.where(is_over.any(axis=1), np.argmax(is_over, axis=1) + 1.0, math.inf)


def test_what_remains_agrees_with_an_independent_simulation():
    series = [1, 0, 1, 1, 0, 1, 0, 1, 1, 1] * 4
    wanted = futures(series, 1500, 400, np.random.default_rng(0))
    left = sequential.predict_remaining_units(
        series, process="beta_binomial", budget=440, runs=1500, rng=np.random.default_rng(1)
    )
    assert left.horizon == 400
    assert abs(left.share_stopping - np.mean(np.isfinite(wanted))) < 3 * math.sqrt(2 * 0.25 / 1500)
    # The median of the one lies between the quantiles of the other that chance allows.
    low, high = np.quantile(wanted, [0.45, 0.55])
    assert low <= left.median <= high


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_what_remains_is_nothing_after_a_crossing_and_unknown_beyond_the_budget(process):
    rng = np.random.default_rng(2)
    done = sequential.predict_remaining_units(np.ones(60), process=process, runs=50, rng=rng)
    assert (done.median, done.high, done.share_stopping) == (0, 0, 1.0)
    short = sequential.predict_remaining_units([1, 0] * 10, process=process, budget=22, runs=50, rng=rng)
    assert (short.median, short.high, short.horizon) == (None, None, 2)
    equal = sequential.predict_remaining_units([1, 0] * 200, process=process, budget=2400, margin=0.2, runs=50, rng=rng)
    assert equal.share_stopping == 1.0
    json.dumps(equal.as_dict(), allow_nan=False)
    assert sequential.predict_remaining_units([], process=process, runs=20, budget=300, rng=rng).horizon == 300


def test_what_remains_is_reproducible_and_refuses_nonsense():
    first, second = (
        sequential.predict_remaining_units([0.2, 0.7], budget=100, runs=20, rng=np.random.default_rng(3))
        for _ in range(2)
    )
    assert first == second
    with pytest.raises(ValueError, match="runs"):
        sequential.predict_remaining_units([1], runs=0, rng=np.random.default_rng(0))
