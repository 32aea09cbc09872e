"""The cells of two choices."""

from functools import cache

import numpy as np

from analysis.stats import basic, choice, davidson, group_sequential, sequential
from tests.calibration import worlds
from tests.calibration.cells.cell import ALPHA, COVERS, REJECTS, Cell, covered, rejected


@cache
def _true_tied_strength() -> float:
    labels = worlds.choices_with_ties(np.random.default_rng(1), 100_000)
    return float(davidson.fit_davidson(*labels, n_systems=4).difference(3, 0).estimate)


def _tied_strength(rng, n) -> bool | None:
    labels = worlds.choices_with_ties(rng, n)
    found = davidson.davidson_bootstrap(*labels, n_systems=4, resamples=499, rng=rng)
    return covered(found.difference(3, 0), _true_tied_strength())


def _chosen_strength(rng) -> bool | None:
    """Labels that are independent of one another, 40 a pair."""
    strengths = np.array([0.0, 0.4, 0.8, 1.2])
    wins = np.zeros((4, 4))
    for x in range(4):
        for y in range(x + 1, 4):
            wins[x, y] = rng.binomial(40, 1 / (1 + np.exp(strengths[y] - strengths[x])))
            wins[y, x] = 40 - wins[x, y]
    found = davidson.bradley_terry_bootstrap(wins, resamples=499, rng=rng)
    return covered(found.difference(3, 0), 1.2)


def choice_cells():
    yield Cell(
        "Two choices", REJECTS, "share at a fixed n, t over annotators", "20 labels each, annotators differ", 30, _share
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "beta-binomial e-process, looked at after every label",
        "one label each",
        2000,
        _beta_binomial,
        is_anytime=True,
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "betting e-process, looked at after every annotator",
        "annotators' means of 10",
        300,
        _betting_process,
        runs=1000,
        is_anytime=True,
    )
    yield Cell(
        "Two choices", REJECTS, "O'Brien-Fleming, five looks", "annotators' means of 10", 100, _five_looks, runs=1000
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "t at five looks, uncorrected",
        "annotators' means of 10",
        100,
        _uncorrected,
        runs=1000,
        is_ours=False,
    )
    yield Cell(
        "Two choices",
        REJECTS,
        "Hoeffding at every n, level .05 (as published)",
        "one label each",
        2000,
        _hoeffding,
        is_ours=False,
    )
    for n in (20, 60):
        yield Cell(
            "Two choices",
            COVERS,
            "strengths with ties (Davidson), annotators resampled",
            "four systems, the last against the first",
            n,
            lambda rng, n=n: _tied_strength(rng, n),
            runs=1000,
            nominal=0.95,
        )
    yield Cell(
        "Two choices",
        COVERS,
        "strengths (Bradley-Terry), labels resampled",
        "four systems, 40 labels a pair",
        240,
        _chosen_strength,
        runs=1000,
        nominal=0.95,
    )


def _share(rng) -> bool | None:
    annotators = np.repeat(np.arange(30), 20)
    chance = np.clip(0.5 + rng.normal(0, 0.15, 30), 0, 1)[annotators]
    return rejected(choice.annotator_weighted_preference_share((rng.random(600) < chance).astype(float), annotators))


def _beta_binomial(rng) -> bool:
    rule = sequential.beta_binomial_boundaries(2000, level=0.95)
    return bool(sequential.find_boundary_crossings(rng.integers(0, 2, 2000), rule).winner[0])


def _hoeffding(rng) -> bool:
    rule = sequential.hoeffding_boundaries(2000, delta=0.05)
    return bool(sequential.find_boundary_crossings(rng.integers(0, 2, 2000), rule).winner[0])


def _means(rng, n):
    return rng.binomial(10, np.clip(0.5 + rng.normal(0, 0.15, n), 0, 1)) / 10


def _betting_process(rng) -> bool:
    values = _means(rng, 300)
    return bool(sequential.sequential_test(values, process="betting", level=0.95).verdict in ("a_better", "b_better"))


LOOKS = (20, 40, 60, 80, 100)


def _five_looks(rng) -> bool:
    return group_sequential.group_sequential_test(_means(rng, 100), LOOKS).verdict in ("a_better", "b_better")


def _uncorrected(rng) -> bool:
    values = _means(rng, 100)
    return any(basic.one_sample_t_test(values[:look], null=0.5).pvalue < ALPHA for look in LOOKS)
