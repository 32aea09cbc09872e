"""Rounds whose sample of items was renewed: which rows count in which sample, and how samples differ."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import IntArray


def rows_of_samples(
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    rounds: npt.ArrayLike,
    samples: Mapping[Any, Sequence[tuple[int, Collection[Any]]]],
) -> tuple[IntArray, IntArray]:
    """Count each row in the samples of items that its round scored, so that `equated_scores` can link the samples.

    `samples` has, for each round, the number and the items of each sample that it scored: one, or two in a round that
    links them; a round without a sample is an error. The result is the numbers of the rows and the sample that each is
    counted in, so a row whose item is in both samples of its round is counted twice. A system is counted in a sample
    only if it has a row on an item that its round's other sample lacks: the items that both share say nothing about how
    the samples differ.

    >>> old, new = (1, {"a", "b"}), (2, {"b", "c"})
    >>> rows, sample = rows_of_samples(["x"] * 4 + ["y"], ["a", "b", "c", "b", "b"], [1, 2, 2, 2, 1], {1: [old], 2: [old, new]})
    >>> rows.tolist(), sample.tolist()
    ([0, 4, 1, 2, 3], [1, 1, 2, 2, 2])
    """
    system_labels, item_labels, round_labels = np.asarray(systems), np.asarray(items), np.asarray(rounds)
    rows, numbers = [], []
    for label in np.unique(round_labels).tolist():
        if label not in samples:
            raise ValueError(f"samples: round {label!r} has none")
        in_round = np.flatnonzero(round_labels == label)
        of_round = samples[label]
        for number, own in of_round:
            used = in_round[np.isin(item_labels[in_round], list(own))]
            if len(of_round) > 1:
                other = {item for one, of_other in of_round if one != number for item in of_other}
                apart = used[~np.isin(item_labels[used], list(other))]
                used = used[np.isin(system_labels[used], np.unique(system_labels[apart]))]
            rows.append(used)
            numbers.append(np.full(len(used), number))
    if not rows:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate(rows).astype(np.int64), np.concatenate(numbers).astype(np.int64)


def numbered_occasions(
    rounds: npt.ArrayLike, samples: npt.ArrayLike | None
) -> tuple[list[tuple[Any, int]], npt.NDArray[Any]]:
    """Return the pairs (round, sample) in their order, and the number of each row's pair; without samples, the rounds."""
    labels = np.asarray(rounds)
    if samples is None:
        return [], labels
    rows = list(zip(labels.tolist(), np.asarray(samples).tolist(), strict=True))
    pairs = sorted(set(rows))
    number = {pair: place for place, pair in enumerate(pairs)}
    return pairs, np.array([number[row] for row in rows], dtype=np.int64)
