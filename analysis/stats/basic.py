"""Tests and intervals for one sample, two samples and proportions, and the common rules for edge cases.

The rules for edge cases: an undefined number is not printed. No value: `no_data`. One value: `n_lt_2`, with the
value and no interval. No variance: `zero_variance`, without a p-value, and with a betting interval only if the
values are bounded. Missing values (NaN, None) are left out and counted.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import betting, effects
from analysis.stats.arrays import (
    CEILING_N,
    CEILING_SHARE,
    MIN_SPREAD,
    SKEW,
    SKEW_PER_N,
    FloatArray,
    drop_and_count_missing,
    matrix,
    mid_ranks,
    most_frequent_value_share,
    skew,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.confidence import TCurve
from analysis.stats.results import Estimate, HypothesisTest, Interval, ResultWarning

# Intervals and tests from an estimate and its standard error, and the edge cases without a test.


def t_interval(
    estimate: float,
    se: float,
    df: float,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    method: str = "t",
) -> Interval:
    """Compute the confidence interval from the t distribution: estimate -/+ t(df) se.

    The interval is clipped to `bounds`, the ends of the scale, if they are given. `method` is the name of the method
    that is stored.

    >>> interval = t_interval(0.9, 0.1, 9, bounds=(0, 1))
    >>> round(interval.low, 4), interval.high, interval.clipped
    (0.6738, 1.0, True)
    """
    validate_level(level)
    half = float(special.stdtrit(df, (1 + level) / 2)) * se
    low, high = estimate - half, estimate + half
    if bounds is None:
        return Interval(level, low, high, method)
    clipped = low < bounds[0] or high > bounds[1]
    return Interval(level, max(float(bounds[0]), low), min(float(bounds[1]), high), method, clipped)


def t_test(name: str, estimate: float, null: float, se: float, df: float) -> HypothesisTest:
    """Compute the two-sided t test of `estimate` against `null`: (estimate - null) / se with df degrees of freedom.

    `name` is the name of the test that is stored.

    >>> round(t_test("one_sample_t", 0.6, 0.5, 0.05, 10).pvalue, 4)
    0.0734
    """
    statistic = (estimate - null) / se
    pvalue = min(1.0, 2 * float(special.stdtr(df, -abs(statistic))))
    return HypothesisTest(name=name, null=null, statistic=statistic, df=df, pvalue=pvalue)


def wald_estimate(estimate: float, se: float, *, null: float | None, level: float, **common: Any) -> Estimate:
    """Build an estimate with the large-sample interval, estimate -/+ z se, and the z test that it equals `null`.

    There is no test if `null` is None. The standard error is added to `detail` as `se`, and a standard error of 0 gives
    the status `zero_variance`. `common` has the other fields of the `Estimate`.

    >>> result = wald_estimate(0.5, 0.2, null=0.0, level=0.95, analysis="a", estimand="log odds", unit="label", n=100)
    >>> round(result.interval.low, 3), round(result.pvalue, 4)
    (0.108, 0.0124)
    """
    common["detail"] = {**common.get("detail", {}), "se": se}
    if se < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="the standard error is 0", estimate=estimate, **common)
    half = two_sided_normal_quantile(level) * se
    test = None
    if null is not None:
        statistic = (estimate - null) / se
        pvalue = min(1.0, 2 * float(special.ndtr(-abs(statistic))))
        test = HypothesisTest(name="wald_z", null=null, statistic=statistic, pvalue=pvalue)
    return Estimate(
        estimate=estimate, interval=Interval(level, estimate - half, estimate + half, "wald"), test=test, **common
    )


def two_sided_normal_quantile(level: float) -> float:
    """Return the two-sided quantile z of the standard normal distribution: -z..z has the probability `level`.

    >>> round(two_sided_normal_quantile(0.95), 6)
    1.959964
    """
    return float(special.ndtri((1 + level) / 2))


def fisher_z_interval(correlation: float, n: int, level: float) -> Interval:
    """Return the interval of a Pearson correlation of `n` pairs by Fisher's z, whose standard error is 1 / sqrt(n - 3).

    >>> found = fisher_z_interval(0.5, 28, 0.95)
    >>> round(found.low, 3), round(found.high, 3)
    (0.156, 0.736)
    """
    centre = math.atanh(max(-1 + 1e-15, min(1 - 1e-15, correlation)))
    half = two_sided_normal_quantile(level) / math.sqrt(n - 3)
    return Interval(level, math.tanh(centre - half), math.tanh(centre + half), "fisher_z")


def degenerate_mean_estimate(
    values: FloatArray,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    **common: Any,
) -> Estimate | None:
    """Return the estimate of a mean in an edge case: no value, one value, or no variance.

    `values` has none missing, and `common` has the other fields of the `Estimate`. The status says which case it is,
    and the result is None if the values are no edge case. If the values are constant and `bounds`, the ends of the
    scale, are given, the estimate has a betting interval.

    >>> degenerate_mean_estimate(np.array([0.7, 0.7]), analysis="a", estimand="mean", unit="annotator", bounds=(0, 1)).status
    'zero_variance'
    >>> degenerate_mean_estimate(np.array([0.6, 0.7]), analysis="a", estimand="mean", unit="annotator") is None
    True
    """
    n = len(values)
    if n == 0:
        return Estimate(n=0, status="no_data", reason="no value to analyse", **common)
    if n == 1:
        return Estimate(n=1, status="n_lt_2", reason="one value has no spread", estimate=float(values[0]), **common)
    if float(np.std(values, ddof=1)) < MIN_SPREAD:
        return Estimate(
            n=n,
            status="zero_variance",
            reason="all values are equal",
            estimate=float(values[0]),
            interval=None if bounds is None else betting.betting_interval(values, level=level, bounds=bounds),
            **common,
        )
    return None


# Proportions of a sample.


def proportion(
    successes: int,
    n: int,
    *,
    null: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """Share of independent units, with Wilson's interval and the exact binomial test.

    Parameters
    ----------
    successes, n : int
        Number of successes and of units.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The share. `detail` has the Clopper-Pearson interval; base decisions on that one.

    Raises
    ------
    ValueError
        Unless 0 <= successes <= n.

    Notes
    -----
    Use it only if each unit gives one label. For several labels per annotator use `clusters`.

    Examples
    --------
    >>> interval = proportion(8, 10).interval
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.4902, 0.9433)
    """
    validate_level(level)
    if not 0 <= successes <= n:
        raise ValueError(f"successes: {successes} is not in 0..{n}")
    common: dict[str, Any] = {
        "analysis": "proportion",
        "estimand": "proportion",
        "unit": "annotator",
        "n": n,
        "n_rows": n,
        "settings": {"null": null, "level": level},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    low, high = wilson_interval(successes, n, level)
    exact_low, exact_high = clopper_pearson_interval(successes, n, level)
    test = None
    if null is not None:
        pvalue = _exact_binomial_pvalue(successes, n, null)
        test = HypothesisTest(name="exact_binomial", null=null, statistic=float(successes), pvalue=pvalue)
    return Estimate(
        estimate=successes / n,
        interval=Interval(level, low, high, "wilson"),
        test=test,
        detail={"successes": successes, "clopper_pearson": {"level": level, "low": exact_low, "high": exact_high}},
        **common,
    )


def _exact_binomial_pvalue(successes: int, n: int, null: float) -> float:
    """Return the chance of the outcomes that are not more likely than the observed one. Their chances are equal up to rounding."""
    possible = np.arange(n + 1)
    # scipy.stats has this test, but a report would spend a tenth of its time on importing that.
    logs = special.xlogy(possible, null) + special.xlog1py(n - possible, -null)
    logs -= special.gammaln(possible + 1) + special.gammaln(n - possible + 1)
    likelier = np.flatnonzero(logs > logs[successes] + 1e-7)
    if len(likelier) == 0:
        return 1.0
    first, last = int(likelier[0]), int(likelier[-1])
    below = special.betainc(n - first + 1, first, 1 - null) if first > 0 else 0.0
    above = special.betainc(last + 1, n - last, null) if last < n else 0.0
    return float(min(1.0, below + above))


def wilson_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion.

    Parameters
    ----------
    successes, n : int
        Number of successes and of units.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    tuple[float, float]
        Lower and upper end.

    Notes
    -----
    (k + z2/2 -/+ z sqrt(k (n - k) / n + z2/4)) / (n + z2), with z2 = z z.

    Examples
    --------
    >>> tuple(round(end, 4) for end in wilson_interval(0, 10))
    (0.0, 0.2775)
    """
    z = two_sided_normal_quantile(level)
    centre = successes + z * z / 2
    half = z * math.sqrt(successes * (n - successes) / n + z * z / 4)
    low = 0.0 if successes == 0 else (centre - half) / (n + z * z)
    high = 1.0 if successes == n else (centre + half) / (n + z * z)
    return low, high


def clopper_pearson_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Exact (Clopper-Pearson) interval for a proportion: each binomial tail is (1 - level) / 2.

    Parameters
    ----------
    successes, n : int
        Number of successes and of units.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    tuple[float, float]
        Lower and upper end.

    Examples
    --------
    >>> tuple(round(end, 4) for end in clopper_pearson_interval(8, 10))
    (0.4439, 0.9748)
    """
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(special.betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


# Tests based on signs and ranks.


# With so many units that differ from the null, the p-value counts all signs. Above, the normal distribution is close enough.
MOST_EXACT = 50


def sign_test(
    values: npt.ArrayLike,
    *,
    null: float = 0.0,
    level: float = 0.95,
) -> Estimate:
    """Share of units above `null` among the units that differ from it, and the exact test that it is one half.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per unit; NaN is missing.
    null : float, default 0.0
        Value of the null hypothesis.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The share. `n` counts the units that differ from `null`; `detail["n_ties"]` counts the others. Only ties:
        `zero_variance`.

    Examples
    --------
    >>> result = sign_test([0.6, 0.7, 0.5, 0.4, 0.9], null=0.5)
    >>> result.estimate, result.detail["n_ties"], result.pvalue
    (0.75, 1, 0.625)
    """
    observed, n_missing = drop_and_count_missing(values, "values")
    # A distance from the null within a rounding error is a tie.
    above = int(np.sum(observed - null > MIN_SPREAD))
    below = int(np.sum(observed - null < -MIN_SPREAD))
    detail = {"n_above": above, "n_below": below, "n_ties": len(observed) - above - below, "n_missing": n_missing}
    estimand = f"share above {null:g} among those not equal to it"
    if len(observed) and above + below == 0:
        return Estimate(
            analysis="sign_test",
            estimand=estimand,
            unit="annotator",
            n=0,
            status="zero_variance",
            reason="every value equals the null",
            detail=detail,
            settings={"null": null, "level": level},
        )
    share = proportion(above, above + below, null=0.5, level=level).labelled(analysis="sign_test", estimand=estimand)
    test = None if share.test is None else replace(share.test, name="sign_test")
    return replace(share, test=test, detail={**share.detail, **detail}, settings={"null": null, "level": level})


def wilcoxon(
    values: npt.ArrayLike,
    *,
    null: float = 0.0,
    zero_method: str = "zsplit",
    method: str = "auto",
    correction: bool = False,
) -> Estimate:
    """Wilcoxon's signed-rank test that the values are symmetric about `null`.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per unit; NaN is missing.
    null : float, default 0.0
        Value of the null hypothesis.
    zero_method : {"zsplit", "wilcox"}, default 'zsplit'
        Treatment of values equal to the null.
    method : {"auto", "exact", "asymptotic"}, default 'auto'
        How the p-value is found. "auto" is exact for up to 50 values that differ from the null.
    correction : bool, default False
        Whether to apply the continuity correction to the asymptotic p-value.

    Returns
    -------
    Estimate
        The matched-pairs rank-biserial correlation (W+ - W-) / (W+ + W-) and the test. All values equal to the null:
        `zero_variance`.

    Raises
    ------
    ValueError
        If `zero_method` or `method` is not allowed.

    Notes
    -----
    This is not a test of the mean: for skewed values it rejects although the mean equals the null. Use it as a
    sensitivity analysis. The exact p-value is the share of all signs of the observed ranks, ties included, whose sum is as far
    from 0. The asymptotic one has the correction for ties; for five values of one sign it is .043, where the exact one is .0625.

    Examples
    --------
    >>> result = wilcoxon([0.6, 0.7, 0.55, 0.4, 0.9], null=0.5)
    >>> round(result.estimate, 4), result.test.name
    (0.6667, 'wilcoxon_symmetry')
    """
    if zero_method not in ("zsplit", "wilcox"):
        raise ValueError(f"zero_method: {zero_method!r} is neither zsplit nor wilcox")
    if method not in ("auto", "exact", "asymptotic"):
        raise ValueError(f"method: {method!r} is not auto, exact or asymptotic")
    observed, n_missing = drop_and_count_missing(values, "values")
    # Rounding keeps .7 - .5 and .5 - .3 tied, as they are on the scale of the question.
    distances = np.round(observed - null, 12)
    n_zeros = int(np.sum(distances == 0))
    if method == "auto":
        method = "exact" if len(observed) - n_zeros <= MOST_EXACT else "asymptotic"
    common: dict[str, Any] = {
        "analysis": "wilcoxon",
        "estimand": f"rank-biserial correlation: symmetry about {null:g}, not the mean",
        "unit": "annotator",
        "n": len(observed),
        "n_rows": len(observed),
        "detail": {"n_zeros": n_zeros, "n_missing": n_missing},
        "settings": {"null": null, "zero_method": zero_method, "method": method, "correction": correction},
    }
    if len(observed) == 0:
        return Estimate(status="no_data", reason="no value to analyse", **common)
    if n_zeros == len(observed):
        return Estimate(status="zero_variance", reason="every value equals the null", **common)
    if len(observed) == 1:
        return Estimate(status="n_lt_2", reason="one value has no spread", **common)
    if zero_method == "wilcox":
        distances = distances[distances != 0]
    ranks = mid_ranks(np.abs(distances))
    half_zeros = float(ranks[distances == 0].sum()) / 2
    up = float(ranks[distances > 0].sum()) + half_zeros
    down = float(ranks[distances < 0].sum()) + half_zeros
    if method == "exact":
        pvalue = _signed_rank_pvalue(ranks[distances != 0], up - down)
    else:
        n, ties = len(ranks), np.unique(ranks, return_counts=True)[1].astype(np.float64)
        error = math.sqrt((n * (n + 1) * (2 * n + 1) - float(np.sum(ties**3 - ties)) / 2) / 24)
        z = (abs(up - n * (n + 1) / 4) - 0.5 * correction * (up != down)) / error
        pvalue = 2 * float(special.ndtr(-abs(z)))
    return Estimate(
        estimate=(up - down) / (up + down),
        test=HypothesisTest(name="wilcoxon_symmetry", null=null, statistic=min(up, down), pvalue=pvalue),
        **common,
    )


def _signed_rank_pvalue(ranks: FloatArray, difference: float) -> float:
    """Return the chance that random signs make the sum of the ranks as large as `difference`, in either direction."""
    # Ranks of ties are halves, so twice a rank is a whole number. The chances of the sums of the positive ranks grow rank by rank.
    doubled = np.rint(2 * ranks).astype(np.int64)
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled:
        chances[rank:] += chances[: len(chances) - rank].copy()
        chances /= 2
    sums = np.abs(2 * np.arange(len(chances)) - doubled.sum())
    return float(min(1.0, chances[sums >= abs(round(2 * difference))].sum()))


def sign_flip_pvalues(
    distances: npt.ArrayLike, *, resamples: int = 9999, rng: np.random.Generator
) -> tuple[FloatArray, bool]:
    """Compute two-sided sign-flip p-values of several columns, and whether all flips were enumerated.

    `distances` (n_units, n_columns) has value - null, with NaN for missing. If all 2^n flips are no more than
    `resamples`, they are enumerated; otherwise the flips are random. All columns share one set of flips, so a report
    over 45 pairs takes no longer than one over a few.

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


# One sample, paired samples, and two independent samples.


def one_sample_t_test(
    values: npt.ArrayLike,
    *,
    null: float,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    mode: str = "recommended",
) -> Estimate:
    """Mean of one value per unit, and Student's two-sided t test that it equals `null`.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value per unit; NaN is missing.
    null : float
        Value of the null hypothesis.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them. Constant values get a betting interval.
    mode : {"recommended", "paper"}, default 'recommended'
        In mode "paper" the interval is always the t interval.

    Returns
    -------
    Estimate
        The mean with effect d_z = (mean - null) / s.

    Raises
    ------
    ValueError
        If a value is infinite or outside `bounds`, or `level` is not in 0..1.

    Notes
    -----
    t = (mean - null) / (s / sqrt(n)), with s on n - 1, df = n - 1.

    In recommended mode with `bounds`: if nine in ten values are equal and n < 100, the interval is a betting
    interval. The warning `ceiling` then has the t interval and the betting p-value in its detail. The warning
    `small_n_skew` appears if the absolute skewness exceeds 1.5 and skewness^2 / n is .075 or more: at any n up to 30,
    at n = 90 from 2.6.

    References
    ----------
    Ethayarajh and Jurafsky 2022 (the SPA paper), section 5.2, with null = .5.

    Examples
    --------
    >>> result = one_sample_t_test([0.6, 0.7, 0.5, 0.9, 0.4, 0.8, 0.75, 0.65, 0.55, 0.7], null=0.5)
    >>> round(result.estimate, 3), result.test.df, round(result.pvalue, 4)
    (0.655, 9, 0.0091)
    """
    validate_level(level)
    observed, n_missing = drop_and_count_missing(values, "values")
    if bounds is not None:
        validate_within_bounds(observed, bounds, "values")
    common: dict[str, Any] = {
        "analysis": "one_sample",
        "estimand": "mean",
        "unit": "annotator",
        "mode": mode,
        "n_rows": len(observed),
        "settings": {"null": null, "level": level, "bounds": bounds},
    }
    edge = degenerate_mean_estimate(observed, level=level, bounds=bounds, detail={"n_missing": n_missing}, **common)
    if edge is not None:
        return edge
    n = len(observed)
    mean, sd = float(np.mean(observed)), float(np.std(observed, ddof=1))
    se = sd / math.sqrt(n)
    interval = t_interval(mean, se, n - 1, level=level, bounds=bounds)
    warnings = []
    skewness = skew(observed)
    if abs(skewness) > SKEW and skewness**2 >= SKEW_PER_N * n:
        warnings.append(ResultWarning("small_n_skew", "warn", {"n": n, "skewness": skewness}))
    if (
        mode == "recommended"
        and bounds is not None
        and n < CEILING_N
        and most_frequent_value_share(observed) >= CEILING_SHARE
    ):
        t_ends = interval
        bet = betting.betting_interval(observed, level=level, bounds=bounds)
        interval = interval if bet is None else bet
        scaled = (observed - bounds[0]) / (bounds[1] - bounds[0])
        warnings.append(
            ResultWarning(
                "ceiling",
                "warn",
                {
                    "largest_share": most_frequent_value_share(observed),
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
        # The betting interval of a ceiling is another method than the test, so it has no common curve.
        _curve=TCurve(mean, se, n - 1, bounds, "one_sample_t")
        if interval.method == "t" and mode == "recommended"
        else None,
        effect=effects.cohen_dz(observed, null=null, level=level),
        warnings=tuple(warnings),
        detail={"n_missing": n_missing, "sd": sd, "se": se, "skewness": skewness},
        **common,
    )


def paired_t_test(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    level: float = 0.95,
    mode: str = "recommended",
) -> Estimate:
    """Estimate the mean of x - y over the units that have both values, and test whether it is 0 (paired t test).

    Row i of `x` and row i of `y` are the same unit. NaN is missing, and `detail["n_dropped"]` counts the units with a
    missing value. The test is that of rating differences in the SPA paper, section 6.1.

    >>> paired_t_test([3, 4, 5, 2], [2, 4, 3, None]).estimate
    1.0
    """
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} values where x has {len(first)}")
    is_complete = ~np.isnan(first) & ~np.isnan(second)
    result = one_sample_t_test(first[is_complete] - second[is_complete], null=0.0, level=level, mode=mode)
    result = result.labelled(analysis="paired", estimand="mean difference x - y")
    test = None if result.test is None else replace(result.test, name="paired_t")
    counts = {"n_complete": int(is_complete.sum()), "n_dropped": int((~is_complete).sum())}
    return replace(result, test=test, detail={**result.detail, **counts})


def welch_t_test(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Difference of the means of two independent groups, and Welch's t test that it is 0.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        One value per unit; NaN is missing.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The difference x - y; the effect is Cohen's d with the pooled s. Two constant groups: `zero_variance`.

    Notes
    -----
    The variances of the groups may differ.

    Examples
    --------
    >>> round(welch_t_test([0.6, 0.8, 0.4, 0.6], [0.4, 0.6, 0.4, 0.2]).estimate, 3)
    0.2
    """
    validate_level(level)
    first, missing_x = drop_and_count_missing(x, "x")
    second, missing_y = drop_and_count_missing(y, "y")
    n_x, n_y = len(first), len(second)
    common: dict[str, Any] = {
        "analysis": "welch",
        "estimand": "difference of means x - y",
        "unit": "annotator",
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
    if se < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="both groups are constant", estimate=difference, **common)
    df = (part_x + part_y) ** 2 / (part_x**2 / (n_x - 1) + part_y**2 / (n_y - 1))
    return Estimate(
        estimate=difference,
        interval=t_interval(difference, se, df, level=level, method="welch_t"),
        test=t_test("welch_t", difference, 0.0, se, df),
        effect=effects.cohen_d(first, second, level=level),
        **common,
    )
