"""The cells of telling people and machines apart."""

import numpy as np

from analysis.stats import detection, groups
from tools.proofs.calibration import worlds
from tools.proofs.calibration.cells.cell import ALPHA, REJECTS, Cell, rejected


def human_likeness_cells():
    for n in (20, 65):
        yield Cell(
            "Human or machine",
            REJECTS,
            "accuracy, annotators and texts as clusters",
            "5 of 100 texts each",
            n,
            lambda rng, n=n: rejected(detection.clustered_accuracy(*worlds.sparse(rng, n))),
            runs=1000,
        )
    yield Cell("Human or machine", REJECTS, "four conditions, Welch's ANOVA", "accuracies of 5 texts", 4 * 65, _anova)
    yield Cell(
        "Human or machine",
        REJECTS,
        "six differences, Games-Howell (any)",
        "accuracies of 5 texts",
        4 * 65,
        _games_howell,
        runs=1000,
    )


def _conditions(rng):
    return rng.binomial(5, 0.55, 4 * 65) / 5, np.repeat(list("abcd"), 65)


def _anova(rng) -> bool | None:
    return rejected(groups.welch_anova(*_conditions(rng)))


def _games_howell(rng) -> bool:
    found = [one.pvalue for one in groups.pairwise_comparisons(*_conditions(rng)) if one.pvalue is not None]
    return min(found) < ALPHA
