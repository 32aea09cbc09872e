"""The probability of superiority agrees with the references and with permutation."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import clusters
from analysis.stats.unpaired import _samples
from tests.analysis.stats.draws import rng as generator
from tests.analysis.stats.unpaired.references import GOLDEN, X, Y, superior


def test_superiority_agrees_with_the_references():
    found, wanted = superior(), GOLDEN["brunner_munzel"]
    assert_allclose(found.estimate, wanted["superiority"], atol=1e-12)
    assert_allclose(
        [found.test.statistic, found.test.df, found.pvalue, found.interval.low, found.interval.high],
        [wanted["statistic"], wanted["df"], wanted["pvalue"], *wanted["interval"]],
        atol=1e-9,
    )
    mann_whitney = found.sensitivity[1]
    wanted = GOLDEN["mann_whitney"]
    assert_allclose(
        [mann_whitney.estimate, mann_whitney.test.statistic, mann_whitney.pvalue],
        [wanted["superiority"], wanted["u"], wanted["pvalue"]],
        atol=1e-9,
    )
    assert "equal distributions" in mann_whitney.estimand
    assert_allclose(found.detail["cliff_delta"], 2 * found.estimate - 1)


@pytest.mark.parametrize("seed,n_x,n_y", [(1, 8, 30), (2, 40, 25), (3, 200, 200)])
def test_superiority_agrees_with_scipy_on_points_and_on_continuous_ratings(seed, n_x, n_y):
    rng = generator(seed)
    for x, y in [
        (rng.integers(1, 6, n_x), rng.integers(1, 5, n_y)),
        (rng.normal(0.3, 1, n_x), rng.normal(0, 2, n_y)),
    ]:
        found = superior(x, y)
        # scipy's statistic is positive where its second argument is the larger.
        theirs = stats.brunnermunzel(y, x)
        assert_allclose([found.test.statistic, found.pvalue], [theirs.statistic, theirs.pvalue], rtol=1e-9, atol=1e-12)
        assert_allclose(found.estimate, stats.mannwhitneyu(x, y).statistic / (n_x * n_y), atol=1e-12)


def test_exchanging_the_systems_gives_the_complement():
    there, back = superior(), superior(Y, X)
    assert_allclose(there.estimate + back.estimate, 1)
    assert_allclose([there.pvalue, there.interval.low], [back.pvalue, 1 - back.interval.high], atol=1e-12)


def test_only_the_order_of_the_ratings_counts():
    other = superior(np.exp(5 * np.array(X)), np.exp(5 * np.array(Y)))
    assert_allclose([other.estimate, other.pvalue], [superior().estimate, superior().pvalue], atol=1e-12)
    assert_allclose(other.sensitivity[0].interval.low, superior().sensitivity[0].interval.low, atol=1e-12)


def test_an_interval_that_would_leave_the_scale_is_cut_and_the_bootstrap_stays_inside():
    found = superior([4, 5, 5, 4, 3], [1, 2, 3, 1, 2])
    assert found.status == "ok" and found.interval.clipped and found.interval.high == 1.0
    resampled = found.sensitivity[0].interval
    assert 0 <= resampled.low < found.estimate <= resampled.high <= 1 and not resampled.clipped


def test_separation_has_an_interval_and_no_test():
    high, low = superior([4, 5, 5, 4], [1, 2, 3, 1, 2]), superior([1, 2], [3, 4, 5])
    assert (high.status, high.estimate, low.estimate) == ("separation", 1.0, 0.0)
    assert high.test is None and high.interval.method == "clopper_pearson_pairs"
    # Four pairs without a common annotator all went one way.
    assert_allclose([high.interval.low, high.interval.high], [0.025**0.25, 1.0], atol=1e-9)
    assert_allclose([low.interval.low, low.interval.high], [0.0, 1 - 0.025**0.5], atol=1e-9)


def test_the_bootstrap_of_points_is_that_of_rows(monkeypatch):
    rng = generator(4)
    x, y = rng.integers(1, 6, 60) + 0.0, rng.integers(1, 6, 50) + 0.0
    who_x, who_y = np.arange(60) // 3, 100 + np.arange(50) // 2
    few = superior(x, y, x_annotators=who_x, y_annotators=who_y).sensitivity[0].interval
    monkeypatch.setattr(_samples, "FEW_POINTS", 0)
    many = superior(x, y, x_annotators=who_x, y_annotators=who_y).sensitivity[0].interval
    assert_allclose([few.low, few.high], [many.low, many.high], atol=1e-12)


def test_several_ratings_of_one_annotator_are_one_cluster():
    rng = generator(5)
    who_x, who_y = np.repeat(np.arange(20), 6), np.repeat(np.arange(100, 120), 6)
    x = rng.normal(0, 1, 20)[who_x] + rng.normal(0.2, 0.3, 120)
    y = rng.normal(0, 1, 20)[who_y - 100] + rng.normal(0, 0.3, 120)
    naive, clustered = superior(x, y), superior(x, y, x_annotators=who_x, y_annotators=who_y)
    assert clustered.estimate == naive.estimate and (clustered.n, clustered.n_rows) == (40, 240)
    assert clustered.detail["se"] > 2 * naive.detail["se"]
    # V by leaving each annotator out of the mean of placements, from first principles.
    placements = np.array([(np.mean(y < a) + np.mean(y <= a)) / 2 for a in x])
    sums, sizes = np.bincount(who_x, placements), np.full(20, 6.0)
    part = clusters.cv3_variance(sums, sizes)
    assert_allclose(part, np.var(sums / 6, ddof=1) / 20, rtol=1e-9)
    assert clustered.test.name == "clustered_brunner_munzel"
    # Rows twice over are no more people.
    twice = superior(np.tile(x, 2), np.tile(y, 2), x_annotators=np.tile(who_x, 2), y_annotators=np.tile(who_y, 2))
    assert_allclose(twice.detail["se"], clustered.detail["se"], rtol=1e-9)
    few = superior(x[:24], y[:24], x_annotators=who_x[:24], y_annotators=who_y[:24])
    assert few.test is None and few.interval is not None and few.has_warning("few_clusters")


def test_crossed_annotators_are_sent_elsewhere():
    with pytest.raises(ValueError, match="y_annotators: 'b' rated both systems"):
        superior([1, 2], [3, 4], x_annotators=["a", "b"], y_annotators=["b", "c"])


@pytest.mark.parametrize(
    "x,y,status",
    [
        ([], [1, 2], "no_data"),
        ([None, None], [1, 2], "no_data"),
        ([3], [1, 2, 4], "n_lt_2"),
        ([3, 3], [3, 3, 3], "zero_variance"),
    ],
)
def test_what_cannot_be_compared_says_so(x, y, status):
    found = superior(x, y)
    assert found.status == status and found.test is None and found.reason
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_test_agrees_with_permutation_where_distributions_are_alike():
    rng = generator(6)
    x, y = rng.integers(1, 6, 60), rng.integers(1, 6, 60)

    def share_of_wins(x, y, axis=-1):
        return stats.mannwhitneyu(x, y, axis=axis).statistic / (x.shape[axis] * y.shape[axis])

    permuted = stats.permutation_test((x, y), share_of_wins, vectorized=True, n_resamples=1999, rng=generator(1))
    found = superior(x, y)
    assert_allclose(permuted.statistic, found.estimate)
    assert abs(permuted.pvalue - found.pvalue) < 0.05


@pytest.mark.slow
def test_level_and_coverage_hold_where_annotators_rate_several():
    rng, runs = generator(7), 1000
    who_x, who_y = np.repeat(np.arange(25), 4), np.repeat(np.arange(25, 50), 4)
    rejected = covered = naive = 0
    for _ in range(runs):
        x, y = (np.rint(rng.normal(0, 0.7, 25).repeat(4) + rng.normal(0, 0.7, 100)) for _ in range(2))
        found = superior(x, y, x_annotators=who_x, y_annotators=who_y, sensitivity_resamples=19)
        rejected += found.pvalue < 0.05
        covered += found.interval.low <= 0.5 <= found.interval.high
        naive += superior(x, y, sensitivity_resamples=19).pvalue < 0.05
    assert 0.03 <= rejected / runs <= 0.07 and covered / runs >= 0.93
    assert naive / runs > 0.12


@pytest.mark.slow
def test_the_interval_covers_also_near_separation():
    rng, runs, covered = generator(8), 2000, 0
    # P(x > y) = .96: a tenth of the samples of eight each are separated.
    truth = stats.norm.cdf(2.5 / np.sqrt(2))
    for _ in range(runs):
        found = superior(rng.normal(2.5, 1, 8), rng.normal(0, 1, 8), sensitivity_resamples=19)
        covered += found.interval.low <= truth <= found.interval.high
    assert covered / runs >= 0.93
