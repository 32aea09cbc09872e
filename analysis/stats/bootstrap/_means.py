"""Bootstrap and Bayesian bootstrap of a mean."""

from typing import Any

import numpy as np

from analysis.stats.arrays import (
    FloatArray,
)
from analysis.stats.bootstrap._intervals import percentile_interval
from analysis.stats.results import Estimate


def posterior_probability_above(draws: FloatArray, null: float) -> float:
    """Return the share of Bayesian bootstrap draws of a mean above `null`, where a draw equal to `null` counts half.

    >>> posterior_probability_above(np.array([0.4, 0.5, 0.6, 0.7]), 0.5)
    0.625
    """
    return (float(np.mean(draws > null)) + float(np.mean(draws >= null))) / 2


def posterior_probability_estimate(
    draws: FloatArray, *, n: int, null: float, level: float, common: dict[str, Any]
) -> Estimate:
    """Estimate the posterior probability that a mean exceeds `null`, from draws of the Bayesian bootstrap.

    `n` is the number of units, `common` has the other fields of the estimate, and `detail` has the credible interval of
    the mean.

    >>> common = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> posterior_probability_estimate(np.array([0.6, 0.7]), n=2, null=0.5, level=0.95, common=common).estimate
    1.0
    """
    credible = percentile_interval(draws, level)
    ends = {} if credible is None else {"level": level, "low": credible.low, "high": credible.high}
    return Estimate(n=n, estimate=posterior_probability_above(draws, null), detail={"mean_credible": ends}, **common)
