"""What a board learns from its own pilot: one label or several per item, and precision against cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import (
    FloatArray,
    is_whole,
    label_codes_where,
    validate_non_negative,
    validate_share,
    validate_within_bounds,
    vector,
)
from analysis.stats.leaderboard._precision import worst_case_se_in_points
from analysis.stats.leaderboard._rows import SCALE
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class DoubleLabels(Record):
    """How many of `n` items have two labels or more: `n_double`, their `share`, and whether it reaches the `minimum`.

    `n_missing` items more need a second label. The share is None without items.
    """

    n: int
    n_double: int
    share: float | None
    minimum: float
    is_enough: bool
    n_missing: int
    unit: str = "item"


@dataclass(frozen=True, slots=True)
class PrecisionForCost(Record):
    """Standard errors of a score in points, as worst case and as measured, for several numbers of labels.

    All tuples have one entry per number of labels. `measured_se` is None if the pilot cannot measure it; `reason` says
    why. `sd` is that of an answer, in points, and `design_effect` the factor on the variance of a mean.
    """

    n_labels: tuple[int, ...]
    costs: tuple[float, ...]
    worst_case_se: tuple[float, ...]
    measured_se: tuple[float | None, ...]
    score: float | None
    sd: float | None
    design_effect: float | None
    n: int
    n_rows: int
    reason: str = ""
    unit: str = "annotator"


def pilot_label_table(
    values: npt.ArrayLike, items: npt.ArrayLike, *, labels_per_item: int, rng: np.random.Generator
) -> FloatArray:
    """Return the labels of a pilot as a table of items, for `unilabel_and_multilabel_spread_in_points`.

    `values` are answers in 0..1, with NaN for missing. The table (n_items, k) has the labels of the items with k =
    `labels_per_item` (at least 2) or more, in the order of the items. Items with fewer are left out, and `rng` chooses
    k labels of an item with more.

    >>> table = pilot_label_table([1, 0.5, 0, 1, 1], [1, 1, 2, 3, 3], labels_per_item=2, rng=np.random.default_rng(0))
    >>> np.sort(table).tolist()
    [[0.5, 1.0], [1.0, 1.0]]
    """
    if labels_per_item < 2:
        raise ValueError(f"labels_per_item: {labels_per_item} is less than 2")
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    is_used = ~np.isnan(array)
    codes, n_items = label_codes_where(items, "items", is_used)
    observed = array[is_used]
    order = np.lexsort((rng.random(len(codes)), codes))
    sizes = np.bincount(codes, minlength=n_items)
    starts = np.cumsum(sizes) - sizes
    chosen = starts[sizes >= labels_per_item, None] + np.arange(labels_per_item)
    return np.asarray(observed[order][chosen])


def double_label_share(values: npt.ArrayLike, items: npt.ArrayLike, *, minimum: float = 0.1) -> DoubleLabels:
    """Share of items with two labels or more, against the minimum that keeps agreement measurable.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Answers; NaN is missing.
    items : array_like, shape (n_rows,)
        Label of each row's item.
    minimum : float, default .1
        The declared minimum share.

    Returns
    -------
    DoubleLabels
        The share. With one label per item a score is most precise, but nobody can tell items from noise.

    Raises
    ------
    ValueError
        If `minimum` is not a share.

    Examples
    --------
    >>> found = double_label_share([1, 0, 1, 1], [1, 2, 3, 3], minimum=0.5)
    >>> found.n, found.n_double, found.is_enough, found.n_missing
    (3, 1, False, 1)
    """
    validate_share(minimum, "minimum")
    array = vector(values, "values")
    codes, n_items = label_codes_where(items, "items", ~np.isnan(array))
    n_double = int(np.sum(np.bincount(codes, minlength=n_items) > 1))
    # Rounding must not ask for one item more than the share.
    needed = math.ceil(minimum * n_items * (1 - 1e-12))
    share = n_double / n_items if n_items else None
    return DoubleLabels(n_items, n_double, share, minimum, n_double >= needed, max(0, needed - n_double))


def precision_for_cost(
    values: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_labels: Sequence[int],
    cost_per_label: float,
) -> PrecisionForCost:
    """Estimate the standard error of a score against cost: the worst case before there are data, and as a pilot measures it.

    `values` are answers of one system in 0..1, with NaN for missing, and `n_labels` is the horizontal axis of the
    figure. The worst case is sqrt(m (100 - m) / n) at the pilot's mean m, and at 50 without answers, for independent
    labels. The measured standard error is sd sqrt(D / n), D = D_a + D_i - 1, with the design effects of annotators and
    of items (`clusters.variance_components`) at the pilot's labels per annotator and per item. More labels of the same
    annotators are less precise than that.

    >>> found = precision_for_cost([1, 1, 0.5, 0, 0.5, 1], [1, 2, 3, 1, 2, 3], [1, 1, 1, 2, 2, 2], n_labels=[100, 400],
    ...                            cost_per_label=0.5)
    >>> found.costs, found.measured_se[0] == 2 * found.measured_se[1]
    ((50.0, 200.0), True)
    """
    validate_non_negative(cost_per_label=cost_per_label)
    for n in n_labels:
        if n < 1 or not is_whole(n):
            raise ValueError(f"n_labels: {n!r} is no positive count")
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    observed = array[~np.isnan(array)]
    people = clusters.variance_components(SCALE * array, annotators)
    things = clusters.variance_components(SCALE * array, items)
    score = SCALE * float(observed.mean()) if len(observed) else None
    sd = SCALE * float(np.std(observed, ddof=1)) if len(observed) > 1 else None
    effect, reason = None, ""
    if people.design_effect is None:
        reason = "each annotator gave one label, or there is one annotator, so labels count as independent"
    if sd is None:
        reason = "fewer than two answers have no spread"
    else:
        effect = 1 + sum((part.design_effect or 1.0) - 1 for part in (people, things))
    return PrecisionForCost(
        n_labels=tuple(int(n) for n in n_labels),
        costs=tuple(float(n * cost_per_label) for n in n_labels),
        worst_case_se=tuple(worst_case_se_in_points(50.0 if score is None else score, int(n)) for n in n_labels),
        measured_se=tuple(None if sd is None or effect is None else sd * math.sqrt(effect / n) for n in n_labels),
        score=score,
        sd=sd,
        design_effect=effect,
        n=people.n_clusters,
        n_rows=len(observed),
        reason=reason,
        unit="annotator",
    )
