"""The paper's exclusion rule on sums (tau), and whether excluding these annotators changes the estimate."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from analysis.stats import basic
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, matrix, vector
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, ResultWarning
from analysis.stats.spa._answers import BOUNDS, checked_orders

TAU = 1.1
# For the warning that tau changes the estimate.
SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True)
class TauFlags(Record):
    """The annotators that the tau rule flags.

    `incoherent` (n,): for some pair, both answers add up to more than tau. `low_sum` (n,): for some pair, they add up
    to less than 2 - tau; by default this excludes no annotator. `above` and `below` (n, P) give the pairs.
    `is_applicable` (n,): some pair was asked in both orders; the rule does not apply to the other annotators.
    """

    incoherent: BoolArray
    low_sum: BoolArray
    above: BoolArray
    below: BoolArray
    is_applicable: BoolArray
    tau_percent: int


def tau_incoherence_flags(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, *, tau: float = TAU) -> TauFlags:
    """Flag annotators whose two answers to some pair add up to more than tau.

    The answers (n_annotators, n_pairs) are on 0..100 with x (or y) named first, with NaN for missing, and `tau` is in
    0..2. One pair above tau flags the annotator for all pairs, and a pair asked in one order flags no annotator
    (Ethayarajh and Jurafsky 2022, section 5.2, step 3). Sums are compared with round(100 tau), so .65 + .45 is exactly
    1.1 and passes.

    >>> tau_incoherence_flags([[70], [90], [65]], [[30], [90], [45]]).incoherent.tolist()
    [False, True, False]
    """
    if not 0 <= tau <= 2:
        raise ValueError(f"tau: {tau!r} is not in 0..2")
    xy, yx = checked_orders(matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent"))
    tau_percent = round(100 * tau)
    sums = xy + yx
    above, below = sums > tau_percent, sums < 200 - tau_percent
    return TauFlags(
        incoherent=np.asarray(np.any(above, axis=1), dtype=np.bool_),
        low_sum=np.asarray(np.any(below, axis=1), dtype=np.bool_),
        above=above,
        below=below,
        is_applicable=np.asarray(np.any(~np.isnan(sums), axis=1), dtype=np.bool_),
        tau_percent=tau_percent,
    )


def gap_preference_correlation(
    xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, *, level: float = 0.95
) -> Estimate:
    """Correlation of the gap and the combined answer: tests whether excluding annotators by tau changes the estimate.

    Parameters
    ----------
    xy_percent, yx_percent : array_like, shape (n,)
        Answers on 0..100 with x (or y) named first, before any filter.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        Pearson's correlation and its test. `detail` has Spearman's correlation. The warning `tau_asymmetric` appears
        if either is significant at .05.

    Raises
    ------
    ValueError
        If an answer is outside 0..100 or the shapes differ.

    Notes
    -----
    Tau selects on the gap g = p_xy + p_yx - 1. If g correlates with the preference, the selection does too, and the
    null hypothesis of the estimate after tau is not .5 any more. Pearson's correlation of a sum and a difference is
    the Pitman-Morgan test of equal variances. So this one test covers both reasons for asymmetry: unequal noise, and
    acquiescence on one side. Spearman's correlation is for a monotone relation.

    References
    ----------
    Pitman 1939, Morgan 1939, A test for the significance of the difference between two variances.

    Examples
    --------
    >>> gap_preference_correlation([60, 70, 80, 90, 50], [50, 50, 50, 50, 50]).has_warning("tau_asymmetric")
    True
    """
    xy, yx = checked_orders(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    is_complete = ~np.isnan(xy) & ~np.isnan(yx)
    gap, preference = xy[is_complete] + yx[is_complete] - 100, xy[is_complete] - yx[is_complete]
    n = int(is_complete.sum())
    common: dict[str, Any] = {
        "analysis": "spa.tau_asymmetry",
        "estimand": "correlation of the gap with the combined answer",
        "unit": "annotator",
        "n": n,
        "n_rows": 2 * n,
        "settings": {"significance": SIGNIFICANCE, "level": level},
    }
    if n == 0:
        return Estimate(status="no_data", reason="nobody answered in both orders", **common)
    if n < 4 or float(np.std(gap)) < MIN_SPREAD or float(np.std(preference)) < MIN_SPREAD:
        return Estimate(status="not_identified", reason="too few answers, or no variance, for a correlation", **common)
    pearson, spearman = _correlation(gap, preference), _correlation(stats.rankdata(gap), stats.rankdata(preference))
    statistic, pvalue = _correlation_test(pearson, n)
    _, spearman_pvalue = _correlation_test(spearman, n)
    warnings: tuple[ResultWarning, ...] = ()
    if min(pvalue, spearman_pvalue) < SIGNIFICANCE:
        warnings = (
            ResultWarning("tau_asymmetric", "warn", {"correlation": pearson, "pvalue": min(pvalue, spearman_pvalue)}),
        )
    centre, half = (
        math.atanh(max(-1 + 1e-15, min(1 - 1e-15, pearson))),
        basic.two_sided_normal_quantile(level) / math.sqrt(n - 3),
    )
    return Estimate(
        estimate=pearson,
        interval=Interval(level, math.tanh(centre - half), math.tanh(centre + half), "fisher_z"),
        test=HypothesisTest(name="pitman_morgan", null=0.0, statistic=statistic, df=n - 2, pvalue=pvalue),
        warnings=warnings,
        detail={
            "spearman": spearman,
            "spearman_pvalue": spearman_pvalue,
            "variance_xy": float(np.var(xy[is_complete] / 100, ddof=1)),
            "variance_yx": float(np.var(yx[is_complete] / 100, ddof=1)),
        },
        **common,
    )


def estimates_after_tau_exclusion(
    xy: FloatArray,
    yx: FloatArray,
    values: FloatArray,
    flags: TauFlags,
    column: int,
    *,
    level: float,
) -> list[Estimate]:
    """Return the recommended estimate without the annotators flagged by tau, and by its symmetric form."""
    asymmetry = gap_preference_correlation(xy[:, column], yx[:, column])
    estimates = []
    for name, excluded in (("tau", flags.incoherent), ("tau_symmetric", flags.incoherent | flags.low_sum)):
        result = basic.one_sample_t_test(
            values[~excluded, column],
            null=0.5,
            level=level,
            bounds=BOUNDS,
        ).labelled(
            analysis=f"spa.pair.{name}",
            estimand="mean over annotators whose answers add up, both orders combined",
            unit="annotator",
        )
        attached = list(asymmetry.warnings)
        if result.status == "no_data":
            attached.append(ResultWarning("all_excluded", "block", {"n": int(excluded.sum())}))
        detail = {**result.detail, "n_excluded": int((excluded & ~np.isnan(values[:, column])).sum())}
        settings = {**result.settings, "tau_percent": flags.tau_percent}
        estimates.append(replace(result, warnings=(*result.warnings, *attached), detail=detail, settings=settings))
    return estimates


def _correlation(x: FloatArray, y: FloatArray) -> float:
    a, b = x - np.mean(x), y - np.mean(y)
    return float(np.clip(np.sum(a * b) / math.sqrt(float(np.sum(a * a)) * float(np.sum(b * b))), -1.0, 1.0))


def _correlation_test(correlation: float, n: int) -> tuple[float | None, float]:
    unexplained = 1 - correlation**2
    if unexplained < MIN_SPREAD:
        return None, 0.0
    statistic = correlation * math.sqrt((n - 2) / unexplained)
    return statistic, min(1.0, 2 * float(special.stdtr(n - 2, -abs(statistic))))
