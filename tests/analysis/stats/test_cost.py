import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import cost, leaderboard
from tests.analysis.stats.golden import golden

PUBLISHED = golden("cost")["published"]


def test_the_published_precision_of_a_submission():
    for case in PUBLISHED:
        (point,) = cost.precision_in_points_curve([case["n"]], cost_per_label=case["dollars"] / case["n"])
        assert case["se_below"] - 0.005 < point.se < case["se_below"]
        assert_allclose(point.cost, case["dollars"])


def test_a_bill_is_labels_times_pay_plus_fee_and_overhead():
    bill = cost.study_cost(300, pay=0.5, labels_per_item=2, n_systems=3, fee_rate=0.2, overhead=50)
    assert (bill.n_labels, bill.n_test) == (1800, 0)
    assert_allclose([bill.pay, bill.fee, bill.total], [900, 180, 1130])
    assert_allclose(bill.per_label, 1130 / 1800)


def test_test_questions_are_paid_and_do_not_count():
    # Five per cent positive and five per cent negative ones among all that is asked.
    bill = cost.study_cost(900, pay=1, test_share=0.1, fee_rate=0)
    assert (bill.n_labels, bill.n_test, bill.total) == (1000, 100, 1000)
    assert_allclose(bill.n_test / bill.n_labels, 0.1)
    assert_allclose(bill.per_label, 1000 / 900)
    assert cost.study_cost(901, pay=1, test_share=0.1).n_labels == 1002
    assert cost.study_cost(0, pay=1).per_label is None


def test_the_wage_is_that_of_the_median_label():
    # The released two-choice labels: two cents for a median of 11 and 12 seconds, about 6 to 6.5 dollars an hour.
    for seconds, wage in ((11, 6.55), (12, 6.0)):
        found = cost.median_hourly_wage(
            [seconds - 5, seconds, seconds + 90], ["a", "b", "c"], pay_per_label=0.02, target=9
        )
        assert_allclose(found.estimate, wage, atol=0.01)
        assert [(w.code, w.severity) for w in found.warnings] == [("below_target_wage", "block")]
        assert (found.unit, found.n, found.n_clusters) == ("label", 3, 3)


def test_each_annotator_has_a_median_of_their_own():
    rng = np.random.default_rng(1)
    who = rng.integers(0, 23, 400)
    seconds = rng.lognormal(3, 0.5, 400) * (1 + who / 10)
    found = cost.median_hourly_wage(seconds, who, pay_per_label=0.1, target=12)
    own = np.array([360 / np.median(seconds[who == a]) for a in range(23)])
    (by_annotator,) = found.sensitivity
    assert_allclose(by_annotator.estimate, np.median(own))
    assert (by_annotator.unit, by_annotator.n) == ("annotator", 23)
    assert_allclose(found.detail["share_below"], np.mean(own < 12))
    ordered = np.sort(own)
    # P(at most 6 of 23 below the median) <= .025 < P(at most 7).
    assert stats.binom.cdf(6, 23, 0.5) <= 0.025 < stats.binom.cdf(7, 23, 0.5)
    assert_allclose([by_annotator.interval.low, by_annotator.interval.high], [ordered[6], ordered[-7]])


def test_the_interval_of_the_median_annotator_covers():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(500):
        interval = cost.median_hourly_wage(rng.lognormal(0, 1, 15), range(15), pay_per_label=1).sensitivity[0].interval
        hits += interval.low <= 3600 <= interval.high
    assert hits / 500 >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 500)


def test_a_few_quick_annotators_do_not_hide_the_others():
    seconds, who = np.r_[np.full(90, 10.0), np.full(10, 60.0)], np.r_[np.repeat(0, 90), np.arange(1, 11)]
    found = cost.median_hourly_wage(seconds, who, pay_per_label=0.05, target=10)
    assert found.estimate == 18 and not found.has_warning("below_target_wage")
    assert found.sensitivity[0].estimate == 3 and found.detail["share_below"] == 10 / 11


def test_wage_edge_cases():
    assert cost.median_hourly_wage([], [], pay_per_label=1).status == "no_data"
    found = cost.median_hourly_wage([None, 0, -1, 30], list("abcd"), pay_per_label=1)
    assert (found.n, found.detail["n_missing"], found.detail["n_without_time"]) == (1, 1, 2)
    assert found.sensitivity[0].interval is None and found.detail["share_below"] is None
    json.dumps(found.as_dict(), allow_nan=False)


def test_precision_with_a_known_spread_and_dependent_labels():
    points = cost.precision_in_points_curve([100, 400], cost_per_label=0.5, sd=30)
    assert_allclose([(p.n, p.se, p.cost) for p in points], [(100, 3, 50), (400, 1.5, 200)])
    deff = leaderboard.design_effect(20, 0.3)
    (dependent,) = cost.precision_in_points_curve([100], cost_per_label=0, sd=30, design_effect=deff)
    assert_allclose(dependent.se, 3 * math.sqrt(6.7))
    assert_allclose(
        cost.precision_in_points_curve([200], cost_per_label=0, score=80)[0].se,
        leaderboard.worst_case_se_in_points(80, 200),
    )


@pytest.mark.parametrize("options", [{}, {"score": 80.0}, {"sd": 25.0}, {"sd": 25.0, "design_effect": 2.6}])
def test_the_least_number_of_labels_is_the_least(options):
    for se in (0.7, 1.0, 2.5, 3.3):
        n = cost.n_labels_for_se(se, **options)
        now, before = (
            cost.precision_in_points_curve([m], cost_per_label=0, **options)[0].se for m in (n, max(1, n - 1))
        )
        assert now <= se * (1 + 1e-12) and (n == 1 or before > se)
    # A standard error that 400 labels meet exactly needs no 401st.
    assert cost.n_labels_for_se(1.25, sd=25.0) == 400
    assert cost.n_labels_for_se(500.0) == 1


def test_halving_takes_four_times_the_labels():
    found = cost.cost_of_halving_se(300, 2.4, cost_per_label=1.5)
    assert (found.extra_labels, found.extra_cost, found.halved) == (900, 1350, 1.2)
    assert_allclose(found.cost_a_point, 1350 / 1.2)
    at = {n: cost.precision_in_points_curve([n], cost_per_label=0)[0].se for n in (300, 300 + found.extra_labels)}
    assert_allclose(at[1200], at[300] / 2)
    assert cost.cost_of_halving_se(10, 0.0, cost_per_label=1).cost_a_point is None


def test_results_are_plain_json():
    for record in (
        cost.study_cost(3, pay=1),
        cost.precision_in_points_curve([5], cost_per_label=1)[0],
        cost.cost_of_halving_se(5, 1.0, cost_per_label=1),
    ):
        assert json.loads(json.dumps(record.as_dict(), allow_nan=False))["unit"] == "label"


def test_bad_arguments_are_named():
    for arguments, name in (
        ({"n_items": -1, "pay": 1}, "n_items"),
        ({"n_items": 1, "pay": -1}, "pay"),
        ({"n_items": 1, "pay": 1, "test_share": 1}, "test_share"),
        ({"n_items": 1, "pay": 1, "fee_rate": math.nan}, "fee_rate"),
        ({"n_items": 1, "pay": 1, "labels_per_item": 1.5}, "labels_per_item"),
        ({"n_items": math.inf, "pay": 1}, "n_items: inf"),
    ):
        with pytest.raises(ValueError, match=name):
            cost.study_cost(**arguments)
    with pytest.raises(ValueError, match="annotators: expected 1"):
        cost.median_hourly_wage([1], [], pay_per_label=1)
    with pytest.raises(ValueError, match="n_labels"):
        cost.precision_in_points_curve([0], cost_per_label=1)
    for n in (math.nan, math.inf):
        with pytest.raises(ValueError, match=f"n_labels: {n}"):
            cost.precision_in_points_curve([n], cost_per_label=1)
        with pytest.raises(ValueError, match=f"design_effect: {n}"):
            cost.precision_in_points_curve([5], cost_per_label=1, sd=20, design_effect=n)
    with pytest.raises(ValueError, match="se"):
        cost.n_labels_for_se(0)
    with pytest.raises(ValueError, match="n: 0"):
        cost.cost_of_halving_se(0, 1, cost_per_label=1)
