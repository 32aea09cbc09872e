"""Intraclass correlations of scores on a continuous scale."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, matrix, validate_level
from analysis.stats.results import Estimate, HypothesisTest, Interval

ICC_KINDS = ("one_way", "absolute", "consistency")


def intraclass_correlation(
    scores: npt.ArrayLike,
    *,
    kind: str = "absolute",
    average: bool = False,
    level: float = 0.95,
    analysis: str = "intraclass_correlation",
    unit: str = "item",
    mode_label: str = "recommended",
) -> Estimate:
    """Intraclass correlation: the share of the variance of scores that is between items, with its F interval.

    Parameters
    ----------
    scores : array_like, shape (n_annotators, n_items)
        Scores; NaN is missing. For the two-way kinds an item with a missing score is left out
        (`detail["n_incomplete"]`).
    kind : {"one_way", "absolute", "consistency"}, default 'absolute'
        "one_way": each item has its own annotators. "absolute": the same annotators score all items, and a stricter
        annotator counts as disagreement. "consistency": a stricter annotator does not.
    average : bool, default False
        Whether the coefficient is that of the mean of the k annotators instead of one annotator's score.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis, unit, mode_label : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The coefficient and the test of no variance between items; `n` counts items. No variance, or fewer than two
        items or annotators: a status. No disagreement at all: 1 and `zero_variance`. A coefficient far below 0 may
        have no interval.

    Raises
    ------
    ValueError
        If `kind` is not allowed.

    Notes
    -----
    With mean squares R of items, C of annotators, W within items and E of the residual, k annotators, n items:
    one-way (R - W) / (R + (k - 1) W); consistency (R - E) / (R + (k - 1) E); absolute (R - E) / (R + (k - 1) E + k (C
    - E) / n); average (R - W) / R, (R - E) / R, (R - E) / (R + (C - E) / n).

    One-way needs two scores per item. Unequal numbers make its interval approximate, with k0 = (N - sum k_i^2 / N) /
    (n - 1) instead of k.

    References
    ----------
    McGraw and Wong 1996, Forming inferences about some intraclass correlation coefficients (ICC(1), ICC(A,1),
    ICC(C,1) and the same of k); the data of the example are those of Shrout and Fleiss 1979.

    Examples
    --------
    >>> scores = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]
    >>> [round(intraclass_correlation(scores, kind=kind).estimate, 2) for kind in ICC_KINDS]
    [0.17, 0.29, 0.71]
    """
    validate_level(level)
    if kind not in ICC_KINDS:
        raise ValueError(f"kind: {kind!r} is not one of {', '.join(ICC_KINDS)}")
    table = matrix(scores, "scores")
    is_observed = ~np.isnan(table)
    table, is_observed = table[is_observed.any(axis=1)], is_observed[is_observed.any(axis=1)]
    per_item = is_observed.sum(axis=0)
    is_used = per_item > 1 if kind == "one_way" else (per_item == len(table)) & (per_item > 0)
    dropped = int(np.sum((per_item > 0) & ~is_used))
    table, is_observed, per_item = table[:, is_used], is_observed[:, is_used], per_item[is_used]
    n_items, n_rows = table.shape[1], int(is_observed.sum())
    score_name = "the mean of an item's annotators" if average else "one annotator's score"
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"intraclass correlation ({kind}) of {score_name}",
        "unit": unit,
        "mode": mode_label,
        "n": n_items,
        "n_rows": n_rows,
        "settings": {"kind": kind, "average": average, "level": level},
    }
    detail: dict[str, Any] = {"n_annotators": int(is_observed.any(axis=1).sum()), "n_incomplete": dropped}
    if per_item.size == 0 and dropped == 0:
        return Estimate(status="no_data", reason="no score to analyse", detail=detail, **common)
    if n_items < 2 or len(table) < 2:
        reason = "needs two items that at least two annotators scored"
        return Estimate(status="not_identified", reason=reason, detail=detail, **common)
    raters = (n_rows - float(np.sum(per_item**2)) / n_rows) / (n_items - 1)
    squares = _mean_squares(table, is_observed, per_item, kind)
    detail |= {"raters_per_item": raters, **squares}
    between, error, annotators = squares["ms_items"], squares["ms_error"], squares.get("ms_annotators", 0.0)
    tiny = MIN_SPREAD * max(1.0, float(np.nanmax(np.abs(table)))) ** 2
    if between <= tiny and error <= tiny and (kind == "consistency" or annotators <= tiny):
        return Estimate(status="zero_variance", reason="all scores are equal", detail=detail, **common)
    extra = raters * (annotators - error) / n_items if kind == "absolute" else 0.0
    below = between + (0 if average else (raters - 1) * error) + (extra / raters if average else extra)
    if abs(below) <= tiny:
        return Estimate(status="not_identified", reason="the items' means do not vary", detail=detail, **common)
    value = (between - error) / below
    if error <= tiny and (kind != "absolute" or annotators <= tiny):
        reason = "the annotators never disagree, so the interval has no width"
        return Estimate(status="zero_variance", reason=reason, estimate=value, detail=detail, **common)
    ends = _icc_ends(squares, raters, n_items, kind, level)
    if average and ends is not None:
        ends = _raised(ends[0], raters), _raised(ends[1], raters)
    if ends is not None and not ends[0] <= value <= ends[1]:
        # If annotators disagree more than items differ, the approximation can reverse the ends.
        ends = None
    method = "f" if len(set(per_item.tolist())) == 1 else "f_approximate"
    test = None
    if error > tiny:
        statistic = between / error
        pvalue = float(special.fdtrc(squares["df_items"], squares["df_error"], statistic))
        test = HypothesisTest(name="f", null=0.0, statistic=statistic, pvalue=pvalue, alternative="greater")
    return Estimate(
        estimate=value,
        interval=None if ends is None else Interval(level, ends[0], ends[1], method),
        test=test,
        detail=detail,
        **common,
    )


def _mean_squares(
    table: FloatArray, is_observed: npt.NDArray[np.bool_], per_item: IntArray, kind: str
) -> dict[str, float]:
    """Return mean squares and degrees of freedom; one-way has no term for annotators."""
    n_items, n_rows = table.shape[1], int(is_observed.sum())
    filled = np.where(is_observed, table, 0.0)
    # Sums of squares about the grand mean lose fewer digits than squares of raw sums.
    centred = np.where(is_observed, filled - filled.sum() / n_rows, 0.0)
    item_means = centred.sum(axis=0) / per_item
    items = float(np.sum(per_item * item_means**2))
    within = float(np.sum(np.where(is_observed, centred - item_means, 0.0) ** 2))
    if kind == "one_way":
        df_error = n_rows - n_items
        squares = {"ms_items": items / (n_items - 1), "ms_error": within / df_error}
        return {**squares, "df_items": float(n_items - 1), "df_error": float(df_error)}
    n_annotators = len(table)
    annotator_means = centred.mean(axis=1)
    annotators = n_items * float(np.sum(annotator_means**2))
    residual = float(np.sum((centred - item_means - annotator_means[:, None]) ** 2))
    df_error = (n_items - 1) * (n_annotators - 1)
    return {
        "ms_items": items / (n_items - 1),
        "ms_annotators": annotators / (n_annotators - 1),
        "ms_error": residual / df_error,
        "df_items": float(n_items - 1),
        "df_error": float(df_error),
    }


def _icc_ends(
    squares: dict[str, float], raters: float, n_items: int, kind: str, level: float
) -> tuple[float, float] | None:
    """Return the interval of the single-score coefficient; the average's follows by Spearman and Brown."""
    tail = (1 - level) / 2
    between, error, annotators = squares["ms_items"], squares["ms_error"], squares.get("ms_annotators", 0.0)
    df_items, df_error = squares["df_items"], squares["df_error"]
    if kind != "absolute":
        ratio = between / error
        low = ratio / float(special.fdtri(df_items, df_error, 1 - tail))
        high = ratio * float(special.fdtri(df_error, df_items, 1 - tail))
        return (low - 1) / (low + raters - 1), (high - 1) / (high + raters - 1)
    below = between + (raters - 1) * error + raters * (annotators - error) / n_items
    # The average can be defined although the coefficient of one score is a division by 0.
    if abs(below) <= MIN_SPREAD * (between + raters * error + annotators) or abs(below - between + error) < MIN_SPREAD:
        return None
    value = (between - error) / below
    a = raters * value / (n_items * (1 - value))
    b = 1 + raters * value * (n_items - 1) / (n_items * (1 - value))
    # Satterthwaite's degrees of freedom of a C + b E.
    parts = (a * annotators) ** 2 / (raters - 1) + (b * error) ** 2 / df_error
    df = (a * annotators + b * error) ** 2 / parts if parts > 0 else 0.0
    if not df > 0:
        return None
    mixed = raters * annotators + (raters * n_items - raters - n_items) * error
    under, above = float(special.fdtri(df_items, df, 1 - tail)), float(special.fdtri(df, df_items, 1 - tail))
    low = n_items * (between - under * error) / (under * mixed + n_items * between)
    high = n_items * (above * between - error) / (mixed + n_items * above * between)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _raised(value: float, raters: float) -> float:
    below = 1 + (raters - 1) * value
    return raters * value / below if below > MIN_SPREAD else math.nan
