"""What is promised about best-worst scaling."""

from functools import cache

import numpy as np

from analysis.stats import best_worst
from tools.proofs.calibration import worlds
from tools.proofs.calibration.cells.cell import COVERS, REJECTS, Cell, covered, rejected


@cache
def _true_difference() -> float:
    answers = worlds.best_and_worst(np.random.default_rng(1), 20_000)
    fit = best_worst.best_worst_logit(*answers, n_systems=5)
    return float(fit.difference(4, 0).estimate)


def _strength(rng, n) -> bool | None:
    fit = best_worst.best_worst_logit(*worlds.best_and_worst(rng, n), n_systems=5)
    return covered(fit.difference(4, 0), _true_difference())


def best_worst_cells():
    for n in (20, 60):
        yield Cell(
            "Best and worst",
            REJECTS,
            "five strengths are equal, joint F",
            "four of five systems a set, activity uneven",
            n,
            lambda rng, n=n: rejected(
                best_worst.best_worst_logit(*worlds.best_and_worst(rng, n, strengths=(0,) * 5), n_systems=5).omnibus
            ),
        )
    for n in (20, 60):
        yield Cell(
            "Best and worst",
            COVERS,
            "strengths (best-worst logit)",
            "five systems, the last against the first, activity uneven",
            n,
            lambda rng, n=n: _strength(rng, n),
            runs=1000,
            nominal=0.95,
        )
    for n in (20, 60):
        yield Cell(
            "Best and worst",
            COVERS,
            "score (best less worst, by times shown)",
            "five systems of equal worth, activity uneven",
            n,
            lambda rng, n=n: covered(
                best_worst.maxdiff_scores(*worlds.best_and_worst(rng, n, strengths=(0,) * 5), n_systems=5).scores[0],
                0.0,
            ),
            runs=1000,
            nominal=0.95,
        )
