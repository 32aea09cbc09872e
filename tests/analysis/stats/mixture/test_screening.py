"""Annotators are tallied by type of question and screened."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from analysis.stats import mixture
from tests.analysis.stats.draws import rng
from tests.analysis.stats.mixture.tables import FIXED, GOLDEN, NARROW, cumulative_flag_probability, table_of


def test_noisy_on_one_type_is_noisy():
    found = mixture.screen_annotators_by_question_type(
        [[10, 0], [0, 10], [10, 10]], [[10, 10]] * 3, model="rate_fixed2", rng=rng()
    )
    assert found.flagged.tolist() == [True, True, False]
    assert_allclose(found.combined, 1 - (1 - found.posteriors[:, 0]) * (1 - found.posteriors[:, 1]))
    assert found.beside is None


def test_relabelling_annotators_changes_nothing():
    draw = rng(4)
    asked = draw.integers(5, 30, (60, 2))
    right = draw.binomial(asked, np.where(draw.random((60, 1)) < 0.15, 0.4, 0.97))
    order = draw.permutation(60)
    plain = mixture.screen_annotators_by_question_type(right, asked, rng=rng(), starts=3)
    mixed = mixture.screen_annotators_by_question_type(right[order], asked[order], rng=rng(), starts=3)
    assert plain.model == "class_learned2"
    assert plain.flagged[order].tolist() == mixed.flagged.tolist()
    assert_allclose(plain.posteriors[order], mixed.posteriors, atol=1e-6)


def test_a_learned_model_waits_for_thirty_annotators_with_five_answers_of_each_type():
    enough = np.full((30, 2), 5)
    assert mixture.default_screening_model(enough) == "class_learned2"
    assert mixture.default_screening_model(enough[:29]) == "rate_fixed2"
    assert mixture.default_screening_model(np.column_stack([enough[:, 0], np.r_[4, enough[1:, 1]]])) == "rate_fixed2"
    assert mixture.default_screening_model([]) == "rate_fixed2"


def test_the_paper_mode_learns_by_its_own_algorithm_and_flags_above_the_cutoff():
    found = mixture.screen_annotators_by_question_type(
        [[5, 0]], [[5, 1]], model="rate_learned1", mode="paper", rng=rng()
    )
    assert (found.settings["rule"], found.fits[0].settings["method"]) == ("more_than", "em")
    wanted = next(case for case in GOLDEN["fits"] if case["name"] == "k1_single_perfect_worker")
    assert_allclose(found.posteriors[0, 0], wanted["rate_p_noisy"][0], atol=1e-9)
    at_the_point = {
        mode: mixture.screen_annotators_by_question_type(
            [[0, 1]], [[1, 1]], model="rate_uniform", mode=mode, rng=rng()
        ).flagged[0]
        for mode in ("paper", "recommended")
    }
    assert at_the_point == {"paper": False, "recommended": True}


def test_nobody_is_flagged_for_a_type_answered_without_a_mistake(monkeypatch):
    monkeypatch.setitem(mixture.PRIORS, "fixed2", NARROW)
    counts = [[300, 0]], [[300, 0]]
    assert mixture.screen_annotators_by_question_type(
        *counts, model="class_fixed2", mode="paper", rng=rng()
    ).flagged.tolist() == [True]
    found = mixture.screen_annotators_by_question_type(*counts, model="class_fixed2", rng=rng())
    assert found.flagged.tolist() == [False] and found.spared == (0,)
    assert [warning.code for warning in found.warnings] == ["perfect_spared"]


def test_uninformative_priors_carry_a_warning():
    found = mixture.screen_annotators_by_question_type([[4, 4]], [[5, 5]], model="rate_jeffreys", rng=rng())
    assert [warning.code for warning in found.warnings] == ["uninformative_prior"]


def test_a_screening_is_plain_json_also_without_anybody():
    for counts in (([[5, 4]], [[5, 5]]), ([], [])):
        body = mixture.screen_annotators_by_question_type(
            *counts, model="class_learned2", rng=rng(), starts=2
        ).as_dict()
        json.dumps(body, allow_nan=False)
    assert body["status"] == "no_data" and body["reason"]


# --- the simulation study of the paper


def simulated_round(draw, n=88):
    """One round of appendix B.2 with made-up question counts (median 12): the real ones are not public."""
    asked = np.maximum(1, np.round(np.exp(draw.normal(np.log(12), 1, n)))).astype(int)
    noisy = draw.random(n) < draw.uniform(0.01, 0.10)
    bad, good = draw.uniform(0, 0.5), draw.uniform(0.95, 1)
    bad_size, good_size = draw.uniform(5, 50), draw.uniform(100, 1000)
    accuracy = np.where(
        noisy,
        draw.beta(bad * bad_size, (1 - bad) * bad_size, n),
        draw.beta(good * good_size, (1 - good) * good_size, n),
    )
    return draw.binomial(asked, accuracy), asked, noisy


@pytest.mark.slow
def test_precision_and_recall_of_the_learned_models():
    draw = rng(7)
    hits = {model: np.zeros((3, 3)) for model in ("class_learned2", "rate_learned2", "rate_learned1", "class_fixed2")}
    for _ in range(100):
        right, asked, noisy = simulated_round(draw)
        bucket = np.digitize(asked, [5, 15])
        for model, table in hits.items():
            criterion, prior = mixture.MODELS[model]
            if not isinstance(prior, str):
                prior = mixture.fit_beta_mixture(right, asked, n_components=prior, rng=draw).mixture
            else:
                prior = mixture.PRIORS[prior]
            flagged = mixture.is_noisy(
                mixture.noisy_annotator_posterior(prior, right, asked, criterion=criterion), rule="more_than"
            )
            for column, chosen in enumerate((flagged & noisy, flagged, noisy)):
                table[:, column] += np.bincount(bucket, chosen, 3)
    with np.errstate(invalid="ignore"):
        precision = {model: table[:, 0] / table[:, 1] for model, table in hits.items()}
        found = {model: table[:, 0] / table[:, 2] for model, table in hits.items()}
    # Table 1: learned models 100 % precise; recall .12-.15, .77-1.00, 1.00. Buckets have about 150 noisy annotators.
    for model in ("class_learned2", "rate_learned2", "rate_learned1"):
        assert np.nanmin(precision[model]) > 0.95
        assert found[model][0] < 0.4 and found[model][1] > 0.7 and found[model][2] > 0.95
    assert hits["class_fixed2"][0, 1] == 0
    assert found["class_fixed2"][1] < 0.6 and found["class_fixed2"][2] < 0.75


@pytest.mark.slow
@pytest.mark.parametrize(("accuracy", "skip_rate"), [(0.4, 0.2), (0.75, 0.0), (0.92, 0.0)])
def test_exact_flagging_agrees_with_a_simulation_of_people(accuracy, skip_rate):
    draw, runs, asked = rng(8), 20_000, 20
    for model in FIXED:
        at_most = table_of(model, range(1, asked + 1)).at_most
        bounds = np.array([-1 if bound is None else bound for bound in (None, *at_most)])
        kinds = draw.choice(3, (runs, asked), p=[accuracy, 1 - accuracy - skip_rate, skip_rate])
        right, counted = np.cumsum(kinds == 0, axis=1), np.cumsum(kinds != 2, axis=1)
        share = np.mean(np.logical_or.accumulate(right <= bounds[counted], axis=1), axis=0)
        exact = cumulative_flag_probability(at_most, accuracy, skip_rate=skip_rate)
        assert_allclose(share, exact, atol=4 * 0.5 / np.sqrt(runs))
