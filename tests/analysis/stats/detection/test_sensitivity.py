"""Sensitivity and criterion are estimated by the probit, by random criteria and within strata."""

import json
import math

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import integrate, special, stats
from statsmodels.stats.contingency_tables import StratifiedTable

from analysis.stats import cell_contrasts, detection, signal_detection
from analysis.stats.results import json_safe
from tests.analysis.stats.detection.answers import GOLDEN, says_of, study
from tests.analysis.stats.draws import rng


def test_signal_detection_agrees_with_the_reference():
    for case in GOLDEN["signal_detection"]:
        found = signal_detection.signal_detection(case["hits"], case["misses"], case["fa"], case["cr"])
        assert_allclose(
            [found.hit_rate, found.false_alarm_rate, found.d_prime, found.criterion, found.se_d_prime],
            [case["H"], case["F"], case["d_prime"], case["c"], case["se_d"]],
            atol=1e-9,
        )
        assert_allclose(found.se_criterion, found.se_d_prime / 2)
    assert signal_detection.signal_detection(3, 2, 0, 0) is None
    assert signal_detection.signal_detection(0, 0, 1, 2) is None
    with pytest.raises(ValueError, match="false_alarms"):
        signal_detection.signal_detection(1, 1, -1, 1)


def test_the_mirror_image_of_signal_detection():
    found, mirrored = (
        signal_detection.signal_detection(30, 20, 12, 38),
        signal_detection.signal_detection(38, 12, 20, 30),
    )
    assert_allclose([found.d_prime, found.criterion], [mirrored.d_prime, -mirrored.criterion], atol=1e-12)
    assert_allclose(found.se_d_prime, mirrored.se_d_prime)


def test_marginal_sensitivity_is_the_probit_regression_with_two_way_clusters():
    ratings, truth, who, items = study(5, n_annotators=300, n_items=120)
    says = says_of(ratings)
    d, c = (
        call(says, truth, who, items, rng=rng(), sensitivity_resamples=99)
        for call in (detection.marginal_d_prime, detection.marginal_criterion)
    )
    model = sm.GLM(says, sm.add_constant(truth.astype(float)), family=sm.families.Binomial(sm.families.links.Probit()))
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": np.column_stack([who, items])})
    # The log-linear correction moves 1,800 answers by a few thousandths.
    assert_allclose([d.estimate, c.estimate], [fit.params[1], -(fit.params[0] + fit.params[1] / 2)], atol=0.005)
    factor = math.sqrt((1800 - 1) / (1800 - 2))
    # Their variance is a sandwich, ours the jackknife.
    assert_allclose(math.sqrt(d.detail["variance_two_way"]) * factor, fit.bse[1], rtol=0.03)
    contrast = np.array([-1, -0.5])
    assert_allclose(
        math.sqrt(c.detail["variance_two_way"]), math.sqrt(contrast @ fit.cov_params() @ contrast), rtol=0.03
    )
    assert min(d.test.df, c.test.df) > 100 and max(d.test.df, c.test.df) < 400
    assert d.detail["se_independent"] < d.detail["se"]
    signal = signal_detection.signal_detection(
        d.detail["hits"],
        d.detail["n_machine"] - d.detail["hits"],
        d.detail["false_alarms"],
        d.detail["n_human"] - d.detail["false_alarms"],
    )
    assert_allclose([d.estimate, c.estimate], [signal.d_prime, signal.criterion], atol=1e-12)
    assert_allclose([d.detail["se_independent"], c.detail["se_independent"]], [signal.se_d_prime, signal.se_criterion])


def test_pooled_sensitivity_shrinks_with_the_spread_of_criteria_and_the_random_criterion_does_not():
    # Everybody at d' = 1 with criteria spread by .8 pools to 1 / sqrt(1 + .64) = .78.
    ratings, truth, who, items = study(6, n_annotators=1500, per=10, n_items=15000, d_prime=1.0, sd=0.8, sd_items=0.0)
    says = says_of(ratings)
    found = detection.marginal_d_prime(says, truth, who, items, rng=rng(), sensitivity_resamples=199)
    assert_allclose(found.estimate, 0.7809, atol=0.05)
    resampled, within, stratified = found.sensitivity
    assert_allclose(within.estimate, 1.0, atol=0.07)
    assert_allclose(within.detail["criterion_sd"], 0.8, atol=0.08)
    assert_allclose(within.detail["criterion"], 0.3, atol=0.06)
    assert_allclose(within.detail["marginal_d_prime"], found.estimate, atol=0.02)
    assert_allclose(resampled.estimate, found.estimate, atol=1e-12)
    half = (resampled.interval.high - resampled.interval.low) / 2
    assert_allclose(half, (found.interval.high - found.interval.low) / 2, rtol=0.25)
    marginal = special.logit(found.detail["hit_rate"]) - special.logit(found.detail["false_alarm_rate"])
    assert stratified.estimate > marginal + 0.1
    assert "marginal" in found.estimand and "within" in within.estimand


def test_a_training_that_only_makes_criteria_alike_raises_the_marginal_sensitivity_alone():
    settings = {"n_annotators": 800, "per": 10, "n_items": 8000, "d_prime": 1.0, "criterion": 0.0, "sd_items": 0.0}
    spread, alike = study(7, sd=1.0, **settings), study(8, sd=0.1, **settings)
    pooled, within = [], []
    for ratings, truth, who, items in (spread, alike):
        found = detection.marginal_d_prime(says_of(ratings), truth, who, items, rng=rng(), sensitivity_resamples=9)
        pooled.append(found.estimate)
        within.append(found.sensitivity[1])
    assert pooled[1] - pooled[0] > 0.2
    assert abs(within[1].estimate - within[0].estimate) < 0.15


def test_the_random_criterion_likelihood_is_that_of_the_integral():
    ratings, truth, who, _ = study(9, n_annotators=40)
    says = says_of(ratings)
    found = signal_detection.random_criterion_d_prime(says, truth, who)
    table = signal_detection.n_rows_and_signal_counts_by_annotator(says, truth, who)[1]

    z = np.linspace(-9, 9, 4001)

    def log_likelihood(d_prime, centre, spread):
        up, down = special.ndtr(d_prime / 2 - centre - spread * z), special.ndtr(-d_prime / 2 - centre - spread * z)
        chances = [
            up**h * (1 - up) ** (m - h) * down**f * (1 - down) ** (n - f) * stats.norm.pdf(z) for h, m, f, n in table
        ]
        return float(np.sum(np.log(integrate.trapezoid(chances, z, axis=1))))

    at = (found.estimate, found.detail["criterion"], found.detail["criterion_sd"])
    best = log_likelihood(*at)
    for shift in ((0.05, 0, 0), (-0.05, 0, 0), (0, 0.05, 0), (0, -0.05, 0), (0, 0, 0.05), (0, 0, -0.05)):
        assert log_likelihood(*np.add(at, shift)) < best
    # The observed information, by second differences of that integral, gives the standard error.
    best_at, step = np.array([at[0], at[1], math.log(at[2])]), 0.01

    def moved(*shifts):
        d_prime, centre, log_spread = best_at + step * np.sum(shifts, axis=0)
        return log_likelihood(d_prime, centre, math.exp(log_spread))

    units = np.eye(3)
    information = [
        [-(moved(a, b) - moved(a, -b) - moved(-a, b) + moved(-a, -b)) / (4 * step**2) for a in units] for b in units
    ]
    assert_allclose(math.sqrt(np.linalg.inv(information)[0, 0]), found.detail["se"], rtol=1e-3)


def test_stratified_sensitivity_is_mantel_and_haenszels():
    ratings, truth, who, _ = study(10)
    says = says_of(ratings)
    found = signal_detection.mantel_haenszel_log_odds_ratio(says, truth, who)
    tables = []
    for a in range(80):
        mine = who == a
        tables.append(
            [
                [np.sum(says[mine] * truth[mine]), np.sum((1 - says[mine]) * truth[mine])],
                [np.sum(says[mine] * (1 - truth[mine])), np.sum((1 - says[mine]) * (1 - truth[mine]))],
            ]
        )
    kept = [t for t in np.array(tables) if t.sum(axis=0).min() > 0 and t.sum(axis=1).min() > 0]
    reference = StratifiedTable(kept)
    assert_allclose(found.estimate, reference.logodds_pooled, rtol=1e-9)
    assert found.n == len(kept) and found.detail["n_uninformative"] == 80 - len(kept)
    # Robins, Breslow and Greenland's standard error, by other means than leaving one out.
    assert_allclose(found.detail["se"], reference.logodds_pooled_se, rtol=0.15)


def test_sensitivity_edge_cases_are_statuses():
    call = detection.marginal_d_prime
    only_machine = call([1, 0, 1], [1, 1, 1], [1, 2, 3], rng=rng())
    assert (only_machine.status, only_machine.estimate, only_machine.detail["n_human"]) == ("not_identified", None, 0)
    assert call([], [], [], rng=rng()).status == "no_data"
    assert call([None], [1], [1], rng=rng()).status == "no_data"
    perfect = call(
        [1, 1, 0, 0] * 10, [1, 1, 0, 0] * 10, np.repeat(np.arange(10), 4), rng=rng(), sensitivity_resamples=99
    )
    assert (perfect.status, perfect.interval, perfect.test) == ("separation", None, None)
    assert_allclose(perfect.estimate, GOLDEN["signal_detection"][2]["d_prime"])
    assert [other.status for other in perfect.sensitivity] == ["zero_variance", "separation", "separation"]
    one = call([1, 0, 1, 0], [1, 1, 0, 0], [7] * 4, rng=rng(), sensitivity_resamples=9)
    assert (one.status, one.test) == ("n_lt_2", None) and one.estimate == pytest.approx(0)
    assert signal_detection.mantel_haenszel_log_odds_ratio([1, 1], [1, 0], [1, 1]).status == "not_identified"
    assert signal_detection.mantel_haenszel_log_odds_ratio([], [], []).status == "no_data"
    assert signal_detection.mantel_haenszel_log_odds_ratio([1, 0, 1, 0], [1, 0, 1, 1], [1] * 4).status == "separation"
    assert signal_detection.random_criterion_d_prime([], [], []).status == "no_data"
    assert signal_detection.random_criterion_d_prime([1, 0], [1, 1], [1, 2]).status == "not_identified"
    assert signal_detection.random_criterion_d_prime([1, 0, 1, 0], [1, 1, 0, 0], [1] * 4).status == "n_lt_2"
    # Everybody says one thing only: criteria without bounds.
    stubborn = signal_detection.random_criterion_d_prime([1] * 12 + [0] * 12, [0, 1] * 12, np.repeat(np.arange(4), 6))
    assert (stubborn.status, stubborn.test) == ("failed", None)
    for result in (only_machine, perfect, one, stubborn):
        json.dumps(result.as_dict(), allow_nan=False)


def test_annotators_and_rows_may_come_in_any_order():
    ratings, truth, who, items = study(11)
    order = rng(3).permutation(len(who))
    first = detection.human_likeness(ratings, truth, who, items, rng=rng(), sensitivity_resamples=99)
    names = np.array([f"reader {99 - a}" for a in who])
    second = detection.human_likeness(
        ratings[order], truth[order], names[order], items[order], rng=rng(), sensitivity_resamples=99
    )
    assert first.measures == second.measures
    for part in ("accuracy", "accuracy_paper", "sensitivity", "criterion", "auc", "share_human", "bias"):
        one, other = getattr(first, part), getattr(second, part)
        assert_allclose([one.estimate, one.interval.low], [other.estimate, other.interval.low], rtol=1e-8)
    assert first.sensitivity.sensitivity[0].interval == second.sensitivity.sensitivity[0].interval
    json.dumps(json_safe(first), allow_nan=False)


def test_human_likeness_of_mirrored_answers_is_mirrored():
    ratings, truth, who, items = study(12)
    found = detection.human_likeness(ratings, truth, who, items, rng=rng(), sensitivity_resamples=99)
    mirror = detection.human_likeness(5 - ratings, 1 - truth, who, items, rng=rng(), sensitivity_resamples=99)
    for part in ("accuracy", "sensitivity", "auc"):
        one, other = getattr(found, part), getattr(mirror, part)
        assert_allclose([one.estimate, one.pvalue], [other.estimate, other.pvalue], rtol=1e-9)
    assert_allclose(found.criterion.estimate, -mirror.criterion.estimate, rtol=1e-9)
    assert_allclose(found.bias.estimate, -mirror.bias.estimate, rtol=1e-9)
    assert found.share_human.test is None and found.measures.share_human == pytest.approx(found.share_human.estimate)


def test_conditions_are_compared_by_the_probit_with_interaction():
    ratings, truth, who, items = study(13, n_annotators=300, n_items=80)
    arms = np.array(["none", "examples"])[who % 2]
    says = np.where((arms == "examples") & (rng(1).random(len(who)) < 0.25), truth, says_of(ratings))
    found = detection.d_prime_and_criterion_by_condition(says, truth, who, arms, items, reference="none")
    treated = (arms == "examples").astype(float)
    design = np.column_stack([np.ones(len(who)), truth, treated, truth * treated])
    model = sm.GLM(says, design, family=sm.families.Binomial(sm.families.links.Probit()))
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": np.column_stack([who, items])})
    b0, b1, b0k, b1k = fit.params
    by_name = {one.settings["condition"]: one for one in found.sensitivity}
    assert_allclose([by_name["none"].estimate, by_name["examples"].estimate], [b1, b1 + b1k], atol=0.01)
    criteria = {one.settings["condition"]: one.estimate for one in found.criterion}
    assert_allclose(
        [criteria["none"], criteria["examples"]], [-(b0 + b1 / 2), -((b0 + b0k) + (b1 + b1k) / 2)], atol=0.01
    )
    (gain,), (shift,) = found.sensitivity_differences, found.criterion_differences
    assert_allclose(gain.estimate, by_name["examples"].estimate - by_name["none"].estimate)
    assert_allclose(shift.estimate, criteria["examples"] - criteria["none"])
    assert_allclose(math.sqrt(gain.detail["variance_two_way"]), fit.bse[3], rtol=0.05)
    assert gain.pvalue < 0.001 and gain.settings["reference"] == "none"
    with pytest.raises(ValueError, match="reference"):
        detection.d_prime_and_criterion_by_condition(says, truth, who, arms, reference="pairs")
    json.dumps(json_safe(found), allow_nan=False)


def test_a_training_may_move_the_criterion_and_nothing_else():
    ratings, truth, who, items = study(14, n_annotators=400, criterion=0.6, sd_items=0.0)
    bolder, _, _, _ = study(14, n_annotators=400, criterion=0.0, sd_items=0.0)
    arms = np.repeat(["none", "comparison"], len(who))
    says = np.r_[says_of(ratings), says_of(bolder)]
    both = np.r_[who, who + 400]
    found = detection.d_prime_and_criterion_by_condition(
        says, np.tile(truth, 2), both, arms, np.tile(items, 2), reference="none"
    )
    assert abs(found.sensitivity_differences[0].estimate) < 0.15
    assert found.criterion_differences[0].interval.high < -0.3


def test_one_annotator_with_one_kind_of_text_still_counts_in_the_pool():
    ratings, truth, who, items = study(22, n_annotators=30)
    says = says_of(ratings).copy()
    says[(who == 3) & (truth == 1)] = np.nan
    found = detection.marginal_d_prime(says, truth, who, items, rng=rng(), sensitivity_resamples=99)
    assert found.n == 30 and found.sensitivity[2].n <= 29
    assert detection.mean_annotator_accuracy(signal_detection.score_correct_answers(says, truth), who).n == 30


@pytest.mark.slow
def test_intervals_of_sensitivity_criterion_and_auc_cover_where_annotators_and_texts_differ():
    sd, sd_items, runs = 0.5, 0.3, 800
    total = math.sqrt(1 + sd**2 + sd_items**2)
    marks = special.ndtr((np.array([-0.9, 0.0, 0.9])[:, None] - np.array([[0.3 - 0.3, -0.3 - 0.3]])) / total)
    machine, human = (np.diff(np.r_[0, column, 1]) for column in marks.T)
    truths = [0.6 / total, 0.3 / total, float(np.sum(machine * (np.cumsum(human) - human / 2)))]
    covered = np.zeros(3)
    for seed in range(runs):
        ratings, truth, who, items = study(
            seed, n_annotators=130, per=5, n_items=100, d_prime=0.6, sd=sd, sd_items=sd_items
        )
        says = says_of(ratings)
        cells = {"link": "probit", "is_log_linear_corrected": True}
        found = (
            cell_contrasts.cell_contrast(says, truth, {1: 1.0, 0: -1.0}, who, items, **cells).interval,
            cell_contrasts.cell_contrast(says, truth, {1: -0.5, 0: -0.5}, who, items, **cells).interval,
            signal_detection.graded_auc(ratings, truth, who, items, rng=rng(), sensitivity_resamples=2).interval,
        )
        covered += [one.low <= value <= one.high for one, value in zip(found, truths, strict=True)]
    assert np.all(covered / runs > 0.925) and np.all(covered / runs < 0.98), covered / runs


@pytest.mark.slow
@pytest.mark.parametrize("d_prime", [0.4, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("n_annotators", [20, 50, 100, 250])
def test_sensitivity_is_what_was_put_in_or_a_hair_less(n_annotators, d_prime):
    # Five texts each, two or three of them a machine's; human texts lie .75 below everybody's cut.
    draw, runs, found, covered = rng(9), 400, [], []
    who = np.repeat(np.arange(n_annotators), 5)
    for _ in range(runs):
        n_machine = draw.integers(2, 4, (n_annotators, 1))
        truth = (draw.random((n_annotators, 5)).argsort(axis=1) < n_machine).astype(float).ravel()
        says = (draw.normal(d_prime * truth - 0.75) > 0).astype(float)
        cells = {"link": "probit", "is_log_linear_corrected": True}
        one = cell_contrasts.cell_contrast(says, truth, {1: 1.0, 0: -1.0}, who, **cells)
        found.append(one.estimate)
        if one.interval:
            covered.append(one.interval.low <= d_prime <= one.interval.high)
    # Log-linear correction draws the mean over samples toward 0, by what the binomial distribution says.
    n, k = round(2.5 * n_annotators), np.arange(round(2.5 * n_annotators) + 1)
    corrected = special.ndtri((k + 0.5) / (n + 1))
    means = [stats.binom.pmf(k, n, special.ndtr(lies - 0.75)) @ corrected for lies in (d_prime, 0.0)]
    expected = means[0] - means[1]
    assert -0.03 < expected - d_prime <= 0
    assert abs(np.mean(found) - expected) < 3.5 * np.std(found) / math.sqrt(runs)
    # Some few find every machine's text, and get no interval.
    assert len(covered) > 0.98 * runs and 0.915 < np.mean(covered) < 0.985


@pytest.mark.slow
def test_the_random_criterion_and_the_stratified_test_keep_their_promises():
    covered = rejected = runs = 0
    for seed in range(200):
        ratings, truth, who, _ = study(seed, n_annotators=150, per=6, n_items=900, d_prime=1.0, sd=0.8, sd_items=0.0)
        interval = signal_detection.random_criterion_d_prime(says_of(ratings), truth, who).interval
        covered += interval.low <= 1 <= interval.high
        ratings, truth, who, _ = study(seed, n_annotators=150, per=6, n_items=900, d_prime=0.0, sd=0.8, sd_items=0.0)
        rejected += signal_detection.mantel_haenszel_log_odds_ratio(says_of(ratings), truth, who).pvalue < 0.05
        runs += 1
    assert 0.91 < covered / runs < 0.99
    assert 0.01 < rejected / runs < 0.09
