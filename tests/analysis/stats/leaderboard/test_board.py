"""A board orders systems, and compares each with the best or with a reference."""

import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import board_scores, leaderboard
from tests.analysis.stats.draws import rng
from tests.analysis.stats.leaderboard.labels import unilabels


@pytest.mark.slow
def test_the_distance_from_the_best_keeps_the_level_although_the_best_is_chosen_by_the_data():
    draw, false_alarms, runs = rng(16), 0, 300
    for _ in range(runs):
        who = np.concatenate([draw.permutation(np.arange(200) % 40) for _ in range(5)])
        values = np.clip(0.5 + draw.normal(0, 0.1, 40)[who] + draw.normal(0, 0.2, 1000), 0, 1)
        board = leaderboard.leaderboard(
            values, np.repeat(list("abcde"), 200), np.tile(np.arange(200), 5), who, rng=draw, resamples=299
        )
        false_alarms += any(one.test is not None and one.pvalue < 0.05 for one in board.from_best)
    assert false_alarms / runs <= 0.05 + 3 * 0.0126


def board_of(draw, shifts, n_items=120, n_annotators=30, **options):
    names = np.repeat([f"s{i}" for i in range(len(shifts))], n_items)
    who = draw.integers(0, n_annotators, len(names))
    base = np.tile(draw.normal(0.5, 0.1, n_items), len(shifts)) + np.repeat(shifts, n_items)
    values = np.clip(base + draw.normal(0, 0.05, n_annotators)[who] + draw.normal(0, 0.15, len(names)), 0, 1)
    data = values, names, np.tile(np.arange(n_items), len(shifts)), who
    return leaderboard.leaderboard(*data, rng=draw, resamples=399, **options), data


def test_a_board_runs_from_the_best_to_the_worst():
    board, data = board_of(rng(18), [0.0, 0.3, 0.29])
    assert set(board.ranks.systems[:2]) == {"s1", "s2"} and board.ranks.systems[2] == "s0"
    assert board.ranks.best == (True, True, False)
    assert [score.estimate for score in board.scores] == sorted((s.estimate for s in board.scores), reverse=True)
    assert_allclose([score.estimate for score in board.scores], board.ranks.scores)
    assert board.from_best[0].status == "not_applicable"
    assert board.from_best[2].pvalue < 0.05 < board.from_best[1].pvalue
    assert (board.from_best[2].test.family_size, board.from_best[2].test.adjust) == (3, "max_t")
    json.dumps(board.as_dict(), allow_nan=False)


def test_a_board_weighs_items_equally_for_ranks_too():
    values = [1, 1, 1, 0, 0.6, 0.6]
    systems, items, who = ["x"] * 4 + ["y"] * 2, [1, 1, 1, 2, 1, 2], [1, 2, 3, 4, 1, 2]
    board = leaderboard.leaderboard(values, systems, items, who, rng=rng(), resamples=99)
    assert board.ranks.systems == ("y", "x")
    assert_allclose(board.ranks.scores, [60, 50])


def test_a_board_of_one_system_and_of_none():
    board, _ = board_of(rng(21), [0.0])
    assert (board.ranks.status, board.ranks.ranks, len(board.scores)) == ("not_applicable", (1,), 1)
    empty = leaderboard.leaderboard([], [], [], [], rng=rng(), resamples=9)
    assert (empty.ranks.status, empty.scores, empty.from_best) == ("no_data", (), ())


def test_results_are_plain_json_and_repeatable():
    data = unilabels(rng(28), n_items=100)
    for mode, missing in itertools.product(("recommended", "paper"), (False, True)):
        values = np.where(missing & (np.arange(100) % 7 == 0), np.nan, data[0])
        first, second = (
            json.dumps(
                board_scores.system_score_in_points(values, *data[1:], rng=rng(5), resamples=199, mode=mode).as_dict(),
                allow_nan=False,
            )
            for _ in range(2)
        )
        assert first == second


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="values: row 1 is 3, outside 0..1"):
        board_scores.system_score_in_points([1, 3], [1, 2], ["a", "b"], rng=rng())
    with pytest.raises(ValueError, match="mode"):
        board_scores.system_score_in_points([1], [1], ["a"], rng=rng(), mode="ours")
    with pytest.raises(ValueError, match="items: expected 2 labels"):
        board_scores.system_score_in_points([1, 0], [1], ["a", "b"], rng=rng())
    with pytest.raises(ValueError, match="annotators: row 0 has no label"):
        leaderboard.leaderboard([1], ["x"], [1], [None], rng=rng())
    with pytest.raises(ValueError, match="level"):
        leaderboard.leaderboard([1], ["x"], [1], ["a"], rng=rng(), level=95)
    for arguments, name in (((101, 5), "score"), ((50, 0), "n"), ((50, 5, -1), "design_effect")):
        with pytest.raises(ValueError, match=name):
            board_scores.worst_case_se_in_points(
                *arguments[:2], design_effect=arguments[2] if len(arguments) > 2 else 1.0
            )
    with pytest.raises(ValueError, match="icc"):
        board_scores.design_effect(3, 1.2)
    with pytest.raises(ValueError, match="cluster_size"):
        board_scores.design_effect(0.5, 0.2)
