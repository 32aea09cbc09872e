"""Two metrics are compared with each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import metric_comparison, metrics
from tests.analysis.stats.draws import rng
from tests.analysis.stats.metrics.scores import scored


def test_a_better_metric_is_found_better_and_an_equal_one_is_not():
    draw = rng(33)
    human, good = scored(draw, n_items=150, k=8, gap=0.1, noise=0.3)
    poor = draw.normal(0, 1, human.shape)
    for statistic in (*metrics.STATISTICS, "segment_tau"):
        found = metric_comparison.compare_metrics(human, good, poor, statistic=statistic, rng=rng(), resamples=499)
        assert found.estimate > 0 and found.pvalue < 0.05, statistic
        mirrored = metric_comparison.compare_metrics(human, poor, good, statistic=statistic, rng=rng(), resamples=499)
        assert_allclose(mirrored.estimate, -found.estimate)
        assert_allclose(mirrored.pvalue, found.pvalue, atol=0.01)


def test_the_comparison_is_that_of_brute_force():
    draw = rng(34)
    human, first = scored(draw, n_items=15, k=5, noise=0.8)
    second = human + draw.normal(0, 1.5, human.shape)
    found = metric_comparison.compare_metrics(human, first, second, rng=rng(6), resamples=200)
    one, other = (stats.zscore(table, axis=None) for table in (first, second))

    def gap(a, b):
        return np.subtract(*(stats.pearsonr(human.mean(axis=0), table.mean(axis=0)).statistic for table in (a, b)))

    observed, extreme = gap(one, other), 0
    for swaps in rng(6).integers(0, 2, (200, 15), dtype=np.int8).astype(bool):
        exchanged = np.where(swaps[:, None], other, one), np.where(swaps[:, None], one, other)
        extreme += abs(gap(*exchanged)) >= abs(observed) - 1e-9
    assert_allclose(found.estimate, observed)
    assert_allclose(found.pvalue, (1 + extreme) / 201)
    assert found.test.name == "paired_permutation"


def test_the_scales_of_two_metrics_do_not_matter():
    draw = rng(35)
    human, first = scored(draw)
    second = human + draw.normal(0, 0.8, human.shape)
    plain = metric_comparison.compare_metrics(human, first, second, rng=rng(), resamples=299)
    scaled = metric_comparison.compare_metrics(human, 100 * first + 5, second / 50, rng=rng(), resamples=299)
    assert_allclose([plain.estimate, plain.pvalue], [scaled.estimate, scaled.pvalue])


def test_a_metric_does_not_differ_from_itself():
    human, metric = scored(rng(36))
    for statistic in ("pearson", "segment_tau"):
        found = metric_comparison.compare_metrics(
            human, metric, 2 * metric + 1, statistic=statistic, rng=rng(), resamples=99
        )
        assert (found.status, found.test) == ("zero_variance", None)
        assert_allclose(found.estimate, 0, atol=1e-12)


def test_comparison_edge_cases_are_statuses():
    human, metric = scored(rng(37))
    other = metric + rng(38).normal(0, 1, metric.shape)

    def status(*tables, **options):
        return metric_comparison.compare_metrics(*tables, rng=rng(), resamples=19, **options).status

    assert status(human[:, :3], metric[:, :3], other[:, :3]) == "not_applicable"
    poor = rng(1).normal(0, 1, (60, 3))
    assert status(human[:, :3], metric[:, :3], poor, statistic="pairwise_accuracy") == "ok"
    assert status(human, np.ones_like(metric), other) == "not_identified"
    assert status(np.ones_like(human), metric, other) == "not_identified"
    assert status(np.ones_like(human), metric, other, statistic="segment_tau") == "not_identified"
    assert status(human * np.nan, metric, other) == "no_data"


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["pearson", "segment_tau"])
def test_two_equally_good_metrics_differ_as_rarely_as_promised(statistic):
    draw, rejected, runs = rng(39), 0, 600
    for _ in range(runs):
        human = 0.1 * np.arange(6) + draw.normal(0, 0.5, (40, 6))
        one, other = (human + draw.normal(0, 0.6, human.shape) for _ in range(2))
        found = metric_comparison.compare_metrics(human, one, other, statistic=statistic, rng=draw, resamples=199)
        rejected += found.pvalue <= 0.05
    assert rejected / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert rejected / runs >= 0.02
