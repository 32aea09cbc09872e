"""Approximate power and interval of bets that are checked after every person, without numpy.

The logarithm of the wealth of `betting.log_wealth` is a random walk. Its mean and variance follow from the stakes, and the chance
that it ever reaches the threshold from the first passage of a Brownian motion with this drift.
"""

import math
from statistics import NormalDist

# The cap of `betting.log_wealth`, which loads numpy.
STAKE_CAP = 0.5
# Each of the first people has a node of the sum; later ones share nodes that are this factor apart.
SINGLE, STEP = 30, 1.15
_NORMAL = NormalDist()


def bets_power(mean: float, variance: float, people: int, null: float, level: float) -> float:
    """Return the chance that bets refute the null after some person.

    `mean` and `variance` are those of one person's mean, in 0..1, `people` is the largest number of people, and `level`
    is the significance level of all checks together.

    >>> [round(bets_power(0.67, 0.03, n, 0.5, 0.05), 1) for n in (12, 24, 48)]
    [0.0, 0.4, 1.0]
    """
    return min(1.0, sum(one_sided_power(mean, variance, people, null, level, sign) for sign in (1, -1)))


def one_sided_power(mean: float, variance: float, people: int, null: float, level: float, sign: int) -> float:
    """Return the chance that bets on larger means (`sign` 1) or on smaller ones (-1) refute the null.

    >>> round(one_sided_power(0.8, 0.1, 24, 0.5, 0.05, 1), 2) > round(one_sided_power(0.6, 0.1, 24, 0.5, 0.05, 1), 2)
    True
    """
    growth, spread = _log_wealth(sign * (mean - null), variance, people, null if sign > 0 else 1 - null, level)
    needed, sd = _threshold(level), math.sqrt(max(spread, 1e-12))
    reflected = 2 * growth * needed / max(spread, 1e-12)
    # Where the growth is large against its spread, the second term is a product of a huge and a tiny number, and is 0.
    late = math.exp(reflected) * _NORMAL.cdf((-needed - growth) / sd) if reflected < 100 else 0.0
    return min(1.0, _NORMAL.cdf((growth - needed) / sd) + late)


def bets_half_width(mean: float, variance: float, people: int, level: float) -> float:
    """Return half the expected width of the interval after all people: values that the bets do not refute.

    >>> round(bets_half_width(0.6, 0.03, 36, 0.05), 1), round(bets_half_width(0.6, 0.03, 3600, 0.05), 2)
    (0.1, 0.01)
    """
    return (_reach(mean, variance, people, level) + _reach(1 - mean, variance, people, level)) / 2


def _reach(mean: float, variance: float, people: int, level: float) -> float:
    """Return how far the interval reaches below the mean."""
    low, high = 0.0, mean
    for _ in range(14):
        middle = (low + high) / 2
        is_refuted = _log_wealth(middle, variance, people, mean - middle, level)[0] >= _threshold(level)
        low, high = (low, middle) if is_refuted else (middle, high)
    return high


def _threshold(level: float) -> float:
    """Return the needed logarithm of one of the two bets, each of which has half of the stake."""
    return math.log(2 / level)


def _log_wealth(distance: float, variance: float, people: int, null: float, level: float) -> tuple[float, float]:
    """Return the mean and the variance of the log wealth after all people, of bets on means above the null."""
    growth = spread = 0.0
    before = 0
    while before < people:
        after = before + 1 if before < SINGLE else min(people, math.ceil(before * STEP))
        t = (before + 1 + after) / 2
        running = (0.25 + (t - 1) * variance) / t
        stake = min(STAKE_CAP / max(null, 1e-9), math.sqrt(2 * math.log(2 / level) / (running * t * math.log(t + 1))))
        gain, noise = max(1 + stake * distance, 1e-9), stake**2 * variance
        growth += (after - before) * (math.log(gain) - noise / (2 * gain**2))
        spread += (after - before) * noise / gain**2
        before = after
    return growth, spread
