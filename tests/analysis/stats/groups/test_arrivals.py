"""Conditions are compared in the order of arrival."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import groups
from tests.analysis.stats.draws import rng


def test_the_test_agrees_with_scipy_with_and_without_ties():
    for times in (rng().normal(size=60), rng().integers(0, 9, size=60)):
        names = ["a"] * 25 + ["b"] * 20 + ["c"] * 15
        found = groups.arrival_order(times, names, rng=rng())
        wanted = stats.kruskal(times[:25], times[25:45], times[45:])
        assert_allclose([found.test.test.statistic, found.test.pvalue], [wanted.statistic, wanted.pvalue], rtol=1e-9)
        assert found.test.test.df == 2 and found.test.estimate == pytest.approx(wanted.statistic / 59)
        ranks = (stats.rankdata(times) - 0.5) / 60
        assert_allclose([p.estimate for p in found.places], [ranks[:25].mean(), ranks[25:45].mean(), ranks[45:].mean()])


def test_small_conditions_are_compared_with_permutations():
    times, names = np.arange(10.0), ["b", "a", "b", "b", "a", "b", "b", "b", "a", "a"]
    found = groups.arrival_order(times, names, rng=rng())
    assert found.test.test.name == "kruskal_wallis_permuted" and found.test.test.df is None
    sums = [sum(four) for four in combinations(range(10), 4)]
    mine = 1 + 4 + 8 + 9
    exact = np.mean([abs(one - 18) >= abs(mine - 18) for one in sums])  # 18 is the mean of a sum of four ranks
    assert_allclose(found.test.pvalue, exact, atol=4 * np.sqrt(exact / 9999))


def test_what_cannot_be_tested_is_a_status():
    assert groups.arrival_order([], [], rng=rng()).test.status == "no_data"
    assert groups.arrival_order([1, 2], ["a", "a"], rng=rng()).test.status == "not_identified"
    together = groups.arrival_order([3, 3, 3], ["a", "b", "b"], rng=rng())
    assert together.test.status == "zero_variance" and [p.estimate for p in together.places] == [0.5, 0.5]
    found = groups.arrival_order([1, np.nan, 2], ["a", "b", "b"], rng=rng())
    assert [p.n for p in found.places] == [1, 1]
    with pytest.raises(ValueError, match="conditions: 1 for 2"):
        groups.arrival_order([1, 2], ["a"], rng=rng())


def test_false_alarms_are_as_rare_as_the_level_says():
    draws = rng()
    names = ["a"] * 20 + ["b"] * 20
    rejected = [groups.arrival_order(draws.random(40), names, rng=draws).test.pvalue < 0.05 for _ in range(1000)]
    assert 0.03 < np.mean(rejected) < 0.07
