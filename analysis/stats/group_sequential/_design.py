"""Boundaries of group-sequential designs, and the probabilities of crossing them."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats.arrays import FloatArray, validate_finite, vector
from analysis.stats.quadrature import gauss_legendre
from analysis.stats.results import Record

MAX_LOOKS = 5
SHAPES = ("obrien_fleming", "pocock")
KINDS = ("classical", "spending")
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
    kind: str
    significance: float
    fractions: FloatArray
    z: FloatArray
    nominal: FloatArray
    spent: FloatArray


def group_sequential_design(
    fractions: int | npt.ArrayLike,
    *,
    shape: str = "obrien_fleming",
    kind: str = "spending",
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
    kind : {"spending", "classical"}, default 'spending'
        "classical" needs equal spacing.
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
    "classical": |Z_k| >= C sqrt(K / k) (O'Brien and Fleming) or C (Pocock), with C such that all looks together
    reject a true null with probability `significance`. "spending": each look may reject until the total is alpha(t)
    per side: 2 - 2 Phi(z_{alpha/2} / sqrt(t)) or alpha ln(1 + (e - 1) t), with alpha half of `significance`.

    Examples
    --------
    >>> group_sequential_design(3, kind="classical").z.round(3).tolist()
    [3.471, 2.454, 2.004]
    >>> group_sequential_design(3, kind="classical", shape="pocock").z.round(3).tolist()
    [2.289, 2.289, 2.289]
    >>> group_sequential_design(5).z.round(3).tolist()
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    if shape not in SHAPES:
        raise ValueError(f"shape: {shape!r} is not one of {', '.join(SHAPES)}")
    if kind not in KINDS:
        raise ValueError(f"kind: {kind!r} is not one of {', '.join(KINDS)}")
    if not 0 < significance < 0.5:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and .5")
    return _design(tuple(_times(fractions).tolist()), shape, kind, significance)


def first_crossing_probabilities(fractions: npt.ArrayLike, z: npt.ArrayLike, *, drift: float = 0.0) -> FloatArray:
    """Probability of first crossing |Z_k| >= z_k at each look.

    Parameters
    ----------
    fractions, z : array_like, shape (K,)
        Fraction of the information, and boundary, at each look.
    drift : float, default 0.0
        Mean of Z at the last look, effect / sd sqrt(n) for a mean over n units; 0 under the null.

    Returns
    -------
    ndarray of float, shape (K,)
        The probabilities; their sum is the power. n times the expected fraction at the stop is the expected number of
        units.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> first_crossing_probabilities([0.5, 1.0], [2.797, 1.977]).sum().round(4)
    np.float64(0.05)
    """
    times, bounds = vector(fractions, "fractions"), vector(z, "z")
    validate_finite(drift=drift)
    if times.shape != bounds.shape:
        raise ValueError(f"z: {len(bounds)} boundaries where there are {len(times)} looks")
    probabilities, state = [], _Continuing(drift)
    for time, bound in zip(times, bounds, strict=True):
        probabilities.append(state.leaving(float(time), float(bound)))
        state = state.after(float(time), float(bound))
    return np.asarray(probabilities)


class _Continuing:
    """The density of Z among studies that have not stopped, at the nodes of a Gauss-Legendre rule."""

    def __init__(self, drift: float) -> None:
        self.drift = drift
        self.time = 0.0
        # Before the first look the score is exactly 0: one node has all the mass.
        self.scores, self.mass = np.zeros(1), np.ones(1)

    def leaving(self, time: float, bound: float) -> float:
        """Return the probability of |Z| >= bound at `time`."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        ahead = self.scores + self.drift * (time - self.time)
        out = special.ndtr((-bound * root - ahead) / sd) + special.ndtr((ahead - bound * root) / sd)
        return float(np.sum(self.mass * out))

    def after(self, time: float, bound: float) -> "_Continuing":
        """Return the density at `time` of the studies that do not stop then."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        nodes, weights = gauss_legendre(NODES)
        # The density vanishes far from the drift, so an infinite boundary needs no wide rule.
        low = max(-bound * root, self.drift * time - 9 * root)
        high = min(bound * root, self.drift * time + 9 * root)
        following = _Continuing(self.drift)
        following.time = time
        if high <= low:
            following.scores, following.mass = np.zeros(1), np.zeros(1)
            return following
        following.scores = low + (nodes + 1) / 2 * (high - low)
        distance = following.scores[:, None] - self.scores[None, :] - self.drift * (time - self.time)
        density = np.exp(-0.5 * (distance / sd) ** 2) / (sd * math.sqrt(2 * math.pi)) @ self.mass
        following.mass = density * weights * (high - low) / 2
        return following


@lru_cache(maxsize=64)
def _design(fractions: tuple[float, ...], shape: str, kind: str, significance: float) -> GroupSequentialDesign:
    times = np.asarray(fractions)
    n_looks = len(times)
    if kind == "classical":
        if not np.allclose(times, np.arange(1, n_looks + 1) / n_looks, atol=1e-9):
            raise ValueError("fractions: the classical boundaries are for equally spaced looks; use spending")
        form = 1 / np.sqrt(times) if shape == "obrien_fleming" else np.ones(n_looks)

        def excess(constant: float) -> float:
            return float(np.sum(first_crossing_probabilities(times, constant * form))) - significance

        z = float(optimize.brentq(excess, 0.1, NEVER, xtol=1e-10)) * form
    else:
        z = _spending_boundaries(times, 2 * _spent(times, shape, significance / 2))
    nominal, spent = np.asarray(2 * special.ndtr(-z)), np.cumsum(first_crossing_probabilities(times, z))
    for shared in (times, z, nominal, spent):
        shared.flags.writeable = False
    return GroupSequentialDesign(shape, kind, significance, times, z, nominal, spent)


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
    z, state, before = [], _Continuing(0.0), 0.0
    for time, total in zip(times.tolist(), spent.tolist(), strict=True):
        allowed = total - before

        def excess(bound: float, time: float = time, allowed: float = allowed, state: _Continuing = state) -> float:
            return state.leaving(time, bound) - allowed

        bound = NEVER if excess(NEVER) >= 0 else float(optimize.brentq(excess, 0.0, NEVER, xtol=1e-10))
        z.append(bound)
        state = state.after(time, bound)
        before = total
    return np.asarray(z)
