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


def coverage(truth, runs, seed, **design):
    draw = rng(seed)
    found = [ranks.rank_confidence_sets_from_rows(*rows(draw, truth, **design)) for _ in range(runs)]
    return float(np.mean([covers(one, truth) for one in found])), found


def sets_of(scores, se=0.3, df=None, level=0.95):
    """Rank sets of scores whose differences all have this standard error."""
    k = len(scores)
    table = np.broadcast_to(np.where(np.eye(k), 0.0, se), (k, k))
    differences = ranks.simultaneous_differences(scores, table, df=df, level=level)
    beats = np.nan_to_num(differences.low, nan=-1.0) > 0
    return differences, 1 + beats.sum(axis=0), k - beats.sum(axis=1)


# --- the definition, by brute force


def test_differences_follow_their_definition():
    scores, se = np.array([0.5, 0.6, 0.8]), np.array([[0, 0.04, 0.03], [0.04, 0, 0.05], [0.03, 0.05, 0]])
    found = ranks.simultaneous_differences(scores, se, df=np.array([[1, 9, 20], [9, 1, 4], [20, 4, 1]]))
    for i, j, df in ((0, 1, 9), (0, 2, 20), (1, 2, 4)):
        t = abs(scores[i] - scores[j]) / se[i, j]
        # The tail of each of three pairs so that all three hold in .95 if they are independent.
        half = stats.t.isf((1 - 0.95 ** (1 / 3)) / 2, df) * se[i, j]
        assert_allclose(
            [found.low[i, j], found.high[i, j]], [scores[i] - scores[j] - half, scores[i] - scores[j] + half]
        )
        assert_allclose(
            [found.low[j, i], found.high[j, i]], [scores[j] - scores[i] - half, scores[j] - scores[i] + half]
        )
        assert_allclose(found.pvalues[i, j], 1 - (1 - 2 * stats.t.sf(t, df)) ** 3)


def test_one_pair_has_the_plain_t_interval():
    found = ranks.simultaneous_differences([0.0, 1.0], [[0, 0.3], [0.3, 0]], df=12)
    assert_allclose(found.high[1, 0] - 1, 0.3 * stats.t.isf(0.025, 12))
    assert_allclose(found.pvalues[1, 0], 2 * stats.t.sf(1 / 0.3, 12))


def test_an_interval_excludes_0_exactly_where_its_adjusted_p_is_small():
    draw = rng(3)
    for df in (None, 12):
        for _ in range(30):
            found, _, _ = sets_of(draw.normal(0, 1.2, 5), 0.4, df)
            off = ~np.eye(5, dtype=bool)
            excludes = (found.low > 0) | (found.high < 0)
            assert np.array_equal(excludes[off], (found.pvalues < 0.05)[off])


def test_ranks_are_counted_from_what_is_shown():
    draw = rng(4)
    values = np.tile([0.9, 0.5, 0.49, 0.1], 30) + draw.normal(0, 0.1, 120)
    found = ranks.rank_confidence_sets_from_rows(values, np.repeat(np.arange(30), 4), list("abcd") * 30)
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
        _, lows, highs = sets_of(scores, draw.uniform(0.05, 2))
        places = ranks.descending_ranks(scores)
        assert all(low <= rank <= high for low, rank, high in zip(lows, places, highs, strict=True))
        # Equal scores share the better rank, and their sets hold the worse one too.
        for i, j in itertools.combinations(range(k), 2):
            if scores[i] == scores[j]:
                assert highs[i] > places[i] and highs[j] > places[j]


def test_reordering_and_renaming_reorder_the_sets():
    values, who, systems = rows(rng(12), [0.2, 0.5, 0.6])
    order = rng(13).permutation(len(values))
    plain = ranks.rank_confidence_sets_from_rows(values, who, systems)
    mixed = ranks.rank_confidence_sets_from_rows(values[order], who[order], systems[order])
    named = ranks.rank_confidence_sets_from_rows(values, [f"w{39 - a:02}" for a in who], 2 - systems)
    assert_allclose(plain.scores, [values[systems == s].mean() for s in range(3)])
    assert (mixed.low, mixed.high) == (plain.low, plain.high)
    assert (named.low, named.high) == (plain.low[::-1], plain.high[::-1])


def test_the_scale_of_the_scores_does_not_matter():
    values, who, systems = rows(rng(9), [0.3, 0.5, 0.55])
    plain, scaled = (ranks.rank_confidence_sets_from_rows(one, who, systems) for one in (values, 100 * values - 7))
    assert (plain.low, plain.high) == (scaled.low, scaled.high)


def test_a_higher_level_never_narrows_a_set():
    scores = rng(10).normal(0, 1, 7)
    (_, low, high), (_, lower, higher) = (sets_of(scores, 0.3, level=level) for level in (0.8, 0.99))
    assert np.all(lower <= low) and np.all(higher >= high)


def test_weights_weigh_rows_within_a_system():
    found = ranks.rank_confidence_sets_from_rows(
        [1, 0, 0, 1, 1, 0], list("aabbcc"), list("xyxyxy"), weights=[2, 1, 1, 1, 1, 1]
    )
    assert_allclose(found.scores, [3 / 4, 1 / 3])


def test_z_scores_are_ranked_without_standardising_anew():
    values, who, systems = rows(rng(16), [0.0, 0.1, 0.9], n_annotators=12)
    scored = ratings.z_scores_by_annotator(values, who)
    found = ranks.rank_confidence_sets_from_rows(scored.scores, who, systems)
    assert found.ranks[2] == 1 and found.best == (False, False, True)
    assert found.n == 12 - len(scored.dropped)


# --- the population


def prompts_matter(draw, k=3, n_prompts=12):
    """Equal systems, whose success over prompts differs. Twenty people judge all."""
    who, prompt, system = (one.ravel() for one in np.indices((20, n_prompts, k)))
    effect = draw.normal(0, 1, (n_prompts, k))
    return effect[prompt, system] + draw.normal(0, 1, len(who)), who, system, prompt


def test_prompts_are_a_sample_unless_the_design_declares_exactly_these():
    values, who, systems, prompts = prompts_matter(rng(30))
    both, people, given = (
        ranks.rank_confidence_sets_from_rows(values, who, systems, prompts, population=population)
        for population in ("people_and_prompts", "people", "")
    )
    assert both == given and both.settings["population"] == "people and prompts"
    assert people == ranks.rank_confidence_sets_from_rows(values, who, systems)
    assert people.settings["population"] == "people"
    assert max(both.low) == 1 < max(people.low), "equal systems are separated on these prompts only"


def test_four_prompts_have_no_sets_about_prompts_like_these():
    values, who, systems, prompts = prompts_matter(rng(31), n_prompts=4)
    strict, lenient = (
        ranks.rank_confidence_sets_from_rows(values, who, systems, prompts, population=population)
        for population in ("people_and_prompts", "")
    )
    assert (strict.status, strict.low, strict.high, strict.critical_value) == ("not_identified", None, None, None)
    assert strict.reason.startswith("4 prompts are too few") and strict.ranks == lenient.ranks
    assert strict.settings["population"] == "people and prompts"
    assert lenient.low is not None and lenient.settings["population"] == "people"
    with pytest.raises(ValueError, match="population: 'all'"):
        ranks.rank_confidence_sets_from_rows(values, who, systems, prompts, population="all")


# --- coverage


def naive_coverage(truth, runs, seed, resamples=299):
    """The percentiles of each system's rank over resamples of annotators, taken as its confidence set."""
    draw, hits = rng(seed), 0
    low, high = true_sets(truth)
    for _ in range(runs):
        values, who, systems = rows(draw, truth)
        size = (int(who.max()) + 1, len(truth))
        sums, counts = (np.zeros(size), np.zeros(size))
        np.add.at(sums, (who, systems), values)
        np.add.at(counts, (who, systems), 1)
        times = draw.multinomial(size[0], np.full(size[0], 1 / size[0]), resamples)
        scores = times @ sums / (times @ counts)
        places = 1 + np.sum(scores[:, None, :] > scores[:, :, None], axis=2)
        ends = np.quantile(places, [0.025, 0.975], axis=0)
        hits += bool(np.all(ends[0] <= low) and np.all(ends[1] >= high))
    return hits / runs


def test_the_naive_spread_of_ranks_covers_in_few_studies_and_the_sets_in_most():
    # Six equal systems: .10 against .93 in the reference; our t quantile adds to the latter.
    assert naive_coverage([0.5] * 6, 70, seed=17) < 0.25
    found, _ = coverage([0.5] * 6, 70, seed=17)
    assert found > 0.9


@pytest.mark.parametrize(
    "design", [{"n_annotators": 12, "n_items": 96}, {"n_annotators": 40, "is_heavy": True}], ids=["few", "heavy"]
)
def test_few_or_unequally_active_annotators_keep_the_level(design):
    # Three Monte-Carlo standard errors over 150 runs are .05 at .95.
    found, _ = coverage([0.5] * 6, 150, seed=18, **design)
    assert found >= 0.90


@pytest.mark.slow
@pytest.mark.parametrize("design", [{}, {"n_annotators": 15}, {"is_heavy": True}], ids=["even", "few", "heavy"])
@pytest.mark.parametrize(
    "truth",
    [[0.5] * 6, [0.5, 0.5, 0.3, 0.2, 0.1, 0.0], [0.9, 0.7, 0.5, 0.3, 0.1, -0.1]],
    ids=["tied", "two tied", "distinct"],
)
def test_the_sets_cover_all_true_ranks_at_once(truth, design):
    # Monte-Carlo standard error of .95 over 400 runs: .011.
    found, _ = coverage(truth, 400, seed=19, **design)
    assert found >= 0.95 - 3 * 0.011


@pytest.mark.slow
def test_the_naive_sets_have_the_coverage_that_is_documented():
    assert abs(naive_coverage([0.5] * 6, 400, seed=20) - COVERAGE["all tied(6)"]["naive"]["cov"]) < 0.08
    _, found = coverage([0.9, 0.7, 0.5, 0.3, 0.1, -0.1], 100, seed=20)
    width = np.mean([np.mean(np.subtract(one.high, one.low)) for one in found])
    assert width < 1.5


# --- edge cases


def test_one_system_has_rank_1_and_no_set():
    found = ranks.rank_confidence_sets_from_rows([0.5, 0.6], ["x", "y"], ["a", "a"])
    assert (found.status, found.ranks, found.low) == ("not_applicable", (1,), None)
    assert found.best == (False,) and found.reason
    assert ranks.rank_confidence_sets_from_rows([], [], []).status == "no_data"


def with_copy(seed=21, apart=0.0):
    """Three systems; the second always gets what the first gets, so their difference is constant."""
    draw = rng(seed)
    own = draw.normal(0.5, 0.1, (30, 1))
    values = np.hstack([own, own + apart, draw.normal(1.4, 0.1, (30, 1))])
    return values.ravel(), np.repeat(np.arange(30), 3), ["a", "copy", "z"] * 30


def test_a_system_and_its_copy_stay_undecided():
    found = ranks.rank_confidence_sets_from_rows(*with_copy())
    assert (found.low, found.high) == ((2, 2, 1), (3, 3, 1))
    assert found.undecidable == (("a", "copy"),)
    assert [warning.code for warning in found.warnings] == ["undecidable_pairs"]


def test_a_constant_difference_is_no_evidence():
    # Both move together, exactly .1 apart: a standard error of 0 would make any difference infinitely significant.
    values, who, systems = with_copy(apart=0.1)
    two = np.array(systems) != "z"
    found = ranks.rank_confidence_sets_from_rows(values[two], who[two], np.array(systems)[two])
    assert (found.status, found.low, found.critical_value) == ("zero_variance", None, None)
    off = ranks.simultaneous_differences([0.5, 0.6, 1.5], [[0, 0, 0.1], [0, 0, 0.1], [0.1, 0.1, 0]])
    assert np.isnan(off.low[0, 1]) and np.isnan(off.pvalues[0, 1]) and not off.decidable[0, 1]
    assert off.low[2, 0] > 0
    assert off.critical_value < stats.norm.isf(0.025 / 3), "the constant pair is not counted"


def test_one_annotator_has_no_spread():
    found = ranks.rank_confidence_sets_from_rows([1, 0, 1], ["a"] * 3, ["x", "y", "x"])
    assert (found.status, found.ranks, found.low) == ("n_lt_2", (1, 2), None)


def test_a_system_that_one_annotator_alone_rated_is_compared_with_none():
    values, who, systems = rows(rng(25), [0.2, 0.9], n_annotators=20)
    found = ranks.rank_confidence_sets_from_rows(np.r_[values, 0.9, 0.8], np.r_[who, 3, 3], np.r_[systems, 2, 2])
    assert "undecidable_pairs" in {warning.code for warning in found.warnings}
    assert found.low == (2, 1, 1) and found.high == (3, 2, 3)
    lonely = ranks.rank_confidence_sets_from_rows([1, 0, 0, 1], [1, 2, 3, 4], [0, 1, 2, 3])
    assert lonely.status == "not_identified" and lonely.low is None


def test_few_annotators_are_warned_of():
    values, who, systems = rows(rng(26), [0.2, 0.5], n_annotators=5)
    found = ranks.rank_confidence_sets_from_rows(values, who, systems)
    assert [(warning.code, warning.severity) for warning in found.warnings] == [("few_clusters", "block")]
    assert found.as_dict()["unit"] == "annotator" and found.as_dict()["n"] == 5


def test_missing_values_are_left_out():
    found = ranks.rank_confidence_sets_from_rows([1, None, 0, 1], list("aabb"), list("xyxy"))
    assert (found.n_rows, found.scores) == (3, (0.5, 1.0))
    nobody = ranks.rank_confidence_sets_from_rows([None, None], ["a", "b"], ["x", "y"])
    assert nobody.status == "no_data"


def test_results_are_plain_json():
    for found in (
        ranks.rank_confidence_sets_from_rows(*rows(rng(27), [0.2, 0.5, 0.5])),
        ranks.rank_confidence_sets_from_rows([0.5], ["x"], ["a"]),
    ):
        body = found.as_dict()
        json.dumps(body, allow_nan=False)
        assert len(body["best"]) == len(body["systems"])


def test_bad_arguments_are_named():
    none = np.zeros((2, 2))
    with pytest.raises(ValueError, match="level"):
        ranks.simultaneous_differences([1, 2], none, level=95)
    with pytest.raises(ValueError, match="scores: a score that is not defined"):
        ranks.simultaneous_differences([1, None], none)
    with pytest.raises(ValueError, match="standard_errors: shape"):
        ranks.simultaneous_differences([1, 2], np.zeros((3, 3)))
    with pytest.raises(ValueError, match="standard_errors: a standard error is not negative"):
        ranks.simultaneous_differences([1, 2], none - 1)
    with pytest.raises(ValueError, match="df"):
        ranks.simultaneous_differences([1, 2], none, df=0)
    with pytest.raises(ValueError, match="weights"):
        ranks.rank_confidence_sets_from_rows([1], ["a"], ["x"], weights=[-1])
    with pytest.raises(ValueError, match="systems: row 0 has no label"):
        ranks.rank_confidence_sets_from_rows([1], ["a"], [None])
