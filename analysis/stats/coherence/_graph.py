"""Pairs of systems as a graph: arrows, and the cycles in it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, matrix, validate_within_bounds
from analysis.stats.bradley_terry import reachability

Pairs = Sequence[tuple[int, int]]
# Answers are whole percentages, so combined ones differ by at least .005; rounding errors are far below this.
TIE = 1e-9


def _table(values: npt.ArrayLike, pairs: Pairs, n_systems: int) -> FloatArray:
    table = matrix(values, "values")
    if table.shape[1] != len(pairs):
        raise ValueError(f"pairs: {len(pairs)} pairs where values has {table.shape[1]} columns")
    validate_within_bounds(table, (0.0, 1.0), "values")
    seen = set()
    for row, (x, y) in enumerate(pairs):
        if x == y or not (0 <= x < n_systems and 0 <= y < n_systems):
            raise ValueError(f"pairs: row {row} is ({x}, {y}), not two of {n_systems} systems")
        if frozenset((x, y)) in seen:
            raise ValueError(f"pairs: row {row}, ({x}, {y}), occurs twice")
        seen.add(frozenset((x, y)))
    return table


def _means(table: FloatArray) -> FloatArray:
    is_observed = ~np.isnan(table)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(is_observed, table, 0.0).sum(axis=0) / is_observed.sum(axis=0), dtype=np.float64)


def _arrows(means: FloatArray, pairs: Pairs, n_systems: int) -> npt.NDArray[np.bool_]:
    """Return which system beats which (n_draws, K, K), from means of shape (n_draws, n_pairs)."""
    beats = np.zeros((len(means), n_systems, n_systems), dtype=np.bool_)
    for column, (x, y) in enumerate(pairs):
        beats[:, x, y] = means[:, column] > 0.5 + TIE
        beats[:, y, x] = means[:, column] < 0.5 - TIE
    return beats


def is_cyclic(beats: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether who beats whom contains a cycle, for each table; shapes (..., K, K) and (...).

    >>> is_cyclic(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)).item()
    True
    """
    reach = reachability(beats)
    mutual = reach & np.swapaxes(reach, -1, -2) & ~np.eye(beats.shape[-1], dtype=np.bool_)
    return np.asarray(np.any(mutual, axis=(-1, -2)))


def shortest_cycles(beats: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Return one shortest cycle for each group of systems that beat one another in a circle; `beats` is (K, K).

    >>> shortest_cycles(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool))
    ((0, 1, 2),)
    """
    reach = reachability(beats)
    mutual = reach & reach.T
    groups = sorted({tuple(int(node) for node in np.flatnonzero(row)) for row in mutual if row.sum() > 1})
    return tuple(
        min((_cycle_from(beats, start) for start in group), key=lambda cycle: (len(cycle), cycle)) for group in groups
    )


def _cycle_from(beats: npt.NDArray[np.bool_], start: int) -> tuple[int, ...]:
    """Return a shortest cycle through `start` along the arrows, by breadth-first search."""
    paths: list[tuple[int, ...]] = [(start,)]
    seen = {start}
    while paths:
        longer: list[tuple[int, ...]] = []
        for path in paths:
            for node in np.flatnonzero(beats[path[-1]]).tolist():
                if node == start:
                    return path
                if node not in seen:
                    seen.add(node)
                    longer.append((*path, node))
        paths = longer
    raise ValueError(f"beats: no cycle passes through system {start}")


def _fundamental_cycles(
    pairs: Pairs, is_asked: npt.NDArray[np.bool_], n_systems: int
) -> list[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    """Return each cycle as its nodes and its steps (column, and +1 for a step from x to y, else -1)."""
    links: dict[int, dict[int, tuple[int, int]]] = {node: {} for node in range(n_systems)}
    for column, (x, y) in enumerate(pairs):
        if is_asked[column]:
            links[x][y] = (column, 1)
            links[y][x] = (column, -1)
    parent: dict[int, int | None] = {}
    for root in range(n_systems):
        if root in parent:
            continue
        parent[root] = None
        queue = [root]
        for node in queue:
            for other in sorted(links[node]):
                if other not in parent:
                    parent[other] = node
                    queue.append(other)
    cycles = []
    for x, y in pairs:
        if y not in links[x] or parent[x] == y or parent[y] == x:
            continue
        up_x, up_y = _ancestors(x, parent), _ancestors(y, parent)
        meeting = next(node for node in up_x if node in up_y)
        # From the meeting point down to x, over the closing pair to y, and back up.
        down = up_x[: up_x.index(meeting) + 1][::-1]
        back = up_y[: up_y.index(meeting)]
        nodes = tuple(down + back)
        steps = [links[a][b] for a, b in zip(nodes, (*nodes[1:], nodes[0]), strict=True)]
        if sum(sign for _, sign in steps) < 0:
            nodes = (nodes[0], *nodes[:0:-1])
            steps = [links[a][b] for a, b in zip(nodes, (*nodes[1:], nodes[0]), strict=True)]
        cycles.append((nodes, steps))
    return cycles


def _ancestors(node: int, parent: dict[int, int | None]) -> list[int]:
    line = [node]
    above = parent[node]
    while above is not None:
        line.append(above)
        above = parent[above]
    return line
