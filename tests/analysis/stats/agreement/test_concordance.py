"""Kendall's concordance agrees with Friedman's test."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import reliability
from tests.analysis.stats.draws import rng


@pytest.mark.parametrize("n, k, values", [(2, 2, 9), (5, 3, 9), (12, 6, 3), (40, 4, 2)])
def test_concordance_agrees_with_scipys_friedman_test(n, k, values):
    table = rng(n).integers(0, values, (n, k)).astype(float) + np.arange(k) / 2
    found = reliability.kendall_w(table)
    expected = stats.friedmanchisquare(*table.T) if k > 2 else None
    if expected:
        assert_allclose([found.test.statistic, found.test.pvalue], [expected.statistic, expected.pvalue], rtol=1e-10)
        assert found.test.df == k - 1
    assert_allclose(found.estimate, found.test.statistic / (n * (k - 1)))
    assert found.n == n and found.n_rows == n * k


def test_concordance_is_one_where_all_agree_and_the_mean_of_rank_correlations_where_nothing_ties():
    assert reliability.kendall_w([[1, 2, 5]] * 4).estimate == pytest.approx(1)
    table = rng(3).permuted(np.tile(np.arange(6.0), (7, 1)), axis=1)
    pairs = [stats.spearmanr(a, b).statistic for a, b in itertools.combinations(table, 2)]
    assert_allclose(reliability.kendall_w(table).detail["mean_rank_correlation"], np.mean(pairs))
    ties = reliability.kendall_w([[1, 1, 2], [1, 1, 3], [2, 2, 4]])
    assert ties.estimate == pytest.approx(1), "three who tie the same two agree perfectly"


def test_concordance_without_two_complete_rankings_says_so():
    for table, status in (
        (np.empty((0, 3)), "no_data"),
        ([[1, 2, 3]], "n_lt_2"),
        ([[1], [2]], "n_lt_2"),
        ([[1, 1], [2, 2]], "zero_variance"),
    ):
        found = reliability.kendall_w(table)
        assert (found.status, found.estimate) == (status, None) and found.reason
    gaps = reliability.kendall_w([[1, 2, np.nan], [1, 2, 3], [1, 2, 3]])
    assert gaps.n == 2 and gaps.detail["n_incomplete"] == 1
