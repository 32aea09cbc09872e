"""The precision of repeated labels is estimated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import board_scores
from tests.analysis.stats.draws import rng


def test_one_label_on_more_items_never_loses():
    draw = rng(24)
    labels = np.clip(draw.normal(0.7, 0.2, (120, 1)) + draw.normal(0, 0.2, (120, 3)), 0, 1)
    found = board_scores.unilabel_and_multilabel_spread_in_points(labels, rng=rng(), rounds=2000)
    assert_allclose(found.sd_unilabel, found.exact_unilabel, rtol=0.06)
    assert_allclose(found.sd_multilabel, found.exact_multilabel, rtol=0.06)
    assert found.exact_unilabel < found.exact_multilabel
    # Var(multilabel) / Var(unilabel) is the design effect 1 + (k - 1) icc of items.
    assert_allclose((found.exact_multilabel / found.exact_unilabel) ** 2, found.design_effect, rtol=0.02)
    assert_allclose(found.design_effect, 2.0, atol=0.3)
    assert found.as_dict()["n"] == 120


def test_labels_that_know_nothing_of_their_item_lose_nothing_by_repetition():
    labels = rng(25).choice([0.0, 1.0], (3000, 3))
    found = board_scores.unilabel_and_multilabel_spread_in_points(labels, rng=rng())
    assert_allclose(found.exact_multilabel, found.exact_unilabel, rtol=0.03)
    constant = board_scores.unilabel_and_multilabel_spread_in_points(np.full((10, 3), 0.5), rng=rng())
    assert (constant.sd_unilabel, constant.icc, constant.design_effect) == (0.0, None, None)


def test_the_majority_of_three_is_their_median():
    labels = np.array([[1, 1, 0], [0, 0, 1], [0.25, 0.75, 0.75], [0, 0.5, 1]])
    found = board_scores.unilabel_and_multilabel_spread_in_points(labels, rng=rng(), aggregate="majority")
    assert_allclose(found.exact_multilabel, 100 * np.std([1, 0, 0.75, 0.5]))


def test_bad_labels_are_named():
    for labels, message in (
        ([[1, 0]], "at least two items"),
        ([[1], [0]], "two labels each"),
        ([[1, None], [0, 1]], "row 0 has a missing label"),
        ([[1, 2], [0, 1]], "row 1 is 2, outside 0..1"),
    ):
        with pytest.raises(ValueError, match=f"labels: .*{message}"):
            board_scores.unilabel_and_multilabel_spread_in_points(labels, rng=rng())
    with pytest.raises(ValueError, match="aggregate"):
        board_scores.unilabel_and_multilabel_spread_in_points([[1, 0], [0, 1]], rng=rng(), aggregate="mode")
