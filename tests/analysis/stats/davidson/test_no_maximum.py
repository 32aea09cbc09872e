"""Where the model has no maximum, a status says so."""

import json

import numpy as np
import pytest

from analysis.stats import davidson as paired
from analysis.stats.results import json_safe
from tests.analysis.stats.davidson.labels import estimates, labels


def test_systems_that_no_chain_connects_are_not_ranked_together():
    fit = paired.fit_davidson([0, 2, 0, 2], [1, 3, 1, 3], [1, 0, 0.5, 1], list("abcd"), n_systems=5)
    assert (fit.status, fit.components) == ("not_identified", ((0, 1), (2, 3), (4,)))
    assert all(strength.estimate is None for strength in fit.strengths)
    assert fit.difference(0, 1).status == "not_identified"


def rows(wins, ties=()):
    """Labels of people of their own; ``wins`` and ``ties`` have the number of labels for pairs of systems."""
    pairs = [(x, y, 1.0) for (x, y), n in dict(wins).items() for _ in range(n)]
    pairs += [(x, y, 0.5) for (x, y), n in dict(ties).items() for _ in range(n)]
    first, second, outcomes = zip(*pairs, strict=True)
    return list(first), list(second), list(outcomes), list(range(len(pairs)))


def test_a_system_that_always_won_is_put_in_order_and_no_more():
    fit = paired.fit_davidson(*rows({(0, 1): 10, (0, 2): 10, (1, 2): 6, (2, 1): 4}), n_systems=3)
    assert fit.status == "separation"
    found = estimates(fit)
    assert found[0] > found[1] > found[2] and np.abs(found).max() < 5
    assert all(strength.interval is None and strength.has_warning("not_identified") for strength in fit.strengths)
    difference = fit.difference(0, 1)
    assert (difference.status, difference.test) == ("separation", None)


def test_ties_alone_do_not_make_a_loss():
    # The tie connects the two, yet with wins on one side only no finite strengths are most likely.
    fit = paired.fit_davidson(*rows({(0, 1): 10}, {(0, 1): 5}), n_systems=2)
    assert fit.status == "separation" and fit.strengths[0].estimate > 0
    # Nothing but ties: any nu is less likely than a greater one.
    only = paired.fit_davidson(*rows({}, {(0, 1): 5}), n_systems=2)
    assert only.status == "separation" and only.tie.estimate is None


def test_no_label_one_annotator_and_few_annotators():
    assert paired.fit_davidson([], [], [], [], n_systems=2).status == "no_data"
    one = paired.fit_davidson([0, 1, 0], [1, 0, 1], [1, 1, 0.5], ["a", "a", "a"], n_systems=2)
    assert (one.strengths[0].status, one.strengths[0].interval) == ("n_lt_2", None)
    few = paired.fit_davidson(*labels(7, n_annotators=5), n_systems=4)
    assert few.difference(0, 1).test is None and few.difference(0, 1).interval is not None
    assert few.difference(0, 1).has_warning("few_clusters")
    missing = paired.fit_davidson([0, 1, 0], [1, 0, 1], [1, 1, np.nan], list("abc"), n_systems=2)
    assert missing.strengths[0].n == 2


def test_everybody_in_step_has_no_variance():
    first, second, outcomes = [0, 1, 0], [1, 0, 1], [1, 1, 0.5]
    fit = paired.fit_davidson(first * 8, second * 8, outcomes * 8, np.repeat(np.arange(8), 3), n_systems=2)
    assert (fit.status, fit.difference(0, 1).status) == ("ok", "zero_variance")


def test_bad_arguments_are_named():
    for call, word in (
        (lambda: paired.fit_davidson([0], [0], [1], ["a"], n_systems=2), "second: row 0 compares system 0 with itself"),
        (lambda: paired.fit_davidson([0, 1], [1, 2], [1, 1], ["a", "b"], n_systems=2), "second: row 1 is 2"),
        (lambda: paired.fit_davidson([0.5], [1], [1], ["a"], n_systems=2), "first"),
        (lambda: paired.fit_davidson([0], [1], [0.7], ["a"], n_systems=2), "outcomes: row 0 is 0.7"),
        (lambda: paired.fit_davidson([0], [1], [1], ["a"], n_systems=2, level=1), "level"),
        (lambda: paired.bradley_terry_strengths([[0, 1]]), "wins: shape"),
        (lambda: paired.bradley_terry_strengths([[0, 1], [-1, 0]]), "wins: row 1"),
        (lambda: paired.bradley_terry_strengths([[1, 1], [1, 0]]), "wins: row 0 compares"),
        (lambda: paired.fit_davidson(*labels(8), n_systems=4).difference(0, 0), "x: 0 and 0"),
        (lambda: paired.fit_davidson(*labels(8), n_systems=4).difference(0, 4), "x: 0 and 4"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def test_fits_are_json():
    for fit in (
        paired.fit_davidson(*labels(8), n_systems=4),
        paired.fit_davidson([0, 2], [1, 3], [1, 0], ["a", "b"], n_systems=5),
        paired.fit_davidson(*rows({(0, 1): 10}, {(0, 1): 5}), n_systems=2),
        paired.fit_davidson(*rows({}, {(0, 1): 5}), n_systems=2),
    ):
        json.dumps(json_safe(fit.as_dict()), allow_nan=False)
        json.dumps(json_safe(fit.difference(0, 1)), allow_nan=False)
