"""The published rule on sums, whom it finds, and whether leaving them out moves the estimate."""

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


@dataclass(frozen=True, slots=True)
class TauFlags(Record):
    """Whom the tau rule finds.

    `incoherent` (n,): some pair's two answers add up to more than tau. `low_sum` (n,): some pair's add up to less than
    2 - tau; it excludes nobody by default. `above` and `below` (n, P) say for which pair. `is_applicable` (n,): some
    pair was asked in both orders; the rule knows nothing of the others.
    """

    incoherent: BoolArray
    low_sum: BoolArray
    above: BoolArray
    below: BoolArray
    is_applicable: BoolArray
    tau_percent: int


def tau_flags(xy_percent: npt.ArrayLike, yx_percent: npt.ArrayLike, *, tau: float = TAU) -> TauFlags:
    """Whose two answers to some pair add up to more than tau (strictly), compared as whole percentages.

    Both arguments have shape (n_annotators, n_pairs). One pair above tau finds the annotator for all pairs; a pair
    asked in one order finds nobody. Sums are compared with round(100 tau), so .65 + .45 is exactly 1.1 and passes.
    Raises ValueError unless 0 <= tau <= 2.

    Source: section 5.2, step 3.

    >>> tau_flags([[70], [90], [65]], [[30], [90], [45]]).incoherent.tolist()
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


def tau_asymmetry(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    significance: float = 0.05,
    level: float = 0.95,
    analysis: str = "spa.tau_asymmetry",
    unit: str = "annotator",
) -> Estimate:
    """Whether leaving people out by tau would move the combined estimate: the correlation of gap and combined answer.

    Both arguments have shape (n,), before any filter. Tau selects on the gap g = p_xy + p_yx - 1; if g goes with the
    preference, the selection does too, and the estimate after tau loses its null. Pearson's correlation of the sum and
    the difference of two variables is the Pitman-Morgan test that their variances are equal, so the two reasons for
    asymmetry (unequal noise, acquiescence of one camp) are this one test; Spearman's is in detail for a monotone
    relation. Warning `tau_asymmetric` where either is significant.

    Source: Pitman 1939, Morgan 1939, A test for the significance of the difference between two variances.

    >>> tau_asymmetry([60, 70, 80, 90, 50], [50, 50, 50, 50, 50]).warned("tau_asymmetric")
    True
    """
    xy, yx = checked_orders(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    both = ~np.isnan(xy) & ~np.isnan(yx)
    gap, preference = xy[both] + yx[both] - 100, xy[both] - yx[both]
    n = int(both.sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "correlation of the gap with the combined answer",
        "unit": unit,
        "n": n,
        "n_rows": 2 * n,
        "settings": {"significance": significance, "level": level},
    }
    if n == 0:
        return Estimate(status="no_data", reason="nobody answered in both orders", **common)
    if n < 4 or float(np.std(gap)) < MIN_SPREAD or float(np.std(preference)) < MIN_SPREAD:
        return Estimate(status="not_identified", reason="too few answers, or no variance, for a correlation", **common)
    pearson, spearman = _correlation(gap, preference), _correlation(stats.rankdata(gap), stats.rankdata(preference))
    statistic, pvalue = _correlation_test(pearson, n)
    _, spearman_pvalue = _correlation_test(spearman, n)
    found: tuple[ResultWarning, ...] = ()
    if min(pvalue, spearman_pvalue) < significance:
        found = (
            ResultWarning("tau_asymmetric", "warn", {"correlation": pearson, "pvalue": min(pvalue, spearman_pvalue)}),
        )
    centre, half = math.atanh(max(-1 + 1e-15, min(1 - 1e-15, pearson))), basic.normal_quantile(level) / math.sqrt(n - 3)
    return Estimate(
        estimate=pearson,
        interval=Interval(level, math.tanh(centre - half), math.tanh(centre + half), "fisher_z"),
        test=HypothesisTest(name="pitman_morgan", null=0.0, statistic=statistic, df=n - 2, pvalue=pvalue),
        warnings=found,
        detail={
            "spearman": spearman,
            "spearman_pvalue": spearman_pvalue,
            "variance_xy": float(np.var(xy[both] / 100, ddof=1)),
            "variance_yx": float(np.var(yx[both] / 100, ddof=1)),
        },
        **common,
    )


def estimates_after_tau(
    xy: FloatArray,
    yx: FloatArray,
    values: FloatArray,
    flags: TauFlags,
    column: int,
    *,
    analysis: str,
    level: float,
    unit: str,
) -> list[Estimate]:
    """The recommended estimate without those whom tau finds, and without those whom its symmetric form finds."""
    asymmetry = tau_asymmetry(xy[:, column], yx[:, column])
    estimates = []
    for name, excluded in (("tau", flags.incoherent), ("tau_symmetric", flags.incoherent | flags.low_sum)):
        result = basic.one_sample(
            values[~excluded, column],
            null=0.5,
            level=level,
            bounds=BOUNDS,
            analysis=f"{analysis}.{name}",
            estimand="mean over annotators whose answers add up, both orders combined",
            unit=unit,
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
    left = 1 - correlation**2
    if left < MIN_SPREAD:
        return None, 0.0
    statistic = correlation * math.sqrt((n - 2) / left)
    return statistic, min(1.0, 2 * float(special.stdtr(n - 2, -abs(statistic))))
