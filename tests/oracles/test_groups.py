"""Independent groups and single samples against R's stats."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import basic, groups
from tests.oracles import EXACT, reference

GROUPS = reference("groups")
VALUES, ARMS = GROUPS["data"]["value"], GROUPS["data"]["group"]


@pytest.mark.parametrize(("name", "test"), [("anova", groups.one_way_anova), ("welch", groups.welch_anova)])
def test_analyses_of_variance_are_those_of_oneway_test(name, test):
    result, expected = test(VALUES, ARMS), GROUPS[name]
    found = [result.test.statistic, result.detail["df_between"], result.detail["df_within"], result.pvalue]
    assert_allclose(found, [expected[key] for key in ("statistic", "num df", "denom df", "p")], rtol=EXACT)


@pytest.mark.parametrize("method", ["tukey_hsd", "games_howell"])
def test_pairs_of_groups_have_the_differences_and_pvalues_of_r(method):
    """R finds the quantile of the range to four digits, so the ends of its intervals have no more."""
    expected = np.array(GROUPS[method])
    found = groups.pairwise_comparisons(VALUES, ARMS, method=method)
    assert_allclose([one.estimate for one in found], expected[:, 0], rtol=EXACT)
    assert_allclose([one.pvalue for one in found], expected[:, 3], atol=1e-8)
    assert_allclose([[one.interval.low, one.interval.high] for one in found], expected[:, 1:3], atol=1e-5)


@pytest.mark.parametrize("row", GROUPS["range"], ids=str)
def test_the_studentised_range_is_that_of_ptukey(row):
    q, k, df, pvalue = row
    assert_allclose(groups.studentized_range_sf(q, k, df), pvalue, atol=1e-8)


def test_t_tests_are_those_of_t_test():
    one = basic.one_sample_t_test(VALUES[ARMS == "c"], null=0.6)
    two = basic.welch_t_test(VALUES[ARMS == "a"], VALUES[ARMS == "c"])
    for result, expected in ((one, GROUPS["one_sample"]), (two, GROUPS["two_samples"])):
        found = [result.test.statistic, result.test.df, result.pvalue, result.interval.low, result.interval.high]
        assert_allclose(
            found, [*(expected[key] for key in ("statistic", "df", "p")), *expected["interval"]], rtol=EXACT
        )


@pytest.mark.parametrize(("correction", "name"), [(False, "plain"), (True, "corrected")])
def test_signed_ranks_with_ties_and_zeros_are_those_of_wilcox_test(correction, name):
    """R leaves zeros out; our default splits them."""
    expected = GROUPS["signed_ranks"]
    result = basic.wilcoxon(expected["values"], zero_method="wilcox", method="asymptotic", correction=correction)
    assert_allclose(result.pvalue, expected[name], rtol=EXACT)


def test_shares_are_those_of_binom_test_prop_test_and_fisher_test():
    share, two = GROUPS["share"], GROUPS["two_shares"]
    counts = share["successes"], share["n"]
    assert_allclose(basic.clopper_pearson_interval(*counts), share["clopper_pearson"], rtol=EXACT)
    assert_allclose(basic.wilson_interval(*counts), share["wilson"], rtol=EXACT)
    assert_allclose(basic.proportion(*counts, null=0.5).pvalue, share["p"], rtol=EXACT)
    fisher = groups.share_difference(two["successes_x"], two["n_x"], two["successes_y"], two["n_y"])
    assert_allclose(fisher.pvalue, two["fisher"], rtol=EXACT)
