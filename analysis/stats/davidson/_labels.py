"""Checked labels of pairwise choices in rows, and the tables of their counts."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, label_codes_where, vector
from analysis.stats.bradley_terry import checked_system_pairs


@dataclass(frozen=True, slots=True)
class PairedComparisonLabels:
    """Rows without the missing ones: `outcomes` is 1 if `first` was chosen, 0 if `second` was, .5 for a tie.

    `annotators` and `prompts` (None if not given) are codes from 0.
    """

    first: IntArray
    second: IntArray
    outcomes: FloatArray
    annotators: IntArray
    n_annotators: int
    n_systems: int
    prompts: IntArray | None = None

    @classmethod
    def from_arrays(
        cls,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        outcomes: npt.ArrayLike,
        annotators: npt.ArrayLike,
        n_systems: int,
        prompts: npt.ArrayLike | None = None,
    ) -> "PairedComparisonLabels":
        """Build from arrays. Raise ValueError with the row for an invalid pair of systems or an invalid outcome."""
        labels = vector(outcomes, "outcomes")
        x, y = checked_system_pairs(first, second, len(labels), n_systems)
        wrong = np.flatnonzero(~np.isnan(labels) & (labels != 0) & (labels != 0.5) & (labels != 1))
        if len(wrong):
            raise ValueError(f"outcomes: row {int(wrong[0])} is {labels[wrong[0]]:g}, none of 0, .5 and 1")
        is_observed = ~np.isnan(labels)
        annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
        prompt_codes = None if prompts is None else label_codes_where(prompts, "prompts", is_observed)[0]
        rows = x[is_observed], y[is_observed], labels[is_observed]
        return cls(*rows, annotator_codes, n_annotators, n_systems, prompt_codes)

    def win_and_tie_tables(self) -> tuple[FloatArray, FloatArray]:
        """Return the wins of the row over the column, and the ties (symmetric); both (K, K)."""
        wins, ties = self._tables(np.zeros_like(self.annotators), 1)
        return wins[0], ties[0]

    def win_and_tie_tables_by_annotator(self) -> tuple[FloatArray, FloatArray]:
        """Return the tables of wins and of ties of each annotator; both (G, K, K)."""
        return self._tables(self.annotators, self.n_annotators)

    def _tables(self, groups: IntArray, n_groups: int) -> tuple[FloatArray, FloatArray]:
        k = self.n_systems
        is_tie = self.outcomes == 0.5
        winner, loser = (np.where(self.outcomes == side, self.first, self.second) for side in (1.0, 0.0))
        size = 2 * k * k
        cells = [(groups * size + winner * k + loser)[~is_tie]]
        for row_system, other in ((self.first, self.second), (self.second, self.first)):
            cells.append((groups * size + k * k + row_system * k + other)[is_tie])
        counts = np.bincount(np.concatenate(cells), minlength=n_groups * size).astype(np.float64)
        tables = counts.reshape(n_groups, 2, k, k)
        return tables[:, 0], tables[:, 1]
