"""Reference numbers and the real labels of the paper's two-choice study."""

import csv

import numpy as np

from analysis.stats.choice import Strategy
from tests.analysis.stats.golden import golden

GOLDEN = golden("choice")
STRATEGIES = {
    "one": Strategy("one"),
    "mv5": Strategy("majority", 5),
    "mv7": Strategy("majority", 7),
    "max3": Strategy("max_three"),
}
# Whose unanimous pairs the released analysis counted as two labels; every other pair as three.
RELEASED = {"v1_vs_cga": "unless_both_b", "v2_vs_cga_r1": "unless_both_a"}
FILES = {"v1_vs_cga": "dhe_v1_vs_cga.csv", "v2_vs_cga_r1": "dhe_v2_vs_cga_r1.csv"}


def real(shared, batch):
    """The labels of one batch, CGA being system A: chose_a, a_was_first, items, annotators."""
    with (shared / FILES[batch]).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return (
        np.array([row["chosen_model"] == "CGA" for row in rows], float),
        np.array([row["model_a"] == "CGA" for row in rows], float),
        np.array([int(row["pair_id"]) for row in rows]),
        np.array([row["worker"] for row in rows]),
    )
