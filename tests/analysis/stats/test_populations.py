"""A design can declare that a claim is about exactly its prompts, however many they are."""

import numpy as np
import pytest

from analysis.stats import cluster_variances, clusters, spa

COMMON = {"null": 0.5, "bounds": (0.0, 1.0)}
WHO, WHAT = np.repeat(np.arange(12), 6), np.tile(np.arange(6), 12)
VALUES = np.random.default_rng(11).random(72)


def test_about_people_annotators_are_the_only_clusters():
    people = clusters.clustered_mean(VALUES, WHO, **COMMON)
    found = clusters.annotator_prompt_clustered_mean(VALUES, WHO, WHAT, population="people", analysis="demo", **COMMON)
    assert (found.interval, found.test, found.analysis) == (people.interval, people.test, "demo")
    assert found.settings["population"] == cluster_variances.PEOPLE and found.detail["n_prompts"] == 6


def test_about_both_four_prompts_are_still_too_few():
    options = {"population": "people_and_prompts", "analysis": "demo"} | COMMON
    few = clusters.annotator_prompt_clustered_mean(VALUES, WHO, WHAT % 4, **options)
    enough = clusters.annotator_prompt_clustered_mean(VALUES, WHO, WHAT, **options)
    assert (few.settings["population"], enough.settings["population"]) == (
        cluster_variances.PEOPLE,
        cluster_variances.PEOPLE_AND_PROMPTS,
    )


def test_another_population_is_refused():
    with pytest.raises(ValueError, match="population: 'prompts' is not one of"):
        clusters.annotator_prompt_clustered_mean(VALUES, WHO, WHAT, population="prompts", analysis="demo", **COMMON)


def test_a_pair_of_stated_chances_about_people_has_annotators_as_clusters():
    rng, batches = np.random.default_rng(8), np.repeat(np.arange(12), 8)
    own = 0.5 + rng.normal(0, 0.15, 12)[batches] + rng.normal(0, 0.05, 96)
    xy = np.clip(np.rint(100 * np.column_stack([own, own])), 0, 100)

    def estimates(labels):
        return spa.pair_preferences_recommended(
            xy,
            100 - xy,
            pair_names=["both", "people"],
            populations={"people": "people"},
            batches=labels,
            sensitivity_resamples=99,
            rng=np.random.default_rng(0),
        )

    found, few = estimates(batches), estimates(batches % 4)
    by_annotator = next(one for one in found["both"].sensitivity if one.analysis == "spa.pair.by_annotator")
    assert found["people"].interval == by_annotator.interval != found["both"].interval
    assert found["people"].settings["population"] == "people"
    # Few batches weaken only a claim that wanted to be about more prompts.
    assert few["both"].has_warning("few_batches") and not few["people"].has_warning("few_batches")
