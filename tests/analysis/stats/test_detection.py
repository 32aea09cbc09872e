import json
import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import integrate, special, stats
from statsmodels.stats.contingency_tables import StratifiedTable

from analysis.stats import basic, clusters, detection, groups, multiplicity
from analysis.stats.detection import _answers
from analysis.stats.results import plain
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("detection")


def study(seed=0, n_annotators=80, per=6, n_items=40, d_prime=0.8, criterion=0.3, sd=0.5, sd_items=0.2):
    """Ratings 1..4 by annotators with criteria of their own, of texts half of which are a machine's."""
    draw = rng(seed)
    who = np.repeat(np.arange(n_annotators), per)
    items = draw.integers(0, n_items, len(who))
    truth = items % 2
    strength = (truth - 0.5) * d_prime + draw.normal(0, sd_items, n_items)[items] - criterion
    strength += draw.normal(0, 1, len(who)) - draw.normal(0, sd, n_annotators)[who]
    return np.digitize(strength, [-0.9, 0.0, 0.9]) + 1.0, truth, who, items


def says_of(ratings):
    return detection.says_machine(ratings)


def test_ratings_fall_into_two_bins_and_none_on_the_threshold():
    assert_allclose(detection.says_machine([1, 2, 3, 4, None]), [0, 0, 1, 1, np.nan])
    with pytest.raises(ValueError, match="ratings: row 1 lies on the threshold 3"):
        detection.says_machine([1, 3, 5], threshold=3)
    assert_allclose(detection.is_correct([1, 0, None], [1, 1, 0]), [1, 0, np.nan])
    for call, word in (
        (lambda: detection.is_correct([2], [1]), "says: row 0 is 2"),
        (lambda: detection.is_correct([1], [0.5]), "is_machine: row 0"),
        (lambda: detection.is_correct([1], [None]), "is_machine: row 0 is missing"),
        (lambda: detection.is_correct([1, 0], [1]), "is_machine: 1 values"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def test_measures_agree_with_the_definitions():
    case = GOLDEN["measures"]
    found = detection.measures_from_counts(case["tp"], case["fp"], case["fn"], case["tn"])
    for name in ("accuracy", "precision", "recall", "f1", "specificity", "balanced_accuracy"):
        assert_allclose(getattr(found, name), case[name], atol=1e-12)
    assert_allclose(100 * found.share_human, case["pct_human"])
    case = GOLDEN["classification"]
    truth = [label == "m" for label in case["true"]]
    from_rows = detection.detection_measures([3 if label == "m" else 2 for label in case["pred"]], truth)
    for name in ("accuracy", "precision", "recall", "f1"):
        assert_allclose(getattr(from_rows, name), case[name], atol=1e-12)
    assert from_rows.share_confident == 0


def test_undefined_measures_are_none():
    never = detection.measures_from_counts(0, 0, 5, 5)
    assert (never.precision, never.recall, never.f1, never.share_human) == (None, 0, 0, 1)
    only_human = detection.detection_measures([1, 4], [0, 0])
    assert (only_human.recall, only_human.balanced_accuracy, only_human.accuracy) == (None, None, 0.5)
    nothing = detection.detection_measures([None], [1])
    assert (nothing.n, nothing.accuracy, nothing.share_confident) == (0, None, None)
    with pytest.raises(ValueError, match="false_positives: -1"):
        detection.measures_from_counts(1, -1, 1, 1)
    with pytest.raises(ValueError, match="n_confident"):
        detection.measures_from_counts(1, 1, 1, 1, n_confident=5)


def test_swapping_the_classes_swaps_the_measures():
    ratings, truth, _, _ = study(1)
    found, swapped = detection.detection_measures(ratings, truth), detection.detection_measures(5 - ratings, 1 - truth)
    assert (found.recall, found.accuracy) == (swapped.specificity, swapped.accuracy)
    assert found.share_human == pytest.approx(1 - swapped.share_human)


@pytest.mark.parametrize("row", GOLDEN["published"], ids=lambda row: f"{row['group']}-{row['domain']}")
def test_published_rows_come_back_from_the_counts_that_they_allow(row):
    # 650 answers a row; every pair (machine texts, true positives) whose measures round to the row's.
    guessed = 650 - row["n_human_guess"]
    solutions, possible = [], []
    for n_machine in range(250, 401):
        for hits in range(max(0, guessed - (650 - n_machine)), min(guessed, n_machine) + 1):
            if not (
                abs(hits / guessed - row["precision"]) <= 0.005 + 1e-9
                and abs(hits / n_machine - row["recall"]) <= 0.005 + 1e-9
            ):
                continue
            false = guessed - hits
            possible.append((n_machine, (hits + 650 - n_machine - false) / 650))
            found = detection.measures_from_counts(
                hits, false, n_machine - hits, 650 - n_machine - false, n_confident=row["n_confident"]
            )
            assert found.n == 650 and found.share_human == pytest.approx(row["n_human_guess"] / 650)
            columns = ("precision", "recall", "f1", "accuracy")
            if all(abs(getattr(found, name) - row[name]) <= 0.005 + 1e-9 for name in columns):
                solutions.append((n_machine, hits, false))
    # One row of the paper contradicts itself: no counts give its precision, recall and accuracy together.
    assert len(solutions) == row["n_solutions"]
    shares = [round(n_machine / 650, 3) for n_machine, _, _ in solutions]
    assert row["machine_share_full"] == ([min(shares), max(shares)] if shares else None)
    # What precision and recall allow, whatever accuracy is printed beside them.
    needed, accuracies = (
        [round(value, 3) for value in values] for values in zip(*((n / 650, a) for n, a in possible), strict=True)
    )
    assert row["machine_share_needed"] == [min(needed), max(needed)] and row["acc_implied"] == [
        min(accuracies),
        max(accuracies),
    ]
    for n_machine, hits, false in solutions:
        signal = detection.signal_detection(hits, n_machine - hits, false, 650 - n_machine - false)
        assert_allclose(signal.d_prime, row["d_prime"], atol=0.06)
        assert_allclose(signal.criterion, row["criterion"], atol=0.03)


@pytest.mark.parametrize("row", GOLDEN["published"], ids=lambda row: f"{row['group']}-{row['domain']}")
def test_published_columns_are_not_those_of_balanced_texts(row):
    """What the printed recall and share of answers would give if half of the texts were machines'."""
    half, guessed = 500_000, 1 - row["n_human_guess"] / 650
    hits = round(half * row["recall"])
    false = round(2 * half * guessed) - hits
    found = detection.measures_from_counts(hits, false, half - hits, half - false)
    assert_allclose(found.balanced_accuracy, row["balanced_accuracy_implied"], atol=6e-5)
    assert_allclose(
        [found.accuracy, found.precision], [found.balanced_accuracy, row["balanced_precision_implied"]], atol=6e-5
    )
    # F1 is the harmonic mean of the two other columns, so it needs no count.
    p, r = row["precision"], row["recall"]
    assert_allclose([2 * p * r / (p + r), row["f1"]], row["f1_from_p_r"], atol=0.0101)
    assert_allclose(2 * p * r / (p + r), row["f1_from_p_r"], atol=6e-5)


def test_signal_detection_agrees_with_the_reference():
    for case in GOLDEN["signal_detection"]:
        found = detection.signal_detection(case["hits"], case["misses"], case["fa"], case["cr"])
        assert_allclose(
            [found.hit_rate, found.false_alarm_rate, found.d_prime, found.criterion, found.se_d_prime],
            [case["H"], case["F"], case["d_prime"], case["c"], case["se_d"]],
            atol=1e-9,
        )
        assert_allclose(found.se_criterion, found.se_d_prime / 2)
    assert detection.signal_detection(3, 2, 0, 0) is None
    assert detection.signal_detection(0, 0, 1, 2) is None
    with pytest.raises(ValueError, match="false_alarms"):
        detection.signal_detection(1, 1, -1, 1)


def test_the_mirror_image_of_signal_detection():
    found, mirrored = detection.signal_detection(30, 20, 12, 38), detection.signal_detection(38, 12, 20, 30)
    assert_allclose([found.d_prime, found.criterion], [mirrored.d_prime, -mirrored.criterion], atol=1e-12)
    assert_allclose(found.se_d_prime, mirrored.se_d_prime)


def test_the_papers_accuracy_is_a_t_test_over_annotators():
    ratings, truth, who, _ = study(2)
    correct = detection.is_correct(says_of(ratings), truth)
    found = detection.accuracy_paper(correct, who)
    shares = correct.reshape(80, 6).mean(axis=1)
    wanted = stats.ttest_1samp(shares, 0.5)
    assert_allclose([found.estimate, found.test.statistic, found.pvalue], [shares.mean(), *wanted], rtol=1e-9)
    assert (found.n, found.test.df, found.mode) == (80, 79, "paper")
    # The paper prints 388 degrees of freedom for 390 evaluators: they are 389.
    assert detection.accuracy_paper(rng(0).integers(0, 2, 390 * 5), np.repeat(np.arange(390), 5)).test.df == 389


def evaluators(total_correct):
    """130 annotators with five texts each, spread a little wider than guessing, that many answers right in all."""
    quantiles = (np.arange(130) + 0.5) / 130
    share = total_correct / 650
    right = stats.betabinom.ppf(quantiles, 5, 30 * share, 30 * (1 - share)).astype(int)
    # The rounding of quantiles is undone one answer at a time, in the middle of the scale.
    for row in np.argsort(abs(right - 2.5), kind="stable")[: abs(total_correct - right.sum())]:
        right[row] += np.sign(total_correct - right.sum())
    correct = (np.arange(5) < right[:, None]).astype(float).ravel()
    return correct, np.repeat(np.arange(130), 5)


def test_the_published_stars_follow_from_130_annotators_a_cell_and_fifteen_tests():
    # Tables 1 and 2: .62 and .57 are starred, .55 is not, Bonferroni over 15 cells.
    cells = {
        name: detection.accuracy_paper(*evaluators(total)) for name, total in (("62", 403), ("57", 371), ("55", 358))
    }
    for cell in cells.values():
        assert 0.22 < cell.detail["sd"] < 0.245 and cell.test.df == 129
    planned = (*cells, *(f"other {row}" for row in range(12)))
    after = multiplicity.adjusted(cells, multiplicity.Family("accuracy", planned, "bonferroni"))
    assert after["62"].test.pvalue_adjusted < 1e-4
    assert after["57"].test.pvalue_adjusted < 0.05 < after["55"].test.pvalue_adjusted
    assert_allclose(after["57"].test.pvalue_adjusted, 15 * cells["57"].pvalue)


def test_scores_by_annotator_carry_their_condition_into_the_papers_tests():
    ratings, truth, who, _ = study(3, n_annotators=90)
    arms = np.array(["none", "examples", "comparison"])[who % 3]
    correct = detection.is_correct(says_of(ratings), truth)
    correct[who == 4] = np.nan
    scores = detection.annotator_scores(correct, who, arms)
    assert len(scores.annotators) == 89 and 4 not in scores.annotators
    assert scores.groups == tuple(arms[np.flatnonzero(who == a)[0]] for a in scores.annotators)
    assert_allclose(scores.accuracies * scores.n_items, scores.n_correct)
    anova = groups.one_way_anova(scores.accuracies, scores.groups)
    assert (anova.detail["df_between"], anova.detail["df_within"]) == (2, 86)
    mixed = arms.copy()
    mixed[0] = "examples"
    with pytest.raises(ValueError, match="conditions: annotator 0 is in two"):
        detection.annotator_scores(correct, who, mixed)
    empty = detection.annotator_scores([], [], [])
    assert (empty.annotators, empty.groups) == ((), ())
    json.dumps(plain(scores), allow_nan=False)


def test_recommended_accuracy_clusters_both_ways_and_says_what_it_could_have_found():
    ratings, truth, who, items = study(4)
    correct = detection.is_correct(says_of(ratings), truth)
    found = detection.accuracy(correct, who, items)
    wanted = clusters.two_way_mean(correct, who, items, null=0.5, bounds=(0, 1))
    assert_allclose([found.pvalue, found.interval.low], [wanted.pvalue, wanted.interval.low])
    df, se = found.detail["df"], found.detail["se"]
    reached = 1 - stats.nct.cdf(stats.t.ppf(0.975, df), df, found.detail["detectable"] / se)
    assert_allclose(reached, 0.8, atol=1e-6)
    assert detection.accuracy(correct, who, items, tests=15).detail["detectable"] > found.detail["detectable"]
    one_way = detection.accuracy(correct, who)
    assert_allclose(one_way.detail["se"], clusters.clustered_mean(correct, who).detail["se"])
    assert detection.accuracy([], []).status == "no_data"
    assert detection.accuracy([1, 1, 1, 1], [1, 1, 2, 2], [1, 2, 1, 2]).status == "zero_variance"
    assert detection.accuracy([1, 0], [1, 1]).status == "n_lt_2"


def test_marginal_sensitivity_is_the_probit_regression_with_two_way_clusters():
    ratings, truth, who, items = study(5, n_annotators=300, n_items=120)
    says = says_of(ratings)
    d, c = (
        call(says, truth, who, items, rng=rng(), resamples=99) for call in (detection.sensitivity, detection.criterion)
    )
    model = sm.GLM(says, sm.add_constant(truth.astype(float)), family=sm.families.Binomial(sm.families.links.Probit()))
    fit = model.fit(cov_type="cluster", cov_kwds={"groups": np.column_stack([who, items])})
    # The log-linear correction moves 1,800 answers by a few thousandths.
    assert_allclose([d.estimate, c.estimate], [fit.params[1], -(fit.params[0] + fit.params[1] / 2)], atol=0.005)
    factor = math.sqrt((1800 - 1) / (1800 - 2))
    assert_allclose(math.sqrt(d.detail["variance_two_way"]) * factor, fit.bse[1], rtol=0.005)
    contrast = np.array([-1, -0.5])
    assert_allclose(
        math.sqrt(c.detail["variance_two_way"]), math.sqrt(contrast @ fit.cov_params() @ contrast), rtol=0.005
    )
    assert d.test.df == c.test.df == 119
    assert d.detail["se_independent"] < d.detail["se"]
    signal = detection.signal_detection(d.detail["hits"], d.detail["n_machine"] - d.detail["hits"], d.detail["false_alarms"],
        d.detail["n_human"] - d.detail["false_alarms"])  # fmt: skip
    assert_allclose([d.estimate, c.estimate], [signal.d_prime, signal.criterion], atol=1e-12)
    assert_allclose([d.detail["se_independent"], c.detail["se_independent"]], [signal.se_d_prime, signal.se_criterion])


def test_pooled_sensitivity_shrinks_with_the_spread_of_criteria_and_the_random_criterion_does_not():
    # Everybody at d' = 1 with criteria spread by .8 pools to 1 / sqrt(1 + .64) = .78.
    ratings, truth, who, items = study(6, n_annotators=1500, per=10, n_items=15000, d_prime=1.0, sd=0.8, sd_items=0.0)
    says = says_of(ratings)
    found = detection.sensitivity(says, truth, who, items, rng=rng(), resamples=199)
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
        found = detection.sensitivity(says_of(ratings), truth, who, items, rng=rng(), resamples=9)
        pooled.append(found.estimate)
        within.append(found.sensitivity[1])
    assert pooled[1] - pooled[0] > 0.2
    assert abs(within[1].estimate - within[0].estimate) < 0.15


def test_the_random_criterion_likelihood_is_that_of_the_integral():
    ratings, truth, who, _ = study(9, n_annotators=40)
    says = says_of(ratings)
    found = detection.random_criterion(says, truth, who)
    table = _answers.annotator_counts(says, truth, who)[1]

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
    found = detection.stratified_sensitivity(says, truth, who)
    tables = []
    for a in range(80):
        mine = who == a
        tables.append([[np.sum(says[mine] * truth[mine]), np.sum((1 - says[mine]) * truth[mine])],
                       [np.sum(says[mine] * (1 - truth[mine])), np.sum((1 - says[mine]) * (1 - truth[mine]))]])  # fmt: skip
    kept = [t for t in np.array(tables) if t.sum(axis=0).min() > 0 and t.sum(axis=1).min() > 0]
    reference = StratifiedTable(kept)
    assert_allclose(found.estimate, reference.logodds_pooled, rtol=1e-9)
    assert found.n == len(kept) and found.detail["n_uninformative"] == 80 - len(kept)
    # Robins, Breslow and Greenland's standard error, by other means than leaving one out.
    assert_allclose(found.detail["se"], reference.logodds_pooled_se, rtol=0.15)


def test_sensitivity_edge_cases_are_statuses():
    call = detection.sensitivity
    only_machine = call([1, 0, 1], [1, 1, 1], [1, 2, 3], rng=rng())
    assert (only_machine.status, only_machine.estimate, only_machine.detail["n_human"]) == ("not_identified", None, 0)
    assert call([], [], [], rng=rng()).status == "no_data"
    assert call([None], [1], [1], rng=rng()).status == "no_data"
    perfect = call([1, 1, 0, 0] * 10, [1, 1, 0, 0] * 10, np.repeat(np.arange(10), 4), rng=rng(), resamples=99)
    assert (perfect.status, perfect.interval, perfect.test) == ("separation", None, None)
    assert_allclose(perfect.estimate, GOLDEN["signal_detection"][2]["d_prime"])
    assert [other.status for other in perfect.sensitivity] == ["zero_variance", "separation", "separation"]
    one = call([1, 0, 1, 0], [1, 1, 0, 0], [7] * 4, rng=rng(), resamples=9)
    assert (one.status, one.test) == ("n_lt_2", None) and one.estimate == pytest.approx(0)
    assert detection.stratified_sensitivity([1, 1], [1, 0], [1, 1]).status == "not_identified"
    assert detection.stratified_sensitivity([], [], []).status == "no_data"
    assert detection.stratified_sensitivity([1, 0, 1, 0], [1, 0, 1, 1], [1] * 4).status == "separation"
    assert detection.random_criterion([], [], []).status == "no_data"
    assert detection.random_criterion([1, 0], [1, 1], [1, 2]).status == "not_identified"
    assert detection.random_criterion([1, 0, 1, 0], [1, 1, 0, 0], [1] * 4).status == "n_lt_2"
    # Everybody says one thing only: criteria without bounds.
    stubborn = detection.random_criterion([1] * 12 + [0] * 12, [0, 1] * 12, np.repeat(np.arange(4), 6))
    assert (stubborn.status, stubborn.test) == ("failed", None)
    for result in (only_machine, perfect, one, stubborn):
        json.dumps(result.as_dict(), allow_nan=False)


def test_annotators_and_rows_may_come_in_any_order():
    ratings, truth, who, items = study(11)
    order = rng(3).permutation(len(who))
    first = detection.human_likeness(ratings, truth, who, items, rng=rng(), resamples=99)
    names = np.array([f"reader {99 - a}" for a in who])
    second = detection.human_likeness(ratings[order], truth[order], names[order], items[order], rng=rng(), resamples=99)
    assert first.measures == second.measures
    for part in ("accuracy", "accuracy_paper", "sensitivity", "criterion", "auc", "share_human", "bias"):
        one, other = getattr(first, part), getattr(second, part)
        assert_allclose([one.estimate, one.interval.low], [other.estimate, other.interval.low], rtol=1e-8)
    assert first.sensitivity.sensitivity[0].interval == second.sensitivity.sensitivity[0].interval
    json.dumps(plain(first), allow_nan=False)


def test_human_likeness_of_mirrored_answers_is_mirrored():
    ratings, truth, who, items = study(12)
    found = detection.human_likeness(ratings, truth, who, items, rng=rng(), resamples=99)
    mirror = detection.human_likeness(5 - ratings, 1 - truth, who, items, rng=rng(), resamples=99)
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
    found = detection.sensitivity_by_condition(says, truth, who, arms, items, reference="none")
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
    assert_allclose(math.sqrt(gain.detail["variance_two_way"]), fit.bse[3], rtol=0.01)
    assert gain.pvalue < 0.001 and gain.settings["reference"] == "none"
    with pytest.raises(ValueError, match="reference"):
        detection.sensitivity_by_condition(says, truth, who, arms, reference="pairs")
    json.dumps(plain(found), allow_nan=False)


def test_a_training_may_move_the_criterion_and_nothing_else():
    ratings, truth, who, items = study(14, n_annotators=400, criterion=0.6, sd_items=0.0)
    bolder, _, _, _ = study(14, n_annotators=400, criterion=0.0, sd_items=0.0)
    arms = np.repeat(["none", "comparison"], len(who))
    says = np.r_[says_of(ratings), says_of(bolder)]
    both = np.r_[who, who + 400]
    found = detection.sensitivity_by_condition(says, np.tile(truth, 2), both, arms, np.tile(items, 2), reference="none")
    assert abs(found.sensitivity_differences[0].estimate) < 0.15
    assert found.criterion_differences[0].interval.high < -0.3


def test_auc_agrees_with_the_reference_and_with_mann_and_whitney():
    case = GOLDEN["auc"]
    ratings, truth = case["machine"] + case["human"], [1] * 5 + [0] * 5
    found = detection.graded_auc(ratings, truth, [*range(5)] * 2, rng=rng(), resamples=99)
    assert_allclose(found.estimate, case["auc"], atol=1e-12)
    ratings, truth, who, items = study(15)
    found = detection.graded_auc(ratings, truth, who, items, rng=rng(), resamples=999)
    pairs = truth.sum() * (1 - truth).sum()
    wanted = stats.mannwhitneyu(ratings[truth == 1], ratings[truth == 0]).statistic / pairs
    assert_allclose(found.estimate, wanted, atol=1e-12)
    # With every answer a cluster of its own the two-way variance is DeLong's, up to n / (n - 1).
    alone = detection.graded_auc(ratings, truth, np.arange(480), np.arange(480), rng=rng(), resamples=99)
    machine, human = ratings[truth == 1], ratings[truth == 0]
    wins = (machine[:, None] > human).astype(float) + (machine[:, None] == human) / 2
    delong = wins.mean(axis=1).var() / len(machine) + wins.mean(axis=0).var() / len(human)
    assert_allclose(alone.detail["se"] ** 2, delong * 480 / 479, rtol=1e-9)
    resampled, within = found.sensitivity
    assert resampled.interval.low < found.estimate < resampled.interval.high
    mine = [
        (np.sum(wins_of(ratings[m & (truth == 1)], ratings[m & (truth == 0)])), truth[m].sum() * (1 - truth[m]).sum())
        for m in (who == a for a in range(80))
    ]
    assert_allclose(within.estimate, sum(w for w, _ in mine) / sum(n for _, n in mine))


def wins_of(machine, human):
    return (machine[:, None] > human) + (machine[:, None] == human) / 2


def test_the_two_way_variance_of_the_auc_adds_up_placements():
    ratings, truth, who, items = study(24, n_annotators=90, n_items=16, sd_items=0.8)
    found = detection.graded_auc(ratings, truth, who, items, rng=rng(), resamples=9)
    machine, human = ratings[truth == 1], ratings[truth == 0]
    moves = np.zeros(len(ratings))
    moves[truth == 1] = (wins_of(machine, human).mean(axis=1) - found.estimate) / len(machine)
    moves[truth == 0] = (wins_of(machine, human).mean(axis=0) - found.estimate) / len(human)

    def clustered(labels):
        sums = pd.Series(moves).groupby(labels).sum()
        return len(sums) / (len(sums) - 1) * float((sums**2).sum())

    by_annotator, by_item = clustered(who), clustered(items)
    both = clustered([f"{a} {i}" for a, i in zip(who, items, strict=True)])
    assert by_item > by_annotator
    assert_allclose(found.detail["se"] ** 2, max(by_annotator + by_item - both, by_item), rtol=1e-9)
    assert found.test.df == 15


def test_auc_without_texts_is_the_jackknife_over_annotators():
    ratings, truth, who, _ = study(16, n_annotators=30)
    found = detection.graded_auc(ratings, truth, who, rng=rng(), resamples=99)
    without = [
        wins_of(ratings[(who != a) & (truth == 1)], ratings[(who != a) & (truth == 0)]).mean() for a in range(30)
    ]
    assert_allclose(
        found.detail["se"], math.sqrt(29 / 30 * np.sum((np.array(without) - found.estimate) ** 2)), rtol=1e-9
    )
    assert (found.test.df, found.interval.method) == (29, "cv3_t")


def test_auc_knows_only_the_order_and_needs_no_threshold():
    ratings, truth, who, items = study(17)
    plain_, curved = (
        detection.graded_auc(r, truth, who, items, rng=rng(), resamples=99) for r in (ratings, np.exp(ratings))
    )
    assert (plain_.estimate, plain_.pvalue, plain_.interval) == (curved.estimate, curved.pvalue, curved.interval)
    mirrored = detection.graded_auc(-ratings, truth, who, items, rng=rng(), resamples=99)
    assert_allclose([mirrored.estimate, mirrored.pvalue], [1 - plain_.estimate, plain_.pvalue], rtol=1e-9)
    # Annotators who use other parts of the scale blur the pooled order and not their own.
    shifted = ratings + 4 * (who % 3)
    blurred = detection.graded_auc(shifted, truth, who, items, rng=rng(), resamples=99)
    assert blurred.estimate < plain_.estimate - 0.05
    assert blurred.sensitivity[1].estimate == plain_.sensitivity[1].estimate


def test_auc_edge_cases_are_statuses():
    call = detection.graded_auc
    assert call([], [], [], rng=rng()).status == "no_data"
    assert call([1, 2], [1, 1], [1, 2], rng=rng()).status == "not_identified"
    assert call([1, 2], [1, 0], [1, 1], rng=rng()).status == "n_lt_2"
    same = call([3] * 8, [0, 1] * 4, np.repeat(np.arange(4), 2), rng=rng())
    assert (same.status, same.estimate) == ("zero_variance", 0.5)
    perfect = call([4, 1] * 8, [1, 0] * 8, np.repeat(np.arange(8), 2), rng=rng(), resamples=99)
    assert (perfect.status, perfect.estimate, perfect.test) == ("zero_variance", 1.0, None)
    lonely = call([4, 1, 2, 1, 3, 2], [1, 0, 0, 0, 0, 0], [1, 1, 2, 2, 3, 3], rng=rng())
    assert lonely.status == "not_identified"
    assert call([4, 1, 3, 2], [1, 0, 1, 0], [1, 1, 2, 2], ["t"] * 4, rng=rng()).status == "n_lt_2"


def test_bias_and_share_human():
    ratings, truth, who, items = study(18, criterion=0.8)
    says = says_of(ratings)
    share, bias = detection.share_human(says, who, items), detection.detection_bias(says, truth, who, items)
    assert_allclose(share.estimate, 1 - says.mean())
    assert_allclose(bias.estimate, (1 - says.mean()) - (1 - truth.mean()))
    assert bias.interval.low > 0 and bias.pvalue < 0.01
    tested = detection.share_human(says, who, items, null=0.5)
    assert tested.test is not None and share.test is None
    # Three human texts in four, "human" in half of the answers: no lean of the share, a clear bias.
    unequal = detection.detection_bias([1, 0, 1, 0] * 8, [1, 0, 0, 0] * 8, np.repeat(np.arange(8), 4))
    assert unequal.estimate == -0.25


def test_confident_answers_are_compared_with_the_others():
    ratings, truth, who, items = study(19, d_prime=2.0)
    correct = detection.is_correct(says_of(ratings), truth)
    found = detection.confidence_gain(correct, ratings, who, items)
    sure = np.isin(ratings, (1, 4))
    assert_allclose(found.estimate, correct[sure].mean() - correct[~sure].mean())
    assert found.interval.low > 0
    assert detection.confidence_gain([1, 0], [4, 4], [1, 2]).status == "no_data"


def test_drift_within_a_session_is_a_slope_within_annotators():
    draw = rng(20)
    who, places = np.repeat(np.arange(60), 5), np.concatenate([draw.permutation(5) for _ in range(60)])
    values = (draw.random(300) < 0.3 + 0.08 * places + draw.normal(0, 0.1, 60)[who]).astype(float)
    found = detection.session_drift(values, places, who)
    design = np.column_stack([np.eye(60)[who], places])
    wanted = np.linalg.lstsq(design, values)[0][-1]
    assert_allclose(found.estimate, wanted, rtol=1e-9)
    without = [np.linalg.lstsq(design[who != a], values[who != a])[0][-1] for a in range(60)]
    assert_allclose(found.detail["se"], math.sqrt(59 / 60 * np.sum((np.array(without) - wanted) ** 2)), rtol=1e-7)
    assert found.interval.low < 0.08 < found.interval.high
    assert_allclose(found.detail["means"], [values[places == place].mean() for place in range(5)])
    assert found.detail["n_at"].tolist() == [60] * 5
    # Better annotators who answer more texts do not make a trend.
    lengths = np.repeat([2, 8], 30)
    who, places = np.repeat(np.arange(60), lengths), np.concatenate([np.arange(n) for n in lengths])
    better = (draw.random(len(who)) < np.where(who < 30, 0.3, 0.9)).astype(float)
    flat = detection.session_drift(better, places, who)
    pooled = np.polyfit(places, better, 1)[0]
    assert flat.interval.low < 0 < flat.interval.high and pooled > 0.03


def test_drift_edge_cases_are_statuses():
    call = detection.session_drift
    assert call([], [], []).status == "no_data"
    assert call([1, 0], [1, 1], [1, 2]).status == "not_identified"
    assert call([1, 0], [1, 2], [1, 1]).status == "n_lt_2"
    flat = call([1, 1, 0, 0], [1, 2, 1, 2], [1, 1, 2, 2])
    assert (flat.status, flat.estimate, flat.test) == ("zero_variance", 0, None)
    with pytest.raises(ValueError, match="positions: 1 values"):
        call([1, 0], [1], [1, 2])


def test_histograms_count_annotators_and_ratings():
    ratings, truth, who, _ = study(21)
    correct = detection.is_correct(says_of(ratings), truth)
    correct[:2] = np.nan
    found = detection.score_histogram(correct, who)
    assert [one["n_items"] for one in found] == [4, 6]
    assert sum(found[1]["counts"]) == found[1]["n_annotators"] == 79
    assert_allclose(found[1]["expected_by_chance"], 79 * stats.binom.pmf(range(7), 6, 0.5))
    assert_allclose(np.dot(found[1]["counts"], range(7)), np.nansum(correct[6:]))
    bars = detection.rating_histogram(ratings, truth)
    assert sum(bars["machine"]) == truth.sum() and sum(bars["human"]) == (1 - truth).sum() and bars["missing"] == [0]
    with pytest.raises(ValueError, match="ratings: row 0 is 5"):
        detection.rating_histogram([5], [1])


def test_one_annotator_with_one_kind_of_text_still_counts_in_the_pool():
    ratings, truth, who, items = study(22, n_annotators=30)
    says = says_of(ratings).copy()
    says[(who == 3) & (truth == 1)] = np.nan
    found = detection.sensitivity(says, truth, who, items, rng=rng(), resamples=99)
    assert found.n == 30 and found.sensitivity[2].n <= 29
    assert detection.accuracy_paper(detection.is_correct(says, truth), who).n == 30


def test_the_paper_block_equals_one_sample_of_the_shares():
    ratings, truth, who, items = study(23)
    found = detection.human_likeness(ratings, truth, who, items, rng=rng(), resamples=9)
    shares = detection.annotator_scores(detection.is_correct(says_of(ratings), truth), who).accuracies
    wanted = basic.one_sample(shares, null=0.5, bounds=(0, 1), mode="paper")
    assert (found.accuracy_paper.estimate, found.accuracy_paper.test) == (wanted.estimate, wanted.test)


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
        cells = {"link": "probit", "corrected": True}
        found = (
            groups.cell_contrast(says, truth, {1: 1.0, 0: -1.0}, who, items, **cells).interval,
            groups.cell_contrast(says, truth, {1: -0.5, 0: -0.5}, who, items, **cells).interval,
            detection.graded_auc(ratings, truth, who, items, rng=rng(), resamples=2).interval,
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
        cells = {"link": "probit", "corrected": True}
        one = groups.cell_contrast(says, truth, {1: 1.0, 0: -1.0}, who, **cells)
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
        interval = detection.random_criterion(says_of(ratings), truth, who).interval
        covered += interval.low <= 1 <= interval.high
        ratings, truth, who, _ = study(seed, n_annotators=150, per=6, n_items=900, d_prime=0.0, sd=0.8, sd_items=0.0)
        rejected += detection.stratified_sensitivity(says_of(ratings), truth, who).pvalue < 0.05
        runs += 1
    assert 0.91 < covered / runs < 0.99
    assert 0.01 < rejected / runs < 0.09


def test_the_auc_of_unequal_annotators_has_their_effective_degrees_of_freedom():
    # One annotator of sixty ratings beside nineteen of six: G* = 174^2 / (60^2 + 19 x 6^2).
    draw, who = np.random.default_rng(8), np.r_[np.zeros(60), np.repeat(np.arange(1, 20), 6)]
    truth = np.tile([0, 1], len(who) // 2)
    found = detection.graded_auc(draw.integers(1, 5, len(who)) + truth, truth, who, rng=draw, resamples=99)
    assert found.test.df == pytest.approx(174**2 / (60**2 + 19 * 36) - 1)
