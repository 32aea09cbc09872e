"""Analyses of variance and comparisons of pairs agree with the references."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats import oneway

from analysis.stats import groups, power_of_means
from tests.analysis.stats.draws import rng
from tests.analysis.stats.groups.answers import GOLDEN, GROUPS, VALUES


def test_anova_agrees_with_the_reference_and_with_scipy():
    found, wanted = groups.one_way_anova(VALUES, GROUPS), GOLDEN["anova"]
    assert_allclose(
        [found.test.statistic, found.pvalue, found.estimate],
        [wanted["F"], wanted["p"], wanted["eta_squared"]],
        rtol=1e-9,
    )
    assert (found.detail["df_between"], found.detail["df_within"], found.n) == (3, 71, 75)
    members = [np.array(VALUES)[np.array(GROUPS) == name] for name in "abcd"]
    assert_allclose([found.test.statistic, found.pvalue], stats.f_oneway(*members), rtol=1e-9)
    assert found.interval.low < found.estimate < found.interval.high
    assert found.mode == "paper" and found.detail["omega_squared"] < found.estimate


def test_the_interval_of_eta_squared_inverts_the_noncentral_f():
    found = groups.one_way_anova(VALUES, GROUPS)
    for end, probability in ((found.interval.low, 0.975), (found.interval.high, 0.025)):
        assert_allclose(stats.ncf.cdf(found.test.statistic, 3, 71, 75 * end / (1 - end)), probability, atol=1e-6)
    nothing = groups.one_way_anova([1, 2, 3, 1, 2, 3.1], list("aaabbb"))
    assert nothing.interval.low == 0


def test_three_domains_of_130_have_two_and_387_degrees_of_freedom():
    # The paper prints F(2, 390) for its 390 evaluators; the p-value is the same to two decimals.
    values = rng(0).integers(0, 6, 390) / 5
    found = groups.one_way_anova(values, np.repeat(["story", "news", "recipe"], 130))
    assert (found.detail["df_between"], found.detail["df_within"]) == (2, 387)
    published = GOLDEN["published"]["anova"]
    assert_allclose(stats.f.sf(published["F"], 2, 387), published["p"], atol=0.005)


def test_welch_anova_agrees_with_the_references():
    found, wanted = groups.welch_anova(VALUES, GROUPS), GOLDEN["welch"]
    assert_allclose(
        [found.test.statistic, found.pvalue, found.detail["df_within"]],
        [wanted["F"], wanted["p"], wanted["df_within"]],
        rtol=1e-9,
    )
    members = [np.array(VALUES)[np.array(GROUPS) == name] for name in "abcd"]
    assert_allclose([found.test.statistic, found.pvalue], stats.f_oneway(*members, equal_var=False), rtol=1e-9)
    reference = oneway.anova_oneway(np.array(VALUES), np.array(GROUPS), use_var="unequal")
    assert_allclose([found.test.statistic, found.detail["df_within"]], [reference.statistic, reference.df_denom])
    # Alexander and Govern's is another test.
    assert abs(stats.alexandergovern(*members).pvalue - found.pvalue) > 1e-4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two = groups.welch_anova([1, 2, 4, 2, 3, 7.0], list("aaabbb"))
    assert_allclose(two.pvalue, stats.ttest_ind([1, 2, 4], [2, 3, 7], equal_var=False).pvalue)


@pytest.mark.parametrize("method", ["tukey_hsd", "games_howell"])
def test_pairwise_comparisons_agree_with_the_references(method):
    found = groups.pairwise_comparisons(VALUES, GROUPS, method=method)
    for one, wanted in zip(found, GOLDEN[method], strict=True):
        assert (one.settings["x"], one.settings["y"]) == (wanted["x"], wanted["y"])
        assert_allclose([one.estimate, one.pvalue], [wanted["difference"], wanted["p"]], rtol=1e-6)
        assert one.test.pvalue_adjusted == one.pvalue and one.test.family_size == 6
        if "df" in wanted:
            assert_allclose(one.test.df, wanted["df"], rtol=1e-9)
    ours = [np.array(VALUES)[np.array(GROUPS) == name] for name in "abd"]
    three = groups.pairwise_comparisons(np.concatenate(ours), np.repeat(list("abd"), [18, 25, 20]), method=method)
    wanted = stats.tukey_hsd(*ours, equal_var=method == "tukey_hsd")
    assert_allclose([one.pvalue for one in three], wanted.pvalue[np.triu_indices(3, 1)], atol=1e-8)
    if method == "tukey_hsd":
        ends = wanted.confidence_interval().low[np.triu_indices(3, 1)]
        assert_allclose([one.interval.low for one in three], ends, atol=1e-6)
    for one in three:
        edge = (one.estimate - one.interval.low) / one.detail["se"] * np.sqrt(2)
        assert_allclose(groups.studentized_range_sf(edge, 3, one.test.df), 0.05, atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("df", [2, 3.5, 12.4, 387, 20000])
def test_the_studentised_range_agrees_with_scipy(k, df):
    for q in (0.1, 2.0, 4.5, 9.0):
        assert_allclose(groups.studentized_range_sf(q, k, df), stats.studentized_range.sf(q, k, df), atol=2e-8)


def test_the_studentised_range_of_two_groups_is_students_t():
    for q, df in ((0.5, 1), (3.0, 1.2), (4.0, 7), (12.0, 30), (25.0, 60)):
        wanted = 2 * stats.t.sf(q / np.sqrt(2), df)
        assert_allclose(groups.studentized_range_sf(q, 2, df), wanted, rtol=1e-6, atol=1e-14)
    assert groups.studentized_range_sf(0, 3, 9) == 1
    with pytest.raises(ValueError, match="k, df"):
        groups.studentized_range_sf(3, 1, 9)


def test_what_a_pair_could_have_shown_is_beside_it():
    for method in ("tukey_hsd", "games_howell"):
        for pair in groups.pairwise_comparisons(VALUES, GROUPS, method=method):
            df = np.floor(pair.test.df)
            t = stats.t.ppf(1 - 0.05 / 6 / 2, df)
            reached = 1 - stats.nct.cdf(t, df, pair.detail["detectable"] / pair.detail["se"])
            assert_allclose(reached, 0.8, atol=1e-6)
    # Two groups of 130 with one variance: the plan for that many.
    values = np.r_[np.tile([0.0, 1.0], 65), np.tile([0.0, 1.0], 65)]
    (only,) = groups.pairwise_comparisons(values, np.repeat(["a", "b"], 130), method="tukey_hsd")
    planned = power_of_means.two_sample_detectable_difference(
        130, 130, sd_x=float(np.std(values[:130], ddof=1)), variances="equal"
    )
    assert_allclose(only.detail["detectable"], planned, rtol=1e-6)


def test_the_papers_comparison_of_trainings_comes_back_from_its_effect_size():
    # Four conditions of 390 evaluators, Cohen's d .25: the paper prints p < .003, rounded as it is.
    published = GOLDEN["published"]["examples_against_none"]
    base = rng(1).normal(0, 1, 390)
    base = (base - base.mean()) / base.std(ddof=1)
    values = np.concatenate([base + shift for shift in (0, 0.1, published["cohen_d"], 0.15)])
    names = np.repeat(["0 none", "1 instructions", "2 examples", "3 comparison"], 390)
    found = groups.pairwise_comparisons(values, names, method="tukey_hsd", mode_label="paper")[1]
    assert_allclose(abs(found.effect.value), 0.25, atol=1e-9)
    assert_allclose(found.test.statistic, published["q"], atol=0.005)
    assert_allclose(found.pvalue, published["p"], atol=5e-5)
    assert found.test.df == 1556


def test_swapping_groups_mirrors_and_affine_maps_change_no_test():
    values = np.array(VALUES)
    renamed = np.array([{"a": "d", "b": "c", "c": "b", "d": "a"}[name] for name in GROUPS])
    for method in ("tukey_hsd", "games_howell"):
        first = {
            (p.settings["x"], p.settings["y"]): p for p in groups.pairwise_comparisons(values, GROUPS, method=method)
        }
        second = {
            (p.settings["x"], p.settings["y"]): p for p in groups.pairwise_comparisons(values, renamed, method=method)
        }
        assert_allclose(first["a", "b"].estimate, -second["c", "d"].estimate, rtol=1e-9)
        assert_allclose(first["a", "b"].pvalue, second["c", "d"].pvalue, rtol=1e-9)
    for call in (groups.one_way_anova, groups.welch_anova):
        plain_, moved = call(values, GROUPS), call(7 - 3 * values, renamed)
        assert_allclose([plain_.pvalue, plain_.estimate], [moved.pvalue, moved.estimate], rtol=1e-9)


def test_edge_cases_of_group_tests_are_statuses():
    for call in (groups.one_way_anova, groups.welch_anova):
        assert call([], []).status == "no_data"
        assert call([None, None], ["a", "b"]).status == "no_data"
        assert call([1, 2], ["a", "a"]).status == "not_identified"
        assert call([1, 2, None], ["a", "a", "b"]).reason == "group b has no value"
        constant = call([1, 1, 2, 2], list("aabb"))
        assert (constant.status, constant.test) == ("zero_variance", None)
    assert groups.one_way_anova([1, 2], ["a", "b"]).status == "n_lt_2"
    assert groups.one_way_anova([1, 2, 3], ["a", "a", "b"]).status == "ok"
    assert groups.welch_anova([1, 2, 3], ["a", "a", "b"]).status == "n_lt_2"
    # Welch with one constant group has no weight for it.
    assert groups.welch_anova([1, 1, 2, 3], list("aabb")).status == "zero_variance"
    for method in ("tukey_hsd", "games_howell"):
        # scipy raises for a group of one.
        assert groups.pairwise_comparisons([1, 2, 3], ["a", "a", "b"], method=method)[0].status == "n_lt_2"
        assert groups.pairwise_comparisons([1, 1, 2, 2], list("aabb"), method=method)[0].status == "zero_variance"
        assert groups.pairwise_comparisons([1, 2], ["a", "a"], method=method) == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = groups.pairwise_comparisons([1, 1, 2, 2, 3, 4], list("aabbcc"), method="games_howell")
    assert [pair.status for pair in some] == ["zero_variance", "ok", "ok"]
    with pytest.raises(ValueError, match="method"):
        groups.pairwise_comparisons([1, 2], ["a", "b"], method="lsd")
    with pytest.raises(ValueError, match="groups: expected 2"):
        groups.one_way_anova([1, 2], ["a"])


@pytest.mark.slow
def test_games_howell_keeps_its_level_where_tukey_does_not():
    rejected, runs = {"tukey_hsd": 0, "games_howell": 0}, 500
    for seed in range(runs):
        draw = rng(seed)
        values = np.concatenate([draw.normal(0, s, n) for s, n in ((3, 10), (1, 40), (1, 40))])
        names = np.repeat(list("abc"), [10, 40, 40])
        for method in rejected:
            rejected[method] += (
                min(pair.pvalue for pair in groups.pairwise_comparisons(values, names, method=method)) < 0.05
            )
    assert rejected["games_howell"] / runs < 0.075
    assert rejected["tukey_hsd"] / runs > 0.15
