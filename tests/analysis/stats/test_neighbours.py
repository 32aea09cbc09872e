"""Neighbouring items that belong together are found, and independent ones rarely give an alarm."""

import numpy as np
import pytest

from analysis.stats import clusters
from analysis.stats.clusters import neighbour_dependence
from tools.proofs.calibration.claims import limit

STUDIES = 400
# Fewer permutations give the test the same level, and hardly less power.
PERMUTATIONS = 199


@pytest.fixture(autouse=True)
def few_permutations(monkeypatch):
    monkeypatch.setattr(clusters, "PERMUTATIONS", PERMUTATIONS)


def found_share(make, seed):
    rng = np.random.default_rng(seed)
    return sum(neighbour_dependence(make(rng), rng=rng).is_found for _ in range(STUDIES)) / STUDIES


def documents(rng, size, n=200, lag=0.2):
    """Items in documents of a size; an item and the next one have this correlation, over all neighbours."""
    share = lag * size / (size - 1)
    of_document = np.repeat(rng.normal(size=-(-n // size)), size)[:n]
    return (np.sqrt(share) * of_document + np.sqrt(1 - share) * rng.normal(size=n))[:, None]


INDEPENDENT = {
    "normal, 200 items": lambda rng: rng.normal(size=(200, 1)),
    "three estimates of 30 items": lambda rng: rng.normal(size=(30, 3)),
    "very skewed, 40 items": lambda rng: rng.exponential(size=(40, 1)) ** 3,
    "rare ones, 60 items": lambda rng: (rng.random((60, 1)) < 0.1).astype(float),
    "unequal spread, 100 items": lambda rng: rng.normal(size=(100, 1)) * rng.permutation(np.linspace(0.1, 3, 100))[:, None],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", INDEPENDENT)
def test_independent_items_give_few_alarms(name):
    # Three errors of the simulation, because five shares are tested. The test of permutations is exact.
    assert found_share(INDEPENDENT[name], 7) <= 0.02 + 1.5 * (limit(STUDIES, 0.02) - 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("size", [4, 10, 20])
def test_a_lag_of_a_fifth_is_found_in_200_items(size):
    """Found in .80 or more; the rest is the error of the simulation."""
    assert found_share(lambda rng: documents(rng, size), 6) >= 0.8 - 2 * (0.8 * 0.2 / STUDIES) ** 0.5


def autoregression(rng, studies=1, n=200, lag=0.2):
    values = rng.normal(size=(studies, n))
    for item in range(1, n):
        values[:, item] = lag * values[:, item - 1] + np.sqrt(1 - lag**2) * values[:, item]
    return values


@pytest.mark.slow
def test_an_autoregression_of_a_fifth_is_found_in_seven_of_ten_studies():
    """.71 with so few permutations, and .60 by decreasing weights alone; the rest is the error of the simulation."""
    assert found_share(lambda rng: autoregression(rng).T, 8) >= 0.71 - 2 * (0.71 * 0.29 / STUDIES) ** 0.5


def test_no_test_finds_an_autoregression_of_a_fifth_in_four_of_five_studies():
    """The likelihood ratio with a known mean and variance is the best test of all. Its power is what the documentation says."""
    rng = np.random.default_rng(9)

    def likelihood_ratio(values, lag=0.2):
        steps = values[:, 1:] - lag * values[:, :-1]
        return np.sum(values[:, 1:] ** 2, axis=1) - np.sum(steps**2, axis=1) / (1 - lag**2)

    threshold = np.quantile(likelihood_ratio(rng.normal(size=(20_000, 200))), 0.98)
    power = np.mean(likelihood_ratio(autoregression(rng, 20_000)) > threshold)
    assert power == pytest.approx(0.787, abs=0.008)


def test_the_first_neighbour_is_correlated_as_it_says():
    values = np.repeat(np.random.default_rng(1).normal(size=40), 5)
    found = neighbour_dependence(values[:, None], rng=np.random.default_rng(2))
    centred = values - values.mean()
    assert found.correlation == pytest.approx(float(np.sum(centred[:-1] * centred[1:]) / np.sum(centred**2)))
    assert found.pvalue == 1 / (1 + PERMUTATIONS)


def test_what_is_undefined_has_a_reason():
    rng = np.random.default_rng(3)
    few, equal = (
        neighbour_dependence(rng.normal(size=(19, 1)), rng=rng),
        neighbour_dependence(np.ones((30, 2)), rng=rng),
    )
    assert (few.pvalue, few.reason) == (None, "fewer than 20 items") and not few.is_found
    assert (equal.pvalue, equal.reason) == (None, "the items do not differ")
    assert neighbour_dependence(np.zeros((0, 1)), rng=rng).n_items == 0
