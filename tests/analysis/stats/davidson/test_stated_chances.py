import json
from itertools import combinations

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.special import expit

from analysis.stats.davidson import first_named_bonus, fit_davidson
from analysis.stats.results import json_safe
from analysis.stats.vote_ratings import paired_ratings
from analysis.stats.votes import connected_components
from tests.analysis.stats.davidson.labels import dense_estimate, dense_spread, estimates
from tests.analysis.stats.golden import golden

GOLDEN = golden("spa")


def fitted(*rows, **options):
    """The fit of the reports: against the first system, and no order without a maximum."""
    return fit_davidson(*rows, ties="half", reference=0, ridge=0.0, **options)


def against_the_first(fit):
    return [one.estimate for one in fit.strengths]


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
    fit = fitted(
        [number[row[0]] for row in rows],
        [number[row[1]] for row in rows],
        [row[2] for row in rows],
        range(6),
        n_systems=3,
    )
    wanted = GOLDEN["fractional_bradley_terry"]["strength"]
    assert_allclose(against_the_first(fit), [0, wanted["B"], wanted["C"]], atol=1e-9)


@pytest.mark.parametrize("framing", [False, True])
def test_strengths_agree_with_statsmodels_and_their_covariance_with_refits_without_each_annotator(framing):
    first, second, values, annotators, k = study(bonus=0.3)
    design = np.zeros((len(values), k))
    design[np.arange(len(values)), first] = 1
    design[np.arange(len(values)), second] -= 1
    design = design[:, 1:]
    if framing:
        design = np.column_stack([design, np.ones(len(values))])

    def refitted(is_used):
        return sm.GLM(values[is_used], design[is_used], family=sm.families.Binomial()).fit().params

    wanted = refitted(np.ones(len(values), dtype=bool))
    moves = np.array([refitted(annotators != annotator) for annotator in range(40)]) - wanted
    covariance = 39 / 40 * moves.T @ moves
    if framing:
        found = paired_ratings(
            *(first, second, values, annotators),
            n_systems=k,
            ties="half",
            covariates=np.ones((len(values), 1)),
            rng=np.random.default_rng(0),
        )
        strengths = np.array([one.estimate for one in found.ratings])
        bonus = first_named_bonus(first, second, values, annotators, n_systems=k)
        assert_allclose([*(strengths[1:] - strengths[0]), bonus.estimate], wanted, atol=1e-7)
        # The jackknife takes one Newton step for each annotator, a refit takes all of them.
        assert_allclose(bonus.detail["se"], np.sqrt(covariance[-1, -1]), rtol=0.01)
        assert abs(bonus.estimate - 0.3) < 0.1
        return
    fit = fitted(first, second, values, annotators, n_systems=k)
    assert_allclose(against_the_first(fit)[1:], wanted, atol=1e-7)
    differences = fit.strengths[1:]
    assert_allclose([one.detail["se"] ** 2 for one in differences], np.diag(covariance), rtol=0.01)
    of_two = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert_allclose(fit.difference(2, 1).detail["se"] ** 2, of_two, rtol=0.01)
    assert_allclose([one.detail["df"] for one in differences], 39, rtol=1e-6)


def test_naming_the_other_system_first_mirrors_the_answer():
    first, second, values, annotators, k = study(2)
    straight = fitted(first, second, values, annotators, n_systems=k)
    mirrored = fitted(second, first, 1 - values, annotators, n_systems=k)
    assert_allclose(straight.probabilities, mirrored.probabilities, atol=1e-9)
    both = straight.probabilities + straight.probabilities.T
    assert_allclose(both[~np.eye(k, dtype=bool)], 1)


def test_the_published_cycle_implies_a_bonus_for_the_system_named_first():
    published = GOLDEN["table_1"]
    asked = list(published["p"])
    number = {name: position for position, name in enumerate("ABCDE")}
    rows = [number[pair[0]] for pair in asked], [number[pair[2]] for pair in asked], list(published["p"].values())
    bonus = first_named_bonus(*rows, ["all"] * 5, n_systems=5)
    assert_allclose(bonus.estimate, published["implied_framing_intercept"], atol=1e-9)
    assert (bonus.status, bonus.interval) == ("n_lt_2", None)
    found = paired_ratings(
        *rows, ["all"] * 5, n_systems=5, ties="half", covariates=np.ones((5, 1)), rng=np.random.default_rng(0)
    )
    strengths = {name: found.ratings[place].estimate for name, place in number.items()}
    for pair, wanted in published["adjusted"].items():
        assert_allclose(expit(strengths[pair[0]] - strengths[pair[2]]), wanted, atol=1e-9)


def test_a_bonus_that_the_questions_cannot_show_is_not_identified():
    first, second = [0, 2, 2, 0], [1, 1, 3, 3]
    values, annotators = np.tile([0.6, 0.7, 0.4, 0.55], 8), np.repeat(np.arange(8), 4)
    rows = np.tile(first, 8), np.tile(second, 8), values, annotators
    bonus = first_named_bonus(*rows, n_systems=4)
    assert (fitted(*rows, n_systems=4).status, bonus.status, bonus.estimate) == ("ok", "not_identified", None)
    assert bonus.has_warning("order_not_identified")
    assert bonus.reason == "the questions asked cannot tell being named first from being better"
    # One more question in the other order closes a directed circle, and the bonus can be estimated.
    more = [np.r_[column, added] for column, added in zip(rows, (1, 0, 0.6, 0), strict=True)]
    bonus = first_named_bonus(*more, n_systems=4)
    assert bonus.estimate is not None
    # But one annotator alone answered it, so nothing shows how much annotators differ there.
    assert (bonus.status, bonus.interval) == ("not_identified", None)
    assert bonus.reason.startswith("one annotator alone gave the answers")


@pytest.mark.parametrize("n_annotators", [12, 300])
def test_sums_give_what_a_design_of_rows_and_systems_gives(n_annotators):
    rows = uneven_study(np.random.default_rng(5), n_annotators)
    sets = rows[3] % 7
    fit, bonus = fitted(*rows, sets, n_systems=4), first_named_bonus(*rows, sets, n_systems=4)
    plain = dense_spread(*rows, estimates(fit), prompts=sets)
    constant = np.ones((len(sets), 1))
    ratings = paired_ratings(*rows, n_systems=4, ties="half", covariates=constant, rng=np.random.default_rng(0)).ratings
    framed = dense_spread(*rows, [one.estimate for one in ratings], bonus=bonus.estimate, prompts=sets)
    pairs = [(fit.difference(system, 0), plain, {f"of_{system}": 1, "of_0": -1}) for system in (1, 2, 3)]
    for found, spread, weights in [*pairs, (bonus, framed, {"of_last": 1})]:
        wanted = dense_estimate(spread, **weights)
        assert found.detail.keys() == wanted.detail.keys()
        for name, value in found.detail.items():
            # With 300 annotators most are left out by a series.
            assert_allclose(value, wanted.detail[name], rtol=1e-8 if n_annotators == 12 else 2e-4, err_msg=name)


def test_one_annotator_of_many_who_alone_connects_a_system_gives_no_interval():
    first, second, values, annotators = uneven_study(np.random.default_rng(6), 400)
    rows = np.r_[first, 4, 4, 1], np.r_[second, 0, 1, 4], np.r_[values, 0.7, 0.6, 0.5], np.r_[annotators, 999, 999, 999]
    assert 3 / len(rows[0]) < 0.005
    fit = fitted(*rows, n_systems=5)
    alone = fit.difference(4, 0)
    assert (alone.status, alone.interval) == ("not_identified", None)
    assert alone.reason.startswith("one annotator alone gave the answers")
    assert fit.difference(1, 0).status == "ok"


def test_systems_that_no_chain_connects_are_not_ranked_together():
    fit = fitted([0, 2], [1, 3], [0.6, 0.7], ["a", "b"], n_systems=5)
    assert (fit.status, fit.components) == ("not_identified", ((0, 1), (2, 3), (4,)))
    assert all(strength.estimate is None for strength in fit.strengths)
    assert connected_components(np.zeros((2, 2), dtype=bool)) == ((0,), (1,))


def test_a_preference_without_exception_has_no_strength():
    fit = fitted([0, 0, 1], [1, 2, 2], [1.0, 1.0, 0.6], [1, 2, 3], n_systems=3)
    assert fit.status == "separation"
    mixed = fitted([0, 0, 1, 0], [1, 2, 2, 1], [1.0, 1.0, 0.6, 0.0], [1, 2, 3, 4], n_systems=3)
    assert mixed.status == "ok"


def test_few_annotators_have_no_pvalues_and_one_has_no_interval():
    one = fitted([0, 1], [1, 0], [0.6, 0.3], ["a", "a"], n_systems=2)
    assert (one.difference(1, 0).status, one.difference(1, 0).interval) == ("n_lt_2", None)
    few = fitted(*study(n_annotators=5)[:4], n_systems=5)
    assert few.difference(1, 0).test is None and few.difference(1, 0).interval is not None
    assert fitted([], [], [], [], n_systems=2).status == "no_data"


def test_bad_rows_are_named():
    for first, second, values, word in (
        ([0], [0], [0.5], "second: row 0 compares system 0 with itself"),
        ([0, 1], [1, 2], [0.5, 0.5], "second: row 1 is 2, not one of 2 systems"),
        ([0], [1], [50], "outcomes: row 0 is 50"),
    ):
        with pytest.raises(ValueError, match=word):
            fitted(first, second, values, ["a"] * len(values), n_systems=2)


def test_the_fit_is_json():
    fit = fitted([0, 2], [1, 3], [0.6, 0.7], ["a", "b"], n_systems=5)
    json.dumps(json_safe(fit.as_dict()), allow_nan=False)
    json.dumps(json_safe(fitted(*study()[:4], n_systems=5).as_dict()), allow_nan=False)


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
        fit = fitted(*uneven_study(rng, n_annotators, np.zeros(4)), n_systems=4)
        covered += (pvalue := fit.difference(3, 0).pvalue) is None or pvalue >= 0.05
    assert covered / runs >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / runs)
