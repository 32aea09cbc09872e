"""The law of edge cases, a test for each row: where libraries give nan, a p-value of 0 or an exception, a status."""

import json
import math

import numpy as np
import pytest

from analysis.protocols.blocks import cells
from analysis.stats import (
    agreement,
    basic,
    best_worst,
    betting,
    bootstrap,
    cell_contrasts,
    cluster_variances,
    clusters,
    davidson,
    detection,
    effects,
    groups,
    judge_assisted,
    metrics,
    multiplicity,
    power_of_means,
    ranks,
    signal_detection,
    spa,
)
from tests.analysis.stats.draws import rng
from tests.analysis.stats.pairs import one_pair


def is_undefined(estimate, status, value=None):
    """A status with its reason, no test, and the estimate only if there is one."""
    assert (estimate.status, estimate.test, bool(estimate.reason)) == (status, None, True), estimate
    assert estimate.estimate is None if value is None else estimate.estimate == pytest.approx(value)
    json.dumps(estimate.as_dict(), allow_nan=False)
    return True


# One sample and two


def test_no_value():
    assert is_undefined(basic.one_sample_t_test([], null=0.5), "no_data")
    assert is_undefined(basic.one_sample_t_test([None, math.nan], null=0.5), "no_data")


def test_one_value():
    one = basic.one_sample_t_test([0.7], null=0.5, bounds=(0, 1))
    assert is_undefined(one, "n_lt_2", 0.7) and one.interval is None and one.effect is None


@pytest.mark.parametrize("value", [0.5, 0.7])
def test_no_variance(value):
    # Two libraries: p = 0 away from the null, nan at it.
    bounded, open_ended = (basic.one_sample_t_test([value] * 8, null=0.5, bounds=ends) for ends in ((0, 1), None))
    assert is_undefined(bounded, "zero_variance", value) and is_undefined(open_ended, "zero_variance", value)
    assert bounded.interval.method == "betting" and bounded.interval.low < value < bounded.interval.high
    assert open_ended.interval is None
    family = multiplicity.adjust_pvalues_and_intervals_of_family({"a": bounded}, multiplicity.Family("f", ("a",)))
    assert family["a"].test is None  # and so no stars


def test_variance_of_rounding_alone():
    assert basic.one_sample_t_test([0.1 + 0.2, 0.3, 0.3], null=0).status == "zero_variance"


def test_everybody_excluded():
    found = spa.exclusion_effects_by_rule(
        [[0.2], [0.6]], {"all": [False, False]}, names=["a"], rng=rng(), resamples=99
    )["all"]["a"]
    assert is_undefined(found, "no_data") and found.has_warning("all_excluded")
    pair = one_pair([60, 70, 80], [40, 40, 30], sensitivity_tau=0.0, rng=rng(), sensitivity_resamples=99)
    after = next(one for one in pair.sensitivity if one.analysis.endswith(".tau"))
    assert is_undefined(after, "no_data") and after.has_warning("all_excluded") and pair.status == "ok"


def test_a_missing_p_is_no_smaller_family():
    assert multiplicity.holm([0.01, None, math.nan, 0.02]) == [pytest.approx(0.04), None, None, pytest.approx(0.06)]


def test_a_p_of_zero_is_kept_and_printed_as_small():
    test = basic.one_sample_t_test(1 + 1e-6 * np.arange(200), null=0.5).test
    assert test.pvalue == 0.0 and cells.format_pvalue(test.pvalue) == "< .001"


def test_constant_data_in_the_bootstrap():
    assert bootstrap.bca_interval(1.0, np.ones(99), np.ones(5)) is None
    assert bootstrap.bootstrap_ratio_interval(1.0, np.ones(99), np.ones(5), np.ones(5), level=0.95) is None


def test_differences_that_are_all_zero():
    assert is_undefined(basic.wilcoxon([0.5, 0.5, 0.5], null=0.5), "zero_variance")
    assert is_undefined(basic.sign_test([0.5, 0.5], null=0.5), "zero_variance")


def test_ties():
    found = basic.sign_test([0.6, 0.5, 0.5, 0.4, 0.9], null=0.5)
    assert (found.n, found.detail["n_ties"]) == (3, 2)
    # |differences| 1, 1, 2 have the mid-ranks 1.5, 1.5, 3: W+ = 4.5 of 6.
    assert basic.wilcoxon([1, -1, 2]).estimate == pytest.approx((4.5 - 1.5) / 6)


def test_two_constant_groups():
    assert is_undefined(basic.welch_t_test([1, 1, 1], [2, 2, 2]), "zero_variance", -1)
    assert is_undefined(groups.welch_anova([1, 1, 2, 2, 3, 3], list("aabbcc")), "zero_variance")


def test_nobody_of_nobody():
    assert is_undefined(basic.proportion(0, 0, null=0.5), "no_data")


def test_hedges_correction_of_one_degree_of_freedom():
    assert effects.hedges_correction(1) is None and effects.cohen_dz([0.2, 0.6], null=0).hedges_g is None


# Clusters


def test_one_cluster():
    assert is_undefined(clusters.clustered_mean([1, 0, 1], ["a"] * 3, null=0.5), "n_lt_2", 2 / 3)
    assert is_undefined(clusters.two_way_clustered_mean([1, 0], ["a", "a"], [1, 2], null=0.5), "n_lt_2", 0.5)


def test_clusters_whose_means_coincide_have_no_variance_although_answers_vary():
    open_ended = clusters.clustered_mean([0, 1] * 8, np.repeat(np.arange(8), 2), null=0.4)
    assert is_undefined(open_ended, "zero_variance", 0.5) and open_ended.interval is None
    # On a scale with ends, bets need no variance: eight people say little about .4.
    bounded = clusters.clustered_mean([0, 1] * 8, np.repeat(np.arange(8), 2), null=0.4, bounds=(0, 1))
    assert (bounded.status, bounded.estimate, bounded.interval.method) == ("ok", 0.5, "betting")
    assert bounded.interval.low < 0.4 and bounded.pvalue > 0.05
    assert [w.detail["why"] for w in bounded.warnings if w.code == "betting_instead_of_t"] == ["no spread"]


def test_a_negative_variance_is_never_returned():
    # Answers that alternate in both directions: V_a = V_i = 0 and V_ai > 0.
    values = (np.add.outer(np.arange(8), np.arange(8)) % 2).ravel()
    spread, _ = cluster_variances.two_way_jackknife(
        values, np.ones(64), np.repeat(np.arange(8), 8), np.tile(np.arange(8), 8)
    )
    assert spread.combined < 0 and spread.variance == 0
    assert is_undefined(
        clusters.two_way_clustered_mean(values, np.repeat(np.arange(8), 8), np.tile(np.arange(8), 8), null=0.4),
        "zero_variance",
        0.5,
    )


# Agreement


def test_agreement_that_cannot_be_estimated():
    one_value = agreement.krippendorff_alpha([[3, 0], [2, 0]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert is_undefined(one_value, "not_identified") and one_value.detail["percent_agreement"] == 1.0
    unpaired = agreement.krippendorff_alpha([[1, 0], [0, 1]], [1, 2], level_of_measurement="nominal", rng=rng())
    assert is_undefined(unpaired, "not_identified")
    assert is_undefined(agreement.fleiss_kappa([[3, 0], [2, 0]], rng=rng()), "not_identified")
    unequal = agreement.fleiss_kappa([[3, 0], [1, 1], [0, 4], [2, 1]], rng=rng())
    assert unequal.status == "ok" and unequal.detail["raters_per_item"] == [2, 4]


# Models


def test_a_cell_without_both_answers():
    says, cells, who = [1] * 8 + [0, 1] * 4, ["x"] * 8 + ["y"] * 8, np.arange(16)
    found = cell_contrasts.cell_contrast(says, cells, {"x": 1, "y": -1}, who, link="logit")
    assert is_undefined(found, "separation")
    assert found.detail["clopper_pearson"]["x"][1] == 1.0 and found.detail["clopper_pearson"]["x"][0] > 0.6


def test_systems_that_never_met():
    first, second, wins, who = [0, 0, 2, 2] * 3, [1, 1, 3, 3] * 3, [0.6, 0.4, 0.7, 0.3] * 3, np.arange(12)
    fit = davidson.fit_davidson(first, second, wins, who, n_systems=4, ties="half")
    assert fit.status == "not_identified" and fit.components == ((0, 1), (2, 3))
    assert all(is_undefined(one, "not_identified") for one in fit.strengths)
    fit = davidson.fit_davidson(first, second, np.round(wins), who, n_systems=4)
    assert fit.status == "not_identified" and all(is_undefined(one, "not_identified") for one in fit.strengths)


def test_a_system_that_always_won():
    fit = davidson.fit_davidson([0] * 6, [1] * 6, [1] * 6, range(6), n_systems=2)
    assert fit.status == "separation" and fit.strengths[0].estimate > 0 and fit.strengths[0].interval is None


def test_sets_that_share_no_system_and_a_system_that_always_was_the_best():
    sets = [[0, 1], [0, 1], [2, 3], [2, 3]]
    fit = best_worst.best_worst_logit(sets, [0, 1, 2, 3], [1, 0, 3, 2], range(4), n_systems=4)
    assert fit.components == ((0, 1), (2, 3)) and all(is_undefined(one, "not_identified") for one in fit.strengths)
    fit = best_worst.best_worst_logit([[0, 1, 2]] * 6, [0] * 6, [1, 2] * 3, range(6), n_systems=3)
    assert all(is_undefined(one, "separation") for one in (*fit.strengths, *fit.pairs, fit.omnibus))
    score = best_worst.maxdiff_scores([[0, 1, 2]] * 6, [0] * 6, [1, 2] * 3, range(6), n_systems=4).scores
    assert (score[0].status, score[0].estimate, score[0].interval.method) == ("ok", 1.0, "betting")
    assert is_undefined(score[3], "no_data")


def test_no_machine_or_no_human_text():
    assert (
        signal_detection.signal_detection(3, 2, 0, 0) is None and signal_detection.signal_detection(0, 0, 3, 2) is None
    )
    found = detection.marginal_d_prime([1, 0, 1, 1], [1, 1, 1, 1], [1, 2, 3, 4], rng=rng(), sensitivity_resamples=99)
    assert is_undefined(found, "not_identified")


def test_a_metric_that_does_not_vary():
    found = judge_assisted.prediction_powered_mean([0.2, 0.4, 0.9] * 2, None, range(6), judges=[0.5] * 12)
    assert found.fallback and found.judges[0].weight == 0 and found.combined.interval == found.human.interval


def test_correlations_of_constants_and_of_two():
    flat = metrics.system_level_correlations([[0.5] * 4] * 3, [1, 2, 3, 4], rng=rng(), resamples=99)
    assert all(is_undefined(one, "not_identified") for one in flat.values())
    assert is_undefined(spa.gap_preference_correlation([60, 70], [40, 35]), "not_identified")
    assert is_undefined(spa.gap_preference_correlation([60, 60, 60, 60], [40, 40, 40, 40]), "not_identified")


def test_a_system_beside_its_copy():
    values = rng().normal([0.5, 0.5, 0.2], 0.02, (99, 3))
    values[:, 1] = values[:, 0]
    people, systems = np.indices((99, 3))
    found = ranks.rank_confidence_sets_from_rows(values.ravel(), people.ravel(), systems.ravel())
    assert found.undecidable == ((0, 1),) and found.low[:2] == (1, 1) and found.high[:2] == (2, 2)
    two = (one[:, :2].ravel() for one in (values, people, systems))
    assert ranks.rank_confidence_sets_from_rows(*two).status == "zero_variance"


# Tables and tails


def test_margins_without_anybody():
    assert is_undefined(groups.independence_test([[3, 0], [5, 0]]), "zero_variance")
    assert is_undefined(groups.independence_test([[3, 2], [0, 0]]), "not_identified")
    assert is_undefined(groups.independence_test([[3, 2, 0], [4, 1, 0]]), "not_identified")
    nobody_lost = groups.share_difference(0, 20, 0, 30)
    assert nobody_lost.status == "zero_variance" and nobody_lost.interval.high > 0 and nobody_lost.test is None


def test_a_group_of_one():
    for found in groups.pairwise_comparisons([1, 2, 3, 4], ["a", "a", "a", "b"], method="tukey_hsd"):
        assert is_undefined(found, "n_lt_2", -2)


def test_a_tail_that_a_library_cannot_compute():
    # nct.cdf gives nan there (nc = 20 and 30, x = -3.4); the lower tail counts nothing.
    assert power_of_means.t_test_power(3.0, 100) == 1.0 and power_of_means.t_test_power(
        30 / math.sqrt(12), 12, significance=0.005
    ) == pytest.approx(1.0)
    assert (
        power_of_means.power_from_tails(math.nan, upper_if_nan=0.75) == 0.75
        and power_of_means.power_from_tails(0.75, math.nan) == 0.75
    )


def test_drift_is_no_verdict():
    assert betting.betting_confidence_sequence([1.0] * 80 + [0.0] * 200).drift_at is not None
