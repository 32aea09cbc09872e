"""The spread over days and the precision of repeated labels are estimated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import leaderboard
from tests.analysis.stats.draws import rng
from tests.analysis.stats.leaderboard.labels import answers


@pytest.mark.slow
def test_the_interval_of_the_spread_over_days_covers():
    for shifts in ([0, 0, 0], [0, 0.03, 0.08]):
        draw, hits, runs = rng(17), 0, 300
        for _ in range(runs):
            who = draw.integers(0, 60, 600)
            days = np.repeat([0, 1, 2], 200)
            values = 0.5 + np.array(shifts)[days] + draw.normal(0, 0.08, 60)[who] + draw.uniform(-0.2, 0.2, 600)
            found = leaderboard.largest_day_score_difference_in_points(
                np.clip(values, 0, 1), days, np.tile(np.arange(200), 3), who, rng=draw, resamples=299
            )
            hits += found.interval.low <= 100 * max(shifts) <= found.interval.high
        assert hits / runs >= 0.93


def test_days_are_compared_on_the_items_that_all_of_them_have():
    draw = rng(22)
    who = draw.integers(0, 30, 300)
    values = answers(draw, np.repeat([0.4, 0.4, 0.7], 100))
    days, items = np.repeat(["mo", "tu", "we"], 100), np.tile(np.arange(100), 3)
    found = leaderboard.largest_day_score_difference_in_points(values, days, items, who, rng=rng(), resamples=399)
    means = [100 * values[days == day].mean() for day in ("mo", "tu", "we")]
    assert_allclose(list(found.detail["by_day"].values()), means)
    assert_allclose(found.estimate, max(means) - min(means))
    assert found.interval.low > 10 and found.pvalue < 0.05
    # A further item of one day only changes nothing but the count of what was left out.
    more = leaderboard.largest_day_score_difference_in_points(
        np.r_[values, 0.0], np.append(days, "mo"), np.r_[items, 999], np.r_[who, 3], rng=rng(), resamples=399
    )
    assert (more.estimate, more.interval) == (found.estimate, found.interval)
    assert more.detail["n_items_dropped"] == 1


def test_days_without_a_difference_have_an_interval_from_0():
    draw = rng(29)
    who = draw.integers(0, 40, 400)
    found = leaderboard.largest_day_score_difference_in_points(
        answers(draw, np.full(400, 0.6)),
        np.repeat([1, 2], 200),
        np.tile(np.arange(200), 2),
        who,
        rng=rng(),
        resamples=399,
    )
    assert found.interval.low == 0 and found.pvalue > 0.05
    assert found.estimate > 0


def test_stability_edge_cases_are_statuses():
    def status(*data):
        return leaderboard.largest_day_score_difference_in_points(*data, rng=rng(), resamples=99).status

    assert status([], [], [], []) == "no_data"
    assert status([1, 0], [1, 1], [1, 2], ["a", "b"]) == "not_applicable"
    assert status([1, 0], [1, 2], [1, 2], ["a", "b"]) == "not_identified"
    assert status([1, 0], [1, 2], [1, 1], ["a", "a"]) == "n_lt_2"
    same = [1, 0] * 10, [1, 2] * 10, np.repeat(np.arange(10), 2), np.repeat(np.arange(10), 2)
    assert status(*same) == "zero_variance"


def test_one_label_on_more_items_never_loses():
    draw = rng(24)
    labels = np.clip(draw.normal(0.7, 0.2, (120, 1)) + draw.normal(0, 0.2, (120, 3)), 0, 1)
    found = leaderboard.unilabel_and_multilabel_spread_in_points(labels, rng=rng(), rounds=2000)
    assert_allclose(found.sd_unilabel, found.exact_unilabel, rtol=0.06)
    assert_allclose(found.sd_multilabel, found.exact_multilabel, rtol=0.06)
    assert found.exact_unilabel < found.exact_multilabel
    # Var(multilabel) / Var(unilabel) is the design effect 1 + (k - 1) icc of items.
    assert_allclose((found.exact_multilabel / found.exact_unilabel) ** 2, found.design_effect, rtol=0.02)
    assert_allclose(found.design_effect, 2.0, atol=0.3)
    assert found.as_dict()["n"] == 120


def test_labels_that_know_nothing_of_their_item_lose_nothing_by_repetition():
    labels = rng(25).choice([0.0, 1.0], (3000, 3))
    found = leaderboard.unilabel_and_multilabel_spread_in_points(labels, rng=rng())
    assert_allclose(found.exact_multilabel, found.exact_unilabel, rtol=0.03)
    constant = leaderboard.unilabel_and_multilabel_spread_in_points(np.full((10, 3), 0.5), rng=rng())
    assert (constant.sd_unilabel, constant.icc, constant.design_effect) == (0.0, None, None)


def test_the_majority_of_three_is_their_median():
    labels = np.array([[1, 1, 0], [0, 0, 1], [0.25, 0.75, 0.75], [0, 0.5, 1]])
    found = leaderboard.unilabel_and_multilabel_spread_in_points(labels, rng=rng(), aggregate="majority")
    assert_allclose(found.exact_multilabel, 100 * np.std([1, 0, 0.75, 0.5]))


def test_bad_labels_are_named():
    for labels, message in (
        ([[1, 0]], "at least two items"),
        ([[1], [0]], "two labels each"),
        ([[1, None], [0, 1]], "row 0 has a missing label"),
        ([[1, 2], [0, 1]], "row 1 is 2, outside 0..1"),
    ):
        with pytest.raises(ValueError, match=f"labels: .*{message}"):
            leaderboard.unilabel_and_multilabel_spread_in_points(labels, rng=rng())
    with pytest.raises(ValueError, match="aggregate"):
        leaderboard.unilabel_and_multilabel_spread_in_points([[1, 0], [0, 1]], rng=rng(), aggregate="mode")
