import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special

from analysis.stats import clusters, detection, generators, ratings, spa
from tests.analysis.stats.draws import rng
from tests.analysis.stats.golden import golden

GOLDEN = golden("generators")


def icc(values, who):
    return clusters.variance_components(values, who).icc


def test_probabilities_are_stated_in_fives_about_the_true_preference():
    made = generators.simulate_spa_answers(200, [0.6, 0.3], annotator_sd=0.1, order_sd=0.1, runs=50, rng=rng())
    assert made.xy_percent.shape == made.yx_percent.shape == (50, 200, 2)
    both = np.stack([made.xy_percent, made.yx_percent])
    assert set(np.unique(both % 5)) == {0.0} and both.min() >= 0 and both.max() <= 100
    combined = spa.combine_orders(made.xy_percent, made.yx_percent)
    assert_allclose(combined.mean(axis=(0, 1)), [0.6, 0.3], atol=0.004)
    # Two orders halve their own noise but not the annotator's; rounding to 5 adds 5^2 / 12 to each.
    wanted = math.sqrt(0.1**2 + (0.1**2 + 0.05**2 / 12) / 2)
    assert_allclose(combined[:, :, 0].std(), wanted, atol=0.003)
    # One annotator's two pairs have errors of their own.
    assert abs(np.corrcoef(combined[:, :, 0].ravel(), combined[:, :, 1].ravel())[0, 1]) < 0.03


@pytest.mark.parametrize("row", GOLDEN["tau"], ids=lambda row: f"{row['sd']}-{row['n']}")
def test_the_tau_rule_does_to_made_up_answers_what_it_did_in_the_reference(row):
    made = generators.simulate_spa_answers(20_000, 0.5, annotator_sd=0, order_sd=row["sd"], rounding=1, rng=rng(1))
    xy, yx = made.xy_percent[0], made.yx_percent[0]
    kept = ~spa.tau_incoherence_flags(xy, yx).incoherent
    # Whole percentages keep sums of exactly 110: about half a point more of the noise of a sum.
    sum_sd = math.sqrt(2) * row["sd"]
    more = special.ndtr(0.105 / sum_sd) - special.ndtr(0.1 / sum_sd)
    assert abs(kept.mean() - row["kept"] - more) < 0.012
    assert abs(xy[kept].mean() / 100 - row["mean_one_order"]) < 0.006
    assert abs(spa.combine_orders(xy, yx)[kept].mean() - 0.5) < 0.005


def test_acquiescence_is_the_mixture_of_the_reference():
    wanted = GOLDEN["mixture"]
    made = generators.simulate_spa_answers(
        40_000, 0.62, annotator_sd=0.02, order_sd=0.115, acquiescence_share=0.3, rounding=1, rng=rng(2)
    )
    xy, yx = made.xy_percent[0], made.yx_percent[0]
    kept = ~spa.tau_incoherence_flags(xy, yx).incoherent
    combined = spa.combine_orders(xy, yx)
    assert_allclose(
        [xy.mean() / 100, 1 - yx.mean() / 100, combined.mean(), combined[kept].mean()],
        [wanted["mean_one_order"], wanted["mean_other_order"], wanted["mean"], wanted["mean_after_tau"]],
        atol=0.006,
    )
    assert abs(kept.mean() - wanted["kept"]) < 0.02


def test_the_excluded_have_no_answer_at_all():
    made = generators.simulate_spa_answers(400, [0.5, 0.7], excluded_share=0.25, runs=20, rng=rng(3))
    gone = np.isnan(made.xy_percent)
    assert abs(gone.mean() - 0.25) < 0.02
    assert np.array_equal(gone, np.isnan(made.yx_percent)) and np.array_equal(gone[:, :, 0], gone[:, :, 1])


def test_likert_points_have_the_shares_of_their_cut_points():
    made = generators.simulate_likert_ratings(500, 4, [0.0, 0.7], annotator_sd=0, prompt_sd=0, runs=5, rng=rng(4))
    shares = np.bincount(made.ratings[..., 0].astype(int).ravel(), minlength=6)[1:] / made.ratings[..., 0].size
    assert_allclose(shares, np.diff([0, *special.ndtr(generators.FIVE_POINTS), 1]), atol=0.015)
    assert made.prompts.shape == (500, 4) and len(np.unique(made.prompts)) == 2000
    three = generators.simulate_likert_ratings(50, 2, [0.0], thresholds=[-1, 1], rng=rng(4))
    assert set(np.unique(three.ratings)) == {1.0, 2.0, 3.0}


def test_severity_cancels_within_annotators_and_taste_does_not():
    who = np.repeat(np.arange(600), 5)
    severe = generators.simulate_likert_ratings(600, 5, [0.2, 0.0], annotator_sd=1, prompt_sd=0, rng=rng(5)).ratings[0]
    taste = generators.simulate_likert_ratings(
        600, 5, [0.2, 0.0], annotator_sd=0, prompt_sd=0, annotator_taste_sd=1, rng=rng(5)
    ).ratings[0]
    assert icc(severe[..., 0].ravel(), who) > 0.35
    assert icc((severe[..., 0] - severe[..., 1]).ravel(), who) < 0.06
    assert icc((taste[..., 0] - taste[..., 1]).ravel(), who) > 0.35


def test_prompts_are_shared_as_told():
    made = generators.simulate_likert_ratings(
        60, 5, [0.0, 0.0], n_prompts=20, prompt_sd=1.5, annotator_sd=0, rng=rng(6)
    )
    assert np.array_equal(np.bincount(made.prompts.ravel()), np.full(20, 15))
    assert all(len(set(row)) == 5 for row in made.prompts.tolist())
    assert icc(made.ratings[0, ..., 0].ravel(), made.prompts.ravel()) > 0.4
    private = generators.simulate_likert_ratings(
        60, 5, [0.0], annotator_sd=0, prompt_taste_sd=1.5, n_prompts=20, rng=rng(6)
    )
    assert icc(private.ratings[0, ..., 0].ravel(), private.prompts.ravel()) > 0.4


def test_references_undo_each_annotators_use_of_the_scale():
    made = generators.simulate_continuous_ratings(
        300, 6, [0.7, 0.5], taste_sd=0, output_sd=0.1, reference_sd=0, ends_sd=8, rng=rng(7)
    )
    assert set(np.unique(made.ratings % 1)) == {0.0}
    rows = np.concatenate(
        [made.ratings[0, :, :, 0], made.reference_minimum[0][:, None], made.reference_maximum[0][:, None]], axis=1
    )
    place = np.tile(np.arange(8), 300)
    rescaled = ratings.rescale_to_references(
        rows.ravel(), np.repeat(np.arange(300), 8), is_minimum=place == 6, is_maximum=place == 7
    )
    assert rescaled.extremum_violation == rescaled.no_references == ()
    assert abs(np.nanmean(rescaled.values[place < 6]) - 0.7) < 0.01
    violating = generators.simulate_continuous_ratings(500, 1, [0.5], violating_share=0.2, reference_sd=0, rng=rng(7))
    assert abs(np.mean(violating.reference_minimum > violating.reference_maximum) - 0.2) < 0.05


@pytest.mark.parametrize("d_prime,criterion", [(1.0, 0.3), (0.0, -0.4)])
def test_answers_have_the_sensitivity_and_the_criterion_asked_for(d_prime, criterion):
    made = generators.simulate_human_likeness_ratings(
        20_000, 6, d_prime=d_prime, criterion=criterion, annotator_sd=0, text_sd=0, rng=rng(8)
    )
    truth = made.is_machine[made.texts]
    says = made.ratings[0] > 2.5
    hits, alarms = int(says[truth].sum()), int(says[~truth].sum())
    found = detection.signal_detection(hits, int(truth.sum()) - hits, alarms, int((~truth).sum()) - alarms)
    assert abs(found.d_prime - d_prime) < 0.03 and abs(found.criterion - criterion) < 0.02
    # Confident is beyond one standard deviation of the criterion.
    sure = np.mean(made.ratings[0][truth] == 4)
    assert abs(sure - special.ndtr(d_prime / 2 - criterion - 1)) < 0.01


def test_spread_criteria_and_texts_pull_the_pooled_sensitivity_down():
    made = generators.simulate_human_likeness_ratings(40_000, 2, d_prime=1.0, annotator_sd=0.8, text_sd=0, rng=rng(9))
    truth, says = made.is_machine[made.texts], made.ratings[0] > 2.5
    pooled = special.ndtri(says[truth].mean()) - special.ndtri(says[~truth].mean())
    assert abs(pooled - 1 / math.sqrt(1 + 0.8**2)) < 0.02
    shared = generators.simulate_human_likeness_ratings(
        400, 5, d_prime=0.0, n_texts=20, text_sd=1.0, annotator_sd=0, rng=rng(9)
    )
    assert icc((shared.ratings[0] > 2.5).ravel().astype(float), shared.texts.ravel()) > 0.2


def test_texts_are_machine_in_the_share_asked_for():
    for share in (0.0, 0.3, 0.5, 1.0):
        made = generators.simulate_human_likeness_ratings(
            40, 5, d_prime=1.0, n_texts=100, machine_share=share, rng=rng()
        )
        assert abs(made.is_machine.mean() - share) < 0.011
    per_person = generators.simulate_human_likeness_ratings(40, 4, d_prime=1.0, n_texts=100, rng=rng())
    assert set(per_person.is_machine[per_person.texts].sum(axis=1)) == {2}


def test_choices_follow_the_agents_and_repeat_a_lean():
    made = generators.simulate_choice_answers(300, 6, mean_difficulty=0.25, runs=20, rng=rng(10))
    assert abs(made.chose_a.mean() - 0.6125) < 0.008 and set(np.unique(made.chose_a)) == {0.0, 1.0}
    lean = generators.simulate_choice_answers(2000, 6, mean_difficulty=0.0, spread=0.0, annotator_sd=0.2, rng=rng(10))
    who = np.repeat(np.arange(2000), 6)
    # A lean of sd .2 is .04 of a binary variance of .25.
    assert abs(icc(lean.chose_a[0].ravel(), who) - 0.16) < 0.03
    none = generators.simulate_choice_answers(2000, 6, mean_difficulty=0.0, spread=0.0, rng=rng(10))
    assert icc(none.chose_a[0].ravel(), who) < 0.02
    shared = generators.simulate_choice_answers(2000, 6, mean_difficulty=0.0, n_items=30, rng=rng(11))
    assert len(np.unique(shared.items)) == 30 and icc(shared.chose_a[0].ravel(), shared.items.ravel()) > 0.04


def test_a_leaderboard_has_its_scores_its_spread_and_its_busy_few():
    made = generators.simulate_leaderboard_answers(
        4000, [0.8, 0.6], n_annotators=50, annotator_icc=0.2, n_points=2, largest_share=None, activity=1.1, rng=rng(12)
    )
    values, who = made.values[0], made.annotators[0]
    assert set(np.unique(values)) == {0.0, 1.0} and who.min() >= 0 and who.max() < 50
    many = generators.simulate_leaderboard_answers(
        2000, [0.6], n_annotators=60, annotator_icc=0.3, n_points=2, activity=9, runs=40, rng=rng(12)
    )
    found = [icc(run[0], labels[0]) for run, labels in zip(many.values, many.annotators, strict=True)]
    assert abs(np.mean(found) - 0.3) < 0.02
    # The severe are severe with both systems.
    means = [np.bincount(who[k], values[k], 50) / np.maximum(1, np.bincount(who[k], minlength=50)) for k in (0, 1)]
    often = np.bincount(who.ravel(), minlength=50) > 60
    assert np.corrcoef(means[0][often], means[1][often])[0, 1] > 0.7
    assert np.bincount(who.ravel()).max() / who.size > 0.08
    even = generators.simulate_leaderboard_answers(4000, [0.8], n_annotators=50, activity=1.1, runs=30, rng=rng(13))
    largest = [np.bincount(run.ravel()).max() / 4000 for run in even.annotators]
    assert max(largest) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 4000)
    assert set(np.unique(even.values)) == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_ends_of_the_scale_and_no_spread_are_allowed():
    made = generators.simulate_leaderboard_answers(200, [1.0, 0.0, 0.5], annotator_icc=0.3, runs=3, rng=rng())
    assert np.all(made.values[:, 0] == 1) and np.all(made.values[:, 1] == 0)
    flat = generators.simulate_leaderboard_answers(4000, [0.5], annotator_icc=0.0, n_points=2, rng=rng(1))
    assert icc(flat.values[0, 0], flat.annotators[0, 0]) < 0.01


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: generators.simulate_spa_answers(9, 0.6, runs=3, acquiescence_share=0.2, rng=rng(seed)).xy_percent,
        lambda seed: generators.simulate_likert_ratings(9, 2, [0.0, 0.5], runs=3, rng=rng(seed)).ratings,
        lambda seed: generators.simulate_continuous_ratings(9, 2, [0.4, 0.5], runs=3, rng=rng(seed)).ratings,
        lambda seed: generators.simulate_human_likeness_ratings(9, 2, d_prime=0.5, runs=3, rng=rng(seed)).ratings,
        lambda seed: generators.simulate_choice_answers(9, 2, mean_difficulty=0.2, runs=3, rng=rng(seed)).chose_a,
        lambda seed: generators.simulate_leaderboard_answers(9, [0.5, 0.6], runs=3, rng=rng(seed)).values,
    ],
    ids=["spa", "likert", "continuous", "human_like", "choice", "leaderboard"],
)
def test_a_seed_makes_a_study_and_runs_differ(make):
    assert np.array_equal(make(1), make(1)) and not np.array_equal(make(1), make(2))
    made = make(1)
    assert made.shape[0] == 3 and not np.array_equal(made[0], made[1])


NAN = float("nan")


@pytest.mark.parametrize(
    "call,named",
    [
        (lambda: generators.simulate_spa_answers(0, 0.5, rng=rng()), "n_annotators: 0"),
        (lambda: generators.simulate_spa_answers(9, [0.5, 1.2], rng=rng()), "preferences"),
        (lambda: generators.simulate_spa_answers(9, 0.5, order_sd=-1, rng=rng()), "order_sd: -1"),
        (lambda: generators.simulate_spa_answers(9, 0.5, excluded_share=1.5, rng=rng()), "excluded_share: 1.5"),
        (lambda: generators.simulate_spa_answers(9, 0.5, runs=0, rng=rng()), "runs: 0"),
        (lambda: generators.simulate_likert_ratings(9, 2, [], rng=rng()), "effects"),
        (lambda: generators.simulate_likert_ratings(9, 2, [0.0], thresholds=[1, 0], rng=rng()), "thresholds"),
        (lambda: generators.simulate_likert_ratings(9, 5, [0.0], n_prompts=4, rng=rng()), "n_prompts: 4"),
        (lambda: generators.simulate_continuous_ratings(9, 2, [1.5], rng=rng()), "utilities"),
        (lambda: generators.simulate_continuous_ratings(9, 2, [0.5], low_percent=90, rng=rng()), "low_percent: 90"),
        (
            lambda: generators.simulate_human_likeness_ratings(9, 2, d_prime=0, machine_share=2, rng=rng()),
            "machine_share: 2",
        ),
        (lambda: generators.simulate_choice_answers(9, 2, mean_difficulty=2, rng=rng()), "mean_difficulty: 2"),
        (lambda: generators.simulate_choice_answers(9, 2, mean_difficulty=0, spread=NAN, rng=rng()), "spread: nan"),
        (lambda: generators.simulate_human_likeness_ratings(9, 2, d_prime=NAN, rng=rng()), "d_prime: nan"),
        (
            lambda: generators.simulate_human_likeness_ratings(9, 2, d_prime=1, criterion=NAN, rng=rng()),
            "criterion: nan",
        ),
        (lambda: generators.simulate_continuous_ratings(9, 2, [0.5], low_percent=NAN, rng=rng()), "low_percent: nan"),
        (lambda: generators.simulate_likert_ratings(9, 2, [0.0], thresholds=[NAN, 0], rng=rng()), "thresholds"),
        (
            lambda: generators.simulate_spa_answers(9, 0.5, acquiescent_percent=NAN, rng=rng()),
            "acquiescent_percent: nan",
        ),
        (lambda: generators.simulate_spa_answers(float("inf"), 0.5, rng=rng()), "n_annotators: inf"),
        (lambda: generators.simulate_leaderboard_answers(9, [0.5], annotator_icc=1.0, rng=rng()), "annotator_icc: 1"),
        (lambda: generators.simulate_leaderboard_answers(9, [0.5], activity=0, rng=rng()), "activity: 0"),
        (lambda: generators.simulate_leaderboard_answers(9, [0.5], n_points=1, rng=rng()), "n_points: 1"),
        (lambda: generators.simulate_leaderboard_answers(9, [0.5], largest_share=0, rng=rng()), "largest_share: 0"),
    ],
)
def test_impossible_studies_are_refused_by_name(call, named):
    with pytest.raises(ValueError, match=named):
        call()
