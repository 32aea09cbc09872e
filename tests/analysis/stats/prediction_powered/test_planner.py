import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats.judge_assisted import plan_labels_with_judge, prediction_powered_mean
from tests.analysis.stats.draws import rng


def pilot(draw, n=80, big=2000, noise=0.5):
    quality = draw.normal(0, 1, big)
    return {
        "values": quality[:n],
        "annotators": None,
        "items": np.arange(n),
        "judges": quality + draw.normal(0, noise, big),
    }


def test_the_plan_says_what_such_a_study_needs():
    plan = plan_labels_with_judge(**pilot(rng(1), n=1000, big=5000), widths=[0.2], n_items=2000, price=0.1)
    (need,) = plan.needs
    # The judge explains .8 of the variance, and there are 2,000 items.
    assert_allclose(plan.explained, 0.8, atol=0.03)
    draw = rng(2)
    widths = []
    for _ in range(10):
        found = prediction_powered_mean(**pilot(draw, n=need.with_judge)).combined.interval
        widths.append(found.high - found.low)
    assert_allclose(np.mean(widths), 0.2, rtol=0.05)
    assert need.people_alone == pytest.approx(4 * 1.96**2 / 0.2**2, rel=0.12)
    assert need.with_judge_low < need.with_judge < need.with_judge_high < need.people_alone
    assert_allclose(
        [need.money, need.money_saved], [0.1 * need.with_judge, 0.1 * (need.people_alone - need.with_judge)]
    )
    assert plan.verdict == "useful"


def test_a_useless_judge_is_called_useless():
    plan = plan_labels_with_judge(**pilot(rng(3), noise=1e6), widths=[0.2, 0.4])
    assert plan.verdict == "useless" and all(need.with_judge <= need.people_alone for need in plan.needs)
    assert all(0 <= need.share_saved < 0.1 for need in plan.needs)


def test_a_small_pilot_of_a_middling_judge_is_unclear():
    plan = plan_labels_with_judge(**pilot(rng(4), n=25, noise=2.0), widths=[0.3])
    assert (plan.verdict, plan.explained_low < 0.1 < plan.explained) == ("unclear", True)


def test_the_interval_of_the_explained_share_holds_the_truth():
    draw, truth, held = rng(5), 1 / (1 + 0.7**2), 0
    for _ in range(100):
        plan = plan_labels_with_judge(**pilot(draw, n=50, big=60, noise=0.7), widths=[0.3])
        held += plan.explained_low <= truth <= plan.explained_high
    assert held / 100 > 0.88


def test_more_labels_than_the_items_can_have_are_said():
    (need,) = plan_labels_with_judge(**pilot(rng(6), big=300), widths=[0.01]).needs
    assert need.needs_more_items and need.with_judge > 300 and need.share_saved == pytest.approx(0, abs=1e-6)


def test_a_pilot_without_enough_data_has_a_reason():
    few = {"annotators": None, "judges": np.arange(30) / 30, "widths": [0.1]}
    plan = plan_labels_with_judge([], items=np.zeros(0, int), **few)
    assert (plan.verdict, plan.needs, plan.reason) == (None, (), "the pilot has no label")
    assert (
        plan_labels_with_judge([0.1, 0.4], items=[0, 1], **few).reason
        == "the pilot has labels of fewer than 10 prompts"
    )
    assert plan_labels_with_judge([0.5] * 12, items=range(12), **few).reason == "the labels of the pilot do not vary"
    for message, change in {
        "widths: expected positive numbers": {"widths": [0.1, 0]},
        "n_items: 5 is less than the 12 labelled items": {"n_items": 5},
        "price": {"price": -1},
    }.items():
        with pytest.raises(ValueError, match=message):
            plan_labels_with_judge([0.5] * 12, items=range(12), **few | change)
