"""The cells of two choices."""

from functools import cache

import numpy as np

from analysis.stats import basic, choice, davidson, sequential, stopping_boundaries
from tools.proofs.calibration import worlds
from tools.proofs.calibration.cells.cell import ALPHA, COVERS, REJECTS, Cell, covered, rejected


@cache
def _true_tied_strength() -> float:
    labels = worlds.choices_with_ties(np.random.default_rng(1), 100_000)
    return float(davidson.fit_davidson(*labels, n_systems=4).strengths[3].estimate)


def _tied_strength(rng, n) -> bool | None:
    labels = worlds.choices_with_ties(rng, n)
    return covered(davidson.fit_davidson(*labels, n_systems=4).strengths[3], _true_tied_strength())


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
            "strengths with ties (Davidson)",
            "four systems, the last against their mean",
            n,
            lambda rng, n=n: _tied_strength(rng, n),
            runs=1000,
            nominal=0.95,
        )


def _share(rng) -> bool | None:
    annotators = np.repeat(np.arange(30), 20)
    chance = np.clip(0.5 + rng.normal(0, 0.15, 30), 0, 1)[annotators]
    return rejected(choice.annotator_weighted_preference_share((rng.random(600) < chance).astype(float), annotators))


def _beta_binomial(rng) -> bool:
    rule = stopping_boundaries.beta_binomial_boundaries(2000, level=0.95)
    return bool(stopping_boundaries.find_boundary_crossings(rng.integers(0, 2, 2000), rule).winner[0])


def _hoeffding(rng) -> bool:
    rule = stopping_boundaries.hoeffding_boundaries(2000, delta=0.05)
    return bool(stopping_boundaries.find_boundary_crossings(rng.integers(0, 2, 2000), rule).winner[0])


def _means(rng, n):
    return rng.binomial(10, np.clip(0.5 + rng.normal(0, 0.15, n), 0, 1)) / 10


def _betting_process(rng) -> bool:
    values = _means(rng, 300)
    return bool(sequential.sequential_test(values, process="betting", level=0.95).verdict in ("a_better", "b_better"))


LOOKS = (20, 40, 60, 80, 100)


def _uncorrected(rng) -> bool:
    values = _means(rng, 100)
    return any(basic.one_sample_t_test(values[:look], null=0.5).pvalue < ALPHA for look in LOOKS)
