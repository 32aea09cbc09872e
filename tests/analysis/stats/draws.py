"""The generator of random numbers that the tests of the statistics draw from; the same seed gives the same numbers."""

import numpy as np


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)
