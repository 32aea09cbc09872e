import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.miscmodels.ordinal_model import OrderedModel

from analysis.stats import clusters, ratings
from tests.analysis.stats.comparisons import score_t
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("basic")


def paired_rows(seed=0, n_annotators=30, n_prompts=6, difference=0.6):
    draw = rng(seed)
    annotators = np.repeat(np.arange(n_annotators), n_prompts)
    prompts = np.tile(np.arange(n_prompts), n_annotators)
    base = 3 + draw.normal(0, 0.6, n_annotators)[annotators] + draw.normal(0, 0.4, n_prompts)[prompts]
    x, y = (np.clip(np.rint(base + shift + draw.normal(0, 0.9, len(base))), 1, 5) for shift in (difference, 0))
    return x, y, annotators, prompts


def long(x, y, annotators, prompts):
    return np.r_[x, y], np.r_[["x"] * len(x), ["y"] * len(y)], np.r_[annotators, annotators], np.r_[prompts, prompts]


def test_the_papers_comparison_agrees_with_the_reference():
    case = GOLDEN["paired_t"]
    result = ratings.paired_difference_paper(case["input"]["a"], case["input"]["b"])
    assert_allclose([result.estimate, result.pvalue], [case["expected"]["delta"], case["expected"]["p"]], atol=1e-9)
    assert (result.mode, result.test.df) == ("paper", 23)


@pytest.mark.parametrize("delta", [-0.822, 0.644, 0.322, 0.244, -0.389])
def test_every_published_difference_could_be_a_reversal(delta):
    # Ethayarajh and Jurafsky 2022, Table 1, Likert rating differences.
    guard = ratings.rounding_reversal_guard(delta)
    assert guard.is_reversal_possible and guard.low < 0 < guard.high
    assert guard.as_dict()["sentence"] == "reversal_cannot_be_excluded"


def test_a_reversal_within_the_bound_exists_and_beyond_it_does_not():
    # Section 3, Remark 2: utilities whose means say y, rounded up to ratings whose means say x.
    x, y = np.array([2.01, 2.01, 2.5]), np.array([1.9, 3.0, 2.0])
    observed = np.ceil(x).mean() - np.ceil(y).mean()
    guard = ratings.rounding_reversal_guard(observed)
    assert x.mean() < y.mean() and observed > 0
    assert guard.low < x.mean() - y.mean() < guard.high
    assert not ratings.rounding_reversal_guard(1.0).is_reversal_possible
    assert not ratings.rounding_reversal_guard(0.6, step=0.5).is_reversal_possible
    with pytest.raises(ValueError, match="step"):
        ratings.rounding_reversal_guard(0.5, step=0)


def test_one_row_an_annotator_is_nearly_the_paired_t_test():
    x, y, annotators, _ = paired_rows(n_prompts=1)
    result = ratings.paired_mean_difference(x, y, annotators, scale=(1, 5))
    assert_allclose(result.pvalue, score_t(x - y, 0.0, (-4, 4))[0])
    # The paired t test, with fewer degrees of freedom for a few extreme people, and the variance under the null.
    assert_allclose(result.pvalue, stats.ttest_rel(x, y).pvalue, rtol=0.1)
    assert_allclose(result.detail["share_of_range"], result.estimate / 4)
    assert result.has_warning("interval_scale_assumed")


def test_several_rows_an_annotator_are_clustered():
    x, y, annotators, prompts = paired_rows()
    one = ratings.paired_mean_difference(x, y, annotators, scale=(1, 5))
    two = ratings.paired_mean_difference(x, y, annotators, prompts=prompts, scale=(1, 5))
    assert (one.n, one.n_rows, one.test.name) == (30, 180, "clustered_score_t")
    assert_allclose(one.detail["se"], clusters.clustered_mean(x - y, annotators).detail["se"])
    wanted = clusters.two_way_clustered_mean(x - y, annotators, prompts, null=0.0, bounds=(-4, 4))
    assert (two.interval, two.test, two.interval.method) == (wanted.interval, wanted.test, "two_way_cv3_score")
    assert two.sensitivity[-1].analysis == "rating.mean_difference.by_annotator"
    assert (two.sensitivity[-1].interval, two.sensitivity[-1].test) == (one.interval, one.test)
    with pytest.raises(ValueError, match="x: row 0 is 6"):
        ratings.paired_mean_difference([6], [1], ["a"], scale=(1, 5))


def test_superiority_counts_pairs_of_ratings():
    x, y, annotators, _ = paired_rows()
    result = ratings.probability_of_superiority(x, y, annotators)
    assert_allclose(result.estimate, np.mean(x > y) + np.mean(x == y) / 2)
    assert_allclose(result.detail["cliff_delta"], np.mean(x > y) - np.mean(x < y))
    assert (result.n, result.interval.method, result.test.name) == (30, "cv3_score", "clustered_score_t")
    # Six rows each, so that the jackknife over annotators is that of their means.
    means = [(np.mean((x > y)[annotators == a]) + np.mean((x >= y)[annotators == a])) / 2 for a in range(30)]
    pvalue, _, low, _ = score_t(means, 0.5, (0, 1))
    assert_allclose([result.pvalue, result.interval.low], [pvalue, low], rtol=1e-7)
    # Towards the end of the scale the t interval is wider.
    assert_allclose(
        result.interval.high, min(1, result.estimate + stats.t.ppf(0.975, result.test.df) * stats.sem(means))
    )


def test_superiority_over_prompts_has_the_people_only_estimate_beside_it():
    x, y, annotators, prompts = paired_rows(9)
    result = ratings.probability_of_superiority(x, y, annotators, prompts=prompts)
    wanted = clusters.two_way_clustered_mean((np.sign(x - y) + 1) / 2, annotators, prompts, null=0.5, bounds=(0.0, 1.0))
    assert (result.interval, result.test, result.estimate) == (wanted.interval, wanted.test, wanted.estimate)
    assert result.settings["population"] == "people and prompts" and result.detail["n_prompts"] == 6
    beside, alone = result.sensitivity[-1], ratings.probability_of_superiority(x, y, annotators)
    assert beside.analysis == "rating.superiority.by_annotator"
    assert (beside.interval, beside.test) == (alone.interval, alone.test)


def test_superiority_of_the_two_systems_adds_up_to_one():
    x, y, annotators, _ = paired_rows(1)
    first, second = (ratings.probability_of_superiority(a, b, annotators) for a, b in ((x, y), (y, x)))
    assert_allclose(first.estimate + second.estimate, 1)
    assert_allclose(first.pvalue, second.pvalue)


def test_superiority_knows_only_the_order_of_the_points():
    x, y, annotators, _ = paired_rows(2)
    curved = ratings.probability_of_superiority(np.exp(x), np.exp(y), annotators)
    plain = ratings.probability_of_superiority(x, y, annotators)
    assert (plain.estimate, plain.pvalue, plain.interval) == (curved.estimate, curved.pvalue, curved.interval)


def test_all_ties_are_one_half_and_no_evidence():
    few = ratings.probability_of_superiority([3, 4, 5], [3, 4, 5], ["a", "b", "c"])
    assert (few.estimate, few.status, few.test, few.detail["n_ties"]) == (0.5, "ok", None, 3)
    many = ratings.probability_of_superiority([3] * 30, [3] * 30, np.arange(30))
    assert (many.estimate, many.pvalue, many.test.name) == (0.5, 1.0, "independent_units_betting")
    assert few.interval.low < many.interval.low < 0.5 < many.interval.high < few.interval.high
    assert ratings.probability_of_superiority([], [], []).status == "no_data"


def test_rank_tests_take_one_difference_an_annotator():
    x, y, annotators, _ = paired_rows(3)
    means = np.array([(x - y)[annotators == a].mean() for a in range(30)])
    sign, symmetry = ratings.sign_and_wilcoxon_tests(x, y, annotators)
    assert sign.n + sign.detail["n_ties"] == 30
    assert_allclose(sign.pvalue, stats.binomtest(int((means > 0).sum()), int((means != 0).sum())).pvalue)
    assert symmetry.n == 30 and "not the mean" in symmetry.estimand


def test_the_four_methods_agree_on_the_sign():
    x, y, annotators, prompts = paired_rows(4, difference=0.8)
    rows = long(x, y, annotators, prompts)
    assert ratings.paired_mean_difference(x, y, annotators, scale=(1, 5)).estimate > 0
    assert ratings.probability_of_superiority(x, y, annotators).estimate > 0.5
    assert ratings.cumulative_logit(rows[0], rows[1], rows[2], system="x", reference="y").estimate > 0


def test_cumulative_logit_on_two_points_is_the_log_odds_ratio():
    x, y = np.array([1, 2, 2, 2, 1, 2] * 5), np.array([1, 1, 2, 1, 2, 1] * 5)
    annotators = np.r_[np.arange(30), np.arange(30)]
    result = ratings.cumulative_logit(np.r_[x, y], ["x"] * 30 + ["y"] * 30, annotators, system="x", reference="y")
    odds = [np.mean(part == 2) / np.mean(part == 1) for part in (x, y)]
    assert_allclose(result.estimate, math.log(odds[0] / odds[1]), rtol=1e-12)
    assert_allclose(result.detail["by_threshold"], [math.log(odds[0] / odds[1])])
    assert (result.n, result.n_rows, result.interval.method) == (30, 60, "cv3_t")


def test_cumulative_logit_mirrors_and_ignores_the_distance_of_points():
    x, y, annotators, prompts = paired_rows(5)
    values, systems, who, _ = long(x, y, annotators, prompts)
    straight = ratings.cumulative_logit(values, systems, who, system="x", reference="y")
    mirrored = ratings.cumulative_logit(values, systems, who, system="y", reference="x")
    curved = ratings.cumulative_logit(np.exp(values), systems, who, system="x", reference="y")
    assert_allclose([mirrored.estimate, mirrored.detail["se"]], [-straight.estimate, straight.detail["se"]], rtol=1e-9)
    assert_allclose([curved.estimate, curved.detail["se"]], [straight.estimate, straight.detail["se"]], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("difference", [0.1, 1.5, 3.0])
def test_cumulative_logit_agrees_with_statsmodels(difference):
    x, y, annotators, prompts = paired_rows(8, difference=difference)
    values, systems, who, _ = long(x, y, annotators, prompts)
    ours = ratings.cumulative_logit(values, systems, who, system="x", reference="y")

    model = OrderedModel(values, (systems == "x").astype(float)[:, None], distr="logit")
    assert_allclose(ours.estimate, model.fit(method="newton", disp=0, tol=1e-12).params[0], rtol=2e-5)
    without = [
        ratings.cumulative_logit(values[kept], systems[kept], who[kept], system="x", reference="y").estimate
        for kept in (who != person for person in np.unique(who))
    ]
    # One Newton step for each annotator is near to the fit without the annotator.
    wanted = math.sqrt((len(without) - 1) / len(without) * np.sum((np.array(without) - ours.estimate) ** 2))
    assert_allclose(ours.detail["se"], wanted, rtol=0.05)


def uneven_ratings(draw, n_annotators, prompt_lean=0.0, n_prompts=10):
    """Ratings 1..5 of two equal systems by annotators with tastes of their own, some of whom rate far more."""
    activity = np.exp(draw.normal(0, 1.2, n_annotators))
    who = np.repeat(np.arange(n_annotators), np.maximum(1, np.round(8 * activity / activity.mean())).astype(int))
    prompts, is_x = draw.integers(0, n_prompts, len(who)), draw.integers(0, 2, len(who))
    lean = draw.normal(0, 0.8, n_annotators)[who] + draw.normal(0, prompt_lean, n_prompts)[prompts]
    latent = draw.normal(0, 0.5, n_annotators)[who] + (is_x - 0.5) * lean + draw.logistic(size=len(who))
    return 1.0 + np.searchsorted([-1.5, -0.5, 0.5, 1.5], latent), np.where(is_x == 1, "x", "y"), who, prompts


@pytest.mark.slow
@pytest.mark.parametrize("n_annotators, prompt_lean", [(15, 0.0), (40, 0.0), (40, 1.2)])
def test_cumulative_logit_keeps_its_level(n_annotators, prompt_lean):
    draw, runs, hits = rng(n_annotators), 300, 0
    for _ in range(runs):
        rows = uneven_ratings(draw, n_annotators, prompt_lean)
        used = rows if prompt_lean else rows[:3]
        hits += (ratings.cumulative_logit(*used, system="x", reference="y").pvalue or 1.0) < 0.05
    assert hits / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)


def test_the_ordinal_likelihood_has_its_own_derivatives():
    counts, point = np.array([[4.0, 7, 2, 5], [1, 6, 9, 8]]), np.array([-1.2, 0.1, 1.4, 0.6])
    step = 1e-5 * np.eye(4)
    here = ratings._Cumulative.at(point, counts)
    rise = [
        ratings._Cumulative.at(point + move, counts).log_likelihood
        - ratings._Cumulative.at(point - move, counts).log_likelihood
        for move in step
    ]
    turn = [
        ratings._Cumulative.at(point + move, counts).slope - ratings._Cumulative.at(point - move, counts).slope
        for move in step
    ]
    assert_allclose(here.slope, np.array(rise) / 2e-5, rtol=1e-7)
    assert_allclose(here.information, -np.array(turn) / 2e-5, rtol=1e-6, atol=1e-6)
    assert_allclose(np.einsum("ik,ikp->p", counts, here.scores), here.slope, rtol=1e-12)
    assert ratings._Cumulative.at(np.array([0.2, 0.1, 1.4, 0.6]), counts).log_likelihood == -math.inf


def test_cumulative_logit_of_ratings_that_all_differ_has_no_number():
    # Two annotators, two outputs each: as many parameters as ratings, and a division by the difference.
    found = ratings.cumulative_logit([1, 4, 2, 3], ["x", "x", "y", "y"], [1, 2, 1, 2], system="x", reference="y")
    assert (found.status, found.test, found.estimate) == ("not_identified", None, None)


def test_cumulative_logit_failures_are_statuses(monkeypatch):
    who = np.arange(8)
    systems = ["x"] * 4 + ["y"] * 4
    call = {"system": "x", "reference": "y"}
    assert ratings.cumulative_logit([4, 5, 5, 4, 1, 2, 3, 1], systems, who, **call).status == "separation"
    assert ratings.cumulative_logit([3] * 8, systems, who, **call).status == "zero_variance"
    assert ratings.cumulative_logit([3] * 4 + [None] * 4, systems, who, **call).status == "no_data"
    assert ratings.cumulative_logit([3, 4, 5, 3, 3, 4, 5, 2], systems, [1] * 8, **call).status == "n_lt_2"
    monkeypatch.setattr(ratings, "_fit_ordered", lambda *_: "the fit did not converge")
    failed = ratings.cumulative_logit([3, 4, 5, 3, 3, 4, 5, 2], systems, who, **call)
    assert (failed.status, failed.reason, failed.test) == ("failed", "the fit did not converge", None)


def test_z_scores_remove_each_annotators_level_and_spread():
    values = np.r_[rng(8).normal(2, 0.5, 20), rng(9).normal(60, 15, 20), np.full(20, 3.0), [1, 2]]
    labels = np.repeat(["lenient", "strict", "flat", "brief"], [20, 20, 20, 2])
    found = ratings.z_scores_by_annotator(values, labels)
    for name in ("lenient", "strict"):
        own = found.scores[labels == name]
        assert_allclose([own.mean(), own.std(ddof=1)], [0, 1], atol=1e-12)
    assert set(found.dropped) == {"flat", "brief"}
    assert np.isnan(found.scores[labels == "flat"]).all()
    shifted = ratings.z_scores_by_annotator(values * np.where(labels == "strict", 3, 1) + 7, labels)
    assert_allclose(shifted.scores, found.scores, atol=1e-9)


def test_references_put_every_annotator_on_one_scale():
    labels = np.repeat(["a", "b", "upside_down", "narrow", "none"], 4)
    own = {"a": (0, 100), "b": (60, 80), "upside_down": (80, 20), "narrow": (50, 55), "none": (0, 100)}
    values = np.concatenate([[low, high, low + 0.25 * (high - low), (low + high) / 2] for low, high in own.values()])
    marks = np.tile([0, 1, 2, 3], 5)
    found = ratings.rescale_to_references(
        values, labels, is_minimum=(marks == 0) & (labels != "none"), is_maximum=marks == 1
    )
    for name in ("a", "b"):
        assert_allclose(found.values[labels == name], [0, 1, 0.25, 0.5])
    assert (found.extremum_violation, found.narrow_references, found.no_references) == (
        ("upside_down",),
        ("narrow",),
        ("none",),
    )
    assert np.isnan(found.values[labels == "upside_down"]).all()


def test_expected_utility_weighs_annotators_and_not_ratings():
    values, labels = [1.0] * 9 + [0.0, 0.2], ["busy"] * 9 + ["b", "c"]
    with_references = ratings.expected_utility(values, labels, range(11), is_rescaled=True)
    assert_allclose(with_references.estimate, (1 + 0 + 0.2) / 3)
    assert (with_references.n, with_references.n_rows) == (3, 11) and "EEU" in with_references.estimand
    without = ratings.expected_utility(values, labels, range(11), is_rescaled=False)
    assert without.estimand == "mean rating (not EEU)" and without.has_warning("no_references")
    assert ratings.expected_utility([], [], [], is_rescaled=True).status == "no_data"


def test_the_effect_of_position_is_distinguished_from_that_of_systems():
    draw = rng(10)
    annotators = np.repeat(np.arange(40), 4)
    positions = np.concatenate([draw.permutation(4) for _ in range(40)])
    systems = np.where(draw.random(160) < 0.2 + 0.2 * positions, "good", "bad")
    values = 3 + 1.5 * (systems == "good") - 0.1 * positions + draw.normal(0, 0.3, 160)
    within = ratings.rating_change_per_position(values, positions, annotators, systems=systems)
    blind = ratings.rating_change_per_position(values, positions, annotators)
    assert within.interval.low < -0.1 < within.interval.high
    assert blind.estimate > 0.1
    assert (within.n, within.n_rows) == (40, 160)


def test_position_effect_edge_cases_are_statuses():
    assert ratings.rating_change_per_position([], [], []).status == "no_data"
    assert ratings.rating_change_per_position([1, 2], [0, 1], ["a", "a"]).status == "n_lt_2"
    assert ratings.rating_change_per_position([1, 2, 3, 4], [0, 0, 0, 0], list("aabb")).status == "not_identified"
    assert ratings.rating_change_per_position([1, 2, 1, 2, 1, 2], [0, 1] * 3, list("aabbcc")).status == "zero_variance"
