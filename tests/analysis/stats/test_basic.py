import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.stats import basic
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("basic")


def test_one_sample_agrees_with_the_reference():
    wanted = GOLDEN["one_sample_t"]
    result = basic.one_sample_t_test(wanted["x"], null=0.5)
    assert_allclose(
        [result.estimate, result.detail["sd"], result.detail["se"], result.test.statistic, result.pvalue],
        [wanted["mean"], wanted["sd"], wanted["se"], wanted["t"], wanted["p"]],
        atol=1e-9,
    )
    assert (result.n, result.test.df) == (10, 9)
    assert_allclose([result.interval.low, result.interval.high], wanted["ci"], atol=1e-9)
    assert_allclose([result.effect.value, result.effect.hedges_g], [wanted["d"], wanted["hedges_g"]], atol=1e-9)
    assert_allclose([result.effect.low, result.effect.high], wanted["d_ci"], atol=1e-9)


def test_paired_agrees_with_the_reference_and_with_one_sample_on_the_differences():
    case = GOLDEN["paired_t"]
    x, y = np.array(case["input"]["a"], float), np.array(case["input"]["b"], float)
    wanted = case["expected"]
    result = basic.paired_t_test(x, y)
    assert result.test.name == "paired_t"
    assert_allclose(
        [result.estimate, result.test.statistic, result.pvalue], [wanted["delta"], wanted["t"], wanted["p"]]
    )
    assert_allclose([result.interval.low, result.interval.high], wanted["ci95"], atol=1e-9)
    assert_allclose(result.effect.value, wanted["dz"], atol=1e-9)
    assert result.pvalue == basic.one_sample_t_test(x - y, null=0).pvalue


def test_wilcoxon_agrees_with_the_reference():
    case = GOLDEN["paired_t"]
    x, y = np.array(case["input"]["a"], float), np.array(case["input"]["b"], float)
    result = basic.wilcoxon(x - y, zero_method="wilcox", method="asymptotic")
    assert result.test.statistic == case["expected"]["wilcoxon_W"]
    assert_allclose(result.pvalue, case["expected"]["wilcoxon_p_normal_no_cc"], atol=1e-9)
    assert "not the mean" in result.estimand
    assert result.settings["zero_method"] == "wilcox" and result.settings["method"] == "asymptotic"


@pytest.mark.slow
@pytest.mark.parametrize("zero_method", ["zsplit", "wilcox"])
def test_the_exact_wilcoxon_test_counts_all_signs_with_ties_and_zeros(zero_method):
    """All samples of two to five numbers from -2 to 3, beside scipy's permutations."""
    n_cases = 0
    for size in range(2, 6):
        for values in itertools.combinations_with_replacement(range(-2, 4), size):
            if any(values) and (size - values.count(0) > 1 or zero_method == "zsplit"):
                expected = stats.wilcoxon(
                    values, zero_method=zero_method, method=stats.PermutationMethod(n_resamples=np.inf)
                )
                found = basic.wilcoxon(values, zero_method=zero_method)
                assert_allclose([found.test.statistic, found.pvalue], [expected.statistic, expected.pvalue], atol=1e-12)
                assert found.settings["method"] == "exact" and found.pvalue >= 2 / 2 ** (size - values.count(0)) - 1e-12
                n_cases += 1
    assert n_cases > 400


def test_the_exact_wilcoxon_test_agrees_with_tables_and_ends_at_fifty():
    rng = np.random.default_rng(5)
    for n in (5, 8, 20, 50):
        values = rng.normal(0.4, 1, n)
        assert_allclose(basic.wilcoxon(values).pvalue, stats.wilcoxon(values, method="exact").pvalue, rtol=1e-9)
    values = rng.normal(0.3, 1, 60)
    result, exact = basic.wilcoxon(values), basic.wilcoxon(values, method="exact")
    assert result.settings["method"] == "asymptotic" and exact.settings["method"] == "exact"
    assert abs(result.pvalue - exact.pvalue) < 0.005
    # Values equal to the null say nothing, so they do not count.
    assert basic.wilcoxon([*values[:40], *[0] * 20]).settings["method"] == "exact"
    with pytest.raises(ValueError, match="method: 'approx' is not auto, exact or asymptotic"):
        basic.wilcoxon([1, 2], method="approx")


def test_paired_counts_those_it_drops():
    result = basic.paired_t_test([1, 2, None, 4], [1, np.nan, 3, 2])
    assert (result.n, result.detail["n_complete"], result.detail["n_dropped"]) == (2, 2, 2)
    with pytest.raises(ValueError, match="y: 1 values where x has 2"):
        basic.paired_t_test([1, 2], [1])


def test_welch_agrees_with_the_reference():
    case = GOLDEN["two_sample"]
    result = basic.welch_t_test(case["input"]["a"], case["input"]["b"])
    wanted = case["expected"]
    assert_allclose(
        [result.test.statistic, result.test.df, result.pvalue, result.effect.value, result.effect.hedges_g],
        [wanted["welch_t"], wanted["welch_df"], wanted["welch_p"], wanted["d"], wanted["g"]],
        atol=1e-9,
    )
    reference = stats.ttest_ind(case["input"]["a"], case["input"]["b"], equal_var=False).confidence_interval()
    assert_allclose([result.interval.low, result.interval.high], [reference.low, reference.high], atol=1e-12)


def test_proportion_agrees_with_the_references():
    case = GOLDEN["wilson"]
    for k, n, wanted in zip(case["input"]["k"], case["input"]["n"], case["expected"]["ci"], strict=True):
        result = basic.proportion(k, n, null=0.5)
        assert_allclose([result.interval.low, result.interval.high], wanted, atol=1e-10)
        exact = result.detail["clopper_pearson"]
        assert_allclose([exact["low"], exact["high"]], proportion_confint(k, n, method="beta"), atol=1e-10)
        assert_allclose(result.pvalue, stats.binomtest(k, n, 0.5).pvalue)


@pytest.mark.parametrize("null", [0.0, 0.05, 1 / 3, 0.5, 0.9, 1.0])
def test_the_exact_test_of_a_share_agrees_with_scipy(null):
    for n in (1, 7, 40, 3000):
        for k in {0, 1, n // 3, round(n * null), n - 1, n}:
            expected = min(1.0, stats.binomtest(k, n, null).pvalue)
            assert_allclose(basic.proportion(k, n, null=null).pvalue, expected, rtol=1e-10, atol=1e-300)


def test_sign_test_drops_ties_and_says_how_many():
    values = [0.6, 0.9, 0.5, 0.5, 0.3, 0.8]
    result = basic.sign_test(values, null=0.5)
    assert (result.n, result.detail["n_ties"], result.estimate) == (4, 2, 0.75)
    assert_allclose(result.pvalue, stats.binomtest(3, 4).pvalue)


def test_exact_sign_flips_agree_with_scipy():
    values = np.array([0.12, -0.3, 0.45, 0.2, 0.05, 0.31, -0.02])
    (pvalue,), is_exact = basic.sign_flip_pvalues(values[:, None], rng=rng())
    reference = stats.permutation_test(
        (values,),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert is_exact
    assert_allclose(pvalue, reference.pvalue)


def test_random_sign_flips_are_near_the_exact_answer_and_never_zero():
    values = rng(1).normal(0.1, 1, (12, 1))
    (exact,), is_exact = basic.sign_flip_pvalues(values, resamples=2**12, rng=rng())
    (random,), is_random_exact = basic.sign_flip_pvalues(values, resamples=2**12 - 1, rng=rng())
    assert is_exact and not is_random_exact
    assert abs(exact - random) < 4 * math.sqrt(exact * (1 - exact) / 4095)
    apart = 1 + rng().normal(0, 0.01, (40, 1))
    assert basic.sign_flip_pvalues(apart, resamples=99, rng=rng())[0].tolist() == [0.01]


def test_columns_share_their_flips_and_a_missing_value_takes_no_part():
    values = rng(2).normal(0.2, 1, (40, 3))
    with_gap = np.column_stack([values, np.where(np.arange(40) < 20, values[:, 0], np.nan)])
    pvalues, _ = basic.sign_flip_pvalues(with_gap, resamples=9999, rng=rng())
    assert_allclose(pvalues[0], basic.sign_flip_pvalues(values[:, :1], rng=rng())[0])
    assert abs(pvalues[3] - basic.sign_flip_pvalues(values[:20, :1], rng=rng(5))[0]) < 0.02


# The law of edge cases, row by row.


def test_no_value_is_no_data():
    for result in (
        basic.one_sample_t_test([], null=0.5),
        basic.one_sample_t_test([None, np.nan], null=0.5),
        basic.paired_t_test([], []),
        basic.welch_t_test([], [1, 2]),
        basic.proportion(0, 0, null=0.5),
        basic.sign_test([]),
        basic.wilcoxon([]),
    ):
        assert (result.status, result.estimate, result.interval, result.test) == ("no_data", None, None, None)


def test_one_value_is_itself_without_interval_or_test():
    result = basic.one_sample_t_test([0.7], null=0.5)
    assert (result.status, result.estimate, result.interval, result.test) == ("n_lt_2", 0.7, None, None)
    assert basic.welch_t_test([1.0], [2.0, 3.0]).status == "n_lt_2"
    assert basic.wilcoxon([0.7]).status == "n_lt_2"


@pytest.mark.parametrize("value", [0.7, 0.5])
def test_equal_values_have_no_pvalue_but_an_honest_interval_where_bounded(value):
    result = basic.one_sample_t_test([value] * 30, null=0.5, bounds=(0, 1))
    assert (result.status, result.estimate, result.test, result.effect) == ("zero_variance", value, None, None)
    assert result.interval.method == "betting"
    assert 0 < result.interval.low < value < result.interval.high < 1
    assert basic.one_sample_t_test([value] * 30, null=0.5).interval is None


def test_values_that_differ_by_rounding_only_are_equal():
    assert basic.one_sample_t_test([0.1 + 0.2, 0.3, 0.3], null=0).status == "zero_variance"


def test_two_constant_groups_have_no_pvalue():
    result = basic.welch_t_test([1, 1, 1], [2, 2, 2])
    assert (result.status, result.estimate, result.test) == ("zero_variance", -1.0, None)


def test_differences_that_are_all_zero_are_short_circuited():
    assert basic.wilcoxon([0, 0, 0]).status == "zero_variance"
    assert basic.wilcoxon([0.5, 0.5], null=0.5).test is None
    assert basic.sign_test([0.5, 0.5], null=0.5).status == "zero_variance"
    assert basic.paired_t_test([3, 4], [3, 4]).status == "zero_variance"


def test_hedges_correction_at_one_degree_of_freedom_is_no_number():
    assert basic.one_sample_t_test([0.6, 0.7], null=0.5).effect.hedges_g is None


def test_ties_take_mid_ranks():
    values = np.array([0.1, 0.1, -0.1, 0.2])
    assert_allclose(basic.wilcoxon(values).estimate, (2 + 2 + 4 - 2) / 10)


@pytest.mark.slow
def test_a_far_tail_of_the_noncentral_t_is_left_out_rather_than_wrong():
    values = 1e6 + rng().normal(0, 1, 50)
    effect = basic.one_sample_t_test(values, null=0).effect
    assert math.isfinite(effect.value)
    assert (effect.low is None) == (effect.high is None)


def test_at_the_ceiling_the_interval_is_by_betting_and_says_what_t_would_have_been():
    values = [1.0] * 19 + [0.5]
    result = basic.one_sample_t_test(values, null=0.5, bounds=(0, 1))
    warning = next(warning for warning in result.warnings if warning.code == "ceiling")
    assert result.interval.method == "betting"
    assert warning.detail["t_high"] <= 1 and result.interval.low < warning.detail["t_low"]
    assert basic.one_sample_t_test(values, null=0.5, bounds=(0, 1), mode="paper").interval.method == "t"


def test_small_skewed_samples_are_warned_of():
    assert basic.one_sample_t_test([0.0] * 2 + [0.55] * 15 + [0.56], null=0.5).has_warning("small_n_skew")
    assert not basic.one_sample_t_test(np.linspace(0, 1, 20), null=0.5).has_warning("small_n_skew")
    skewed = [0.0] * 9 + [0.55] * 80 + [0.56]
    assert basic.one_sample_t_test(skewed, null=0.5).has_warning("small_n_skew")
    assert not basic.one_sample_t_test(skewed * 4, null=0.5).has_warning("small_n_skew")


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="values: row 1 is infinite"):
        basic.one_sample_t_test([1, np.inf], null=0)
    with pytest.raises(ValueError, match=r"values: row 2 is 1.5, outside 0..1"):
        basic.one_sample_t_test([0.2, 0.3, 1.5], null=0.5, bounds=(0, 1))
    with pytest.raises(ValueError, match="level"):
        basic.one_sample_t_test([0.2, 0.3], null=0.5, level=95)
    with pytest.raises(ValueError, match="successes: 4 is not in 0..3"):
        basic.proportion(4, 3)


# Laws that tie one answer to another.


def test_order_of_rows_changes_nothing():
    values = rng(3).uniform(0, 1, 31)
    first, second = (basic.one_sample_t_test(x, null=0.5, bounds=(0, 1)) for x in (values, values[::-1]))
    assert_allclose([first.estimate, first.pvalue], [second.estimate, second.pvalue], rtol=1e-12)


def test_an_affine_map_of_the_scale_leaves_t_alone():
    x, y = rng(4).integers(1, 6, 40), rng(5).integers(1, 6, 40)
    assert_allclose(
        basic.paired_t_test(x, y).test.statistic, basic.paired_t_test(25 * x - 25, 25 * y - 25).test.statistic
    )


def test_the_interval_ends_where_the_test_stops_rejecting():
    values = rng(6).normal(0.6, 0.2, 25)
    interval = basic.one_sample_t_test(values, null=0.5).interval
    for end in (interval.low, interval.high):
        assert_allclose(basic.one_sample_t_test(values, null=end).pvalue, 0.05, rtol=1e-9)
