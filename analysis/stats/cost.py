"""What labels cost, what they pay by the hour, and how much precision the next ones buy.

Money is in the study's currency, whatever it is; standard errors are in points of a score from 0 to 100.

Source: Genie (Khashabi et al. 2022), section 6, Human Evaluations: Uncertainty vs Cost, and appendix C.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray, is_whole, masked_codes, refuse_level, refuse_negative, vector
from analysis.stats.leaderboard import worst_case_se
from analysis.stats.results import Estimate, Interval, Record, ResultWarning

SECONDS_AN_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Cost(Record):
    """The bill of a study in its currency: `n_labels` asked, `n_test` of them about test questions, and what they cost.

    `pay` reaches annotators, `fee` the platform, `overhead` whoever is paid once; `per_label` = total / those labels
    that count for the score.
    """

    n_labels: int
    n_test: int
    pay: float
    fee: float
    overhead: float
    total: float
    per_label: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "label"}


@dataclass(frozen=True, slots=True)
class PrecisionPoint(Record):
    """A budget and what it buys: `n` labels, their standard error in points, and their cost."""

    n: int
    se: float
    cost: float

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "label"}


@dataclass(frozen=True, slots=True)
class Halving(Record):
    """What it takes to halve a standard error: three times the labels there are, `extra_labels`, at `extra_cost`.

    `cost_a_point` is the extra cost for each point of standard error saved.
    """

    se: float
    halved: float
    extra_labels: int
    extra_cost: float
    cost_a_point: float | None

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-safe dict."""
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
    """labels x pay x (1 + fee) + overhead, for `n_items` items of each system with so many labels an item.

    `pay` is paid for one label. `test_share` of all labels asked are about test questions, which are paid and do not
    count; they come on top of the `n_items`. `fee_rate` is the platform's part of the pay.

    Source: section 6; the paper's tool computes reward x assignments x rows x 1.2.

    >>> study_cost(800, pay=0.625).total
    600.0
    """
    for name, count in (("n_items", n_items), ("labels_per_item", labels_per_item), ("n_systems", n_systems)):
        if count < 0 or not is_whole(count):
            raise ValueError(f"{name}: {count!r} is no count")
    refuse_negative(pay=pay, fee_rate=fee_rate, overhead=overhead)
    if not 0 <= test_share < 1:
        raise ValueError(f"test_share: {test_share!r} is not in 0..1")
    counted = n_items * labels_per_item * n_systems
    # A share of 10 % of all labels is a ninth of those that count; rounding keeps 10/9 x 900 from becoming 1001.
    asked = math.ceil(round(counted / (1 - test_share), 6))
    paid = asked * pay
    total = paid * (1 + fee_rate) + overhead
    return Cost(asked, asked - counted, paid, paid * fee_rate, overhead, total, total / counted if counted else None)


def hourly_wage(
    elapsed_seconds: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    pay: float,
    target: float | None = None,
    level: float = 0.95,
    analysis: str = "cost.hourly_wage",
) -> Estimate:
    """What a label's pay comes to by the hour at the median time that a label took: 3600 pay / median.

    `elapsed_seconds` and `annotators` have shape (n_labels,), NaN missing; a label of 0 seconds or less is left out and
    counted. The sensitivity is the wage of the median annotator, each at their own median, with the exact interval by
    order statistics (`n` counts annotators): the same unless the quick ones did most of the work. detail["share_below"]
    is the share of annotators under `target`; a wage below it carries the warning `below_target_wage` (severity block).

    >>> found = hourly_wage([30, 40, 60, 50], ["a", "a", "b", "b"], pay=0.25, target=18)
    >>> found.estimate, found.n, found.detail["share_below"], found.warned("below_target_wage")
    (20.0, 4, 0.5, False)
    """
    refuse_level(level)
    refuse_negative(pay=pay)
    if target is not None:
        refuse_negative(target=target)
    seconds = vector(elapsed_seconds, "elapsed_seconds")
    here = seconds > 0
    kept = seconds[here]
    positions, n_annotators = masked_codes(annotators, "annotators", here)
    n_missing = int(np.isnan(seconds).sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "pay by the hour at the median time of a label",
        "unit": "label",
        "n": len(kept),
        "n_clusters": n_annotators,
        "n_rows": len(kept),
        "settings": {"pay": pay, "target": target, "level": level},
    }
    counts = {"n_missing": n_missing, "n_without_time": len(seconds) - len(kept) - n_missing}
    if len(kept) == 0:
        return Estimate(status="no_data", reason="no label has a time", detail=counts, **common)
    median = float(np.median(kept))
    wage = pay * SECONDS_AN_HOUR / median
    own = pay * SECONDS_AN_HOUR / _medians(kept, positions, n_annotators)
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
        n_rows=len(kept),
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


def precision_curve(
    n_labels: Sequence[int],
    *,
    cost_per_label: float,
    score: float = 50.0,
    sd: float | None = None,
    design_effect: float = 1.0,
) -> tuple[PrecisionPoint, ...]:
    """Standard error in points against the number of labels, and what those cost.

    Without data the worst case at `score`, sqrt(mu (100 - mu) / n); with the standard deviation `sd` of an answer in
    points, sd / sqrt(n). Both times sqrt(`design_effect`), which is 1 only if each label comes from somebody else (see
    `leaderboard.design_effect`).

    Source: section 6: 800 labels stay under 1.77, 300 under 2.89 points.

    >>> [round(point.se, 2) for point in precision_curve([300, 800], cost_per_label=0.75)]
    [2.89, 1.77]
    """
    refuse_negative(cost_per_label=cost_per_label)
    points = []
    for n in n_labels:
        if n < 1 or not is_whole(n):
            raise ValueError(f"n_labels: {n!r} is no positive count")
        if sd is None:
            se = worst_case_se(score, n, design_effect=design_effect)
        else:
            refuse_negative(sd=sd, design_effect=design_effect)
            se = sd * math.sqrt(design_effect / n)
        points.append(PrecisionPoint(int(n), se, n * cost_per_label))
    return tuple(points)


def n_for_se(se: float, *, score: float = 50.0, sd: float | None = None, design_effect: float = 1.0) -> int:
    """The least number of labels whose standard error is at most `se` points; see `precision_curve`.

    >>> n_for_se(1.77), n_for_se(2.89)
    (798, 300)
    """
    if not (math.isfinite(se) and se > 0):
        raise ValueError(f"se: {se!r} is not a positive number")
    one = precision_curve([1], cost_per_label=0.0, score=score, sd=sd, design_effect=design_effect)[0].se
    # Without the tolerance a standard error that is met exactly would cost one label more.
    return max(1, math.ceil((one / se) ** 2 * (1 - 1e-12)))


def cost_of_halving(n: int, se: float, *, cost_per_label: float) -> Halving:
    """What halving the standard error of `n` labels costs: 3 n further labels, at the same labels an annotator.

    More labels from the same annotators do not halve it: their own spread stays.

    >>> halving = cost_of_halving(800, 1.77, cost_per_label=0.75)
    >>> halving.extra_labels, halving.extra_cost
    (2400, 1800.0)
    """
    if n < 1 or not is_whole(n):
        raise ValueError(f"n: {n!r} is no positive count")
    refuse_negative(se=se, cost_per_label=cost_per_label)
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
    """The order statistics that hold the median with at least `level`; None for too few values."""
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
