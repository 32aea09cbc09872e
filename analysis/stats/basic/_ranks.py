"""Tests based on signs and ranks."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    drop_and_count_missing,
    matrix,
)
from analysis.stats.basic._proportions import proportion
from analysis.stats.results import Estimate, HypothesisTest

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
    ranks = stats.rankdata(np.abs(distances))
    half_zeros = float(ranks[distances == 0].sum()) / 2
    up = float(ranks[distances > 0].sum()) + half_zeros
    down = float(ranks[distances < 0].sum()) + half_zeros
    if method == "exact":
        pvalue = _signed_rank_pvalue(ranks[distances != 0], up - down)
    else:
        outcome = stats.wilcoxon(distances, zero_method=zero_method, correction=correction, method="asymptotic")
        pvalue = float(outcome.pvalue)
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
