"""Permutation tests: what the statistic would have been had labels that the null calls exchangeable been swapped.

What may be swapped follows from the design, and each design has its function: units between two independent groups,
the two systems within an annotator, or the conditions of whole annotators. Rows that share an annotator are never
swapped singly. (The signs of one sample: `basic.sign_flip`.)

A statistic is any function of two arrays of shape (resamples, n) that returns shape (resamples,). Where all
permutations are no more than `resamples` they are enumerated and p is their share that is as extreme; otherwise
p = (1 + number as extreme) / (1 + resamples), which is never 0.

Source: Phipson and Smyth 2010, Permutation p-values should never be zero.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, kept_codes, present, sizes_of, totals, vector
from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.results import Estimate, HypothesisTest

Statistic = Callable[[FloatArray, FloatArray], npt.ArrayLike]

RESAMPLES = 9999
ALTERNATIVES = ("two-sided", "greater", "less")
# How many numbers a block of resamples holds at once.
CELLS = 2_000_000
COUNT_COST = 10
# Statistics that differ by no more than rounding are equally extreme.
TIE = 1e-9


def two_groups(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    statistic: Statistic | None = None,
    null: float = 0.0,
    alternative: str = "two-sided",
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "permutation.two_groups",
    estimand: str = "difference of means x - y",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Whether two groups of independent units are one: which of them is in which group is permuted.

    `x` and `y` have shapes (n_x,) and (n_y,), one value a unit, NaN missing. `statistic(x, y)` takes shapes
    (resamples, n_x) and (resamples, n_y), by default the difference of means; `null` is its value where nothing
    differs, from which "two-sided" measures distance (.5 for a probability of superiority). The null hypothesis is that
    both groups have one distribution, not only one mean. detail has the number of permutations, how many were as
    extreme, and the Monte-Carlo error of p. All values equal: `zero_variance`.

    >>> result = two_groups([3, 4, 5], [1, 2, 2], rng=np.random.default_rng(0))
    >>> result.pvalue, result.detail["is_exact"], result.detail["n_permutations"]
    (0.1, True, 20)
    >>> def medians(x, y):
    ...     return np.median(x, axis=1) - np.median(y, axis=1)
    >>> two_groups([3, 4, 5], [1, 2, 2], statistic=medians, rng=np.random.default_rng(0)).estimate
    2.0
    """
    _refuse(alternative, resamples)
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
        "settings": {"null": null, "alternative": alternative, "resamples": resamples},
    }
    detail = {"n_x": n_x, "n_y": n_y, "n_missing": missing_x + missing_y}
    if min(n_x, n_y) == 0:
        return Estimate(status="no_data", reason="a group has no value", detail=detail, **common)
    function = mean_difference if statistic is None else statistic
    observed = _value(function, first, second)
    pooled = np.concatenate([first, second])
    edge = _edge(observed, min(n_x, n_y), pooled, detail, common)
    if edge is not None:
        return edge
    n_permutations = math.comb(n_x + n_y, n_x)
    if n_permutations <= resamples:
        members = _combinations(n_x + n_y, n_x)
        values = np.concatenate([_evaluate(function, pooled[a], pooled[b]) for a, b in _blocks(members, n_x + n_y)])
    elif statistic is None:
        values = _mean_differences(pooled, n_x, resamples, rng)
    else:
        drawn = (_shuffled(pooled, size, rng) for size in _sizes(resamples, n_x + n_y))
        values = np.concatenate([_evaluate(function, block[:, :n_x], block[:, n_x:]) for block in drawn])
    return _result("permutation_independent", observed, values, n_permutations, null, alternative, detail, common)


def paired_systems(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike | None = None,
    *,
    statistic: Statistic | None = None,
    null: float = 0.0,
    alternative: str = "two-sided",
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "permutation.paired_systems",
    estimand: str = "mean difference x - y",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Whether it matters which of two systems an annotator judged: the two are swapped within annotators.

    `x` and `y` have shape (n_rows,), row i one annotator's judgements of both systems (for one prompt); a row with
    either missing is dropped. An annotator with several rows (`annotators`, (n_rows,); each row its own if None) has all
    of them swapped together, since his rows are not independent: 2^G permutations of G annotators.
    `statistic(x, y)` takes two arrays of shape (resamples, n_rows); the default is the mean of x - y over rows, for
    which this is the sign-flip test. No difference anywhere: `zero_variance`.

    >>> result = paired_systems([4, 5, 3, 5], [3, 3, 2, 4], rng=np.random.default_rng(0))
    >>> result.estimate, result.pvalue
    (1.25, 0.125)
    >>> paired_systems([4, 5, 3, 5], [3, 3, 2, 4], ["a", "a", "b", "b"], rng=np.random.default_rng(0)).pvalue
    0.5
    """
    _refuse(alternative, resamples)
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} values where x has {len(first)}")
    labels = np.arange(len(first)) if annotators is None else np.asarray(annotators)
    both = ~np.isnan(first) & ~np.isnan(second)
    first, second = first[both], second[both]
    who, n_annotators = kept_codes(labels, "annotators", both)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": len(first),
        "settings": {"null": null, "alternative": alternative, "resamples": resamples},
    }
    detail = {"n_complete": len(first), "n_dropped": int((~both).sum())}
    if len(first) == 0:
        return Estimate(status="no_data", reason="no row has both values", detail=detail, **common)
    function = mean_difference if statistic is None else statistic
    observed = _value(function, first, second)
    edge = _edge(observed, n_annotators, np.r_[0.0, first - second], detail, common)
    if edge is not None:
        return edge
    n_permutations = _power_of_two(n_annotators)
    is_exact = n_permutations <= resamples
    sums = totals(who, first - second, n_annotators)
    values = []
    for start, size in _starts(n_permutations if is_exact else resamples, len(first)):
        swap = _bits(start, size, n_annotators) if is_exact else rng.random((size, n_annotators)) < 0.5
        if statistic is None:
            values.append((1.0 - 2.0 * swap) @ sums / len(first))
        else:
            rows = swap[:, who]
            values.append(_evaluate(function, np.where(rows, second, first), np.where(rows, first, second)))
    return _result(
        "permutation_paired", observed, np.concatenate(values), n_permutations, null, alternative, detail, common
    )


def clustered_groups(
    values: npt.ArrayLike,
    is_x: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    statistic: Statistic | None = None,
    null: float = 0.0,
    alternative: str = "two-sided",
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "permutation.clustered_groups",
    estimand: str = "difference of label-weighted means x - y",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Whether two conditions differ where each annotator was in one of them and gave several answers.

    All arrays have shape (n_rows,), a missing value drops its row; `is_x` (boolean) is the condition of the row's
    annotator. Whole annotators change condition, the numbers of annotators in each stay. `statistic(x, y)` takes two arrays of shape
    (resamples, n_rows) in which NaN stands for the rows of the other condition (np.nanmean and its kin read them); the
    default is the difference of the means over rows. Raises ValueError, naming him, for an annotator in both
    conditions: that is a paired design.

    >>> values, is_x = [1, 1, 0, 1, 0, 0, 0, 0], [True] * 4 + [False] * 4
    >>> result = clustered_groups(values, is_x, [1, 1, 2, 2, 3, 3, 4, 4], rng=np.random.default_rng(0))
    >>> result.estimate, result.n, round(result.pvalue, 4)
    (0.75, 4, 0.3333)
    """
    _refuse(alternative, resamples)
    array = vector(values, "values")
    labels = np.asarray(annotators)
    mask = np.asarray(is_x)
    if mask.shape != array.shape or mask.dtype != np.bool_:
        raise ValueError(f"is_x: expected {len(array)} booleans, got {mask.dtype} of shape {mask.shape}")
    here = ~np.isnan(array)
    n_missing = int((~here).sum())
    who, n_annotators = kept_codes(labels, "annotators", here)
    array, mask, labels = array[here], mask[here], labels[here]
    sizes = sizes_of(who, n_annotators)
    in_x = totals(who, mask.astype(np.float64), n_annotators)
    mixed = np.flatnonzero((in_x > 0) & (in_x < sizes))
    if len(mixed):
        name = labels[who == mixed[0]][0].item()
        raise ValueError(f"annotators: {name!r} is in both conditions; use paired_systems")
    is_member = in_x > 0
    n_x = int(is_member.sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": len(array),
        "settings": {"null": null, "alternative": alternative, "resamples": resamples},
    }
    detail = {"n_x": n_x, "n_y": n_annotators - n_x, "n_missing": n_missing}
    if n_x in (0, n_annotators):
        return Estimate(status="no_data", reason="a group has no value", detail=detail, **common)
    sums = totals(who, array, n_annotators)

    def evaluate(members: BoolArray) -> FloatArray:
        if statistic is None:
            ones = members.astype(np.float64)
            of_x, count_x = ones @ sums, ones @ sizes
            return np.asarray(of_x / count_x - (sums.sum() - of_x) / (sizes.sum() - count_x))
        rows = members[:, who]
        return _evaluate(statistic, np.where(rows, array, np.nan), np.where(rows, np.nan, array))

    observed = _finite(float(evaluate(is_member[None, :])[0]))
    edge = _edge(observed, min(n_x, n_annotators - n_x), array, detail, common)
    if edge is not None:
        return edge
    n_permutations = math.comb(n_annotators, n_x)
    found = []
    if n_permutations <= resamples:
        chosen = _combinations(n_annotators, n_x)
        for start, size in _starts(n_permutations, len(array)):
            members = np.zeros((size, n_annotators), dtype=np.bool_)
            np.put_along_axis(members, chosen[start : start + size], True, axis=1)
            found.append(evaluate(members))
    else:
        for _, size in _starts(resamples, len(array)):
            found.append(evaluate(rng.permuted(np.tile(is_member, (size, 1)), axis=1)))
    return _result(
        "permutation_clustered", observed, np.concatenate(found), n_permutations, null, alternative, detail, common
    )


def mean_difference(x: FloatArray, y: FloatArray) -> FloatArray:
    """The default statistic: the difference of the means of each row of two arrays; shape (resamples,).

    >>> mean_difference(np.array([[1.0, 2.0]]), np.array([[0.0, 1.0, 2.0]])).tolist()
    [0.5]
    """
    return np.asarray(np.mean(x, axis=1) - np.mean(y, axis=1))


def superiority_statistic(x: FloatArray, y: FloatArray) -> FloatArray:
    """A statistic for two groups: the share of pairs with x above y, ties half; its `null` is .5.

    >>> superiority_statistic(np.array([[2.0, 3.0]]), np.array([[1.0, 2.0]])).tolist()
    [0.875]
    """
    from scipy import stats

    n_x, n_y = x.shape[1], y.shape[1]
    ranks = stats.rankdata(np.concatenate([x, y], axis=1), axis=1)[:, :n_x]
    return np.asarray((np.mean(ranks, axis=1) - (n_x + 1) / 2) / n_y)


def _result(
    name: str,
    observed: float,
    values: FloatArray,
    n_permutations: int,
    null: float,
    alternative: str,
    detail: dict[str, Any],
    common: dict[str, Any],
) -> Estimate:
    is_exact = n_permutations == len(values)
    undefined = int(np.sum(~np.isfinite(values)))
    detail |= {"is_exact": is_exact, "n_permutations": len(values)}
    if undefined:
        reason = f"the statistic is undefined for {undefined} of {len(values)} permutations"
        return Estimate(status="failed", reason=reason, estimate=observed, detail=detail, **common)
    extreme = _extreme(observed - null, values - null, alternative)
    pvalue = extreme / len(values) if is_exact else (1 + extreme) / (1 + len(values))
    detail |= {
        "n_extreme": extreme,
        "monte_carlo_error": 0.0 if is_exact else monte_carlo_error(pvalue, len(values)),
    }
    test = HypothesisTest(name=name, null=null, statistic=observed, pvalue=pvalue, alternative=alternative)
    return Estimate(estimate=observed, test=test, detail=detail, **common)


def _extreme(observed: float, values: FloatArray, alternative: str) -> int:
    tie = TIE * max(abs(observed), float(np.max(np.abs(values))))
    if alternative == "two-sided":
        return int(np.sum(np.abs(values) >= abs(observed) - tie))
    if alternative == "greater":
        return int(np.sum(values >= observed - tie))
    return int(np.sum(values <= observed + tie))


def _edge(
    observed: float, smallest: int, values: FloatArray, detail: dict[str, Any], common: dict[str, Any]
) -> Estimate | None:
    common = {**common, "estimate": observed, "detail": detail}
    if smallest == 1:
        return Estimate(status="n_lt_2", reason="one unit has no spread", **common)
    if np.all(values == values[0]):
        return Estimate(status="zero_variance", reason="nothing differs, so nothing can be swapped", **common)
    return None


def _value(statistic: Statistic, x: FloatArray, y: FloatArray) -> float:
    return _finite(float(_evaluate(statistic, x[None, :], y[None, :])[0]))


def _finite(observed: float) -> float:
    if not math.isfinite(observed):
        raise ValueError("statistic: undefined for the data themselves")
    return observed


def _evaluate(statistic: Statistic, x: FloatArray, y: FloatArray) -> FloatArray:
    found = np.asarray(statistic(x, y), dtype=np.float64)
    if found.shape != (len(x),):
        raise ValueError(f"statistic: returned shape {found.shape} for {len(x)} resamples, expected ({len(x)},)")
    return found


def _mean_differences(pooled: FloatArray, n_x: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Of random divisions: which values fall to x needs only how often each distinct one does."""
    distinct, counts = np.unique(pooled, return_counts=True)
    n = len(pooled)
    # A count costs about as much to draw as ten places do to shuffle.
    is_counted = COUNT_COST * len(distinct) < n
    found = []
    for size in _sizes(resamples, len(distinct) if is_counted else n):
        if is_counted:
            sum_x = rng.multivariate_hypergeometric(counts, n_x, size=size, method="marginals") @ distinct
        else:
            sum_x = _shuffled(pooled, size, rng)[:, :n_x].sum(axis=1)
        found.append(sum_x / n_x - (pooled.sum() - sum_x) / (n - n_x))
    return np.concatenate(found)


def _shuffled(values: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(rng.permuted(np.tile(values, (size, 1)), axis=1))


def _combinations(n: int, k: int) -> IntArray:
    rows = list(itertools.combinations(range(n), k))
    return np.asarray(rows, dtype=np.int64).reshape(len(rows), k)


def _blocks(members: IntArray, n: int) -> Iterator[tuple[IntArray, IntArray]]:
    """The chosen positions and the others, in blocks."""
    for start, size in _starts(len(members), n):
        chosen = members[start : start + size]
        rest = np.ones((size, n), dtype=np.bool_)
        np.put_along_axis(rest, chosen, False, axis=1)
        yield chosen, np.nonzero(rest)[1].reshape(size, n - chosen.shape[1])


def _bits(start: int, size: int, n: int) -> BoolArray:
    return np.asarray(((np.arange(start, start + size)[:, None] >> np.arange(n)) & 1) == 1)


def _power_of_two(n: int) -> int:
    # More than can be counted is also more than can be enumerated.
    return 1 << min(n, 62)


def _starts(total: int, width: int) -> Iterator[tuple[int, int]]:
    size = max(1, CELLS // max(1, width))
    for start in range(0, total, size):
        yield start, min(size, total - start)


def _sizes(total: int, width: int) -> Iterator[int]:
    return (size for _, size in _starts(total, width))


def _refuse(alternative: str, resamples: int) -> None:
    if alternative not in ALTERNATIVES:
        raise ValueError(f"alternative: {alternative!r} is none of {', '.join(ALTERNATIVES)}")
    if resamples < 1:
        raise ValueError(f"resamples: {resamples} is less than 1")
