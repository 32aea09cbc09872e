"""Preference, place and agreement are estimated over annotators."""

import json

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import choice
from analysis.stats.choice import Strategy
from analysis.stats.results import json_safe
from analysis.stats.stopping_boundaries import hoeffding_boundaries
from tests.analysis.stats.comparisons import score_t
from tests.analysis.stats.draws import rng


def study(seed=0, n_annotators=40, n_labels=15, preference=0.6, bonus=0.1, lean=0.1):
    draw = rng(seed)
    annotators = np.repeat(np.arange(n_annotators), n_labels)
    items = draw.integers(0, 60, len(annotators))
    first = draw.integers(0, 2, len(annotators)).astype(float)
    own = preference + draw.normal(0, lean, n_annotators)[annotators] + bonus * (first - 0.5)
    return (draw.random(len(annotators)) < own).astype(float), first, items, annotators


def test_the_bonus_of_the_first_place_agrees_with_least_squares():
    chosen, first, _, annotators = study(n_annotators=60)
    found = choice.preference_share_difference_by_position(chosen, first, annotators)
    design = sm.add_constant(first)
    # Sixty annotators with as many labels each: the jackknife and the sandwich lie near each other.
    fit = sm.OLS(chosen, design).fit(cov_type="cluster", cov_kwds={"groups": annotators})
    assert_allclose(found.estimate, fit.params[1], atol=1e-10)
    assert_allclose(found.detail["se"], fit.bse[1], rtol=0.05)
    assert found.interval.low < 0.1 < found.interval.high and found.n == 60
    swapped = choice.preference_share_difference_by_position(1 - chosen, 1 - first, annotators)
    assert_allclose(swapped.estimate, found.estimate)
    assert_allclose(swapped.detail["balanced_share"], 1 - found.detail["balanced_share"])
    assert_allclose(swapped.pvalue, found.pvalue)


def test_a_place_that_never_changed_says_nothing():
    fixed = choice.preference_share_difference_by_position([1, 0, 1], [1, 1, 1], ["x", "y", "z"])
    assert (fixed.status, fixed.estimate) == ("not_identified", None) and fixed.has_warning("order_not_identified")
    assert choice.preference_share_difference_by_position([], [], []).status == "no_data"
    assert choice.preference_share_difference_by_position([1, 0], [1, 0], ["x", "x"]).status == "n_lt_2"
    alone = choice.preference_share_difference_by_position([1, 0, 1], [1, 0, 0], ["x", "y", "z"])
    assert alone.status == "not_identified" and alone.estimate == 0.5
    same = choice.preference_share_difference_by_position([1, 0] * 8, [1, 0] * 8, np.repeat(np.arange(8), 2))
    assert (same.status, same.estimate) == ("zero_variance", 1.0)
    few = choice.preference_share_difference_by_position(*(array[:60] for array in np.array(study())[[0, 1, 3]]))
    assert few.n == 4 and few.test is None and few.interval is not None
    for found in (fixed, alone, same, few):
        json.dumps(found.as_dict(), allow_nan=False)


def test_the_unit_of_a_preference_is_the_annotator():
    chosen, _, _, annotators = study(lean=0.2)
    found = choice.annotator_weighted_preference_share(chosen, annotators)
    means = [chosen[annotators == who].mean() for who in range(40)]
    assert_allclose([found.estimate, found.pvalue], [np.mean(means), score_t(means, 0.5, (0, 1))[0]])
    assert (found.n, found.n_rows) == (40, 600)
    assert found.sensitivity[-1].analysis == "choice.preference.label_weighted"
    assert_allclose(found.sensitivity[-1].estimate, chosen.mean())
    once = choice.annotator_weighted_preference_share(chosen[::15], annotators[::15])
    assert_allclose(once.pvalue, stats.binomtest(int(chosen[::15].sum()), 40).pvalue)
    assert choice.annotator_weighted_preference_share([], []).status == "no_data"
    always = choice.annotator_weighted_preference_share([1, 1, 1, 1], [1, 1, 2, 2])
    assert (always.status, always.test, always.interval.method) == ("ok", None, "betting")
    swapped = choice.annotator_weighted_preference_share(1 - chosen, annotators)
    assert_allclose([swapped.estimate, swapped.pvalue], [1 - found.estimate, found.pvalue])


def test_all_annotators_have_the_same_weight_and_ties_count_half():
    draw = rng(3)
    annotators = np.repeat(np.arange(24), draw.integers(1, 12, 24))
    chosen = draw.choice([0.0, 0.5, 1.0], len(annotators), p=[0.3, 0.2, 0.5])
    found = choice.annotator_weighted_preference_share(chosen, annotators)
    means = [chosen[annotators == who].mean() for who in range(24)]
    assert_allclose([found.estimate, found.pvalue], [np.mean(means), score_t(means, 0.5, (0, 1))[0]])
    assert_allclose([found.interval.low, found.interval.high], score_t(means, 0.5, (0, 1))[2:])


def test_items_are_a_sample_from_five_on():
    chosen, _, items, annotators = study(lean=0.2)
    found = choice.annotator_weighted_preference_share(chosen, annotators, items)
    few = choice.annotator_weighted_preference_share(chosen, annotators, items % 4)
    people = choice.annotator_weighted_preference_share(chosen, annotators)
    assert found.settings["population"] == "people and prompts" and few.settings["population"] == "people"
    assert found.detail["n_prompts"] == 60 and few.detail["n_prompts"] == 4
    assert_allclose([found.estimate, few.estimate], people.estimate)
    assert (few.interval, few.test) == (people.interval, people.test)
    beside = next(one for one in found.sensitivity if one.analysis == "choice.preference.by_annotator")
    assert (beside.interval, beside.test) == (people.interval, people.test)


def test_agreement_is_coded_twice():
    chosen, first, items, annotators = study(bonus=0.0)
    chosen, once = chosen.copy(), np.unique(annotators * 1000 + items, return_index=True)[1]
    chosen[0] = np.nan
    found = choice.choice_agreement(chosen[once], first[once], items[once], annotators[once], rng=rng(), resamples=99)
    # Swapping the names of the systems, or of the places, changes neither.
    other = choice.choice_agreement(
        1 - chosen[once], 1 - first[once], items[once], annotators[once], rng=rng(), resamples=99
    )
    assert_allclose(found.kappa_system.estimate, other.kappa_system.estimate)
    assert_allclose(found.kappa_position.estimate, other.kappa_position.estimate)
    json.dumps(json_safe(found.as_dict()), allow_nan=False)


def test_bad_arguments_are_named():
    rule = hoeffding_boundaries(2, delta=0.1)
    for call, word in (
        (lambda: Strategy("two"), "name"),
        (lambda: Strategy("majority", 4), "workers: 4"),
        (lambda: Strategy("majority", 1), "workers: 1"),
        (lambda: Strategy("one", 3), "workers"),
        (lambda: Strategy("one", counting="twice"), "counting"),
        (lambda: choice.item_decisions([0.5], ["p"], Strategy("one")), "values: row 0 is 0.5, neither 0 nor 1"),
        (lambda: choice.item_decisions([2], ["p"], Strategy("one")), "values: row 0 is 2"),
        (lambda: choice.probabilities_from_labels([3], [2], Strategy("one")), "wins"),
        (lambda: choice.probabilities_from_labels([1, 1], [2], Strategy("one")), "n_labels"),
        (lambda: choice.probabilities_from_labels([1], [2], Strategy("majority", 3)), "n_labels: row 0 has 2 labels"),
        (lambda: choice.probabilities_from_labels([1], [2], Strategy("fixed")), "strategy"),
        (lambda: choice.effort_from_resampled_labels([1], [2], Strategy("one"), rule=rule, rng=rng()), "rule"),
        (
            lambda: choice.effort_from_resampled_labels([1, 1], [2, 2], Strategy("one"), rule=rule, runs=0, rng=rng()),
            "runs",
        ),
        (lambda: choice.preference_share_difference_by_position([1], [1, 0], ["x"]), "a_was_first"),
        (lambda: choice.choice_agreement([1], [1, 0], ["p"], ["x"], rng=rng()), "a_was_first: 2 rows"),
        (lambda: choice.choice_agreement([1], [np.nan], ["p"], ["x"], rng=rng()), "a_was_first: row 0 is missing"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def test_the_answers_behind_a_share_have_the_labels_of_their_people():
    chosen, annotators = [np.nan, 1, 1, 0, 1, 1, 1, 0], [3, 7, 7, 9, 9, 11, 11, 11]
    behind = choice.annotator_weighted_preference_share(chosen, annotators, items=list("pqrspqrs")).answers
    assert behind is not None and behind.annotators.tolist() == annotators[1:]
