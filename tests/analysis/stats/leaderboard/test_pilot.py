"""A pilot tells what one label or several per item cost, in numbers that a figure can draw."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import board_scores
from tests.analysis.stats.draws import rng


def test_a_pilots_rows_become_the_table_of_the_unilabel_study():
    draw = rng(1)
    items = np.repeat(np.arange(60), 4)
    values = np.clip(np.repeat(draw.normal(0.6, 0.2, 60), 4) + draw.normal(0, 0.15, 240), 0, 1)
    values[::4][:20] = np.nan
    table = board_scores.pilot_label_table(values, items, labels_per_item=4, rng=draw)
    assert_allclose(np.sort(table), np.sort(values[80:].reshape(40, 4)))
    assert len(board_scores.pilot_label_table(values, items, labels_per_item=3, rng=draw)) == 60
    spread = board_scores.unilabel_and_multilabel_spread_in_points(table, rng=draw)
    assert spread.exact_multilabel > spread.exact_unilabel and spread.n_items == 40
    with pytest.raises(ValueError, match="labels_per_item: 1 is less than 2"):
        board_scores.pilot_label_table(values, items, labels_per_item=1, rng=draw)


def test_the_chosen_labels_are_a_fair_draw():
    draw, firsts = rng(2), []
    for _ in range(400):
        firsts.extend(board_scores.pilot_label_table([0, 0.5, 1], [1, 1, 1], labels_per_item=2, rng=draw)[0])
    assert_allclose([np.mean(np.array(firsts) == one) for one in (0, 0.5, 1)], 1 / 3, atol=0.05)


def test_double_labels_are_counted_against_the_minimum():
    items = np.r_[np.arange(100), np.arange(9)]
    found = board_scores.double_label_share(np.ones(109), items)
    assert (found.n, found.n_double, found.share, found.is_enough, found.n_missing) == (100, 9, 0.09, False, 1)
    assert board_scores.double_label_share(np.ones(110), np.r_[items, 9]).is_enough
    assert not board_scores.double_label_share(np.r_[np.ones(109), np.nan], np.r_[items, 9]).is_enough
    empty = board_scores.double_label_share([], [])
    assert (empty.n, empty.share) == (0, None)
    with pytest.raises(ValueError, match="minimum"):
        board_scores.double_label_share([1], [1], minimum=10)


def test_the_measured_curve_is_the_spread_of_scores_over_studies():
    draw, found, scores = rng(3), [], []
    for _ in range(300):
        people, items = np.repeat(np.arange(30), 10), np.arange(300) // 2
        items = draw.permutation(items)
        mean = 0.5 + draw.normal(0, 0.08, 30)[people] + draw.normal(0, 0.12, 150)[items]
        values = np.clip(mean + draw.normal(0, 0.1, 300), 0, 1)
        curve = board_scores.precision_for_cost(values, items, people, n_labels=[300], cost_per_label=1)
        found.append(curve.measured_se[0] ** 2)
        scores.append(100 * values.mean())
    assert_allclose(math.sqrt(np.mean(found)), np.std(scores), rtol=0.1)
    # The worst case of independent labels is no bound for clustered ones of a wide spread, and wide for these.
    assert curve.worst_case_se[0] > curve.measured_se[0]


def test_a_pilot_without_a_spread_still_has_the_worst_case():
    empty = board_scores.precision_for_cost([], [], [], n_labels=[800], cost_per_label=0.75)
    assert_allclose(empty.worst_case_se, [1.77], atol=0.005)
    assert (empty.measured_se, empty.score, empty.costs) == ((None,), None, (600.0,)) and empty.reason
    single = board_scores.precision_for_cost([1, 0, 1, 0], range(4), range(4), n_labels=[4], cost_per_label=1)
    assert single.design_effect == 1 and "independent" in single.reason
    json.dumps(single.as_dict(), allow_nan=False)
    with pytest.raises(ValueError, match="n_labels: 0"):
        board_scores.precision_for_cost([1], [1], [1], n_labels=[0], cost_per_label=1)
