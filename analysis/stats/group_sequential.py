"""Boundaries of group-sequential tests: a few planned looks at a study without a larger error.

At most five looks are planned at given numbers of units. At each one the p-value is compared with a boundary, so that
the probability of ever rejecting a true null is `significance`. O'Brien and Fleming's boundaries are strict early and
cost almost nothing at the end, Pocock's are nearly constant. They come from the spending functions of Lan and DeMets,
so the looks need not be equally spaced.

References: O'Brien and Fleming 1979, Pocock 1977, Lan and DeMets 1983, Jennison and Turnbull 2000 (chapters 2, 7 and
19); the numerical integration is that of Armitage, McPherson and Rowe 1969.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats.arrays import FloatArray, vector
from analysis.stats.quadrature import gauss_legendre
from analysis.stats.results import Record

MAX_LOOKS = 5
SHAPES = ("obrien_fleming", "pocock")
# A boundary that is never crossed: the spending function allows almost nothing at a very early look.
NEVER = 12.0
NODES = 128


@dataclass(frozen=True, slots=True)
class GroupSequentialDesign(Record):
    """Boundaries for K planned looks, two-sided and symmetric.

    `fractions` (K,) is the information at each look; the last is 1. `z` (K,) is the boundary of |Z|, `nominal` (K,) the
    two-sided p at which a look rejects. `spent` (K,) is the probability of having rejected a true null by then.
    """

    shape: str
    significance: float
    fractions: FloatArray
    z: FloatArray
    nominal: FloatArray
    spent: FloatArray


def group_sequential_design(
    fractions: int | npt.ArrayLike,
    *,
    shape: str = "obrien_fleming",
    significance: float = 0.05,
) -> GroupSequentialDesign:
    """Boundaries for planned looks at fractions of the information.

    Parameters
    ----------
    fractions : int or array_like
        Fractions of the planned information, ascending to 1, or the number of equally spaced looks; at most five
        looks.
    shape : {"obrien_fleming", "pocock"}, default 'obrien_fleming'
        Shape of the boundaries.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    GroupSequentialDesign
        The boundaries.

    Raises
    ------
    ValueError
        If an option or the fractions are not allowed.

    Notes
    -----
    Each look may reject until the total is alpha(t) per side: 2 - 2 Phi(z_{alpha/2} / sqrt(t)) or alpha ln(1 + (e - 1) t),
    with alpha half of `significance`.

    Examples
    --------
    >>> group_sequential_design(5).z.round(3).tolist()
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    if shape not in SHAPES:
        raise ValueError(f"shape: {shape!r} is not one of {', '.join(SHAPES)}")
    if not 0 < significance < 0.5:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and .5")
    return _design(tuple(_times(fractions).tolist()), shape, significance)


def first_crossing_probabilities(fractions: npt.ArrayLike, z: npt.ArrayLike) -> FloatArray:
    """Compute the probability of first crossing |Z_k| >= z_k at each look, under the null.

    `fractions` and `z` are the fraction of the information and the boundary at each look. The sum of the probabilities
    is the error of all looks together.

    >>> first_crossing_probabilities([0.5, 1.0], [2.797, 1.977]).sum().round(4)
    np.float64(0.05)
    """
    times, bounds = vector(fractions, "fractions"), vector(z, "z")
    if times.shape != bounds.shape:
        raise ValueError(f"z: {len(bounds)} boundaries where there are {len(times)} looks")
    probabilities, state = [], _Continuing()
    for time, bound in zip(times, bounds, strict=True):
        probabilities.append(state.leaving(float(time), float(bound)))
        state = state.after(float(time), float(bound))
    return np.asarray(probabilities)


class _Continuing:
    """The density of Z among studies that have not stopped, at the nodes of a Gauss-Legendre rule."""

    def __init__(self) -> None:
        self.time = 0.0
        # Before the first look the score is exactly 0: one node has all the mass.
        self.scores, self.mass = np.zeros(1), np.ones(1)

    def leaving(self, time: float, bound: float) -> float:
        """Return the probability of |Z| >= bound at `time`."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        out = special.ndtr((-bound * root - self.scores) / sd) + special.ndtr((self.scores - bound * root) / sd)
        return float(np.sum(self.mass * out))

    def after(self, time: float, bound: float) -> "_Continuing":
        """Return the density at `time` of the studies that do not stop then."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        nodes, weights = gauss_legendre(NODES)
        # The density vanishes far from 0, so an infinite boundary needs no wide rule.
        half = min(bound, 9.0) * root
        following = _Continuing()
        following.time, following.scores = time, nodes * half
        distance = following.scores[:, None] - self.scores[None, :]
        density = np.exp(-0.5 * (distance / sd) ** 2) / (sd * math.sqrt(2 * math.pi)) @ self.mass
        following.mass = density * weights * half
        return following


@lru_cache(maxsize=64)
def _design(fractions: tuple[float, ...], shape: str, significance: float) -> GroupSequentialDesign:
    times = np.asarray(fractions)
    z = _spending_boundaries(times, 2 * _spent(times, shape, significance / 2))
    nominal, spent = np.asarray(2 * special.ndtr(-z)), np.cumsum(first_crossing_probabilities(times, z))
    for shared in (times, z, nominal, spent):
        shared.flags.writeable = False
    return GroupSequentialDesign(shape, significance, times, z, nominal, spent)


def _times(fractions: int | npt.ArrayLike) -> FloatArray:
    if isinstance(fractions, (int, np.integer)):
        if not 1 <= fractions <= MAX_LOOKS:
            raise ValueError(f"fractions: {fractions} looks; at least one and at most {MAX_LOOKS} are planned")
        return np.arange(1, int(fractions) + 1) / int(fractions)
    times = vector(fractions, "fractions")
    if not 1 <= len(times) <= MAX_LOOKS:
        raise ValueError(f"fractions: {len(times)} looks; at least one and at most {MAX_LOOKS} are planned")
    if np.isnan(times).any() or times[0] <= 0 or np.any(np.diff(times) <= 0) or abs(times[-1] - 1) > 1e-9:
        raise ValueError("fractions: must ascend from above 0 to 1")
    return times


def _spent(times: FloatArray, shape: str, one_sided: float) -> FloatArray:
    """Return the error that one side may have spent by each time."""
    if shape == "pocock":
        return np.asarray(one_sided * np.log1p((math.e - 1) * times))
    quantile = float(special.ndtri(1 - one_sided / 2))
    return np.asarray(2 * special.ndtr(-quantile / np.sqrt(times)))


def _spending_boundaries(times: FloatArray, spent: FloatArray) -> FloatArray:
    z, state, before = [], _Continuing(), 0.0
    for time, total in zip(times.tolist(), spent.tolist(), strict=True):
        allowed = total - before

        def excess(bound: float, time: float = time, allowed: float = allowed, state: _Continuing = state) -> float:
            return state.leaving(time, bound) - allowed

        bound = NEVER if excess(NEVER) >= 0 else float(optimize.brentq(excess, 0.0, NEVER, xtol=1e-10))
        z.append(bound)
        state = state.after(time, bound)
        before = total
    return np.asarray(z)
