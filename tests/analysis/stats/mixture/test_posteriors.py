"""Posteriors and boundaries of fixed priors agree with integration and with the public package."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import mixture
from tests.analysis.stats.mixture.tables import FIXED, GOLDEN, GRID, NARROW, table_of


@pytest.mark.parametrize("case", GOLDEN["fixed_priors"], ids=lambda case: case["prior"])
def test_fixed_priors_agree_with_the_public_package(case):
    prior = mixture.PRIORS[case["prior"]]
    assert (list(prior.weights), list(prior.alphas), list(prior.betas)) == (
        case["weights"],
        case["alpha"],
        case["beta"],
    )
    rate = mixture.low_accuracy_posterior(prior, GRID[:, 0], GRID[:, 1], threshold=case["threshold"])
    assert_allclose(rate, case["rate_p_noisy"], atol=1e-11)
    if case["class_p_noisy"] is None:
        with pytest.raises(ValueError, match="prior: the class criterion needs at least two components"):
            mixture.not_best_class_posterior(prior, GRID[:, 0], GRID[:, 1])
    else:
        found = mixture.not_best_class_posterior(prior, GRID[:, 0], GRID[:, 1])
        assert_allclose(found, case["class_p_noisy"], rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("model", FIXED)
def test_posteriors_agree_with_the_reference(model):
    criterion, prior = FIXED[model]
    right, asked = ([case[name] for case in GOLDEN["posterior"]] for name in ("x", "n"))
    found = mixture.noisy_annotator_posterior(mixture.PRIORS[prior], right, asked, criterion=criterion)
    assert_allclose(found, [case[model] for case in GOLDEN["posterior"]], atol=1e-6)


@pytest.mark.parametrize("model", FIXED)
def test_boundaries_agree_with_the_reference_at_every_n(model):
    wanted = {int(n): row[model] for n, row in GOLDEN["boundaries"].items()}
    found = table_of(model, list(wanted))
    assert found.questions == tuple(wanted)
    assert [-1 if bound is None else bound for bound in found.at_most] == list(wanted.values())
    assert found.irregular == ()


@pytest.mark.parametrize("model", FIXED)
def test_posteriors_agree_with_numerical_integration(model):
    criterion, name = FIXED[model]
    prior = mixture.PRIORS[name]
    right, asked = 3, 7
    # The midpoint rule on a transformed grid, so that the poles of Beta(.5, .5) at 0 and 1 do no harm.
    u = (np.arange(200_000) + 0.5) / 200_000
    p = np.sin(np.pi * u / 2) ** 2
    jacobian = np.pi * np.sqrt(p * (1 - p))
    joint = [
        weight * stats.beta.pdf(p, a, b) * stats.binom.pmf(right, asked, p) * jacobian
        for weight, a, b in zip(prior.weights, prior.alphas, prior.betas, strict=True)
    ]
    total = np.sum(joint)
    wanted = np.sum(np.sum(joint, axis=0)[p < 0.9]) / total if criterion == "rate" else np.sum(joint[0]) / total
    assert_allclose(mixture.noisy_annotator_posterior(prior, [right], [asked], criterion=criterion), wanted, rtol=2e-5)


def test_the_operating_points_of_the_fixed_priors():
    # PAPER: more than 99 %. Each point flags, the same with one more right answer does not.
    points = {
        "rate_jeffreys": [(0, 2), (1, 3), (1, 4), (2, 5)],
        "rate_fixed1": [(0, 3), (1, 4), (2, 5)],
        "rate_fixed2": [(0, 3), (0, 4), (1, 5), (4, 10)],
    }
    for model, flagged in points.items():
        criterion, prior = FIXED[model]
        for right, asked in flagged:
            found = mixture.noisy_annotator_posterior(
                mixture.PRIORS[prior], [right, right + 1], [asked] * 2, criterion=criterion
            )
            assert mixture.is_noisy(found, rule="more_than").tolist() == [True, False], (model, right, asked)


def test_the_two_rules_differ_at_the_cutoff_itself_and_nowhere_near_it():
    at = mixture.low_accuracy_posterior(mixture.PRIORS["uniform"], [0], [1])
    assert abs(at[0] - 0.99) < 1e-15
    assert mixture.is_noisy(at, rule="at_least").all() and not mixture.is_noisy(at, rule="more_than").any()
    for shift in (-1e-9, 1e-9):
        near = mixture.is_noisy([0.99 + shift])
        assert near == mixture.is_noisy([0.99 + shift], rule="more_than") == [shift > 0]
    assert table_of("rate_uniform", [1], rule="more_than").at_most == (None,)
    assert table_of("rate_uniform", [1], rule="at_least").at_most == (0,)
    others = [table_of(model, range(1, 51), rule="at_least") for model in FIXED]
    strict = [table_of(model, range(1, 51), rule="more_than") for model in FIXED]
    differing = [(a.at_most != b.at_most) for a, b in zip(others, strict, strict=True)]
    assert dict(zip(FIXED, differing, strict=True)) == {name: name == "rate_uniform" for name in FIXED}


def test_an_annotator_without_answers_keeps_the_prior():
    assert_allclose(mixture.not_best_class_posterior(mixture.PRIORS["fixed2"], [0], [0]), 0.05)
    assert_allclose(mixture.low_accuracy_posterior(mixture.PRIORS["fixed1"], [0], [0]), 0.9**4)


def test_more_right_answers_never_make_one_noisier():
    for criterion, prior in FIXED.values():
        found = mixture.noisy_annotator_posterior(
            mixture.PRIORS[prior], np.arange(41), np.full(41, 40), criterion=criterion
        )
        assert np.all(np.diff(found) <= 1e-12)


def test_a_badly_fitted_class_model_flags_the_perfect_and_the_table_says_so():
    found = mixture.flag_boundaries(NARROW, [300], criterion="class")
    assert (300, 300) in found.irregular
    assert found.at_most[0] is not None and 200 < found.at_most[0] < 290
