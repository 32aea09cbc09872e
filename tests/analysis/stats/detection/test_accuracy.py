"""Accuracy over annotators is compared with chance, as in the paper and with clusters."""

import json
import math

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import basic, clusters, detection, multiplicity, signal_detection
from analysis.stats.results import json_safe
from tests.analysis.stats.detection.answers import says_of, study
from tests.analysis.stats.draws import rng


def test_the_papers_accuracy_is_a_t_test_over_annotators():
    ratings, truth, who, _ = study(2)
    correct = signal_detection.score_correct_answers(says_of(ratings), truth)
    found = detection.mean_annotator_accuracy(correct, who)
    shares = correct.reshape(80, 6).mean(axis=1)
    wanted = stats.ttest_1samp(shares, 0.5)
    assert_allclose([found.estimate, found.test.statistic, found.pvalue], [shares.mean(), *wanted], rtol=1e-9)
    assert (found.n, found.test.df, found.mode) == (80, 79, "paper")
    # The paper prints 388 degrees of freedom for 390 evaluators: they are 389.
    assert (
        detection.mean_annotator_accuracy(rng(0).integers(0, 2, 390 * 5), np.repeat(np.arange(390), 5)).test.df == 389
    )


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
        name: detection.mean_annotator_accuracy(*evaluators(total))
        for name, total in (("62", 403), ("57", 371), ("55", 358))
    }
    for cell in cells.values():
        assert 0.22 < cell.detail["sd"] < 0.245 and cell.test.df == 129
    planned = (*cells, *(f"other {row}" for row in range(12)))
    after = multiplicity.adjust_pvalues_and_intervals_of_family(
        cells, multiplicity.Family("accuracy", planned, "bonferroni")
    )
    assert after["62"].test.pvalue_adjusted < 1e-4
    assert after["57"].test.pvalue_adjusted < 0.05 < after["55"].test.pvalue_adjusted
    assert_allclose(after["57"].test.pvalue_adjusted, 15 * cells["57"].pvalue)


def test_scores_by_annotator_leave_out_annotators_who_did_not_answer():
    ratings, truth, who, _ = study(3, n_annotators=90)
    correct = signal_detection.score_correct_answers(says_of(ratings), truth)
    correct[who == 4] = np.nan
    scores = signal_detection.accuracy_by_annotator(correct, who)
    assert len(scores.annotators) == 89 and 4 not in scores.annotators
    assert_allclose(scores.accuracies * scores.n_items, scores.n_correct)
    assert signal_detection.accuracy_by_annotator([], []).annotators == ()
    json.dumps(json_safe(scores), allow_nan=False)


def test_recommended_accuracy_clusters_both_ways_and_says_what_it_could_have_found():
    ratings, truth, who, items = study(4)
    correct = signal_detection.score_correct_answers(says_of(ratings), truth)
    found = detection.clustered_accuracy(correct, who, items)
    wanted = clusters.two_way_clustered_mean(correct, who, items, null=0.5, bounds=(0, 1))
    assert_allclose([found.pvalue, found.interval.low], [wanted.pvalue, wanted.interval.low])
    df, se = math.floor(found.detail["df"]), found.detail["se"]
    reached = 1 - stats.nct.cdf(stats.t.ppf(0.975, df), df, found.detail["detectable"] / se)
    assert_allclose(reached, 0.8, atol=1e-6)
    one_way = detection.clustered_accuracy(correct, who)
    assert_allclose(one_way.detail["se"], clusters.clustered_mean(correct, who).detail["se"])
    assert detection.clustered_accuracy([], []).status == "no_data"
    always = detection.clustered_accuracy([1, 1, 1, 1], [1, 1, 2, 2], [1, 2, 1, 2])
    assert (always.status, always.interval.method, always.interval.high) == ("ok", "betting", 1.0)
    assert always.test is None and "detectable" not in always.detail
    assert detection.clustered_accuracy([1, 0], [1, 1]).status == "n_lt_2"


def test_the_paper_block_equals_one_sample_of_the_shares():
    ratings, truth, who, items = study(23)
    found = detection.human_likeness(ratings, truth, who, items, rng=rng(), sensitivity_resamples=9)
    shares = signal_detection.accuracy_by_annotator(
        signal_detection.score_correct_answers(says_of(ratings), truth), who
    ).accuracies
    wanted = basic.one_sample_t_test(shares, null=0.5, bounds=(0, 1), mode="paper")
    assert (found.accuracy_paper.estimate, found.accuracy_paper.test) == (wanted.estimate, wanted.test)
