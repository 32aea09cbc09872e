"""Results are plain JSON, and bad arguments are named."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import metric_comparison, metrics
from tests.analysis.stats.draws import rng
from tests.analysis.stats.metrics.scores import likert


def test_results_are_plain_json_and_repeatable():
    human, metric = likert(rng(41))
    human[2, 2] = np.nan

    def everything():
        yield from metrics.system_level_correlations(human, metric, rng=rng(7), resamples=49).values()
        yield metrics.pairwise_accuracy(human, metric, rng=rng(7), resamples=49)
        yield metrics.soft_pairwise_accuracy(human, metric, rng=rng(7), resamples=49)
        yield metrics.segment_level_kendall_tau(human, metric, rng=rng(7), resamples=49)
        yield metrics.tie_calibrated_accuracy(human, metric, rng=rng(7), resamples=49)
        yield metric_comparison.compare_metrics(human, metric, -metric, rng=rng(7), resamples=49)

    first, second = ([json.dumps(one.as_dict(), allow_nan=False) for one in everything()] for _ in range(2))
    assert first == second


def test_the_order_of_items_does_not_matter():
    human, metric = likert(rng(42))
    order = rng(43).permutation(40)
    for function in (metrics.segment_level_kendall_tau, metrics.tie_calibrated_accuracy, metrics.pairwise_accuracy):
        one, other = (
            function(a, b, rng=rng(), resamples=19) for a, b in ((human, metric), (human[order], metric[order]))
        )
        assert_allclose(one.estimate, other.estimate)


def test_bad_arguments_are_named():
    human, metric = likert(rng(44))
    with pytest.raises(ValueError, match="metric: shape"):
        metrics.segment_level_kendall_tau(human, metric[:, 1:], rng=rng())
    with pytest.raises(ValueError, match="metric: 3 scores for 5 systems"):
        metrics.system_level_correlations(human, [1, 2, 3], rng=rng())
    with pytest.raises(ValueError, match="human: expected two dimensions"):
        metrics.system_level_correlations([1, 2], [1, 2], rng=rng())
    with pytest.raises(ValueError, match="grouping"):
        metrics.segment_level_kendall_tau(human, metric, grouping="system", rng=rng())
    with pytest.raises(ValueError, match="threshold"):
        metrics.tie_calibrated_accuracy(human, metric, threshold=-1, rng=rng())
    with pytest.raises(ValueError, match="statistic"):
        metric_comparison.compare_metrics(human, metric, metric, statistic="r", rng=rng())
    with pytest.raises(ValueError, match="second: shape"):
        metric_comparison.compare_metrics(human, metric, metric[1:], rng=rng())
    with pytest.raises(ValueError, match="grouping: .* pairs are more than"):
        metrics.segment_level_kendall_tau(np.zeros((400, 10)), np.zeros((400, 10)), grouping="none", rng=rng())
    with pytest.raises(ValueError, match="level"):
        metrics.segment_level_kendall_tau(human, metric, level=95, rng=rng())
