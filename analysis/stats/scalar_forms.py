"""The t distribution and the score test in closed form for single numbers, without numpy and scipy."""

import math
from statistics import NormalDist
from typing import Any

# The t distributions in closed form, without scipy, which would slow the start of every process.


_NORMAL = NormalDist()


def noncentral_t_above(value: float, noncentrality: float, df: float) -> float:
    """Return the approximate probability that a noncentral t is above `value`.

    >>> round(noncentral_t_above(2.0301, 3.0, 35), 2)
    0.83
    """
    spread = math.sqrt(1 + value * value / (2 * df))
    return 1 - _NORMAL.cdf((value * (1 - 1 / (4 * df)) - noncentrality) / spread)


def t_quantile(probability: float, df: float) -> float:
    """Return a quantile of Student's t distribution by its expansion in 1 / df (Abramowitz and Stegun 1964, 26.7.5).

    The error at .975 is below 0.2 % from three degrees of freedom.

    >>> round(t_quantile(0.975, 10), 3)
    2.228
    """
    z = _NORMAL.inv_cdf(probability)
    return (
        z
        + (z**3 + z) / (4 * df)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * df**4)
    )


# The test of a mean near an end of its scale, for single numbers: it needs no array, so pages can use it without
# numpy.
#
# `score_curve` says what it is.


# How much larger the standard error of a mean at an end of the scale is for one degree of freedom; see `few_clusters_factor`.
FEW_CLUSTERS = 4.0
# Halvings of the scale: limits are exact to about the last digit of a float.
HALVINGS = 55


def few_clusters_factor(mean: Any, df: Any, bounds: tuple[float, float]) -> Any:
    """Return the factor of the standard error that tests a mean near an end of the scale with few clusters.

    `mean` is the tested mean, within `bounds`, the ends of the scale; `df` are the degrees of freedom of the standard
    error, at least 2. `mean` and `df` may be arrays. The factor is 1 in the middle of the scale, and 1 + 4 / df at its
    ends. Where most clusters are near an end and few are far from it, a sample of few clusters often has none of those
    that are far. Then it varies too little, and no skewness shows it. The constant is from simulated studies (``python
    -m tools.proofs.calibration.shares``): it is the smallest whole number with which intervals cover shares of .75 to .97 in
    .94 of the studies for every size. It changes no test of the middle of the scale.

    >>> few_clusters_factor(0.5, 9, (0, 1)), round(few_clusters_factor(0.9, 9, (0, 1)), 2)
    (1.0, 1.28)
    """
    low, high = bounds
    return 1 + FEW_CLUSTERS * (1 - 4 * (mean - low) * (high - mean) / (high - low) ** 2) / df


def se_factor(null: float, mean: float, df: float, bounds: tuple[float, float]) -> float:
    """Return the standard error of a mean if it were `null`, as a multiple of the one at the mean.

    It is the square root of the ratio of (m - low) (high - m) at both means, times `few_clusters_factor`. The tested
    mean `null` and the observed `mean` are strictly within `bounds`. Degrees of freedom `df` less than 2 count as 2.

    >>> round(se_factor(0.5, 0.9, 9, (0, 1)), 3)
    1.667
    """
    low, high = bounds
    ratio = (null - low) * (high - null) / ((mean - low) * (high - mean))
    return math.sqrt(ratio) * float(few_clusters_factor(null, max(2.0, df), bounds))


def score_limits(mean: float, reach: float, df: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the means m with |mean - m| at most `reach` times `se_factor`, within `bounds`.

    `mean` is strictly within the bounds. `reach` is the reach at the mean: a quantile times a standard error with `df`
    degrees of freedom.

    >>> low, high = score_limits(0.9, 1.96 * 0.03, 99, (0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.824, 0.946)
    >>> low, high = score_limits(0.9, 1.96 * 0.03, math.inf, (0.0, 1.0))  # Wilson's interval of 90 of 100
    >>> round(low, 3), round(high, 3)
    (0.826, 0.945)
    """
    ends = []
    for refuted in bounds:
        kept = mean
        for _ in range(HALVINGS):
            middle = (refuted + kept) / 2
            if abs(mean - middle) <= reach * se_factor(middle, mean, df, bounds):
                kept = middle
            else:
                refuted = middle
        ends.append(kept)
    return ends[0], ends[1]
