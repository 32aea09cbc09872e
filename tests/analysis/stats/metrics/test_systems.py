"""A metric is correlated with people over systems."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import metrics
from tests.analysis.stats.draws import rng
from tests.analysis.stats.metrics.scores import scored


def test_correlations_of_systems_agree_with_scipy():
    human, metric = scored(rng(1))
    found = metrics.system_level_correlations(human, metric, rng=rng(), resamples=99)
    x, y = human.mean(axis=0), metric.mean(axis=0)
    assert_allclose(found["pearson"].estimate, stats.pearsonr(x, y).statistic)
    assert_allclose(found["spearman"].estimate, stats.spearmanr(x, y).statistic)
    assert_allclose(found["kendall"].estimate, stats.kendalltau(x, y).statistic)
    for estimate in found.values():
        assert (estimate.n, estimate.unit, estimate.detail["n_systems"]) == (60, "prompt", 6)
        low, high = estimate.detail["item_range"]
        assert low <= high and estimate.interval is None
        assert estimate.has_warning("attenuated_by_item_noise") and "observed mean" in estimate.estimand
    assert_allclose(found["pearson"].detail["human"], x)


def test_correlations_know_ties():
    human = np.tile([[1.0, 2.0, 2.0, 3.0, 5.0]], (4, 1))
    metric = np.tile([[2.0, 1.0, 4.0, 4.0, 4.0]], (4, 1))
    found = metrics.system_level_correlations(human, metric, rng=rng(), resamples=9)
    assert_allclose(found["spearman"].estimate, stats.spearmanr(human[0], metric[0]).statistic)
    assert_allclose(found["kendall"].estimate, stats.kendalltau(human[0], metric[0]).statistic)


def test_equal_means_are_ties_whatever_the_order_they_were_added_up_in():
    # The last three systems have the same scores, on other items: their means differ by rounding.
    column = np.round(rng(3).random(9), 2)
    human = np.column_stack([column - 0.1, column + 0.2, column, np.roll(column, 2), column[::-1]])
    metric = np.tile([[0.0, 4.0, 1.0, 2.0, 3.0]], (9, 1))
    exact = [-0.1, 0.2, 0, 0, 0]
    found = metrics.system_level_correlations(human, metric, rng=rng(), resamples=9)
    assert_allclose(found["kendall"].estimate, stats.kendalltau(exact, metric[0]).statistic)
    assert_allclose(found["spearman"].estimate, stats.spearmanr(exact, metric[0]).statistic)
    accuracy = metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=9).estimate
    assert_allclose(accuracy, 7 / 10)


def test_the_range_resamples_items_on_both_sides():
    human, metric = scored(rng(2), n_items=12)
    found = metrics.system_level_correlations(human, metric, rng=rng(3), resamples=400)["pearson"]
    draws = [
        stats.pearsonr(human[rows].mean(axis=0), metric[rows].mean(axis=0)).statistic
        for rows in rng(3).integers(0, 12, size=(400, 12))
    ]
    assert_allclose(found.detail["item_range"], np.quantile(draws, [0.025, 0.975]))


def test_a_score_of_whole_systems_stays_as_it_is():
    human, metric = scored(rng(4))
    whole = metric.mean(axis=0)
    found = metrics.system_level_correlations(human, whole, rng=rng(), resamples=199)["pearson"]
    assert_allclose(found.estimate, stats.pearsonr(human.mean(axis=0), whole).statistic)
    draws = [
        stats.pearsonr(human[rows].mean(axis=0), whole).statistic for rows in rng(5).integers(0, 60, size=(300, 60))
    ]
    assert_allclose(found.detail["item_range"][0], np.quantile(draws, 0.025), atol=0.02)
    with pytest.raises(ValueError, match="metric: scores of items are needed"):
        metrics.soft_pairwise_accuracy(human, whole, rng=rng())


def test_a_missing_cell_is_left_out_of_both_sides():
    human, metric = scored(rng(6), n_items=20)
    human[3, 1] = np.nan
    metric[7, 4] = np.nan
    human[11] = np.nan
    found = metrics.system_level_correlations(human, metric, rng=rng(), resamples=9)["pearson"]
    both = ~np.isnan(human) & ~np.isnan(metric)
    x, y = ([table[both[:, j], j].mean() for j in range(6)] for table in (human, metric))
    assert_allclose(found.estimate, stats.pearsonr(x, y).statistic)
    assert (found.n, found.n_rows) == (19, int(both.sum()))


def test_under_four_systems_there_is_nothing_to_correlate():
    human, metric = scored(rng(7), k=3)
    for found in metrics.system_level_correlations(human, metric, rng=rng(), resamples=9).values():
        assert (found.status, found.estimate, found.detail["n_systems"]) == ("not_applicable", None, 3)
    four = metrics.system_level_correlations(*scored(rng(7), k=4), rng=rng(), resamples=9)
    assert all(found.status == "ok" for found in four.values())


def test_constant_scores_are_not_identified():
    human, metric = scored(rng(8))
    for pair in ((human, np.full_like(metric, 0.3)), (np.full_like(human, 0.1), metric)):
        for found in metrics.system_level_correlations(*pair, rng=rng(), resamples=9).values():
            assert (found.status, found.estimate) == ("not_identified", None)
    assert (
        metrics.system_level_correlations(np.empty((0, 5)), np.empty((0, 5)), rng=rng())["pearson"].status == "no_data"
    )


def test_a_metric_may_live_on_any_scale():
    human, metric = scored(rng(8))
    plain, tiny = (
        metrics.system_level_correlations(human, table, rng=rng(), resamples=99) for table in (metric, 1e-15 * metric)
    )
    for name in plain:
        assert_allclose(plain[name].estimate, tiny[name].estimate)
        assert_allclose(plain[name].detail["item_range"], tiny[name].detail["item_range"])


def test_pairwise_accuracy_counts_pairs_of_systems():
    human, metric = scored(rng(9), noise=3.0, gap=0.05)
    found = metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=99)
    x, y = human.mean(axis=0), metric.mean(axis=0)
    agreeing = [np.sign(x[i] - x[j]) == np.sign(y[i] - y[j]) for i, j in itertools.combinations(range(6), 2)]
    assert_allclose(found.estimate, np.mean(agreeing))
    assert found.detail["n_pairs"] == 15 and 0 < np.mean(agreeing) < 1
    # Without ties tau is twice the accuracy less one.
    tau = metrics.system_level_correlations(human, metric, rng=rng(), resamples=9)["kendall"].estimate
    assert_allclose(tau, 2 * found.estimate - 1)


def test_pairwise_accuracy_of_clear_pairs():
    human, metric = scored(rng(10), noise=2.0, gap=0.12)
    (clear,) = metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=1999).sensitivity
    pairs = list(itertools.combinations(range(6), 2))
    pvalues = np.array([stats.ttest_rel(human[:, i], human[:, j]).pvalue for i, j in pairs])
    # A sign-flip p and a t test's differ by little, so pairs at the threshold itself may fall either way.
    assert np.sum(pvalues < 0.035) <= clear.detail["n_pairs"] <= np.sum(pvalues < 0.065)


def test_a_tie_agrees_with_a_tie_only():
    human, metric = np.array([[0.1, 0.1, 0.9]] * 3), np.array([[1.0, 1.0, 1.0]] * 3)
    assert_allclose(metrics.pairwise_accuracy(human, metric, rng=rng(), resamples=9).estimate, 1 / 3)
    assert metrics.pairwise_accuracy(human, human, rng=rng(), resamples=9).estimate == 1


def test_resampled_items_do_not_cover_the_correlation_without_noise():
    """Why there is no interval: the true means correlate at 1, and the range of resamples seldom reaches there."""
    draw, reached, runs = rng(40), 0, 100
    for _ in range(runs):
        truth = 0.1 * np.arange(8)
        human, metric = (truth + draw.normal(0, 1.5, (30, 8)) for _ in range(2))
        found = metrics.system_level_correlations(human, metric, rng=draw, resamples=99)["pearson"]
        assert found.interval is None
        reached += found.detail["item_range"][1] >= 0.95
    assert reached / runs < 0.5
