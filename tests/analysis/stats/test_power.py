import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats
from statsmodels.stats.power import FTestAnovaPower, TTestIndPower, TTestPower

from analysis.stats import basic, groups, margins, power_of_means, power_of_shares
from tests.analysis.stats.golden import golden

GOLDEN = golden("power")


def test_power_agrees_with_the_references():
    for row in GOLDEN["one_sample_t"]:
        assert_allclose(
            power_of_means.t_test_power(row["d"], row["n"], significance=row["alpha"]), row["power"], atol=1e-9
        )
    case = GOLDEN["one_sample_t_d04_level001"]
    found = [power_of_means.t_test_power(0.4, n, significance=0.001) for n in case["input"]["n"]]
    assert_allclose(found, case["expected"]["power"], atol=1e-8)


def test_the_printed_tables_hold():
    for setting, by_n in GOLDEN["by_sd_and_difference"].items():
        sd, effect = (float(part.split("=")[1]) for part in setting.split("|"))
        for n, by_level in by_n.items():
            for level, wanted in by_level.items():
                found = power_of_means.t_test_power(effect / sd, int(n[2:]), significance=float(level[2:]))
                assert abs(found - wanted) < 6e-4, (setting, n, level)
    for setting, wanted in GOLDEN["detectable_difference"].items():
        sd, n, family = setting.split("|")
        tests = 5 if "/5" in family else 1
        assert (
            abs(power_of_means.t_test_detectable_difference(int(n[2:]), sd=float(sd[3:]), tests=tests) - wanted) < 6e-5
        ), setting


def test_equivalence_sample_sizes_are_those_of_the_table():
    for setting, wanted in GOLDEN["equivalence_n"].items():
        sd, margin = (float(part.split("=")[1]) for part in setting.split("|"))
        assert power_of_means.n_for_equivalence(sd=sd, margin=margin) == wanted, setting


def test_observed_power_is_a_function_of_the_pvalue():
    for pvalue, by_level in GOLDEN["observed_power_n90"].items():
        effect = stats.t.isf(float(pvalue) / 2, 89) / np.sqrt(90)
        for level, wanted in by_level.items():
            assert abs(power_of_means.t_test_power(effect, 90, significance=float(level[2:])) - wanted) < 6e-4


@pytest.mark.parametrize("effect,n", [(0.1, 10), (0.8, 5), (2.0, 300), (0.0, 50)])
def test_power_agrees_with_statsmodels_also_far_out(effect, n):
    assert_allclose(power_of_means.t_test_power(effect, n), TTestPower().power(effect, n, 0.05), atol=1e-9)


@pytest.mark.parametrize("effect,n", [(5.0, 100), (30.0, 1000), (500.0, 50)])
def test_power_is_a_number_in_the_far_tail(effect, n):
    assert power_of_means.t_test_power(effect, n) == 1.0


def test_the_three_solutions_undo_one_another():
    n = power_of_means.n_for_t_test(0.3)
    assert power_of_means.t_test_power(0.3, n) >= 0.8 > power_of_means.t_test_power(0.3, n - 1)
    assert_allclose(
        power_of_means.t_test_power(power_of_means.t_test_detectable_difference(60, sd=0.25) / 0.25, 60), 0.8, atol=1e-8
    )
    n = power_of_means.n_for_equivalence(sd=0.3, margin=0.1)
    assert (
        power_of_means.equivalence_power(n, sd=0.3, margin=0.1)
        >= 0.8
        > power_of_means.equivalence_power(n - 1, sd=0.3, margin=0.1)
    )


def test_equivalence_power_is_what_the_test_does():
    rng = np.random.default_rng(0)
    found = np.mean(
        [
            margins.equivalence_test(rng.normal(0.52, 0.3, 60), null=0.5, margin=0.1).detail["is_equivalent"]
            for _ in range(1500)
        ]
    )
    wanted = power_of_means.equivalence_power(60, sd=0.3, margin=0.1, difference=0.02)
    assert abs(found - wanted) < 3.5 * np.sqrt(wanted * (1 - wanted) / 1500)


def test_impossible_plans_are_refused():
    with pytest.raises(ValueError, match="n: 1"):
        power_of_means.t_test_power(0.5, 1)
    with pytest.raises(ValueError, match="effect of 0"):
        power_of_means.n_for_t_test(0)
    with pytest.raises(ValueError, match="difference"):
        power_of_means.n_for_equivalence(sd=0.3, margin=0.05, difference=0.05)
    with pytest.raises(ValueError, match="more than"):
        power_of_means.n_for_t_test(1e-5)


def test_two_groups_agree_with_statsmodels():
    for d, n, ratio, level in [(0.1, 4, 1, 0.05), (0.3, 20, 2, 0.05), (1.0, 150, 1, 0.001), (0.25, 130, 1, 0.05 / 15)]:
        found = power_of_means.two_sample_t_test_power(d, n, n * ratio, variances="equal", significance=level)
        assert_allclose(found, TTestIndPower().power(d, n, level, ratio), atol=1e-9)
    # The arms of the training study: .17 at .05 / 15 and .52 at .05 for 130, .71 and .94 for 390.
    for n, strict, usual in [(130, 0.17, 0.52), (390, 0.71, 0.94)]:
        assert abs(power_of_means.two_sample_t_test_power(0.25, n, n, significance=0.05 / 15) - strict) < 0.005
        assert abs(power_of_means.two_sample_t_test_power(0.25, n, n) - usual) < 0.005
    assert power_of_means.n_for_two_sample_t_test(0.5, variances="equal") == (64, 64)
    # 315 is the normal approximation, 2 (z + z)^2 / d^2; the test needs two more.
    assert power_of_means.n_for_two_sample_t_test(0.05, sd_x=0.224) == (317, 317)
    assert power_of_means.two_sample_t_test_power(0.05, 315, 315, sd_x=0.224) < 0.8


@pytest.mark.parametrize(
    "difference,n_x,n_y,sd_x,sd_y", [(0.5, 20, 60, 1, 2), (1.5, 5, 5, 1, 1), (3, 3, 8, 1, 3), (0, 4, 12, 3, 1)]
)
def test_power_of_welch_is_what_the_test_does(difference, n_x, n_y, sd_x, sd_y):
    rng, runs = np.random.default_rng(0), 40_000
    x, y = rng.normal(difference, sd_x, (runs, n_x)), rng.normal(0, sd_y, (runs, n_y))
    found = np.mean(stats.ttest_ind(x, y, axis=1, equal_var=False).pvalue < 0.05)
    wanted = power_of_means.two_sample_t_test_power(difference, n_x, n_y, sd_x=sd_x, sd_y=sd_y)
    assert abs(found - wanted) < 3.5 * np.sqrt(wanted * (1 - wanted) / runs)
    assert_allclose(
        power_of_means.two_sample_t_test_power(-difference, n_y, n_x, sd_x=sd_y, sd_y=sd_x), wanted, atol=1e-12
    )


def test_welch_costs_next_to_nothing_where_the_variances_are_equal():
    pooled = power_of_means.two_sample_t_test_power(0.25, 130, 130, variances="equal")
    assert 0 < pooled - power_of_means.two_sample_t_test_power(0.25, 130, 130) < 1e-4
    # G of two: hardly any power, but a number.
    assert 0.02 < power_of_means.two_sample_t_test_power(0.5, 2, 2) < 0.05


def test_analysis_of_variance_agrees_with_statsmodels():
    for effect, k, n, level in [(0.05, 2, 12, 0.05), (0.25, 3, 60, 0.001), (0.8, 6, 60, 0.05), (0.1, 3, 600, 0.01)]:
        found = power_of_means.anova_power(effect, [n // k] * k, significance=level)
        assert_allclose(found, FTestAnovaPower().power(effect, n, level, k), atol=1e-12)
    assert power_of_means.n_per_group_for_anova(0.25, 3) == 53 and power_of_means.n_per_group_for_anova(0.25, 4) == 45
    assert_allclose(
        power_of_means.anova_power(power_of_means.anova_detectable_effect([20, 30, 40]), [20, 30, 40]), 0.8, atol=1e-8
    )
    # Two groups: the square of Student's t, whatever their sizes.
    f = math.sqrt(20 * 50) / 70 * 0.6
    assert_allclose(
        power_of_means.anova_power(f, [20, 50]),
        power_of_means.two_sample_t_test_power(0.6, 20, 50, variances="equal"),
        atol=1e-9,
    )


@pytest.mark.parametrize("null,significance", [(0.5, 0.05), (0.8, 0.01), (0.03, 0.05)])
def test_power_of_a_share_counts_the_outcomes_that_the_test_rejects(null, significance):
    for n in (1, 5, 17, 60):
        rejected = [k for k in range(n + 1) if stats.binomtest(k, n, null).pvalue <= significance]
        for p in (0.1, 0.5, 0.9, 1.0):
            found = power_of_shares.proportion_power(p, n, null=null, significance=significance)
            assert_allclose(found, stats.binom.pmf(rejected, n, p).sum(), atol=1e-12)


def test_the_size_for_a_share_is_the_references_and_holds_from_there_on():
    assert [power_of_shares.n_for_proportion(p) for p in (0.55, 0.60, 0.65)] == GOLDEN["binomial_n_for_80"]
    for p, null in [(0.6, 0.5), (0.9, 0.8), (0.7, 0.8)]:
        n = power_of_shares.n_for_proportion(p, null=null)
        later = [power_of_shares.proportion_power(p, size, null=null) for size in range(n, n + 200)]
        assert power_of_shares.proportion_power(p, n - 1, null=null) < 0.8 <= min(later)


@pytest.mark.parametrize("p_x,p_y,n_x,n_y", [(0.5, 0.7, 12, 12), (0.1, 0.5, 9, 14), (0, 1, 4, 4), (1, 0.5, 9, 1)])
def test_power_of_two_shares_counts_the_tables_that_the_test_rejects(p_x, p_y, n_x, n_y):
    wanted = 0.0
    for k in range(n_x + 1):
        for j in range(n_y + 1):
            pvalue = groups.share_difference(k, n_x, j, n_y).pvalue
            if pvalue is not None and pvalue <= 0.05:
                wanted += stats.binom.pmf(k, n_x, p_x) * stats.binom.pmf(j, n_y, p_y)
    assert_allclose(power_of_shares.two_proportions_power(p_x, p_y, n_x, n_y), wanted, atol=1e-12)
    assert_allclose(power_of_shares.two_proportions_power(p_y, p_x, n_y, n_x), wanted, atol=1e-12)


def test_two_shares_keep_their_power_from_n_on():
    n, other = power_of_shares.n_for_two_proportions(0.5, 0.7)
    assert n == other
    later = [power_of_shares.two_proportions_power(0.5, 0.7, size, size) for size in range(n, n + 60, 3)]
    assert power_of_shares.two_proportions_power(0.5, 0.7, n - 1, n - 1) < 0.8 <= min(later)
    # 24 reach .6 and 25 fall short of it again.
    saw = [power_of_shares.two_proportions_power(0.1, 0.4, size, size) for size in (24, 25, 26)]
    assert saw[1] < 0.6 <= min(saw[0], saw[2])
    assert power_of_shares.n_for_two_proportions(0.1, 0.4, power=0.6) == (26, 26)
    distance = power_of_shares.two_proportions_detectable_increase(0.5, 93, 93)
    assert_allclose(power_of_shares.two_proportions_power(0.5 + distance, 0.5, 93, 93), 0.8, atol=1e-6)


@pytest.mark.parametrize("only_x,only_y,n", [(0.25, 0.1, 25), (0.6, 0.4, 12), (0.05, 0.0, 20)])
def test_power_of_paired_shares_counts_what_the_sign_test_rejects(only_x, only_y, n):
    wanted = 0.0
    for discordant in range(1, n + 1):
        for k in range(discordant + 1):
            if basic.sign_test([1] * k + [-1] * (discordant - k)).pvalue <= 0.05:
                chance = stats.binom.pmf(k, discordant, only_x / (only_x + only_y))
                wanted += stats.binom.pmf(discordant, n, only_x + only_y) * chance
    assert_allclose(power_of_shares.paired_proportions_power(only_x, only_y, n), wanted, atol=1e-12)


def test_paired_shares_invert():
    n = power_of_shares.n_for_paired_proportions(0.25, 0.10)
    at = [power_of_shares.paired_proportions_power(0.25, 0.10, size) for size in range(n - 1, n + 40)]
    assert at[0] < 0.8 <= min(at[1:])
    distance = power_of_shares.paired_proportions_detectable_difference(0.35, 100)
    found = power_of_shares.paired_proportions_power((0.35 + distance) / 2, (0.35 - distance) / 2, 100)
    assert_allclose(found, 0.8, atol=1e-6)


def test_a_family_asks_for_more():
    assert power_of_means.two_sample_detectable_difference(
        60, 60, tests=5
    ) > power_of_means.two_sample_detectable_difference(60, 60)
    assert power_of_means.anova_detectable_effect([30] * 3, tests=5) > power_of_means.anova_detectable_effect([30] * 3)
    assert power_of_shares.n_for_proportion(0.6, tests=5) > 210
    assert power_of_shares.n_for_two_proportions(0.5, 0.7, tests=3)[0] > 102
    assert power_of_shares.n_for_paired_proportions(0.25, 0.1, tests=3) > 129
    assert_allclose(
        power_of_means.two_sample_t_test_power(
            power_of_means.two_sample_detectable_difference(60, 60, tests=5), 60, 60, significance=0.01
        ),
        0.8,
        atol=1e-8,
    )


def test_a_tail_that_is_not_a_number_counts_as_its_limit():
    assert np.isnan(special.nctdtr(89, 20.0, -3.4))
    assert power_of_means.power_from_tails(0.8, float("nan")) == 0.8
    assert (
        power_of_means.power_from_tails(float("nan"), 0.0) == 1.0
        and power_of_means.power_from_tails(float("nan"), upper_if_nan=0.5) == 0.5
    )
    assert power_of_means.power_from_tails(0.9, 0.2) == 1.0 and power_of_means.power_from_tails(-1e-17) == 0.0
    assert_allclose(
        [power_of_means.anova_power(50.0, [500] * 3), power_of_means.two_sample_t_test_power(500.0, 40, 40)],
        1.0,
        atol=1e-12,
    )


@pytest.mark.parametrize(
    "call,named",
    [
        (lambda: power_of_means.two_sample_t_test_power(0.5, 1, 9), "n_x: 1"),
        (lambda: power_of_means.two_sample_t_test_power(0.5, 9, 9, sd_y=0.0), "sd_y: 0"),
        (lambda: power_of_means.two_sample_t_test_power(0.5, 9, 9, sd_y=2.0, variances="equal"), "sd_y"),
        (lambda: power_of_means.two_sample_t_test_power(0.5, 9, 9, variances="other"), "variances"),
        (lambda: power_of_means.n_for_two_sample_t_test(0.0), "difference"),
        (lambda: power_of_means.n_for_two_sample_t_test(0.5, ratio=0), "ratio"),
        (lambda: power_of_means.anova_power(0.2, [5]), "sizes"),
        (lambda: power_of_means.n_per_group_for_anova(0.0, 3), "effect"),
        (lambda: power_of_shares.proportion_power(1.2, 10), "p: 1.2"),
        (lambda: power_of_shares.proportion_power(0.5, 10, null=1), "null: 1"),
        (lambda: power_of_shares.n_for_proportion(0.5), "p: no number"),
        (lambda: power_of_shares.n_for_proportion(0.5001), "more than"),
        (lambda: power_of_shares.proportion_detectable_increase(5), "too few units"),
        (lambda: power_of_shares.two_proportions_power(0.5, 0.5, 0, 3), "n_x: 0"),
        (lambda: power_of_shares.n_for_two_proportions(0.5, 0.5), "p_x"),
        (lambda: power_of_shares.two_proportions_detectable_increase(1.0, 30, 30), "too few units"),
        (lambda: power_of_shares.paired_proportions_power(0.7, 0.6, 10), "only_x"),
        (lambda: power_of_shares.n_for_paired_proportions(0.2, 0.2), "only_x"),
        (lambda: power_of_means.anova_detectable_effect([9, 9], tests=0), "tests: 0"),
    ],
)
def test_impossible_comparisons_are_refused_by_name(call, named):
    with pytest.raises(ValueError, match=named):
        call()
