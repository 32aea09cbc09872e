import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import ranks, ratings
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

COVERAGE = golden("ranks")["coverage"]


def rows(draw, truth, n_annotators=40, n_items=240, is_heavy=False):
    """Ratings of every system on the same items, each by one annotator drawn anew, who differ in taste for systems."""
    k = len(truth)
    activity = draw.pareto(1.1, n_annotators) + 1 if is_heavy else np.ones(n_annotators)
    who = draw.choice(n_annotators, (n_items, k), p=activity / activity.sum())
    taste = draw.normal(0, 0.15, (n_annotators, 1)) + draw.normal(0, 0.1, (n_annotators, k))
    values = np.asarray(truth) + draw.normal(0, 0.2, (n_items, 1)) + taste[who, np.arange(k)]
    values = values + draw.normal(0, 0.3, (n_items, k))
    return values.ravel(), who.ravel(), np.tile(np.arange(k), n_items)


def true_sets(truth):
    truth = np.asarray(truth)
    low = 1 + np.sum(truth[None, :] > truth[:, None] + 1e-9, axis=1)
    high = len(truth) - np.sum(truth[None, :] < truth[:, None] - 1e-9, axis=1)
    return low, high


def covers(found, truth):
    low, high = true_sets(truth)
    return bool(np.all(np.asarray(found.low) <= low) and np.all(np.asarray(found.high) >= high))


def coverage(truth, runs, seed, critical="t", resamples=299, **design):
    draw = rng(seed)
    found = [
        ranks.rank_confidence_sets_from_rows(
            *rows(draw, truth, **design), rng=draw, resamples=resamples, critical=critical
        )
        for _ in range(runs)
    ]
    return float(np.mean([covers(one, truth) for one in found])), found


def naive_coverage(truth, runs, seed, resamples=299):
    """The percentiles of each system's rank over resamples of annotators, taken as its confidence set."""
    draw, hits = rng(seed), 0
    low, high = true_sets(truth)
    for _ in range(runs):
        drawn = ranks.bootstrap_system_scores(*rows(draw, truth), rng=draw, resamples=resamples)
        places = 1 + np.sum(drawn.draws[:, None, :] > drawn.draws[:, :, None], axis=2)
        ends = np.quantile(places, [0.025, 0.975], axis=0)
        hits += bool(np.all(ends[0] <= low) and np.all(ends[1] >= high))
    return hits / runs


# --- the definition, by brute force


def test_differences_follow_their_definition():
    draws, scores = rng(1).normal([0.5, 0.6, 0.8], [0.02, 0.03, 0.02], (400, 3)), np.array([0.5, 0.6, 0.8])
    found = ranks.simultaneous_differences(scores, draws)
    pairs = list(itertools.combinations(range(3), 2))
    apart = np.array([draws[:, i] - draws[:, j] for i, j in pairs])
    observed = np.array([scores[i] - scores[j] for i, j in pairs])
    se = apart.std(axis=1, ddof=1)
    largest = np.max(np.abs(apart - observed[:, None]) / se[:, None], axis=0)
    q = np.quantile(largest, 0.95)
    assert_allclose(found.critical_value, q)
    for (i, j), d, s in zip(pairs, observed, se, strict=True):
        assert_allclose([found.low[i, j], found.high[i, j]], [d - q * s, d + q * s])
        assert_allclose([found.low[j, i], found.high[j, i]], [-d - q * s, -d + q * s])
        assert_allclose(found.pvalues[i, j], (1 + np.sum(largest >= abs(d) / s)) / 401)


def test_degrees_of_freedom_widen_to_the_t_quantile_of_the_same_tail():
    draws, scores = rng(2).normal(0, 1, (500, 3)), np.zeros(3)
    plain, few = ranks.simultaneous_differences(scores, draws), ranks.simultaneous_differences(scores, draws, df=9)
    q = stats.t.isf(stats.norm.sf(plain.critical_value), 9)
    assert_allclose(few.high / plain.high, np.where(np.eye(3, dtype=bool), np.nan, q / plain.critical_value))
    by_pair = np.full((3, 3), np.inf)
    by_pair[0, 1] = by_pair[1, 0] = 9
    mixed = ranks.simultaneous_differences(scores, draws, df=by_pair)
    assert mixed.high[0, 1] == few.high[0, 1] and mixed.high[0, 2] == plain.high[0, 2]


def test_an_interval_excludes_0_exactly_where_its_adjusted_p_is_small():
    draw = rng(3)
    for df in (None, 12):
        for _ in range(30):
            scores = draw.normal(0, 1.2, 5)
            found = ranks.simultaneous_differences(scores, scores + draw.normal(0, 0.4, (399, 5)), df=df)
            off = ~np.eye(5, dtype=bool)
            excludes = (found.low > 0) | (found.high < 0)
            # The quantile is interpolated between two maxima, so a p-value at the level itself may fall either way.
            clear = np.abs(found.pvalues - 0.05) > 0.003
            assert np.array_equal(excludes[off & clear], (found.pvalues < 0.05)[off & clear])


def test_ranks_are_counted_from_what_is_shown():
    scores, draws = [0.9, 0.5, 0.49, 0.1], rng(4).normal([0.9, 0.5, 0.49, 0.1], 0.02, (999, 4))
    found = ranks.rank_confidence_sets(scores, draws, systems=list("abcd"))
    assert found.ranks == (1, 2, 3, 4)
    assert (found.low, found.high) == ((1, 2, 2, 4), (1, 3, 3, 4))
    assert found.clusters == (("a",), ("b", "c"), ("d",))
    assert found.best == (True, False, False, False)


# --- laws


def test_the_point_rank_lies_within_its_set():
    draw = rng(5)
    for _ in range(60):
        k = int(draw.integers(2, 9))
        scores = np.round(draw.normal(0, 1, k), 1)
        found = ranks.rank_confidence_sets(scores, scores + draw.normal(0, draw.uniform(0.05, 2), (199, k)))
        assert all(low <= rank <= high for low, rank, high in zip(found.low, found.ranks, found.high, strict=True))
        # Equal scores share the better rank, and their sets hold the worse one too.
        for i, j in itertools.combinations(range(k), 2):
            if scores[i] == scores[j]:
                assert found.high[i] > found.ranks[i] and found.high[j] > found.ranks[j]


def test_reordering_systems_reorders_their_sets():
    scores, draws = rng(6).normal(0, 1, 6), None
    draws = scores + rng(7).normal(0, 0.5, (499, 6))
    order = rng(8).permutation(6)
    plain = ranks.rank_confidence_sets(scores, draws)
    mixed = ranks.rank_confidence_sets(scores[order], draws[:, order])
    assert [plain.low[i] for i in order] == list(mixed.low)
    assert [plain.high[i] for i in order] == list(mixed.high)


def test_the_scale_of_the_scores_does_not_matter():
    scores, draws = np.array([0.3, 0.5, 0.55]), rng(9).normal([0.3, 0.5, 0.55], 0.05, (499, 3))
    plain, scaled = (
        ranks.rank_confidence_sets(scores, draws),
        ranks.rank_confidence_sets(100 * scores - 7, 100 * draws - 7),
    )
    assert (plain.low, plain.high) == (scaled.low, scaled.high)


def test_a_higher_level_never_narrows_a_set():
    scores, draws = rng(10).normal(0, 1, 7), rng(11).normal(0, 0.6, (499, 7))
    narrow, wide = (ranks.rank_confidence_sets(scores, scores + draws, level=level) for level in (0.8, 0.99))
    assert all(w <= n for w, n in zip(wide.low, narrow.low, strict=True))
    assert all(w >= n for w, n in zip(wide.high, narrow.high, strict=True))


def test_rows_in_any_order_and_annotators_under_any_name_give_the_same_scores():
    values, who, systems = rows(rng(12), [0.2, 0.5, 0.6])
    order = rng(13).permutation(len(values))
    plain = ranks.bootstrap_system_scores(values, who, systems, rng=rng(), resamples=199)
    mixed = ranks.bootstrap_system_scores(values[order], who[order], systems[order], rng=rng(), resamples=199)
    named = ranks.bootstrap_system_scores(values, [f"w{39 - a:02}" for a in who], systems, rng=rng(), resamples=199)
    assert_allclose(plain.scores, [values[systems == s].mean() for s in range(3)])
    assert_allclose(mixed.draws, plain.draws)
    assert_allclose(named.scores, plain.scores)
    assert_allclose(named.draws.std(axis=0), plain.draws.std(axis=0), rtol=0.25)


def test_every_row_twice_within_an_annotator_leaves_the_draws_as_they_are():
    values, who, systems = rows(rng(14), [0.2, 0.5])
    plain = ranks.bootstrap_system_scores(values, who, systems, rng=rng(), resamples=99)
    twice = ranks.bootstrap_system_scores(
        np.tile(values, 2), np.tile(who, 2), np.tile(systems, 2), rng=rng(), resamples=99
    )
    assert_allclose(plain.draws, twice.draws)
    assert_allclose(plain.df, twice.df)


def test_differences_are_estimated_anew_in_each_resample_of_annotators():
    # Everybody rates both systems, with tastes of their own far larger than the difference between the two.
    draw = rng(15)
    who, taste = np.repeat(np.arange(30), 4), draw.normal(0, 3, 30)
    values = np.r_[taste[who], taste[who] + 0.3] + draw.normal(0, 0.1, 240)
    found = ranks.bootstrap_system_scores(values, np.tile(who, 2), np.repeat(["a", "b"], 120), rng=draw, resamples=999)
    spread = (found.draws[:, 1] - found.draws[:, 0]).std()
    assert spread < 0.05 < 0.3 < found.draws[:, 0].std()
    assert ranks.rank_confidence_sets(found.scores, found.draws).low == (2, 1)


def test_degrees_of_freedom_are_those_of_the_annotators_of_the_pair():
    # a and b share ten equally active annotators; c has four of its own, of whom one gives half of the answers.
    shared, own = np.repeat(np.arange(10), 3), np.array([90, 90, 90, 91, 92, 93])
    who = np.r_[shared, shared, own]
    systems = np.repeat(["a", "b", "c"], [30, 30, 6])
    found = ranks.bootstrap_system_scores(np.linspace(0, 1, 66), who, systems, rng=rng(), resamples=9)
    # Shares of 1/10 each; 1/2, 1/6, 1/6, 1/6 for c: a and c together weigh as 4 / (1/10 + 1/3) people.
    assert_allclose(found.df, [[9, 9, 4 / (1 / 10 + 1 / 3) - 1]] * 2 + [[4 / (1 / 10 + 1 / 3) - 1] * 2 + [2]])


def test_weights_weigh_rows_within_a_system():
    found = ranks.bootstrap_system_scores(
        [1, 0, 0, 1, 1, 0], list("aabbcc"), list("xyxyxy"), weights=[2, 1, 1, 1, 1, 1], rng=rng(), resamples=9
    )
    assert_allclose(found.scores, [3 / 4, 1 / 3])


def test_z_scores_are_ranked_without_standardising_anew():
    values, who, systems = rows(rng(16), [0.0, 0.1, 0.9], n_annotators=12)
    scored = ratings.z_scores_by_annotator(values, who)
    found = ranks.rank_confidence_sets_from_rows(scored.scores, who, systems, rng=rng(), resamples=499)
    assert found.ranks[2] == 1 and found.best == (False, False, True)
    assert found.n == 12 - len(scored.dropped)


# --- coverage


def test_the_naive_spread_of_ranks_covers_in_few_studies_and_the_sets_in_most():
    # Six equal systems: .10 against .93 in the reference; our t quantile adds to the latter.
    assert naive_coverage([0.5] * 6, 70, seed=17) < 0.25
    found, _ = coverage([0.5] * 6, 70, seed=17)
    assert found > 0.9


@pytest.mark.parametrize(
    ("design", "documented"),
    # Of six equal systems over 1,000 runs: the plain bootstrap quantile, against .95 and .98 with t.
    [({"n_annotators": 12, "n_items": 96}, 0.83), ({"n_annotators": 40, "is_heavy": True}, 0.90)],
    ids=["few", "heavy"],
)
def test_few_or_unequally_active_annotators_need_the_t_quantile(design, documented):
    plain, _ = coverage([0.5] * 6, 150, seed=18, critical="bootstrap", **design)
    ours, _ = coverage([0.5] * 6, 150, seed=18, **design)
    # Three Monte-Carlo standard errors over 150 runs are .05 at .95 and .09 at .83.
    assert abs(plain - documented) < 0.09
    assert ours >= 0.90 and ours > plain + 0.03


@pytest.mark.slow
@pytest.mark.parametrize("design", [{}, {"n_annotators": 15}, {"is_heavy": True}], ids=["even", "few", "heavy"])
@pytest.mark.parametrize(
    "truth",
    [[0.5] * 6, [0.5, 0.5, 0.3, 0.2, 0.1, 0.0], [0.9, 0.7, 0.5, 0.3, 0.1, -0.1]],
    ids=["tied", "two tied", "distinct"],
)
def test_the_sets_cover_all_true_ranks_at_once(truth, design):
    # Monte-Carlo standard error of .95 over 400 runs: .011.
    found, _ = coverage(truth, 400, seed=19, resamples=499, **design)
    assert found >= 0.95 - 3 * 0.011


@pytest.mark.slow
def test_the_naive_sets_have_the_coverage_that_is_documented():
    assert abs(naive_coverage([0.5] * 6, 400, seed=20) - COVERAGE["all tied(6)"]["naive"]["cov"]) < 0.08
    plain, _ = coverage([0.5] * 6, 400, seed=20, critical="bootstrap")
    assert abs(plain - COVERAGE["all tied(6)"]["simul"]["cov"]) < 0.05
    _, found = coverage([0.9, 0.7, 0.5, 0.3, 0.1, -0.1], 100, seed=20)
    width = np.mean([np.mean(np.subtract(one.high, one.low)) for one in found])
    assert width < 1.5


# --- edge cases


def test_one_system_has_rank_1_and_no_set():
    found = ranks.rank_confidence_sets([0.5], np.full((99, 1), 0.5), systems=["a"])
    assert (found.status, found.ranks, found.low) == ("not_applicable", (1,), None)
    assert found.best == (False,) and found.reason
    assert ranks.rank_confidence_sets([], np.empty((99, 0))).status == "no_data"


def test_a_system_and_its_copy_stay_undecided():
    draws = rng(21).normal(0.5, 0.05, (199, 1)) + [[0.0, 0.0, 0.9]]
    draws[:, 2] = rng(22).normal(1.4, 0.05, 199)
    found = ranks.rank_confidence_sets([0.5, 0.5, 1.4], draws, systems=["a", "copy", "b"])
    assert (found.low, found.high) == ((2, 2, 1), (3, 3, 1))
    assert found.undecidable == (("a", "copy"),)
    assert [warning.code for warning in found.warnings] == ["undecidable_pairs"]


def test_a_constant_difference_is_no_evidence():
    # Both move together, exactly .1 apart: a standard error of 0 would make any difference infinitely significant.
    common = rng(23).normal(0.5, 0.05, (199, 1))
    found = ranks.rank_confidence_sets([0.5, 0.6], common + [[0.0, 0.1]])
    assert (found.status, found.low, found.critical_value) == ("zero_variance", None, None)
    off = ranks.simultaneous_differences([0.5, 0.6, 1.5], np.c_[common, common + 0.1, rng(24).normal(1.5, 0.1, 199)])
    assert np.isnan(off.low[0, 1]) and np.isnan(off.pvalues[0, 1]) and not off.decidable[0, 1]
    assert off.low[2, 0] > 0


def test_one_annotator_has_no_spread():
    found = ranks.rank_confidence_sets_from_rows([1, 0, 1], ["a"] * 3, ["x", "y", "x"], rng=rng(), resamples=99)
    assert (found.status, found.ranks, found.low) == ("n_lt_2", (1, 2), None)


def test_systems_that_few_rated_are_told():
    values, who, systems = rows(rng(25), [0.2, 0.5], n_annotators=20)
    # One annotator alone rated a third system: a third of the resamples miss them.
    found = ranks.rank_confidence_sets_from_rows(
        np.r_[values, 0.9, 0.8], np.r_[who, 3, 4], np.r_[systems, 2, 2], rng=rng(), resamples=499
    )
    assert "undefined_resamples" in {warning.code for warning in found.warnings}
    lonely = ranks.rank_confidence_sets_from_rows([1, 0, 0, 1], [1, 2, 3, 4], [0, 1, 2, 3], rng=rng(), resamples=499)
    assert lonely.status == "not_identified" and lonely.low is None


def test_few_annotators_are_warned_of():
    values, who, systems = rows(rng(26), [0.2, 0.5], n_annotators=5)
    found = ranks.rank_confidence_sets_from_rows(values, who, systems, rng=rng(), resamples=199)
    assert [(warning.code, warning.severity) for warning in found.warnings] == [("few_clusters", "block")]
    assert found.as_dict()["unit"] == "annotator" and found.as_dict()["n"] == 5


def test_missing_values_are_left_out():
    found = ranks.bootstrap_system_scores([1, None, 0, 1], list("aabb"), list("xyxy"), rng=rng(), resamples=9)
    assert (found.n_rows, found.scores.tolist()) == (3, [0.5, 1.0])
    nobody = ranks.rank_confidence_sets_from_rows([None, None], ["a", "b"], ["x", "y"], rng=rng(), resamples=9)
    assert nobody.status == "no_data"


def test_results_are_plain_json():
    values, who, systems = rows(rng(27), [0.2, 0.5, 0.5])
    for found in (
        ranks.rank_confidence_sets_from_rows(values, who, systems, rng=rng(), resamples=199),
        ranks.rank_confidence_sets([0.5], np.full((99, 1), 0.5)),
    ):
        body = found.as_dict()
        json.dumps(body, allow_nan=False)
        assert len(body["best"]) == len(body["systems"])


def test_the_same_seed_gives_the_same_sets():
    values, who, systems = rows(rng(28), [0.2, 0.3, 0.5])
    first, second = (
        ranks.rank_confidence_sets_from_rows(values, who, systems, rng=rng(4), resamples=299) for _ in range(2)
    )
    assert first == second


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="draws: 3 columns for 2 scores"):
        ranks.rank_confidence_sets([1, 2], np.zeros((9, 3)))
    with pytest.raises(ValueError, match="scores: row 1 is missing"):
        ranks.rank_confidence_sets([1, None], np.zeros((9, 2)))
    with pytest.raises(ValueError, match="systems: 1 names for 2 scores"):
        ranks.rank_confidence_sets([1, 2], np.zeros((9, 2)), systems=["a"])
    with pytest.raises(ValueError, match="level"):
        ranks.rank_confidence_sets([1, 2], np.zeros((9, 2)), level=95)
    with pytest.raises(ValueError, match="draws: a score that is not defined"):
        ranks.simultaneous_differences([1, 2], [[1, None], [1, 2]])
    with pytest.raises(ValueError, match="draws: at least two"):
        ranks.simultaneous_differences([1, 2], [[1, 2]])
    with pytest.raises(ValueError, match="df"):
        ranks.simultaneous_differences([1, 2], np.zeros((9, 2)), df=0)
    with pytest.raises(ValueError, match="critical"):
        ranks.rank_confidence_sets_from_rows([1], ["a"], ["x"], rng=rng(), critical="z")
    with pytest.raises(ValueError, match="weights"):
        ranks.bootstrap_system_scores([1], ["a"], ["x"], weights=[-1], rng=rng())
    with pytest.raises(ValueError, match="systems: row 0 has no label"):
        ranks.bootstrap_system_scores([1], ["a"], [None], rng=rng())
