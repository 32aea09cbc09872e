import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from analysis.stats import stopping_boundaries
from tests.analysis.stats.golden import golden
from tests.analysis.stats.looks import first_rejection

GOLDEN = golden("group_sequential")
LOOKS = [40, 80, 120, 160, 200]


def annotators(seed, n=200, mean=0.5, sd=0.27):
    """Answers of the shape that a probabilistic study gets: a beta distribution with this mean and sd."""
    nu = mean * (1 - mean) / sd**2 - 1
    return np.random.default_rng(seed).beta(mean * nu, (1 - mean) * nu, n)


def acceptance(fractions, z):
    """The chance of never crossing, as the volume of a box under a multivariate normal distribution."""
    times = np.asarray(fractions)
    correlation = np.sqrt(np.minimum.outer(times, times) / np.maximum.outer(times, times))
    box = stats.multivariate_normal(np.zeros(len(times)), correlation, maxpts=200_000, abseps=1e-6, seed=1)
    return float(box.cdf(z, lower_limit=-np.asarray(z)))


@pytest.mark.parametrize("shape", stopping_boundaries.SHAPES)
def test_spending_boundaries_are_the_published_ones(shape):
    assert_allclose(stopping_boundaries.group_sequential_design(5, shape=shape).z, GOLDEN["spending"][shape], atol=2e-4)


@pytest.mark.parametrize("shape", stopping_boundaries.SHAPES)
@pytest.mark.parametrize("fractions", [[0.5, 1.0], [0.2, 0.7, 1.0], [0.3, 0.35, 0.9, 1.0]])
def test_boundaries_spend_what_they_may_at_any_spacing(shape, fractions):
    found = stopping_boundaries.group_sequential_design(fractions, shape=shape)
    assert_allclose(1 - acceptance(fractions, found.z), 0.05, atol=2e-5)
    half, times = 0.025, np.asarray(fractions)
    allowed = {
        "obrien_fleming": 2 * (2 - 2 * stats.norm.cdf(stats.norm.ppf(1 - half / 2) / np.sqrt(times))),
        "pocock": 2 * half * np.log(1 + (math.e - 1) * times),
    }[shape]
    assert_allclose(found.spent, allowed, atol=1e-8)
    assert_allclose(found.nominal, 2 * stats.norm.sf(found.z))


def test_a_look_so_early_that_nothing_may_be_spent_cannot_reject():
    found = stopping_boundaries.group_sequential_design([0.001, 1.0])
    assert found.z[0] == stopping_boundaries.NEVER
    assert_allclose(found.z[1], stats.norm.ppf(0.975), atol=1e-6)


def test_one_look_is_the_ordinary_test():
    assert_allclose(stopping_boundaries.group_sequential_design(1).z, [stats.norm.ppf(0.975)], atol=1e-8)


def test_bad_arguments_are_named():
    for call, word in (
        (lambda: stopping_boundaries.group_sequential_design(6), "fractions: 6 looks"),
        (lambda: stopping_boundaries.group_sequential_design([0.1, 0.2, 0.3, 0.4, 0.5, 1]), "fractions: 6 looks"),
        (lambda: stopping_boundaries.group_sequential_design([0.5, 0.4, 1]), "fractions: must ascend"),
        (lambda: stopping_boundaries.group_sequential_design([0.5, 0.9]), "fractions: must ascend"),
        (lambda: stopping_boundaries.group_sequential_design(2, shape="flat"), "shape"),
        (lambda: stopping_boundaries.group_sequential_design(2, significance=0.7), "significance"),
        (lambda: stopping_boundaries.first_crossing_probabilities([0.5, 1], [2.0]), "z: 1 boundaries"),
    ):
        with pytest.raises(ValueError, match=word):
            call()


def rejected(shape, mean, runs, seed):
    stopped = [first_rejection(annotators(seed + run, mean=mean), LOOKS, shape=shape) for run in range(runs)]
    return np.mean([n is not None for n in stopped]), np.mean([n or 200 for n in stopped])


@pytest.mark.slow
def test_five_planned_looks_keep_the_level_that_peeking_breaks():
    runs = 400
    share, _ = rejected("obrien_fleming", 0.5, runs, seed=1000)
    error = 3 * math.sqrt(0.05 * 0.95 / runs)
    assert share <= 0.05 + error
    studies = np.array([annotators(1000 + run) for run in range(150)])
    looks = np.array([stats.ttest_1samp(studies[:, :n], 0.5, axis=1).pvalue for n in range(20, 201, 10)])
    peeking = np.mean((looks < 0.05).any(axis=0))
    assert peeking > 0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "power", "mean_n"), [("obrien_fleming", 0.98, 129), ("pocock", 0.946, 103)])
def test_level_and_power_are_those_of_the_reference_simulation(shape, power, mean_n):
    share, _ = rejected(shape, 0.5, 4000, seed=20_000)
    assert 0.04 <= share <= 0.06
    found, n = rejected(shape, 0.575, 1000, seed=40_000)
    assert abs(found - power) < 0.02
    assert abs(n - mean_n) < 8
