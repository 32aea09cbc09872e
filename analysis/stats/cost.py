"""The cost of labels, the hourly wage, and the precision of more labels.

Money is in the study's currency. Standard errors are in points of a score from 0 to 100.

Reference: Genie (Khashabi et al. 2022), section 6, Human Evaluations: Uncertainty vs Cost, and appendix C.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    is_whole,
    label_codes_where,
    validate_level,
    validate_non_negative,
    vector,
)
from analysis.stats.leaderboard import worst_case_se_in_points
from analysis.stats.results import Estimate, Interval, Record, ResultWarning

SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Cost(Record):
    """The cost of a study in its currency: `n_labels` paid labels, of which `n_test` are about test questions.

    `pay` goes to annotators, `fee` to the platform; `overhead` is paid once. `per_label` is the total divided by the
    number of labels that count for the score.
    """

    n_labels: int
    n_test: int
    pay: float
    fee: float
    overhead: float
    total: float
    per_label: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "label"}


@dataclass(frozen=True, slots=True)
class PrecisionPoint(Record):
    """One budget: `n` labels, their standard error in points, and their cost."""

    n: int
    se: float
    cost: float

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "label"}


@dataclass(frozen=True, slots=True)
class Halving(Record):
    """The cost of halving a standard error: `extra_labels` (three times the existing ones) at `extra_cost`.

    `cost_a_point` is the extra cost for each point by which the standard error falls.
    """

    se: float
    halved: float
    extra_labels: int
    extra_cost: float
    cost_a_point: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "label"}


def study_cost(
    n_items: int,
    *,
    pay: float,
    labels_per_item: int = 1,
    n_systems: int = 1,
    test_share: float = 0.0,
    fee_rate: float = 0.2,
    overhead: float = 0.0,
) -> Cost:
    """Cost of a study: labels x pay x (1 + fee) + overhead.

    Parameters
    ----------
    n_items : int
        Number of items of each system.
    pay : float
        Pay for one label.
    labels_per_item, n_systems : int, default 1
        Labels per item, and number of systems.
    test_share : float, default 0.0
        Share of all labels that are on test questions. They are paid in addition and do not count.
    fee_rate : float, default 0.2
        The platform's fee as a share of the pay.
    overhead : float, default 0.0
        Cost that is paid once.

    Returns
    -------
    Cost
        The cost.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    References
    ----------
    Section 6; the paper's tool computes reward x assignments x rows x 1.2.

    Examples
    --------
    >>> study_cost(800, pay=0.625).total
    600.0
    """
    for name, count in (("n_items", n_items), ("labels_per_item", labels_per_item), ("n_systems", n_systems)):
        if count < 0 or not is_whole(count):
            raise ValueError(f"{name}: {count!r} is no count")
    validate_non_negative(pay=pay, fee_rate=fee_rate, overhead=overhead)
    if not 0 <= test_share < 1:
        raise ValueError(f"test_share: {test_share!r} is not in 0..1")
    counted = n_items * labels_per_item * n_systems
    # 10 % of all labels are a ninth of those that count. Rounding prevents 10/9 x 900 from becoming 1001.
    n_labels = math.ceil(round(counted / (1 - test_share), 6))
    paid = n_labels * pay
    total = paid * (1 + fee_rate) + overhead
    return Cost(
        n_labels, n_labels - counted, paid, paid * fee_rate, overhead, total, total / counted if counted else None
    )


def median_hourly_wage(
    elapsed_seconds: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    pay_per_label: float,
    target: float | None = None,
    level: float = 0.95,
    analysis: str = "cost.hourly_wage",
) -> Estimate:
    """Hourly wage at the median time of a label: 3600 pay / median.

    Parameters
    ----------
    elapsed_seconds : array_like, shape (n_labels,)
        Time of each label; NaN is missing. 0 seconds or less is left out and counted.
    annotators : array_like, shape (n_labels,)
        Label of each row's annotator.
    pay_per_label : float
        Pay for one label.
    target : float, optional
        Lowest acceptable hourly wage. Below it: warning `below_target_wage` (severity block).
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The wage. The sensitivity is the wage of the median annotator, with the exact interval by order statistics.
        `detail["share_below"]` is the share of annotators below `target`.

    Examples
    --------
    >>> result = median_hourly_wage([30, 40, 60, 50], ["a", "a", "b", "b"], pay_per_label=0.25, target=18)
    >>> result.estimate, result.n, result.detail["share_below"], result.has_warning("below_target_wage")
    (20.0, 4, 0.5, False)
    """
    validate_level(level)
    validate_non_negative(pay=pay_per_label)
    if target is not None:
        validate_non_negative(target=target)
    seconds = vector(elapsed_seconds, "elapsed_seconds")
    is_timed = seconds > 0
    timed = seconds[is_timed]
    positions, n_annotators = label_codes_where(annotators, "annotators", is_timed)
    n_missing = int(np.isnan(seconds).sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "pay by the hour at the median time of a label",
        "unit": "label",
        "n": len(timed),
        "n_clusters": n_annotators,
        "n_rows": len(timed),
        "settings": {"pay": pay_per_label, "target": target, "level": level},
    }
    counts = {"n_missing": n_missing, "n_without_time": len(seconds) - len(timed) - n_missing}
    if len(timed) == 0:
        return Estimate(status="no_data", reason="no label has a time", detail=counts, **common)
    median = float(np.median(timed))
    wage = pay_per_label * SECONDS_AN_HOUR / median
    own = pay_per_label * SECONDS_AN_HOUR / _medians(timed, positions, n_annotators)
    below = None if target is None else float(np.mean(own < target))
    warnings = []
    if target is not None and wage < target:
        warnings.append(ResultWarning("below_target_wage", "block", {"wage": wage, "target": target}))
    ends = _median_interval(own, level)
    by_annotator = Estimate(
        analysis=f"{analysis}.annotators",
        estimand="pay by the hour of the median annotator",
        unit="annotator",
        n=n_annotators,
        n_rows=len(timed),
        estimate=float(np.median(own)),
        interval=ends,
        settings={"level": level},
    )
    return Estimate(
        estimate=wage,
        sensitivity=(by_annotator,),
        warnings=tuple(warnings),
        detail={"median_seconds": median, "share_below": below, **counts},
        **common,
    )


def precision_in_points_curve(
    n_labels: Sequence[int],
    *,
    cost_per_label: float,
    score: float = 50.0,
    sd: float | None = None,
    design_effect: float = 1.0,
) -> tuple[PrecisionPoint, ...]:
    """Standard error in points and cost for several numbers of labels.

    Parameters
    ----------
    n_labels : sequence[int]
        Numbers of labels.
    cost_per_label : float
        Cost of a label.
    score : float, default 50.0
        Score for the worst case, sqrt(mu (100 - mu) / n).
    sd : float, optional
        Standard deviation of an answer in points, for sd / sqrt(n) instead.
    design_effect : float, default 1.0
        Factor on the variance, 1 only with one label per annotator (see `leaderboard.design_effect`).

    Returns
    -------
    tuple[PrecisionPoint, ...]
        One point per number of labels.

    Raises
    ------
    ValueError
        If a number is not a positive count.

    References
    ----------
    Section 6: 800 labels stay under 1.77, 300 under 2.89 points.

    Examples
    --------
    >>> [round(point.se, 2) for point in precision_in_points_curve([300, 800], cost_per_label=0.75)]
    [2.89, 1.77]
    """
    validate_non_negative(cost_per_label=cost_per_label)
    points = []
    for n in n_labels:
        if n < 1 or not is_whole(n):
            raise ValueError(f"n_labels: {n!r} is no positive count")
        if sd is None:
            se = worst_case_se_in_points(score, n, design_effect=design_effect)
        else:
            validate_non_negative(sd=sd, design_effect=design_effect)
            se = sd * math.sqrt(design_effect / n)
        points.append(PrecisionPoint(int(n), se, n * cost_per_label))
    return tuple(points)


def n_labels_for_se(
    se_points: float, *, score: float = 50.0, sd: float | None = None, design_effect: float = 1.0
) -> int:
    """Least number of labels with a standard error of at most `se_points` points.

    Parameters
    ----------
    se_points : float
        Largest standard error, in points of a score from 0 to 100.
    score, sd, design_effect : float, optional
        As in `precision_in_points_curve`.

    Returns
    -------
    int
        Number of labels.

    Raises
    ------
    ValueError
        If `se_points` is not a positive number.

    Examples
    --------
    >>> n_labels_for_se(1.77), n_labels_for_se(2.89)
    (798, 300)
    """
    if not (math.isfinite(se_points) and se_points > 0):
        raise ValueError(f"se_points: {se_points!r} is not a positive number")
    se_of_one = precision_in_points_curve([1], cost_per_label=0.0, score=score, sd=sd, design_effect=design_effect)[
        0
    ].se
    # Without the tolerance a standard error that is met exactly would cost one label more.
    return max(1, math.ceil((se_of_one / se_points) ** 2 * (1 - 1e-12)))


def cost_of_halving_se(n: int, se: float, *, cost_per_label: float) -> Halving:
    """Cost of halving the standard error of `n` labels: 3 n more labels, with the same labels per annotator.

    Parameters
    ----------
    n : int
        Number of labels.
    se : float
        Their standard error, in points.
    cost_per_label : float
        Cost of a label, in the study's currency.

    Returns
    -------
    Halving
        The extra labels and their cost. More labels from the same annotators do not halve the standard error, because
        the annotators' own variance stays.

    Raises
    ------
    ValueError
        If `n` is not a whole number of at least 1, or an amount is negative.

    Examples
    --------
    >>> halving = cost_of_halving_se(800, 1.77, cost_per_label=0.75)
    >>> halving.extra_labels, halving.extra_cost
    (2400, 1800.0)
    """
    if n < 1 or not is_whole(n):
        raise ValueError(f"n: {n!r} is no positive count")
    validate_non_negative(se=se, cost_per_label=cost_per_label)
    extra = 3 * int(n)
    price = extra * cost_per_label
    return Halving(se, se / 2, extra, price, price / (se / 2) if se > 0 else None)


def _medians(values: FloatArray, positions: IntArray, n_groups: int) -> FloatArray:
    order = np.lexsort((values, positions))
    ordered = values[order]
    sizes = np.bincount(positions, minlength=n_groups)
    start = np.cumsum(sizes) - sizes
    return np.asarray((ordered[start + (sizes - 1) // 2] + ordered[start + sizes // 2]) / 2)


def _median_interval(values: FloatArray, level: float) -> Interval | None:
    """Return the order statistics that contain the median with at least `level`, or None for too few values."""
    n = len(values)
    tail = (1 - level) / 2
    counts = np.arange(n + 1)
    below = special.bdtr(counts, n, 0.5)
    # The largest r with P(fewer than r of n lie below the median) <= tail.
    r = int(np.sum(below <= tail))
    if r == 0:
        return None
    ordered = np.sort(values)
    return Interval(level, float(ordered[r - 1]), float(ordered[n - r]), "order_statistics")
