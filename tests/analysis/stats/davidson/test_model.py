"""Strengths, errors and the covariance over annotators agree with independent computations."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy import optimize
from statsmodels.tools.numdiff import approx_hess

from analysis.stats import davidson as paired
from analysis.stats.bradley_terry import fractional_bradley_terry
from analysis.stats.davidson import _model
from tests.analysis.stats.davidson.labels import GOLDEN, cost, estimates, labels, tables


def test_counts_agree_with_the_reference():
    fit = paired.fit_davidson_to_counts(GOLDEN["wins"], GOLDEN["ties"])
    found = estimates(fit)
    assert_allclose(found - found[0], GOLDEN["strength"], atol=1e-6)
    assert_allclose(fit.tie.estimate, GOLDEN["nu"], atol=1e-6)
    assert_allclose(fit.log_likelihood, GOLDEN["log_likelihood"], atol=1e-6)
    assert_allclose(found.sum(), 0, atol=1e-9)


def test_four_systems_agree_with_another_implementation():
    case = GOLDEN["four_systems"]
    fit = paired.fit_davidson_to_counts(case["wins"], case["ties"])
    assert_allclose(estimates(fit), case["strengths"], atol=1e-5)
    assert_allclose([fit.tie.estimate, fit.log_likelihood], [case["nu"], case["log_likelihood"]], atol=1e-5)


def test_estimates_and_errors_agree_with_a_numerical_search():
    wins, ties = tables(*labels(1)[:3], 4)
    best = optimize.minimize(cost, np.zeros(4), (wins, ties), method="BFGS", options={"gtol": 1e-9})
    covariance = np.linalg.inv(approx_hess(best.x, cost, args=(wins, ties)))
    fit = paired.fit_davidson_to_counts(wins, ties)
    found = estimates(fit)
    assert_allclose(found[1:] - found[0], best.x[:-1], atol=1e-5)
    assert_allclose(fit.tie.detail["log_nu"], best.x[-1], atol=1e-5)
    for system in (1, 2, 3):
        assert_allclose(
            fit.difference(system, 0).detail["se"], math.sqrt(covariance[system - 1, system - 1]), rtol=1e-4
        )
    assert_allclose(fit.tie.detail["se_log_nu"], math.sqrt(covariance[-1, -1]), rtol=1e-4)
    contrast = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert_allclose(fit.difference(1, 2).detail["se"], math.sqrt(contrast), rtol=1e-4)


def test_bradley_and_terry_on_counts_agree_with_a_regression():
    first, second, outcomes, _ = labels(2, nu=0.0)
    wins, _ = tables(first, second, outcomes, 4)
    design = np.zeros((len(first), 4))
    design[np.arange(len(first)), first] = 1
    design[np.arange(len(first)), second] -= 1
    reference = sm.GLM(outcomes, design[:, 1:], family=sm.families.Binomial()).fit()
    fit = paired.fit_bradley_terry_to_counts(wins)
    found = estimates(fit)
    assert fit.tie is None
    assert_allclose(found[1:] - found[0], reference.params, atol=1e-7)
    for system in (1, 2, 3):
        difference = fit.difference(system, 0)
        assert_allclose(difference.detail["se"], reference.bse[system - 1], rtol=1e-6)
        assert_allclose(difference.pvalue, reference.pvalues[system - 1], rtol=1e-4)
    assert_allclose(fit.log_likelihood, reference.llf, rtol=1e-9)


def test_without_ties_the_clustered_model_is_the_fractional_one():
    first, second, outcomes, annotators = labels(3, nu=0.0, lean=0.4)
    fit = paired.fit_davidson(first, second, outcomes, annotators, n_systems=4)
    other = fractional_bradley_terry(first, second, outcomes, annotators, n_systems=4)
    found = estimates(fit)
    assert_allclose(found - found[0], [strength.estimate for strength in other.strengths], atol=1e-8)
    for system in (1, 2, 3):
        assert_allclose(fit.difference(system, 0).detail["se"], other.strengths[system].detail["se"], rtol=1e-7)
        assert_allclose(fit.difference(system, 0).pvalue, other.strengths[system].pvalue, rtol=1e-6)
    assert (fit.tie.status, fit.tie.estimate) == ("separation", 0.0)


def scores_by_hand(fit, first, second, outcomes, annotators):
    """Each annotator's derivative of the log-likelihood, by small steps of the parameters."""
    base = np.r_[estimates(fit)[1:] - estimates(fit)[0], fit.tie.detail["log_nu"]]
    rows = []
    for who in np.unique(annotators):
        own = annotators == who
        rows.append(-optimize.approx_fprime(base, cost, 1e-6, *tables(first[own], second[own], outcomes[own], 4)))
    return np.array(rows), np.linalg.inv(approx_hess(base, cost, args=tables(first, second, outcomes, 4)))


def test_the_covariance_over_annotators_is_the_sandwich():
    first, second, outcomes, annotators = labels(4, n_annotators=12, n_labels=20, lean=0.5)
    fit = paired.fit_davidson(first, second, outcomes, annotators, n_systems=4)
    scores, bread = scores_by_hand(fit, first, second, outcomes, annotators)
    sandwich = bread @ scores.T @ scores @ bread * (12 / 11 * 239 / 236)
    for system in (1, 2, 3):
        found = fit.difference(system, 0)
        assert_allclose(found.detail["se"], math.sqrt(sandwich[system - 1, system - 1]), rtol=1e-3)
        assert (found.n, found.test.df) == (12, 11)
    assert_allclose(fit.tie.detail["se_log_nu"], math.sqrt(sandwich[-1, -1]), rtol=1e-3)


def test_what_was_put_in_comes_out():
    first, second, outcomes, annotators = labels(5, n_annotators=800)
    fit = paired.fit_davidson(first, second, outcomes, annotators, n_systems=4)
    assert_allclose(estimates(fit), [0.6, 0.0, -0.2, -0.4], atol=0.08)
    assert fit.tie.interval.low < 0.5 < fit.tie.interval.high
    assert fit.difference(0, 1).pvalue < 0.001
    observed = (outcomes[(first == 0) & (second == 1)] == 0.5).mean()
    assert_allclose(fit.tie_probabilities[0, 1], observed, atol=0.05)
    assert_allclose(fit.probabilities[0, 1] + fit.probabilities[1, 0] + fit.tie_probabilities[0, 1], 1)
    assert np.nanmax(np.abs(fit.residuals)) < 4


def test_names_places_and_copies_do_not_matter():
    first, second, outcomes, annotators = labels(6, lean=0.3)
    fit = paired.fit_davidson(first, second, outcomes, annotators, n_systems=4)
    swapped = paired.fit_davidson(second, first, 1 - outcomes, annotators, n_systems=4)
    assert_allclose(estimates(swapped), estimates(fit), atol=1e-9)
    assert_allclose(swapped.covariance, fit.covariance, rtol=1e-6)
    renamed = np.array([2, 0, 3, 1])
    other = paired.fit_davidson(renamed[first], renamed[second], outcomes, annotators, n_systems=4)
    assert_allclose(estimates(other)[renamed], estimates(fit), atol=1e-8)
    assert_allclose(other.difference(2, 0).pvalue, fit.difference(0, 1).pvalue, rtol=1e-6)
    twice = paired.fit_davidson(*(np.tile(array, 2) for array in (first, second, outcomes, annotators)), n_systems=4)
    # Copies of an annotator's labels say nothing new, but for the factor (N - 1) / (N - k).
    rows, k = len(first), 4
    factor = ((2 * rows - 1) / (2 * rows - k)) / ((rows - 1) / (rows - k))
    assert_allclose(twice.covariance, fit.covariance * factor, rtol=1e-6)
    wins, ties = tables(first, second, outcomes, 4)
    naive, doubled = paired.fit_davidson_to_counts(wins, ties), paired.fit_davidson_to_counts(2 * wins, 2 * ties)
    assert_allclose(doubled.covariance, naive.covariance / 2, rtol=1e-6)


def test_a_pair_that_does_not_fit_shows_in_the_residuals():
    # A circle: 0 beats 1, 1 beats 2, 2 beats 0. All strengths are equal, and every pair sticks out.
    fit = paired.fit_bradley_terry_to_counts([[0, 30, 10], [10, 0, 30], [30, 10, 0]])
    assert_allclose(estimates(fit), 0, atol=1e-9)
    assert_allclose(fit.residuals[0, 1], (0.75 - 0.5) / math.sqrt(0.25 / 40))
    assert_allclose((fit.residuals + fit.residuals.T)[~np.eye(3, dtype=bool)], 0, atol=1e-9)


def test_a_million_labels_of_a_hundred_systems_give_their_strengths_back():
    draw = np.random.default_rng(9)
    strengths = draw.normal(0, 1, 100)
    asked = draw.multinomial(1_000_000, np.full(4950, 1 / 4950))
    rows, columns = np.triu_indices(100, 1)
    won = draw.binomial(asked, 1 / (1 + np.exp(strengths[columns] - strengths[rows])))
    wins = np.zeros((100, 100))
    wins[rows, columns], wins[columns, rows] = won, asked - won
    fit = paired.fit_bradley_terry_to_counts(wins)
    assert_allclose(estimates(fit), strengths - strengths.mean(), atol=0.1)


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
        wins = rng.integers(1, 10 ** rng.integers(1, 4), (1, k, k)).astype(float)
        wins[:, np.arange(k), np.arange(k)] = 0
        counts = _model.PairCounts.from_tables(wins, np.zeros_like(wins))
        here = np.append(rng.normal(0, 2, k), -np.inf)[None]
        here[:, :k] -= here[:, :k].mean()
        chances = counts.probabilities(here)
        step = _model._solved(counts.information(chances, 0.0), counts.gradient_given_probabilities(here, chances, 0.0))
        if 2 * np.abs(step).max() <= _model.SAFE_STEP:
            longest = max(longest, np.ptp(step[0, :k]))
            before, after = (counts.height(at, counts.probabilities(at), 0.0)[0] for at in (here, here + step))
            assert after >= before - 1e-9 * abs(before)
    assert longest > 1.5


@pytest.mark.parametrize("wins", [[[0]], [[0, 0], [0, 0]], [[0, 5], [0, 0]], [[0, 2, 0], [3, 0, 0], [0, 0, 0]]])
def test_strengths_alone_are_none_where_the_model_has_no_estimate(wins):
    assert paired.bradley_terry_strengths(wins) is None


def test_strengths_alone_are_those_of_the_model():
    wins = np.random.default_rng(4).integers(0, 30, (12, 12)) * ~np.eye(12, dtype=bool)
    fit = paired.fit_bradley_terry_to_counts(wins)
    assert_allclose(paired.bradley_terry_strengths(wins), [one.estimate for one in fit.strengths], atol=1e-12)


def test_at_the_maximum_every_score_is_the_expected_one():
    rng, n_fitted = np.random.default_rng(8), 0
    for _ in range(60):
        k, nu = int(rng.integers(2, 9)), float(rng.choice([0, 0.01, 1, 20]))
        strengths = rng.normal(0, rng.uniform(0, 3), k)
        rows = labels(int(rng.integers(9999)), 20, int(rng.choice([2, 10, 100])), strengths, nu)
        wins, ties = tables(*rows[:3], k)
        fit = paired.fit_davidson_to_counts(wins, ties)
        if fit.status != "ok":
            continue
        n_fitted += 1
        asked, score = wins + wins.T + ties, fit.probabilities + fit.tie_probabilities / 2
        n = asked.sum() / 2
        # What each system won, and how many tied; one part in 1e10 of the labels.
        assert_allclose(np.nansum(asked * score, axis=1), (wins + ties / 2).sum(axis=1), atol=1e-10 * n, rtol=0)
        assert_allclose(np.nansum(asked * fit.tie_probabilities), ties.sum(), atol=1e-10 * n, rtol=0)
    assert n_fitted > 30
