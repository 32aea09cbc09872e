import json
import math

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import cost, leaderboard
from tests.analysis.stats.golden import golden

PUBLISHED = golden("cost")["published"]


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


def test_the_published_precision_of_a_submission():
    for case in PUBLISHED:
        se = leaderboard.worst_case_se_in_points(50, case["n"])
        assert case["se_below"] - 0.005 < se < case["se_below"]
