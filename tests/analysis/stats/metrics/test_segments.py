"""A metric is compared with people output by output."""

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import metrics
from tests.analysis.stats.draws import rng
from tests.analysis.stats.metrics.scores import accuracy_at, brute_pairs, likert


def test_tau_within_items_agrees_with_scipy():
    human, metric = likert(rng(15))
    human[0] = 0.5
    human[1, :4] = np.nan
    metric[2, 3] = np.nan
    found = metrics.segment_level_kendall_tau(human, metric, rng=rng(), resamples=199)
    taus = []
    for ours, theirs in zip(human, metric, strict=True):
        there = ~np.isnan(ours) & ~np.isnan(theirs)
        taus.append(stats.kendalltau(ours[there], theirs[there]).statistic if there.sum() > 1 else np.nan)
    defined = np.isfinite(taus)
    assert_allclose(found.estimate, np.mean(np.array(taus)[defined]))
    assert (found.n, found.detail["n_undefined"]) == (int(defined.sum()), int(np.sum(~defined)))
    assert found.interval.low < found.estimate < found.interval.high


def test_tau_over_all_outputs_agrees_with_scipy():
    human, metric = likert(rng(16))
    human[3, 2] = np.nan
    there = ~np.isnan(human)
    found = metrics.segment_level_kendall_tau(human, metric, grouping="none", rng=rng())
    assert_allclose(found.estimate, stats.kendalltau(human[there], metric[there]).statistic)
    assert found.interval is None and "over all outputs" in found.estimand


def test_tie_calibration_finds_the_best_threshold_of_all():
    for seed in range(6):
        human, metric = likert(rng(20 + seed), n_items=12, k=4)
        found = metrics.tie_calibrated_accuracy(human, metric, rng=rng(), resamples=9)
        distances = sorted({0.0} | {abs(m) for pairs in brute_pairs(human, metric) for _, m in pairs})
        accuracies = [accuracy_at(human, metric, threshold) for threshold in distances]
        assert_allclose(found.estimate, max(accuracies))
        assert_allclose(found.detail["threshold"], distances[int(np.argmax(np.isclose(accuracies, max(accuracies))))])
        assert found.has_warning("calibrated_on_these_data")


def test_accuracy_at_a_given_threshold():
    human, metric = likert(rng(17))
    human[4, 1] = np.nan
    for threshold in (0.0, 0.3, 2.0):
        found = metrics.tie_calibrated_accuracy(human, metric, threshold=threshold, rng=rng(), resamples=99)
        assert_allclose(found.estimate, accuracy_at(human, metric, threshold))
        parts = found.detail
        assert (
            sum(parts[name] for name in ("concordant", "discordant", "ties_human", "ties_metric", "ties_both"))
            == parts["n_pairs"]
        )
        assert not found.warnings
    everything_tied = metrics.tie_calibrated_accuracy(human, metric, threshold=99, rng=rng(), resamples=9)
    assert (everything_tied.detail["concordant"], everything_tied.detail["ties_human"]) == (0, 0)


def test_a_metric_without_ties_is_not_punished_for_them_once_calibrated():
    human, _ = likert(rng(19), n_items=200)
    # Equal but for rounding noise, which no human scale shows.
    metric = human + rng(5).normal(0, 1e-3, human.shape)
    naive = metrics.tie_calibrated_accuracy(human, metric, threshold=0.0, rng=rng(), resamples=9).estimate
    calibrated = metrics.tie_calibrated_accuracy(human, metric, rng=rng(), resamples=9)
    assert naive < 0.9 and calibrated.estimate == 1.0
    assert 0 < calibrated.detail["threshold"] < 0.01


def test_calibrating_flatters_a_metric_that_knows_nothing():
    human, metric = likert(rng(30))[0], rng(31).normal(0, 1, (40, 5))
    here = metrics.tie_calibrated_accuracy(human, metric, rng=rng(), resamples=9)
    elsewhere = metrics.tie_calibrated_accuracy(human, metric, threshold=0.0, rng=rng(), resamples=9)
    assert here.estimate >= elsewhere.estimate


def test_segment_edge_cases_are_statuses():
    human, metric = likert(rng(32))
    for function in (metrics.segment_level_kendall_tau, metrics.tie_calibrated_accuracy):
        assert function(human[:, :1], metric[:, :1], rng=rng()).status == "no_data"
        assert function(np.empty((0, 3)), np.empty((0, 3)), rng=rng()).status == "no_data"
    equal = metrics.segment_level_kendall_tau(np.ones((4, 3)), metric[:4, :3], rng=rng())
    assert (equal.status, equal.estimate) == ("not_identified", None)
    tied = metrics.tie_calibrated_accuracy(np.ones((4, 3)), metric[:4, :3], rng=rng(), resamples=9)
    assert tied.estimate == 1.0
    one = metrics.segment_level_kendall_tau(human[:1], metric[:1], rng=rng())
    assert one.n == 1 and one.interval is None
