"""The generator of random numbers that the tests of the statistics draw from, and bootstrap intervals of a mean."""

import numpy as np

from analysis.stats import bootstrap


def rng(seed: int = 0) -> np.random.Generator:
    """The same seed gives the same numbers."""
    return np.random.default_rng(seed)


def _means(values, resamples, rng):
    weights = bootstrap.multinomial_weights(len(values), resamples, rng)
    return bootstrap.ratio_draws(values[:, None], np.ones((len(values), 1)), weights)[:, 0]


def bca_of_mean(values, *, resamples, rng):
    """The interval that a report of SPA has among its sensitivity analyses."""
    draws = _means(values, resamples, rng)
    return bootstrap.bootstrap_ratio_interval(float(values.mean()), draws, values, np.ones(len(values)), level=0.95)


def percentile_of_mean(values, *, resamples, rng):
    draws = _means(values, resamples, rng)
    return None if np.ptp(draws) == 0 else bootstrap.percentile_interval(draws)
