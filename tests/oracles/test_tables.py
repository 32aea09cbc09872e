"""Agreement, adjusted p-values and power against vcd, psych and R's stats."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import agreement, coding, multiplicity, power_of_means, power_of_shares, reliability
from tests.oracles import EXACT, reference

AGREEMENT, POWER = reference("agreement"), reference("power")


@pytest.mark.parametrize(("weights", "name"), [(None, "plain"), ("linear", "linear"), ("quadratic", "quadratic")])
def test_cohens_kappa_is_that_of_vcd(weights, name):
    rows, (estimate, se) = AGREEMENT["kappa"]["data"], AGREEMENT["kappa"][name]
    result = coding.cohen_kappa(rows["first"], rows["second"], weights=weights)
    assert_allclose([result.estimate, result.detail["se"]], [estimate, se], rtol=EXACT)


def test_a_jackknife_decides_between_vcd_and_psych_for_the_weighted_kappa():
    first, second = (np.array(AGREEMENT["kappa"]["data"][name]) for name in ("first", "second"))
    without = [
        coding.cohen_kappa(np.delete(first, one), np.delete(second, one), weights="quadratic").estimate
        for one in range(len(first))
    ]
    jackknife = (len(without) - 1) * np.var(without)
    assert_allclose(jackknife, AGREEMENT["kappa"]["quadratic"][1] ** 2, rtol=0.1)
    assert jackknife / AGREEMENT["kappa"]["psych_variance_quadratic"] > 1.1


def test_interval_alpha_follows_from_an_analysis_of_variance():
    scores = np.array(AGREEMENT["scores"])
    counts, values = agreement.value_counts_by_unit(np.tile(np.arange(scores.shape[1]), len(scores)), scores.ravel())
    result = agreement.krippendorff_alpha(
        counts, values, level_of_measurement="interval", rng=np.random.default_rng(0), resamples=99
    )
    assert_allclose(result.estimate, AGREEMENT["alpha_interval"], rtol=EXACT)


def test_kendalls_w_has_friedmans_test_with_ties():
    expected = AGREEMENT["friedman"]
    result = reliability.kendall_w(expected["scores"])
    assert_allclose([result.test.statistic, result.pvalue], [expected["chi2"], expected["p"]], rtol=EXACT)
    n, k = np.shape(expected["scores"])
    assert_allclose(result.estimate, expected["chi2"] / (n * (k - 1)), rtol=EXACT)


NAMES = {"holm": "holm", "bonferroni": "bonferroni", "benjamini_hochberg": "BH", "hommel": "hommel"}


@pytest.mark.parametrize("method", multiplicity.METHODS)
@pytest.mark.parametrize("family", reference("multiplicity"))
def test_adjusted_pvalues_are_those_of_p_adjust(method, family):
    numbers = reference("multiplicity")[family]
    assert_allclose(multiplicity.METHODS[method](numbers["p"]), numbers[NAMES[method]], rtol=EXACT)


@pytest.mark.parametrize("row", POWER["one_sample"], ids=str)
def test_the_power_of_one_sample_is_that_of_power_t_test(row):
    assert_allclose(power_of_means.t_test_power(row["effect"], row["n"]), row["power"], rtol=EXACT)


def test_the_least_number_is_the_next_whole_one():
    assert power_of_means.n_for_t_test(0.35) == math.ceil(POWER["n_one_sample"])


@pytest.mark.parametrize("row", POWER["two_sample"], ids=str)
def test_the_power_of_two_samples_is_that_of_power_t_test(row):
    n = row["n"]
    pooled = power_of_means.two_sample_t_test_power(row["effect"], n, n, variances="equal")
    assert_allclose(pooled, row["power"], rtol=EXACT)
    # Welch's test estimates two variances. With equal ones it has a little less power: .004 with twelve people each.
    welch = power_of_means.two_sample_t_test_power(row["effect"], n, n)
    assert 0 < pooled - welch < 0.05 / n


@pytest.mark.parametrize("row", POWER["anova"], ids=str)
def test_the_power_of_several_groups_is_that_of_power_anova_test(row):
    """R takes the variance of the group means with k - 1, Cohen's f with k; the variance within groups is .05."""
    k = row["groups"]
    effect = math.sqrt(row["between"] * (k - 1) / k / 0.05)
    assert_allclose(power_of_means.anova_power(effect, [row["n"]] * k), row["power"], rtol=EXACT)


@pytest.mark.parametrize("row", POWER["two_shares"], ids=str)
def test_the_power_of_two_shares_is_that_of_all_tables_that_fisher_test_rejects(row):
    ours = power_of_shares.two_proportions_power(row["p_x"], row["p_y"], row["n"], row["n"])
    assert_allclose(ours, row["fisher"], rtol=EXACT)
    # power.prop.test is about the normal approximation, which rejects more often than Fisher's exact test.
    assert 0.05 < row["normal"] - ours < 0.09


@pytest.mark.parametrize("row", POWER["paired_shares"], ids=str)
def test_the_power_of_paired_shares_is_that_of_all_tables_that_binom_test_rejects(row):
    ours = power_of_shares.paired_proportions_power(row["only_x"], row["only_y"], row["n"])
    assert_allclose(ours, row["power"], rtol=EXACT)
