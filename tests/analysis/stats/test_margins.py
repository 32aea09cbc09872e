"""Claims by a margin: the test of the limit, its agreement with the interval, and the verdicts, in both directions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from analysis.stats import basic, clusters
from analysis.stats.margins import MarginHypothesis, margin_test, margin_verdict
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.plain_records import HYPOTHESES
from analysis.stats.results import Estimate, ResultWarning

ALTERNATIVES = {"greater": "larger", "less": "smaller"}


def judged(estimate, claim, *, size=1, method="bonferroni", significance=0.05):
    """Test the claim of the first of so many comparisons, and return the adjusted estimate and its verdict."""
    tested = margin_test(estimate, claim, significance=significance)
    family = Family("primary", ("x > y", *(f"missing {n}" for n in range(1, size))), method)
    adjusted = adjust_pvalues_and_intervals_of_family({"x > y": tested}, family)["x > y"]
    return adjusted, margin_verdict(adjusted, claim, significance=significance)


def sample_with(mean: float, n: int = 20, spread: float = 0.2):
    """Return values with exactly this mean; the 95 % interval is the mean -/+ .094 for 20 values with a spread of .2."""
    values = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return mean + spread * (values - values.mean()) / values.std(ddof=1)


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize("is_lower_better", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_p_is_twice_the_one_sided_p_of_the_limit(hypothesis, is_lower_better, seed):
    values = np.random.default_rng(seed).normal(0.52, 0.2, 60)
    claim = MarginHypothesis(hypothesis, null=0.5, margin=0.06, is_lower_better=is_lower_better)
    result = margin_test(basic.one_sample_t_test(values, null=0.5), claim)
    one_sided = stats.ttest_1samp(values, claim.limit, alternative=claim.side).pvalue
    also = DescrStatsW(values).ttest_mean(claim.limit, alternative=ALTERNATIVES[claim.side])[1]
    assert_allclose(one_sided, also, rtol=1e-9)
    assert_allclose(result.pvalue, min(1.0, 2 * one_sided), rtol=1e-9)
    assert (result.test.null, result.test.alternative) == (claim.limit, claim.side)


def test_the_limit_is_on_the_side_that_the_claim_allows():
    limits = {
        (hypothesis, is_lower_better): MarginHypothesis(hypothesis, 0.5, 0.05, is_lower_better).limit
        for hypothesis in HYPOTHESES
        for is_lower_better in (False, True)
    }
    assert limits == {
        ("noninferiority", False): 0.45,
        ("noninferiority", True): 0.55,
        ("superiority_by_margin", False): 0.55,
        ("superiority_by_margin", True): 0.45,
    }


@pytest.mark.parametrize(
    ("hypothesis", "mean", "verdict"),
    [
        ("noninferiority", 0.65, "better"),
        ("noninferiority", 0.52, "noninferior"),
        ("noninferiority", 0.42, "inconclusive"),
        ("noninferiority", 0.38, "worse"),
        ("noninferiority", 0.20, "worse"),
        ("superiority_by_margin", 0.75, "superior_by_margin"),
        ("superiority_by_margin", 0.62, "better"),
        ("superiority_by_margin", 0.55, "inconclusive"),
        ("superiority_by_margin", 0.38, "worse"),
    ],
)
def test_the_verdicts_in_both_directions(hypothesis, mean, verdict):
    """The margin is .1. The interval of a mean of .52, for example, is .43 to .61."""
    claim = MarginHypothesis(hypothesis, 0.5, 0.1)
    assert judged(basic.one_sample_t_test(sample_with(mean), null=0.5), claim)[1] == verdict
    mirrored = MarginHypothesis(hypothesis, 0.5, 0.1, is_lower_better=True)
    assert judged(basic.one_sample_t_test(sample_with(1 - mean), null=0.5), mirrored)[1] == verdict


@pytest.mark.parametrize("is_lower_better", [False, True])
def test_x_can_be_worse_by_less_than_the_margin(is_lower_better):
    claim = MarginHypothesis("noninferiority", 0.5, 0.1, is_lower_better)
    values = sample_with(0.46, spread=0.05)
    estimate = basic.one_sample_t_test(1 - values if is_lower_better else values, null=0.5)
    assert judged(estimate, claim)[1] == "noninferior_but_worse"


@settings(max_examples=150, deadline=None)
@given(
    mean=st.floats(0.1, 0.9),
    margin=st.floats(0.01, 0.3),
    size=st.integers(1, 6),
    hypothesis=st.sampled_from(HYPOTHESES),
    is_lower_better=st.booleans(),
    significance=st.sampled_from([0.01, 0.05, 0.1]),
    is_bounded=st.booleans(),
)
def test_p_and_interval_decide_alike(mean, margin, size, hypothesis, is_lower_better, significance, is_bounded):
    claim = MarginHypothesis(hypothesis, 0.5, margin, is_lower_better)
    estimate = basic.one_sample_t_test(sample_with(mean), null=0.5, bounds=(-0.4, 1.4) if is_bounded else None)
    adjusted, verdict = judged(estimate, claim, size=size, significance=significance)
    for pvalue, between in (
        (adjusted.pvalue, adjusted.interval),
        (adjusted.test.pvalue_adjusted, adjusted.interval_adjusted),
    ):
        assert (pvalue < significance) == claim.is_wholly_better(between, claim.limit)
    is_shown = adjusted.test.pvalue_adjusted < significance
    if hypothesis == "superiority_by_margin":
        assert is_shown == (verdict == "superior_by_margin")
    else:
        assert is_shown == (verdict in ("noninferior", "noninferior_but_worse", "better"))


@settings(max_examples=25, deadline=None)
@given(
    share=st.sampled_from([0.0, 0.05, 0.5, 0.9, 0.95, 1.0]),
    margin=st.sampled_from([0.05, 0.2, 0.4]),
    size=st.integers(1, 3),
    hypothesis=st.sampled_from(HYPOTHESES),
    is_lower_better=st.booleans(),
)
def test_a_betting_curve_decides_like_its_interval(share, margin, size, hypothesis, is_lower_better):
    people = np.repeat(np.arange(40), 3)
    values = (np.arange(40) < round(40 * share)).astype(float)[people]
    estimate = clusters.annotator_prompt_clustered_mean(
        values,
        people,
        np.tile(np.arange(3), 40),
        population="people",
        null=0.5,
        bounds=(0.0, 1.0),
        analysis="a",
        estimand="b",
    )
    claim = MarginHypothesis(hypothesis, 0.5, margin, is_lower_better)
    adjusted, _ = judged(estimate, claim, size=size)
    for pvalue, between in (
        (adjusted.pvalue, adjusted.interval),
        (adjusted.test.pvalue_adjusted, adjusted.interval_adjusted),
    ):
        assert (pvalue < 0.05) == claim.is_wholly_better(between, claim.limit)


def test_at_a_ceiling_the_bets_show_the_claim():
    people, prompts = np.repeat(np.arange(60), 3), np.tile(np.arange(3), 60)
    estimate = clusters.annotator_prompt_clustered_mean(
        np.ones(180), people, prompts, population="people", null=0.5, bounds=(0.0, 1.0), analysis="a", estimand="b"
    )
    assert estimate.curve.method == "betting"
    assert judged(estimate, MarginHypothesis("noninferiority", 0.5, 0.05))[1] == "better"
    assert judged(estimate, MarginHypothesis("superiority_by_margin", 0.5, 0.2))[1] == "superior_by_margin"
    adjusted, verdict = judged(estimate, MarginHypothesis("noninferiority", 0.5, 0.05, is_lower_better=True))
    assert verdict == "worse" and adjusted.test.pvalue == 1.0


def test_an_estimate_at_the_limit_or_on_its_wrong_side_has_p_1():
    claim = MarginHypothesis("noninferiority", 0.5, 0.1)
    for mean in (0.4 - 1e-9, 0.2):
        assert margin_test(basic.one_sample_t_test(sample_with(mean), null=0.5), claim).pvalue == 1.0


def test_without_what_a_claim_needs_there_is_none_and_the_reason_is_given():
    estimate = basic.one_sample_t_test(sample_with(0.52), null=0.5, bounds=(0.0, 1.0))
    claim = MarginHypothesis("noninferiority", 0.5, 0.1)
    without_curve = margin_test(replace(estimate, _curve=None), claim)
    assert (without_curve.status, without_curve.test) == ("not_applicable", None)
    assert without_curve.reason == "its method gives no p-value for another value than no difference"
    for hypothesis in HYPOTHESES:
        for is_lower_better in (False, True):
            whole = margin_test(estimate, MarginHypothesis(hypothesis, 0.5, 0.5, is_lower_better))
            assert (whole.status, whole.test) == ("not_applicable", None)
            assert whole.reason == "the margin 0.5 reaches the end of the scale"
            assert judged(estimate, MarginHypothesis(hypothesis, 0.5, 0.5, is_lower_better))[1] == "inconclusive"
    untested = margin_test(replace(estimate, test=None), claim)
    assert untested.test is None and untested.settings["claim"]["limit"] == 0.4
    blocked = replace(estimate, warnings=(ResultWarning("few_clusters", "block"),))
    assert judged(blocked, claim)[1] == "inconclusive"
    empty = Estimate(analysis="a", estimand="b", unit="annotator", n=0, status="no_data", reason="empty")
    assert judged(empty, claim)[1] == "inconclusive"


def test_better_and_worse_need_an_interval_that_holds_for_the_family():
    claim = MarginHypothesis("noninferiority", 0.5, 0.1)
    estimate = basic.one_sample_t_test(sample_with(0.65), null=0.5)
    assert judged(estimate, claim)[1] == "better"
    assert judged(estimate, claim, method="holm", size=2)[1] == "noninferior"
    worse = basic.one_sample_t_test(sample_with(0.3), null=0.5)
    assert judged(worse, claim, method="holm", size=2)[1] == "inconclusive"
    # With one comparison, all methods are the same.
    assert (judged(estimate, claim, method="holm")[1], judged(worse, claim, method="holm")[1]) == ("better", "worse")


def test_the_family_adjusts_the_claim():
    estimate = basic.one_sample_t_test(sample_with(0.5), null=0.5)
    claim = MarginHypothesis("noninferiority", 0.5, 0.1)
    assert judged(estimate, claim)[1] == "noninferior"
    adjusted, verdict = judged(estimate, claim, size=5)
    assert verdict == "inconclusive"
    assert_allclose(adjusted.test.pvalue_adjusted, 5 * adjusted.pvalue)


def test_bad_claims_are_refused():
    with pytest.raises(ValueError, match="hypothesis: 'difference' is not one of"):
        MarginHypothesis("difference", 0.5, 0.1)
    for margin in (0.0, -0.1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="margin: .* is not a positive number"):
            MarginHypothesis("noninferiority", 0.5, margin)
    with pytest.raises(ValueError, match="level: 1.0 is not strictly between 0 and 1"):
        margin_test(
            basic.one_sample_t_test(sample_with(0.5), null=0.5),
            MarginHypothesis("noninferiority", 0.5, 0.1),
            significance=1.0,
        )
