"""Reference numbers and simulated labels for the tests of rules that look after every unit."""

import math

import numpy as np

from analysis.stats import betting
from tests.analysis.stats.golden import golden

GOLDEN = golden("sequential")


def labels(seed, n, p=0.5, runs=None):
    return (np.random.default_rng(seed).random(n if runs is None else (runs, n)) < p).astype(float)


def rejections(studies, level=0.95):
    """The share of studies in which the betting process on their units ever refutes one half."""
    return np.mean(
        [betting.log_wealth(units, 0.5, level=level).max() >= math.log(1 / (1 - level)) for units in studies]
    )
