"""The probability of superiority counts pairs of ratings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import unpaired
from tests.analysis.stats.draws import rng as generator


@pytest.mark.parametrize("n_x,n_y", [(8, 30), (40, 25)])
def test_superiority_is_the_share_of_won_pairs_and_only_the_order_counts(n_x, n_y):
    rng = generator(1)
    labels = {
        "x_annotators": np.arange(n_x),
        "y_annotators": n_x + np.arange(n_y),
        "x_prompts": np.arange(n_x) % 7,
        "y_prompts": np.arange(n_y) % 7,
    }
    for x, y in [
        (rng.integers(1, 6, n_x), rng.integers(1, 5, n_y)),
        (rng.normal(0.3, 1, n_x), rng.normal(0, 2, n_y)),
    ]:
        found = unpaired.probability_of_superiority(x, y, **labels)
        assert_allclose(found.estimate, stats.mannwhitneyu(x, y).statistic / (n_x * n_y), atol=1e-12)
        assert_allclose(found.detail["cliff_delta"], 2 * found.estimate - 1)
        other = unpaired.probability_of_superiority(np.exp(2 * x), np.exp(2 * y), **labels)
        assert_allclose([other.estimate, other.pvalue], [found.estimate, found.pvalue], atol=1e-12)
