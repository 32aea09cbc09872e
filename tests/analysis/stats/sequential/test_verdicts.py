"""Every verdict is reached, and it agrees with the p-value and the interval."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import sequential, stopping_boundaries
from analysis.stats.results import json_safe
from tests.analysis.stats.sequential.labels import labels


def reached(process, values, **options):
    return sequential.sequential_test(values, process=process, **options)


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_every_verdict_is_reached(process):
    even = np.tile([1.0, 0.0], 400)
    assert reached(process, labels(8, 100, 0.9)).verdict == "a_better"
    assert reached(process, labels(8, 100, 0.1)).verdict == "b_better"
    assert reached(process, even, margin=0.2).verdict == "equivalent"
    slightly = np.tile([1.0] * 6 + [0.0] * 4, 120)
    trivial = reached(process, slightly, margin=0.2, stops=("different_but_trivial",))
    assert trivial.verdict == "different_but_trivial"
    assert reached(process, even[:20]).verdict == "inconclusive"
    assert reached(process, even, budget=20).verdict == "budget_exhausted"
    assert reached(process, even[:20], budget=30).verdict == "inconclusive"
    assert reached(process, []).verdict is None


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_the_estimate_ends_at_the_crossing(process):
    values = labels(9, 300, 0.75)
    result = reached(process, values)
    n = result.stopped_at
    assert (result.estimate.n, result.n_overrun, result.estimate.detail["n_overrun"]) == (n, 300 - n, 300 - n)
    assert_allclose(result.estimate.estimate, values[:n].mean())
    assert result.estimate.interval == result.sequence.interval_after(n)
    assert result.estimate.interval.low >= 0.5 and result.estimate.pvalue <= 0.05
    assert result.estimate.has_warning("optional_stopping")
    assert len(result.log_e) == 300
    # What comes after the crossing changes nothing.
    shorter = reached(process, values[:n])
    assert shorter.estimate.as_dict() | {"detail": 0} == result.estimate.as_dict() | {"detail": 0}


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_swapping_the_systems_swaps_the_verdict_and_keeps_the_p(process):
    values = labels(10, 300, 0.65)
    straight, swapped = reached(process, values), reached(process, 1 - values)
    assert (straight.verdict, swapped.verdict) == ("a_better", "b_better")
    assert straight.stopped_at == swapped.stopped_at
    assert_allclose(straight.estimate.pvalue, swapped.estimate.pvalue)
    assert_allclose(straight.estimate.interval.low, 1 - swapped.estimate.interval.high, atol=1e-9)


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_p_and_interval_never_contradict_each_other(process):
    # Also for a null between two points of the betting process's grid.
    for null in (0.5, 0.4953):
        for seed in range(10):
            result = reached(process, labels(seed, 150, 0.6), null=null, stops=())
            is_out = (result.sequence.low >= null) | (result.sequence.high <= null)
            assert np.array_equal(is_out, result.pvalues <= 0.05)
            assert is_out[-1] == (reached(process, labels(seed, 150, 0.6), null=null).verdict == "a_better")


def test_a_budget_ends_the_study_before_a_later_crossing():
    values = np.r_[np.tile([1.0, 0.0], 50), np.ones(100)]
    result = reached("beta_binomial", values, budget=100)
    assert (result.verdict, result.stopped_at, result.n_overrun, result.estimate.n) == (
        "budget_exhausted",
        None,
        100,
        100,
    )


@pytest.mark.parametrize("process", stopping_boundaries.PROCESSES)
def test_units_that_drift_give_no_verdict(process):
    # Units that fit no one mean; the null was refuted long before, but only equivalence would have stopped the study.
    result = reached(process, np.repeat([0.0, 1.0], 300), margin=0.05, stops=("equivalent",))
    assert (result.verdict, result.stopped_at, result.estimate.status) == (None, None, "failed")
    assert result.estimate.has_warning("drift") and result.estimate.test is None
    assert result.estimate.interval.low <= result.estimate.interval.high
    # Where it had stopped before, the drift is overrun.
    assert reached(process, np.repeat([0.0, 1.0], 300)).verdict == "b_better"


def test_no_unit_is_no_data_and_one_unit_is_no_obstacle():
    assert reached("betting", []).estimate.status == "no_data"
    assert reached("betting", [1]).estimate.status == "ok"
    # Unanimous units have no variance and still decide: nothing is divided by it.
    assert reached("beta_binomial", np.ones(30)).verdict == "a_better"


def test_results_are_json():
    for values in ([], [1, 0, 1], np.ones(40), np.repeat([0.0, 1.0], 300)):
        for process in stopping_boundaries.PROCESSES:
            result = reached(process, values, margin=0.1, stops=("equivalent",))
            json.dumps(json_safe(result.as_dict()), allow_nan=False)


def test_bad_arguments_are_named():
    for call, word in (
        (lambda: reached("beta_binomial", [0.5, 1]), "values: row 0 is neither 0 nor 1"),
        (lambda: reached("betting", [0.5, np.nan]), "values: row 1 is missing"),
        (lambda: reached("betting", [0.5, 1.5]), "values: row 1 is 1.5"),
        (lambda: reached("coin", [1]), "process"),
        (lambda: reached("betting", [1], margin=0.6), "margin"),
        (lambda: reached("betting", [1], null=1.0), "null"),
        (lambda: reached("betting", [1], level=1.0), "level"),
        (lambda: reached("betting", [1], budget=0), "budget"),
        (lambda: reached("betting", [1], stops=("inconclusive",)), "stops"),
        (lambda: reached("beta_binomial", [1, 0], annotators=["x", "x"]), "annotators: someone gave more"),
        (
            lambda: stopping_boundaries.find_boundary_crossings(
                [0.5], stopping_boundaries.hoeffding_boundaries(1, delta=0.1)
            ),
            "answers",
        ),
        (
            lambda: stopping_boundaries.find_boundary_crossings(
                [1, 1], stopping_boundaries.hoeffding_boundaries(1, delta=0.1)
            ),
            "answers",
        ),
        (
            lambda: stopping_boundaries.find_boundary_crossings(
                [1], stopping_boundaries.hoeffding_boundaries(1, delta=0.1), reading="last"
            ),
            "reading",
        ),
        (lambda: stopping_boundaries.hoeffding_boundaries(0, delta=0.1), "n_max"),
        (lambda: stopping_boundaries.hoeffding_boundaries(9, delta=0.1, sides="b"), "sides"),
        (lambda: stopping_boundaries.beta_binomial_boundaries(0), "n_max"),
        (lambda: stopping_boundaries.beta_binomial_log_e_values(3, 2), "successes"),
        (lambda: stopping_boundaries.beta_binomial_log_e_values(1, 2, null=1.5), "null"),
        (lambda: stopping_boundaries.beta_binomial_log_e_values(1, 2, concentration=0), "concentration"),
    ):
        with pytest.raises(ValueError, match=word):
            call()
