"""How much agreement is possible, counted pair by pair and panel by panel."""

import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import judge_standards
from tests.analysis.stats.draws import rng
from tests.analysis.stats.judges.tables import rows, table


def labels_of(seed=0, n_items=25, n_people=6, n_labels=3):
    draw = rng(seed)
    truth = draw.integers(0, n_labels, n_items)
    labels = np.where(
        draw.random((n_items, n_people)) < 0.6, truth[:, None], draw.integers(0, n_labels, (n_items, n_people))
    ).astype(float)
    labels[draw.random(labels.shape) < 0.2] = np.nan
    labels[0] = np.nan
    labels[1, 1:] = np.nan
    judge = np.where(draw.random(n_items) < 0.7, truth, draw.integers(0, n_labels, n_items))
    return labels, judge


def modes(values):
    counts = {label: values.count(label) for label in set(values)}
    return [label for label, count in counts.items() if count == max(counts.values())]


def share(label, values):
    most = modes(values)
    return (label in most) / len(most)


def test_agreement_counted_person_by_person():
    labels, judge = labels_of()
    pair, others, best, own = [], [], [], []
    for item, row in enumerate(labels):
        given = [x for x in row if not np.isnan(x)]
        if len(given) < 2:
            continue
        for k, label in enumerate(given):
            rest = given[:k] + given[k + 1 :]
            pair.append(np.mean([label == other for other in rest]))
            others.append(share(label, rest))
            best.append(share(label, given))
            own.append(label == judge[item])
    found = judge_standards.possible_agreement(labels, judge=judge)
    assert_allclose(found.pair_agreement.estimate, np.mean(pair))
    assert_allclose(found.with_majority_of_others.estimate, np.mean(others))
    assert_allclose(found.best_possible.estimate, np.mean(best))
    assert_allclose(found.judge_agreement.estimate, np.mean(own))
    assert_allclose(found.judge_share_of_best.estimate, np.mean(own) / np.mean(best))
    assert_allclose(found.judge_share_of_others.estimate, np.mean(own) / np.mean(others))
    assert_allclose(found.judge_minus_pair.estimate, np.mean(own) - np.mean(pair))
    assert (found.n_items, found.n_single, found.pair_agreement.n_rows) == (23, 2, len(pair))


def test_panels_are_all_ways_to_draw_them():
    labels, judge = labels_of(1, n_items=12)
    found = judge_standards.possible_agreement(labels, judge=judge, panel_sizes=(1, 2, 3))
    for one in found.panels:
        best, own = [], []
        for item, row in enumerate(labels):
            given = [x for x in row if not np.isnan(x)]
            if len(given) < 2:
                continue
            draws = list(itertools.product(given, repeat=one.size))
            chance = [np.mean([share(label, list(draw)) for draw in draws]) for label in range(3)]
            best.append(max(chance))
            own.append(chance[judge[item]])
        assert_allclose([one.best.estimate, one.judge.estimate], [np.mean(best), np.mean(own)])


def test_the_true_best_lies_between_the_two_numbers():
    """A judge that knows how people answer agrees with a person in the mean of the largest shares."""
    draw = rng(2)
    shares = draw.dirichlet([1.0, 1.0, 1.0], 1500)
    truth = shares.max(axis=1).mean()
    for n_people in (3, 9):
        labels = np.array([draw.choice(3, n_people, p=row) for row in shares])
        found = judge_standards.possible_agreement(labels, panel_sizes=())
        assert found.with_majority_of_others.estimate < truth < found.best_possible.estimate


def test_intervals_are_over_people_and_prompts_and_weights_count():
    labels, judge, prompts = table(rows(3, n_people=8, n_prompts=15))
    weights = 1 + (np.arange(45) % 3)
    found = judge_standards.possible_agreement(labels, judge=judge, prompts=prompts, weights=weights)
    agrees = np.repeat(weights[:, None], 8, axis=1) * (labels == judge[:, None])
    assert_allclose(found.judge_agreement.estimate, agrees.sum() / (8 * weights.sum()))
    for one in (found.pair_agreement, found.judge_share_of_best, found.judge_minus_pair):
        assert one.settings["population"] == "people and prompts" and one.n == 8 and one.detail["n_prompts"] == 15
        assert one.interval.low < one.estimate < one.interval.high
    assert found.judge_minus_pair.test.null == 0
    places = judge_standards.possible_agreement(labels, judge=judge, prompts=prompts, are_people_known=False)
    for one in (places.pair_agreement, places.judge_share_of_best):
        assert (one.unit, one.settings["population"]) == ("prompt", "prompts") and one.has_warning("people_left_out")


def test_without_a_judge_and_without_labels():
    labels, _ = labels_of(4)
    alone = judge_standards.possible_agreement(labels)
    assert alone.judge_agreement is None and alone.judge_share_of_best is None and alone.panels[0].judge is None
    empty = judge_standards.possible_agreement([[None, "a"], ["b", None]], judge=["a", "b"])
    assert {empty.pair_agreement.status, empty.judge_share_of_best.status, empty.panels[0].best.status} == {"no_data"}
    assert empty.n_single == 2
    json.dumps(empty.as_dict(), allow_nan=False)


def test_arguments_are_named_when_they_are_refused():
    with pytest.raises(ValueError, match="labels: expected two dimensions"):
        judge_standards.possible_agreement([1, 2])
    with pytest.raises(ValueError, match="judge: shape"):
        judge_standards.possible_agreement([[1, 2]], judge=[1, 2])
    for sizes in ((0,), (400,)):
        with pytest.raises(ValueError, match="panel_sizes"):
            judge_standards.possible_agreement([[1, 2, 3, 4]], panel_sizes=sizes)
