"""The area under the curve depends on the order of the ratings alone."""

import math

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import signal_detection
from tests.analysis.stats.detection.answers import GOLDEN, study
from tests.analysis.stats.draws import rng


def test_auc_agrees_with_the_reference_and_with_mann_and_whitney():
    case = GOLDEN["auc"]
    ratings, truth = case["machine"] + case["human"], [1] * 5 + [0] * 5
    found = signal_detection.graded_auc(ratings, truth, [*range(5)] * 2, rng=rng(), sensitivity_resamples=99)
    assert_allclose(found.estimate, case["auc"], atol=1e-12)
    ratings, truth, who, items = study(15)
    found = signal_detection.graded_auc(ratings, truth, who, items, rng=rng(), sensitivity_resamples=999)
    pairs = truth.sum() * (1 - truth).sum()
    wanted = stats.mannwhitneyu(ratings[truth == 1], ratings[truth == 0]).statistic / pairs
    assert_allclose(found.estimate, wanted, atol=1e-12)
    # With every answer a cluster of its own the variance is near to DeLong's.
    alone = signal_detection.graded_auc(
        ratings, truth, np.arange(480), np.arange(480), rng=rng(), sensitivity_resamples=99
    )
    machine, human = ratings[truth == 1], ratings[truth == 0]
    wins = (machine[:, None] > human).astype(float) + (machine[:, None] == human) / 2
    delong = wins.mean(axis=1).var() / len(machine) + wins.mean(axis=0).var() / len(human)
    assert_allclose(alone.detail["se"] ** 2, delong, rtol=0.02)
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
    found = signal_detection.graded_auc(ratings, truth, who, items, rng=rng(), sensitivity_resamples=9)
    machine, human = ratings[truth == 1], ratings[truth == 0]
    moves = np.zeros(len(ratings))
    moves[truth == 1] = (wins_of(machine, human).mean(axis=1) - found.estimate) / len(machine)
    moves[truth == 0] = (wins_of(machine, human).mean(axis=0) - found.estimate) / len(human)

    def jackknife(labels):
        areas = [
            wins_of(ratings[(labels != one) & (truth == 1)], ratings[(labels != one) & (truth == 0)]).mean()
            for one in np.unique(labels)
        ]
        return (len(areas) - 1) / len(areas) * float(np.sum((np.array(areas) - found.estimate) ** 2))

    by_annotator, by_item = jackknife(who), jackknife(items)
    names = [f"{a} {i}" for a, i in zip(who, items, strict=True)]
    both = float((pd.Series(moves).groupby(names).sum() ** 2).sum())
    assert by_item > by_annotator
    assert_allclose(found.detail["se"] ** 2, max(by_annotator + by_item - both, by_item), rtol=1e-9)
    assert (found.settings["population"], found.interval.method) == ("people and prompts", "two_way_cv3_t")


def test_auc_without_texts_is_the_jackknife_over_annotators():
    ratings, truth, who, _ = study(16, n_annotators=30)
    found = signal_detection.graded_auc(ratings, truth, who, rng=rng(), sensitivity_resamples=99)
    without = [
        wins_of(ratings[(who != a) & (truth == 1)], ratings[(who != a) & (truth == 0)]).mean() for a in range(30)
    ]
    assert_allclose(
        found.detail["se"], math.sqrt(29 / 30 * np.sum((np.array(without) - found.estimate) ** 2)), rtol=1e-9
    )
    # A little less than 29, because the kinds of texts are not equally frequent for all annotators.
    assert found.test.df == pytest.approx(29, abs=0.1) and found.interval.method == "cv3_t"


def test_auc_knows_only_the_order_and_needs_no_threshold():
    ratings, truth, who, items = study(17)
    plain_, curved = (
        signal_detection.graded_auc(r, truth, who, items, rng=rng(), sensitivity_resamples=99)
        for r in (ratings, np.exp(ratings))
    )
    assert (plain_.estimate, plain_.pvalue, plain_.interval) == (curved.estimate, curved.pvalue, curved.interval)
    mirrored = signal_detection.graded_auc(-ratings, truth, who, items, rng=rng(), sensitivity_resamples=99)
    assert_allclose([mirrored.estimate, mirrored.pvalue], [1 - plain_.estimate, plain_.pvalue], rtol=1e-9)
    # Annotators who use other parts of the scale blur the pooled order and not their own.
    shifted = ratings + 4 * (who % 3)
    blurred = signal_detection.graded_auc(shifted, truth, who, items, rng=rng(), sensitivity_resamples=99)
    assert blurred.estimate < plain_.estimate - 0.05
    assert blurred.sensitivity[1].estimate == plain_.sensitivity[1].estimate


def test_auc_edge_cases_are_statuses():
    call = signal_detection.graded_auc
    assert call([], [], [], rng=rng()).status == "no_data"
    assert call([1, 2], [1, 1], [1, 2], rng=rng()).status == "not_identified"
    assert call([1, 2], [1, 0], [1, 1], rng=rng()).status == "n_lt_2"
    same = call([3] * 8, [0, 1] * 4, np.repeat(np.arange(4), 2), rng=rng())
    assert (same.status, same.estimate) == ("zero_variance", 0.5)
    perfect = call([4, 1] * 8, [1, 0] * 8, np.repeat(np.arange(8), 2), rng=rng(), sensitivity_resamples=99)
    assert (perfect.status, perfect.estimate, perfect.test) == ("zero_variance", 1.0, None)
    lonely = call([4, 1, 2, 1, 3, 2], [1, 0, 0, 0, 0, 0], [1, 1, 2, 2, 3, 3], rng=rng())
    assert lonely.status == "not_identified"
    few = call([4, 1, 3, 2, 1, 4, 2, 2] * 2, [1, 0, 1, 0] * 4, np.repeat(np.arange(8), 2), ["s", "t"] * 8, rng=rng())
    assert (few.settings["population"], few.interval.method) == ("people", "cv3_t")
    one_human = call([4, 1, 3, 2, 4] * 4, [1, 0, 1, 1, 1] * 4, np.repeat(np.arange(4), 5), [*"abcde"] * 4, rng=rng())
    assert (one_human.status, one_human.reason) == ("not_identified", "a kind has only one text; add texts")


def test_the_auc_of_unequal_annotators_has_their_effective_degrees_of_freedom():
    # One annotator of sixty ratings beside nineteen of six: G* = 174^2 / (60^2 + 19 x 6^2).
    draw, who = np.random.default_rng(8), np.r_[np.zeros(60), np.repeat(np.arange(1, 20), 6)]
    truth = np.tile([0, 1], len(who) // 2)
    found = signal_detection.graded_auc(
        draw.integers(1, 5, len(who)) + truth, truth, who, rng=draw, sensitivity_resamples=99
    )
    assert found.test.df == pytest.approx(174**2 / (60**2 + 19 * 36) - 1)


def test_auc_keeps_its_level_with_uneven_activity():
    draw, runs, hits = rng(3), 200, 0
    for _ in range(runs):
        who = np.repeat(np.arange(30), np.minimum(300, 3 + np.floor(2 * draw.pareto(1.1, 30)).astype(int)))
        items = draw.integers(0, 20, len(who))
        # Annotators differ in which end of the scale they like, for each kind of text; the kinds do not differ.
        lean = draw.normal(0, 0.8, (30, 2))[who, items % 2]
        ratings = np.clip(np.round(3 + lean + draw.normal(0, 1, len(who))), 1, 5)
        pvalue = signal_detection.graded_auc(ratings, items % 2, who, items, rng=draw, sensitivity_resamples=9).pvalue
        hits += pvalue is not None and pvalue < 0.05
    assert hits / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
