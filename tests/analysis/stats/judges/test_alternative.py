"""The alternative annotator test, computed again item by item with scipy's test and its procedure of discovery rates."""

import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import judge_standards
from tests.analysis.stats.draws import rng
from tests.analysis.stats.judges.tables import rows, table


def by_hand(judge, labels, epsilon, significance):
    """Winning rate, mean advantage, and p-values of people with 30 items, from the definitions alone."""

    def aligned(label, others):
        return sum(label == other for other in others) / len(others)

    pvalues, advantages = [], []
    for person in range(labels.shape[1]):
        wins, losses = [], []
        for item, own in enumerate(labels[:, person]):
            others = [x for k, x in enumerate(labels[item]) if k != person and not math.isnan(x)]
            if math.isnan(own) or math.isnan(judge[item]) or not others:
                continue
            of_judge, of_person = aligned(judge[item], others), aligned(own, others)
            wins.append(float(of_judge >= of_person - 1e-12))
            losses.append(float(of_person >= of_judge - 1e-12))
        if len(wins) >= 30:
            test = stats.ttest_1samp(np.array(losses) - np.array(wins), epsilon, alternative="less")
            pvalues.append(test.pvalue)
            advantages.append(np.mean(wins))
    adjusted = stats.false_discovery_control(pvalues, method="by")
    return np.mean(adjusted <= significance), np.mean(advantages), pvalues, adjusted


def scores(seed, n_items=120, n_people=5, noise=1.0, missing=0.3):
    draw = rng(seed)
    truth = draw.integers(1, 6, n_items).astype(float)
    labels = np.clip(np.round(truth[:, None] + draw.normal(0, 0.9, (n_items, n_people))), 1, 5)
    labels[draw.random(labels.shape) < missing] = np.nan
    judge = np.clip(np.round(truth + draw.normal(0, noise, n_items)), 1, 5)
    judge[3] = np.nan
    return judge, labels


@pytest.mark.parametrize("seed,noise,epsilon", [(0, 0.2, 0.2), (1, 1.2, 0.15), (2, 0.9, 0.2), (3, 2.5, 0.1)])
def test_definitions_computed_again(seed, noise, epsilon):
    judge, labels = scores(seed, noise=noise)
    found = judge_standards.alternative_annotator_test(judge, labels, epsilon=epsilon)
    rate, advantage, pvalues, adjusted = by_hand(judge, labels, epsilon, 0.05)
    assert_allclose(found.winning_rate.estimate, rate)
    assert_allclose(found.advantage.estimate, advantage)
    assert_allclose([one.pvalue for one in found.people], pvalues)
    assert_allclose([one.pvalue_adjusted for one in found.people], adjusted)
    assert found.is_passed == (rate >= 0.5)


def test_seeds_reach_both_results():
    rates = [by_hand(*scores(seed, noise=noise), 0.2, 0.05)[0] for seed, noise in ((0, 0.2), (3, 2.5))]
    assert min(rates) < 0.5 <= max(rates)


def test_a_larger_epsilon_and_a_better_judge_win_more():
    judge, labels = scores(4, noise=1.0)
    rates = [
        judge_standards.alternative_annotator_test(judge, labels, epsilon=epsilon).winning_rate.estimate
        for epsilon in (0.0, 0.1, 0.4, 1.0)
    ]
    assert rates == sorted(rates) and rates[0] < rates[-1]


def test_fewer_than_three_people_with_thirty_items_are_too_few():
    judge, labels = scores(5, missing=0)
    two = judge_standards.alternative_annotator_test(judge, labels[:, :2])
    assert (two.winning_rate.status, two.is_passed) == ("not_applicable", None)
    assert "2 people" in two.winning_rate.reason
    labels[29:, 2:] = np.nan
    few = judge_standards.alternative_annotator_test(judge, labels)
    assert (few.winning_rate.status, few.winning_rate.n) == ("not_applicable", 2)
    assert [one.reason for one in few.people] == ["", "", *["28 items are fewer than 30"] * 3]
    assert all(one.pvalue is None and one.is_won is None for one in few.people[2:])
    json.dumps(few.as_dict(), allow_nan=False)


def test_a_judge_that_copies_people_who_agree_wins_without_a_statistic():
    truth = np.tile([1.0, 0.0], 20)
    found = judge_standards.alternative_annotator_test(truth, np.repeat(truth[:, None], 3, axis=1), epsilon=0.1)
    assert (found.winning_rate.estimate, found.advantage.estimate) == (1.0, 1.0)
    assert all(one.statistic is None and one.pvalue == 0 for one in found.people)
    lost = judge_standards.alternative_annotator_test(1 - truth, np.repeat(truth[:, None], 3, axis=1), epsilon=0.1)
    assert (lost.winning_rate.estimate, lost.advantage.estimate, lost.people[0].pvalue) == (0.0, 0.0, 1.0)


def test_the_advantage_has_an_interval_over_people_and_prompts():
    labels, judge, prompts = table(rows(6, n_people=8, n_prompts=20))
    found = judge_standards.alternative_annotator_test(judge, labels, prompts=prompts).advantage
    assert (found.n, found.detail["n_prompts"], found.settings["population"]) == (8, 20, "people and prompts")
    assert found.interval.low < found.estimate < found.interval.high
    assert found.settings["epsilon"] == 0.1


def test_no_item_with_two_people():
    nothing = judge_standards.alternative_annotator_test([1.0] * 40, np.where(np.eye(40, 4) == 1, 1.0, np.nan))
    assert (nothing.winning_rate.status, nothing.advantage.status) == ("not_applicable", "no_data")
    assert [one.judge_advantage for one in nothing.people] == [None] * 4


def test_arguments_are_named_when_they_are_refused():
    for wrong, name in (
        ({"epsilon": -0.1}, "epsilon"),
        ({"significance": 0}, "significance"),
    ):
        with pytest.raises(ValueError, match=name):
            judge_standards.alternative_annotator_test([1, 2], [[1, 2], [1, 2]], **wrong)
    with pytest.raises(ValueError, match="judge: 1 labels for 2 items"):
        judge_standards.alternative_annotator_test([1], [[1, 2], [1, 2]])
