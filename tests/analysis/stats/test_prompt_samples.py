"""Two samples of prompts: the estimator against whole studies that are simulated again and again."""

import numpy as np
import pytest

from analysis.stats import clusters, spa
from analysis.stats.prompt_samples import two_prompt_samples_mean

PEOPLE, SETS = 80, (10, 8)
# Standard deviations: of what a set of x adds, of what a set of y takes away, and of people.
SPREAD_X, SPREAD_Y, SPREAD_PEOPLE = 0.08, 0.06, 0.12


def draw_study(rng, mean=0.5):
    """One study: new people, and a new sample of prompts of either system."""
    x, y = (np.arange(PEOPLE) % n for n in SETS)
    x, y = rng.permutation(x), rng.permutation(y)
    of_x, of_y = rng.normal(0, SPREAD_X, SETS[0]), rng.normal(0, SPREAD_Y, SETS[1])
    return mean + of_x[x] - of_y[y] + rng.normal(0, SPREAD_PEOPLE, PEOPLE), x, y


def estimated(study, **options):
    values, x, y = study
    return two_prompt_samples_mean(values.clip(0, 1), x, y, analysis="demo", null=0.5, bounds=(0, 1), **options)


def test_its_error_is_that_of_whole_studies_that_are_run_again():
    rng = np.random.default_rng(7)
    # The oracle knows nothing of clusters: 4,000 studies from the start, and the spread of their means.
    spread = np.std([np.mean(draw_study(rng)[0]) for _ in range(4000)])
    found = [estimated(draw_study(rng)) for _ in range(400)]
    assert np.sqrt(np.mean([one.detail["se"] ** 2 for one in found])) == pytest.approx(spread, rel=0.1)
    covered = np.mean([one.interval.low <= 0.5 <= one.interval.high for one in found])
    false = np.mean([one.pvalue < 0.05 for one in found])
    assert 0.93 <= covered <= 0.99 and false == pytest.approx(1 - covered)
    # Over people alone the error is too small, and so are those of one of the samples.
    alone = [one.sensitivity[-1] for one in found]
    assert np.mean([one.interval.low <= 0.5 <= one.interval.high for one in alone]) < 0.75
    for way in (1, 2):
        studies = [draw_study(rng) for _ in range(200)]
        one_way = [clusters.clustered_mean(s[0], s[way], null=0.5, analysis="one") for s in studies]
        assert np.sqrt(np.mean([one.detail["se"] ** 2 for one in one_way])) < 0.92 * spread


def test_it_finds_a_difference_and_says_what_it_is_about():
    result = estimated(draw_study(np.random.default_rng(1), mean=0.75))
    assert result.pvalue < 0.01 and result.settings["estimator"] == "two_prompt_samples"
    assert result.settings["population"] == "people and prompts" and result.unit == "annotator" and result.n == PEOPLE
    assert (result.detail["n_sets_x"], result.detail["n_sets_y"]) == SETS
    again = result.answers.refit(np.arange(PEOPLE) >= 10)
    assert again.n == PEOPLE - 10 and again.settings["population"] == "people and prompts"


def test_with_few_sets_or_as_declared_it_is_about_exactly_these_prompts():
    values, x, y = draw_study(np.random.default_rng(2))
    few, declared = estimated((values, x, y % 5)), estimated((values, x, y), population="people")
    people = clusters.clustered_mean(values.clip(0, 1), np.arange(PEOPLE), null=0.5, bounds=(0, 1), analysis="demo")
    for one in (few, declared):
        assert one.settings["population"] == "people" and one.interval == people.interval
    with pytest.raises(ValueError, match="population"):
        estimated((values, x, y), population="everybody")


def test_batches_that_fix_both_sets_are_one_sample_of_batches():
    values, x, _ = draw_study(np.random.default_rng(3))
    one_way = clusters.clustered_mean(values, x, null=0.5, analysis="one").detail["se"]
    assert one_way <= estimated((values, x, x)).detail["se"] <= 1.15 * one_way


def test_pairs_of_systems_use_it_in_place_of_batches():
    values, x, y = draw_study(np.random.default_rng(4), mean=0.6)
    percent = np.round(100 * values.clip(0, 1))
    options = {"pair_names": ["a", "b"], "sensitivity_resamples": 99, "rng": np.random.default_rng(0)}
    table = np.column_stack([percent, percent])
    found = spa.pair_preferences_recommended(
        table, np.full_like(table, np.nan), batches=x, own_prompts={"a": (x, y)}, **options
    )
    expected = estimated((percent / 100, x, y)).interval
    assert (found["a"].interval.low, found["a"].interval.high) == pytest.approx((expected.low, expected.high))
    assert found["a"].settings["estimator"] == "two_prompt_samples" and "estimator" not in found["b"].settings
    few = spa.pair_preferences_recommended(table, np.full_like(table, np.nan), own_prompts={"a": (x, y % 3)}, **options)
    assert few["a"].has_warning("few_batches") and few["a"].settings["population"] == "people"
