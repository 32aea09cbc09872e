"""One and two samples, proportions and the tests that need no model; and, once for all, the law of edge cases.

The law: a number that is not defined is not printed. No value: `no_data`. One value: `n_lt_2`, the value itself, no
interval. No variance: `zero_variance`, no p-value (a library would return 0), and an interval only where the values
are bounded, by betting. Missing values (NaN, None) are left out and counted, never read as 0.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from analysis.stats import betting, effects
from analysis.stats.arrays import (
    DEGENERATE,
    FloatArray,
    matrix,
    present,
    refuse_level,
    refuse_outside,
    vector,
)
from analysis.stats.results import Estimate, HypothesisTest, Interval, Warning

# Answers at one value from which, below this n, neither t nor a bootstrap covers the mean.
CEILING_SHARE = 0.9
CEILING_N = 100
# A sample this skewed makes the t test reject too often unless there are many: its error falls with skewness^2 / n.
# The two meet at n = 30; at n = 90 a skewness of 2.6 still gives .08 where .05 is promised.
SKEW = 1.5
SKEW_PER_N = SKEW**2 / 30


def t_interval(
    estimate: float,
    se: float,
    df: float,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    method: str = "t",
) -> Interval:
    """estimate -/+ t(df) se, cut at the edges of the scale where `bounds` gives them.

    >>> interval = t_interval(0.9, 0.1, 9, bounds=(0, 1))
    >>> round(interval.low, 4), interval.high, interval.clipped
    (0.6738, 1.0, True)
    """
    refuse_level(level)
    half = float(special.stdtrit(df, (1 + level) / 2)) * se
    low, high = estimate - half, estimate + half
    if bounds is None:
        return Interval(level, low, high, method)
    clipped = low < bounds[0] or high > bounds[1]
    return Interval(level, max(float(bounds[0]), low), min(float(bounds[1]), high), method, clipped)


def t_test(name: str, estimate: float, null: float, se: float, df: float) -> HypothesisTest:
    """The two-sided t test of `estimate` against `null`: (estimate - null) / se on df degrees of freedom.

    >>> round(t_test("one_sample_t", 0.6, 0.5, 0.05, 10).pvalue, 4)
    0.0734
    """
    statistic = (estimate - null) / se
    pvalue = min(1.0, 2 * float(special.stdtr(df, -abs(statistic))))
    return HypothesisTest(name=name, null=null, statistic=statistic, df=df, pvalue=pvalue)


def wald(estimate: float, se: float, *, null: float | None, level: float, **common: Any) -> Estimate:
    """An estimate with a large-sample standard error: estimate -/+ z se and, against a `null`, z and its p-value.

    A standard error of 0 is `zero_variance`. `common` holds the other fields of the Estimate; its detail gets `se`.

    >>> found = wald(0.5, 0.2, null=0.0, level=0.95, analysis="a", estimand="log odds", unit="label", n=100)
    >>> round(found.interval.low, 3), round(found.pvalue, 4)
    (0.108, 0.0124)
    """
    common["detail"] = {**common.get("detail", {}), "se": se}
    if se < DEGENERATE:
        return Estimate(status="zero_variance", reason="the standard error is 0", estimate=estimate, **common)
    half = normal_quantile(level) * se
    test = None
    if null is not None:
        statistic = (estimate - null) / se
        pvalue = min(1.0, 2 * float(special.ndtr(-abs(statistic))))
        test = HypothesisTest(name="wald_z", null=null, statistic=statistic, pvalue=pvalue)
    return Estimate(
        estimate=estimate, interval=Interval(level, estimate - half, estimate + half, "wald"), test=test, **common
    )


def normal_quantile(level: float) -> float:
    """The z for which a standard normal variable lies in -z..z with probability `level`.

    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    return float(special.ndtri((1 + level) / 2))


def degenerate(
    values: FloatArray,
    *,
    analysis: str,
    estimand: str,
    unit: str,
    mode: str = "recommended",
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    **more: Any,
) -> Estimate | None:
    """The law of edge cases for the mean of `values` (shape (n,), complete); None where the ordinary case holds.

    >>> degenerate(np.array([0.7, 0.7]), analysis="a", estimand="mean", unit="annotator", bounds=(0, 1)).status
    'zero_variance'
    >>> degenerate(np.array([0.6, 0.7]), analysis="a", estimand="mean", unit="annotator") is None
    True
    """
    n = len(values)
    common: dict[str, Any] = {"analysis": analysis, "estimand": estimand, "unit": unit, "mode": mode, **more}
    if n == 0:
        return Estimate(n=0, status="no_data", reason="no value to analyse", **common)
    if n == 1:
        return Estimate(n=1, status="n_lt_2", reason="one value has no spread", estimate=float(values[0]), **common)
    if float(np.std(values, ddof=1)) < DEGENERATE:
        return Estimate(
            n=n,
            status="zero_variance",
            reason="all values are equal",
            estimate=float(values[0]),
            interval=None if bounds is None else betting.betting_interval(values, level=level, bounds=bounds),
            **common,
        )
    return None


def one_sample(
    values: npt.ArrayLike,
    *,
    null: float,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    rng: np.random.Generator | None = None,
    analysis: str = "one_sample",
    estimand: str = "mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The mean of one value a unit, and Student's two-sided test that it equals `null`.

    `values` has shape (n,), one value a unit; NaN is missing. With `bounds` (the edges of the scale) the interval is
    cut there, constant values get a betting interval, and, in recommended mode, so do values of which nine in ten are
    equal while n < 100 (warning `ceiling`, whose detail holds the t interval and the betting p-value); `rng` orders
    the values for the bet. Warning `small_n_skew` where the skewness is beyond 1.5 and skewness^2 / n is
    .075 or more: at any n up to 30, at n = 90 from 2.6.

    t = (mean - null) / (s / sqrt(n)) with s on n - 1, df = n - 1; effect d_z = (mean - null) / s.
    Raises ValueError for infinite values, values outside the bounds or a level outside 0..1.

    Source: the test of the SPA paper (Ethayarajh and Jurafsky 2022), section 5.2, with null = .5.

    >>> result = one_sample([0.6, 0.7, 0.5, 0.9, 0.4, 0.8, 0.75, 0.65, 0.55, 0.7], null=0.5)
    >>> round(result.estimate, 3), result.test.df, round(result.pvalue, 4)
    (0.655, 9, 0.0091)
    """
    refuse_level(level)
    kept, n_missing = present(values, "values")
    if bounds is not None:
        refuse_outside(kept, bounds, "values")
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n_rows": len(kept),
        "settings": {"null": null, "level": level, "bounds": bounds},
    }
    edge = degenerate(kept, level=level, bounds=bounds, detail={"n_missing": n_missing}, **common)
    if edge is not None:
        return edge
    n = len(kept)
    mean, sd = float(np.mean(kept)), float(np.std(kept, ddof=1))
    se = sd / math.sqrt(n)
    interval = t_interval(mean, se, n - 1, level=level, bounds=bounds)
    warnings = []
    skewness = skew(kept)
    if abs(skewness) > SKEW and skewness**2 >= SKEW_PER_N * n:
        warnings.append(Warning("small_n_skew", "warn", {"n": n, "skewness": skewness}))
    if mode == "recommended" and bounds is not None and n < CEILING_N and largest_share(kept) >= CEILING_SHARE:
        t_ends = interval
        bet = betting.betting_interval(kept, level=level, bounds=bounds, rng=rng)
        interval = interval if bet is None else bet
        scaled = (kept - bounds[0]) / (bounds[1] - bounds[0])
        warnings.append(
            Warning(
                "ceiling",
                "warn",
                {
                    "largest_share": largest_share(kept),
                    "t_low": t_ends.low,
                    "t_high": t_ends.high,
                    "betting_pvalue": betting.betting_pvalue(scaled, (null - bounds[0]) / (bounds[1] - bounds[0])),
                },
            )
        )
    return Estimate(
        n=n,
        estimate=mean,
        interval=interval,
        test=t_test("one_sample_t", mean, null, se, n - 1),
        effect=effects.cohen_dz(kept, null=null, level=level),
        warnings=tuple(warnings),
        detail={"n_missing": n_missing, "sd": sd, "se": se, "skewness": skewness},
        **common,
    )


def paired(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "paired",
    estimand: str = "mean difference x - y",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The mean of x - y over the units that have both, and the paired t test that it is 0.

    `x` and `y` have shape (n,), row i the same unit; a unit with either missing is dropped and counted in
    detail["n_dropped"]. Raises ValueError where the lengths differ.

    Source: the test of rating differences in the SPA paper, section 6.1.

    >>> paired([3, 4, 5, 2], [2, 4, 3, None]).estimate
    1.0
    """
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} values where x has {len(first)}")
    both = ~np.isnan(first) & ~np.isnan(second)
    result = one_sample(
        first[both] - second[both], null=0.0, level=level, analysis=analysis, estimand=estimand, unit=unit, mode=mode
    )
    test = None if result.test is None else replace(result.test, name="paired_t")
    counts = {"n_complete": int(both.sum()), "n_dropped": int((~both).sum())}
    return replace(result, test=test, detail={**result.detail, **counts})


def welch(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    level: float = 0.95,
    analysis: str = "welch",
    estimand: str = "difference of means x - y",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The difference of the means of two independent groups, and Welch's test that it is 0 (unequal variances).

    `x` and `y` have shapes (n_x,) and (n_y,), one value a unit. Two constant groups give `zero_variance` (a library
    gives p = 0). Effect: Cohen's d with the pooled s.

    >>> round(welch([0.6, 0.8, 0.4, 0.6], [0.4, 0.6, 0.4, 0.2]).estimate, 3)
    0.2
    """
    refuse_level(level)
    first, missing_x = present(x, "x")
    second, missing_y = present(y, "y")
    n_x, n_y = len(first), len(second)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_x + n_y,
        "n_rows": n_x + n_y,
        "settings": {"null": 0.0, "level": level},
        "detail": {"n_x": n_x, "n_y": n_y, "n_missing": missing_x + missing_y},
    }
    if min(n_x, n_y) == 0:
        return Estimate(status="no_data", reason="a group has no value", **common)
    difference = float(np.mean(first)) - float(np.mean(second))
    if min(n_x, n_y) == 1:
        return Estimate(status="n_lt_2", reason="a group has one value", estimate=difference, **common)
    part_x, part_y = float(np.var(first, ddof=1)) / n_x, float(np.var(second, ddof=1)) / n_y
    se = math.sqrt(part_x + part_y)
    if se < DEGENERATE:
        return Estimate(status="zero_variance", reason="both groups are constant", estimate=difference, **common)
    df = (part_x + part_y) ** 2 / (part_x**2 / (n_x - 1) + part_y**2 / (n_y - 1))
    return Estimate(
        estimate=difference,
        interval=t_interval(difference, se, df, level=level, method="welch_t"),
        test=t_test("welch_t", difference, 0.0, se, df),
        effect=effects.cohen_d(first, second, level=level),
        **common,
    )


def proportion(
    successes: int,
    n: int,
    *,
    null: float | None = None,
    level: float = 0.95,
    analysis: str = "proportion",
    estimand: str = "proportion",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """A share of independent units, with Wilson's interval and, where `null` is given, the exact binomial test.

    Only where each unit gives one label: labels that share an annotator belong in `clusters`. detail holds the
    Clopper-Pearson interval, which decisions should rest on. Raises ValueError unless 0 <= successes <= n.

    >>> interval = proportion(8, 10).interval
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.4902, 0.9433)
    """
    refuse_level(level)
    if not 0 <= successes <= n:
        raise ValueError(f"successes: {successes} is not in 0..{n}")
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n,
        "n_rows": n,
        "settings": {"null": null, "level": level},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    low, high = wilson(successes, n, level)
    exact_low, exact_high = clopper_pearson(successes, n, level)
    test = None
    if null is not None:
        pvalue = float(stats.binomtest(successes, n, null).pvalue)
        test = HypothesisTest(name="exact_binomial", null=null, statistic=float(successes), pvalue=min(1.0, pvalue))
    return Estimate(
        estimate=successes / n,
        interval=Interval(level, low, high, "wilson"),
        test=test,
        detail={"successes": successes, "clopper_pearson": {"level": level, "low": exact_low, "high": exact_high}},
        **common,
    )


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion: (k + z2/2 -/+ z sqrt(k (n - k) / n + z2/4)) / (n + z2), z2 = z z.

    >>> tuple(round(end, 4) for end in wilson(0, 10))
    (0.0, 0.2775)
    """
    z = normal_quantile(level)
    centre = successes + z * z / 2
    half = z * math.sqrt(successes * (n - successes) / n + z * z / 4)
    low = 0.0 if successes == 0 else (centre - half) / (n + z * z)
    high = 1.0 if successes == n else (centre + half) / (n + z * z)
    return low, high


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval for a proportion: the p at which each binomial tail is (1 - level) / 2.

    >>> tuple(round(end, 4) for end in clopper_pearson(8, 10))
    (0.4439, 0.9748)
    """
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(special.betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


def sign_test(
    values: npt.ArrayLike,
    *,
    null: float = 0.0,
    level: float = 0.95,
    analysis: str = "sign_test",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """The share of units above `null` among those not equal to it, and the exact test that it is one half.

    `values` has shape (n,), one value a unit. Ties with the null are left out and counted in detail["n_ties"]; `n`
    counts the others. Only ties: `zero_variance`.

    >>> result = sign_test([0.6, 0.7, 0.5, 0.4, 0.9], null=0.5)
    >>> result.estimate, result.detail["n_ties"], result.pvalue
    (0.75, 1, 0.625)
    """
    kept, n_missing = present(values, "values")
    # Half a rounding error away from the null is a tie, not a preference.
    above = int(np.sum(kept - null > DEGENERATE))
    below = int(np.sum(kept - null < -DEGENERATE))
    detail = {"n_above": above, "n_below": below, "n_ties": len(kept) - above - below, "n_missing": n_missing}
    estimand = f"share above {null:g} among those not equal to it"
    if len(kept) and above + below == 0:
        return Estimate(
            analysis=analysis,
            estimand=estimand,
            unit=unit,
            mode=mode,
            n=0,
            status="zero_variance",
            reason="every value equals the null",
            detail=detail,
            settings={"null": null, "level": level},
        )
    share = proportion(
        above, above + below, null=0.5, level=level, analysis=analysis, estimand=estimand, unit=unit, mode=mode
    )
    test = None if share.test is None else replace(share.test, name="sign_test")
    return replace(share, test=test, detail={**share.detail, **detail}, settings={"null": null, "level": level})


def wilcoxon(
    values: npt.ArrayLike,
    *,
    null: float = 0.0,
    zero_method: str = "zsplit",
    correction: bool = False,
    analysis: str = "wilcoxon",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Wilcoxon's signed-rank test: whether the values lie symmetrically about `null`. Not a test of the mean.

    Under skew it rejects although the mean equals the null, so it is a sensitivity and labelled as what it is. The
    estimate is the matched-pairs rank-biserial correlation (W+ - W-) / (W+ + W-). `values` has shape (n,), one a
    unit; `zero_method` ("zsplit" or "wilcox") and `correction` (continuity) are printed with the result; the p-value
    is asymptotic with the correction for ties. All values equal to the null: `zero_variance`.

    >>> result = wilcoxon([0.6, 0.7, 0.55, 0.4, 0.9], null=0.5)
    >>> round(result.estimate, 4), result.test.name
    (0.6667, 'wilcoxon_symmetry')
    """
    if zero_method not in ("zsplit", "wilcox"):
        raise ValueError(f"zero_method: {zero_method!r} is neither zsplit nor wilcox")
    kept, n_missing = present(values, "values")
    # Rounding keeps .7 - .5 and .5 - .3 tied, which they are on the scale that was asked.
    distances = np.round(kept - null, 12)
    n_zeros = int(np.sum(distances == 0))
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"rank-biserial correlation: symmetry about {null:g}, not the mean",
        "unit": unit,
        "mode": mode,
        "n": len(kept),
        "n_rows": len(kept),
        "detail": {"n_zeros": n_zeros, "n_missing": n_missing},
        "settings": {"null": null, "zero_method": zero_method, "correction": correction},
    }
    if len(kept) == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    if n_zeros == len(kept):
        return Estimate(status="zero_variance", reason="every value equals the null", **common)
    if len(kept) == 1:
        return Estimate(status="n_lt_2", reason="one value has no spread", **common)
    if zero_method == "wilcox":
        distances = distances[distances != 0]
    ranks = stats.rankdata(np.abs(distances))
    half_zeros = float(ranks[distances == 0].sum()) / 2
    up = float(ranks[distances > 0].sum()) + half_zeros
    down = float(ranks[distances < 0].sum()) + half_zeros
    found = stats.wilcoxon(distances, zero_method=zero_method, correction=correction, method="asymptotic")
    return Estimate(
        estimate=(up - down) / (up + down),
        test=HypothesisTest(
            name="wilcoxon_symmetry", null=null, statistic=float(found.statistic), pvalue=float(found.pvalue)
        ),
        **common,
    )


def sign_flip(
    values: npt.ArrayLike,
    *,
    null: float = 0.0,
    resamples: int = 9999,
    rng: np.random.Generator,
    analysis: str = "sign_flip",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """A permutation test of the mean that flips the signs of (value - null); exact if they are symmetric about 0.

    `values` has shape (n,), one a unit. All 2^n flips are enumerated where they are no more than `resamples`;
    otherwise p = (1 + number as extreme) / (1 + resamples), which is never 0.

    >>> result = sign_flip([0.1, 0.2, 0.3], rng=np.random.default_rng(0))
    >>> result.pvalue, result.detail["is_exact"]
    (0.25, True)
    """
    kept, n_missing = present(values, "values")
    common: dict[str, Any] = {"analysis": analysis, "estimand": "mean", "unit": unit, "mode": mode}
    settings = {"null": null, "resamples": resamples}
    edge = degenerate(kept, n_rows=len(kept), settings=settings, detail={"n_missing": n_missing}, **common)
    if edge is not None:
        return edge
    pvalues, is_exact = sign_flip_pvalues((kept - null)[:, None], resamples=resamples, rng=rng)
    mean = float(np.mean(kept))
    return Estimate(
        n=len(kept),
        n_rows=len(kept),
        estimate=mean,
        test=HypothesisTest(name="sign_flip", null=null, statistic=mean - null, pvalue=float(pvalues[0])),
        detail={"n_missing": n_missing, "is_exact": is_exact},
        settings=settings,
        **common,
    )


def sign_flip_pvalues(
    distances: npt.ArrayLike, *, resamples: int = 9999, rng: np.random.Generator
) -> tuple[FloatArray, bool]:
    """Two-sided sign-flip p-values of several columns under the same flips, and whether all flips were enumerated.

    `distances` has shape (n_units, n_columns): value - null, NaN where a unit has none. One set of flips for all
    columns is what makes a report over 45 pairs take no longer than one over a few.

    >>> pvalues, is_exact = sign_flip_pvalues([[0.1, 0.1], [0.2, -0.2]], rng=np.random.default_rng(0))
    >>> pvalues.tolist(), is_exact
    ([0.5, 1.0], True)
    """
    table = np.nan_to_num(matrix(distances, "distances"), nan=0.0)
    n_units = table.shape[0]
    observed = np.abs(table.sum(axis=0)) - 1e-9 * np.maximum(1.0, np.abs(table).sum(axis=0))
    is_exact = n_units < 60 and 2**n_units <= resamples
    total = 2**n_units if is_exact else resamples
    extreme = np.zeros(table.shape[1], dtype=np.int64)
    for start in range(0, total, 1024):
        size = min(1024, total - start)
        if is_exact:
            bits = ((np.arange(start, start + size)[:, None] >> np.arange(n_units)) & 1).astype(np.float64)
        else:
            random_bytes = rng.integers(0, 256, size=(size, (n_units + 7) // 8), dtype=np.uint8)
            bits = np.unpackbits(random_bytes, axis=1, count=n_units).astype(np.float64)
        flipped = (2 * bits - 1) @ table
        extreme += (np.abs(flipped) >= observed).sum(axis=0)
    if is_exact:
        return np.asarray(extreme / total, dtype=np.float64), True
    return np.asarray((1 + extreme) / (1 + total), dtype=np.float64), False


def skew(values: FloatArray) -> float:
    """The moment coefficient of skewness m3 / m2^(3/2), 0 where the values do not vary.

    >>> round(skew(np.array([0.0, 0.0, 0.0, 1.0])), 4)
    1.1547
    """
    centred = values - np.mean(values)
    second = float(np.mean(centred**2))
    return 0.0 if second < DEGENERATE**2 else float(np.mean(centred**3)) / second**1.5


def largest_share(values: FloatArray) -> float:
    """The share of the most frequent value.

    >>> largest_share(np.array([1.0, 0.5, 1.0, 1.0]))
    0.75
    """
    _, counts = np.unique(values, return_counts=True)
    return float(counts.max()) / len(values)
