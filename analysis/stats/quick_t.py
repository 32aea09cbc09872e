"""The t distributions in closed form, without scipy, which would slow the start of every process."""

import math
from statistics import NormalDist

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
