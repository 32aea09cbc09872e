"""Scores of people and of a metric by systems and by pairs of outputs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, group_sums, label_codes, matrix, vector
from analysis.stats.clusters import TOO_FEW_ITEMS
from analysis.stats.results import Estimate

GROUPINGS = ("item", "none")
MAX_PAIRS = 5_000_000
# What all these numbers are about: the people behind the human scores are no sample, whether they are known or not.
ITEMS = "items, for exactly these people"


@dataclass(frozen=True, slots=True)
class ScoreTables:
    """Scores of both sides with the same cells missing, without items of which all cells are left out.

    `fixed` (K,) has the scores of a metric without items. `groups` (n_items,) are the codes of what is drawn again: the items, or
    groups of items.
    """

    human: FloatArray
    metric: FloatArray
    fixed: FloatArray | None
    groups: IntArray

    @property
    def n_items(self) -> int:
        return int(self.human.shape[0])

    @property
    def n_groups(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    @property
    def has_enough_groups(self) -> bool:
        """Return whether drawing again shows a spread: two items, or five groups of items."""
        return self.n_groups > 1 and (self.n_groups == self.n_items or self.n_groups >= TOO_FEW_ITEMS)

    def sums_by_group(self, rows: FloatArray) -> FloatArray:
        """Return the sums over the items of each group of a table, shape (n_groups, q)."""
        sums = [group_sums(self.groups, column, self.n_groups) for column in rows.T]
        return np.stack(sums, axis=1) if sums else rows[: self.n_groups]

    @property
    def n_systems(self) -> int:
        return int(self.human.shape[1])

    @property
    def n_cells(self) -> int:
        return int(np.sum(~np.isnan(self.human)))

    @classmethod
    def from_arrays(
        cls, human: npt.ArrayLike, metric: npt.ArrayLike, item_groups: npt.ArrayLike | None = None
    ) -> "ScoreTables":
        human_scores = matrix(human, "human")
        if np.ndim(np.asarray(metric, dtype=np.float64)) == 1:
            fixed = vector(metric, "metric")
            if len(fixed) != human_scores.shape[1]:
                raise ValueError(f"metric: {len(fixed)} scores for {human_scores.shape[1]} systems")
            is_used = (~np.isnan(human_scores)).any(axis=1)
            groups = _group_codes(item_groups, is_used)
            return cls(human_scores[is_used], human_scores[is_used], fixed, groups)
        other = matrix(metric, "metric")
        if other.shape != human_scores.shape:
            raise ValueError(f"metric: shape {other.shape} where human has {human_scores.shape}")
        missing = np.isnan(human_scores) | np.isnan(other)
        is_used = ~missing.all(axis=1)
        return cls(
            np.where(missing, np.nan, human_scores)[is_used],
            np.where(missing, np.nan, other)[is_used],
            None,
            _group_codes(item_groups, is_used),
        )


def _group_codes(item_groups: npt.ArrayLike | None, is_used: npt.ArrayLike) -> IntArray:
    """Return the codes of the used items, or of their groups."""
    used = np.flatnonzero(is_used)
    if item_groups is None:
        return np.arange(len(used))
    return label_codes(np.asarray(item_groups)[used], "item_groups", len(used))[0]


@dataclass(frozen=True, slots=True)
class OutputPairs:
    """All pairs of outputs within a group: differences on both sides and the number of the group; shapes (n_pairs,)."""

    human: FloatArray
    metric: FloatArray
    group: IntArray
    n_groups: int

    @classmethod
    def from_tables(cls, tables: ScoreTables, grouping: str) -> "OutputPairs":
        if grouping not in GROUPINGS:
            raise ValueError(f"grouping: {grouping!r} is not one of {', '.join(GROUPINGS)}")
        if tables.fixed is not None:
            raise ValueError("metric: scores of items are needed, not of whole systems")
        human, metric = tables.human, tables.metric
        if grouping == "none":
            is_observed = ~np.isnan(human)
            human, metric = human[is_observed][None, :], metric[is_observed][None, :]
        n, k = human.shape
        if n * k * (k - 1) // 2 > MAX_PAIRS:
            raise ValueError(f"grouping: {n * k * (k - 1) // 2} pairs are more than {MAX_PAIRS}; group by item")
        left, right = np.triu_indices(k, 1)
        first, second = human[:, left] - human[:, right], metric[:, left] - metric[:, right]
        is_pair = ~np.isnan(first)
        group = np.broadcast_to(np.arange(n)[:, None], first.shape)[is_pair]
        return cls(first[is_pair], second[is_pair], np.asarray(group, dtype=np.int64), n)

    def taus_by_group(self) -> FloatArray:
        """Return tau-b of each group; NaN if a side has no two different scores."""
        human_signs, metric_signs = np.sign(self.human), np.sign(self.metric)
        together, of_human, of_metric = (
            np.bincount(self.group, values, self.n_groups)
            for values in (human_signs * metric_signs, human_signs**2, metric_signs**2)
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(together / np.sqrt(of_human * of_metric))


def too_few_systems_estimate(tables: ScoreTables, minimum: int, common: dict[str, Any]) -> Estimate | None:
    """Return the estimate without a value if there are no scores or fewer than `minimum` systems, else None."""
    if tables.n_cells == 0:
        return Estimate(status="no_data", reason="no output was scored by both sides", **common)
    if tables.n_systems < minimum:
        reason = f"{tables.n_systems} systems are too few for a number; look at the scatter plot"
        return Estimate(status="not_applicable", reason=reason, detail={"n_systems": tables.n_systems}, **common)
    return None
