"""The cells of agreement and of ranks."""

import numpy as np

from analysis.stats import agreement, ranks
from tools.proofs.calibration.cells.cell import COVERS, Cell, covered


def agreement_and_rank_cells():
    yield Cell(
        "Agreement",
        COVERS,
        "Krippendorff's alpha, bootstrap of units",
        "100 units, three raters, true alpha .5",
        100,
        _alpha,
        runs=500,
        nominal=0.95,
    )
    for n in (30, 60):
        yield Cell(
            "Ranks",
            COVERS,
            "all rank sets hold the true ranks",
            "five systems, two of them equal",
            n,
            lambda rng, n=n: _rank_sets(rng, n),
            runs=300,
            nominal=0.95,
        )


def _alpha(rng) -> bool | None:
    # Binary, even margins: a rater repeats the unit's own value with probability r, so that alpha is r squared.
    truth = rng.integers(0, 2, 100)
    keeps = rng.random((100, 3)) < np.sqrt(0.5)
    given = np.where(keeps, truth[:, None], rng.integers(0, 2, (100, 3)))
    counts = np.stack([(given == 0).sum(axis=1), (given == 1).sum(axis=1)], axis=1)
    found = agreement.krippendorff_alpha(counts, [0, 1], level_of_measurement="nominal", resamples=999, rng=rng)
    return covered(found, 0.5)


def _rank_sets(rng, n) -> bool | None:
    worth = np.array([0.9, 0.7, 0.5, 0.5, 0.2])
    annotators = np.repeat(np.arange(n), 5)
    systems = np.tile(np.arange(5), n)
    values = worth[systems] + rng.normal(0, 0.3, n)[annotators] + rng.normal(0, 0.5, 5 * n)
    found = ranks.rank_confidence_sets_from_rows(values, annotators, systems)
    if found.low is None or found.high is None:
        return None
    best = [1, 2, 3, 3, 5]
    worst = [1, 2, 4, 4, 5]
    return all(low <= b and high >= w for low, high, b, w in zip(found.low, found.high, best, worst, strict=True))
