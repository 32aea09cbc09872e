"""The test at the planned looks, and its result."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import clusters
from analysis.stats.arrays import MIN_SPREAD, FloatArray, validate_within_bounds, vector
from analysis.stats.group_sequential._design import (
    GroupSequentialDesign,
    first_crossing_probabilities,
    group_sequential_design,
)
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, ResultWarning

VERDICTS = ("a_better", "b_better", "inconclusive", "budget_exhausted")


@dataclass(frozen=True, slots=True)
class Look(Record):
    """One look: its units, t and its p, the boundary on that p, and the repeated confidence interval.

    `statistic`, `pvalue` and `interval` are None if the values did not vary; such a look cannot reject.
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
    """The current state of a group-sequential comparison: the looks so far, the verdict, and the last estimate.

    The estimate has a test, with the stagewise p-value, only after the study has stopped. Its interval is the repeated
    one, which holds at every look. `n_overrun` units came after the stop.
    """

    estimate: Estimate
    verdict: str | None
    stopped_at: int | None
    n_overrun: int
    looks: tuple[Look, ...]
    design: GroupSequentialDesign


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
        One value per annotator in claim order (see `sequential.annotator_means_in_claim_order`), as many as exist so far.
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

    t is not valid if values hardly vary or are skewed, as at a ceiling: the warning `small_n_skew` then forbids a claim
    (`clusters.abs_skewness_of_clustered_mean` above .35); the e-processes of `sequential` are valid there. With fewer than six units
    there is no test.

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
        raise ValueError(
            f"values: row {int(missing[0])} is missing; a series has no gaps, see annotator_means_in_claim_order"
        )
    validate_within_bounds(series, bounds, "values")
    planned = np.asarray(looks)
    if planned.ndim != 1 or len(planned) == 0 or np.any(planned != np.round(planned)):
        raise ValueError("looks: whole numbers of units, at least one")
    if planned[0] < 2 or np.any(np.diff(planned) <= 0):
        raise ValueError("looks: must ascend from at least two units")
    plan = group_sequential_design(planned / planned[-1], shape=shape, significance=significance)
    done: list[Look] = []
    for n, nominal in zip(planned.tolist(), plan.nominal.tolist(), strict=True):
        if n > len(series) or (done and done[-1].is_crossed):
            break
        done.append(_look(series[: int(n)], null, nominal, significance, bounds))
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
    if not done:
        n = len(series)
        status, reason = (
            ("no_data", "no unit has entered yet") if n == 0 else ("not_applicable", "before the first look")
        )
        estimate = Estimate(n=n, n_rows=n, status=status, reason=reason, **common)
        return GroupSequentialResult(estimate, None if n == 0 else "inconclusive", None, 0, (), plan)
    last = done[-1]
    is_last = len(done) == len(planned)
    has_stopped = last.is_crossed or is_last
    verdict = "inconclusive" if not is_last else "budget_exhausted"
    if last.is_crossed:
        verdict = "a_better" if last.estimate > null else "b_better"
    n_overrun = len(series) - last.n if has_stopped else 0
    detail = {
        "verdict": verdict,
        "look": len(done),
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
        if has_stopped and last.n >= clusters.TOO_FEW_CLUSTERS:
            test = HypothesisTest(
                name="group_sequential_t",
                null=null,
                statistic=last.statistic,
                df=last.n - 1,
                pvalue=_stagewise_pvalue(plan, len(done), last.pvalue),
            )
        warned = last.is_crossed and not is_last
        warnings = (ResultWarning("optional_stopping", "info", {"at": last.n}),) if warned else ()
        warnings = (*warnings, *_validity_warnings(series[: last.n], unit))
        estimate = Estimate(interval=last.interval, test=test, warnings=warnings, **common)
    return GroupSequentialResult(estimate, verdict, last.n if last.is_crossed else None, n_overrun, tuple(done), plan)


def _validity_warnings(seen: FloatArray, unit: str) -> tuple[ResultWarning, ...]:
    """Return the warnings about few units, and about values too skewed for a t test."""
    few = clusters.cluster_warnings(np.ones(len(seen)), name=unit)
    skewness = clusters.abs_skewness_of_clustered_mean(seen - np.mean(seen), np.arange(len(seen)))
    if skewness <= clusters.MAX_SKEWNESS:
        return few
    return (*few, ResultWarning("small_n_skew", "block", {"n": len(seen), "skewness": skewness}))


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


def _stagewise_pvalue(plan: GroupSequentialDesign, look_number: int, nominal: float) -> float:
    """Return the null probability of stopping before this look, or of a nominal p-value this small at it."""
    bounds = plan.z[:look_number].copy()
    bounds[-1] = min(40.0, -float(special.ndtri(nominal / 2))) if nominal > 0 else 40.0
    return min(1.0, float(np.sum(first_crossing_probabilities(plan.fractions[:look_number], bounds))))
