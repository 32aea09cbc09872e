"""One curve gives the p-value, the interval and the equivalence test, so they can never contradict each other."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import cluster_variances, clusters, margins
from analysis.stats.confidence import BettingCurve, ScoreCurve, TCurve, betting_curve
from tests.analysis.stats.draws import rng
from tests.analysis.stats.pairs import one_pair

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99, 0.999)
SCALES = ((0.0, 1.0), (-1.0, 1.0), (-4.0, 4.0), (1.0, 7.0), (0.1, 0.7), (-1 / 3, 2 / 3))


def made_t_curve(draw):
    low, high = SCALES[draw.integers(len(SCALES))]
    estimate = draw.uniform(low, high)
    bounds = None if draw.random() < 0.3 else (low, high)
    return TCurve(estimate, (high - low) * 10 ** draw.uniform(-3, 0), draw.uniform(1, 60), bounds), (low, high)


def made_score_curve(draw):
    """Estimates up to the ends of the scale, and answers that vary less or more than independent ones."""
    low, high = SCALES[draw.integers(len(SCALES))]
    estimate = low + (high - low) * draw.beta(*draw.choice([0.1, 1, 5], 2)) * (1 - 2e-6) + (high - low) * 1e-6
    se, least = (high - low) * 10 ** draw.uniform(-3, 0, 2)
    return ScoreCurve(estimate, se, draw.uniform(1, 60), (low, high), least_se=least), (low, high)


def made_betting_curve(draw):
    """Evidence that need not be monotone, and an estimate anywhere: what bets on a few partitions can give."""
    low, high = SCALES[draw.integers(len(SCALES))]
    n_means = int(draw.choice([2, 3, 11, 64, 201]))
    places = np.linspace(0, 1, n_means)
    evidence = draw.uniform(0, 60) * np.abs(places - draw.random()) + draw.normal(0, draw.choice([0, 1, 5]), n_means)
    return BettingCurve(draw.uniform(low, high), tuple(evidence.tolist()), (low, high)), (low, high)


def contains(interval, null):
    return interval.low <= null <= interval.high


def nulls_of(curve, interval, scale, draw):
    """Anywhere, at an end of the interval, one step of the floating point beyond it, and at a mean that was tested."""
    nulls = [draw.uniform(*scale), scale[0], scale[1], curve.estimate]
    if isinstance(curve, BettingCurve):
        for end, beyond in ((interval.low, -math.inf), (interval.high, math.inf)):
            nulls += [end, math.nextafter(end, beyond), math.nextafter(end, -beyond)]
        nulls.append(float(draw.choice(np.linspace(*scale, len(curve.log_evidence)))))
    return [null for null in nulls if scale[0] <= null <= scale[1]]


@pytest.mark.slow
@pytest.mark.parametrize("made", [made_t_curve, made_score_curve, made_betting_curve])
def test_a_null_is_refuted_exactly_if_the_interval_excludes_it(made):
    draw, n_refuted = rng(1), 0
    for _ in range(5000):
        curve, scale = made(draw)
        level = float(draw.choice(LEVELS))
        interval = curve.interval(level)
        for null in nulls_of(curve, interval, scale, draw):
            is_refuted = curve.pvalue(null) < 1 - level
            assert is_refuted != contains(interval, null), (curve, level, null)
            n_refuted += is_refuted
    assert n_refuted > 1000


@pytest.mark.slow
@pytest.mark.parametrize("made", [made_t_curve, made_score_curve, made_betting_curve])
def test_equivalence_is_shown_exactly_if_its_interval_is_within_the_margin(made):
    draw, n_equivalent, n_beyond = rng(2), 0, 0
    for _ in range(5000):
        curve, scale = made(draw)
        low, high = sorted(draw.uniform(*scale, 2))
        # An end of the margin can be beyond the scale, or exactly at its end. The interval is clipped there.
        step = (scale[1] - scale[0]) * float(draw.choice([0.0, 1e-9, 0.1, 0.5]))
        match draw.integers(4):
            case 0:
                low = scale[0] - step
            case 1:
                high = scale[1] + step
        significance = float(draw.choice([0.01, 0.05, 0.1, 0.2]))
        interval = curve.interval(curve.equivalence_level(significance))
        is_equivalent = max(curve.one_sided_pvalues(low, high)) < significance
        assert is_equivalent == (low < interval.low and interval.high < high), (curve, low, high)
        n_equivalent += is_equivalent
        n_beyond += is_equivalent and curve.bounds is not None and (low < scale[0] or scale[1] < high)
    assert n_equivalent > 100 and n_beyond > 100


@pytest.mark.parametrize("made", [made_t_curve, made_score_curve, made_betting_curve])
def test_intervals_grow_with_the_level_and_stay_on_the_scale(made):
    draw = rng(3)
    for _ in range(1000):
        curve, _ = made(draw)
        intervals = [curve.interval(level) for level in LEVELS]
        for narrow, wide in zip(intervals, intervals[1:], strict=False):
            assert wide.low <= narrow.low <= curve.estimate <= narrow.high <= wide.high
        if curve.bounds is not None:
            assert curve.bounds[0] <= intervals[-1].low and intervals[-1].high <= curve.bounds[1]
            ends = (intervals[-1].low == curve.bounds[0], intervals[-1].high == curve.bounds[1])
            assert intervals[-1].clipped == any(ends)


def test_pvalues_are_largest_at_the_estimate_and_fall_on_both_sides():
    draw = rng(4)
    for _ in range(300):
        curve, scale = made_betting_curve(draw)
        assert curve.pvalue(curve.estimate) == 1
        below, above = np.linspace(curve.estimate, scale[0], 40), np.linspace(curve.estimate, scale[1], 40)
        for side in (below, above):
            assert np.all(np.diff([curve.pvalue(null) for null in side]) <= 0)


def test_the_t_curve_agrees_with_scipy():
    values = rng(5).normal(0.57, 0.2, 25)
    reference = stats.ttest_1samp(values, 0.5)
    curve = TCurve(float(values.mean()), float(stats.sem(values)), 24.0)
    assert_allclose([curve.statistic(0.5), curve.pvalue(0.5)], [reference.statistic, reference.pvalue], rtol=1e-12)
    for level in LEVELS:
        ends = reference.confidence_interval(level)
        assert_allclose([curve.interval(level).low, curve.interval(level).high], [ends.low, ends.high], rtol=1e-12)
    wanted = [
        stats.ttest_1samp(values, end, alternative=side).pvalue for end, side in ((0.45, "greater"), (0.6, "less"))
    ]
    assert_allclose(curve.one_sided_pvalues(0.45, 0.6), wanted, rtol=1e-12)
    assert curve.equivalence_level(0.05) == 0.9


# Estimates: whatever curve they use, their parts agree.


def study(draw):
    """A small study on 0..1: even or skewed answers, few or many people and prompts, sometimes without variance."""
    people, prompts = int(draw.integers(2, 16)), int(draw.integers(2, 12))
    who, what = np.repeat(np.arange(people), prompts), np.tile(np.arange(prompts), people)
    kept = draw.random(len(who)) < draw.choice([0.6, 1.0])
    kept[:1] = True
    chance = draw.choice([0.3, 0.5, 0.9, 1.0]) + draw.normal(0, 0.1, people)[who] * draw.integers(0, 2)
    values = np.clip((draw.random(len(who)) < chance) * draw.choice([0.5, 1.0]), 0, 1)
    return values[kept], who[kept], what[kept]


@pytest.mark.slow
@pytest.mark.parametrize("is_two_way", [False, True])
def test_all_parts_of_an_estimate_agree(is_two_way):
    draw, methods = rng(6), set()
    for _ in range(150):
        values, who, what = study(draw)
        null, level, margin = draw.choice([0.3, 0.5, 0.9]), draw.choice([0.9, 0.95]), draw.choice([0.05, 0.1, 0.3])
        options = {"null": float(null), "level": float(level), "bounds": (0.0, 1.0)}
        if is_two_way:
            found = clusters.two_way_clustered_mean(values, who, what, **options)
        else:
            found = clusters.clustered_mean(values, who, **options)
        if found.status == "n_lt_2":
            continue
        methods.add(found.settings["method"])
        assert found.interval.low <= found.estimate <= found.interval.high
        if found.test is None:
            continue
        assert (found.pvalue < 1 - level) != contains(found.interval, null)
        tost = margins.equivalence_test_of_estimate(found, null=null, margin=margin, significance=1 - level)
        is_within = null - margin < tost.interval.low and tost.interval.high < null + margin
        assert tost.detail["is_equivalent"] == is_within
    assert methods == ({"two_way_cv3", "betting"} if is_two_way else {"cv3", "betting"})


# Bets.


def test_answers_of_one_who_differs_give_a_pvalue_and_an_interval_that_agree():
    found = one_pair([55] * 11 + [60], [45] * 12, rng=rng())
    assert found.settings["method"] == "betting" and found.test.name == "independent_units_betting"
    assert found.pvalue >= 0.05 and contains(found.interval, 0.5)
    [warning] = [warning for warning in found.warnings if warning.code == "betting_instead_of_t"]
    assert warning.detail["why"] == "skewed"


def test_twenty_people_who_always_prefer_x_are_evidence():
    found = clusters.clustered_mean([1.0] * 20, range(20), null=0.5, bounds=(0, 1))
    assert (found.status, found.interval.high) == ("ok", 1.0) and found.pvalue < 0.001
    assert found.interval.low > 0.5
    # At least as valid as the exact test of the same twenty answers.
    assert found.pvalue > stats.binomtest(20, 20).pvalue


@pytest.mark.parametrize("is_uneven", [False, True])
def test_neither_the_order_of_rows_nor_names_nor_direction_change_a_one_way_curve(is_uneven):
    draw = rng(7)
    people = np.repeat(np.arange(15), draw.integers(1, 5, 15) if is_uneven else 3)
    values, weights = draw.beta(4, 1, len(people)), np.ones(len(people))
    curve = betting_curve(values, weights, people, bounds=(0.0, 1.0))
    order, names = draw.permutation(len(people)), draw.permutation(15)
    other = betting_curve(values[order], weights, names[people[order]], bounds=(0.0, 1.0))
    assert_allclose(other.log_evidence, curve.log_evidence, atol=1e-7)
    assert_allclose(other.estimate, curve.estimate)
    mirrored = betting_curve(1 - values, weights, people, bounds=(0.0, 1.0))
    assert_allclose(mirrored.log_evidence[::-1], curve.log_evidence, atol=1e-7)
    wider = betting_curve(8 * values - 4, weights, people, bounds=(-4.0, 4.0))
    assert_allclose(wider.log_evidence, curve.log_evidence, atol=1e-7)


@pytest.mark.parametrize("kind", ["crossed choices", "uneven choices", "uneven"])
@pytest.mark.parametrize("seed", range(4))
def test_neither_names_nor_the_order_of_rows_change_a_two_way_curve(kind, seed):
    draw = rng(seed)
    who, what = np.repeat(np.arange(11), 7), np.tile(np.arange(7), 11)
    if kind != "crossed choices":
        kept = np.sort(draw.permutation(77)[:50])
        who, what = (np.unique(labels[kept], return_inverse=True)[1] for labels in (who, what))
    values = draw.beta(4, 1, len(who)) if kind == "uneven" else (draw.random(len(who)) < 0.9).astype(float)
    weights = np.ones(len(who))
    curve = betting_curve(values, weights, who, what, bounds=(0.0, 1.0))
    order, people, prompts = draw.permutation(len(who)), draw.permutation(11), draw.permutation(7)
    other = betting_curve(values[order], weights, people[who[order]], prompts[what[order]], bounds=(0.0, 1.0))
    assert_allclose(other.log_evidence, curve.log_evidence, atol=1e-7)


def people_at(draw, n):
    """Nine of ten at the end of the scale: mean .9."""
    return (draw.random(n) < 0.9).astype(float)


def people_far_out(draw, n):
    """Most are a little above the mean of .5, a few far below it."""
    return np.where(draw.random(n) < 0.1, 0.05, 0.55)


def people_beta(draw, n):
    """A beta distribution with its mass at the end: mean .9."""
    return draw.beta(0.9, 0.1, n)


@pytest.mark.slow
@pytest.mark.parametrize("made,mean", [(people_at, 0.9), (people_far_out, 0.5), (people_beta, 0.9)])
def test_bets_are_fair_and_keep_the_level_under_skewed_nulls(made, mean):
    draw, runs, n = rng(8), 200, 12
    place = round(mean * 1000)
    wealth, n_false = [], 0
    for _ in range(runs):
        # Uneven numbers of answers, which say nothing about the answers themselves.
        sizes = draw.integers(1, 4, n)
        people = np.repeat(np.arange(n), sizes)
        curve = betting_curve(made(draw, n)[people], np.ones(len(people)), people, bounds=(0.0, 1.0))
        wealth.append(math.exp(curve.log_evidence[place]))
        n_false += curve.pvalue(mean) <= 0.05
    assert n_false / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    # Under the null a fair bet neither wins nor loses on average.
    assert abs(np.mean(wealth) - 1) < 4 * np.std(wealth) / math.sqrt(runs)


@pytest.mark.slow
def test_bets_are_fair_if_those_who_answer_much_answer_otherwise():
    # A third give eight answers each with mean .9, the others one each with mean .4. The mean of all answers is .8.
    draw, runs, n, truth = rng(12), 300, 15, 0.8
    wealth, n_false = [], 0
    for _ in range(runs):
        sizes = np.where(draw.random(n) < 1 / 3, 8, 1)
        made = draw.beta(np.where(sizes == 8, 1.8, 0.8), np.where(sizes == 8, 0.2, 1.2))
        people = np.repeat(np.arange(n), sizes)
        curve = betting_curve(made[people], np.ones(len(people)), people, bounds=(0.0, 1.0))
        wealth.append(math.exp(curve.log_evidence[800]))
        n_false += curve.pvalue(truth) <= 0.05
    assert n_false / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    assert abs(np.mean(wealth) - 1) < 4 * np.std(wealth) / math.sqrt(runs)


def test_units_of_unequal_size_are_evidence():
    sizes = np.array([30, 20, 12, 12, *[8] * 8, *[3] * 12])
    people = np.repeat(np.arange(24), sizes)
    always = betting_curve(np.ones(len(people)), np.ones(len(people)), people, bounds=(0.0, 1.0))
    assert always.pvalue(0.5) < 0.05
    # No more than twenty-four people of equal size, and no less than six of them.
    alike = [betting_curve(np.ones(n), np.ones(n), np.arange(n), bounds=(0.0, 1.0)).pvalue(0.5) for n in (24, 6)]
    assert alike[0] < always.pvalue(0.5) < alike[1]


@pytest.mark.slow
def test_bets_over_people_and_prompts_are_fair_and_keep_the_level():
    draw, runs, n_people, n_prompts = rng(9), 200, 8, 6
    people, prompts = np.repeat(np.arange(n_people), n_prompts), np.tile(np.arange(n_prompts), n_people)
    wealth, n_false = [], 0
    for _ in range(runs):
        # Large effects of prompts: one of five is bad for x for every annotator; mean .2 * .1 + .8 * .9.
        chance = np.where(draw.random(n_prompts) < 0.2, 0.1, 0.9)[prompts]
        values = (draw.random(len(people)) < chance).astype(float)
        curve = betting_curve(values, np.ones(len(values)), people, prompts, bounds=(0.0, 1.0))
        wealth.append(math.exp(curve.log_evidence[740]))
        n_false += curve.pvalue(0.74) <= 0.05
    assert n_false / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    assert abs(np.mean(wealth) - 1) < 4 * np.std(wealth) / math.sqrt(runs)


# Weights and the number of prompts.


def uneven(seed=10, n_people=14, n_prompts=9):
    draw = rng(seed)
    who = np.repeat(np.arange(n_people), draw.integers(2, n_prompts + 1, n_people))
    what = np.concatenate([draw.permutation(n_prompts)[:size] for size in np.bincount(who)])
    return draw.uniform(0.2, 0.9, len(who)) + 0.1 * draw.random(n_people)[who], who, what


def test_weights_of_one_over_n_give_annotators_means():
    values, who, what = uneven()
    sizes = np.bincount(who)
    means = np.bincount(who, values) / sizes
    found = clusters.two_way_clustered_mean(values, who, what, weights=1 / sizes[who], null=0.5)
    assert_allclose(found.estimate, means.mean(), rtol=1e-12)
    # Leaving out one of equally heavy annotators is the usual variance of the mean of their means.
    assert_allclose(found.detail["variance_annotators"], stats.sem(means) ** 2, rtol=1e-9)
    one_way = clusters.clustered_mean(values, who, weights=1 / sizes[who], null=0.5)
    reference = stats.ttest_1samp(means, 0.5)
    assert_allclose([one_way.pvalue, one_way.test.df], [reference.pvalue, len(means) - 1], rtol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 7.0, 0.01])
@pytest.mark.parametrize("ceiling", [False, True])
def test_equal_weights_change_nothing(weight, ceiling):
    values, who, what = uneven()
    if ceiling:
        values = np.ones(len(values))
    options = {"null": 0.5, "bounds": (0.0, 1.0)}
    for call in (lambda **more: clusters.two_way_clustered_mean(values, who, what, **options, **more),
                 lambda **more: clusters.clustered_mean(values, who, **options, **more)):  # fmt: skip
        plain, weighted = call(), call(weights=np.full(len(values), weight))
        assert plain.settings["method"] == weighted.settings["method"]
        assert (plain.settings["method"] == "betting") == ceiling
        found, wanted = ([one.estimate, one.pvalue, one.interval.low, one.interval.high] for one in (weighted, plain))
        assert_allclose(found, wanted, rtol=1e-9)


def test_bets_are_on_the_weighted_mean():
    values, who, what = uneven()
    # One of fourteen differs in the middle of the scale, whose ends do not explain such a skewness.
    always = np.where(who == 0, 0.4, 0.5)
    weights = 1 / np.bincount(who)[who]
    for found in (
        clusters.two_way_clustered_mean(always, who, what, weights=weights, null=0.5, bounds=(0.0, 1.0)),
        clusters.clustered_mean(always, who, weights=weights, null=0.5, bounds=(0.0, 1.0)),
    ):
        assert found.settings["method"] == "betting"
        assert_allclose([found.estimate, found.curve.estimate], (0.4 + 13 * 0.5) / 14)


def test_a_weight_must_be_positive_and_there_is_one_for_each_row():
    for weights, text in (
        ([1, 0, 1], "not a positive"),
        ([1, 1], "2 where values has 3"),
        ([1, math.inf, 1], "infinite"),
    ):
        with pytest.raises(ValueError, match=text):
            clusters.clustered_mean([1, 2, 3], [1, 2, 3], weights=weights)
        with pytest.raises(ValueError, match=text):
            clusters.two_way_clustered_mean([1, 2, 3], [1, 2, 3], [1, 2, 3], weights=weights)
    missing = clusters.clustered_mean([1, None, 3], [1, 2, 3], weights=[1, math.nan, 3])
    assert_allclose(missing.estimate, 2.5)


@pytest.mark.parametrize("n_prompts", [4, 5])
def test_a_claim_is_about_prompts_like_these_from_five_prompts_on(n_prompts):
    draw = rng(11)
    who, what = np.repeat(np.arange(12), n_prompts), np.tile(np.arange(n_prompts), 12)
    values = draw.random(len(who))
    common = {"null": 0.5, "bounds": (0.0, 1.0)}
    found = clusters.annotator_prompt_clustered_mean(values, who, what, analysis="demo", **common)
    people = clusters.clustered_mean(values, who, **common)
    assert found.analysis == "demo" and found.detail["n_prompts"] == n_prompts
    others = {one.analysis: one for one in found.sensitivity}
    if n_prompts < 5:
        assert found.settings["population"] == cluster_variances.PEOPLE
        assert (found.interval, found.test) == (people.interval, people.test)
        assert "demo.by_annotator" not in others
        return
    both = clusters.two_way_clustered_mean(values, who, what, **common)
    assert found.settings["population"] == cluster_variances.PEOPLE_AND_PROMPTS
    assert (found.interval, found.test) == (both.interval, both.test) and found.interval != people.interval
    assert (others["demo.by_annotator"].interval, others["demo.by_annotator"].test) == (people.interval, people.test)


def test_a_prompt_without_an_answer_does_not_count():
    who, what = np.repeat(np.arange(8), 5), np.tile(np.arange(5), 8)
    values = np.where(what == 4, np.nan, rng(12).random(40))
    found = clusters.annotator_prompt_clustered_mean(values, who, what, null=0.5, analysis="demo")
    assert (found.settings["population"], found.detail["n_prompts"]) == (cluster_variances.PEOPLE, 4)
