import json
import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats import oneway, proportion

from analysis.stats import clusters, groups, power
from analysis.stats.results import plain
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("groups")
VALUES, GROUPS = GOLDEN["values"], GOLDEN["groups"]


def answers(seed=0, n_annotators=60, per=6, n_items=25):
    """Correct or not, by annotators in one arm and one domain each, who share items within the domain."""
    draw = rng(seed)
    who = np.repeat(np.arange(n_annotators), per)
    arms, domains = np.array(["none", "examples", "pairs"])[who % 3], np.array(["news", "story"])[who // 3 % 2]
    items = np.array(
        [f"{domain}{item}" for domain, item in zip(domains, draw.integers(0, n_items, len(who)), strict=True)]
    )
    lean = draw.normal(0, 0.5, n_annotators)[who]
    values = (draw.normal(0, 1, len(who)) + lean + 0.3 * (arms == "examples") > 0).astype(float)
    return values, arms, domains, who, items


def test_anova_agrees_with_the_reference_and_with_scipy():
    found, wanted = groups.one_way_anova(VALUES, GROUPS), GOLDEN["anova"]
    assert_allclose(
        [found.test.statistic, found.pvalue, found.estimate], [wanted["F"], wanted["p"], wanted["eta_squared"]],
        rtol=1e-9,
    )  # fmt: skip
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
    found = groups.pairwise(VALUES, GROUPS, method=method)
    for one, wanted in zip(found, GOLDEN[method], strict=True):
        assert (one.settings["x"], one.settings["y"]) == (wanted["x"], wanted["y"])
        assert_allclose([one.estimate, one.pvalue], [wanted["difference"], wanted["p"]], rtol=1e-6)
        assert one.test.pvalue_adjusted == one.pvalue and one.test.family_size == 6
        if "df" in wanted:
            assert_allclose(one.test.df, wanted["df"], rtol=1e-9)
    ours = [np.array(VALUES)[np.array(GROUPS) == name] for name in "abd"]
    three = groups.pairwise(np.concatenate(ours), np.repeat(list("abd"), [18, 25, 20]), method=method)
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


def test_what_a_pair_could_have_shown_stands_beside_it():
    for method in ("tukey_hsd", "games_howell"):
        for pair in groups.pairwise(VALUES, GROUPS, method=method):
            df = np.floor(pair.test.df)
            t = stats.t.ppf(1 - 0.05 / 6 / 2, df)
            reached = 1 - stats.nct.cdf(t, df, pair.detail["detectable"] / pair.detail["se"])
            assert_allclose(reached, 0.8, atol=1e-6)
    # Two groups of 130 with one variance: the plan for that many.
    values = np.r_[np.tile([0.0, 1.0], 65), np.tile([0.0, 1.0], 65)]
    (only,) = groups.pairwise(values, np.repeat(["a", "b"], 130), method="tukey_hsd")
    planned = power.two_sample_detectable(130, 130, sd_x=float(np.std(values[:130], ddof=1)), variances="equal")
    assert_allclose(only.detail["detectable"], planned, rtol=1e-6)


def test_the_papers_comparison_of_trainings_comes_back_from_its_effect_size():
    # Four conditions of 390 evaluators, Cohen's d .25: the paper prints p < .003, rounded as it is.
    published = GOLDEN["published"]["examples_against_none"]
    base = rng(1).normal(0, 1, 390)
    base = (base - base.mean()) / base.std(ddof=1)
    values = np.concatenate([base + shift for shift in (0, 0.1, published["cohen_d"], 0.15)])
    names = np.repeat(["0 none", "1 instructions", "2 examples", "3 comparison"], 390)
    found = groups.pairwise(values, names, method="tukey_hsd", mode="paper")[1]
    assert_allclose(abs(found.effect.value), 0.25, atol=1e-9)
    assert_allclose(found.test.statistic, published["q"], atol=0.005)
    assert_allclose(found.pvalue, published["p"], atol=5e-5)
    assert found.test.df == 1556


def test_swapping_groups_mirrors_and_affine_maps_change_no_test():
    values = np.array(VALUES)
    renamed = np.array([{"a": "d", "b": "c", "c": "b", "d": "a"}[name] for name in GROUPS])
    for method in ("tukey_hsd", "games_howell"):
        first = {(p.settings["x"], p.settings["y"]): p for p in groups.pairwise(values, GROUPS, method=method)}
        second = {(p.settings["x"], p.settings["y"]): p for p in groups.pairwise(values, renamed, method=method)}
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
        assert groups.pairwise([1, 2, 3], ["a", "a", "b"], method=method)[0].status == "n_lt_2"
        assert groups.pairwise([1, 1, 2, 2], list("aabb"), method=method)[0].status == "zero_variance"
        assert groups.pairwise([1, 2], ["a", "a"], method=method) == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        some = groups.pairwise([1, 1, 2, 2, 3, 4], list("aabbcc"), method="games_howell")
    assert [pair.status for pair in some] == ["zero_variance", "ok", "ok"]
    with pytest.raises(ValueError, match="method"):
        groups.pairwise([1, 2], ["a", "b"], method="lsd")
    with pytest.raises(ValueError, match="groups: expected 2"):
        groups.one_way_anova([1, 2], ["a"])


def test_the_difference_of_shares_agrees_with_statsmodels_and_scipy():
    for x, n_x, y, n_y in ((56, 70, 48, 80), (9, 10, 3, 10), (0, 10, 4, 20), (10, 10, 0, 20), (5, 56, 0, 29)):
        found = groups.share_difference(x, n_x, y, n_y)
        ends = proportion.confint_proportions_2indep(x, n_x, y, n_y, method="newcomb", compare="diff")
        assert_allclose([found.interval.low, found.interval.high], ends, atol=1e-9)
        assert_allclose(found.pvalue, stats.fisher_exact([[x, n_x - x], [y, n_y - y]]).pvalue)
        back = groups.share_difference(y, n_y, x, n_x)
        assert_allclose([back.estimate, back.interval.high], [-found.estimate, -found.interval.low], atol=1e-12)
    nobody = groups.share_difference(0, 20, 0, 30)
    assert (nobody.status, nobody.estimate, nobody.test) == ("zero_variance", 0, None)
    assert nobody.interval.low < 0 < nobody.interval.high
    assert groups.share_difference(0, 0, 1, 3).status == "no_data"
    with pytest.raises(ValueError, match="successes_y: 4"):
        groups.share_difference(1, 3, 4, 3)


def test_independence_agrees_with_scipy():
    table = np.array([[30, 10, 12], [20, 22, 9]])
    found = groups.independence(table)
    wanted = stats.chi2_contingency(table, correction=False)
    assert_allclose([found.test.statistic, found.pvalue], [wanted.statistic, wanted.pvalue], rtol=1e-9)
    assert found.test.df == 2 and found.test.name == "chi_square"
    assert_allclose(found.estimate, stats.contingency.association(table, method="cramer"))
    small = [[3, 1], [1, 5]]
    exact = groups.independence(small)
    assert exact.test.name == "fisher_exact"
    assert_allclose(exact.pvalue, stats.fisher_exact(small).pvalue)
    turned = groups.independence(table.T[::-1])
    assert_allclose([turned.pvalue, turned.estimate], [found.pvalue, found.estimate], rtol=1e-9)


def test_small_tables_are_resampled_and_without_a_generator_warn():
    table = [[4, 1, 0], [1, 3, 4]]
    found = groups.independence(table, rng=rng())
    assert found.test.name == "chi_square_resampled" and found.test.df is None
    # The exact p-value: every table with these margins.
    rows, columns = [5, 8], [5, 4, 4]
    total, extreme = 0.0, 0.0
    expected = np.outer(rows, columns) / 13
    seen = np.sum((np.array(table) - expected) ** 2 / expected)
    chances = stats.random_table(rows, columns)
    for a in range(6):
        for b in range(5):
            c = 5 - a - b
            if 0 <= c <= 4:
                one = np.array([[a, b, c], [5 - a, 4 - b, 4 - c]])
                chance = chances.pmf(one)
                total += chance
                extreme += chance * (np.sum((one - expected) ** 2 / expected) >= seen - 1e-9)
    assert_allclose(total, 1)
    assert_allclose(found.pvalue, extreme, atol=4 * np.sqrt(extreme / 9999))
    assert groups.independence(table).warned("small_expected")


def test_margins_without_anybody_are_statuses():
    assert groups.independence([[0, 0], [0, 0]]).status == "no_data"
    assert groups.independence([[3, 4]]).status == "not_identified"
    assert groups.independence([[3, 4], [0, 0]]).reason == "row 1 counts nobody"
    assert groups.independence([[3, 0, 4], [3, 0, 1]]).reason == "column 1 counts nobody"
    assert groups.independence([[3, 0], [5, 0]]).status == "zero_variance"
    with pytest.raises(ValueError, match="table"):
        groups.independence([[1.5, 2], [1, 1]])


def test_differential_attrition_says_who_was_lost_where():
    found = groups.differential_attrition([100, 100, 90], [8, 30, 9], ["none", "examples", "pairs"])
    assert [share.settings["condition"] for share in found.shares] == ["none", "examples", "pairs"]
    assert_allclose([share.estimate for share in found.shares], [0.08, 0.3, 0.1])
    assert [d.settings["condition"] for d in found.differences] == ["examples", "pairs"]
    assert_allclose(found.differences[0].estimate, 0.22)
    raw = [d.pvalue for d in found.differences]
    assert_allclose(found.differences[0].test.pvalue_adjusted, min(1, 2 * raw[0]))
    wanted = stats.chi2_contingency([[8, 92], [30, 70], [9, 81]], correction=False).pvalue
    assert_allclose(found.test.pvalue, wanted)
    from_pairs = groups.differential_attrition(
        [100, 100, 90], [8, 30, 9], ["none", "examples", "pairs"], reference="pairs"
    )
    assert [d.settings["reference"] for d in from_pairs.differences] == ["pairs", "pairs"]
    json.dumps(plain(found), allow_nan=False)


def test_attrition_edge_cases():
    nobody_lost = groups.differential_attrition([10, 10], [0, 0], ["a", "b"])
    assert (nobody_lost.test.status, nobody_lost.differences[0].status) == ("zero_variance", "zero_variance")
    empty_arm = groups.differential_attrition([10, 0], [1, 0], ["a", "b"])
    assert (empty_arm.shares[1].status, empty_arm.test.status) == ("no_data", "not_identified")
    assert groups.differential_attrition([], [], []).test.status == "no_data"
    for arguments, word in (
        (([10], [11], ["a"]), "lost: row 0 is 11"),
        (([10], [1, 2], ["a"]), "lost: 2"),
        (([10, 9], [1, 2], ["a", "a"]), "conditions"),
    ):
        with pytest.raises(ValueError, match=word):
            groups.differential_attrition(*arguments)
    with pytest.raises(ValueError, match="reference"):
        groups.differential_attrition([10], [1], ["a"], reference="z")


@pytest.mark.parametrize("link", ["identity", "probit", "logit"])
@pytest.mark.parametrize("seed", range(2))
def test_cell_contrasts_are_the_regression_with_two_way_clusters(seed, link):
    values, arms, _, who, items = answers(seed)
    found = groups.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, items, link=link)
    here = arms != "pairs"
    clusters_of = np.column_stack([who[here], pd.factorize(items[here])[0]])
    design = sm.add_constant((arms[here] == "examples").astype(float))
    families = {"probit": sm.families.links.Probit(), "logit": sm.families.links.Logit()}
    if link == "identity":
        fit = sm.OLS(values[here], design).fit(cov_type="cluster", cov_kwds={"groups": clusters_of})
        # The library's two-way covariance also has (N - 1) / (N - k) in it.
        factor = (here.sum() - 1) / (here.sum() - 2)
    else:
        model = sm.GLM(values[here], design, family=sm.families.Binomial(families[link]))
        fit = model.fit(cov_type="cluster", cov_kwds={"groups": clusters_of})
        factor = (here.sum() - 1) / (here.sum() - 2)
    assert_allclose(found.estimate, fit.params[1], rtol=1e-6)
    # With a canonical link expected and observed information are one; with the probit they differ a little.
    assert_allclose(found.detail["variance_two_way"] * factor, fit.cov_params()[1, 1], rtol=1e-6)
    assert found.detail["se"] ** 2 >= max(found.detail["variance_annotators"], found.detail["variance_items"]) - 1e-15
    assert found.detail["df"] == min(len(np.unique(who[here])), len(np.unique(items[here]))) - 1


def test_one_cell_is_the_clustered_mean():
    values, arms, _, who, items = answers(3)
    mine = arms == "none"
    one_way = groups.cell_contrast(values, arms, {"none": 1}, who, null=0.5, bounds=(0, 1))
    wanted = clusters.clustered_mean(values[mine], who[mine], null=0.5, bounds=(0, 1))
    assert_allclose([one_way.pvalue, one_way.interval.low], [wanted.pvalue, wanted.interval.low], rtol=1e-9)
    two_way = groups.cell_contrast(values, arms, {"none": 1}, who, items, null=0.5)
    wanted = clusters.two_way_mean(values[mine], who[mine], items[mine], null=0.5)
    assert_allclose([two_way.pvalue, two_way.interval.low], [wanted.pvalue, wanted.interval.low], rtol=1e-9)
    assert (two_way.n, two_way.n_rows) == (wanted.n, wanted.n_rows)


def test_the_edges_of_the_values_are_not_those_of_a_difference():
    values, arms, _, who, items = answers(3)
    for weights in ({"examples": 1, "none": -1}, {"examples": -1, "none": 1}):
        free = groups.cell_contrast(values, arms, weights, who, items).interval
        held = groups.cell_contrast(values, arms, weights, who, items, bounds=(0, 1)).interval
        assert_allclose([held.low, held.high], [free.low, free.high])
    few = np.repeat(np.arange(6), 2)
    far = groups.cell_contrast([1, 0] * 5 + [0, 1], ["a", "b"] * 6, {"a": 1, "b": -1}, few, bounds=(0, 1))
    assert far.interval.clipped and far.interval.high == 1 and -0.2 < far.interval.low < 0 < far.estimate


def test_without_items_a_contrast_is_the_jackknife_over_annotators():
    values, arms, _, who, _ = answers(4)
    found = groups.cell_contrast(values, arms, {"examples": 1, "none": -1}, who)
    here = arms != "pairs"
    design = np.column_stack([np.ones(here.sum()), arms[here] == "examples"])
    fit = clusters.clustered_regression(design, values[here], who[here])
    assert_allclose([found.estimate, found.detail["se"]], [fit.coefficients[1], np.sqrt(fit.covariance[1, 1])])
    assert_allclose(found.detail["df"], fit.df)


def test_labels_swap_and_repetition_of_a_contrast():
    values, arms, _, who, items = answers(5)
    there = groups.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, items)
    back = groups.cell_contrast(values, arms, {"examples": -1, "none": 1}, who, items)
    assert_allclose([there.estimate, there.pvalue], [-back.estimate, back.pvalue])
    order = rng(1).permutation(len(values))
    again = groups.cell_contrast(
        values[order], arms[order], {"none": -1, "examples": 1}, [f"x{900 - w}" for w in who[order]], items[order]
    )
    assert_allclose([there.estimate, there.pvalue], [again.estimate, again.pvalue], rtol=1e-9)
    for what in (items, None):
        once = groups.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, what)
        doubled = None if what is None else np.tile(what, 2)
        twice = groups.cell_contrast(
            np.tile(values, 2), np.tile(arms, 2), {"examples": 1, "none": -1}, np.tile(who, 2), doubled
        )
        assert_allclose(once.detail["se"], twice.detail["se"], rtol=1e-9)


def test_contrast_edge_cases_are_statuses():
    call = groups.cell_contrast
    cells, who = list("aabbaabb"), [1, 1, 2, 2, 3, 3, 4, 4]
    weights = {"a": 1, "b": -1}
    assert call([], [], weights, []).status == "no_data"
    assert call([1, 0], ["a", "a"], weights, [1, 2]).reason == "cell b has no value"
    assert call([1, 0] * 4, cells, {}, who).status == "no_data"
    assert call([1, 0, 1, 0], list("aabb"), weights, [1] * 4).status == "n_lt_2"
    # Annotator 1 alone gave the answers of cell a: leaving them out leaves nothing.
    assert call([1, 0, 1, 0, 1, 1], list("aabbbb"), weights, [1, 1, 2, 2, 3, 3]).status == "not_identified"
    coincide = call([1, 0, 1, 0, 1, 0, 1, 0], cells, weights, who)
    assert (coincide.status, coincide.test, coincide.estimate) == ("zero_variance", None, 0)
    for link in ("probit", "logit"):
        split = call([1, 1, 1, 0, 1, 1, 0, 0], cells, weights, who, link=link)
        assert (split.status, split.estimate) == ("separation", None)
        assert_allclose(split.detail["clopper_pearson"]["a"][1], 1)
        moved = call([1, 1, 1, 0, 1, 1, 0, 0], cells, weights, who, link=link, corrected=True)
        assert (moved.status, moved.interval) == ("separation", None) and moved.estimate > 0
    few = call([1, 0, 0, 0, 1, 1, 1, 0], cells, weights, who)
    assert few.test is None and [w.severity for w in few.warnings] == ["block"]
    for settings, word in (({"link": "log"}, "link"), ({"bounds": (0, 0.5)}, "values"), ({"level": 1}, "level")):
        with pytest.raises(ValueError, match=word):
            call([1, 0] * 4, cells, weights, who, **settings)
    with pytest.raises(ValueError, match="values: the probit link"):
        call([0.5, 0] * 4, cells, weights, who, link="probit")
    json.dumps(few.as_dict(), allow_nan=False)


def test_the_smallest_detectable_difference_stands_beside_a_contrast():
    values, arms, _, who, items = answers(6)
    found = groups.cell_contrast(values, arms, {"examples": 1, "none": -1}, who, items)
    t, se = stats.t.ppf(0.975, found.detail["df"]), found.detail["se"]
    # Noncentral t at the distance found has power .8.
    reached = 1 - stats.nct.cdf(t, found.detail["df"], found.detail["detectable"] / se)
    assert_allclose(reached, 0.8, atol=1e-6)


def test_the_condition_model_is_the_saturated_regression():
    values, arms, domains, who, items = answers(7, n_annotators=120)
    model = groups.condition_model(values, arms, domains, who, items, reference="none")
    means = pd.DataFrame({"v": values, "a": arms, "d": domains}).groupby(["a", "d"])["v"].mean()
    assert len(model.cells) == 6 and len(model.effects) == 2 and len(model.by_domain) == 4
    for cell in model.cells:
        assert_allclose(cell.estimate, means[cell.settings["condition"], cell.settings["domain"]])
        assert cell.test is None
    for effect in model.effects:
        inside = [d.estimate for d in model.by_domain if d.settings["condition"] == effect.settings["condition"]]
        assert_allclose(effect.estimate, np.mean(inside))
        assert effect.test is not None and effect.settings["reference"] == "none"
    assert (model.interaction.detail["df_between"], model.interaction.estimate) == (2, None)
    json.dumps(plain(model), allow_nan=False)


def test_the_interaction_is_the_wald_test_of_the_regression():
    values, arms, domains, who, _ = answers(8, n_annotators=180)
    data = pd.DataFrame({"v": values, "a": arms, "d": domains, "w": who})
    fit = smf.ols("v ~ C(a, Treatment('none')) * d", data).fit(
        cov_type="cluster", cov_kwds={"groups": data["w"]}, use_t=True
    )
    names = [name for name in fit.params.index if ":" in name]
    wanted = fit.f_test(np.eye(len(fit.params))[[list(fit.params.index).index(name) for name in names]])
    found = groups.condition_model(values, arms, domains, who, reference="none").interaction
    # CR1 there, the jackknife here: with 30 annotators in each of six cells their ratio is known.
    ratio = (179 / 180) ** 2 * (30 / 29) ** 2 * (1080 - 6) / (1080 - 1)
    hotelling = (179 - 2 + 1) / 179
    assert_allclose(found.test.statistic / hotelling * ratio, float(np.squeeze(wanted.fvalue)), rtol=1e-9)
    assert found.detail["df_within"] == 178
    assert found.detail["df_between"] == wanted.df_num
    # Where every row has an item of its own, items are rows and two ways are one.
    alone = groups.condition_model(values, arms, domains, who, np.arange(len(values)), reference="none").interaction
    assert_allclose(alone.test.statistic, float(np.squeeze(wanted.fvalue)) / ratio, rtol=1e-9)


def test_condition_model_edge_cases():
    values, arms, domains, who, items = answers(9, n_annotators=30)
    with pytest.raises(ValueError, match="reference: 'nobody'"):
        groups.condition_model(values, arms, domains, who, items, reference="nobody")
    one_domain = groups.condition_model(values, arms, ["x"] * len(values), who, items, reference="none")
    assert one_domain.interaction.status == "not_applicable"
    assert_allclose(one_domain.effects[0].estimate, one_domain.by_domain[0].estimate)
    hole = (arms == "pairs") & (domains == "news")
    holed = groups.condition_model(
        values[~hole], arms[~hole], domains[~hole], who[~hole], items[~hole], reference="none"
    )
    assert holed.interaction.status == "no_data"
    assert [cell.status for cell in holed.cells].count("no_data") == 1
    few = groups.condition_model(values, arms, domains, who % 5, reference="none")
    assert few.interaction.status == "not_identified"
    split = np.where((arms == "none") & (domains == "news"), 1.0, values)
    separated = groups.condition_model(split, arms, domains, who, items, reference="none", link="logit")
    assert separated.interaction.status == "separation"


@pytest.mark.slow
def test_contrasts_and_interactions_keep_their_level_where_annotators_and_texts_differ():
    rejected, runs = np.zeros(3), 1000
    for seed in range(runs):
        draw = rng(seed)
        who = np.repeat(np.arange(160), 5)
        arms, domains = who % 4, who // 4 % 3
        texts = 40 * domains + draw.integers(0, 40, 800)
        lean = draw.normal(0, 0.4, 160)[who] + draw.normal(0, 0.4, 120)[texts]
        model = groups.condition_model(
            (lean + draw.normal(0, 1, 800) > 0).astype(float), arms, domains, who, texts, reference=0
        )
        rejected += [model.interaction.pvalue < 0.05, model.effects[0].pvalue < 0.05, model.by_domain[0].pvalue < 0.05]
    assert np.all((rejected / runs > 0.02) & (rejected / runs < 0.07)), rejected / runs


@pytest.mark.slow
def test_games_howell_keeps_its_level_where_tukey_does_not():
    rejected, runs = {"tukey_hsd": 0, "games_howell": 0}, 500
    for seed in range(runs):
        draw = rng(seed)
        values = np.concatenate([draw.normal(0, s, n) for s, n in ((3, 10), (1, 40), (1, 40))])
        names = np.repeat(list("abc"), [10, 40, 40])
        for method in rejected:
            rejected[method] += min(pair.pvalue for pair in groups.pairwise(values, names, method=method)) < 0.05
    assert rejected["games_howell"] / runs < 0.075
    assert rejected["tukey_hsd"] / runs > 0.15
