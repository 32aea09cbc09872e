import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import bootstrap
from tests.analysis.stats.draws import bca_of_mean, rng
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
    interval = bca_of_mean(values, resamples=9999, rng=rng())
    wanted = stats.bootstrap((values,), np.mean, n_resamples=9999, rng=rng(1)).confidence_interval
    assert_allclose([interval.low, interval.high], [wanted.low, wanted.high], atol=0.01)


def test_multinomial_weights_are_bootstrap_samples():
    blocks = np.concatenate(list(bootstrap.multinomial_weights(7, 1500, rng())))
    assert blocks.shape == (1500, 7)
    assert np.all(blocks.sum(axis=1) == 7)
    assert_allclose(blocks.var(axis=0), 7 * (1 / 7) * (6 / 7), rtol=0.2)


def test_columns_that_miss_different_units_keep_their_own_denominators():
    sums = np.array([[1.0, 1.0, 0.0], [2.0, 0.0, 2.0], [3.0, 3.0, 3.0]])
    counts = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
    draws = bootstrap.ratio_draws(sums, counts, iter([np.array([[1.0, 1.0, 1.0], [3.0, 0.0, 0.0]])]))
    assert_allclose(draws, [[2, 2, 2.5], [1, 1, np.nan]])


def test_constant_data_fall_back_from_bca_to_percentile():
    assert bootstrap.bca_interval(1.0, np.ones(99), np.ones(5)) is None
    one_jackknife_away = bootstrap.bootstrap_ratio_interval(
        0.0, np.array([0.0, 1.0, 2.0]), np.zeros(3), np.ones(3), level=0.9
    )
    assert one_jackknife_away.method == "percentile"


def test_the_bayesian_bootstrap_is_calibrated_against_the_normal():
    values = rng(8).normal(0.1, 1, 200)
    weights = bootstrap.unnormalised_dirichlet_weights(200, 9999, rng())
    draws = bootstrap.ratio_draws(values[:, None], np.ones((200, 1)), weights)[:, 0]
    result = bootstrap.posterior_probability_estimate(
        draws, n=200, null=0.0, level=0.95, common={"analysis": "mean", "estimand": "mean", "unit": "annotator"}
    )
    se = values.std(ddof=1) / np.sqrt(200)
    assert abs(result.estimate - stats.norm.cdf(values.mean() / se)) < 0.02
    credible = result.detail["mean_credible"]
    assert_allclose([credible["low"], credible["high"]], values.mean() + np.array([-1.96, 1.96]) * se, atol=0.02)
