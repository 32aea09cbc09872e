"""The cells of systems and rounds, and what links the rounds: systems that were scored again in several of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import ranks
from analysis.stats.arrays import BoolArray, FloatArray, IntArray, label_codes, validate_within_bounds, vector
from analysis.stats.bradley_terry import connected_components
from analysis.stats.leaderboard._rows import SCALE, equal_item_weights

# An anchor's cell with fewer answers, or of fewer annotators, links nothing.
MINIMUM = 2


@dataclass(frozen=True, slots=True)
class LinkedRounds:
    """Mean scores of the cells (system, round), and the least-squares fit score = system + round to the anchors' cells.

    `spread` has the cells' scores in points. `system`, `round`, `n_answers`, `is_anchor` (C,) describe the cells: an
    anchor's cell has enough answers of enough annotators, and its system another such cell. `groups` are the rounds that
    anchors link, each in order. `reference` is the first round. `shifts` (R, C) are the weights of the cells in each
    round's shift against the first round of its group.
    """

    systems: tuple[Any, ...]
    rounds: tuple[Any, ...]
    spread: ranks.ScoreSpread
    system: IntArray
    round: IntArray
    n_answers: IntArray
    n_annotators: IntArray
    is_anchor: BoolArray
    groups: tuple[tuple[int, ...], ...]
    reference: int
    shifts: FloatArray

    @property
    def anchors(self) -> IntArray:
        """Return the numbers of the anchor systems."""
        return np.asarray(np.unique(self.system[self.is_anchor]), dtype=np.int64)

    def group_of(self, round_number: int) -> tuple[int, ...]:
        """Return the rounds that are linked with a round, itself included."""
        return next(group for group in self.groups if round_number in group)

    def of_system(self, system: int) -> tuple[FloatArray, int]:
        """Return the cells' weights (C,) in a system's equated score, and one round of the group that it holds in.

        A system in several groups is scored in the reference's, or in that with most of its answers.
        """
        cells = np.flatnonzero(self.system == system)
        if self.is_anchor[cells].any():
            cells = cells[self.is_anchor[cells]]
        groups = [self.group_of(int(number)) for number in self.round[cells]]
        best = max(groups, key=lambda group: (self.reference in group, self._answers(cells, group)))
        used = cells[[group == best for group in groups]]
        shares = self.n_answers[used] / self.n_answers[used].sum()
        weights = np.zeros(len(self.system))
        weights[used] = shares
        return weights - shares @ self.shifts[self.round[used]], int(self.round[used[0]])

    def _answers(self, cells: IntArray, group: tuple[int, ...]) -> int:
        return int(self.n_answers[cells[np.isin(self.round[cells], group)]].sum())

    def residuals(self) -> tuple[FloatArray, IntArray]:
        """Return the cells' weights in what each anchor's cell deviates from the fit, and the numbers of these cells."""
        cells = np.flatnonzero(self.is_anchor)
        table = np.zeros((len(cells), len(self.system)))
        table[np.arange(len(cells)), cells] = 1.0
        for row, cell in enumerate(cells):
            table[row] -= self.shifts[self.round[cell]] + self.of_system(int(self.system[cell]))[0]
        varies = np.abs(table).max(axis=1, initial=0.0) > 1e-9
        return table[varies], cells[varies]


def linked_rounds(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    rounds: npt.ArrayLike,
    *,
    items_sampled: bool,
    item_groups: npt.ArrayLike | None = None,
) -> LinkedRounds:
    """Return the cells and their links. Raise ValueError with the argument for an invalid one."""
    array = vector(values, "values")
    validate_within_bounds(array, (0.0, 1.0), "values")
    is_used = ~np.isnan(array)
    system_codes, _ = label_codes(np.asarray(systems), "systems", len(array))
    round_codes, _ = label_codes(np.asarray(rounds), "rounds", len(array))
    names, system_codes = np.unique(np.asarray(systems)[is_used], return_inverse=True)
    labels, round_codes = np.unique(np.asarray(rounds)[is_used], return_inverse=True)
    cell_labels, cells = np.unique(system_codes * len(labels) + round_codes, return_inverse=True)
    all_cells = np.zeros(len(array), dtype=np.int64)
    all_cells[is_used] = cells
    people = np.asarray(annotators)
    spread = ranks.score_spread(
        SCALE * array,
        people,
        all_cells,
        (items if item_groups is None else item_groups) if items_sampled else None,
        weights=equal_item_weights(array, all_cells, items),
    )
    system, of_round = np.divmod(cell_labels, max(1, len(labels)))
    n_answers = np.bincount(cells, minlength=len(cell_labels))
    people_codes, n_people = label_codes(people[is_used], "annotators", len(cells))
    n_annotators = np.bincount(np.unique(cells * max(1, n_people) + people_codes) // max(1, n_people))
    is_enough = (n_answers >= MINIMUM) & (n_annotators >= MINIMUM) & spread.is_defined
    is_anchor = is_enough & (np.bincount(system, is_enough, minlength=len(names))[system] > 1)
    asked = np.zeros((len(names), len(labels)), dtype=np.bool_)
    asked[system[is_anchor], of_round[is_anchor]] = True
    linked = asked.T.astype(np.float64) @ asked.astype(np.float64) > 0
    groups = connected_components(linked) if len(labels) else ()
    return LinkedRounds(
        tuple(names.tolist()),
        tuple(labels.tolist()),
        spread,
        np.asarray(system, dtype=np.int64),
        np.asarray(of_round, dtype=np.int64),
        np.asarray(n_answers, dtype=np.int64),
        np.asarray(n_annotators, dtype=np.int64),
        is_anchor,
        groups,
        0,
        _shifts(system, of_round, n_answers, is_anchor, groups),
    )


def _shifts(
    system: IntArray,
    of_round: IntArray,
    n_answers: IntArray,
    is_anchor: BoolArray,
    groups: tuple[tuple[int, ...], ...],
) -> FloatArray:
    """Return the cells' weights in the rounds' shifts; each cell counts as often as it has answers."""
    n_rounds = sum(len(group) for group in groups)
    shifts = np.zeros((n_rounds, len(system)))
    for group in groups:
        others = group[1:]
        cells = np.flatnonzero(is_anchor & np.isin(of_round, group))
        if not others:
            continue
        design = (of_round[cells, None] == np.array(others)).astype(np.float64)
        weight = n_answers[cells].astype(np.float64)
        _, codes = np.unique(system[cells], return_inverse=True)
        totals = np.bincount(codes, weight)
        # Subtract each system's mean, so that only the shifts are left to fit.
        means = np.stack([np.bincount(codes, weight * column) / totals for column in design.T], axis=1)
        centred = (design - means[codes]) * weight[:, None]
        shifts[np.array(others)[:, None], cells] = np.linalg.solve(centred.T @ design, centred.T)
    return shifts
