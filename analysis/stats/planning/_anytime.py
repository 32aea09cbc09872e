"""What the anytime-valid stopping rule of two choices says of many simulated studies at once."""

import math

import numpy as np

from analysis.stats import betting
from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.plan_inputs import EQUIVALENCE, StudySize, Target
from analysis.stats.planning._headline import Headlines, sums_of_groups

# Runs of a block of which the interval is computed, and halvings of its search.
WITH_INTERVAL, HALVINGS = 20, 12


def means_of_people(values: FloatArray, people: IntArray, size: StudySize) -> FloatArray:
    """Return each person's mean on the scale from 0 to 1, shape (runs, people).

    >>> size = StudySize(protocol="two_choice", people=2, prompts=2, prompts_each=2)
    >>> means_of_people(np.array([[1.0, 1.0, 0.0, 1.0]]), np.array([0, 0, 1, 1]), size).tolist()
    [[1.0, 0.5]]
    """
    low, high = size.scale_ends
    means = values if size.kind == "chance" else sums_of_groups(values, people, size.people) / size.prompts_each
    return np.asarray(np.clip((means - low) / (high - low), 0.0, 1.0))


def evidence_after_each_person(means: FloatArray, null: float | FloatArray, level: float) -> FloatArray:
    """Return the largest log wealth so far of bets against the null, shape (runs, people).

    >>> evidence_after_each_person(np.array([[1.0, 1.0, 0.0]]), 0.5, 0.05).shape
    (1, 3)
    """
    return np.asarray(np.maximum.accumulate(betting.log_wealth_of_studies(means, null, level=1 - level), axis=1))


def anytime_headlines(values: FloatArray, people: IntArray, size: StudySize, target: Target) -> Headlines:
    """Stop each run as `sequential.sequential_test` stops a study, and return what the report says of it.

    `values`, of shape (runs, n_rows), are choices from 0 to 1, and `people` is the annotator of each row. The estimates
    and claims are those when the rule stops, or after all people. Only some runs have an interval, which is NaN in the
    others.

    >>> size, target = StudySize(protocol="two_choice", people=20, prompts=30, prompts_each=15), Target(stopping="anytime", population="people")
    >>> who, rng = np.repeat(np.arange(20), 15), np.random.default_rng(0)
    >>> found = anytime_headlines((rng.random((50, 300)) < 0.8).astype(float), who, size, target)
    >>> bool(found.is_reached.mean() > 0.9), bool(found.low[0] > 0.5)
    (True, True)
    """
    means = means_of_people(values, people, size)
    runs, n = means.shape
    threshold = math.log(1 / target.level)
    evidence = evidence_after_each_person(means, size.null, target.level)
    is_excluded = evidence >= threshold
    is_small = np.zeros_like(is_excluded)
    if target.margin is not None:
        is_small = np.logical_and.reduce(
            [
                evidence_after_each_person(means, size.null + sign * target.margin, target.level) >= threshold
                for sign in (-1, 1)
            ]
        )
    decides = is_excluded | is_small
    stops = np.where(decides.any(axis=1), decides.argmax(axis=1), n - 1)
    rows = np.arange(runs)
    is_difference = is_excluded[rows, stops]
    is_reached = is_small[rows, stops] & ~is_difference if target.goal == EQUIVALENCE else is_difference
    estimate = np.cumsum(means, axis=1)[rows, stops] / (stops + 1)
    pvalue = np.exp(-np.maximum(0.0, evidence[rows, stops]))
    low, high = (np.full(runs, np.nan) for _ in range(2))
    some = slice(min(runs, WITH_INTERVAL))
    low[some] = estimate[some] - _reach(means[some], stops[some], estimate[some], target.level)
    high[some] = estimate[some] + _reach(1 - means[some], stops[some], 1 - estimate[some], target.level)
    if target.goal == EQUIVALENCE:
        # The rule decides by its interval, without a p-value.
        pvalue = np.where(is_reached, target.level, 1.0)
    no = np.zeros(runs, dtype=np.bool_)
    return Headlines(estimate, low, high, is_difference, is_reached, no, pvalue, pvalue.copy())


def _reach(means: FloatArray, stops: IntArray, estimate: FloatArray, level: float) -> FloatArray:
    """Return how far the confidence sequence reaches below the estimate when each run stops."""
    near, far = np.zeros(len(means)), estimate.copy()
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        wealth = evidence_after_each_person(means, estimate - middle, level)[np.arange(len(means)), stops]
        is_refuted = wealth >= math.log(1 / level)
        near, far = np.where(is_refuted, near, middle), np.where(is_refuted, middle, far)
    return far
