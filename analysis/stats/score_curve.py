"""The confidence curve of a mean of bounded values whose variance depends on the mean."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray
from analysis.stats.confidence import TCurve
from analysis.stats.results import Interval


@dataclass(frozen=True, slots=True)
class ScoreCurve(TCurve):
    """The confidence curve of a t distribution whose standard error belongs to the tested mean, for bounded values.

    Near an end of the scale the standard error depends on the mean: 97 % of few answers vary less than 85 % of them. A mean
    m is tested with the larger of `se` and of the standard error that the values would have if their mean were m.

    Attributes
    ----------
    least_se : float
        Standard error of the mean if all values were independent. Under a tested mean it is not smaller in proportion.

    Notes
    -----
    A variance under the mean m is in proportion to (m - low) (high - m), as that of independent shares and that of
    answers with a constant design effect are. With se and 0/1 answers this is Wilson's score interval of the effective number
    of answers, with t for the normal quantile, joined with the t interval.

    References
    ----------
    Wilson 1927, Probable inference, the law of succession, and statistical inference; Kott and Carr 1997, Developing an
    estimation strategy for a pesticide data program (effective numbers in Wilson's interval).

    Examples
    --------
    >>> near_the_end, plain = ScoreCurve(0.96, 0.02, 19.0, (0.0, 1.0)), TCurve(0.96, 0.02, 19.0, (0.0, 1.0))
    >>> round(near_the_end.interval(0.95).low, 3), round(plain.interval(0.95).low, 3)
    (0.894, 0.918)
    >>> near_the_end.se_at(0.5) > near_the_end.se_at(0.9) > plain.se_at(0.9)
    True
    """

    least_se: float = 0.0

    def se_at(self, null: float) -> float:
        """Return the standard error that tests `null`."""
        return float(score_se(null, self.estimate, self.se, max(self.se, self.least_se), self.bounds))

    def interval(self, level: float) -> Interval:
        """Return the means that the test does not refute."""
        plain = TCurve.interval(self, level)
        if self.bounds is None:
            return plain
        quantile = float(special.stdtrit(self.df, (1 + level) / 2))
        low, high = score_limits(self.estimate, quantile * max(self.se, self.least_se), self.bounds)
        return replace(plain, low=min(plain.low, float(low)), high=max(plain.high, float(high)))


def score_se(
    null: float,
    estimate: float | FloatArray,
    se: float | FloatArray,
    scaled_se: float | FloatArray,
    bounds: tuple[float, float] | None,
) -> float | FloatArray:
    """Standard error that tests the mean `null`: `se`, or `scaled_se` brought to that mean if this is larger.

    Parameters
    ----------
    null : float
        The tested mean.
    estimate, se, scaled_se : float or ndarray
        The estimate within the bounds, its standard error, and the one that changes with the mean.
    bounds : tuple[float, float] or None
        Ends of the scale; `se` without them.

    Returns
    -------
    float or ndarray
        The standard error.

    Examples
    --------
    >>> round(float(score_se(0.5, 0.9, 0.03, 0.03, (0.0, 1.0))), 3), score_se(0.5, 0.9, 0.03, 0.03, None)
    (0.05, 0.03)
    """
    if bounds is None or not bounds[0] < null < bounds[1]:
        return se
    room = (null - bounds[0]) * (bounds[1] - null)
    return np.maximum(se, scaled_se * np.sqrt(room / ((estimate - bounds[0]) * (bounds[1] - estimate))))


def score_limits(
    estimate: float | FloatArray, reach: float | FloatArray, bounds: tuple[float, float]
) -> tuple[float | FloatArray, float | FloatArray]:
    """Ends of the means m with |estimate - m| at most `reach`, where the reach changes with the variance under m.

    Parameters
    ----------
    estimate, reach : float or ndarray
        The estimate strictly within the bounds, and the reach at it: a quantile times a standard error.
    bounds : tuple[float, float]
        Ends of the scale.

    Returns
    -------
    tuple
        The lower and the upper end, within the bounds.

    Examples
    --------
    >>> low, high = score_limits(0.9, 1.96 * 0.03, (0.0, 1.0))  # Wilson's interval of 90 of 100
    >>> round(float(low), 3), round(float(high), 3)
    (0.826, 0.945)
    """
    low, high = bounds
    k = reach**2 / ((estimate - low) * (high - estimate))
    # (estimate - m)^2 = k (m - low) (high - m)
    middle = (estimate + k * (low + high) / 2) / (1 + k)
    half = np.sqrt(np.maximum(0.0, middle**2 - (estimate**2 + k * low * high) / (1 + k)))
    # Rounding can put an end outside the scale.
    return np.maximum(low, middle - half), np.minimum(high, middle + half)
