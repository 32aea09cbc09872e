import json
from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.special import expit

from analysis.stats.bradley_terry import connected_components, fractional_bradley_terry
from analysis.stats.results import json_safe
from tests.analysis.stats.golden import golden

GOLDEN = golden("spa")


def study(seed=0, n_annotators=40, n_systems=5, bonus=0.0, both_orders=True):
    rng = np.random.default_rng(seed)
    strengths = np.linspace(0.8, -0.8, n_systems)
    first, second, values, annotators = [], [], [], []
    for annotator in range(n_annotators):
        own = strengths + rng.normal(0, 0.3, n_systems)
        for x, y in combinations(range(n_systems), 2):
            for a, b in ((x, y), (y, x)) if both_orders else ((x, y),):
                first.append(a)
                second.append(b)
                annotators.append(annotator)
                values.append(np.clip(np.round(expit(own[a] - own[b] + bonus) + rng.normal(0, 0.1), 2), 0, 1))
    return np.array(first), np.array(second), np.array(values), np.array(annotators), n_systems


def test_strengths_agree_with_the_reference():
    rows = GOLDEN["fractional_bradley_terry"]["data"]
    number = {"A": 0, "B": 1, "C": 2}
    fit = fractional_bradley_terry(
        [number[row[0]] for row in rows],
        [number[row[1]] for row in rows],
        [row[2] for row in rows],
        range(6),
        n_systems=3,
    )
    wanted = GOLDEN["fractional_bradley_terry"]["strength"]
    assert_allclose([s.estimate for s in fit.strengths], [0, wanted["B"], wanted["C"]], atol=1e-9)


@pytest.mark.parametrize("framing", [False, True])
def test_strengths_agree_with_statsmodels_and_their_covariance_with_refits_without_each_annotator(framing):
    first, second, values, annotators, k = study(bonus=0.3)
    design = np.zeros((len(values), k))
    design[np.arange(len(values)), first] = 1
    design[np.arange(len(values)), second] -= 1
    design = design[:, 1:]
    if framing:
        design = np.column_stack([design, np.ones(len(values))])

    def fitted(is_used):
        return sm.GLM(values[is_used], design[is_used], family=sm.families.Binomial()).fit().params

    wanted = fitted(np.ones(len(values), dtype=bool))
    moves = np.array([fitted(annotators != annotator) for annotator in range(40)]) - wanted
    covariance = 39 / 40 * moves.T @ moves
    fit = fractional_bradley_terry(first, second, values, annotators, n_systems=k, framing=framing)
    found = [s.estimate for s in fit.strengths[1:]] + ([fit.framing.estimate] if framing else [])
    assert_allclose(found, wanted, atol=1e-7)
    # The jackknife takes one Newton step for each annotator, a refit takes all of them.
    assert_allclose(fit.covariance[1:, 1:], covariance[: k - 1, : k - 1], rtol=0.01)
    assert_allclose([strength.detail["df"] for strength in fit.strengths[1:]], 39, rtol=1e-6)
    if framing:
        assert_allclose(fit.framing.detail["se"], np.sqrt(covariance[-1, -1]), rtol=0.01)
        assert abs(fit.framing.estimate - 0.3) < 0.1


def test_naming_the_other_system_first_mirrors_the_answer():
    first, second, values, annotators, k = study(2)
    straight = fractional_bradley_terry(first, second, values, annotators, n_systems=k)
    mirrored = fractional_bradley_terry(second, first, 1 - values, annotators, n_systems=k)
    assert_allclose(straight.probabilities, mirrored.probabilities, atol=1e-9)
    assert_allclose(straight.probabilities + straight.probabilities.T, 1)


def test_the_published_cycle_implies_a_bonus_for_the_system_named_first():
    published = GOLDEN["table_1"]
    asked = list(published["p"])
    number = {name: position for position, name in enumerate("ABCDE")}
    fit = fractional_bradley_terry(
        [number[pair[0]] for pair in asked],
        [number[pair[2]] for pair in asked],
        list(published["p"].values()),
        ["all"] * 5,
        n_systems=5,
        framing=True,
    )
    assert_allclose(fit.framing.estimate, published["implied_framing_intercept"], atol=1e-9)
    for pair, wanted in published["adjusted"].items():
        assert_allclose(fit.probabilities[number[pair[0]], number[pair[2]]], wanted, atol=1e-9)


def test_a_bonus_that_the_questions_cannot_show_is_not_identified():
    first, second = [0, 2, 2, 0], [1, 1, 3, 3]
    values, annotators = np.tile([0.6, 0.7, 0.4, 0.55], 8), np.repeat(np.arange(8), 4)
    fit = fractional_bradley_terry(np.tile(first, 8), np.tile(second, 8), values, annotators, n_systems=4, framing=True)
    assert (fit.status, fit.framing.status, fit.framing.estimate) == ("ok", "not_identified", None)
    assert fit.framing.has_warning("order_not_identified")
    # One more question in the other order closes a directed circle, and the bonus can be estimated.
    more = fractional_bradley_terry(
        np.r_[np.tile(first, 8), 1],
        np.r_[np.tile(second, 8), 0],
        np.r_[values, 0.6],
        np.r_[annotators, 0],
        n_systems=4,
        framing=True,
    )
    assert more.framing.estimate is not None
    # But one annotator alone answered it, so nothing shows how much annotators differ there.
    assert (more.framing.status, more.framing.interval) == ("not_identified", None)
    assert more.framing.reason.startswith("one annotator alone gave the answers")


def test_systems_that_no_chain_connects_are_not_ranked_together():
    fit = fractional_bradley_terry([0, 2], [1, 3], [0.6, 0.7], ["a", "b"], n_systems=5)
    assert (fit.status, fit.components) == ("not_identified", ((0, 1), (2, 3), (4,)))
    assert all(strength.estimate is None for strength in fit.strengths)
    assert connected_components(np.zeros((2, 2), dtype=bool)) == ((0,), (1,))


def test_a_preference_without_exception_has_no_strength():
    fit = fractional_bradley_terry([0, 0, 1], [1, 2, 2], [1.0, 1.0, 0.6], [1, 2, 3], n_systems=3)
    assert fit.status == "separation"
    mixed = fractional_bradley_terry([0, 0, 1, 0], [1, 2, 2, 1], [1.0, 1.0, 0.6, 0.0], [1, 2, 3, 4], n_systems=3)
    assert mixed.status == "ok"


def test_few_annotators_have_no_pvalues_and_one_has_no_interval():
    one = fractional_bradley_terry([0, 1], [1, 0], [0.6, 0.3], ["a", "a"], n_systems=2)
    assert (one.strengths[1].status, one.strengths[1].interval) == ("n_lt_2", None)
    few = fractional_bradley_terry(*study(n_annotators=5)[:4], n_systems=5)
    assert few.strengths[1].test is None and few.strengths[1].interval is not None
    assert fractional_bradley_terry([], [], [], [], n_systems=2).status == "no_data"


def test_bad_rows_are_named():
    for first, second, values, word in (
        ([0], [0], [0.5], "second: row 0 compares system 0 with itself"),
        ([0, 1], [1, 2], [0.5, 0.5], "second: row 1 is 2, not one of 2 systems"),
        ([0], [1], [50], "values: row 0 is 50"),
    ):
        with pytest.raises(ValueError, match=word):
            fractional_bradley_terry(first, second, values, ["a"] * len(values), n_systems=2)


def test_the_fit_is_json():
    fit = fractional_bradley_terry([0, 2], [1, 3], [0.6, 0.7], ["a", "b"], n_systems=5, framing=True)
    json.dumps(json_safe(fit.as_dict()), allow_nan=False)
    json.dumps(json_safe(fractional_bradley_terry(*study()[:4], n_systems=5).as_dict()), allow_nan=False)


def uneven_study(rng, n_annotators, strengths=(0.0, 0.4, 0.8, 1.2)):
    """Answers about random pairs by annotators with tastes of their own, some of whom answer far more than others."""
    activity = np.exp(rng.normal(0, 1.2, n_annotators))
    annotators = np.repeat(np.arange(n_annotators), np.maximum(1, np.round(8 * activity / activity.mean())).astype(int))
    first = rng.integers(0, 4, len(annotators))
    second = (first + rng.integers(1, 4, len(annotators))) % 4
    own = np.array(strengths) + rng.normal(0, 0.4, (n_annotators, 4))
    logits = own[annotators, first] - own[annotators, second] + rng.normal(0, 0.3, len(annotators))
    return first, second, expit(logits), annotators


@pytest.mark.parametrize("n_annotators", [8, 20, 60])
def test_intervals_cover_with_uneven_activity(n_annotators):
    rng, runs = np.random.default_rng(n_annotators), 300
    covered = 0
    for _ in range(runs):
        # Equal systems: the strength of each is 0, however much the annotators' tastes differ.
        fit = fractional_bradley_terry(*uneven_study(rng, n_annotators, np.zeros(4)), n_systems=4)
        covered += fit.strengths[3].pvalue >= 0.05 if fit.strengths[3].pvalue is not None else True
    assert covered / runs >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / runs)
