"""Strengths, errors and the covariance over annotators agree with independent computations."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import optimize
from scipy.special import expit
from statsmodels.tools.numdiff import approx_hess

from analysis.stats import davidson
from analysis.stats import davidson as paired
from tests.analysis.stats.davidson.labels import (
    GOLDEN,
    cost,
    dense_estimate,
    dense_spread,
    estimates,
    fit_counts,
    labels,
    standard_error,
    tables,
)


def test_counts_agree_with_the_reference():
    fit = fit_counts(GOLDEN["wins"], GOLDEN["ties"])
    assert_allclose(fit.strengths - fit.strengths[0], GOLDEN["strength"], atol=1e-6)
    assert_allclose(math.exp(fit.log_nu), GOLDEN["nu"], atol=1e-6)
    assert_allclose(fit.strengths.sum(), 0, atol=1e-9)


def test_four_systems_agree_with_another_implementation():
    case = GOLDEN["four_systems"]
    fit = fit_counts(case["wins"], case["ties"])
    assert_allclose(fit.strengths, case["strengths"], atol=1e-5)
    assert_allclose(math.exp(fit.log_nu), case["nu"], atol=1e-5)


def test_estimates_and_errors_agree_with_a_numerical_search():
    wins, ties = tables(*labels(1)[:3], 4)
    best = optimize.minimize(cost, np.zeros(4), (wins, ties), method="BFGS", options={"gtol": 1e-9})
    covariance = np.linalg.inv(approx_hess(best.x, cost, args=(wins, ties)))
    fit = fit_counts(wins, ties)
    assert_allclose(fit.strengths[1:] - fit.strengths[0], best.x[:-1], atol=1e-5)
    assert_allclose(fit.log_nu, best.x[-1], atol=1e-5)
    for system in (1, 2, 3):
        wanted = math.sqrt(covariance[system - 1, system - 1])
        assert_allclose(standard_error(fit, **{f"of_{system}": 1, "of_0": -1}), wanted, rtol=1e-4)
    assert_allclose(standard_error(fit, of_nu=1), math.sqrt(covariance[-1, -1]), rtol=1e-4)
    contrast = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert_allclose(standard_error(fit, of_1=1, of_2=-1), math.sqrt(contrast), rtol=1e-4)


def test_bradley_and_terry_on_counts_agree_with_a_regression():
    first, second, outcomes, _ = labels(2, nu=0.0)
    wins, _ = tables(first, second, outcomes, 4)
    design = np.zeros((len(first), 4))
    design[np.arange(len(first)), first] = 1
    design[np.arange(len(first)), second] -= 1
    reference = sm.GLM(outcomes, design[:, 1:], family=sm.families.Binomial()).fit()
    fit = fit_counts(wins)
    assert fit.log_nu is None
    assert_allclose(fit.strengths[1:] - fit.strengths[0], reference.params, atol=1e-7)
    for system in (1, 2, 3):
        error = standard_error(fit, **{f"of_{system}": 1, "of_0": -1})
        assert_allclose(error, reference.bse[system - 1], rtol=1e-6)


def test_without_ties_nu_lies_at_its_edge_and_the_model_is_that_of_half_wins():
    rows = labels(3, nu=0.0, lean=0.4)
    fit, half = paired.fit_davidson(*rows, n_systems=4), paired.fit_davidson(*rows, n_systems=4, ties="half")
    assert_allclose(estimates(fit), estimates(half), atol=1e-12)
    assert (fit.tie.status, fit.tie.estimate) == ("separation", 0.0)
    assert (half.tie.status, half.tie.estimate) == ("not_applicable", None)


@pytest.mark.parametrize("nu", [0.0, 0.5])
@pytest.mark.parametrize("with_prompts", [False, True])
def test_sums_give_what_a_design_of_rows_and_parameters_gives(nu, with_prompts):
    rows = labels(3, nu=nu, lean=0.4)
    prompts = np.random.default_rng(4).integers(0, 9, len(rows[0])) if with_prompts else None
    fit = paired.fit_davidson(*rows, prompts, n_systems=4)
    spread = dense_spread(*rows, estimates(fit), nu=fit.tie.estimate, prompts=prompts)
    pairs = [(fit.difference(system, 0), {f"of_{system}": 1, "of_0": -1}) for system in (1, 2, 3)]
    for found, weights in [*pairs, (fit.strengths[2], {"of_2": 1})]:
        wanted = dense_estimate(spread, **weights)
        assert found.detail.keys() == wanted.detail.keys()
        for name, value in found.detail.items():
            assert_allclose(value, wanted.detail[name], rtol=1e-8, err_msg=name)
    if nu:
        assert_allclose(fit.tie.detail["se_log_nu"], dense_estimate(spread, of_last=1).detail["se"], rtol=1e-8)


def derivatives_by_hand(fit, first, second, outcomes, annotators):
    """Each annotator's first and (minus) second derivatives of the log-likelihood, by small steps of the parameters."""
    base = np.r_[estimates(fit)[1:] - estimates(fit)[0], fit.tie.detail["log_nu"]]
    scores, own = [], []
    for who in np.unique(annotators):
        is_own = annotators == who
        counted = tables(first[is_own], second[is_own], outcomes[is_own], 4)
        scores.append(-optimize.approx_fprime(base, cost, 1e-6, *counted))
        own.append(approx_hess(base, cost, args=counted))
    return np.array(scores), np.array(own)


def test_the_covariance_over_annotators_leaves_out_one_at_a_time():
    first, second, outcomes, annotators = labels(4, n_annotators=12, n_labels=20, lean=0.5)
    fit = paired.fit_davidson(first, second, outcomes, annotators, n_systems=4)
    scores, own = derivatives_by_hand(fit, first, second, outcomes, annotators)
    moves = np.linalg.solve(own.sum(axis=0) - own, scores[:, :, None])[:, :, 0]
    covariance = 11 / 12 * moves.T @ moves
    for system in (1, 2, 3):
        found = fit.difference(system, 0)
        assert_allclose(found.detail["se"], math.sqrt(covariance[system - 1, system - 1]), rtol=1e-3)
        assert found.n == 12 and 10 < found.test.df < 11
    assert_allclose(fit.tie.detail["se_log_nu"], math.sqrt(covariance[-1, -1]), rtol=1e-3)


def test_only_annotators_who_inform_a_difference_count():
    first, second, outcomes, annotators = labels(5, n_annotators=30)
    # Five annotators alone compare the last system with the others.
    is_kept = ((first < 3) & (second < 3)) | (annotators < 5)
    fit = paired.fit_davidson(*(rows[is_kept] for rows in (first, second, outcomes, annotators)), n_systems=4)
    few, many = fit.difference(3, 0), fit.difference(1, 0)
    assert few.test.df < 5 < 20 < many.test.df
    # One annotator alone does: the rest of the differences keep their intervals.
    is_kept = ((first < 3) & (second < 3)) | (annotators < 1)
    fit = paired.fit_davidson(*(rows[is_kept] for rows in (first, second, outcomes, annotators)), n_systems=4)
    assert (fit.difference(3, 0).status, fit.difference(3, 0).interval) == ("not_identified", None)
    assert (fit.difference(1, 0).status, fit.strengths[3].status) == ("ok", "not_identified")


def prompt_study(rng, n_annotators=30, n_prompts=10):
    """Labels of three systems, equal on average, that differ on each prompt; every annotator labels every prompt."""
    annotators, prompts = np.repeat(np.arange(n_annotators), n_prompts), np.tile(np.arange(n_prompts), n_annotators)
    knack, taste = rng.normal(0, 0.7, (n_prompts, 3)), rng.normal(0, 0.3, (n_annotators, 3))
    first = rng.integers(0, 3, len(annotators))
    second = (first + rng.integers(1, 3, len(annotators))) % 3
    own = knack[prompts] + taste[annotators]
    rows = np.arange(len(first))
    apart = own[rows, first] - own[rows, second]
    is_tie = rng.random(len(first)) < 0.2
    return first, second, np.where(is_tie, 0.5, rng.random(len(first)) < expit(apart)), annotators, prompts


@pytest.mark.slow
def test_differences_that_hold_for_other_prompts_too():
    rng, runs = np.random.default_rng(8), 300
    found = {"people": 0, "people and prompts": 0}
    for _ in range(runs):
        rows = prompt_study(rng)
        for used in (rows[:4], rows):
            difference = paired.fit_davidson(*used, n_systems=3).difference(1, 0)
            found[difference.settings["population"]] += difference.pvalue < 0.05
    assert found["people and prompts"] / runs <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)
    assert found["people"] / runs > 0.15


def test_fewer_than_five_prompts_are_those_of_the_study():
    rows = prompt_study(np.random.default_rng(9), n_prompts=4)
    fit = paired.fit_davidson(*rows, n_systems=3)
    assert fit.difference(1, 0).settings["population"] == "people"
    assert fit.difference(1, 0).interval == paired.fit_davidson(*rows[:4], n_systems=3).difference(1, 0).interval


def test_what_was_put_in_comes_out():
    first, second, outcomes, annotators = labels(5, n_annotators=800)
    fit = paired.fit_davidson(first, second, outcomes, annotators, n_systems=4)
    assert_allclose(estimates(fit), [0.6, 0.0, -0.2, -0.4], atol=0.08)
    assert fit.tie.interval.low < 0.5 < fit.tie.interval.high
    assert fit.difference(0, 1).pvalue < 0.001
    observed = (outcomes[(first == 0) & (second == 1)] == 0.5).mean()
    assert_allclose(fit.tie_probabilities[0, 1], observed, atol=0.05)
    assert_allclose(fit.probabilities[0, 1] + fit.probabilities[1, 0] + fit.tie_probabilities[0, 1], 1)


def test_names_places_and_copies_do_not_matter():
    first, second, outcomes, annotators = labels(6, lean=0.3)
    fit = paired.fit_davidson(first, second, outcomes, annotators, n_systems=4)
    swapped = paired.fit_davidson(second, first, 1 - outcomes, annotators, n_systems=4)
    assert_allclose(estimates(swapped), estimates(fit), atol=1e-9)
    error = fit.difference(0, 1).detail["se"]
    assert_allclose(swapped.difference(0, 1).detail["se"], error, rtol=1e-6)
    renamed = np.array([2, 0, 3, 1])
    other = paired.fit_davidson(renamed[first], renamed[second], outcomes, annotators, n_systems=4)
    assert_allclose(estimates(other)[renamed], estimates(fit), atol=1e-8)
    assert_allclose(other.difference(2, 0).pvalue, fit.difference(0, 1).pvalue, rtol=1e-6)
    twice = paired.fit_davidson(*(np.tile(array, 2) for array in (first, second, outcomes, annotators)), n_systems=4)
    # Copies of an annotator's labels say nothing new.
    assert_allclose(twice.difference(0, 1).detail["se"], error, rtol=1e-6)
    wins, ties = tables(first, second, outcomes, 4)
    naive, doubled = (standard_error(fit_counts(k * wins, k * ties), of_0=1, of_1=-1) for k in (1, 2))
    assert_allclose(doubled, naive / math.sqrt(2), rtol=1e-6)


def test_a_circle_has_equal_strengths():
    assert_allclose(fit_counts([[0, 30, 10], [10, 0, 30], [30, 10, 0]]).strengths, 0, atol=1e-9)


def test_a_million_labels_of_a_hundred_systems_give_their_strengths_back():
    draw = np.random.default_rng(9)
    strengths = draw.normal(0, 1, 100)
    asked = draw.multinomial(1_000_000, np.full(4950, 1 / 4950))
    rows, columns = np.triu_indices(100, 1)
    won = draw.binomial(asked, 1 / (1 + np.exp(strengths[columns] - strengths[rows])))
    wins = np.zeros((100, 100))
    wins[rows, columns], wins[columns, rows] = won, asked - won
    assert_allclose(paired.bradley_terry_strengths(wins), strengths - strengths.mean(), atol=0.1)


@pytest.mark.slow
def test_intervals_over_annotators_cover():
    # Annotators who differ pull the average preference towards one half, so the truth is that of a very large study.
    how = {"lean": 0.3, "strengths": (0.3, -0.3)}
    truth = paired.fit_davidson(*labels(1, n_annotators=50_000, **how), n_systems=2).difference(0, 1).estimate
    covered, runs = 0, 400
    for seed in range(runs):
        interval = paired.fit_davidson(*labels(1000 + seed, **how), n_systems=2).difference(0, 1).interval
        covered += interval.low <= truth <= interval.high
    assert covered / runs >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("won, lost", [(1, 1), (174, 16), (10_000, 1), (3, 1e6), (0.5, 7)])
def test_two_systems_lie_their_log_odds_apart_however_one_sided(won, lost):
    found = paired.bradley_terry_strengths([[0, won], [lost, 0]])
    assert_allclose(found, np.log(won / lost) * np.array([0.5, -0.5]), atol=1e-12)


def test_a_step_within_the_bound_rises_from_wherever_it_is_taken():
    rng, longest = np.random.default_rng(21), 0.0
    for _ in range(2000):
        k = int(rng.integers(2, 6))
        wins = rng.integers(1, 10 ** rng.integers(1, 4), (k, k)).astype(float)
        np.fill_diagonal(wins, 0)
        counts = davidson.PairCounts.from_tables(wins, np.zeros_like(wins))
        here = np.append(rng.normal(0, 2, k), -np.inf)
        here[:k] -= here[:k].mean()
        chances = counts.probabilities(here)
        step = davidson._newton_step(counts.information(chances, 0.0), counts.gradient(here, chances, 0.0))
        if 2 * np.abs(step).max() <= davidson.SAFE_STEP:
            longest = max(longest, np.ptp(step[:k]))
            before, after = (
                counts.penalised_log_likelihood(at, counts.probabilities(at), 0.0) for at in (here, here + step)
            )
            assert after >= before - 1e-9 * abs(before)
    assert longest > 1.5


@pytest.mark.parametrize("wins", [[[0]], [[0, 0], [0, 0]], [[0, 5], [0, 0]], [[0, 2, 0], [3, 0, 0], [0, 0, 0]]])
def test_strengths_alone_are_none_where_the_model_has_no_estimate(wins):
    assert paired.bradley_terry_strengths(wins) is None


def test_strengths_alone_are_those_of_the_model():
    wins = np.random.default_rng(4).integers(0, 30, (12, 12)) * ~np.eye(12, dtype=bool)
    assert_allclose(paired.bradley_terry_strengths(wins), fit_counts(wins).strengths, atol=1e-12)


def test_at_the_maximum_every_score_is_the_expected_one():
    rng, n_fitted = np.random.default_rng(8), 0
    for _ in range(60):
        k, nu = int(rng.integers(2, 9)), float(rng.choice([0, 0.01, 1, 20]))
        strengths = rng.normal(0, rng.uniform(0, 3), k)
        rows = labels(int(rng.integers(9999)), 20, int(rng.choice([2, 10, 100])), strengths, nu)
        wins, ties = tables(*rows[:3], k)
        fit = fit_counts(wins, ties)
        if fit is None:
            continue
        n_fitted += 1
        asked, score = wins + wins.T + ties, fit.won + fit.tied / 2
        n = asked.sum() / 2
        # What each system won, and how many tied; one part in 1e10 of the labels.
        assert_allclose(np.nansum(asked * score, axis=1), (wins + ties / 2).sum(axis=1), atol=1e-10 * n, rtol=0)
        assert_allclose(np.nansum(asked * fit.tied), ties.sum(), atol=1e-10 * n, rtol=0)
    assert n_fitted > 30
