"""Units of bets: people and prompts are split into groups that share neither."""

import numpy as np
import pytest

from analysis.stats.confidence import _join_units
from tests.analysis.stats.draws import rng


def test_a_cluster_joins_the_unit_that_it_was_dealt_if_it_has_rows_there():
    clusters, units = np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 2])
    joined, n_choices = _join_units(clusters, units, np.array([1, 1, 2]), rng())
    assert joined.tolist() == [1, 1, 2] and n_choices.tolist() == [2, 1, 2]


def test_a_cluster_that_was_dealt_a_unit_without_its_rows_joins_one_of_its_own_at_random():
    clusters, units = np.array([0, 0, 0, 1]), np.array([0, 2, 2, 1])
    draw = rng()
    joined = np.array([_join_units(clusters, units, np.array([1, 0]), draw)[0] for _ in range(400)])
    assert set(joined[:, 1]) == {1}
    # Rows that repeat do not make a unit more likely.
    assert set(joined[:, 0]) == {0, 2} and abs(np.mean(joined[:, 0] == 0) - 0.5) < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_every_row_counts_once_on_average_however_uneven_the_clusters_are(seed):
    draw = rng(seed)
    clusters, items = np.repeat(np.arange(5), 5)[:23], draw.integers(0, 4, 23)
    clusters, items = np.unique(np.column_stack([clusters, items]), axis=0).T
    counted = np.zeros(len(clusters))
    for _ in range(3000):
        units = draw.permutation(4)[items]
        dealt = draw.permutation(np.arange(5) % 4)
        joined, n_choices = _join_units(clusters, units, dealt, draw)
        counted += np.where(joined[clusters] == units, n_choices[clusters], 0)
    np.testing.assert_allclose(counted / 3000, 1, atol=0.15)
