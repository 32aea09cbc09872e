"""The published rule crosses where the paper says, and errs more often than it says."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import sequential, stopping_boundaries
from tests.analysis.stats.sequential.labels import GOLDEN, labels


def test_unanimous_answers_decide_where_the_reference_says():
    for delta, n in GOLDEN["hoeffding"]["min_unanimous"].items():
        rule = stopping_boundaries.hoeffding_boundaries(40, delta=float(delta))
        for answer, winner in ((1, 1), (0, -1)):
            found = stopping_boundaries.find_boundary_crossings([answer] * 40, rule)
            assert (found.n.tolist(), found.winner.tolist()) == ([n], [winner])
    for delta, radius in GOLDEN["hoeffding"]["t_100"].items():
        assert_allclose(stopping_boundaries.hoeffding_radius(100, float(delta)), radius, atol=1e-12)


def by_definition(series, delta, reading):
    """The paper's words, one answer at a time: the bound on either side of the running mean against one half."""
    state, crossed = 0, []
    for n in range(1, len(series) + 1):
        mean, t = np.mean(series[:n]), math.sqrt(-math.log(delta) / (2 * n))
        state = 1 if mean - t > 0.5 else -1 if mean + t < 0.5 else 0
        crossed.append(state)
    if reading == "first":
        return next(((n, state) for n, state in enumerate(crossed, start=1) if state), (0, 0))
    if state == 0:
        return 0, 0
    others = [n for n, other in enumerate(crossed, start=1) if other != state]
    return (max(others) if others else 0) + 1, state


@pytest.mark.parametrize("reading", stopping_boundaries.READINGS)
def test_crossings_follow_the_definition(reading):
    rule = stopping_boundaries.hoeffding_boundaries(150, delta=0.1)
    turning = np.r_[np.ones(20), np.zeros(130)]
    series = np.vstack([labels(1, 150, 0.6, 40), labels(2, 150, 0.45, 40), turning[None], 1 - turning[None]])
    found = stopping_boundaries.find_boundary_crossings(series, rule, reading=reading)
    wanted = [by_definition(row, 0.1, reading) for row in series]
    assert list(zip(found.n.tolist(), found.winner.tolist(), strict=True)) == wanted
    assert {1, -1, 0} == set(found.winner.tolist())


def test_hindsight_never_decides_sooner_and_sometimes_not_at_all():
    rule, series = stopping_boundaries.hoeffding_boundaries(300, delta=0.05), labels(3, 300, 0.55, 400)
    first, stays = (
        stopping_boundaries.find_boundary_crossings(series, rule, reading=reading)
        for reading in stopping_boundaries.READINGS
    )
    decided = stays.n > 0
    assert np.all(stays.n[decided] >= first.n[decided])
    assert 0 < decided.sum() < (first.n > 0).sum()
    # Past the last answer hindsight has nothing to see: a crossing at the end is one that stays.
    assert (
        stopping_boundaries.find_boundary_crossings(
            [1] * 6, stopping_boundaries.hoeffding_boundaries(6, delta=0.05), reading="stays"
        ).n[0]
        == 6
    )


def test_looking_now_and_then_decides_only_then():
    rule = stopping_boundaries.hoeffding_boundaries(100, delta=0.01, every=25)
    assert stopping_boundaries.find_boundary_crossings([1] * 100, rule).n.tolist() == [25]
    one_sided = stopping_boundaries.hoeffding_boundaries(100, delta=0.01, sides="a")
    assert stopping_boundaries.find_boundary_crossings([0] * 100, one_sided).n.tolist() == [0]


def test_the_published_rule_errs_more_often_than_it_says_and_the_anytime_rule_does_not():
    # Two equal systems, 500 labels, a look after each: .02 is promised, exact values are .0366 and .0101.
    series = labels(4, 500, 0.5, 10_000)
    error = 3 * math.sqrt(0.02 * 0.98 / len(series))
    naive = stopping_boundaries.find_boundary_crossings(
        series, stopping_boundaries.hoeffding_boundaries(500, delta=0.01)
    )
    honest = stopping_boundaries.find_boundary_crossings(
        series, stopping_boundaries.beta_binomial_boundaries(500, level=0.98)
    )
    assert np.mean(naive.winner != 0) > 0.02 + error
    assert np.mean(honest.winner != 0) <= 0.02 + error
    loose = stopping_boundaries.find_boundary_crossings(
        series, stopping_boundaries.hoeffding_boundaries(500, delta=0.05)
    )
    assert np.mean(loose.winner != 0) > 0.10 + 3 * math.sqrt(0.1 * 0.9 / len(series))


def test_the_papers_decision_says_what_it_rests_on():
    series = labels(5, 400, 0.7)
    first = sequential.hoeffding_decision(series, delta=0.001)
    stays = sequential.hoeffding_decision(series, delta=0.001, reading="stays")
    assert first.mode == "paper" and first.test is None and first.has_warning("fixed_n_bound")
    assert stays.has_warning("hindsight") and not first.has_warning("hindsight")
    assert first.detail["winner"] == stays.detail["winner"] == "a"
    assert_allclose(first.estimate, series[: first.n].mean())
    radius = math.sqrt(math.log(1000) / (2 * first.n))
    assert_allclose(first.interval.low, first.estimate - radius)
    assert first.interval.low > 0.5
    none = sequential.hoeffding_decision([1, 0, np.nan, 1, 0])
    assert (none.detail["winner"], none.detail["n_decision"], none.n, none.detail["n_missing"]) == (None, None, 4, 1)
    assert sequential.hoeffding_decision([np.nan]).status == "no_data"
    json.dumps(first.as_dict(), allow_nan=False)
