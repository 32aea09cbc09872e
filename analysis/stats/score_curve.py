"""The confidence curve of a mean of bounded values whose variance depends on the mean."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray
from analysis.stats.confidence import TCurve
from analysis.stats.quick_score import HALVINGS, few_clusters_factor, score_limits
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
    answers with a constant design effect are. With se, 0/1 answers and many clusters this is Wilson's score interval of the
    effective number of answers, with t for the normal quantile, joined with the t interval. With few clusters, it is wider
    near the ends of the scale, by `quick_score.few_clusters_factor`.

    References
    ----------
    Wilson 1927, Probable inference, the law of succession, and statistical inference; Kott and Carr 1997, Developing an
    estimation strategy for a pesticide data program (effective numbers in Wilson's interval).

    Examples
    --------
    >>> near_the_end, plain = ScoreCurve(0.96, 0.02, 19.0, (0.0, 1.0)), TCurve(0.96, 0.02, 19.0, (0.0, 1.0))
    >>> round(near_the_end.interval(0.95).low, 3), round(plain.interval(0.95).low, 3)
    (0.883, 0.918)
    >>> near_the_end.se_at(0.5) > near_the_end.se_at(0.9) > plain.se_at(0.9)
    True
    """

    least_se: float = 0.0

    def se_at(self, null: float) -> float:
        """Return the standard error that tests `null`."""
        return float(score_se(null, self.estimate, self.se, max(self.se, self.least_se), self.df, self.bounds))

    def interval(self, level: float) -> Interval:
        """Return the means that the test does not refute."""
        plain = TCurve.interval(self, level)
        if self.bounds is None:
            return plain
        quantile = float(special.stdtrit(self.df, (1 + level) / 2))
        low, high = score_limits(self.estimate, quantile * max(self.se, self.least_se), self.df, self.bounds)
        return replace(plain, low=min(plain.low, low), high=max(plain.high, high))


def score_se(
    null: float,
    estimate: float | FloatArray,
    se: float | FloatArray,
    scaled_se: float | FloatArray,
    df: float | FloatArray,
    bounds: tuple[float, float] | None,
) -> float | FloatArray:
    """Standard error that tests the mean `null`: `se`, or `scaled_se` brought to that mean if this is larger.

    Parameters
    ----------
    null : float
        The tested mean.
    estimate, se, scaled_se, df : float or ndarray
        The estimate within the bounds, its standard error, the one that changes with the mean, and the degrees of freedom.
    bounds : tuple[float, float] or None
        Ends of the scale; `se` without them.

    Returns
    -------
    float or ndarray
        The standard error.

    Examples
    --------
    >>> round(float(score_se(0.5, 0.9, 0.03, 0.03, 9, (0.0, 1.0))), 3), score_se(0.5, 0.9, 0.03, 0.03, 9, None)
    (0.05, 0.03)
    """
    if bounds is None or not bounds[0] < null < bounds[1]:
        return se
    room = (null - bounds[0]) * (bounds[1] - null)
    own = (estimate - bounds[0]) * (bounds[1] - estimate)
    at_null = scaled_se * np.sqrt(room / own) * few_clusters_factor(null, np.maximum(2.0, df), bounds)
    return np.asarray(np.maximum(se, at_null))


def score_limits_of_runs(
    estimate: FloatArray, reach: FloatArray, df: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper ends of `quick_score.score_limits` for each of many studies.

    `estimate`, `reach` and `df` are as there, one for each study.

    >>> low, high = score_limits_of_runs(np.array([0.9]), np.array([1.96 * 0.03]), np.array([99.0]), (0.0, 1.0))
    >>> low.round(3), high.round(3)
    (array([0.824]), array([0.946]))
    """
    k = reach**2 / ((estimate - bounds[0]) * (bounds[1] - estimate))
    df = np.maximum(2.0, df)
    ends = []
    for end in bounds:
        refuted, kept = np.full(len(estimate), float(end)), estimate
        for _ in range(HALVINGS):
            middle = (refuted + kept) / 2
            factor = few_clusters_factor(middle, df, bounds)
            is_kept = (estimate - middle) ** 2 <= k * (middle - bounds[0]) * (bounds[1] - middle) * factor**2
            refuted, kept = np.where(is_kept, refuted, middle), np.where(is_kept, middle, kept)
        ends.append(kept)
    return ends[0], ends[1]
