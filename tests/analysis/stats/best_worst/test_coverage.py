"""What the intervals and tests of best-worst scaling promise, in simulated studies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from analysis.stats.best_worst import best_worst_logit, maxdiff_scores
from tests.analysis.stats.best_worst.studies import STRENGTHS, estimates, study


@pytest.mark.slow
def test_equal_systems_seldom_differ_and_intervals_cover():
    """Twenty people of unequal activity; 400 studies each, so that three standard errors are .033."""
    sizes = np.array([2, 3, 4, 5, 6, 7, 8, 9, 10, 26] * 2)
    same, covers, scores = [], [], []
    for seed in range(400):
        sets, best, worst, people, _ = study(1000 + seed, n_people=20, strengths=(0, 0, 0, 0), size=3, sizes=sizes)
        fit = best_worst_logit(sets, best, worst, people, n_systems=4)
        same.append(fit.omnibus.pvalue < 0.05)
        found = fit.difference(0, 3).interval
        covers.append(found.low <= 0 <= found.high)
        score = maxdiff_scores(sets, best, worst, people, n_systems=4).scores[0].interval
        scores.append(score.low <= 0 <= score.high)
    assert np.mean(same) < 0.083
    assert np.mean(covers) > 0.917 and np.mean(scores) > 0.917


def test_strengths_are_found_again_in_a_large_study():
    fit = best_worst_logit(*study(20, n_people=3000, lean=0.0)[:4], n_systems=5)
    truth = np.array(STRENGTHS) - np.mean(STRENGTHS)
    assert_allclose(estimates(fit), truth, atol=0.04)
    assert_allclose(fit.probabilities[4, 0], expit(1.2), atol=0.02)
