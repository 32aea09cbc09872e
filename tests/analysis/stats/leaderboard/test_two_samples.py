"""Scores, differences, ranks and distances of a board are about people and prompts like those of the study."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import board_scores, leaderboard, ranks
from tests.analysis.stats.draws import rng


def shared_prompts(draw, truth, *, n_items=40, n_people=30, per_item=2, item=0.15, taste=0.08, knack=0.15, noise=0.15):
    """Answers in 0..1: every system on the same prompts, `knack` the spread of a system's success over prompts."""
    k = len(truth)
    systems = np.repeat(np.arange(k), n_items * per_item)
    items = np.tile(np.repeat(np.arange(n_items), per_item), k)
    people = draw.integers(0, n_people, len(items))
    mean = np.asarray(truth)[systems] + draw.normal(0, item, n_items)[items] + draw.normal(0, taste, n_people)[people]
    mean = mean + draw.normal(0, knack, (k, n_items))[systems, items]
    return np.clip(mean + draw.normal(0, noise, len(items)), 0, 1), systems, items, people


def joint_coverage(runs, seed, *, items_sampled=True, **design):
    """Shares of boards whose scores, rank sets and distances hold the truth; four equal systems of .5."""
    draw, held = rng(seed), np.zeros(3)
    for _ in range(runs):
        data = shared_prompts(draw, [0.5] * 4, **design)
        board = leaderboard.leaderboard(*data, rng=draw, resamples=499, items_sampled=items_sampled)
        held[0] += np.mean([one.interval.low <= 50 <= one.interval.high for one in board.scores])
        held[1] += set(board.ranks.low) == {1}
        held[2] += all(one.interval.low <= 0 <= one.interval.high for one in board.from_best[1:])
    return held / runs


@pytest.mark.slow
def test_without_the_prompts_as_a_sample_ranks_do_not_generalise_and_with_them_they_do():
    both = joint_coverage(60, 1, n_items=15, per_item=20)
    people_only = joint_coverage(60, 1, n_items=15, per_item=20, items_sampled=False)
    assert (both >= 0.9).all()
    assert (people_only < 0.7).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "design",
    [
        {"n_items": 40, "per_item": 2},
        {"n_items": 100, "per_item": 1},
        {"n_items": 20, "per_item": 5, "n_people": 12},
        {"n_items": 40, "item": 0.25, "knack": 0.0},
    ],
)
def test_scores_ranks_and_distances_hold_over_prompts(design):
    assert (joint_coverage(500, 2, **design) >= 0.95 - 2 * 0.0097).all()


def test_the_spread_of_a_pair_is_that_of_brute_force():
    values, systems, items, people = shared_prompts(rng(3), [0.5, 0.6, 0.4], n_items=9, n_people=7)
    weights = board_scores.equal_item_weights(values, systems, items)
    spread = ranks.score_spread(values, people, systems, items, weights=weights)

    def difference(kept):
        return [np.average(values[one], weights=weights[one]) for one in (kept & (systems == 0), kept & (systems == 1))]

    def left_out(labels):
        found = np.array([np.subtract(*difference(labels != one)) for one in np.unique(labels)])
        whole = np.subtract(*difference(labels != -1))
        return (len(found) - 1) / len(found) * np.sum((found - whole) ** 2)

    by_annotator, by_item = left_out(people), left_out(items)
    influence = np.zeros(len(values))
    for system, sign in ((0, 1), (1, -1)):
        own = systems == system
        influence[own] = sign * weights[own] * (values[own] - spread.scores[system]) / weights[own].sum()
    pairs = people * 100 + items
    sums = np.array([influence[pairs == one].sum() for one in np.unique(pairs)])
    by_pair = len(sums) / (len(sums) - 1) * np.sum(sums**2)
    se, df = spread.of_pairs()
    assert_allclose(se[0, 1] ** 2, max(by_annotator + by_item - by_pair, by_item))
    assert_allclose([se[1, 0], df[1, 0]], [se[0, 1], df[0, 1]])
    one, of_df = spread.combined([[1, -1, 0]], ["difference"]).of_scores()
    assert_allclose([one[0], of_df[0]], [se[0, 1], df[0, 1]])


def test_a_score_of_the_board_agrees_with_the_one_asked_for_alone():
    values, systems, items, people = shared_prompts(rng(4), [0.5, 0.6], n_items=30)
    weights = board_scores.equal_item_weights(values, systems, items)
    spread = ranks.score_spread(100 * values, people, systems, items, weights=weights)
    own = systems == 0
    score = board_scores.system_score_in_points(values[own], items[own], people[own], rng=rng())
    se, df = spread.of_scores()
    assert_allclose([se[0], df[0]], [score.detail["se"], score.detail["df"]], rtol=0.03)
    assert score.settings["population"] == spread.population == "people and prompts"


def test_a_new_system_that_one_person_judged_leaves_the_others_their_ranks():
    values, systems, items, people = shared_prompts(rng(5), [0.2, 0.8], knack=0.02)
    data = np.r_[values, [0.5] * 6], np.r_[systems, [9] * 6], np.r_[items, np.arange(6)], np.r_[people, [0] * 6]
    board = leaderboard.leaderboard(*data, rng=rng(), resamples=199)
    assert board.ranks.systems == (1, 9, 0)
    assert (board.ranks.low, board.ranks.high) == ((1, 1, 2), (2, 3, 3))
    assert [one.status for one in board.from_best] == ["not_applicable", "not_identified", "ok"]


def test_fewer_than_five_prompts_are_not_a_sample():
    data = shared_prompts(rng(6), [0.5, 0.6], n_items=4, per_item=10)
    board = leaderboard.leaderboard(*data, rng=rng(), resamples=99)
    assert {one.settings["population"] for one in (*board.scores, board.ranks, *board.from_best)} == {"people"}
