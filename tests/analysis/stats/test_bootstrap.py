import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import bootstrap
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("bootstrap")["percentile"]


def test_percentiles_of_given_resamples_agree_with_the_reference():
    values, indices = np.array(GOLDEN["input"]["x"]), np.array(GOLDEN["input"]["indices"])
    weights = np.array([np.bincount(row, minlength=len(values)) for row in indices], float)
    draws = bootstrap.ratio_draws(values[:, None], np.ones((len(values), 1)), iter([weights]))[:, 0]
    for level, key in ((0.95, "ci95"), (0.99, "ci99")):
        interval = bootstrap.percentile_interval(draws, level)
        assert_allclose([interval.low, interval.high], GOLDEN["expected"][key], atol=1e-12)


def test_bca_agrees_with_scipy_on_the_same_draws():
    values = rng(3).beta(5, 1, 40)
    reference = stats.bootstrap((values,), np.mean, n_resamples=1999, method="BCa", rng=rng(4))
    jackknife = (values.sum() - values) / 39
    interval = bootstrap.bca_interval(values.mean(), reference.bootstrap_distribution, jackknife)
    wanted = reference.confidence_interval
    assert_allclose([interval.low, interval.high], [wanted.low, wanted.high], rtol=1e-10)


def test_bca_of_a_mean_is_near_scipys():
    values = rng(5).choice([0, 0.25, 0.5, 0.75, 1], 60, p=[0.05, 0.1, 0.15, 0.3, 0.4])
    result = bootstrap.bootstrap_mean(values, rng=rng())
    wanted = stats.bootstrap((values,), np.mean, n_resamples=9999, rng=rng(1)).confidence_interval
    assert_allclose([result.interval.low, result.interval.high], [wanted.low, wanted.high], atol=0.01)


def test_multinomial_weights_are_bootstrap_samples():
    blocks = np.concatenate(list(bootstrap.multinomial_weights(7, 1500, rng())))
    assert blocks.shape == (1500, 7)
    assert np.all(blocks.sum(axis=1) == 7)
    assert_allclose(blocks.var(axis=0), 7 * (1 / 7) * (6 / 7), rtol=0.2)


def test_clusters_are_resampled_with_all_their_rows():
    means = rng(6).normal(0, 1, 25)
    values, labels = np.repeat(means, 40), np.repeat(np.arange(25), 40)
    clustered = bootstrap.bootstrap_mean(values, clusters=labels, method="percentile", rng=rng(), resamples=1999)
    naive = bootstrap.bootstrap_mean(values, method="percentile", rng=rng(), resamples=1999)
    width = clustered.interval.high - clustered.interval.low
    assert (clustered.n, clustered.n_rows) == (25, 1000)
    assert 4 < width / (naive.interval.high - naive.interval.low) < 9


def test_the_cost_does_not_grow_with_the_rows():
    values, labels = rng(7).normal(0, 1, 200), np.arange(200)
    few = bootstrap.bootstrap_mean(values, clusters=labels, rng=rng(), resamples=999)
    many = bootstrap.bootstrap_mean(np.tile(values, 50), clusters=np.tile(labels, 50), rng=rng(), resamples=999)
    assert_allclose([few.interval.low, few.interval.high], [many.interval.low, many.interval.high], rtol=1e-9)


def test_columns_that_miss_different_units_keep_their_own_denominators():
    sums = np.array([[1.0, 1.0, 0.0], [2.0, 0.0, 2.0], [3.0, 3.0, 3.0]])
    counts = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    draws = bootstrap.ratio_draws(sums, counts, iter([np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 0.0]])]))
    assert_allclose(draws, [[2, 2, 2.5], [1, 1, np.nan]])


def test_constant_data_fall_back_from_bca_to_percentile_to_betting():
    assert bootstrap.bca_interval(1.0, np.ones(99), np.ones(5)) is None
    result = bootstrap.bootstrap_mean([0.5] * 20, bounds=(0, 1), rng=rng(), resamples=99)
    assert (result.status, result.interval.method) == ("zero_variance", "betting")
    assert bootstrap.bootstrap_mean([0.5] * 20, rng=rng(), resamples=99).interval is None
    one_jackknife_away = bootstrap.bootstrap_ratio_interval(
        0.0, np.array([0.0, 1.0, 2.0]), np.zeros(3), np.ones(3), method="bca", level=0.9
    )
    assert one_jackknife_away.method == "percentile"


def test_edge_cases_are_statuses():
    assert bootstrap.bootstrap_mean([], rng=rng()).status == "no_data"
    assert bootstrap.bootstrap_mean([1.0], rng=rng()).status == "n_lt_2"
    assert bootstrap.bootstrap_mean([1, 2], clusters=["a", "a"], rng=rng()).status == "n_lt_2"
    assert bootstrap.bayesian_bootstrap_probability_above([0.7, 0.7], null=0.5, rng=rng()).estimate is None
    with pytest.raises(ValueError, match="method"):
        bootstrap.bootstrap_mean([1, 2], method="row", rng=rng())


def test_at_the_ceiling_the_interval_is_by_betting():
    result = bootstrap.bootstrap_mean([1.0] * 19 + [0.0], bounds=(0, 1), rng=rng(), resamples=999)
    assert result.has_warning("ceiling") and result.interval.method == "betting"


def test_the_bayesian_bootstrap_is_calibrated_against_the_normal():
    values = rng(8).normal(0.1, 1, 200)
    result = bootstrap.bayesian_bootstrap_probability_above(values, null=0.0, rng=rng())
    se = values.std(ddof=1) / np.sqrt(200)
    assert abs(result.estimate - stats.norm.cdf(values.mean() / se)) < 0.02
    credible = result.detail["mean_credible"]
    assert_allclose([credible["low"], credible["high"]], values.mean() + np.array([-1.96, 1.96]) * se, atol=0.02)


def test_the_same_seed_gives_the_same_bits():
    values = rng(9).normal(0, 1, 30)
    first, second = (bootstrap.bootstrap_mean(values, rng=rng(1), resamples=999) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("sizes", [1, np.tile([1.0, 3.0], 300)])
def test_drawing_kinds_of_units_is_drawing_units(sizes):
    counts = np.broadcast_to(np.asarray(sizes, float), (600,)).copy()
    sums = np.random.default_rng(3).choice([0.0, 0.5, 1.0], 600, p=[0.2, 0.3, 0.5]) * counts
    by_kind = bootstrap.bootstrap_ratios(sums, counts, resamples=20_000, rng=np.random.default_rng(4))
    weights = bootstrap.multinomial_weights(600, 20_000, np.random.default_rng(5))
    by_unit = bootstrap.ratio_draws(sums[:, None], counts[:, None], weights)[:, 0]
    # Two standard errors of a mean and of a standard deviation over 20,000 draws are .014 and .01 of one.
    assert abs(by_kind.mean() - by_unit.mean()) < 0.03 * by_unit.std()
    assert abs(by_kind.std() / by_unit.std() - 1) < 0.03
    assert_allclose(
        np.quantile(by_kind, [0.025, 0.975]), np.quantile(by_unit, [0.025, 0.975]), atol=0.08 * by_unit.std()
    )
    assert len(np.unique(by_kind)) > 100


def test_units_that_all_differ_are_drawn_one_by_one():
    sums = np.random.default_rng(6).normal(size=50)
    found = bootstrap.bootstrap_ratios(sums, np.ones(50), resamples=99, rng=np.random.default_rng(7))
    weights = bootstrap.multinomial_weights(50, 99, np.random.default_rng(7))
    assert_allclose(found, bootstrap.ratio_draws(sums[:, None], np.ones((50, 1)), weights)[:, 0])


def test_at_the_ceiling_the_interval_is_of_the_mean_that_is_printed():
    # One annotator gave three hundred answers of 1, fifteen gave one of 0: mean .952, mean of their means .06.
    values, who = [1.0] * 300 + [0.0] * 15, [0] * 300 + [*range(1, 16)]
    found = bootstrap.bootstrap_mean(values, clusters=who, bounds=(0, 1), rng=rng(), resamples=199)
    assert found.has_warning("ceiling") and found.interval.method == "betting"
    assert found.interval.low <= found.estimate <= found.interval.high
