"""The prior is learned from the annotators of a study."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from analysis.stats import mixture
from tests.analysis.stats.draws import rng
from tests.analysis.stats.mixture.tables import EM_CONCENTRATION, GOLDEN, GRID

# The fits that the published algorithm finishes in about a second; the others take up to ten.
QUICK = {"k2_no_pseudo_100_wellsep"}


def check_fit(case, found, tolerance):
    components = case["fitted"]["components_by_mean"]
    assert_allclose(found.mixture.means, [part["mean"] for part in components], rtol=tolerance)
    assert_allclose(found.mixture.weights, [part["weight"] for part in components], rtol=tolerance)
    assert_allclose(-found.log_likelihood, case["fitted"]["nll"], atol=max(1e-8, tolerance))
    for criterion in ("rate", "class") if case["k"] > 1 else ("rate",):
        options = {"criterion": criterion, "threshold": case["threshold"]}
        own = mixture.noisy_annotator_posterior(found.mixture, case["successes"], case["trials"], **options)
        grid = mixture.noisy_annotator_posterior(found.mixture, GRID[:, 0], GRID[:, 1], **options)
        assert_allclose(own, case[f"{criterion}_p_noisy"], atol=tolerance)
        assert_allclose(grid, case[f"grid_{criterion}_p_noisy"], atol=tolerance)
        assert mixture.is_noisy(own, rule="more_than").tolist() == case[f"{criterion}_flag"]


def published_fit(case):
    return mixture.fit_beta_mixture(
        case["successes"],
        case["trials"],
        n_components=case["k"],
        # The package drew its starts from numpy's legacy generator.
        rng=np.random.RandomState(case["seed"]),
        method="em",
        pseudo_data=case["pseudo_data"],
        starts=case["n_init"],
    )


def is_quick(case):
    return case["k"] == 1 or case["name"] in QUICK


@pytest.mark.parametrize("case", [c for c in GOLDEN["fits"] if is_quick(c)], ids=lambda case: case["name"])
def test_the_published_algorithm_step_by_step(case):
    check_fit(case, published_fit(case), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("case", [c for c in GOLDEN["fits"] if not is_quick(c)], ids=lambda case: case["name"])
def test_the_published_algorithm_step_by_step_where_it_takes_seconds(case):
    check_fit(case, published_fit(case), 1e-9)


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c["name"], marks=() if is_quick(c) else pytest.mark.slow) for c in GOLDEN["fits"]],
)
def test_the_fast_fit_is_at_least_as_likely_and_flags_the_same_people(case):
    data = {"n_components": case["k"], "pseudo_data": case["pseudo_data"], "rng": rng()}
    near = mixture.fit_beta_mixture(case["successes"], case["trials"], max_concentration=EM_CONCENTRATION, **data)
    capped = mixture.fit_beta_mixture(case["successes"], case["trials"], **data)
    # With the concentration free to grow as far, the published stopping rule never beats a real maximum.
    assert -near.log_likelihood <= case["fitted"]["nll"] + 1e-6
    assert -capped.log_likelihood <= case["fitted"]["nll"] + 0.31
    near_threshold = {tuple(pair) for pair in case["near_threshold"]}
    for found, tolerance in ((near, 0.025), (capped, 0.13)):
        components = case["fitted"]["components_by_mean"]
        assert_allclose(found.mixture.means, [part["mean"] for part in components], atol=1e-3)
        assert_allclose(found.mixture.weights, [part["weight"] for part in components], atol=5e-3)
        for criterion in ("rate", "class") if case["k"] > 1 else ("rate",):
            own = mixture.noisy_annotator_posterior(
                found.mixture, case["successes"], case["trials"], criterion=criterion, threshold=case["threshold"]
            )
            assert_allclose(own, case[f"{criterion}_p_noisy"], atol=tolerance)
            flags = mixture.is_noisy(own, rule="more_than")
            for right, asked, ours, theirs in zip(
                case["successes"], case["trials"], flags, case[f"{criterion}_flag"], strict=True
            ):
                assert ours == theirs or (right, asked) in near_threshold


def test_the_fast_fit_of_the_pseudo_data_alone():
    found = mixture.fit_beta_mixture([], [], n_components=2, rng=rng())
    wanted = GOLDEN["pseudo_only"]
    assert_allclose(found.mixture.weights[::-1], wanted["theta"], atol=2e-3)
    assert_allclose(found.mixture.means[::-1], wanted["mean"], atol=2e-3)
    assert_allclose(found.log_likelihood, wanted["loglik"], atol=1e-3)
    assert found.at_cap == (1,) and (found.n_annotators, found.n_pseudo) == (0, 40)
    # A higher cap is more likely and has the same means: that concentration is not in the data.
    wide = mixture.fit_beta_mixture([], [], n_components=2, rng=rng(), max_concentration=30_000)
    assert found.log_likelihood < wide.log_likelihood < -58.10 + 0.01
    assert_allclose(wide.mixture.means, found.mixture.means, atol=1e-3)


def test_a_fit_at_its_lower_bound_and_equal_components_are_reported():
    # Some annotators are always right and others always wrong: the concentration falls to its lower bound.
    found = mixture.fit_beta_mixture([0, 0, 0, 10, 10, 10, 10], [10] * 7, n_components=1, rng=rng(), pseudo_data=False)
    assert (found.status, found.at_minimum, found.at_cap, found.coinciding) == ("ok", (0,), (), ())
    same = mixture.fit_beta_mixture([5] * 4, [5] * 4, n_components=2, rng=rng(), pseudo_data=False)
    assert (same.status, same.coinciding) == ("ok", (0, 1))
    assert mixture.fit_beta_mixture([], [], n_components=2, rng=rng()).coinciding == ()


def test_the_likelihood_is_that_of_scipy():
    right, asked = np.array([3, 9, 10, 0, 7, 6]), np.array([5, 9, 11, 4, 7, 8])
    found = mixture.fit_beta_mixture(right, asked, n_components=2, rng=rng(), pseudo_data=False)
    parts = [
        np.log(weight) + stats.betabinom.logpmf(right, asked, a, b)
        for weight, a, b in zip(found.mixture.weights, found.mixture.alphas, found.mixture.betas, strict=True)
    ]
    assert_allclose(found.log_likelihood, special.logsumexp(parts, axis=0).sum(), rtol=1e-10)


def test_three_hundred_annotators_give_their_two_kinds_back():
    draw = rng(2)
    asked = draw.integers(1, 60, 300)
    right = draw.binomial(asked, np.where(draw.random(300) < 0.1, 0.3, 0.96))
    found = mixture.fit_beta_mixture(right, asked, n_components=2, rng=rng())
    assert_allclose(found.mixture.means, (0.3, 0.96), atol=0.04)


def test_the_fit_recovers_known_parameters_and_does_not_depend_on_order_or_seed():
    draw = rng(3)
    noisy = draw.random(800) < 0.2
    accuracy = np.where(noisy, draw.beta(4, 8, 800), draw.beta(57, 3, 800))
    asked = draw.integers(5, 40, 800)
    right = draw.binomial(asked, accuracy)
    found = mixture.fit_beta_mixture(right, asked, n_components=2, rng=rng(), starts=4)
    assert_allclose(found.mixture.means, (accuracy[noisy].mean(), accuracy[~noisy].mean()), atol=0.02)
    assert_allclose(found.mixture.weights[0], noisy.mean(), atol=0.02)
    order = draw.permutation(800)
    again = mixture.fit_beta_mixture(right[order], asked[order], n_components=2, rng=rng(9), starts=4)
    assert_allclose(again.log_likelihood, found.log_likelihood, atol=1e-4)
    assert_allclose(again.mixture.means, found.mixture.means, atol=1e-4)


@pytest.mark.parametrize("method", ["likelihood", "em"])
def test_degenerate_counts_stay_finite(method):
    # Everybody all right or all wrong: alpha and beta run to 0.
    found = mixture.fit_beta_mixture(
        [5, 0, 7, 0, 9], [5, 6, 7, 8, 9], n_components=1, rng=rng(), method=method, pseudo_data=False
    )
    assert found.status == "ok" and min(found.mixture.alphas + found.mixture.betas) > 0
    posterior = mixture.low_accuracy_posterior(found.mixture, [5, 0], [5, 6])
    assert posterior[0] < 0.2 and posterior[1] > 0.99
    # Nobody makes a mistake.
    perfect = mixture.fit_beta_mixture([5, 6, 7], [5, 6, 7], n_components=1, rng=rng(), pseudo_data=False)
    assert perfect.status == "ok" and perfect.mixture.means[0] > 0.99
    json.dumps(found.as_dict(), allow_nan=False)


def test_what_cannot_be_learned_is_a_status():
    options = {"rng": rng(), "pseudo_data": False}
    assert mixture.fit_beta_mixture([], [], n_components=1, **options).status == "no_data"
    assert mixture.fit_beta_mixture([0, 0], [0, 0], n_components=1, **options).status == "no_data"
    assert mixture.fit_beta_mixture([1, 0, 1, 1], [1, 1, 1, 1], n_components=1, **options).status == "not_identified"
    assert mixture.fit_beta_mixture([3, 2, 3], [3, 3, 4], n_components=2, **options).status == "not_identified"
    found = mixture.fit_beta_mixture([], [], n_components=1, **options)
    assert found.mixture is None and found.reason
    json.dumps(found.as_dict(), allow_nan=False)


def test_bad_arguments_are_named():
    fixed = mixture.PRIORS["fixed1"]
    with pytest.raises(ValueError, match="successes: row 1 has 3 of 2"):
        mixture.low_accuracy_posterior(fixed, [1, 3], [2, 2])
    with pytest.raises(ValueError, match="trials: row 0 is no count"):
        mixture.low_accuracy_posterior(fixed, [1], [2.5])
    with pytest.raises(ValueError, match="successes: row 0 is no count"):
        mixture.low_accuracy_posterior(fixed, [None], [2])
    with pytest.raises(ValueError, match="trials: shape"):
        mixture.low_accuracy_posterior(fixed, [1], [2, 2])
    with pytest.raises(ValueError, match="criterion"):
        mixture.noisy_annotator_posterior(fixed, [1], [2], criterion="both")
    with pytest.raises(ValueError, match="rule"):
        mixture.is_noisy([0.5], rule="above")
    with pytest.raises(ValueError, match="model"):
        mixture.screen_annotators_by_question_type([[1, 1]], [[1, 1]], model="class_learned3", rng=rng())
    with pytest.raises(ValueError, match="mode"):
        mixture.screen_annotators_by_question_type([[1, 1]], [[1, 1]], mode="ours", rng=rng())
    with pytest.raises(ValueError, match=r"successes: expected shape \(n, 2\)"):
        mixture.screen_annotators_by_question_type([1, 1], [1, 1], rng=rng())
    with pytest.raises(ValueError, match="method"):
        mixture.fit_beta_mixture([1], [1], n_components=1, method="bayes", rng=rng())
    with pytest.raises(ValueError, match="n_components"):
        mixture.fit_beta_mixture([1], [1], n_components=0, rng=rng())
    with pytest.raises(ValueError, match="weights"):
        mixture.BetaMixture((0.5, 0.4), (1, 1), (1, 1))
    with pytest.raises(ValueError, match="alphas"):
        mixture.BetaMixture((1.0,), (0.0,), (1.0,))
    with pytest.raises(ValueError, match="questions"):
        mixture.flag_boundaries(fixed, [-1], criterion="rate")
