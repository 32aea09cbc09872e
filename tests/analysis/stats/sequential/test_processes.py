"""The beta-binomial process has the intervals and boundaries of the reference."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

from analysis.stats import sequential, stopping_boundaries
from tests.analysis.stats.sequential.labels import GOLDEN, labels


def test_log_e_agrees_with_the_reference():
    for case in GOLDEN["log_e_beta_binomial"]:
        found = stopping_boundaries.beta_binomial_log_e_values(case["S"], case["n"], concentration=case["a"])
        assert_allclose(found, case["log_e"], atol=1e-9)


def test_interval_agrees_with_the_reference():
    for case in GOLDEN["beta_binomial_interval"]:
        found = stopping_boundaries.beta_binomial_anytime_interval(
            case["S"], case["n"], level=1 - case["alpha"], concentration=case["a"]
        )
        assert_allclose(found, [case["lo"], case["hi"]], atol=1e-9)


@pytest.mark.parametrize("null", [0.5, 0.3])
def test_e_is_one_on_average_under_its_null(null):
    for n in (1, 10, 200):
        successes = np.arange(n + 1)
        e = np.exp(stopping_boundaries.beta_binomial_log_e_values(successes, n, null=null))
        assert_allclose(np.sum(stats.binom.pmf(successes, n, null) * e), 1, rtol=1e-9)


def test_interval_ends_are_roots():
    low, high = stopping_boundaries.beta_binomial_anytime_interval(
        [3, 40, 77], [10, 100, 80], level=0.9, concentration=5
    )
    for k, n, *ends in zip([3, 40, 77], [10, 100, 80], low, high, strict=True):

        def excess(null, k=k, n=n):
            return float(stopping_boundaries.beta_binomial_log_e_values(k, n, null=null, concentration=5)) - math.log(
                10
            )

        wanted = optimize.brentq(excess, 1e-12, k / n), optimize.brentq(excess, k / n, 1 - 1e-12)
        assert_allclose(ends, wanted, atol=1e-10)


def test_before_any_label_nothing_is_known():
    assert stopping_boundaries.beta_binomial_anytime_interval(0, 0) == (0.0, 1.0)
    assert float(stopping_boundaries.beta_binomial_log_e_values(0, 0)) == 0
    assert len(stopping_boundaries.confidence_sequence([], process="beta_binomial").low) == 0
    assert len(stopping_boundaries.anytime_pvalues([])) == 0


@pytest.mark.parametrize(("null", "margin"), [(0.5, 0.2), (0.4, 0.1)])
def test_boundaries_are_where_the_process_crosses(null, margin):
    rule = stopping_boundaries.beta_binomial_boundaries(120, level=0.9, null=null, margin=margin, concentration=20)
    for n in (1, 5, 30, 77, 120):
        successes = np.arange(n + 1)

        def refuted(m, n=n, successes=successes):
            return stopping_boundaries.beta_binomial_log_e_values(successes, n, null=m, concentration=20) >= math.log(
                10
            )

        for boundary, m in ((rule.upper, null), (rule.above_low, null - margin)):
            above = successes[refuted(m) & (successes > n * m)]
            assert boundary[n - 1] == (above.min() if len(above) else n + 1)
        for boundary, m in ((rule.lower, null), (rule.below_high, null + margin)):
            below = successes[refuted(m) & (successes < n * m)]
            assert boundary[n - 1] == (below.max() if len(below) else -1)


def test_the_sequence_is_the_intersection_of_the_intervals():
    values = labels(6, 200, 0.4)
    sequence = stopping_boundaries.confidence_sequence(values, process="beta_binomial", level=0.9, concentration=3)
    low, high = stopping_boundaries.beta_binomial_anytime_interval(
        np.cumsum(values), np.arange(1, 201), level=0.9, concentration=3
    )
    assert_allclose(sequence.low, np.maximum.accumulate(low))
    assert_allclose(sequence.high, np.minimum.accumulate(high))
    mirrored = stopping_boundaries.confidence_sequence(1 - values, process="beta_binomial", level=0.9, concentration=3)
    assert_allclose(mirrored.low, 1 - sequence.high, atol=1e-12)


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_the_sequence_covers_at_every_look(process):
    missed = 0
    for run in range(100):
        sequence = stopping_boundaries.confidence_sequence(labels(100 + run, 80, 0.6), process=process, level=0.8)
        missed += bool(np.any((sequence.low > 0.6) | (sequence.high < 0.6)))
    assert missed <= 32


def test_anytime_pvalues_only_fall_and_reach_alpha_where_the_rule_stops():
    values = labels(7, 200, 0.7)
    result = sequential.sequential_test(values, process="beta_binomial")
    assert np.all(np.diff(result.pvalues) <= 0) and result.pvalues[0] == 1
    assert result.pvalues[result.stopped_at - 1] <= 0.05 < result.pvalues[result.stopped_at - 2]
    wanted = np.exp(-np.maximum.accumulate(np.maximum(0, result.log_e)))
    assert_allclose(result.pvalues, wanted)
