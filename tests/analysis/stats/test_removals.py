"""The fewest answers and people behind a claim: brute force, a refit by hand, a closed form, and what cannot be found."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from analysis.stats import clusters, unpaired
from analysis.stats.removals import checked_removal, claim_fragility, first_of
from tests.analysis.stats.draws import rng


def lost(one):
    """The claim "above .5" at the level .05. Without a test nothing is known."""
    if one.test is None or one.is_blocked:
        return None
    return None if one.pvalue < 0.05 and one.estimate > one.test.null else "inconclusive"


def fragility_of(found, refits=0, above=0.5, **options):
    quantile = stats.t.ppf(0.975, found.detail["df"])
    claim = {"above": above, "below": None, "verdict_without": lost, "refits": refits} | options
    return claim_fragility(found.answers, found, quantile=quantile, **claim)


def fewest(codes, found, largest=3):
    """Every set of answers or people, the smallest first."""
    names = np.unique(codes)
    for size in range(1, largest + 1):
        for chosen in itertools.combinations(names, size):
            if lost(found.answers.refit(~np.isin(codes, chosen))) is not None:
                return size
    return None


def small_study(draw, kind):
    people = np.repeat(np.arange(9), 2)
    prompts = np.arange(18) % 2 if kind == "people" else (np.arange(18) * 5 + np.arange(18) // 7) % 6
    values = np.clip(draw.normal(0.75, 0.25, 18), 0, 1).round(1)
    weights = None
    if kind == "equal people":
        kept = draw.random(18) < 0.85
        people, prompts, values = people[kept], prompts[kept], values[kept]
        weights = 1 / np.bincount(people, minlength=9)[people]
    options = {"null": 0.5, "bounds": (0, 1), "weights": weights, "analysis": "demo"}
    return people, clusters.annotator_prompt_clustered_mean(values, people, prompts, **options)


def test_answers_that_are_all_equal_without_a_few_are_no_division_by_zero():
    people, prompts, values = np.repeat(np.arange(12), 3), np.tile(np.arange(6), 6), np.ones(36)
    values[[0, 4]] = 0.5, 0.0
    searched = 0
    for seed in range(40):
        weights = rng(seed).random(36) + 0.1
        found = clusters.annotator_prompt_clustered_mean(
            values, people, prompts, null=0.5, bounds=(0, 1), weights=weights, analysis="demo"
        )
        if lost(found) is None and found.settings.get("method") != "betting":
            with np.errstate(all="raise"):
                assert fragility_of(found).answers.total == 36
            searched += 1
    assert searched > 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["people", "people and prompts", "equal people"])
def test_no_smaller_set_is_missed_in_most_small_studies(kind):
    draw, equal, total = rng(1), 0, 0
    while total < 24:
        people, found = small_study(draw, kind)
        if found.test is None or lost(found):
            continue
        fragile = fragility_of(found, refits=100)
        for codes, removal in ((np.arange(len(people)), fragile.answers), (people, fragile.people)):
            wanted = fewest(codes, found)
            if wanted is not None:
                assert removal.n is None or removal.n >= wanted
                equal, total = equal + (removal.n == wanted), total + 1
    assert equal > 0.5 * total


def study(n_people=30, n_prompts=8, seed=2):
    draw = rng(seed)
    people, prompts = (
        np.repeat([f"a{n:02}" for n in range(n_people)], n_prompts),
        np.tile(np.arange(n_prompts), n_people),
    )
    chance = 0.62 + np.repeat(draw.normal(0, 0.15, n_people), n_prompts)
    return (draw.random(len(people)) < chance).astype(float), people, prompts


def test_a_refit_by_hand_confirms_the_number_and_one_fewer_is_too_few():
    values, people, prompts = study()
    options = {"null": 0.5, "bounds": (0, 1), "analysis": "demo"}
    found = clusters.annotator_prompt_clustered_mean(values, people, prompts, **options)
    fragile = fragility_of(found)
    assert found.pvalue < 0.05 and fragile.answers.n > 3
    for removal, names in ((fragile.answers, np.arange(len(people))), (fragile.people, people)):
        assert removal.is_confirmed and removal.n == len(removal.removed) and removal.share == removal.n / removal.total
        for left_out, is_lost in ((removal.removed, True), (removal.removed[:-1], False)):
            kept = ~np.isin(names, left_out)
            again = clusters.two_way_clustered_mean(values[kept], people[kept], prompts[kept], **options)
            assert (again.pvalue >= 0.05) == is_lost
    # Influence alone is close.
    assert abs(fragile.answers.n - fragile.answers.predicted) <= 0.2 * fragile.answers.n + 1
    json.dumps(fragile.as_dict(), allow_nan=False)


def test_of_a_mean_the_largest_values_go_until_the_t_test_fails():
    """One answer a person and no ends of the scale: the closed form is Student's t of those who are left."""
    values = rng(3).normal(0.4, 1.0, 60)
    found = clusters.clustered_mean(values, np.arange(60), null=0.0)
    answers = clusters.answers_of_mean(values, np.arange(60), None, null=0.0)
    fragile = claim_fragility(
        answers, found, above=0.0, below=None, quantile=stats.t.ppf(0.975, 59), verdict_without=lost
    )
    ordered = np.sort(values)
    wanted = next(n for n in range(1, 30) if stats.ttest_1samp(ordered[: 60 - n], 0).pvalue >= 0.05)
    assert fragile.answers.n == fragile.people.n == wanted > 1
    assert sorted(values[list(fragile.answers.removed)]) == pytest.approx(ordered[60 - wanted :])
    # The influence of an answer on a mean is (v - mean) / n.
    assert answers.influences()[0] == pytest.approx((values - values.mean()) / 60)


def test_a_claim_of_two_sides_rests_on_the_weaker_one():
    values, people, prompts = study()
    found = clusters.annotator_prompt_clustered_mean(values, people, prompts, null=0.5, bounds=(0, 1), analysis="demo")
    near, far = found.estimate - 0.02, found.estimate + 0.3

    def outside(one):
        reach = 2 * one.detail["se"]
        return None if one.estimate - reach > near - 0.1 and one.estimate + reach < far else "inconclusive"

    sides = {"above": near - 0.1, "below": far, "verdict_without": outside}
    both = fragility_of(found, **sides)
    assert both.answers.n == fragility_of(found, **sides | {"below": None}).answers.n
    assert both.answers.n < fragility_of(found, **sides | {"above": None}).answers.n


@pytest.mark.parametrize("statistic", [unpaired.mean_difference, unpaired.probability_of_superiority])
def test_two_samples_of_different_people_are_refitted_too(statistic):
    draw = rng(4)
    x, y = draw.normal(0.9, 1, 80), draw.normal(0.0, 1, 80)
    labels = {"x_prompts": np.arange(80) % 8, "y_prompts": np.arange(80) % 8}
    people = {
        "x_annotators": [f"x{n // 4:02}" for n in range(80)],
        "y_annotators": [f"y{n // 4:02}" for n in range(80)],
    }
    found = statistic(x, y, **labels, **people)
    fragile = fragility_of(found, above=found.test.null)
    gone = np.array(fragile.answers.removed)
    kept_x, kept_y = np.delete(np.arange(80), gone[gone < 80]), np.delete(np.arange(80), gone[gone >= 80] - 80)
    again = statistic(
        x[kept_x],
        y[kept_y],
        **{name: np.asarray(one)[kept_x if name[0] == "x" else kept_y] for name, one in (labels | people).items()},
    )
    assert again.pvalue >= 0.05 > found.pvalue and again.n_rows == 160 - fragile.answers.n
    assert {name[0] for name in fragile.people.removed} <= {"x", "y"}


def test_people_keep_equal_weights_when_answers_go():
    answers = clusters.answers_of_mean([1, 0, 1, 1], list("aabb"), None, weights=[0.5] * 4, null=0.5)
    _, alone = answers.influences()
    for row in range(4):
        again = answers.refit(np.arange(4) != row)
        # The mean of people's means: .75. Without the 0 of the first person it is 1, as twice the first-order change says.
        assert again.estimate == pytest.approx(0.75 - 2 * alone[row])


def mean_of_people(values):
    found = clusters.clustered_mean(values, np.arange(len(values)), null=0.0)
    return found, clusters.answers_of_mean(values, np.arange(len(values)), None, null=0.0)


def test_a_claim_that_nothing_ends_has_a_reason():
    found, answers = mean_of_people(5 + rng(5).normal(0, 1, 60))
    fragile = claim_fragility(answers, found, above=0.0, below=None, quantile=2.0, verdict_without=lost)
    assert (fragile.answers.n, fragile.people.n, fragile.people.predicted) == (None, None, None)
    assert fragile.people.status == "not_identified" and "half of the annotators" in fragile.people.reason


def test_a_removal_that_leaves_too_few_for_a_test_is_what_the_caller_says():
    found, answers = mean_of_people(np.array([0.2, 0.3, 0.4, 0.5, 0.5, 0.6, 0.7]))
    options = {"above": 0.0, "below": None, "quantile": 2.0, "refits": 100}
    assert claim_fragility(answers, found, verdict_without=lost, **options).people.n is None

    def untested(one):
        return "inconclusive" if one.test is None else None

    assert claim_fragility(answers, found, verdict_without=untested, **options).people.n == 2


@pytest.mark.parametrize("predicted", [None, 1, 37, 60, 400])
def test_from_any_prediction_the_same_number_is_found(predicted):
    asked = []

    def refit(left_out):
        asked.append(len(left_out))
        return "other" if len(left_out) >= 37 else None

    options = {"most": 400, "reason": "nothing"}
    found = checked_removal("answer", 900, predicted, first_of(np.arange(900)), range(900), refit, **options)
    assert (found.n, found.challenger, found.removed) == (37, "other", tuple(range(37)))
    assert len(asked) <= 20 and len(set(asked)) == len(asked)
