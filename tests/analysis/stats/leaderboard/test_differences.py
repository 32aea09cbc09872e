"""The difference of two systems is computed on the items that they share."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import clusters, leaderboard
from tests.analysis.stats.draws import rng
from tests.analysis.stats.leaderboard.labels import two_systems


def difference_coverage(runs, seed, design, **options):
    draw, hits = rng(seed), 0
    widths = []
    for _ in range(runs):
        found = leaderboard.score_difference_in_points(*two_systems(draw, design), x="x", y="y", **options)
        hits += found.interval.low <= 0 <= found.interval.high
        widths.append(found.interval.high - found.interval.low)
    return hits / runs, float(np.mean(widths))


def test_one_annotator_for_both_systems_makes_the_difference_a_clustered_mean_of_pairs():
    values, systems, items, who = two_systems(rng(5), "same")
    found = leaderboard.score_difference_in_points(values, systems, items, who, x="x", y="y", items_sampled=False)
    pairs = values[:400] - values[400:]
    wanted = clusters.clustered_mean(100 * pairs, who[:400], null=0.0)
    assert_allclose([found.estimate, found.detail["se"]], [wanted.estimate, wanted.detail["se"]])
    assert_allclose([found.pvalue, found.test.df], [wanted.pvalue, wanted.test.df])
    assert (found.n, found.n_rows, found.detail["n_items"]) == (40, 800, 400)
    # Cells and items then hold the same sums, but for the small-sample factor.
    beyond = leaderboard.score_difference_in_points(values, systems, items, who, x="x", y="y")
    assert_allclose(beyond.detail["variance_items"], beyond.detail["variance_cells"])


def test_every_annotator_another_item_makes_the_difference_a_paired_t_test():
    # 2 x 150 people with one answer each: nothing is clustered, pairs are independent.
    draw = rng(6)
    item = draw.normal(0.5, 0.2, 150)
    values = np.clip(np.r_[item + draw.normal(0, 0.1, 150), item + draw.normal(0.02, 0.1, 150)], 0, 1)
    found = leaderboard.score_difference_in_points(
        values, np.repeat(["x", "y"], 150), np.tile(np.arange(150), 2), np.arange(300), x="x", y="y"
    )
    pairs = 100 * (values[:150] - values[150:])
    assert_allclose(found.detail["se"], pairs.std(ddof=1) / math.sqrt(150), rtol=0.03)
    assert_allclose(found.pvalue, stats.ttest_1samp(pairs, 0).pvalue, rtol=0.1)
    # An analysis that forgets the pairing is twice as wide here.
    alone = leaderboard.score_difference_in_points(
        values,
        np.repeat(["x", "y"], 150),
        np.tile(np.arange(150), 2),
        np.arange(300),
        x="x",
        y="y",
        items_sampled=False,
    )
    assert alone.detail["se"] > 1.8 * found.detail["se"]


@pytest.mark.parametrize("design", ["same", "heavy"])
def test_the_variance_over_items_leaves_out_one_item_at_a_time(design):
    values, systems, items, who = (np.asarray(one) for one in two_systems(rng(8), design))

    def difference(kept):
        return leaderboard.score_difference_in_points(values[kept], systems[kept], items[kept], who[kept], x="x", y="y")

    found = difference(np.full(len(values), True))
    without = np.array([difference(items != one).estimate for one in np.unique(items)])
    wanted = (len(without) - 1) / len(without) * np.sum((without - found.estimate) ** 2)
    assert_allclose(found.detail["variance_items"], wanted, rtol=1e-9)


def test_only_shared_items_are_compared():
    values, systems, items = [1, 1, 0, 0.5, 0.5], ["x", "x", "x", "y", "y"], [1, 2, 3, 1, 2]
    found = leaderboard.score_difference_in_points(values, systems, items, [1, 2, 3, 4, 5], x="x", y="y")
    assert (found.estimate, found.detail["n_items"], found.detail["n_items_dropped"]) == (50.0, 2, 1)
    assert (found.n_rows, found.test) == (4, None)


def test_exchanging_the_systems_mirrors_the_difference():
    data = two_systems(rng(7), "heavy", shift=0.05)
    one, other = (leaderboard.score_difference_in_points(*data, x=x, y=y) for x, y in (("x", "y"), ("y", "x")))
    assert_allclose(one.estimate, -other.estimate)
    assert_allclose([one.pvalue, one.detail["se"]], [other.pvalue, other.detail["se"]])
    assert_allclose([one.interval.low, one.interval.high], [-other.interval.high, -other.interval.low])


@pytest.mark.parametrize("design", ["same", "other", "heavy"])
def test_the_interval_of_a_difference_covers(design):
    assert difference_coverage(150, 14, design)[0] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("design", ["same", "other", "heavy"])
def test_the_interval_of_a_difference_covers_and_pairing_narrows_it(design):
    paired, width = difference_coverage(1500, 15, design)
    assert paired >= 0.93
    wide, unpaired = difference_coverage(300, 15, design, items_sampled=False)
    assert wide >= 0.92
    # With other annotators for the other system the plain clustered variance still holds the items' spread.
    assert width < (0.95 if design == "other" else 1.06) * unpaired


def test_difference_edge_cases_are_statuses():
    def status(*data, x="x", y="y"):
        return leaderboard.score_difference_in_points(*data, x=x, y=y)

    assert status([], [], [], []).status == "no_data"
    assert status([1, 0], ["x", "y"], [1, 2], ["a", "b"]).status == "no_data"
    assert status([1, 0], ["x", "y"], [1, 1], ["a", "b"], y="x").status == "not_applicable"
    assert status([1, 0], ["x", "y"], [1, 1], ["a", "a"]).status == "n_lt_2"
    lonely = status([1, 0.5, 0, 0.25], ["x", "x", "y", "y"], [1, 2, 1, 2], ["a", "a", "b", "c"])
    assert lonely.status == "not_identified" and lonely.estimate == 62.5
    same = [1, 0] * 8, ["x", "y"] * 8, np.repeat(np.arange(8), 2), np.repeat(np.arange(8), 2)
    constant = status(*same)
    assert (constant.status, constant.estimate, constant.test) == ("zero_variance", 100.0, None)
