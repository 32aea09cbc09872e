"""Counts of people: differences of shares, independence, and attrition by condition."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, multiplicity
from analysis.stats.arrays import matrix, validate_level
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, ResultWarning

# Below this expected count the chi-square approximation is poor.
SMALL_EXPECTED = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attrition(Record):
    """Attrition: `shares` lost by condition, `differences` from the reference, and the `test` of equal shares."""

    shares: tuple[Estimate, ...]
    differences: tuple[Estimate, ...]
    test: Estimate


def share_difference(
    successes_x: int,
    n_x: int,
    successes_y: int,
    n_y: int,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the difference x - y of two shares of independent units, with Newcombe's interval and Fisher's exact test.

    With Wilson intervals (l, u), low = d - sqrt((p_x - l_x)^2 + (u_y - p_y)^2), and high likewise (Newcombe 1998,
    Interval estimation for the difference between independent proportions, method 10). The interval is also valid for
    shares of 0 and 1. If both groups have no successes, or only successes, the status is `zero_variance`, with an
    interval and without a test.

    >>> result = share_difference(56, 70, 48, 80)
    >>> round(result.estimate, 3), round(result.interval.low, 4), round(result.interval.high, 4)
    (0.2, 0.0524, 0.3339)
    """
    from scipy import stats

    validate_level(level)
    for name, successes, n in (("successes_x", successes_x, n_x), ("successes_y", successes_y, n_y)):
        if not 0 <= successes <= n:
            raise ValueError(f"{name}: {successes} is not in 0..{n}")
    common: dict[str, Any] = {
        "analysis": "attrition.difference",
        "estimand": "difference of shares x - y",
        "unit": "assignment",
        "n": n_x + n_y,
        "n_rows": n_x + n_y,
        "settings": {"null": 0.0, "level": level},
    }
    detail: dict[str, Any] = {"n_x": n_x, "n_y": n_y, "successes_x": successes_x, "successes_y": successes_y}
    if min(n_x, n_y) == 0:
        return Estimate(status="no_data", reason="a group is empty", detail=detail, **common)
    x, y = successes_x / n_x, successes_y / n_y
    low_x, high_x = basic.wilson_interval(successes_x, n_x, level)
    low_y, high_y = basic.wilson_interval(successes_y, n_y, level)
    low = x - y - math.hypot(x - low_x, high_y - y)
    high = x - y + math.hypot(high_x - x, y - low_y)
    common |= {"estimate": x - y, "interval": Interval(level, low, high, "newcombe"), "detail": detail}
    if successes_x + successes_y in (0, n_x + n_y):
        return Estimate(status="zero_variance", reason="all units of both groups have one outcome", **common)
    table = [[successes_x, n_x - successes_x], [successes_y, n_y - successes_y]]
    pvalue = min(1.0, float(stats.fisher_exact(table).pvalue))
    return Estimate(test=HypothesisTest(name="fisher_exact", null=0.0, statistic=None, pvalue=pvalue), **common)


def independence_test(
    table: npt.ArrayLike, *, resamples: int = 9999, rng: np.random.Generator | None = None
) -> Estimate:
    """Estimate Cramer's V of a table of counts, and test whether its rows and columns are independent.

    `table` has whole numbers, and each unit counts in one cell. If every expected count is at least 5, the test is
    Pearson's chi-square on (r - 1)(c - 1), without continuity correction. Otherwise it is Fisher's exact test for 2 by
    2, and for larger tables chi-square over `resamples` random tables with the same margins: p = (1 + number as
    extreme) / (1 + resamples). `rng` draws these tables; without it the p-value is asymptotic (warning
    `small_expected`). A row or column without units gives the status `not_identified`, and all units in one column give
    `zero_variance`.

    >>> result = independence_test([[30, 10], [20, 20], [25, 15]])
    >>> round(result.test.statistic, 4), result.test.df, round(result.pvalue, 4)
    (5.3333, 2.0, 0.0695)
    >>> independence_test([[30, 0], [20, 0]]).status
    'zero_variance'
    """
    from scipy import stats

    counts = matrix(table, "table")
    if np.isnan(counts).any() or np.any(counts < 0) or np.any(counts != np.round(counts)):
        raise ValueError("table: only whole, non-negative numbers count units")
    rows, columns, n = counts.sum(axis=1), counts.sum(axis=0), int(counts.sum())
    common: dict[str, Any] = {
        "analysis": "attrition.independence",
        "estimand": "Cramer's V",
        "unit": "assignment",
        "n": n,
        "n_rows": n,
        "settings": {"resamples": resamples},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no unit is counted", **common)
    if min(counts.shape) < 2:
        return Estimate(status="not_identified", reason="needs two rows and two columns", **common)
    if np.any(rows == 0):
        reason = f"row {int(np.flatnonzero(rows == 0)[0])} counts nobody"
        return Estimate(status="not_identified", reason=reason, **common)
    if np.count_nonzero(columns) == 1:
        return Estimate(status="zero_variance", reason="all units are in one column", **common)
    if np.any(columns == 0):
        reason = f"column {int(np.flatnonzero(columns == 0)[0])} counts nobody"
        return Estimate(status="not_identified", reason=reason, **common)
    expected = rows[:, None] * columns[None, :] / n
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    df = (len(rows) - 1) * (len(columns) - 1)
    name, pvalue = "chi_square", float(special.chdtrc(df, statistic))
    warnings: tuple[ResultWarning, ...] = ()
    if float(expected.min()) < SMALL_EXPECTED:
        if counts.shape == (2, 2):
            name, pvalue = "fisher_exact", float(stats.fisher_exact(counts.astype(np.int64)).pvalue)
        elif rng is not None:
            drawn = stats.random_table(rows.astype(int), columns.astype(int)).rvs(resamples, random_state=rng)
            extreme = np.sum((drawn - expected) ** 2 / expected, axis=(1, 2)) >= statistic * (1 - 1e-9)
            name, pvalue = "chi_square_resampled", (1 + int(extreme.sum())) / (1 + resamples)
        else:
            warnings = (ResultWarning("small_expected", "warn", {"smallest": float(expected.min())}),)
    test = HypothesisTest(
        name=name,
        null=0.0,
        statistic=None if name == "fisher_exact" else statistic,
        df=float(df) if name == "chi_square" else None,
        pvalue=min(1.0, pvalue),
        alternative="two-sided" if name == "fisher_exact" else "greater",
    )
    return Estimate(
        estimate=math.sqrt(statistic / (n * (min(counts.shape) - 1))),
        test=test,
        warnings=warnings,
        detail={"chi_square": statistic, "df": df, "smallest_expected": float(expected.min())},
        **common,
    )


def differential_attrition(
    started: Sequence[int],
    lost: Sequence[int],
    conditions: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator | None = None,
) -> Attrition:
    """Estimate and test the differences between conditions in the share of annotators who were lost.

    `started` and `lost` are, for each condition, the numbers of annotators who started and of those who were lost for
    one reason. The result has the shares with Wilson's intervals, Holm-adjusted differences from the first condition
    (`share_difference`), and one test over all conditions (`independence_test`, which uses `resamples` and `rng`).
    Unequal attrition undoes the randomisation: Clark et al. 2021, footnote 11, lost over 70 % in one condition with
    longer training.

    >>> result = differential_attrition([100, 100, 100], [10, 12, 31], ["none", "instructions", "examples"])
    >>> [round(share.estimate, 2) for share in result.shares], [round(d.estimate, 2) for d in result.differences]
    ([0.1, 0.12, 0.31], [0.02, 0.21])
    >>> result.test.pvalue < 0.001
    True
    """
    names = [str(condition) for condition in conditions]
    if not len(started) == len(lost) == len(names):
        raise ValueError(f"lost: {len(lost)} and started: {len(started)} counts for {len(names)} conditions")
    if len(set(names)) < len(names):
        raise ValueError("conditions: a condition is repeated")
    for row, (n, gone) in enumerate(zip(started, lost, strict=True)):
        if not 0 <= gone <= n:
            raise ValueError(f"lost: row {row} is {gone}, not in 0..{n}")
    shares, differences = [], {}
    for name, n, gone in zip(names, started, lost, strict=True):
        share = basic.proportion(gone, n, level=level)
        share = share.labelled(analysis="attrition.share", estimand="share lost", unit="assignment")
        shares.append(replace(share, settings={**share.settings, "condition": name}))
        if name != names[0]:
            other = share_difference(gone, n, lost[0], started[0], level=level)
            differences[name] = replace(other, settings={**other.settings, "condition": name, "reference": names[0]})
    family = multiplicity.Family("attrition.difference", tuple(differences))
    table = np.array([lost, np.subtract(started, lost)], dtype=np.float64).T.reshape(len(names), 2)
    return Attrition(
        shares=tuple(shares),
        differences=tuple(
            multiplicity.adjust_pvalues_and_intervals_of_family(differences, family, star_scheme=None).values()
        ),
        test=independence_test(table, resamples=resamples, rng=rng),
    )
