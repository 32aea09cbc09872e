"""The candidates of the comparison are computed correctly, so that a rejected method was really tried."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.analysis.stats.comparisons import sandwich
from tests.oracles import reference
from tools.proofs.calibration.candidates import SIX_POINTS, WildBootstrap, crossed_model, drawn_factors

CROSSED = reference("crossed")


def differences(name):
    rows = CROSSED[name]["data"]
    codes = [np.unique(rows[way], return_inverse=True)[1] for way in ("person", "prompt")]
    return np.asarray(rows["x"], dtype=float) - np.asarray(rows["y"]), *codes


@pytest.mark.parametrize("name", list(CROSSED))
def test_the_mixed_model_is_that_of_lme4_and_pbkrtest(name):
    fit, expected = crossed_model(*differences(name)), CROSSED[name]
    variances = [expected["variances"][part] for part in ("person", "prompt", "Residual")]
    assert_allclose(fit.variances, variances, rtol=1e-3)
    mixed = expected["kenward_roger"]
    assert_allclose([fit.mean, fit.se, fit.df], [mixed["estimate"], mixed["se"], mixed["df"]], rtol=1e-4)
    assert fit.curve.pvalue(0) == pytest.approx(mixed["p"], rel=1e-4)


def test_in_a_complete_table_the_mixed_model_is_that_of_the_mean_squares():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(7, 1)) + rng.normal(size=(1, 9)) + rng.normal(size=(7, 9))
    squares = np.array([9 * table.mean(axis=1).var(ddof=1), 7 * table.mean(axis=0).var(ddof=1), 0.0])
    rest = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    squares[2] = np.sum(rest**2) / 48
    variance = (squares[0] + squares[1] - squares[2]) / 63
    df = (squares[0] + squares[1] - squares[2]) ** 2 / np.sum(squares**2 / [6, 8, 48])
    fit = crossed_model(table.ravel(), np.repeat(np.arange(7), 9), np.tile(np.arange(9), 7))
    assert_allclose([fit.mean, fit.se, fit.df], [table.mean(), math.sqrt(variance), df], rtol=1e-5)


def test_without_differences_of_people_and_prompts_the_mixed_model_is_a_t_test():
    """Each person gives one answer, to a prompt of its own: neither variance can be separated from the rest."""
    values = np.random.default_rng(4).normal(size=30)
    fit = crossed_model(values, np.arange(30), np.arange(30))
    assert_allclose([fit.mean, fit.se, fit.df], [values.mean(), values.std(ddof=1) / math.sqrt(30), 29], rtol=1e-6)
    assert crossed_model(np.ones(30), np.arange(30), np.arange(30)) is None


def plain_pvalue(values, weights, ways, factors, null):
    """The same bootstrap one draw after the other, from the values of each draw."""

    def t(drawn):
        curve = sandwich(drawn, *ways, weights=weights)
        return (curve.estimate - null) / curve.se

    fewer = min(ways, key=lambda codes: codes.max())
    drawn = [t(null + row[fewer] * (values - null)) for row in factors]
    return np.mean(np.abs(drawn) > abs(t(values)))


@pytest.mark.parametrize("n_people", [8, 40])
@pytest.mark.parametrize("null", [0.5, 0.62])
def test_the_wild_bootstrap_is_that_of_one_draw_after_the_other(n_people, null):
    rng = np.random.default_rng(n_people)
    people, prompts = (grid.ravel() for grid in np.divmod(np.arange(n_people * 15), 15))
    kept = rng.random(len(people)) < 0.7
    people, prompts = people[kept], prompts[kept]
    values = (rng.normal(size=len(people)) + rng.normal(size=n_people)[people] + 0.5 > 0).astype(float)
    weights = 1 / np.bincount(people)[people]
    bootstrap = WildBootstrap.drawn(rng, values, weights, people, prompts)
    assert bootstrap.factors.shape == (399, min(n_people, 15))
    assert len(np.unique(bootstrap.factors)) == (6 if n_people < 13 else 2)
    expected = plain_pvalue(values, weights, (people, prompts), bootstrap.factors, null)
    assert 0 < expected < 1
    assert bootstrap.pvalue(null) == pytest.approx(expected)


def test_factors_have_mean_0_and_variance_1():
    assert_allclose([SIX_POINTS.mean(), (SIX_POINTS**2).mean()], [0, 1], atol=1e-12)
    factors = drawn_factors(np.random.default_rng(1), 5, 10_000)
    assert abs(factors.mean()) < 0.02 and abs(factors.var() - 1) < 0.02
