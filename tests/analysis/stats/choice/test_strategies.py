"""Labels become decisions, and their laws are those of drawing without replacement."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import choice
from analysis.stats.choice import Strategy
from analysis.stats.stopping_boundaries import beta_binomial_boundaries, hoeffding_boundaries
from tests.analysis.stats.choice.labels import STRATEGIES
from tests.analysis.stats.draws import rng


def by_hand(labels, strategy):
    """One item's decision and labels, label by label."""
    used = []
    for label in labels[: strategy.max_labels_per_item]:
        used.append(label)
        if strategy.name == "max_three" and len(used) == 2 and used[0] == used[1]:
            break
    votes, against = sum(used), len(used) - sum(used)
    need = strategy.max_labels_per_item // 2 + 1
    return (1.0 if votes >= need else 0.0 if against >= need else None), len(used)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_decisions_follow_from_labels_one_at_a_time(strategy):
    draw = rng(1)
    labels = {item: draw.integers(0, 2, draw.integers(1, 9)).astype(float) for item in range(60)}
    items = np.repeat(list(labels), [len(found) for found in labels.values()])
    values = np.concatenate(list(labels.values()))
    # Rows of several items come mixed; within an item their order is what counts.
    order = np.argsort(draw.random(len(items)) + 1000 * (np.arange(len(items)) - np.searchsorted(items, items)))
    found = choice.item_decisions(values[order], items[order], strategy)
    wanted = [by_hand(labels[item].tolist(), strategy) for item in found.items]
    assert [None if math.isnan(d) else d for d in found.decisions] == [decision for decision, _ in wanted]
    assert found.n_labels.tolist() == [n for _, n in wanted]
    assert found.n_unused == len(values) - sum(n for _, n in wanted)


def test_the_released_count_pays_for_labels_that_nobody_gave():
    values, items = [1, 1, 0, 0, 1, 0, 1], ["p", "p", "q", "q", "r", "r", "r"]
    true, first, second = (
        choice.item_decisions(values, items, Strategy("max_three", counting=counting)) for counting in choice.COUNTINGS
    )
    assert true.n_labels.tolist() == [2, 2, 3]
    assert first.n_labels.tolist() == [2, 3, 3]
    assert second.n_labels.tolist() == [3, 2, 3]
    assert true.decisions.tolist() == first.decisions.tolist() == second.decisions.tolist() == [1, 0, 1]


def test_the_fixed_worker_is_one_person():
    found = choice.item_decisions([0, 1], ["p", "q"], Strategy("fixed"))
    assert found.decisions.tolist() == [0.0, 1.0] and found.n_labels.tolist() == [1, 1]


def test_missing_labels_decide_nothing():
    found = choice.item_decisions([np.nan, 1, np.nan], ["p", "p", "q"], Strategy("one"))
    assert found.decisions[0] == 1 and math.isnan(found.decisions[1])
    empty = choice.item_decisions([], [], Strategy("majority", 3))
    assert empty.items == () and len(empty.decisions) == 0


# Laws: what drawing without replacement gives


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_laws_are_those_of_all_orders_of_the_labels(strategy):
    for wins, n in ((0, 8), (3, 8), (5, 8), (8, 8), (4, 7)):
        law = choice.probabilities_from_labels([wins], [n], strategy)
        orders = list(itertools.permutations([1] * wins + [0] * (n - wins), min(n, strategy.max_labels_per_item)))
        outcomes = [by_hand(list(order), strategy) for order in orders]
        share = {key: outcomes.count(key) / len(outcomes) for key in set(outcomes)}
        few = law.labels
        assert_allclose(law.a_at_once[0], share.get((1.0, few), 0), atol=1e-12)
        assert_allclose(law.a_by_third[0], share.get((1.0, 3), 0) if strategy.name == "max_three" else 0, atol=1e-12)
        assert_allclose(law.b_by_third[0], share.get((0.0, 3), 0) if strategy.name == "max_three" else 0, atol=1e-12)


@pytest.mark.parametrize("counting", choice.COUNTINGS)
def test_effort_is_what_relabelling_one_label_at_a_time_costs(counting):
    strategy, draw = Strategy("max_three", counting=counting), rng(2)
    wins, n = rng(3).integers(4, 11, 60), np.full(60, 10)
    rule = hoeffding_boundaries(60, delta=0.05)
    efforts = []
    for _ in range(400):
        values, items = [], []
        for item, won in enumerate(wins):
            drawn = draw.permutation(np.repeat([1.0, 0.0], [won, 10 - won]))
            values.extend(drawn[:3])
            items.extend([item] * 3)
        decided = choice.item_decisions(values, items, strategy)
        successes = np.cumsum(decided.decisions)
        crossed = np.flatnonzero((successes >= rule.upper) | (successes <= rule.lower))
        efforts.append(decided.n_labels[: crossed[0] + 1].sum() if len(crossed) else decided.n_labels.sum())
    fast = choice.effort_from_resampled_labels(wins, n, strategy, rule=rule, runs=4000, rng=rng(4))
    error = 3.5 * np.std(efforts) * math.sqrt(1 / 400 + 1 / 4000)
    assert abs(np.mean(efforts) - fast.n_labels.mean()) < error


def test_effort_with_certain_answers_is_the_least_there_is():
    rule = hoeffding_boundaries(30, delta=0.001)
    for strategy, labels in ((STRATEGIES["one"], 14), (STRATEGIES["mv7"], 98), (STRATEGIES["max3"], 28)):
        for wins, winner in ((10, 1), (0, -1)):
            found = choice.effort_from_resampled_labels(
                np.full(30, wins), np.full(30, 10), strategy, rule=rule, runs=5, rng=rng()
            )
            assert found.n_labels.tolist() == [labels] * 5 and found.winner.tolist() == [winner] * 5
            assert found.n_requests.tolist() == [14] * 5


def test_effort_takes_any_rule():
    wins, n = np.full(400, 7), np.full(400, 10)
    anytime = beta_binomial_boundaries(400, level=0.98)
    honest = choice.effort_from_resampled_labels(wins, n, Strategy("one"), rule=anytime, runs=300, rng=rng())
    naive = choice.effort_from_resampled_labels(
        wins, n, Strategy("one"), rule=hoeffding_boundaries(400, delta=0.01), runs=300, rng=rng()
    )
    assert np.all(honest.winner == 1) and honest.n_labels.mean() > naive.n_labels.mean()
    assert honest.settings["rule"].startswith("beta_binomial")


def test_effort_is_reproducible():
    wins, n, rule = np.full(200, 6), np.full(200, 10), hoeffding_boundaries(200, delta=0.01)
    first, second = (
        choice.effort_from_resampled_labels(wins, n, STRATEGIES["max3"], rule=rule, rng=rng(7)) for _ in range(2)
    )
    assert np.array_equal(first.n_labels, second.n_labels)
