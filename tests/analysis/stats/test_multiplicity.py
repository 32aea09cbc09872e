from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.stats import basic, multiplicity
from tests.analysis.stats.golden import golden

GOLDEN = golden("multiplicity")
PVALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def test_holm_and_benjamini_hochberg_agree_with_the_references():
    assert_allclose(multiplicity.holm(GOLDEN["holm"]["p"]), GOLDEN["holm"]["p_holm"], atol=1e-12)
    case = GOLDEN["benjamini_hochberg"]
    assert_allclose(multiplicity.benjamini_hochberg(case["input"]["p"]), case["expected"]["adjusted"], atol=1e-12)


def test_five_comparisons_with_holm_agree_with_the_reference():
    case = GOLDEN["spa_one_sample_t_holm"]
    results = {key: basic.one_sample_t_test(values, null=0.5) for key, values in case["input"].items()}
    adjusted = multiplicity.adjust_pvalues_and_intervals_of_family(
        results, multiplicity.Family("primary", tuple(case["input"]))
    )
    wanted = case["expected"]
    for number, key in enumerate(case["input"]):
        result = adjusted[key]
        assert_allclose(
            [result.estimate, result.detail["sd"], result.test.statistic, result.pvalue, result.effect.value],
            [wanted[name][number] for name in ("mean", "sd", "t", "p", "d")],
            rtol=1e-9,
        )
        assert_allclose(result.test.pvalue_adjusted, wanted["p_holm"][number], rtol=1e-9)
        assert_allclose([result.interval.low, result.interval.high], wanted["ci95"][number], atol=1e-9)
        assert (result.test.family_size, result.test.adjust) == (5, "holm")


# statsmodels collects garbage at each call, so a few examples must do.
@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(PVALUES)
def test_all_three_agree_with_statsmodels(pvalues):
    for ours, theirs in (("holm", "holm"), ("bonferroni", "bonferroni"), ("benjamini_hochberg", "fdr_bh")):
        assert_allclose(multiplicity.METHODS[ours](pvalues), multipletests(pvalues, method=theirs)[1], atol=1e-12)


@settings(deadline=None)
@given(PVALUES)
def test_adjusted_pvalues_are_no_smaller_and_keep_the_order(pvalues):
    adjusted = multiplicity.holm(pvalues)
    assert all(after >= before - 1e-15 for before, after in zip(pvalues, adjusted, strict=True))
    assert list(np.array(adjusted)[np.argsort(pvalues, kind="stable")]) == sorted(adjusted)


def test_a_family_never_shrinks():
    assert multiplicity.holm([0.01, None, np.nan]) == [0.03, None, None]


def test_a_comparison_nobody_answered_still_counts():
    results = {
        "a > b": basic.one_sample_t_test([0.6, 0.7, 0.8, 0.75], null=0.5),
        "c > d": basic.one_sample_t_test([], null=0.5),
    }
    family = multiplicity.Family("primary", ("a > b", "c > d", "e > f"))
    adjusted = multiplicity.adjust_pvalues_and_intervals_of_family(results, family)
    assert_allclose(adjusted["a > b"].test.pvalue_adjusted, 3 * results["a > b"].pvalue)
    assert adjusted["a > b"].test.family_size == 3
    assert adjusted["c > d"].test is None


def test_an_unplanned_comparison_is_refused_by_name():
    family = multiplicity.Family("primary", ("a > b",))
    with pytest.raises(ValueError, match="'x > y' is not planned in the family primary"):
        multiplicity.adjust_pvalues_and_intervals_of_family(
            {"x > y": basic.one_sample_t_test([0.6, 0.7], null=0.5)}, family
        )
    with pytest.raises(ValueError, match="occurs twice"):
        multiplicity.Family("primary", ("a > b", "a > b"))


def test_stars_are_strict_and_follow_their_scheme():
    assert [multiplicity.pvalue_stars(p) for p in (0.1, 0.099, 0.05, 0.049, 0.01, 0.009)] == [
        "",
        "*",
        "*",
        "**",
        "**",
        "***",
    ]
    assert [multiplicity.pvalue_stars(p, "5/1/0.1") for p in (0.049, 0.009, 0.0009)] == ["*", "**", "***"]
    with pytest.raises(ValueError, match="scheme"):
        multiplicity.pvalue_stars(0.1, "many")


def test_bonferroni_gives_each_estimate_the_interval_that_agrees_with_its_p():
    rng = np.random.default_rng(3)
    samples = {
        key: rng.normal(shift, 1, 15) for key, shift in zip("abcdef", (0, 0.3, 0.6, 0.8, 1.0, -0.7), strict=True)
    }
    estimates = {key: basic.one_sample_t_test(values, null=0.0) for key, values in samples.items()}
    # Three planned tests are missing.
    family = multiplicity.Family("primary", tuple("abcdefghi"), "bonferroni")
    adjusted = multiplicity.adjust_pvalues_and_intervals_of_family(estimates, family)
    decisions = set()
    for key, result in adjusted.items():
        values = samples[key]
        half = stats.t.ppf(1 - 0.05 / 9 / 2, 14) * stats.sem(values)
        assert_allclose(
            [result.interval_adjusted.low, result.interval_adjusted.high], values.mean() + np.array([-half, half])
        )
        is_shown = result.test.pvalue_adjusted < 0.05
        assert is_shown == (not result.interval_adjusted.low <= 0 <= result.interval_adjusted.high)
        assert result.interval == estimates[key].interval and result.test.family_size == 9
        decisions.add((estimates[key].pvalue < 0.05, is_shown))
    assert decisions == {(False, False), (True, False), (True, True)}


def simes_of_every_part(pvalues):
    """Return Hommel's adjusted p-values by their definition: the largest p of Simes' test over all parts with the test."""
    largest = np.zeros(len(pvalues))
    for size in range(1, len(pvalues) + 1):
        for part in map(list, combinations(range(len(pvalues)), size)):
            simes = np.min(size * np.sort(np.asarray(pvalues)[part]) / np.arange(1, size + 1))
            largest[part] = np.maximum(largest[part], simes)
    return largest


def test_hommel_is_the_closed_test_of_simes_and_agrees_with_statsmodels():
    rng = np.random.default_rng(88)
    for number in range(200):
        size = int(rng.integers(1, 12))
        # Small ones and ties occur, too.
        pvalues = np.round(rng.uniform(0, 1, size) ** 3, int(rng.integers(2, 9)))
        found = multiplicity.hommel(pvalues)
        if size <= 6:
            assert_allclose(found, simes_of_every_part(pvalues), atol=1e-12)
        assert_allclose(found, multipletests(pvalues, method="hommel")[1], atol=1e-12, err_msg=str(number))
        assert np.all(np.array(found) <= np.array(multiplicity.holm(pvalues)) + 1e-12)


def test_hommel_counts_a_missing_test_as_one():
    missing = multiplicity.hommel([0.01, 0.02, None, None])
    assert_allclose(missing[:2], multiplicity.hommel([0.01, 0.02, 1.0, 1.0])[:2])
    assert multiplicity.hommel([0.02, None, 0.03])[1] is None


def two_samples():
    return {
        key: basic.one_sample_t_test(np.random.default_rng(5).normal(shift, 1, 20), null=0.0)
        for key, shift in (("a", 0.9), ("b", 1.4))
    }


def test_an_open_gate_raises_p_to_its_own_and_keeps_the_intervals():
    family = multiplicity.Family("second", ("a", "b"), "bonferroni", multiplicity.Gate("first", 0.03, True))
    alone = multiplicity.adjust_pvalues_and_intervals_of_family(two_samples(), replace(family, gate=None))
    after = multiplicity.adjust_pvalues_and_intervals_of_family(two_samples(), family)
    for key in "ab":
        assert alone[key].test.pvalue_adjusted < 0.03 and after[key].test.pvalue_adjusted == 0.03
        assert after[key].interval_adjusted == alone[key].interval_adjusted and after[key].test.stars == "**"


def test_a_closed_gate_leaves_no_stars_and_no_adjusted_interval():
    family = multiplicity.Family("second", ("a", "b"), "bonferroni", multiplicity.Gate("first", 0.2, False))
    for estimate in multiplicity.adjust_pvalues_and_intervals_of_family(two_samples(), family).values():
        assert estimate.test.pvalue_adjusted == 0.2 and estimate.test.stars is None
        assert estimate.interval_adjusted is None and estimate.interval is not None


def errors_of_both(means, gated, rng, runs=4000, n_first=2):
    """Return the share of runs with a false result in two families of z tests, with Holm or Hommel and with or without a gate."""
    n_false = 0
    z = rng.normal(means, 1.0, (runs, len(means)))
    pvalues = 2 * stats.norm.sf(np.abs(z))
    is_null = np.array(means) == 0
    for row in pvalues:
        first = multiplicity.holm(row[:n_first])
        second = multiplicity.hommel(row[n_first:])
        if gated:
            second = multiplicity.behind_gate(second, max(first))
        n_false += bool(np.any((np.array([*first, *second]) < 0.05) & is_null))
    return n_false / runs


@pytest.mark.parametrize("means", [(0, 0, 0, 0, 0), (4, 0, 0, 0, 0), (4, 4, 0, 0, 0), (4, 0, 4, 0, 0)])
def test_the_error_over_both_families_is_held_with_the_gate(means):
    limit = 0.05 + 2 * np.sqrt(0.05 * 0.95 / 4000)
    assert errors_of_both(means, True, np.random.default_rng(1)) <= limit


def test_the_error_over_both_families_is_not_held_without_the_gate():
    limit = 0.05 + 2 * np.sqrt(0.05 * 0.95 / 4000)
    assert errors_of_both((0, 0, 0, 0, 0), False, np.random.default_rng(1)) > limit + 0.02


def closed_test(differences, equivalences, of_part):
    """Return the adjusted p-values of both tests by their definition: the largest p over all parts that can be true together.

    A part has the difference, the equivalence or neither of each comparison.
    """
    pairs = list(zip(differences, equivalences, strict=True))
    largest = np.zeros((len(pairs), 2))
    for chosen in product((None, 0, 1), repeat=len(pairs)):
        part = [(number, which) for number, which in enumerate(chosen) if which is not None]
        if part:
            pvalue = of_part(sorted(pairs[number][which] for number, which in part))
            for one in part:
                largest[one] = max(largest[one], pvalue)
    return np.minimum(1.0, largest)


@pytest.mark.parametrize(
    ("method", "of_part"),
    [
        ("holm", lambda part: len(part) * part[0]),
        ("hommel", lambda part: min(len(part) * p / k for k, p in enumerate(part, 1))),
        ("bonferroni", None),
    ],
)
def test_differences_and_equivalences_together_are_a_closed_test(method, of_part):
    rng = np.random.default_rng(12)
    for _ in range(60):
        size = int(rng.integers(1, 6))
        differences, equivalences = rng.uniform(0, 1, (2, size)) ** 3
        larger = np.maximum(differences, equivalences).tolist()
        found = [multiplicity.adjust_among(list(row), larger, method) for row in (differences, equivalences)]
        if of_part is None:
            assert_allclose(found, np.minimum(1, size * np.array([differences, equivalences])))
        else:
            assert_allclose(np.transpose(found), closed_test(differences, equivalences, of_part), atol=1e-12)


def errors_with_equivalence(means, method, rng, apart, correlation=0.5, margin=6.0, runs=1500):
    """Return the share of runs with a false difference or a false equivalence among comparisons of systems with one reference.

    The tests are z tests. ``apart``: each kind of test is adjusted among its own.
    """
    means = np.array(means)
    shared = rng.normal(size=(runs, 1))
    z = means + np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.normal(size=(runs, len(means)))
    differences, equivalences = 2 * stats.norm.sf(np.abs(z)), stats.norm.sf(margin - np.abs(z))
    n_false = 0
    for rows in zip(differences, equivalences, strict=True):
        larger = np.maximum(*rows).tolist()
        both = [multiplicity.adjust_among(list(row), list(row) if apart else larger, method) for row in rows]
        n_false += bool(np.any((np.array(both) < 0.05) & np.array([means == 0, np.abs(means) >= margin])))
    return n_false / runs


@pytest.mark.slow
@pytest.mark.parametrize("method", ["holm", "hommel"])
@pytest.mark.parametrize("means", [(0, 6, 3), (0, 0, 6), (0, 6, -6), (6, 6, 6), (0, 0, 0), (6, -6, 2)])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_the_error_over_differences_and_equivalences_is_held(method, means, correlation):
    limit = 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1500)
    assert errors_with_equivalence(means, method, np.random.default_rng(3), False, correlation) <= limit


@pytest.mark.parametrize("method", ["holm", "hommel"])
def test_the_error_is_not_held_if_both_kinds_are_adjusted_apart(method):
    """The true difference of the second comparison leaves the level of the first to one hypothesis, and so does the equivalence."""
    assert errors_with_equivalence((0, 6), method, np.random.default_rng(3), True, 0.0) > 0.08


def test_both_pvalues_of_a_comparison_are_needed():
    with pytest.raises(ValueError, match="others"):
        multiplicity.adjust_among([0.1, 0.2], [0.1])
    assert multiplicity.adjust_among([0.1, None], [0.3, 1.0]) == [0.2, None]
