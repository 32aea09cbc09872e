import math

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import basic, cluster_models, cluster_variances, clusters
from tests.analysis.stats.comparisons import sandwich
from tests.analysis.stats.golden import golden

GOLDEN = golden("clusters")["cluster_mean"]


def sample(seed=0, n_rows=120, n_annotators=24, n_items=15):
    rng = np.random.default_rng(seed)
    annotators, items = rng.integers(0, n_annotators, n_rows), rng.integers(0, n_items, n_rows)
    values = (
        rng.normal(0, 1, n_rows) + rng.normal(0, 0.6, n_annotators)[annotators] + rng.normal(0, 0.4, n_items)[items]
    )
    return values, annotators, items


def test_the_variance_of_pairs_and_the_sandwich_agree_with_the_reference():
    people, items = (np.unique(GOLDEN[name], return_inverse=True)[1] for name in ("annotator", "item"))
    values, names = np.array(GOLDEN["y"]), (GOLDEN["se_cr1_annotator"], GOLDEN["se_cr1_item"])
    found = [sandwich(values, way).se for way in (people, items)]
    assert_allclose(found, names, atol=1e-9)
    of_pairs = cluster_variances.pair_variance((values - values.mean()) / len(values), people, items)
    assert_allclose(names[0] ** 2 + names[1] ** 2 - of_pairs, GOLDEN["var_two_way"], atol=1e-9)
    assert_allclose(sandwich(values, people, items).se, GOLDEN["se_cr1_item"], atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_variance_of_pairs_is_the_term_of_statsmodels(seed):
    values, annotators, items = sample(seed)
    people, prompts = (np.unique(labels, return_inverse=True)[1] for labels in (annotators, items))
    pairs = people * (prompts.max() + 1) + prompts
    fit = sm.OLS(values, np.ones((len(values), 1))).fit(cov_type="cluster", cov_kwds={"groups": pairs})
    found = cluster_variances.pair_variance((values - values.mean()) / len(values), people, prompts)
    assert_allclose(found, fit.cov_params()[0, 0], rtol=1e-9)
    assert cluster_variances.pair_variance(values[:2], np.zeros(2, dtype=int), np.zeros(2, dtype=int)) == 0


def leave_one_out(values, weights, labels):
    """The jackknife variance of a weighted mean, and its degrees of freedom, one label at a time."""
    names, mean = sorted(set(labels.tolist())), np.average(values, weights=weights)
    moves = [np.average(values[labels != one], weights=weights[labels != one]) - mean for one in names]
    sizes = [weights[labels == one].sum() for one in names]
    n = len(names)
    return (n - 1) / n * sum(move**2 for move in moves), sum(sizes) ** 2 / sum(size**2 for size in sizes) - 1


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_two_way_jackknife_leaves_out_each_annotator_and_each_item(seed, is_weighted):
    values, annotators, items = sample(seed)
    weights = 1 / np.bincount(annotators)[annotators] if is_weighted else np.ones(len(values))
    found = clusters.two_way_clustered_mean(values, annotators, items, weights=weights, null=0.0)
    (of_people, people_df), (of_items, items_df) = (leave_one_out(values, weights, ids) for ids in (annotators, items))
    moves = weights * (values - np.average(values, weights=weights)) / weights.sum()
    cells = {}
    for move, cell in zip(moves, zip(annotators.tolist(), items.tolist(), strict=True), strict=True):
        cells[cell] = cells.get(cell, 0.0) + move
    of_pairs = len(cells) / (len(cells) - 1) * sum(move**2 for move in cells.values())
    both = of_people + of_items - of_pairs
    parts = [found.detail[f"variance_{name}"] for name in ("annotators", "items", "two_way")]
    assert_allclose(parts, [of_people, of_items, both], rtol=1e-9)
    assert_allclose(found.detail["se"] ** 2, max(of_people, of_items, both), rtol=1e-9)
    if both > max(of_people, of_items):
        df = both**2 / (of_people**2 / people_df + of_items**2 / items_df)
    else:
        df = people_df if of_people > of_items else items_df
    assert_allclose([found.detail["df"], found.test.df], df, rtol=1e-9)
    wanted = 2 * stats.t.sf(abs(np.average(values, weights=weights)) / found.detail["se"], df)
    assert_allclose(found.pvalue, wanted, rtol=1e-9)


def test_satterthwaite_by_hand():
    # Two people, three prompts, one answer each: people's means 2 and 4, prompts' means 1, 3 and 5, no interaction.
    values, people, prompts = np.array([0.0, 2, 4, 2, 4, 6]), np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)
    spread, df = cluster_variances.two_way_jackknife(values, np.ones(6), people, prompts)
    # Variances of means: 2 / 2 = 1 and 4 / 3; of six single answers: 6/5 * (9 + 1 + 1 + 1 + 1 + 9) / 36 = 11/15.
    assert_allclose([spread.annotators, spread.items, spread.combined], [1, 4 / 3, 1 + 4 / 3 - 11 / 15])
    # (8/5)^2 / (1^2 / 1 + (4/3)^2 / 2) = 2.56 / (17/9)
    assert_allclose(df, 2.56 * 9 / 17)
    # Prompts that do not differ: the larger variance is that of people, with G - 1 = 1 degree of freedom.
    alone, df_alone = cluster_variances.two_way_jackknife(np.repeat([2.0, 4.0], 3), np.ones(6), people, prompts)
    assert alone.variance == alone.annotators > alone.combined and df_alone == 1


def test_balanced_clusters_give_the_t_interval_of_their_means():
    values = np.random.default_rng(0).normal(0.2, 1, (30, 4))
    result = clusters.clustered_mean(values.ravel(), np.repeat(np.arange(30), 4), null=0.0)
    means = basic.one_sample_t_test(values.mean(axis=1), null=0.0)
    assert result.detail["df"] == 29
    assert_allclose(
        [result.interval.low, result.interval.high, result.pvalue],
        [means.interval.low, means.interval.high, means.pvalue],
        rtol=1e-9,
    )


def test_cv3_is_the_jackknife_over_annotators():
    values, annotators, _ = sample(7)
    without = [values[annotators != g].mean() for g in np.unique(annotators)]
    n = len(without)
    wanted = math.sqrt((n - 1) / n * np.sum((np.array(without) - values.mean()) ** 2))
    assert_allclose(clusters.clustered_mean(values, annotators).detail["se"], wanted, rtol=1e-9)


def test_repeating_every_answer_adds_no_certainty():
    values, annotators, items = sample(3)
    for call in (
        lambda k: clusters.clustered_mean(np.tile(values, k), np.tile(annotators, k)),
        lambda k: clusters.two_way_clustered_mean(np.tile(values, k), np.tile(annotators, k), np.tile(items, k)),
    ):
        assert_allclose(call(2).detail["se"], call(1).detail["se"], rtol=1e-9)
        assert call(2).n == call(1).n


def test_labels_and_row_order_change_nothing():
    values, annotators, _ = sample(4)
    order = np.random.default_rng(1).permutation(len(values))
    first = clusters.clustered_mean(values, annotators, null=0.0)
    second = clusters.clustered_mean(values[order], [f"id{99 - a}" for a in annotators[order]], null=0.0)
    assert_allclose([first.estimate, first.pvalue], [second.estimate, second.pvalue], rtol=1e-9)


def test_one_heavy_annotator_lowers_the_effective_number_and_is_named():
    annotators = np.r_[np.zeros(200, dtype=int), np.arange(1, 31)]
    values = np.random.default_rng(0).normal(0, 1, 230)
    result = clusters.clustered_mean(values, annotators, null=0.0)
    assert result.has_warning("dominant_annotator") and result.has_warning("few_clusters")
    assert result.detail["df"] == max(1.0, result.detail["effective_clusters"] - 1) < 2
    assert result.sensitivity[0].estimand == "mean of annotator means"


def test_under_six_clusters_there_are_points_and_no_pvalue():
    result = clusters.clustered_mean([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 2, 2], null=0.0)
    assert result.test is None and result.sensitivity[0].test is None
    assert [w.severity for w in result.warnings if w.code == "few_clusters"] == ["block"]
    assert_allclose(result.detail["cluster_means"], [1.5, 3.5, 5.5])


def test_edge_cases_are_statuses():
    assert clusters.clustered_mean([], []).status == "no_data"
    assert clusters.clustered_mean([None], ["a"]).status == "no_data"
    assert clusters.clustered_mean([1, 2], ["a", "a"]).status == "n_lt_2"
    assert clusters.two_way_clustered_mean([1, 2], ["a", "b"], ["i", "i"]).status == "n_lt_2"
    # The annotators' means coincide although the answers differ: the standard error is 0, the spread is not.
    same_means = clusters.clustered_mean([0, 1, 0, 1], ["a", "a", "b", "b"], null=0.4, bounds=(0, 1))
    assert (same_means.status, same_means.test, same_means.interval.method) == ("ok", None, "betting")
    assert clusters.clustered_mean([0, 1, 0, 1], ["a", "a", "b", "b"], null=0.4).status == "zero_variance"


def test_a_missing_label_is_named():
    with pytest.raises(ValueError, match="clusters: row 1 has no label"):
        clusters.clustered_mean([1, 2], ["a", None])
    with pytest.raises(ValueError, match="clusters: expected 2 labels"):
        clusters.clustered_mean([1, 2], ["a"])


@pytest.mark.parametrize("seed", range(3))
def test_regression_agrees_with_statsmodels_and_with_the_jackknife(seed):
    values, annotators, items = sample(seed)
    design = np.column_stack([np.ones(len(values)), items])
    fit = cluster_models.clustered_regression(design, values, annotators)
    assert_allclose(fit.coefficients, sm.OLS(values, design).fit().params, rtol=1e-8)
    groups = np.unique(annotators)
    shift = np.array(
        [np.linalg.lstsq(design[annotators != g], values[annotators != g])[0] - fit.coefficients for g in groups]
    )
    assert_allclose(fit.covariance, (len(groups) - 1) / len(groups) * shift.T @ shift, rtol=1e-7)


def test_a_coefficient_that_hangs_on_one_annotator_is_refused():
    with pytest.raises(ValueError, match="without one of them"):
        cluster_models.clustered_regression([[1, 0], [1, 0], [1, 1]], [1, 2, 3], ["a", "b", "c"])


def test_components_of_variance_find_what_was_put_in():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(400), 5)
    values = rng.normal(0, 0.5, 400)[groups] + rng.normal(0, 1, 2000)
    found = cluster_variances.variance_components(values, groups)
    assert abs(found.icc - 0.2) < 0.07
    assert_allclose(found.design_effect, 1 + 4 * found.icc)
    assert cluster_variances.variance_components([1, 2], ["a", "b"]).icc is None


@pytest.mark.parametrize(
    ("parts", "is_largest", "variance"),
    [
        ((2.0, 1.0, 2.5), True, 2.5),
        ((2.0, 1.0, 1.5), False, 2.0),
        ((1.0, 3.0, -0.5), False, 3.0),
        # Equal but for rounding: each annotator has prompts of their own.
        ((2.0, 2.0, 2.0 * (1 + 1e-12)), False, 2.0 * (1 + 1e-12)),
        ((0.0, 0.0, 0.0), False, 0.0),
    ],
)
def test_the_combined_variance_is_used_only_if_it_is_the_largest(parts, is_largest, variance):
    spread = cluster_variances.TwoWayVariance(*parts)
    assert (spread.is_combined_largest, spread.variance) == (is_largest, variance)
    assert spread.detail()["is_maximum"] is not is_largest


def test_annotators_with_prompts_of_their_own_have_the_degrees_of_freedom_of_one_way():
    draw = np.random.default_rng(1)
    people = np.repeat(np.arange(9), 3)
    spread, df = cluster_variances.two_way_jackknife(draw.random(27), np.ones(27), people, people)
    assert not spread.is_combined_largest and df == pytest.approx(8)
