"""Systems that cannot be told apart share a cluster."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import multiplicity, unpaired
from tests.analysis.stats.draws import rng as generator
from tests.analysis.stats.unpaired.shared_task import ranked, shared_task


def test_clusters_are_drawn_where_all_above_beat_all_below():
    values, systems, segments = shared_task([2.0, 1.95, 0.5, 0.45, -2.0])
    found = ranked(values, systems, segments)
    assert found.clusters == (1, 1, 2, 2, 3)
    assert (found.rank_low, found.rank_high) == ((1, 1, 3, 3, 5), (2, 2, 4, 4, 5))
    assert list(found.means) == sorted(found.means, reverse=True) and found.n_segments == (80,) * 5
    names = found.systems
    raw = []
    for place, better in enumerate(names):
        for worse in names[place + 1 :]:
            pair = found.pairs[better, worse]
            theirs = stats.mannwhitneyu(values[systems == better], values[systems == worse])
            assert_allclose([pair.test.statistic, pair.pvalue], [theirs.statistic, theirs.pvalue], rtol=1e-12)
            assert_allclose(pair.estimate, theirs.statistic / 6400)
            raw.append(pair.pvalue)
    adjusted = [pair.test.pvalue_adjusted for pair in found.pairs.values()]
    assert_allclose(adjusted, multiplicity.holm(raw), rtol=1e-12)
    assert found.warnings[0].code == "segments_shared"
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.parametrize("mode", ["recommended", "paper"])
def test_a_higher_mean_alone_beats_nobody(mode):
    # One segment of a is far above all others, and each of the rest lies below all of b.
    values = np.concatenate([[200.0], np.linspace(-2, -1, 50), np.linspace(0, 1, 51)])
    found = unpaired.significance_clusters(values, np.repeat(["a", "b"], 51), np.tile(np.arange(51), 2), mode=mode)
    assert found.systems == ("a", "b") and found.pairs["a", "b"].estimate < 0.1
    assert (found.clusters, found.rank_low, found.rank_high) == ((1, 1), (1, 1), (2, 2))


def test_one_tie_across_the_line_removes_the_line():
    # a beats b, b does not beat c, although a beats c: one cluster below a only if a beats both.
    values, systems, segments = shared_task([1.0, 0.3, 0.25], seed=1)
    found = ranked(values, systems, segments)
    assert found.clusters == (1, 2, 2)
    chain = ranked(*shared_task([0.5, 0.25, 0.0], n=60, seed=2))
    top, bottom = chain.systems[0], chain.systems[2]
    assert chain.pairs[top, bottom].test.pvalue_adjusted < 0.05 and chain.clusters == (1, 1, 1)
    assert chain.rank_low == (1, 1, 2) and chain.rank_high == (2, 3, 3)


def test_a_line_asks_that_everybody_above_beats_everybody_below():
    rng = generator(9)
    # The best mean belongs to a system that is brilliant once in eight times and else like the worst.
    brilliant = np.where(np.arange(80) < 10, 20.0, 0.0) + rng.normal(0, 0.5, 80)
    solid, poor = rng.normal(2, 0.5, 80), rng.normal(0, 0.5, 80)
    values, systems = np.concatenate([brilliant, solid, poor]), np.repeat(["brilliant", "solid", "poor"], 80)
    found = ranked(values, systems, np.tile(np.arange(80), 3))
    assert found.systems == ("brilliant", "solid", "poor")
    assert found.pairs["solid", "poor"].test.pvalue_adjusted < 0.001
    assert found.pairs["brilliant", "poor"].test.pvalue_adjusted > 0.05
    assert found.clusters == (1, 1, 1)
    # Upside down: the first beats the second but not the last.
    found = ranked(-values, systems, np.tile(np.arange(80), 3))
    assert found.systems == ("poor", "solid", "brilliant") and found.clusters == (1, 1, 1)
    assert found.pairs["poor", "solid"].test.pvalue_adjusted < 0.001


def test_several_ratings_of_a_segment_are_one_value():
    values, systems, segments = shared_task([1.0, 0.0], n=30)
    once = ranked(values, systems, segments)
    twice = ranked(
        np.r_[values - 0.1, values + 0.1, np.nan],
        [*systems, *systems, "s0"],
        np.r_[segments, segments, 0],
        annotators_for_warning=np.r_[np.zeros(120), 1],
    )
    assert_allclose(twice.means, once.means, atol=1e-12)
    assert_allclose([p.pvalue for p in twice.pairs.values()], [p.pvalue for p in once.pairs.values()], rtol=1e-9)
    assert [warning.code for warning in twice.warnings] == ["annotators_ignored", "segments_shared"]
    assert twice.n_segments == (30, 30)


def test_the_shared_tasks_way_is_unadjusted_and_finds_more_lines():
    values, systems, segments = shared_task([0.30, 0.0, -0.3], n=90, seed=3)
    ours, theirs = ranked(values, systems, segments), ranked(values, systems, segments, mode="paper")
    for pair, estimate in theirs.pairs.items():
        assert estimate.test.alternative == "greater" and estimate.mode == "paper"
        assert estimate.test.pvalue_adjusted == estimate.pvalue < ours.pairs[pair].test.pvalue_adjusted
    assert theirs.clusters[-1] >= ours.clusters[-1]
    sided = ranked(values, systems, segments, mode="paper", alternative="two-sided")
    assert_allclose([e.pvalue for e in sided.pairs.values()], [e.pvalue for e in ours.pairs.values()])


def test_a_planned_system_without_ratings_still_counts_in_the_family():
    values, systems, segments = shared_task([1.0, 0.0], n=30)
    found = ranked(values, systems, segments, planned=["s0", "s1", "s2"])
    (pair,) = found.pairs.values()
    assert pair.test.family_size == 3 and found.systems == ("s0", "s1")
    assert_allclose(pair.test.pvalue_adjusted, 3 * pair.pvalue)
    with pytest.raises(ValueError, match="'s1' is not among the planned"):
        ranked(values, systems, segments, planned=["s0"])
    with pytest.raises(ValueError, match="mode: 'wmt'"):
        ranked(values, systems, segments, mode="wmt")


def test_systems_that_cannot_be_told_apart_share_a_cluster():
    same = ranked([3.0] * 20, ["a"] * 10 + ["b"] * 10, [*range(10)] * 2)
    assert same.clusters == (1, 1) and same.pairs["a", "b"].status == "zero_variance" and same.rank_high == (2, 2)
    single = ranked([3.0, 4.0, 2.0], ["a", "b", "b"], [0, 0, 1])
    assert single.clusters == (1, 1) and {e.status for e in single.pairs.values()} == {"n_lt_2"}
    assert ranked([], [], []).systems == ()
    for found in (same, single):
        json.dumps(found.as_dict(), allow_nan=False)
