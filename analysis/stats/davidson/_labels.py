"""Two-choice labels in rows, checked, and the tables that they add up to."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, label_codes_where, vector
from analysis.stats.bradley_terry import checked_system_pairs


@dataclass(frozen=True, slots=True)
class PairedComparisonLabels:
    """Rows without the missing ones: `outcomes` 1 where `first` was chosen, 0 where `second`, .5 a tie."""

    first: IntArray
    second: IntArray
    outcomes: FloatArray
    annotators: IntArray
    n_annotators: int
    n_systems: int

    @classmethod
    def of(
        cls,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        outcomes: npt.ArrayLike,
        annotators: npt.ArrayLike,
        n_systems: int,
    ) -> "PairedComparisonLabels":
        """Raises ValueError, naming the row, for a system out of range or beside itself, or an outcome of no kind."""
        labels = vector(outcomes, "outcomes")
        x, y = checked_system_pairs(first, second, len(labels), n_systems)
        wrong = np.flatnonzero(~np.isnan(labels) & (labels != 0) & (labels != 0.5) & (labels != 1))
        if len(wrong):
            raise ValueError(f"outcomes: row {int(wrong[0])} is {labels[wrong[0]]:g}, none of 0, .5 and 1")
        here = ~np.isnan(labels)
        who, n_annotators = label_codes_where(annotators, "annotators", here)
        return cls(x[here], y[here], labels[here], who, n_annotators, n_systems)

    def tables(self) -> tuple[FloatArray, FloatArray]:
        """Wins of the row over the column, and ties (symmetric); both (K, K)."""
        wins, ties = self._tables(np.zeros_like(self.annotators), 1)
        return wins[0], ties[0]

    def win_and_tie_tables_by_annotator(self) -> tuple[FloatArray, FloatArray]:
        """The same of each annotator; both (G, K, K)."""
        return self._tables(self.annotators, self.n_annotators)

    def _tables(self, groups: IntArray, n_groups: int) -> tuple[FloatArray, FloatArray]:
        k = self.n_systems
        is_tie = self.outcomes == 0.5
        winner, loser = (np.where(self.outcomes == side, self.first, self.second) for side in (1.0, 0.0))
        size = 2 * k * k
        cells = [(groups * size + winner * k + loser)[~is_tie]]
        for one, other in ((self.first, self.second), (self.second, self.first)):
            cells.append((groups * size + k * k + one * k + other)[is_tie])
        counts = np.bincount(np.concatenate(cells), minlength=n_groups * size).astype(np.float64)
        both = counts.reshape(n_groups, 2, k, k)
        return both[:, 0], both[:, 1]
