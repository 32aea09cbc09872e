import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import clusters, multiplicity, unpaired
from analysis.stats.unpaired import _samples
from tests.analysis.stats.draws import rng as generator
from tests.analysis.stats.golden import golden

GOLDEN = golden("unpaired")
X, Y = GOLDEN["x"], GOLDEN["y"]


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
    monkeypatch.setattr(_samples, "FEW_POINTS", 0)
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

    def share_of_wins(x, y, axis=-1):
        return stats.mannwhitneyu(x, y, axis=axis).statistic / (x.shape[axis] * y.shape[axis])

    permuted = stats.permutation_test((x, y), share_of_wins, vectorized=True, n_resamples=1999, rng=generator(1))
    found = superior(x, y)
    assert_allclose(permuted.statistic, found.estimate)
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


def sparse(rng, n_annotators, n_prompts, each, *, is_nested, taste=0.0, effect=0.0):
    """Single ratings on a line: people .3 apart, prompts .6, noise 1. ``is_nested``: an annotator rates one system alone.

    Gives (ratings, whether of x, annotator, prompt), a row a rating; nobody rates both systems for one prompt.
    """
    who = np.repeat(np.arange(n_annotators), each)
    prompt = np.concatenate([rng.choice(n_prompts, each, replace=False) for _ in range(n_annotators)])
    is_x = who % 2 == 0 if is_nested else rng.random(len(who)) < 0.5
    severity, merit = rng.normal(0, 0.3, n_annotators), rng.normal(0, 0.6, n_prompts)
    liking = rng.normal(0, taste, (n_annotators, 2)) if taste else np.zeros((n_annotators, 2))
    noise = rng.normal(0, 1, len(who))
    return severity[who] + merit[prompt] + liking[who, is_x.astype(int)] + effect * is_x + noise, is_x, who, prompt


def two_samples(values, is_x, who, prompt):
    return {
        "x": values[is_x], "y": values[~is_x], "x_annotators": who[is_x], "y_annotators": who[~is_x],
        "x_prompts": prompt[is_x], "y_prompts": prompt[~is_x],
    }  # fmt: skip


def apart(rows, **more):
    return unpaired.mean_difference(**two_samples(*rows), **more)


@pytest.mark.parametrize("is_nested", [True, False])
def test_a_difference_that_is_not_side_by_side_agrees_with_statsmodels(is_nested):
    """The oracle: least squares with statsmodels' own two-way clustered covariance, which is CR1; ours is the jackknife."""
    import statsmodels.api as sm

    rows = values, is_x, who, prompt = sparse(generator(5), 60, 40, 8, is_nested=is_nested, effect=0.5)
    found = apart(rows)
    fitted = sm.OLS(values, sm.add_constant(is_x.astype(float))).fit(
        cov_type="cluster", cov_kwds={"groups": np.column_stack([who, prompt])}, use_t=True
    )
    assert_allclose(found.estimate, fitted.params[1], atol=1e-12)
    assert_allclose(found.detail["variance_two_way"], fitted.cov_params()[1, 1], rtol=0.12)
    assert_allclose(np.log(found.pvalue), np.log(fitted.pvalues[1]), atol=1.2)
    both = found.detail["n_annotators_both"]
    assert found.detail["n_prompts"] == 40 and (both == 0 if is_nested else both > 50)


@pytest.mark.parametrize("is_nested", [True, False])
def test_the_two_way_variance_is_that_of_leaving_one_out(is_nested):
    rows = values, is_x, who, prompt = sparse(generator(6), 14, 9, 4, is_nested=is_nested)
    pair = who * 100 + prompt

    def jackknife(labels):
        whole = values[is_x].mean() - values[~is_x].mean()
        names = np.unique(labels)
        left = [values[is_x & (labels != one)].mean() - values[~is_x & (labels != one)].mean() for one in names]
        return (len(names) - 1) / len(names) * np.sum((np.array(left) - whole) ** 2)

    found = apart(rows).detail
    assert_allclose(found["variance_annotators"], jackknife(who), rtol=1e-9)
    assert_allclose(found["variance_items"], jackknife(prompt), rtol=1e-9)
    assert_allclose(found["variance_two_way"], jackknife(who) + jackknife(prompt) - jackknife(pair), rtol=1e-9)
    assert_allclose(found["se"] ** 2, max(found[f"variance_{one}"] for one in ("annotators", "items", "two_way")))


def test_degrees_of_freedom_are_those_of_the_matrix_and_of_two_samples():
    counts = generator(7).integers(0, 6, (11, 2)).astype(float)
    sizes = counts.sum(axis=0)
    shares = counts / sizes
    matrix = np.diag((shares / sizes).sum(axis=1)) - sum(
        np.outer(share, share) / size for share, size in zip(shares.T, sizes, strict=True)
    )
    wanted = np.trace(matrix) ** 2 / np.trace(matrix @ matrix)
    assert_allclose(_samples._bell_mccaffrey(counts), wanted, rtol=1e-9)
    # Five annotators of x and fifty of y: hardly more than x alone has, as Welch's test has it.
    few = np.array([[3.0, 0.0]] * 5 + [[0.0, 3.0]] * 50)
    assert 4 < _samples._bell_mccaffrey(few) < 5.1


def test_a_prompt_that_carries_both_systems_pairs_them():
    """What a prompt adds to both systems cancels from the standard error; on prompts of their own it does not."""
    rng = generator(8)
    who = np.repeat(np.arange(40), 15)
    is_x, prompt = who % 2 == 0, np.tile(np.arange(15), 40)
    noise, hard = rng.normal(0, 1, len(who)), rng.normal(0, 4, 30)
    shared = apart((noise + hard[prompt], is_x, who, prompt))
    own = apart((noise + hard[prompt + 15 * is_x], is_x, who, prompt + 15 * is_x))
    assert shared.detail["variance_items"] < 0.05 * own.detail["variance_items"]
    assert (shared.detail["n_prompts_both"], own.detail["n_prompts_both"]) == (15, 0)


def test_systems_change_places_and_scales_move_nothing():
    rows = values, is_x, who, prompt = sparse(generator(9), 20, 15, 6, is_nested=False, effect=0.4)
    for test, turned in ((unpaired.mean_difference, 0.0), (unpaired.superiority, 1.0)):
        found = test(**two_samples(*rows))
        other = test(**two_samples(values, ~is_x, who, prompt))
        assert_allclose([other.estimate, other.pvalue], [turned - found.estimate, found.pvalue], atol=1e-12)
        moved = test(**two_samples(5 * values + 3, is_x, who, prompt))
        assert_allclose([moved.pvalue, moved.detail["df"]], [found.pvalue, found.detail["df"]], rtol=1e-9)
        named = test(**two_samples(values, is_x, np.array([f"a{n}" for n in who]), np.array([f"p{n}" for n in prompt])))
        assert_allclose([named.pvalue, named.interval.low], [found.pvalue, found.interval.low], rtol=1e-12)


@pytest.mark.parametrize("test", [unpaired.mean_difference, unpaired.superiority])
def test_two_samples_at_their_edges_are_a_status_with_a_reason_and_json(test):
    def of(x, y, *labels):
        names = ("x_annotators", "y_annotators", "x_prompts", "y_prompts")
        return test(x, y, systems=("alpha", "beta"), **dict(zip(names, labels, strict=True)))

    nothing = of([], [1, 2], [], ["a", "b"], [], [1, 2])
    assert (nothing.status, nothing.reason, nothing.estimate) == ("no_data", "alpha has no rating", None)
    assert of([], [], [], [], [], []).reason == "neither alpha nor beta has a rating"
    one = of([3, 4], [2, 4], ["a", "a"], ["b", "c"], [1, 2], [1, 2])
    assert one.status == "n_lt_2" and one.reason.startswith("all ratings of alpha are by one annotator")
    assert one.estimate is not None and one.interval is None and one.test is None
    assert of([3, 4], [2, 4], ["a", "b"], ["c", "d"], [1, 1], [2, 3]).reason.startswith(
        "all ratings of alpha are of one prompt"
    )
    few = of([3, 4, 2], [2, 1, 4], [1, 2, 3], [4, 5, 6], [1, 2, 3], [1, 2, 3])
    assert few.status == "ok" and few.interval is not None and few.test is None
    assert {(w.detail["cluster"], w.severity) for w in few.warnings if w.code == "few_clusters"} == {
        ("annotator", "block"), ("prompt", "block"),
    }  # fmt: skip
    equal = of([3, 3], [3, 3], [1, 2], [3, 4], [1, 2], [1, 2])
    assert equal.status == "zero_variance" and equal.test is None
    missing = of([3, np.nan, 5], [2, 1, 4], [1, 2, 3], [4, 5, 6], [1, 2, 3], [1, 2, 3])
    assert (missing.n, missing.detail["n_missing"], missing.detail["n_x"]) == (5, 1, 2)
    for found in (nothing, one, few, equal, missing):
        json.dumps(found.as_dict(), allow_nan=False)
        assert found.warned("not_side_by_side") and found.settings["comparison"] == "not side by side"
    with pytest.raises(ValueError, match="x_prompts"):
        of([1, 2], [1, 2], [1, 2], [1, 2], [1], [1, 2])


def test_all_of_one_system_above_the_other_has_an_interval_and_no_test():
    names = {"x_annotators": range(8), "y_annotators": range(8, 16), "x_prompts": range(8), "y_prompts": range(8)}
    found = unpaired.superiority([5] * 7 + [4], [1] * 7 + [2], **{name: list(one) for name, one in names.items()})
    assert (found.status, found.estimate, found.interval.high) == ("separation", 1.0, 1.0) and found.interval.low > 0.5


SPARSE = [
    (is_nested, *sizes, taste)
    for is_nested in (True, False)
    for sizes in ((20, 30, 10), (40, 100, 5), (200, 50, 1))
    for taste in (0.0, 0.3)
]


def false_claims(runs, is_nested, n_annotators, n_prompts, each, taste, seed=3):
    rng, hits = generator(seed), {"mean_difference": 0, "superiority": 0}
    for _ in range(runs):
        samples = two_samples(*sparse(rng, n_annotators, n_prompts, each, is_nested=is_nested, taste=taste))
        for name in hits:
            pvalue = getattr(unpaired, name)(**samples).pvalue
            hits[name] += pvalue is not None and pvalue < 0.05
    return {name: n / runs for name, n in hits.items()}


@pytest.mark.parametrize("cell", SPARSE[::4])
def test_false_claims_of_sparse_designs_are_few(cell):
    """The quick look of the proof below: 150 worlds without a difference; .05 plus four Monte-Carlo errors is .12."""
    assert max(false_claims(150, *cell).values()) < 0.12


@pytest.mark.slow
@pytest.mark.parametrize("cell", SPARSE)
def test_false_claims_of_sparse_designs_are_as_many_as_stated(cell):
    """2,000 worlds without a difference: the Monte-Carlo error of .05 is .005. One system per arm, and one output per prompt."""
    rates = false_claims(2000, *cell)
    assert all(0.02 <= rate <= 0.065 for rate in rates.values()), rates


def test_a_difference_is_found_in_sparse_designs():
    for is_nested in (True, False):
        rows = sparse(generator(4), 60, 60, 8, is_nested=is_nested, effect=0.8)
        found = apart(rows)
        assert found.pvalue < 0.001 and found.interval.low < 0.8 < found.interval.high
        above = unpaired.superiority(**two_samples(*rows))
        assert above.pvalue < 0.001 and above.estimate > 0.6 and above.interval.low > 0.5
