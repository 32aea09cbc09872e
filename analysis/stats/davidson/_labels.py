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
        k, is_tie = self.n_systems, self.outcomes == 0.5
        winner, loser = (np.where(self.outcomes == side, self.first, self.second) for side in (1.0, 0.0))
        wins, ties = (
            np.bincount((rows * k + columns)[mask], minlength=k * k).astype(np.float64).reshape(k, k)
            for rows, columns, mask in ((winner, loser, ~is_tie), (self.first, self.second, is_tie))
        )
        return wins, ties + ties.T
