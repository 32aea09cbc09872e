"""Bootstrap and Bayesian bootstrap of a mean."""

from typing import Any

import numpy as np

from analysis.stats.arrays import (
    FloatArray,
)
from analysis.stats.bootstrap._intervals import percentile_interval
from analysis.stats.results import Estimate


def posterior_probability_above(draws: FloatArray, null: float) -> float:
    """Share of Bayesian bootstrap draws above `null`.

    Parameters
    ----------
    draws : ndarray of float, shape (resamples,)
        Draws of the mean.
    null : float
        Value that the mean is compared with.

    Returns
    -------
    float
        The share; a draw equal to `null` counts half.

    Examples
    --------
    >>> posterior_probability_above(np.array([0.4, 0.5, 0.6, 0.7]), 0.5)
    0.625
    """
    return (float(np.mean(draws > null)) + float(np.mean(draws >= null))) / 2


def posterior_probability_estimate(
    draws: FloatArray, *, n: int, null: float, level: float, common: dict[str, Any]
) -> Estimate:
    """Posterior probability that a mean exceeds `null`, from draws of the Bayesian bootstrap.

    Parameters
    ----------
    draws : ndarray of float, shape (resamples,)
        Draws of the mean.
    n : int
        Number of units.
    null : float
        Value that the mean is compared with.
    level : float
        Level of the credible interval, between 0 and 1.
    common : dict
        The other fields of the estimate.

    Returns
    -------
    Estimate
        The probability; `detail` has the credible interval of the mean.

    Examples
    --------
    >>> common = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> posterior_probability_estimate(np.array([0.6, 0.7]), n=2, null=0.5, level=0.95, common=common).estimate
    1.0
    """
    credible = percentile_interval(draws, level)
    ends = {} if credible is None else {"level": level, "low": credible.low, "high": credible.high}
    return Estimate(n=n, estimate=posterior_probability_above(draws, null), detail={"mean_credible": ends}, **common)
