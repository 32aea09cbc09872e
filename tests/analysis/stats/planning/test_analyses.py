"""Simulated studies are analysed as data are analysed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import (
    basic,
    choice,
    clusters,
    detection,
    equivalence,
    generators,
    leaderboard,
    planning,
    ratings,
    spa,
)
from analysis.stats.planning import _search, _simulation
from tests.analysis.stats.draws import rng


def same(outcomes, row, estimate):
    """Whether a run's outcome is what the analysis of that run alone says."""
    nothing = (np.nan, np.nan)
    ends = nothing if estimate.interval is None else (estimate.interval.low, estimate.interval.high)
    pvalue = np.nan if estimate.pvalue is None else estimate.pvalue
    mean = np.nan if estimate.estimate is None else estimate.estimate
    found = [outcomes.estimate[row], outcomes.low[row], outcomes.high[row], outcomes.pvalue[row]]
    assert_allclose(found, [mean, *ends, pvalue], rtol=1e-9, atol=1e-12)


def awkward(seed=0):
    """Rows with gaps, one value, none, no variance, a ceiling, a near-ceiling of an even number."""
    values = rng(seed).uniform(0.3, 0.9, (8, 20))
    values[1, ::3] = np.nan
    values[2, 1:] = np.nan
    values[3] = np.nan
    values[4] = 0.5
    values[5] = 1.0
    values[5, 0] = 0.25
    values[6, :18] = 1.0
    values[7] = 0.7
    values[7, 5:] = np.nan
    return values


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_all_runs_at_once_give_the_numbers_of_each_run_alone(bounds):
    values = awkward()
    outcomes = planning.one_sample_t_test_outcomes(values, null=0.5, bounds=bounds)
    for row in range(len(values)):
        same(outcomes, row, basic.one_sample_t_test(values[row], null=0.5, bounds=bounds))
    large = rng(1).integers(0, 5, (6, 150)) / 4
    large[0] = 1.0
    large[0, :3] = 0.5
    outcomes = planning.one_sample_t_test_outcomes(large, null=0.6, level=0.9, bounds=bounds)
    for row in range(len(large)):
        same(outcomes, row, basic.one_sample_t_test(large[row], null=0.6, level=0.9, bounds=bounds))


def test_equivalence_of_all_runs_is_that_of_each():
    values = rng(2).normal(0.5, 0.15, (40, 25))
    values[0] = 0.5
    outcomes = planning.one_sample_t_test_outcomes(values, margin=0.07)
    alone = [equivalence.equivalence_test(row, null=0.5, margin=0.07) for row in values]
    wanted = [bool(e.status == "ok" and e.detail["is_equivalent"]) for e in alone]
    assert outcomes.is_equivalent.tolist() == wanted and 0 < sum(wanted) < 40


@pytest.mark.parametrize("n_annotators,n_each,n_items", [(30, 5, 40), (8, 6, 12), (5, 8, 10), (1, 6, 6)])
def test_two_ways_of_clustering_at_once_give_the_numbers_of_each_run_alone(n_annotators, n_each, n_items):
    who = np.repeat(np.arange(n_annotators), n_each)
    what = np.arange(n_annotators * n_each) % n_items
    values = (rng(3).random((4, len(who))) < 0.7).astype(float)
    values[3] = 1.0
    outcomes = planning.two_way_clustered_mean_outcomes(values, who, what, bounds=(0.0, 1.0))
    for row in range(4):
        same(outcomes, row, clusters.two_way_clustered_mean(values[row], who, what, null=0.5, bounds=(0.0, 1.0)))


def test_ratings_are_planned_with_the_analysis_of_ratings():
    made = generators.simulate_likert_ratings(
        20, 4, [0.5, 0.0], runs=3, annotator_taste_sd=0.5, n_prompts=16, rng=rng(4)
    )
    x, y, who = made.ratings[0, ..., 0].ravel(), made.ratings[0, ..., 1].ravel(), np.repeat(np.arange(20), 4)
    captured = captured_outcomes(
        lambda **more: planning.simulate_rating_power(20, 4, 0.5, annotator_taste_sd=0.5, n_prompts=16, **more),
        seed=4,
        runs=3,
    )
    same(captured, 0, ratings.probability_of_superiority(x, y, who, prompts=made.prompts.ravel()))
    captured = captured_outcomes(
        lambda **more: planning.simulate_rating_power(
            20, 4, 0.5, estimator="mean_difference", annotator_taste_sd=0.5, n_prompts=16, **more
        ),
        seed=4,
        runs=3,
    )
    same(captured, 0, ratings.paired_mean_difference(x, y, who, prompts=made.prompts.ravel(), scale=(1, 5)))
    made = generators.simulate_likert_ratings(20, 4, [0.5, 0.0], runs=3, rng=rng(4))
    captured = captured_outcomes(
        lambda **more: planning.simulate_rating_power(20, 4, 0.5, estimator="mean_difference", **more), seed=4, runs=3
    )
    x, y = made.ratings[0, ..., 0].ravel(), made.ratings[0, ..., 1].ravel()
    same(captured, 0, ratings.paired_mean_difference(x, y, who, scale=(1, 5)))
    captured = captured_outcomes(lambda **more: planning.simulate_rating_power(20, 4, 0.5, **more), seed=4, runs=3)
    same(captured, 0, ratings.probability_of_superiority(x, y, who))


@pytest.mark.parametrize("n_annotators,n_prompts", [(20, 4), (20, 5), (5, 16)])
@pytest.mark.parametrize("estimator", ["superiority", "mean_difference"])
def test_few_prompts_and_few_people_are_planned_as_they_are_reported(estimator, n_annotators, n_prompts):
    # A large effect, so that some runs are at the ceiling, where bets replace the t test.
    made = generators.simulate_likert_ratings(n_annotators, 3, [2.5, 0.0], runs=6, n_prompts=n_prompts, rng=rng(5))
    captured = captured_outcomes(
        lambda **more: planning.simulate_rating_power(
            n_annotators, 3, 2.5, estimator=estimator, n_prompts=n_prompts, **more
        ),
        5,
        6,
    )
    who, prompts = np.repeat(np.arange(n_annotators), 3), made.prompts.ravel()
    tests = set()
    for row in range(6):
        x, y = (made.ratings[row, ..., system].ravel() for system in (0, 1))
        if estimator == "superiority":
            alone = ratings.probability_of_superiority(x, y, who, prompts=prompts)
        else:
            alone = ratings.paired_mean_difference(x, y, who, prompts=prompts, scale=(1, 5))
        same(captured, row, alone)
        tests.add(alone.settings["method"])
    if estimator == "superiority":
        assert "betting" in tests


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
@pytest.mark.parametrize("n", [1, 4, 20])
def test_means_over_people_at_once_give_the_numbers_of_each_run_alone(n, bounds):
    means = rng(7).uniform(0.3, 0.9, (6, n))
    means[1] = 1.0
    means[2, : n - 1] = 0.9
    means[3] = 0.5
    means[4] = rng(8).normal(0.5, 0.01, n)
    outcomes = planning.clustered_mean_outcomes(means, bounds=bounds, margin=0.1, level=0.9)
    wanted = []
    for row in range(6):
        alone = clusters.clustered_mean(means[row], np.arange(n), null=0.5, bounds=bounds, level=0.9)
        same(outcomes, row, alone)
        tost = equivalence.equivalence_test_of_estimate(alone, null=0.5, margin=0.1, significance=0.1)
        wanted.append(tost is not None and tost.test is not None and tost.detail["is_equivalent"])
    assert outcomes.is_equivalent.tolist() == wanted and wanted[4] == (n == 20)


def test_human_likeness_is_planned_with_the_analysis_of_human_likeness():
    made = generators.simulate_human_likeness_ratings(30, 5, d_prime=0.6, n_texts=50, runs=2, rng=rng(5))
    says = detection.ratings_to_machine_answers(made.ratings[0].ravel())
    truth, who, texts = made.is_machine[made.texts.ravel()], np.repeat(np.arange(30), 5), made.texts.ravel()
    captured = captured_outcomes(
        lambda **more: planning.simulate_human_likeness_power(30, 5, 0.6, n_texts=50, **more), 5, 2
    )
    same(captured, 0, detection.clustered_accuracy(detection.score_correct_answers(says, truth), who, texts))
    captured = captured_outcomes(
        lambda **more: planning.simulate_human_likeness_power(30, 5, 0.6, n_texts=50, measure="sensitivity", **more),
        5,
        2,
    )
    same(captured, 0, detection.marginal_d_prime(says, truth, who, texts, sensitivity_resamples=19, rng=rng()))


@pytest.mark.parametrize("n_each", [1, 5])
def test_choices_are_planned_with_the_analysis_of_choices(n_each):
    made = generators.simulate_choice_answers(40, n_each, mean_difficulty=0.3, runs=3, rng=rng(6))
    captured = captured_outcomes(lambda **more: planning.simulate_choice_power(40, n_each, 0.3, **more), 6, 3)
    for row in range(3):
        same(
            captured,
            row,
            choice.annotator_weighted_preference_share(made.chose_a[row].ravel(), np.repeat(np.arange(40), n_each)),
        )


def test_leaderboards_and_utilities_are_planned_with_their_analyses():
    made = generators.simulate_leaderboard_answers(60, [0.8, 0.7], n_annotators=20, runs=2, rng=rng(7))
    captured = captured_outcomes(
        lambda **more: planning.simulate_leaderboard_power(60, 0.1, n_annotators=20, **more), 7, 2
    )
    alone = leaderboard.score_difference_in_points(
        made.values[0].ravel(),
        np.repeat(["x", "y"], 60),
        np.tile(np.arange(60), 2),
        made.annotators[0].ravel(),
        x="x",
        y="y",
    )
    same(captured, 0, alone)
    rated = generators.simulate_continuous_ratings(25, 3, [0.6, 0.4], violating_share=0.1, runs=2, rng=rng(8))
    captured = captured_outcomes(
        lambda **more: planning.simulate_expected_utility_power(25, 3, 0.2, violating_share=0.1, **more), 8, 2
    )
    ends = [rated.reference_minimum[0][:, None], rated.reference_maximum[0][:, None]]
    means = []
    for system in (0, 1):
        rows = np.concatenate([rated.ratings[0, :, :, system], *ends], axis=1)
        place = np.tile(np.arange(5), 25)
        scaled = ratings.rescale_to_references(
            rows.ravel(), np.repeat(np.arange(25), 5), is_minimum=place == 3, is_maximum=place == 4
        )
        means.append(scaled.values.reshape(25, 5)[:, :3].mean(axis=1))
    same(captured, 0, basic.paired_t_test(means[0], means[1]))


def captured_outcomes(plan, seed, runs):
    """The outcomes of a planner's runs, made in one block so that its generator makes what ours makes."""
    kept, simulate = [], _simulation.simulate

    def watched(*args, **more):
        kept.append(simulate(*args, **more))
        return kept[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_simulation, "BLOCKS", 1)
        patch.setattr(_search, "simulate", watched)
        plan(rng=rng(seed), options=planning.PlanOptions(runs=runs))
    return kept[0]


def test_probabilities_are_planned_with_the_analysis_of_probabilities():
    made = generators.simulate_spa_answers(30, [0.6, 0.5], annotator_sd=0.2, order_sd=0.15, runs=2, rng=rng(9))
    for mode, tau in [("recommended", None), ("recommended", 1.1), ("paper", None), ("paper", 1.1)]:
        captured = captured_outcomes(
            lambda mode=mode, tau=tau, **more: planning.simulate_spa_power(
                30, [0.6, 0.5], mode=mode, tau=tau, annotator_sd=0.2, order_sd=0.15, **more
            ),
            9,
            2,
        )
        xy, yx = made.xy_percent[1], made.yx_percent[1]
        kept = np.ones(30, dtype=bool) if tau is None else ~spa.tau_incoherence_flags(xy, yx, tau=tau).incoherent
        if mode == "paper":
            alone = spa.pair_preference_paper(xy[kept, 0])
        else:
            values = spa.combine_orders(xy, yx)[kept, 0]
            alone = basic.one_sample_t_test(values, null=0.5, bounds=(0.0, 1.0))
            if tau is None:
                study = spa.pair_preferences_recommended(
                    xy, yx, pair_names=["a", "b"], sensitivity_tau=None, sensitivity_resamples=19, rng=rng()
                )
                assert_allclose(study["a"].pvalue, alone.pvalue)
        found = [captured.estimate[1, 0], captured.low[1, 0], captured.high[1, 0], captured.pvalue[1, 0]]
        assert_allclose(found, [alone.estimate, alone.interval.low, alone.interval.high, alone.pvalue], rtol=1e-9)
