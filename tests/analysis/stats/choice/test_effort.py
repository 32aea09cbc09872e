"""Effort is averaged over the runs that decided."""

import json

import numpy as np
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import choice
from analysis.stats.choice import Strategy
from tests.analysis.stats.choice.labels import STRATEGIES
from tests.analysis.stats.draws import rng


def effort(requests, labels, winner=None, strategy=STRATEGIES["one"]):
    requests = np.array(requests)
    return choice.Effort(
        strategy, requests, np.array(labels), np.sign(requests) if winner is None else winner, True, {}
    )


def test_the_paper_averages_what_decided_and_the_recommendation_everything():
    made = effort([10, 0, 20, 30], [10, 50, 20, 30])
    paper, recommended = (
        choice.estimate_mean_labels_to_decision(made, mode=mode, rng=rng()) for mode in ("paper", "recommended")
    )
    assert (paper.estimate, paper.n, paper.detail["share_decided"]) == (20.0, 3, 0.75)
    assert (recommended.estimate, recommended.n, recommended.detail["median"]) == (27.5, 4, 20.0)
    assert recommended.detail["quantile_90"] is None
    assert (
        paper.has_warning("decided_only")
        and recommended.has_warning("undecided")
        and paper.has_warning("same_requests")
    )
    assert not choice.estimate_mean_labels_to_decision(effort([1, 2], [1, 2]), rng=rng()).has_warning("undecided")
    miscounted = effort([1, 2], [1, 2], strategy=Strategy("max_three", counting="unless_both_a"))
    assert choice.estimate_mean_labels_to_decision(miscounted, rng=rng()).has_warning("third_labels_miscounted")


def test_the_interval_is_the_percentile_bootstrap_of_the_mean():
    labels = rng(5).integers(50, 150, 400)
    found = choice.estimate_mean_labels_to_decision(effort(labels, labels), rng=rng(), resamples=4000).interval
    wanted = stats.bootstrap(
        (labels,), np.mean, confidence_level=0.99, method="percentile", rng=rng(1), n_resamples=4000
    )
    assert_allclose([found.low, found.high], wanted.confidence_interval, atol=0.8)


def test_runs_without_a_decision_or_without_spread_have_a_status():
    assert (
        choice.estimate_mean_labels_to_decision(effort([0, 0], [50, 50]), mode="paper", rng=rng()).status == "no_data"
    )
    assert choice.estimate_mean_labels_to_decision(effort([0, 3], [50, 3]), mode="paper", rng=rng()).status == "n_lt_2"
    same = effort([70] * 5, [70] * 5)
    assert choice.estimate_mean_labels_to_decision(same, rng=rng()).status == "zero_variance"
    published = choice.estimate_mean_labels_to_decision(same, mode="paper", rng=rng())
    assert (published.interval.low, published.interval.high) == (70, 70)
    none = choice.estimate_mean_labels_to_decision(effort([0, 0], [50, 50]), rng=rng())
    assert none.detail["median"] is None and none.detail["mean_decided"] is None
    for made in (same, effort([0, 0], [50, 50]), effort([0, 3], [50, 3])):
        for mode in ("paper", "recommended"):
            json.dumps(choice.estimate_mean_labels_to_decision(made, mode=mode, rng=rng()).as_dict(), allow_nan=False)
