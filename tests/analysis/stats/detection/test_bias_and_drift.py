"""Bias, confidence and drift are described within annotators."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import detection, signal_detection
from tests.analysis.stats.detection.answers import says_of, study
from tests.analysis.stats.draws import rng


def test_bias_and_share_human():
    ratings, truth, who, items = study(18, criterion=0.8)
    says = says_of(ratings)
    share, bias = detection.share_answered_human(says, who, items), detection.human_answer_bias(says, truth, who, items)
    assert_allclose(share.estimate, 1 - says.mean())
    assert_allclose(bias.estimate, (1 - says.mean()) - (1 - truth.mean()))
    assert bias.interval.low > 0 and bias.pvalue < 0.01
    assert share.test is None
    # Three human texts in four, "human" in half of the answers: no lean of the share, a clear bias.
    unequal = detection.human_answer_bias([1, 0, 1, 0] * 8, [1, 0, 0, 0] * 8, np.repeat(np.arange(8), 4))
    assert unequal.estimate == -0.25


def test_confident_answers_are_compared_with_the_others():
    ratings, truth, who, items = study(19, d_prime=2.0)
    correct = signal_detection.score_correct_answers(says_of(ratings), truth)
    found = detection.confident_accuracy_gain(correct, ratings, who, items)
    sure = np.isin(ratings, (1, 4))
    assert_allclose(found.estimate, correct[sure].mean() - correct[~sure].mean())
    assert found.interval.low > 0
    assert detection.confident_accuracy_gain([1, 0], [4, 4], [1, 2]).status == "no_data"


def test_drift_within_a_session_is_a_slope_within_annotators():
    draw = rng(20)
    who, places = np.repeat(np.arange(60), 5), np.concatenate([draw.permutation(5) for _ in range(60)])
    values = (draw.random(300) < 0.3 + 0.08 * places + draw.normal(0, 0.1, 60)[who]).astype(float)
    found = detection.change_per_session_position(values, places, who)
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
    flat = detection.change_per_session_position(better, places, who)
    pooled = np.polyfit(places, better, 1)[0]
    assert flat.interval.low < 0 < flat.interval.high and pooled > 0.03


def test_drift_edge_cases_are_statuses():
    call = detection.change_per_session_position
    assert call([], [], []).status == "no_data"
    assert call([1, 0], [1, 1], [1, 2]).status == "not_identified"
    assert call([1, 0], [1, 2], [1, 1]).status == "n_lt_2"
    flat = call([1, 1, 0, 0], [1, 2, 1, 2], [1, 1, 2, 2])
    assert (flat.status, flat.estimate, flat.test) == ("zero_variance", 0, None)
    with pytest.raises(ValueError, match="positions: 1 values"):
        call([1, 0], [1], [1, 2])


def test_histograms_count_annotators_and_ratings():
    ratings, truth, who, _ = study(21)
    correct = signal_detection.score_correct_answers(says_of(ratings), truth)
    correct[:2] = np.nan
    found = signal_detection.correct_count_histograms_by_n_items(correct, who)
    assert [one["n_items"] for one in found] == [4, 6]
    assert sum(found[1]["counts"]) == found[1]["n_annotators"] == 79
    assert_allclose(found[1]["expected_by_chance"], 79 * stats.binom.pmf(range(7), 6, 0.5))
    assert_allclose(np.dot(found[1]["counts"], range(7)), np.nansum(correct[6:]))
