"""The correlation of true means: pair by pair, and whether its interval covers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import metric_comparison
from tests.analysis.stats.draws import rng
from tests.analysis.stats.metrics.scores import scored


def noisy(draw, n, k=8, noise=1.5, gap=0.1, metric_noise=1.5):
    truth = gap * np.arange(k)
    return (truth + draw.normal(0, spread, (n, k)) for spread in (noise, metric_noise))


def products(x, y):
    """The mean over pairs of different items of the products of centred scores."""
    x, y = (side - side.mean(axis=1, keepdims=True) for side in (x, y))
    pairs = [x[i] @ y[j] for i in range(len(x)) for j in range(len(x)) if i != j]
    return np.mean(pairs)


def test_pairs_of_items_and_fiellers_interval():
    x, y = noisy(rng(1), 25, gap=0.5)
    found = metric_comparison.noise_corrected_correlation(x, y)
    kept = [np.arange(25) != i for i in range(25)]
    top, bottom = products(x, y), np.sqrt(products(x, x) * products(y, y))
    tops = np.array([products(x[k], y[k]) for k in kept])
    bottoms = np.array([np.sqrt(products(x[k], x[k]) * products(y[k], y[k])) for k in kept])
    bottom = 25 * bottom - 24 * bottoms.mean()
    assert_allclose(found.detail["uncut"], top / bottom)
    for end in (found.interval.low, found.interval.high):
        if abs(end) < 1:
            moves = (tops - end * bottoms) - (tops - end * bottoms).mean()
            # The t quantile of 24 degrees of freedom.
            assert_allclose(abs(top - end * bottom) / np.sqrt(24 / 25 * moves @ moves), 2.0638986, rtol=1e-6)
    assert found.interval.low < 1 and found.detail["human_reliability"] < 1


def test_the_interval_covers_where_the_range_of_resamples_does_not():
    draw, runs, covered, defined, reached = rng(40), 200, 0, 0, 0
    for _ in range(runs):
        found = metric_comparison.noise_corrected_correlation(*noisy(draw, 120))
        if found.interval is not None:
            defined += 1
            covered += found.interval.low <= 1.0 <= found.interval.high
            reached += found.detail["observed"] >= 0.95
    assert defined > runs / 2 and covered >= 0.93 * defined and reached < 0.5 * defined


def test_noise_that_both_sides_share_is_no_agreement():
    draw, runs, estimates, observed = rng(41), 60, [], []
    for _ in range(runs):
        shared = draw.normal(0, 1.5, (100, 8))
        human = 0.15 * np.arange(8) + shared + draw.normal(0, 0.5, (100, 8))
        # The true means of the metric do not correlate with those of people.
        metric = 0.15 * np.array([3, 1, 0, 2, 2, 0, 1, 3]) + shared + draw.normal(0, 0.5, (100, 8))
        found = metric_comparison.noise_corrected_correlation(human, metric)
        estimates.append(found.detail.get("uncut", np.nan))
        observed.append(found.detail["observed"])
    assert abs(np.nanmedian(estimates)) < 0.12 < np.median(observed)


def test_a_metric_of_all_outputs_has_no_noise():
    human, _ = scored(rng(2))
    fixed = np.arange(human.shape[1]) ** 1.5
    found = metric_comparison.noise_corrected_correlation(human, fixed)
    assert found.detail["metric_reliability"] == pytest.approx(1) and found.status == "ok"
    repeated = metric_comparison.noise_corrected_correlation(human, np.tile(fixed, (len(human), 1)))
    assert_allclose(found.estimate, repeated.estimate)
    assert_allclose(found.estimate, metric_comparison.noise_corrected_correlation(1e-15 * human, 1e6 * fixed).estimate)


def test_what_is_too_little_is_named():
    human, metric = noisy(rng(3), 40, gap=1.0)
    human[0, 0] = np.nan
    found = metric_comparison.noise_corrected_correlation(human, metric)
    assert (found.n, found.detail["n_incomplete"], found.settings["population"]) == (
        39,
        1,
        "items, for exactly these people",
    )
    assert metric_comparison.noise_corrected_correlation(human[:10], metric[:10]).status == "not_applicable"
    assert metric_comparison.noise_corrected_correlation(human[:, :3], metric[:, :3]).status == "not_applicable"
    for constant in (np.ones(8), np.full((40, 8), 0.1)):
        assert (
            metric_comparison.noise_corrected_correlation(human, constant).reason
            == "the scores of the systems are equal"
        )
    alike = metric_comparison.noise_corrected_correlation(*noisy(rng(4), 30, gap=0.0))
    assert alike.status == "not_identified" and "no correlation is excluded" in alike.reason
    assert metric_comparison.noise_corrected_correlation(np.empty((0, 5)), np.empty((0, 5))).status == "no_data"
