"""The rules keep their level under looks of any frequency."""

import math

import numpy as np
import pytest

from analysis.stats import betting, sequential, stopping_boundaries
from tests.analysis.stats.sequential.labels import labels, rejections


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_anytime_rules_keep_their_level_under_a_look_after_every_label(process):
    runs, n, false = 2000, 500, 0
    for run in range(runs):
        values = labels(50_000 + run, n)
        if process == "betting":
            log_e = betting.log_wealth(values, 0.5)
        else:
            log_e = stopping_boundaries.beta_binomial_log_e_values(np.cumsum(values), np.arange(1, n + 1))
        false += bool(log_e.max() >= math.log(20))
    assert false / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_batches_of_five_keep_the_level_and_find_a_difference():
    rng = np.random.default_rng(14)
    null = [np.clip(rng.normal(0.5, 0.1, 200), 0, 1) for _ in range(1000)]
    assert rejections([rng.binomial(5, lean) / 5 for lean in null]) <= 0.05
    stops, runs = [], 300
    for _ in range(runs):
        lean = np.clip(rng.normal(0.6125, 0.1, 400), 0, 1)
        log_e = betting.log_wealth(rng.binomial(5, lean) / 5, 0.5)
        stops.append(np.argmax(log_e >= math.log(20)) + 1 if log_e.max() >= math.log(20) else math.inf)
    # A mean of 49 annotators, 242 labels, in the reference simulation.
    assert np.isfinite(stops).mean() > 0.99
    assert abs(np.mean([stop for stop in stops if math.isfinite(stop)]) - 49) < 6


@pytest.mark.parametrize("process", ["beta_binomial", "betting"])
def test_equivalence_waits_until_both_ends_lie_within_the_margin(process):
    # Units that lean to one side, then their mirror image: the far end decides, whichever it is.
    stops = []
    for leans_up in (True, False):
        draw = np.random.default_rng(3)
        shares = draw.random(1500) < 0.53
        series = (shares if leans_up else ~shares).astype(float)
        found = sequential.sequential_test(
            series, process=process, margin=0.1, stops=("equivalent", "different_but_trivial")
        )
        assert found.verdict in ("equivalent", "different_but_trivial")
        within = (found.sequence.low > 0.4) & (found.sequence.high < 0.6)
        assert found.stopped_at == 1 + int(np.argmax(within))
        near, far = (found.sequence.low - 0.4, 0.6 - found.sequence.high)
        assert (near if leans_up else far)[found.stopped_at - 2] > 0, "the near end was inside before"
        stops.append(found.stopped_at)
    assert abs(stops[0] - stops[1]) <= 2
