"""Means of an answer and of its square, for a perceived difference that is normal. They are approximate and need no numpy."""

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

from analysis.stats.plan_inputs import KINDS, Variation

# Points of a mark's score for one unit of the perceived difference.
MARK_POINTS = 10.0
_NORMAL = NormalDist()
# Of a normal variable: from its mean and standard deviation.
Moment = Callable[[float, float], float]
# Nodes of a standard normal variable, and their weights.
NODES = tuple(-5 + 0.25 * k for k in range(41))
_RAW = tuple(math.exp(-node * node / 2) for node in NODES)
WEIGHTS = tuple(weight / sum(_RAW) for weight in _RAW)


def scale_cuts(points: int) -> tuple[float, ...]:
    """Return where the perceived quality is cut into points, one unit apart and symmetric.

    >>> scale_cuts(5)
    (-1.5, -0.5, 0.5, 1.5)
    """
    return tuple(k - points / 2 + 1 for k in range(points - 1))


def answer_moments(protocol: str, points: int, variation: Variation) -> tuple[Moment, Moment]:
    """Return the means of an answer and of its square, as functions of the mean perceived difference and its standard deviation.

    The standard deviation is that over people, over prompts or over both; the noise of an answer comes on top of it.

    >>> first, second = answer_moments("relative", 5, Variation())
    >>> round(first(1.0, 0.0), 2), round(second(0.0, 0.0), 2), round(first(1.0, 2.0), 2)
    (0.93, 1.02, 0.62)
    """
    sds = (variation.sd_quality_people, variation.sd_quality_prompts, variation.sd_quality)
    return _moments(KINDS[protocol], points, math.hypot(*sds))


def normal_mean(function: Callable[[float], float], mean: float, sd: float) -> float:
    """Return the mean of a function of a normal variable.

    >>> round(normal_mean(lambda value: value * value, 1.0, 2.0), 2)
    5.0
    """
    if sd == 0:
        return function(mean)
    return sum(weight * function(mean + sd * node) for node, weight in zip(NODES, WEIGHTS, strict=True))


@lru_cache(maxsize=64)
def _moments(kind: str, points: int, sd_quality: float) -> tuple[Moment, Moment]:
    """Return E[answer] and E[answer squared]. A normal probability of a normal variable is one of a wider distribution."""
    if kind == "preference":

        def preferred(s: float, sd: float) -> float:
            return _NORMAL.cdf(s / math.hypot(1, sd))

        return preferred, preferred
    if kind == "score":
        return lambda s, sd: MARK_POINTS * s, lambda s, sd: MARK_POINTS**2 * (s * s + sd * sd + 1) + 25 / 12
    cuts = scale_cuts(points)
    if kind == "point":
        lowest = -(points - 1) / 2

        def first(s: float, sd: float) -> float:
            wide = math.hypot(1, sd)
            return lowest + sum(_NORMAL.cdf((s - cut) / wide) for cut in cuts)

        def second(s: float, sd: float) -> float:
            wide = math.hypot(1, sd)
            above = [1.0, *(_NORMAL.cdf((s - cut) / wide) for cut in cuts), 0.0]
            return sum((lowest + k) ** 2 * (above[k] - above[k + 1]) for k in range(points))

        return first, second
    return _rating_moments(cuts, sd_quality)


def _rating_moments(cuts: tuple[float, ...], sd_quality: float) -> tuple[Moment, Moment]:
    """Return the moments of {1, .5, 0} for "x rated above y", from a table of 321 values."""
    step, end = 0.05, 8.0

    def rated_apart(d: float) -> float:
        """Return the probability that a cut lies between the two qualities q - d / 2 and q + d / 2."""
        total, before = 0.0, -math.inf
        for cut in cuts:
            low, high = max(before, cut - abs(d) / 2), cut + abs(d) / 2
            total += _NORMAL.cdf(high / sd_quality) - _NORMAL.cdf(low / sd_quality) if sd_quality else low < 0 <= high
            before = high
        return total

    grid = [k * step for k in range(-int(2 * end / step), int(2 * end / step) + 1)]
    apart = [rated_apart(d) for d in grid]
    first_of_d = [0.5 + math.copysign(p / 2, d) if d else 0.5 for p, d in zip(apart, grid, strict=True)]
    # 1 for above and .25 for a tie.
    second_of_d = [(f - (1 - p) / 2) + (1 - p) / 4 for f, p in zip(first_of_d, apart, strict=True)]

    def table(values: list[float]) -> Moment:
        def at_d(d: float) -> float:
            place = min(max((d + 2 * end) / step, 0.0), len(values) - 1.001)
            k = int(place)
            return values[k] + (place - k) * (values[k + 1] - values[k])

        smooth = [normal_mean(at_d, -end + k * step, 1.0) for k in range(int(2 * end / step) + 1)]

        def at_s(s: float) -> float:
            place = min(max((s + end) / step, 0.0), len(smooth) - 1.001)
            k = int(place)
            return smooth[k] + (place - k) * (smooth[k + 1] - smooth[k])

        return lambda s, sd: normal_mean(at_s, s, sd)

    return table(first_of_d), table(second_of_d)
