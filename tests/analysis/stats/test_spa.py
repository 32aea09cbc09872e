import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import basic, clusters, spa
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from tests.analysis.stats.comparisons import score_t
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden
from tests.analysis.stats.pairs import one_pair

GOLDEN = golden("spa")


def both_orders():
    """The hand-made study: six annotators, pairs AB and CD, percentages."""
    data = GOLDEN["both_orders"]["data"]
    answers = np.array([[[round(100 * p) for p in data[who][pair]] for pair in ("AB", "CD")] for who in data], float)
    return list(data), answers[:, :, 0], answers[:, :, 1]


def simulated(seed=0, n=60, preference=0.5, sd=0.2, n_pairs=1):
    draw = rng(seed)
    xy = np.clip(np.rint(100 * (preference + draw.normal(0, sd, (n, n_pairs)))), 0, 100)
    yx = np.clip(np.rint(100 * (1 - preference + draw.normal(0, sd, (n, n_pairs)))), 0, 100)
    return xy, yx


def sensitivity(estimate, name):
    return next(other for other in estimate.sensitivity if other.analysis == f"spa.pair.{name}")


def check(result, wanted):
    found = [result.estimate, result.detail["sd"], result.test.statistic, result.pvalue, result.effect.value]
    assert_allclose(found, [wanted[key] for key in ("mean", "sd", "t", "p", "d")], atol=1e-9)
    assert_allclose([result.interval.low, result.interval.high], wanted["ci"], atol=1e-9)
    assert_allclose([result.effect.low, result.effect.high], wanted["d_ci"], atol=1e-8)
    assert result.n == wanted["n"]


# The tau rule.


def test_tau_finds_whom_the_reference_finds_and_its_edge_is_strict():
    who, xy, yx = both_orders()
    flags = spa.tau_incoherence_flags(xy, yx)
    assert [name for name, flag in zip(who, flags.incoherent, strict=True) if flag] == GOLDEN["both_orders"]["excluded"]
    # .65 + .45 is 1.1 exactly, and as floating point more than that.
    assert 0.65 + 0.45 > 1.1 - 1e-15 and not flags.incoherent[who.index("a4")]
    assert flags.low_sum[who.index("a6")] and not flags.incoherent[who.index("a6")]


@pytest.mark.parametrize("tau,percent", [(1.15, 115), (1.1, 110), (1.05, 105), (1.0, 100)])
def test_sums_are_compared_as_integers(tau, percent):
    flags = spa.tau_incoherence_flags([[percent - 50], [percent - 49]], [[50], [50]], tau=tau)
    assert flags.incoherent.tolist() == [False, True]
    assert flags.tau_percent == percent


def test_one_pair_above_tau_finds_the_annotator_and_one_order_finds_nobody():
    flags = spa.tau_incoherence_flags([[90, 50], [90, 50], [50, 50]], [[90, 50], [np.nan, np.nan], [50, np.nan]])
    assert flags.incoherent.tolist() == [True, False, False]
    assert flags.above.tolist() == [[True, False], [False, False], [False, False]]
    assert flags.is_applicable.tolist() == [True, False, True]


def test_tau_of_two_excludes_nobody_and_of_zero_everybody():
    xy, yx = simulated(n=30)
    assert not spa.tau_incoherence_flags(xy, yx, tau=2).incoherent.any()
    estimate = one_pair(xy[:, 0], yx[:, 0], sensitivity_tau=0, rng=rng(), sensitivity_resamples=99)
    after = sensitivity(estimate, "tau")
    assert (after.status, after.n) == ("no_data", 0) and after.has_warning("all_excluded")
    assert estimate.status == "ok"
    with pytest.raises(ValueError, match="tau"):
        spa.tau_incoherence_flags(xy, yx, tau=110)


# Paper and recommended estimates.


@pytest.mark.parametrize("column,pair", [(0, "AB"), (1, "CD")])
def test_both_estimates_agree_with_the_reference(column, pair):
    who, xy, yx = both_orders()
    kept = np.array([name in GOLDEN["both_orders"]["kept"] for name in who])
    paper = spa.pair_preference_paper(xy[kept, column], is_after_tau=True)
    check(paper, GOLDEN["both_orders"]["first_order"][pair])
    assert [(w.code, w.severity) for w in paper.warnings if w.code == "tau_one_order_bias"] == [
        ("tau_one_order_bias", "block")
    ]
    wanted = GOLDEN["both_orders"]["combined"][pair]
    recommended = one_pair(xy[kept, column], yx[kept, column], rng=rng(), sensitivity_resamples=99)
    assert_allclose([recommended.estimate, recommended.detail["sd"]], [wanted["mean"], wanted["sd"]], atol=1e-9)
    assert (recommended.n, recommended.test) == (4, None)
    everybody = spa.pair_preferences_recommended(xy, yx, pair_names=["AB", "CD"], rng=rng(), sensitivity_resamples=99)[
        pair
    ]
    reference = score_t((xy[:, column] + 100 - yx[:, column]) / 200, 0.5, (0, 1))
    found = [everybody.pvalue, everybody.test.statistic, everybody.interval.low, everybody.interval.high]
    assert_allclose(found, reference, rtol=1e-7)
    assert everybody.n == 6
    check(sensitivity(everybody, "tau"), GOLDEN["both_orders"]["combined"][pair])


def test_the_stars_of_the_published_table_follow_from_its_constraints():
    # Ethayarajh and Jurafsky 2022, Table 1: means .420 *, .688 ***, .630 ***, .575 ***, .544 with n = 90. Any standard
    # deviations within these bounds give its stars.
    estimates = {}
    for name, mean, sd in (
        ("ada > human", 0.420, 0.35),
        ("babbage > ada", 0.688, 0.28),
        ("curie > babbage", 0.630, 0.28),
        ("davinci > curie", 0.575, 0.22),
        ("human > davinci", 0.544, 0.28),
    ):
        values = stats.norm.ppf((np.arange(90) + 0.5) / 90)
        values = mean + sd * (values - values.mean()) / values.std(ddof=1)
        estimates[name] = basic.one_sample_t_test(values, null=0.5, mode="paper")
    found = adjust_pvalues_and_intervals_of_family(estimates, Family("table 1", tuple(estimates)))
    assert [estimate.test.stars for estimate in found.values()] == ["*", "***", "***", "***", ""]


def test_swapping_the_systems_mirrors_the_estimate_and_keeps_the_pvalue():
    xy, yx = simulated(1, preference=0.6)
    straight = one_pair(xy[:, 0], yx[:, 0], rng=rng())
    mirrored = one_pair(yx[:, 0], xy[:, 0], rng=rng())
    assert_allclose(mirrored.estimate, 1 - straight.estimate)
    assert_allclose(mirrored.pvalue, straight.pvalue, rtol=1e-9)
    assert_allclose(
        [mirrored.interval.low, mirrored.interval.high], [1 - straight.interval.high, 1 - straight.interval.low]
    )
    for name in ("wilcoxon", "sign_test", "tau", "tau_symmetric"):
        assert_allclose(sensitivity(mirrored, name).pvalue, sensitivity(straight, name).pvalue, rtol=1e-9)
    assert abs(sensitivity(mirrored, "sign_flip").pvalue - sensitivity(straight, "sign_flip").pvalue) < 0.01
    probabilities = [sensitivity(other, "bayesian_bootstrap").estimate for other in (straight, mirrored)]
    assert abs(sum(probabilities) - 1) < 0.01


def test_the_order_of_annotators_changes_no_closed_form():
    xy, yx = simulated(2)
    order = rng(9).permutation(len(xy))
    first = one_pair(xy[:, 0], yx[:, 0], rng=rng())
    second = one_pair(xy[order, 0], yx[order, 0], rng=rng())
    assert_allclose([first.estimate, first.pvalue], [second.estimate, second.pvalue], rtol=1e-9)
    bca = [sensitivity(other, "bca").interval for other in (first, second)]
    assert_allclose([bca[0].low, bca[0].high], [bca[1].low, bca[1].high], atol=0.005)


def test_the_same_seed_gives_the_same_bytes():
    xy, yx = simulated(3, n_pairs=3)
    runs = [
        spa.pair_preferences_recommended(xy, yx, pair_names="abc", rng=rng(5), sensitivity_resamples=499)
        for _ in range(2)
    ]
    first, second = (json.dumps([run[key].as_dict() for key in "abc"], allow_nan=False) for run in runs)
    assert first == second


def test_a_liking_for_the_first_named_cancels_in_the_combined_estimate():
    draw = rng(4)
    own = draw.normal(0.5, 0.08, 200)
    xy, yx = np.rint(100 * (own + 0.2)), np.rint(100 * (1 - own + 0.2))
    assert spa.pair_preference_paper(xy).estimate > 0.65
    assert abs(one_pair(xy, yx, rng=rng(), sensitivity_resamples=99).estimate - 0.5) < 0.02


def test_who_answered_in_one_order_is_used_and_counted():
    result = one_pair([70, np.nan, 60, np.nan], [30, 20, np.nan, np.nan], rng=rng(), sensitivity_resamples=99)
    assert_allclose(result.estimate, (0.7 + 0.8 + 0.6) / 3)
    assert {key: result.detail[key] for key in ("n_xy", "n_yx", "n_both", "n_single")} == {
        "n_xy": 2,
        "n_yx": 2,
        "n_both": 1,
        "n_single": 2,
    }
    assert (result.n, result.n_rows) == (3, 4)
    assert result.has_warning("single_order") and not result.has_warning("order_not_identified")


def test_one_order_asked_of_everybody_is_not_identified():
    answers = simulated(5)[0][:, 0]
    nobody = np.full(len(answers), np.nan)
    for xy, yx in ((answers, nobody), (nobody, answers)):
        result = one_pair(xy, yx, rng=rng(), sensitivity_resamples=99)
        assert result.has_warning("order_not_identified")
        assert not any(other.analysis == "spa.pair.tau" for other in result.sensitivity)
    mixed = one_pair(np.r_[answers, nobody], np.r_[nobody, answers], rng=rng(), sensitivity_resamples=99)
    assert not mixed.has_warning("order_not_identified")


def test_every_sensitivity_is_there_and_says_what_it_tests():
    xy, yx = simulated(6, preference=0.62)
    result = one_pair(xy[:, 0], yx[:, 0], rng=rng(), batches=np.arange(60) // 2)
    names = [other.analysis.removeprefix("spa.pair.") for other in result.sensitivity]
    assert names == [
        "by_annotator", "sign_flip", "wilcoxon", "bca", "bayesian_bootstrap", "sign_test", "tau", "tau_symmetric",
    ]  # fmt: skip
    assert "not the mean" in sensitivity(result, "wilcoxon").estimand
    assert sensitivity(result, "bca").interval.method == "bca"
    assert sensitivity(result, "bayesian_bootstrap").estimate > 0.99
    assert sensitivity(result, "sign_flip").pvalue <= 0.001
    shares = result.detail["shares"]
    assert shares["above"]["count"] + shares["equal"]["count"] + shares["below"]["count"] == 60
    assert 0 < result.detail["detectable_difference"] < 0.2


def test_resampling_many_pairs_at_once_is_resampling_each():
    xy, yx = simulated(7, n_pairs=4, preference=0.55)
    xy[:20, 1] = yx[:20, 1] = np.nan
    together = spa.pair_preferences_recommended(xy, yx, pair_names="abcd", rng=rng())
    for column, name in enumerate("abcd"):
        alone = one_pair(xy[:, column], yx[:, column], rng=rng(8))
        assert_allclose([together[name].estimate, together[name].pvalue], [alone.estimate, alone.pvalue])
        for kind in ("bca",):
            ends = [sensitivity(other, kind).interval for other in (together[name], alone)]
            assert_allclose([ends[0].low, ends[0].high], [ends[1].low, ends[1].high], atol=0.008)


def test_batches_are_a_second_way_beside_annotators():
    draw = rng(8)
    batches = np.repeat(np.arange(12), 8)
    own = 0.5 + draw.normal(0, 0.15, 12)[batches] + draw.normal(0, 0.05, 96)
    xy = np.clip(np.rint(100 * own), 0, 100)
    result = one_pair(xy, 100 - xy, batches=batches, rng=rng(), sensitivity_resamples=99)
    people = sensitivity(result, "by_annotator")
    values = (xy + 100 - (100 - xy)) / 200
    wanted = clusters.two_way_clustered_mean(values, np.arange(96), batches, null=0.5, bounds=(0, 1))
    assert_allclose([result.pvalue, result.interval.low], [wanted.pvalue, wanted.interval.low], rtol=1e-9)
    assert (result.n, result.detail["n_batches"], result.settings["population"]) == (96, 12, "people and prompts")
    assert_allclose(people.pvalue, score_t(values, 0.5, (0, 1))[0])
    assert result.interval.high - result.interval.low > 2 * (people.interval.high - people.interval.low)
    # The detectable difference is that of this standard error, not that of people alone.
    df, effect = math.floor(result.detail["df"]), result.detail["detectable_difference"] / result.detail["se"]
    reached = 1 - stats.nct.cdf(stats.t.ppf(0.975, df), df, effect)
    assert_allclose(reached, 0.8, atol=1e-6)
    assert not result.has_warning("few_batches") and result.detail["batches"].icc > 0.7
    four = one_pair(xy, 100 - xy, batches=batches % 4, rng=rng(), sensitivity_resamples=99)
    assert four.has_warning("few_batches") and four.settings["population"] == "people"
    assert_allclose(four.pvalue, people.pvalue)
    own_batches = one_pair(xy, 100 - xy, batches=np.arange(96), rng=rng(), sensitivity_resamples=99)
    assert "batches" not in own_batches.detail and not own_batches.has_warning("few_batches")
    assert one_pair(xy, 100 - xy, batches=np.zeros(96), rng=rng(), sensitivity_resamples=99).has_warning("few_batches")


def test_edge_cases_are_statuses_with_json():
    nothing = one_pair([], [], rng=rng())
    one = one_pair([70], [30], rng=rng())
    equal = one_pair([70] * 5, [30] * 5, rng=rng(), sensitivity_resamples=99)
    fifty = one_pair([50] * 5, [50] * 5, rng=rng(), sensitivity_resamples=99)
    assert [result.status for result in (nothing, one, equal, fifty)] == ["no_data", "n_lt_2", "ok", "ok"]
    assert one.estimate == 0.7 and equal.interval.method == "betting" and "detectable_difference" not in equal.detail
    for result in (nothing, one, equal, fifty):
        assert result.test is None
        assert "pvalue" not in json.dumps(result.as_dict()["test"], allow_nan=False)
        json.dumps(result.as_dict(), allow_nan=False)


def test_bad_answers_are_named():
    with pytest.raises(ValueError, match="xy_percent: row 1 is 120, outside 0..100"):
        spa.combine_orders([50, 120], [50, 50])
    with pytest.raises(ValueError, match="yx_percent"):
        one_pair([50], [50, 50], rng=rng())
    with pytest.raises(ValueError, match="percent: row 0 is -3"):
        spa.pair_preference_paper([-3])
    with pytest.raises(ValueError, match="a pair occurs twice"):
        spa.pair_preferences_recommended([[1, 2]], [[1, 2]], pair_names=["a", "a"], rng=rng())


# Order symmetry and the asymmetry of tau.


def test_symmetry_is_the_paired_difference_of_convictions():
    xy, yx = simulated(10, preference=0.6)
    result = spa.naming_order_effect(xy[:, 0], yx[:, 0])
    reference = stats.ttest_rel(xy[:, 0] / 100 - 0.5, 0.5 - yx[:, 0] / 100)
    assert_allclose([result.test.statistic, result.pvalue], [reference.statistic, reference.pvalue], rtol=1e-9)
    gaps = xy[:, 0] + yx[:, 0] - 100
    assert result.detail["shares"]["above"]["count"] == int((gaps > 10).sum())
    assert sum(share["count"] for share in result.detail["shares"].values()) == len(gaps)


def test_symmetry_is_a_verdict_and_not_the_lack_of_one():
    few = spa.naming_order_effect(*(part[:, 0] for part in simulated(11, n=12, sd=0.2)))
    many = spa.naming_order_effect(*(part[:, 0] for part in simulated(12, n=600, sd=0.1)))
    assert few.detail["verdict"] == "inconclusive"
    assert many.detail["verdict"] == "equivalent"
    yes_sayers = spa.naming_order_effect(np.full(40, 75) + np.arange(40) % 5, np.full(40, 75))
    assert yes_sayers.detail["verdict"] == "different" and yes_sayers.estimate > 0.5


def test_symmetry_after_tau_is_refused():
    result = spa.naming_order_effect([70, 60], [30, 40], is_after_tau=True)
    assert (result.status, result.reason, result.estimate, result.test) == ("not_applicable", "circular", None, None)
    assert [(w.code, w.severity) for w in result.warnings] == [("circular", "block")]


def test_the_gap_after_tau_is_negative_whatever_people_think():
    xy, yx = simulated(13, n=400, sd=0.15)
    kept = ~spa.tau_incoherence_flags(xy, yx).incoherent
    before = spa.naming_order_effect(xy[:, 0], yx[:, 0])
    after = spa.naming_order_effect(xy[kept, 0], yx[kept, 0])
    assert before.pvalue > 0.05 and after.estimate < -0.08 and after.pvalue < 1e-10


def test_pitman_morgan_is_the_correlation_of_gap_and_preference():
    draw = rng(14)
    xy, yx = draw.normal(50, 8, 80).round(), draw.normal(50, 16, 80).round()
    result = spa.gap_preference_correlation(xy, yx)
    reference = stats.pearsonr(xy + yx, xy - yx)
    assert_allclose([result.estimate, result.pvalue], [reference.statistic, reference.pvalue], rtol=1e-9)
    ends = reference.confidence_interval()
    assert_allclose([result.interval.low, result.interval.high], [ends.low, ends.high], rtol=1e-9)
    assert_allclose(result.detail["spearman"], stats.spearmanr(xy + yx, xy - yx).statistic)
    assert result.has_warning("tau_asymmetric")
    assert not spa.gap_preference_correlation(xy, draw.normal(50, 8, 80).round()).has_warning("tau_asymmetric")


def test_acquiescence_of_one_camp_is_asymmetric_and_reaches_the_tau_sensitivity():
    draw = rng(15)
    own = np.where(np.arange(120) % 2, 0.7, 0.3)
    agrees = (own > 0.5) * 0.2
    xy = np.clip(100 * (own + agrees + draw.normal(0, 0.05, 120)), 0, 100).round()
    yx = np.clip(100 * (1 - own + agrees + draw.normal(0, 0.05, 120)), 0, 100).round()
    assert spa.gap_preference_correlation(xy, yx).has_warning("tau_asymmetric")
    result = one_pair(xy, yx, rng=rng(), sensitivity_resamples=99)
    assert abs(result.estimate - 0.5) < 0.02
    assert sensitivity(result, "tau").estimate < 0.4 and sensitivity(result, "tau").has_warning("tau_asymmetric")


def test_a_correlation_that_is_undefined_is_a_status():
    assert spa.gap_preference_correlation([], []).status == "no_data"
    assert spa.gap_preference_correlation([50, 60], [50, 40]).status == "not_identified"
    assert spa.gap_preference_correlation([50] * 9, [50] * 9).status == "not_identified"


# Exclusion before and after.


def test_before_and_after_share_their_annotators():
    draw = rng(16)
    values = draw.uniform(0, 1, (80, 2))
    kept = {"too_fast": draw.random(80) > 0.2, "not_native": np.ones(80, dtype=bool)}
    found = spa.exclusion_effects_by_rule(values, kept, names=["a", "b"], rng=rng())
    change = found["too_fast"]["a"]
    assert_allclose(change.estimate, values[kept["too_fast"], 0].mean() - values[:, 0].mean())
    assert (change.n, change.detail["n_after"]) == (80, int(kept["too_fast"].sum()))
    welch = basic.welch_t_test(values[kept["too_fast"], 0], values[:, 0]).interval
    assert change.interval.high - change.interval.low < 0.7 * (welch.high - welch.low)
    assert found["not_native"]["a"].status == "not_applicable" and found["not_native"]["a"].estimate == 0


def test_the_nested_interval_agrees_with_a_plain_loop():
    draw = rng(17)
    values, kept = draw.uniform(0, 1, 50), draw.random(50) > 0.3
    found = spa.exclusion_effects_by_rule(values[:, None], {"r": kept}, names=["a"], rng=rng(1))["r"]["a"]
    draw, changes = rng(2), []
    for _ in range(4000):
        rows = draw.integers(0, 50, 50)
        changes.append(values[rows][kept[rows]].mean() - values[rows].mean())
    assert_allclose(found.estimate, values[kept].mean() - values.mean())
    assert_allclose([found.interval.low, found.interval.high], np.quantile(changes, [0.025, 0.975]), atol=0.006)


def test_a_rule_that_keeps_nobody_has_no_estimate():
    found = spa.exclusion_effects_by_rule(
        [[0.2], [0.8]], {"r": np.array([False, False])}, names=["a"], rng=rng(), resamples=99
    )
    assert (found["r"]["a"].status, found["r"]["a"].estimate) == ("no_data", None)
    assert found["r"]["a"].has_warning("all_excluded")
    assert (
        spa.exclusion_effects_by_rule(np.empty((0, 1)), {"r": np.empty(0, bool)}, names=["a"], rng=rng())["r"][
            "a"
        ].status
        == "no_data"
    )
    with pytest.raises(ValueError, match="kept: r: expected 2 booleans"):
        spa.exclusion_effects_by_rule([[0.2], [0.8]], {"r": [1, 0]}, names=["a"], rng=rng())
