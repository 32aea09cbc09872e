"""The precision of a score: worst case, design effect, and one or several labels per item."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import validate_share, validate_within_bounds
from analysis.stats.leaderboard._rows import SCALE
from analysis.stats.results import Record


@dataclass(frozen=True, slots=True)
class LabellingSpread(Record):
    """Spread of a score at one budget: k labels on N / k items (multilabel), or one label on each of N items.

    `sd_unilabel` and `sd_multilabel` are over `rounds` simulated rounds, in points of 100. `exact_unilabel` and
    `exact_multilabel` have no simulation error. `icc` is the share of variance between items, None if it is
    undefined. `design_effect` = 1 + (k - 1) icc.
    """

    sd_unilabel: float
    sd_multilabel: float
    exact_unilabel: float
    exact_multilabel: float
    icc: float | None
    design_effect: float | None
    n_items: int
    labels_per_item: int
    rounds: int
    aggregate: str

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "item", "n": self.n_items}


def worst_case_se_in_points(score: float, n: int, *, design_effect: float = 1.0) -> float:
    """Largest possible standard error of a score of n answers in 0..100, before there are data.

    Parameters
    ----------
    score : float
        Score in points, 0..100.
    n : int
        Number of answers.
    design_effect : float, default 1.0
        Factor for answers of the same annotators; 1 only for one answer per annotator.

    Returns
    -------
    float
        sqrt(mu (100 - mu) / n) sqrt(design_effect), in points.

    Raises
    ------
    ValueError
        If an argument is outside its range.

    References
    ----------
    Appendix C (the inequality of Bhatia and Davis 2000).

    Examples
    --------
    >>> round(worst_case_se_in_points(50, 800), 2), round(worst_case_se_in_points(50, 300), 2)
    (1.77, 2.89)
    """
    if not 0 <= score <= SCALE:
        raise ValueError(f"score: {score!r} is not in 0..100")
    if n < 1:
        raise ValueError(f"n: {n} is less than 1")
    if not design_effect > 0:
        raise ValueError(f"design_effect: {design_effect!r} is not a positive number")
    return math.sqrt(score * (SCALE - score) / n * design_effect)


def design_effect(cluster_size: float, icc: float) -> float:
    """Design effect of clusters: 1 + (m - 1) icc.

    Parameters
    ----------
    cluster_size : float
        Answers per cluster m, at least 1 (labels per annotator, or per item).
    icc : float
        Intraclass correlation.

    Returns
    -------
    float
        The factor on the variance of a mean; at least 1.

    Raises
    ------
    ValueError
        If `cluster_size` is less than 1.

    Notes
    -----
    For items it compares k labels each with one label on k times as many items (section 4, Q3).

    Examples
    --------
    >>> round(math.sqrt(design_effect(20, 0.3)), 1), design_effect(3, 0.4)
    (2.6, 1.8)
    """
    if not cluster_size >= 1:
        raise ValueError(f"cluster_size: {cluster_size!r} is less than 1")
    validate_share(icc, "icc")
    return 1 + (cluster_size - 1) * icc


def unilabel_and_multilabel_spread_in_points(
    labels: npt.ArrayLike, *, rng: np.random.Generator, rounds: int = 500, aggregate: str = "mean"
) -> LabellingSpread:
    """Simulate the spread of the score if one budget buys k labels on few items, or one label on k times as many items.

    `labels` (n_items, k) are in 0..1, with none missing. Each round draws with replacement n_items / k items with all
    their labels, or n_items of all labels; both cost n_items labels. `aggregate` is how the labels of an item are
    combined, and "majority" is the median. The source is Genie (Khashabi et al. 2022), section 4, Q2 and Q3, Figure 3
    (standard deviations over 500 rounds).

    >>> rng = np.random.default_rng(0)
    >>> labels = np.clip(rng.normal(0.7, 0.2, (90, 1)) + rng.normal(0, 0.2, (90, 3)), 0, 1)
    >>> result = unilabel_and_multilabel_spread_in_points(labels, rng=rng)
    >>> result.exact_multilabel > result.exact_unilabel, round(result.design_effect, 1)
    (True, 1.7)
    """
    table = np.asarray(labels, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise ValueError(f"labels: at least two items with two labels each are needed, got shape {table.shape}")
    if np.isnan(table).any():
        raise ValueError(f"labels: row {int(np.argwhere(np.isnan(table))[0][0])} has a missing label")
    validate_within_bounds(table.ravel(), (0.0, 1.0), "labels")
    if aggregate not in ("mean", "majority"):
        raise ValueError(f"aggregate: {aggregate!r} is neither mean nor majority")
    if rounds < 2:
        raise ValueError(f"rounds: {rounds} is less than 2")
    n_items, k = table.shape
    n_few = max(1, round(n_items / k))
    item_scores = table.mean(axis=1) if aggregate == "mean" else np.median(table, axis=1)
    few = item_scores[rng.integers(0, n_items, (rounds, n_few))].mean(axis=1)
    many = table.ravel()[rng.integers(0, n_items * k, (rounds, n_items))].mean(axis=1)
    parts = clusters.variance_components(table.ravel(), np.repeat(np.arange(n_items), k))
    return LabellingSpread(
        sd_unilabel=SCALE * float(np.std(many, ddof=1)),
        sd_multilabel=SCALE * float(np.std(few, ddof=1)),
        exact_unilabel=SCALE * float(np.std(table)) / math.sqrt(n_items),
        exact_multilabel=SCALE * float(np.std(item_scores)) / math.sqrt(n_few),
        icc=parts.icc,
        design_effect=None if parts.icc is None else design_effect(k, parts.icc),
        n_items=n_items,
        labels_per_item=k,
        rounds=rounds,
        aggregate=aggregate,
    )
