"""Group-sequential tests: a few planned looks at a study without a larger error.

The unit is the annotator, with one mean each, in the order of their claims. At most five looks are planned at
given numbers of units. Each uses Student's t test. Its p-value is compared with a boundary, so that the
probability of ever rejecting a true null is `significance`. O'Brien and Fleming's boundaries are strict early and
cost almost nothing at the end, Pocock's are constant. The classical boundaries need equally spaced looks; the
spending functions of Lan and DeMets do not.

References: O'Brien and Fleming 1979, Pocock 1977, Lan and DeMets 1983, Jennison and Turnbull 2000 (chapters 2, 7,
8, 19); the numerical integration is that of Armitage, McPherson and Rowe 1969.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats.arrays import MIN_SPREAD, FloatArray, validate_finite, validate_within_bounds, vector
from analysis.stats.quadrature import gauss_legendre
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, ResultWarning

MAX_LOOKS = 5
SHAPES = ("obrien_fleming", "pocock")
KINDS = ("classical", "spending")
VERDICTS = ("a_better", "b_better", "inconclusive", "budget_exhausted")
# A boundary that is never crossed: the spending function allows almost nothing at a very early look.
NEVER = 12.0
NODES = 128


@dataclass(frozen=True, slots=True)
class GroupSequentialDesign(Record):
    """Boundaries for K planned looks, two-sided and symmetric.

    `fractions` (K,) of the information at each look, the last 1; `z` (K,) the boundary of |Z|; `nominal` (K,) the
    two-sided p at which a look rejects; `spent` (K,) the probability of having rejected a true null by then.
    """

    shape: str
    kind: str
    significance: float
    fractions: FloatArray
    z: FloatArray
    nominal: FloatArray
    spent: FloatArray


@dataclass(frozen=True, slots=True)
class Look(Record):
    """One look: the units it saw, t and its p, the boundary on that p, and the repeated confidence interval.

    `statistic` and what follows from it are None where the values did not vary; such a look cannot reject.
    """

    n: int
    estimate: float
    statistic: float | None
    pvalue: float | None
    boundary_pvalue: float
    is_crossed: bool
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class GroupSequentialResult(Record):
    """A group-sequential comparison as far as it has come: the looks made, the verdict, and the estimate at its last.

    The estimate's test has the stagewise p-value, and is there only once the study has stopped; its interval is the
    repeated one, which holds at every look. `n_overrun` units came after the stop.
    """

    estimate: Estimate
    verdict: str | None
    stopped_at: int | None
    n_overrun: int
    looks: tuple[Look, ...]
    design: GroupSequentialDesign


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
        raise ValueError(f"shape: {shape!r} is none of {', '.join(SHAPES)}")
    if kind not in KINDS:
        raise ValueError(f"kind: {kind!r} is none of {', '.join(KINDS)}")
    if not 0 < significance < 0.5:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and .5")
    return _design(tuple(_times(fractions).tolist()), shape, kind, significance)


def first_crossing_probabilities(fractions: npt.ArrayLike, z: npt.ArrayLike, *, drift: float = 0.0) -> FloatArray:
    """Probability of first crossing |Z_k| >= z_k at each look; shape (K,).

    `drift` is the mean of Z at the last look, effect / sd sqrt(n) for a mean over n units; 0 under the null. The sum
    is the power. n times the expected fraction at the stop is the expected number of units.

    >>> first_crossing_probabilities([0.5, 1.0], [2.797, 1.977]).sum().round(4)
    np.float64(0.05)
    """
    times, bounds = vector(fractions, "fractions"), vector(z, "z")
    validate_finite(drift=drift)
    if times.shape != bounds.shape:
        raise ValueError(f"z: {len(bounds)} boundaries where there are {len(times)} looks")
    found, state = [], _Continuing(drift)
    for time, bound in zip(times, bounds, strict=True):
        found.append(state.leaving(float(time), float(bound)))
        state = state.after(float(time), float(bound))
    return np.asarray(found)


def group_sequential_test(
    values: npt.ArrayLike,
    looks: npt.ArrayLike,
    *,
    null: float = 0.5,
    shape: str = "obrien_fleming",
    significance: float = 0.05,
    bounds: tuple[float, float] = (0.0, 1.0),
    analysis: str = "choice.group_sequential",
    estimand: str = "annotator-weighted mean of P[A chosen] over the items shown",
    unit: str = "annotator",
) -> GroupSequentialResult:
    """Student's t test on annotators' means at planned looks, which stops at the first crossing.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per annotator in claim order (see `sequential.annotator_units`), as many as exist so far.
    looks : array_like, shape (K,)
        Planned numbers of units, the last one the size of the study; at most five.
    null : float, default 0.5
        Value of the null hypothesis.
    shape : {"obrien_fleming", "pocock"}, default 'obrien_fleming'
        Shape of the boundaries.
    significance : float, default 0.05
        Significance level of the test.
    bounds : tuple[float, float], default (0.0, 1.0)
        Ends of the scale. The interval is clipped to them.
    analysis, estimand, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    GroupSequentialResult
        The looks, the verdict (a_better, b_better, inconclusive or budget_exhausted) and the estimate.

    Raises
    ------
    ValueError
        If the looks are not allowed, or a value is missing or outside `bounds`.

    Notes
    -----
    A look rejects if the two-sided p-value is at most 2 Phi(-z_k). The p-value is stagewise: under the null, the
    probability of stopping before this look or of passing |z| at it. The interval is the repeated one, mean -/+
    t(nominal) se: all looks together cover with probability 1 - significance. The mean at an early stop overestimates
    the effect (warning `optional_stopping`).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> result = group_sequential_test(rng.normal(0.6, 0.15, 200).clip(0, 1), [40, 80, 120, 160, 200])
    >>> result.verdict, result.stopped_at, result.n_overrun
    ('a_better', 80, 120)
    """
    series = vector(values, "values")
    missing = np.flatnonzero(np.isnan(series))
    if len(missing):
        raise ValueError(f"values: row {int(missing[0])} is missing; a series has no gaps, see annotator_units")
    validate_within_bounds(series, bounds, "values")
    planned = np.asarray(looks)
    if planned.ndim != 1 or len(planned) == 0 or np.any(planned != np.round(planned)):
        raise ValueError("looks: whole numbers of units, at least one")
    if planned[0] < 2 or np.any(np.diff(planned) <= 0):
        raise ValueError("looks: must ascend from at least two units")
    plan = group_sequential_design(planned / planned[-1], shape=shape, significance=significance)
    made: list[Look] = []
    for n, nominal in zip(planned.tolist(), plan.nominal.tolist(), strict=True):
        if n > len(series) or (made and made[-1].is_crossed):
            break
        made.append(_look(series[: int(n)], null, nominal, significance, bounds))
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "settings": {
            "null": null,
            "shape": shape,
            "kind": "spending",
            "significance": significance,
            "looks": planned,
            "bounds": bounds,
        },
    }
    if not made:
        n = len(series)
        status, reason = (
            ("no_data", "no unit has entered yet") if n == 0 else ("not_applicable", "before the first look")
        )
        estimate = Estimate(n=n, n_rows=n, status=status, reason=reason, **common)
        return GroupSequentialResult(estimate, None if n == 0 else "inconclusive", None, 0, (), plan)
    last = made[-1]
    is_last = len(made) == len(planned)
    has_stopped = last.is_crossed or is_last
    verdict = "inconclusive" if not is_last else "budget_exhausted"
    if last.is_crossed:
        verdict = "a_better" if last.estimate > null else "b_better"
    n_overrun = len(series) - last.n if has_stopped else 0
    detail = {
        "verdict": verdict,
        "look": len(made),
        "n_looks": len(planned),
        "boundary_pvalue": last.boundary_pvalue,
        "nominal_pvalue": last.pvalue,
        "n_overrun": n_overrun,
    }
    common |= {"n": last.n, "n_rows": last.n, "estimate": last.estimate, "detail": detail}
    if last.statistic is None or last.pvalue is None:
        estimate = Estimate(status="zero_variance", reason="all values are equal", **common)
    else:
        test = None
        if has_stopped:
            test = HypothesisTest(
                name="group_sequential_t",
                null=null,
                statistic=last.statistic,
                df=last.n - 1,
                pvalue=_stagewise_pvalue(plan, len(made), last.pvalue),
            )
        warned = last.is_crossed and not is_last
        warnings = (ResultWarning("optional_stopping", "info", {"at": last.n}),) if warned else ()
        estimate = Estimate(interval=last.interval, test=test, warnings=warnings, **common)
    return GroupSequentialResult(estimate, verdict, last.n if last.is_crossed else None, n_overrun, tuple(made), plan)


class _Continuing:
    """The density of Z among studies that have not stopped, at the nodes of a Gauss-Legendre rule."""

    def __init__(self, drift: float) -> None:
        self.drift = drift
        self.time = 0.0
        # Before the first look the score is exactly 0: one node has all the mass.
        self.scores, self.mass = np.zeros(1), np.ones(1)

    def leaving(self, time: float, bound: float) -> float:
        """The probability of |Z| >= bound at `time`."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        ahead = self.scores + self.drift * (time - self.time)
        out = special.ndtr((-bound * root - ahead) / sd) + special.ndtr((ahead - bound * root) / sd)
        return float(np.sum(self.mass * out))

    def after(self, time: float, bound: float) -> "_Continuing":
        """The same, of those who go on from `time`."""
        root, sd = math.sqrt(time), math.sqrt(time - self.time)
        nodes, weights = gauss_legendre(NODES)
        # Nothing lives far from the drift, so an infinite boundary needs no wide rule.
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
    looks = len(times)
    if kind == "classical":
        if not np.allclose(times, np.arange(1, looks + 1) / looks, atol=1e-9):
            raise ValueError("fractions: the classical boundaries are for equally spaced looks; use spending")
        form = 1 / np.sqrt(times) if shape == "obrien_fleming" else np.ones(looks)

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


def _look(seen: FloatArray, null: float, nominal: float, significance: float, bounds: tuple[float, float]) -> Look:
    n, mean = len(seen), float(np.mean(seen))
    sd = float(np.std(seen, ddof=1))
    if sd < MIN_SPREAD:
        return Look(n, mean, None, None, nominal, False, None)
    se = sd / math.sqrt(n)
    statistic = (mean - null) / se
    pvalue = min(1.0, 2 * float(special.stdtr(n - 1, -abs(statistic))))
    half = -float(special.stdtrit(n - 1, nominal / 2)) * se
    low, high = mean - half, mean + half
    interval = Interval(
        1 - significance,
        max(bounds[0], low),
        min(bounds[1], high),
        "repeated_t",
        low < bounds[0] or high > bounds[1],
    )
    return Look(n, mean, statistic, pvalue, nominal, pvalue <= nominal, interval)


def _stagewise_pvalue(plan: GroupSequentialDesign, look: int, nominal: float) -> float:
    """Return the null probability of stopping before this look, or of a nominal p-value this small at it."""
    bounds = plan.z[:look].copy()
    bounds[-1] = min(40.0, -float(special.ndtri(nominal / 2))) if nominal > 0 else 40.0
    return min(1.0, float(np.sum(first_crossing_probabilities(plan.fractions[:look], bounds))))
