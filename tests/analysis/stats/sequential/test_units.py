"""Labels become units in the order of claims."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import sequential, stopping_boundaries
from tests.analysis.stats.sequential.labels import rejections


def test_units_enter_in_the_order_of_claims_up_to_the_first_open_one():
    values = [1, 0, 1, 1, 0, 1]
    annotators = ["p", "p", "q", "r", "s", "s"]
    claims = [4, 4, 1, 3, 2, 2]
    everything = sequential.annotator_means_in_claim_order(values, annotators, claims)
    assert everything.annotators == ("q", "s", "r", "p")
    assert everything.values.tolist() == [1.0, 0.5, 1.0, 0.5]
    assert everything.claims.tolist() == [1, 2, 3, 4] and everything.n_labels.tolist() == [1, 2, 1, 2]
    settled = [True, True, True, False, True, True]
    some = sequential.annotator_means_in_claim_order(values, annotators, claims, is_settled=settled)
    assert some.annotators == ("q", "s") and some.n_waiting == 1
    # One open label keeps its whole batch open.
    half = sequential.annotator_means_in_claim_order(
        values, annotators, claims, is_settled=[True, True, True, True, True, False]
    )
    assert half.annotators == ("q",) and half.n_waiting == 2


def test_units_do_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(0)
    claims = np.repeat(np.arange(20), 3)
    values, annotators = rng.integers(0, 2, 60).astype(float), np.char.add("w", (claims * 7 % 20).astype(str))
    order = rng.permutation(60)
    first = sequential.annotator_means_in_claim_order(values, annotators, claims)
    second = sequential.annotator_means_in_claim_order(values[order], annotators[order], claims[order])
    assert_allclose(first.values, second.values)
    assert first.annotators == second.annotators


def test_what_is_known_on_the_way_is_a_beginning_of_what_is_known_in_the_end():
    # So a crossing seen on the way is still there afterwards, in whatever order people finish or come back.
    rng = np.random.default_rng(1)
    claims = np.repeat(np.arange(30), 2)
    annotators, values = rng.integers(0, 20, 30)[claims], rng.random(60)
    final = sequential.annotator_means_in_claim_order(values, annotators, claims)
    for _ in range(20):
        settled = (rng.random(30) < 0.9)[claims]
        seen = sequential.annotator_means_in_claim_order(values, annotators, claims, is_settled=settled)
        assert seen.annotators == final.annotators[: len(seen.values)]
        assert np.array_equal(seen.values, final.values[: len(seen.values)])


def test_a_label_that_was_never_given_counts_half():
    units = sequential.annotator_means_in_claim_order([1, np.nan, np.nan, np.nan], list("xxyy"), [1, 1, 2, 2])
    assert units.values.tolist() == [0.75, 0.5] and units.n_missing == 3


def test_an_annotator_who_returns_is_still_one_unit():
    values, annotators, claims = [1, 0, 0, 0], ["x", "y", "x", "z"], [1, 2, 3, 4]
    first = sequential.annotator_means_in_claim_order(values, annotators, claims)
    assert (first.annotators, first.values.tolist(), first.n_ignored) == (("x", "y", "z"), [1.0, 0.0, 0.0], 1)


def test_no_row_is_no_unit_and_bad_rows_are_named():
    units = sequential.annotator_means_in_claim_order([], [], [])
    assert len(units.values) == 0 and units.annotators == ()
    for arguments, word in (
        (([1, 2], ["x", "y"], [1, 2]), "values: row 1 is 2"),
        (([1, 1], ["x", "y"], [1, 1]), "claims: row [01] has a claim that is also another"),
        (([1, 1], ["x"], [1, 1]), "annotators"),
    ):
        with pytest.raises(ValueError, match=word):
            sequential.annotator_means_in_claim_order(*arguments)
    with pytest.raises(ValueError, match="is_settled"):
        sequential.annotator_means_in_claim_order([1], ["x"], [1], is_settled=[True, False])


def test_labels_that_share_annotators_break_what_units_keep():
    # Two equal systems; annotators lean (sd .15) and a few of them give most of the labels.
    rng, by_label, by_unit = np.random.default_rng(11), [], []
    rule = stopping_boundaries.beta_binomial_boundaries(2000, level=0.95)
    for _ in range(150):
        sizes = np.minimum(np.ceil(5 * (rng.pareto(1.0, 70) + 1)), 600).astype(int)
        lean = np.clip(rng.normal(0.5, 0.15, 70), 0, 1)
        who = rng.permutation(np.repeat(np.arange(70), sizes))[:2000]
        given = (rng.random(len(who)) < lean[who]).astype(float)
        by_label.append(stopping_boundaries.find_boundary_crossings(given, rule).winner[0] != 0)
        by_unit.append(sequential.annotator_means_in_claim_order(given, who, who).values)
    assert np.mean(by_label) > 0.3
    assert rejections(by_unit) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


def test_claim_order_keeps_the_level_that_completion_order_breaks():
    # Whoever prefers A is quicker. Both orders hold the same units in the end; looks on the way do not.
    rng, claimed, completed = np.random.default_rng(12), [], []
    for _ in range(150):
        values = rng.binomial(5, 0.5, 120) / 5
        claimed.append(sequential.annotator_means_in_claim_order(values, np.arange(120), np.arange(120)).values)
        finished = np.argsort(np.arange(120) + rng.exponential(20, 120) - 60 * values, kind="stable")
        completed.append(values[finished])
    error = 3 * math.sqrt(0.05 * 0.95 / 150)
    assert rejections(claimed) <= 0.05 + error
    assert rejections(completed) > 0.05 + 2 * error


def test_quitters_are_counted_by_a_rule_that_was_fixed_beforehand():
    # Whoever sees B win first leaves. Dropped, they take their losses along; their missing labels as .5 do not.
    rng, dropped, counted = np.random.default_rng(13), [], []
    for _ in range(60):
        values = rng.integers(0, 2, (240, 5)).astype(float)
        values[values[:, 0] == 0, 1:] = np.nan
        who = np.repeat(np.arange(240), 5)
        counted.append(sequential.annotator_means_in_claim_order(values.ravel(), who, who).values)
        dropped.append(values[values[:, 0] == 1].mean(axis=1))
    assert rejections(counted) <= 0.15
    assert rejections(dropped) > 0.9
