"""Soft pairwise accuracy is that of an enumeration and keeps its laws."""

import itertools

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import metrics
from tests.analysis.stats.draws import rng
from tests.analysis.stats.metrics.scores import scored


def test_soft_pairwise_accuracy_by_enumeration():
    human, metric = scored(rng(11), n_items=8, k=3)
    found = metrics.soft_pairwise_accuracy(human, metric, rng=rng())
    signs = np.array(list(itertools.product([-1, 1], repeat=8)))
    gaps = []
    for i, j in itertools.combinations(range(3), 2):
        upper = []
        for table in (human, metric):
            apart = table[:, i] - table[:, j]
            flipped = signs @ apart
            upper.append(np.mean(flipped > apart.sum() + 1e-9) + np.mean(np.abs(flipped - apart.sum()) <= 1e-9) / 2)
        gaps.append(abs(upper[0] - upper[1]))
    assert_allclose(found.estimate, 1 - np.mean(gaps))
    assert found.detail["n_pairs"] == 3


def test_soft_pairwise_accuracy_uses_one_sided_p_values():
    human, metric = scored(rng(12), n_items=200, k=4, gap=0.03, noise=1.0)
    found = metrics.soft_pairwise_accuracy(human, metric, rng=rng(), resamples=9999)
    for side, table in (("human", human), ("metric", metric)):
        wanted = [
            stats.ttest_rel(table[:, i], table[:, j], alternative="greater").pvalue
            for i, j in itertools.combinations(range(4), 2)
        ]
        assert_allclose(found.detail[side], wanted, atol=0.02)


def test_laws_of_soft_pairwise_accuracy():
    human, metric = scored(rng(13), n_items=50, k=5, noise=1.0)

    def soft(a, b):
        return metrics.soft_pairwise_accuracy(a, b, rng=rng(3), resamples=499).estimate

    assert soft(human, human) == soft(human, 5 * human - 2) == 1
    assert_allclose(soft(human, metric), soft(metric, human))
    assert_allclose(soft(human, metric), soft(human[:, ::-1], metric[:, ::-1]), atol=1e-9)
    # p(x, y) + p(y, x) = 1, so the opposite metric is as sure of the opposite.
    opposite = metrics.soft_pairwise_accuracy(human, -human, rng=rng(3), resamples=499)
    assert_allclose(opposite.detail["human"] + opposite.detail["metric"], 1, atol=0.07)
    # A metric that knows nothing says .5 to what people are sure of.
    sure, constant = np.tile(np.arange(3.0), (40, 1)) + rng(4).normal(0, 0.1, (40, 3)), np.zeros((40, 3))
    assert_allclose(soft(sure, constant), 0.5, atol=0.01)


def test_soft_pairwise_accuracy_edge_cases():
    human, _ = scored(rng(14), k=2)
    assert metrics.soft_pairwise_accuracy(human[:, :1], human[:, :1], rng=rng()).status == "not_applicable"
    assert metrics.soft_pairwise_accuracy(human * np.nan, human, rng=rng()).status == "no_data"
    assert metrics.soft_pairwise_accuracy(human, human, rng=rng(), resamples=99).status == "ok"


def test_pairs_that_one_side_did_not_score_are_no_agreement():
    nothing = metrics.soft_pairwise_accuracy([[1, 2], [2, 1]], [[1, np.nan], [np.nan, 1]], rng=rng())
    assert (nothing.status, nothing.estimate) == ("no_data", None)
    human, metric = scored(rng(15), n_items=40, k=3, noise=1.0)
    metric[:, 2] = np.nan
    found = metrics.soft_pairwise_accuracy(human, metric, rng=rng(3), resamples=499)
    two = metrics.soft_pairwise_accuracy(human[:, :2], metric[:, :2], rng=rng(3), resamples=499)
    assert (found.detail["n_pairs"], found.detail["n_unscored_pairs"]) == (1, 2)
    assert_allclose(found.estimate, two.estimate)
