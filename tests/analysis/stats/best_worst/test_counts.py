"""Counts of the best and the worst, by hand and with their intervals."""

import math

import numpy as np
from numpy.testing import assert_allclose

from analysis.stats import clusters, ranks
from analysis.stats.best_worst import maxdiff_score_rows, maxdiff_scores
from tests.analysis.stats.best_worst.studies import study


def test_counts_are_those_by_hand():
    sets = [[0, 1, 2], [1, 2, 3], [3, 0, -1], [0, 1, 3]]
    found = maxdiff_scores(sets, [0, 2, 0, 1], [2, 3, 3, 0], ["a", "a", "b", "b"], n_systems=5)
    assert found.n_shown.tolist() == [3, 3, 2, 3, 0]
    assert found.n_best.tolist() == [2, 1, 1, 0, 0]
    assert found.n_worst.tolist() == [1, 0, 1, 2, 0]
    assert_allclose([one.estimate for one in found.scores[:4]], [1 / 3, 1 / 3, 0, -2 / 3])
    assert {key: found.scores[3].detail[key] for key in ("n_shown", "n_best", "n_worst", "system")} == {
        "n_shown": 3,
        "n_best": 0,
        "n_worst": 2,
        "system": 3,
    }
    assert (found.scores[4].status, found.scores[4].estimate) == ("no_data", None)
    assert found.scores[4].reason == "system 4 was never shown"
    assert all(one.mode == "paper" and one.test is None for one in found.scores)
    assert (found.status, found.n_clusters, found.n_rows) == ("ok", 2, 4)
    # System 2 was shown to one person only.
    assert (found.scores[2].status, found.scores[2].interval, found.scores[2].n) == ("n_lt_2", None, 1)


def test_scores_have_the_jackknife_over_people():
    sets, best, worst, people, _ = study(1)
    found = maxdiff_scores(sets, best, worst, people, n_systems=5)

    def score(system, kept):
        shown = (sets[kept] == system).any(axis=1).sum()
        return ((best[kept] == system).sum() - (worst[kept] == system).sum()) / shown

    for system, one in enumerate(found.scores):
        assert_allclose(one.estimate, score(system, people >= 0))
        without = np.array([score(system, people != person) for person in range(24)])
        assert_allclose(one.detail["se"], math.sqrt(23 / 24 * np.sum((without - one.estimate) ** 2)))
        assert -1 <= one.interval.low < one.estimate < one.interval.high <= 1


def test_scores_over_people_and_prompts_stand_beside_where_prompts_were_judged_more_than_once():
    sets, best, worst, people, prompts = study(2, n_prompts=10)
    found = maxdiff_scores(sets, best, worst, people, prompts, n_systems=5).scores[3]
    here = (sets == 3).any(axis=1)
    values = (best[here] == 3).astype(float) - (worst[here] == 3)
    wanted = clusters.two_way_clustered_mean(values, people[here], prompts[here], bounds=(-1, 1))
    beside = found.sensitivity[-1]
    assert beside.analysis == "best_worst.counts.two_way"
    assert_allclose(
        [beside.estimate, beside.detail["se"], beside.interval.low],
        [wanted.estimate, wanted.detail["se"], wanted.interval.low],
    )
    for other in (None, np.arange(len(best)), np.zeros(len(best))):
        alone = maxdiff_scores(sets, best, worst, people, other, n_systems=5).scores[3]
        assert [one.analysis for one in alone.sensitivity] == ["best_worst.counts.cluster_means"]
        assert alone.detail["se"] == found.detail["se"]


def test_a_system_that_always_was_the_best_has_an_interval_by_betting():
    found = maxdiff_scores([[0, 1, 2]] * 12, [0] * 12, [1, 2] * 6, np.arange(12), n_systems=3).scores[0]
    assert (found.status, found.estimate, found.interval.method) == ("ok", 1.0, "betting")
    assert found.interval.low < found.interval.high == 1.0 and found.test is None


def test_rows_give_ranks_and_add_up_to_zero_in_each_answer():
    sets, best, worst, people, _ = study(3, n_people=60)
    answers, systems, values = maxdiff_score_rows(sets, best, worst, n_systems=5)
    assert_allclose(np.bincount(answers, values), 0)
    found = ranks.rank_confidence_sets_from_rows(values, people[answers], systems)
    scores = [one.estimate for one in maxdiff_scores(sets, best, worst, people, n_systems=5).scores]
    assert found.systems == tuple(range(5))
    assert_allclose(found.scores, scores)
