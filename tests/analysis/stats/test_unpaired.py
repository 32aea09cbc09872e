import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import clusters, multiplicity, permutation, unpaired
from tests.analysis.stats.golden import golden

GOLDEN = golden("unpaired")
X, Y = GOLDEN["x"], GOLDEN["y"]


def generator(seed=0):
    return np.random.default_rng(seed)


def superior(x=X, y=Y, **more):
    return unpaired.superiority(x, y, **{"rng": generator(), "resamples": 499, **more})


def ranked(values, systems, segments, **more):
    return unpaired.significance_clusters(values, systems, segments, **more)


def shared_task(means, n=80, seed=0, sd=1.0):
    rng = generator(seed)
    names = np.array([f"s{number}" for number in range(len(means))])
    values = np.concatenate([rng.normal(mean, sd, n) for mean in means])
    return values, np.repeat(names, n), np.tile(np.arange(n), len(means))


def test_superiority_agrees_with_the_references():
    found, wanted = superior(), GOLDEN["brunner_munzel"]
    assert_allclose(found.estimate, wanted["superiority"], atol=1e-12)
    assert_allclose(
        [found.test.statistic, found.test.df, found.pvalue, found.interval.low, found.interval.high],
        [wanted["statistic"], wanted["df"], wanted["pvalue"], *wanted["interval"]],
        atol=1e-9,
    )
    mann_whitney = found.sensitivity[1]
    wanted = GOLDEN["mann_whitney"]
    assert_allclose(
        [mann_whitney.estimate, mann_whitney.test.statistic, mann_whitney.pvalue],
        [wanted["superiority"], wanted["u"], wanted["pvalue"]],
        atol=1e-9,
    )
    assert "equal distributions" in mann_whitney.estimand
    assert_allclose(found.detail["cliff_delta"], 2 * found.estimate - 1)


@pytest.mark.parametrize("seed,n_x,n_y", [(1, 8, 30), (2, 40, 25), (3, 200, 200)])
def test_superiority_agrees_with_scipy_on_points_and_on_continuous_ratings(seed, n_x, n_y):
    rng = generator(seed)
    for x, y in [
        (rng.integers(1, 6, n_x), rng.integers(1, 5, n_y)),
        (rng.normal(0.3, 1, n_x), rng.normal(0, 2, n_y)),
    ]:
        found = superior(x, y)
        # scipy's statistic is positive where its second argument is the larger.
        theirs = stats.brunnermunzel(y, x)
        assert_allclose([found.test.statistic, found.pvalue], [theirs.statistic, theirs.pvalue], rtol=1e-9, atol=1e-12)
        assert_allclose(found.estimate, stats.mannwhitneyu(x, y).statistic / (n_x * n_y), atol=1e-12)


def test_exchanging_the_systems_gives_the_complement():
    there, back = superior(), superior(Y, X)
    assert_allclose(there.estimate + back.estimate, 1)
    assert_allclose([there.pvalue, there.interval.low], [back.pvalue, 1 - back.interval.high], atol=1e-12)


def test_only_the_order_of_the_ratings_counts():
    other = superior(np.exp(5 * np.array(X)), np.exp(5 * np.array(Y)))
    assert_allclose([other.estimate, other.pvalue], [superior().estimate, superior().pvalue], atol=1e-12)
    assert_allclose(other.sensitivity[0].interval.low, superior().sensitivity[0].interval.low, atol=1e-12)


def test_an_interval_that_would_leave_the_scale_is_cut_and_the_bootstrap_stays_inside():
    found = superior([4, 5, 5, 4, 3], [1, 2, 3, 1, 2])
    assert found.status == "ok" and found.interval.clipped and found.interval.high == 1.0
    resampled = found.sensitivity[0].interval
    assert 0 <= resampled.low < found.estimate <= resampled.high <= 1 and not resampled.clipped


def test_separation_has_an_interval_and_no_test():
    high, low = superior([4, 5, 5, 4], [1, 2, 3, 1, 2]), superior([1, 2], [3, 4, 5])
    assert (high.status, high.estimate, low.estimate) == ("separation", 1.0, 0.0)
    assert high.test is None and high.interval.method == "clopper_pearson_pairs"
    # Four pairs without a common annotator all went one way.
    assert_allclose([high.interval.low, high.interval.high], [0.025**0.25, 1.0], atol=1e-9)
    assert_allclose([low.interval.low, low.interval.high], [0.0, 1 - 0.025**0.5], atol=1e-9)


def test_the_bootstrap_of_points_is_that_of_rows(monkeypatch):
    rng = generator(4)
    x, y = rng.integers(1, 6, 60) + 0.0, rng.integers(1, 6, 50) + 0.0
    who_x, who_y = np.arange(60) // 3, 100 + np.arange(50) // 2
    few = superior(x, y, x_annotators=who_x, y_annotators=who_y).sensitivity[0].interval
    monkeypatch.setattr(unpaired, "FEW_POINTS", 0)
    many = superior(x, y, x_annotators=who_x, y_annotators=who_y).sensitivity[0].interval
    assert_allclose([few.low, few.high], [many.low, many.high], atol=1e-12)


def test_several_ratings_of_one_annotator_are_one_cluster():
    rng = generator(5)
    who_x, who_y = np.repeat(np.arange(20), 6), np.repeat(np.arange(100, 120), 6)
    x = rng.normal(0, 1, 20)[who_x] + rng.normal(0.2, 0.3, 120)
    y = rng.normal(0, 1, 20)[who_y - 100] + rng.normal(0, 0.3, 120)
    naive, clustered = superior(x, y), superior(x, y, x_annotators=who_x, y_annotators=who_y)
    assert clustered.estimate == naive.estimate and (clustered.n, clustered.n_rows) == (40, 240)
    assert clustered.detail["se"] > 2 * naive.detail["se"]
    # V by leaving each annotator out of the mean of placements, from first principles.
    placements = np.array([(np.mean(y < a) + np.mean(y <= a)) / 2 for a in x])
    sums, sizes = np.bincount(who_x, placements), np.full(20, 6.0)
    part = clusters.cv3_variance(sums, sizes)
    assert_allclose(part, np.var(sums / 6, ddof=1) / 20, rtol=1e-9)
    assert clustered.test.name == "clustered_brunner_munzel"
    # Rows twice over are no more people.
    twice = superior(np.tile(x, 2), np.tile(y, 2), x_annotators=np.tile(who_x, 2), y_annotators=np.tile(who_y, 2))
    assert_allclose(twice.detail["se"], clustered.detail["se"], rtol=1e-9)
    few = superior(x[:24], y[:24], x_annotators=who_x[:24], y_annotators=who_y[:24])
    assert few.test is None and few.interval is not None and few.warned("few_clusters")


def test_crossed_annotators_are_sent_elsewhere():
    with pytest.raises(ValueError, match="y_annotators: 'b' rated both systems"):
        superior([1, 2], [3, 4], x_annotators=["a", "b"], y_annotators=["b", "c"])


@pytest.mark.parametrize(
    "x,y,status",
    [
        ([], [1, 2], "no_data"),
        ([None, None], [1, 2], "no_data"),
        ([3], [1, 2, 4], "n_lt_2"),
        ([3, 3], [3, 3, 3], "zero_variance"),
    ],
)
def test_what_cannot_be_compared_says_so(x, y, status):
    found = superior(x, y)
    assert found.status == status and found.test is None and found.reason
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_test_agrees_with_permutation_where_distributions_are_alike():
    rng = generator(6)
    x, y = rng.integers(1, 6, 60), rng.integers(1, 6, 60)
    permuted = permutation.two_groups(
        x, y, statistic=permutation.superiority_statistic, null=0.5, resamples=1999, rng=generator(1)
    )
    found = superior(x, y)
    assert_allclose(permuted.estimate, found.estimate)
    assert abs(permuted.pvalue - found.pvalue) < 0.05


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
        annotators=np.r_[np.zeros(120), 1],
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


@pytest.mark.slow
def test_level_and_coverage_hold_where_annotators_rate_several():
    rng, runs = generator(7), 1000
    who_x, who_y = np.repeat(np.arange(25), 4), np.repeat(np.arange(25, 50), 4)
    rejected = covered = naive = 0
    for _ in range(runs):
        x, y = (np.rint(rng.normal(0, 0.7, 25).repeat(4) + rng.normal(0, 0.7, 100)) for _ in range(2))
        found = superior(x, y, x_annotators=who_x, y_annotators=who_y, resamples=19)
        rejected += found.pvalue < 0.05
        covered += found.interval.low <= 0.5 <= found.interval.high
        naive += superior(x, y, resamples=19).pvalue < 0.05
    assert 0.03 <= rejected / runs <= 0.07 and covered / runs >= 0.93
    assert naive / runs > 0.12


@pytest.mark.slow
def test_the_interval_covers_also_near_separation():
    rng, runs, covered = generator(8), 2000, 0
    # P(x > y) = .96: a tenth of the samples of eight each are separated.
    truth = stats.norm.cdf(2.5 / np.sqrt(2))
    for _ in range(runs):
        found = superior(rng.normal(2.5, 1, 8), rng.normal(0, 1, 8), resamples=19)
        covered += found.interval.low <= truth <= found.interval.high
    assert covered / runs >= 0.93
