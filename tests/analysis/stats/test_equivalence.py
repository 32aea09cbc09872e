from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.stats.weightstats import DescrStatsW

from analysis.stats import basic, clusters, margins
from analysis.stats.multiplicity import Family
from tests.analysis.stats.golden import golden
from tests.analysis.stats.pairs import one_pair

GOLDEN = golden("equivalence")


def test_tost_agrees_with_the_references():
    wanted = GOLDEN["tost"]
    result = margins.equivalence_test(wanted["x"], null=0.5, margin=0.1)
    assert_allclose(result.pvalue, wanted["p"], rtol=1e-9)
    assert_allclose([result.interval.low, result.interval.high], wanted["ci90"], atol=1e-10)
    assert result.detail["is_equivalent"] is wanted["equivalent"]
    case = GOLDEN["tost_one_sample"]
    result = margins.equivalence_test(case["input"]["x"], null=0.5, margin=0.05)
    assert_allclose(
        [result.detail["pvalue_low"], result.detail["pvalue_high"], result.pvalue],
        [case["expected"][name] for name in ("p_low", "p_high", "p")],
        atol=1e-10,
    )
    assert_allclose([result.interval.low, result.interval.high], case["expected"]["ci90"], atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_tost_agrees_with_statsmodels_and_with_its_interval(seed):
    values = np.random.default_rng(seed).normal(0.52, 0.2, 60)
    result = margins.equivalence_test(values, null=0.5, margin=0.07)
    assert_allclose(result.pvalue, DescrStatsW(values).ttost_mean(0.43, 0.57)[0], rtol=1e-9)
    inside = result.interval.low > 0.43 and result.interval.high < 0.57
    assert result.detail["is_equivalent"] is inside


def test_the_four_verdicts():
    assert margins.difference_and_equivalence_verdict(0.01, 0.9) == "different"
    assert margins.difference_and_equivalence_verdict(0.9, 0.01) == "equivalent"
    assert margins.difference_and_equivalence_verdict(0.01, 0.01) == "different_but_trivial"
    assert margins.difference_and_equivalence_verdict(0.2, 0.2) == "inconclusive"
    assert margins.difference_and_equivalence_verdict(None, None) == "inconclusive"


def pair_with_equivalence_test(answers, rng):
    pair = one_pair(answers, 100 - answers, rng=rng, sensitivity_resamples=99)
    tost = margins.equivalence_test_of_estimate(pair, null=0.5, margin=0.05)
    return replace(pair, sensitivity=(*pair.sensitivity, tost))


def test_no_difference_found_is_not_equivalence():
    values = np.random.default_rng(1).normal(0.5, 0.3, 30)
    pair = pair_with_equivalence_test(np.clip(100 * values, 0, 100), np.random.default_rng(0))
    judged = margins.adjust_and_add_verdicts({"a > b": pair}, Family("primary", ("a > b",)))["a > b"]
    assert judged.pvalue > 0.05
    assert judged.detail["verdict"] == "inconclusive"


def test_the_verdict_rests_on_pvalues_adjusted_within_each_family():
    rng = np.random.default_rng(2)
    answers = np.clip(rng.normal(55, 12, 40), 0, 100)
    pair = pair_with_equivalence_test(answers, rng)
    assert 0.001 < pair.pvalue < 0.05
    alone = margins.adjust_and_add_verdicts({"a": pair}, Family("primary", ("a",)))["a"]
    crowded = margins.adjust_and_add_verdicts({"a": pair}, Family("primary", tuple("abcdefghijklmnopqrst")))["a"]
    assert alone.detail["verdict"] == "different"
    assert crowded.detail["verdict"] == "inconclusive"
    tost = next(other for other in crowded.sensitivity if other.analysis == "spa.pair.equivalence")
    assert tost.test.family == "primary.equivalence"


def test_a_comparison_counts_with_the_larger_of_its_pvalues_while_another_is_adjusted():
    """The first is different and the second is equivalent; the third has no margin."""
    rng = np.random.default_rng(4)
    estimates = {}
    for key, effect, margin in (("a", 0.75, 0.5), ("b", 0.05, 0.5), ("c", 0.4, None)):
        values = rng.normal(size=30)
        one = basic.one_sample_t_test((values - values.mean()) / values.std(ddof=1) + effect, null=0.0)
        tost = margin and margins.equivalence_test_of_estimate(one, null=0.0, margin=margin)
        estimates[key] = replace(one, sensitivity=(tost,) if tost else ())
    family = Family("primary", ("a", "b", "c", "no answers"), "holm")
    judged = margins.adjust_and_add_verdicts(estimates, family)
    p = {key: one.pvalue for key, one in estimates.items()}
    q = {key: estimates[key].sensitivity[0].pvalue for key in "ab"}
    assert p["a"] < p["c"] < p["b"] and q["b"] < 0.01 < 0.9 < q["a"]
    # Four comparisons: that without answers and one of the two p-values of a and b are large in every case.
    assert judged["a"].test.pvalue_adjusted == pytest.approx(4 * p["a"])
    assert judged["c"].test.pvalue_adjusted == pytest.approx(4 * p["c"])
    assert judged["b"].sensitivity[0].test.pvalue_adjusted == pytest.approx(max(3 * q["b"], 4 * min(q["b"], p["c"])))
    assert [judged[key].detail["verdict"] for key in "abc"] == ["different", "equivalent", None]


def test_without_a_margin_there_is_no_word_for_no_difference():
    pair = one_pair([40, 60, 55, 45], [60, 40, 45, 55], rng=np.random.default_rng(0), sensitivity_resamples=99)
    assert margins.adjust_and_add_verdicts({"a": pair}, Family("primary", ("a",)))["a"].detail["verdict"] is None


def test_a_margin_must_be_positive():
    with pytest.raises(ValueError, match="margin"):
        margins.equivalence_test([0.5, 0.6], null=0.5, margin=0)
    assert margins.equivalence_test([0.5] * 9, null=0.5, margin=0.1).status == "zero_variance"


def test_equivalence_of_an_estimate_rests_on_its_own_test():
    values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    # One value each, plain or as clusters of one: the same TOST, wherever the degrees of freedom stand.
    plain, of_values = (
        basic.one_sample_t_test(values, null=0.5),
        margins.equivalence_test(values, null=0.5, margin=0.1),
    )
    clustered = clusters.clustered_mean(values, range(12), null=0.5, analysis="one_sample")
    for estimate in (plain, clustered):
        found = margins.equivalence_test_of_estimate(estimate, null=0.5, margin=0.1)
        assert_allclose(found.pvalue, of_values.pvalue)
        assert_allclose([found.interval.low, found.interval.high], [of_values.interval.low, of_values.interval.high])


def test_what_is_not_tested_for_a_difference_is_not_for_equivalence():
    # Five annotators of forty answers each: points and an interval, and no p-value of either kind.
    values, who = np.tile([0.0, 1.0], 100), np.repeat(np.arange(5), 40)
    values[[0, 41]] = 1.0, 0.0
    few = clusters.clustered_mean(values, who, null=0.5)
    found = margins.equivalence_test_of_estimate(few, null=0.5, margin=0.2)
    assert few.status == "ok" and few.test is None
    assert found.test is None and found.interval is not None and "is_equivalent" not in found.detail
    named = {"a": replace(few, sensitivity=(found,))}
    assert margins.adjust_and_add_verdicts(named, Family("f", ("a",)))["a"].detail["verdict"] == "inconclusive"
    flat = clusters.clustered_mean(np.tile([0.0, 1.0], 100), np.repeat(np.arange(10), 20), null=0.5)
    assert margins.equivalence_test_of_estimate(flat, null=0.5, margin=0.2).status == "zero_variance"
    nobody = basic.one_sample_t_test([], null=0.5)
    assert margins.equivalence_test_of_estimate(nobody, null=0.5, margin=0.2) is None


def test_a_margin_as_wide_as_the_scale_shows_no_equivalence():
    rng = np.random.default_rng(3)
    values, people, prompts = rng.integers(0, 2, 200), np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
    share = clusters.annotator_prompt_clustered_mean(
        values, people, prompts, null=0.5, bounds=(0.0, 1.0), analysis="share"
    )
    wide = margins.equivalence_test_of_estimate(share, null=0.5, margin=0.6)
    assert (wide.status, wide.test) == ("not_applicable", None) and "whole scale" in wide.reason
    judged = margins.adjust_and_add_verdicts({"a": replace(share, sensitivity=(wide,))}, Family("family", ("a",)))["a"]
    assert judged.detail["verdict"] != "equivalent"
    assert margins.equivalence_test_of_estimate(share, null=0.5, margin=0.3).test is not None


def test_an_end_of_the_margin_beyond_the_scale_needs_no_evidence():
    # The interval is wider than the scale on the left, so only its right end can be outside the margin of -.05..0.25.
    values = [0.0, 0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 0.0, 0.6, 0.0, 0.3, 0.2]
    result = margins.equivalence_test(values, null=0.1, margin=0.15, bounds=(0.0, 1.0))
    free = margins.equivalence_test(values, null=0.1, margin=0.15)
    assert result.interval.low >= 0 and (result.detail["pvalue_low"], free.detail["pvalue_low"] > 0) == (0.0, True)
    assert result.pvalue == result.detail["pvalue_high"] == free.detail["pvalue_high"]
    assert result.detail["is_equivalent"] is (result.interval.high < 0.25)
