"""Labels as the units that a sequential rule takes in: annotators, in the order in which they claimed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, codes, group_sums, refuse_outside, vector
from analysis.stats.results import Record

RETURNING = ("first", "last")


@dataclass(frozen=True, slots=True)
class AnnotatorUnits(Record):
    """What a sequential rule takes in: `values` (n,), one an annotator, in claim order.

    `n_labels` (n,) counts the labels in each. `n_waiting` finished claims stand behind one that is still open,
    `n_missing` labels of finished claims were never given and count as the declared value, `n_ignored` claims belong to
    annotators who came back.
    """

    values: FloatArray
    annotators: tuple[object, ...]
    claims: IntArray
    n_labels: IntArray
    n_waiting: int
    n_missing: int
    n_ignored: int


def annotator_units(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    claims: npt.ArrayLike,
    *,
    is_settled: npt.ArrayLike | None = None,
    missing: float = 0.5,
    returning: str = "first",
) -> AnnotatorUnits:
    """Labels as the units of a sequential rule: one mean an annotator, in the order in which batches were claimed.

    `values` has shape (n_rows,), one planned label a row: 1 A, 0 B, between for a share or tie, NaN where it was not
    given. `annotators` and `claims` (whole numbers that count claims, one a batch) say whose it is; `is_settled` says
    whether its batch has been submitted or released (all, if None). Units run up to the first claim that is open: were
    finished ones let past it, those who answer fast would be heard first. A label missing from a settled batch counts
    as `missing`, by default one half: left out, those who quit after losing would drop out of the comparison.

    An annotator who claims again: with `returning` "first" only the first batch counts, the rest is left to the final
    analysis; with "last" all batches make one mean at the place of the last, which is valid only if coming back does
    not depend on the answers.

    Raises ValueError, naming the row, for values outside 0..1 and a claim shared by two annotators.

    >>> units = annotator_units([1, 0, 1, 1, np.nan], ["x", "x", "y", "z", "z"], [1, 1, 3, 2, 2])
    >>> units.values.tolist(), units.annotators
    ([0.5, 0.75, 1.0], ('x', 'z', 'y'))
    """
    if returning not in RETURNING:
        raise ValueError(f"returning: {returning!r} is none of {', '.join(RETURNING)}")
    labels = vector(values, "values")
    refuse_outside(labels, (0.0, 1.0), "values")
    if not 0 <= missing <= 1:
        raise ValueError(f"missing: {missing!r} is outside 0..1")
    who, _ = codes(np.asarray(annotators), "annotators", len(labels))
    batch, n_claims = codes(np.asarray(claims), "claims", len(labels))
    settled = np.ones(len(labels), dtype=bool) if is_settled is None else np.asarray(is_settled, dtype=bool)
    if settled.shape != labels.shape:
        raise ValueError(f"is_settled: expected {len(labels)} values, got an array of shape {settled.shape}")
    owner = np.zeros(n_claims, dtype=np.int64)
    owner[batch] = who
    shared = np.flatnonzero(owner[batch] != who)
    if len(shared):
        raise ValueError(f"claims: row {int(shared[0])} has a claim that is also another annotator's")
    is_open = np.bincount(batch, weights=~settled, minlength=n_claims) > 0
    prefix = int(np.argmax(is_open)) if is_open.any() else n_claims
    n_waiting = int(np.sum(~is_open[prefix:]))

    order = np.arange(n_claims)
    place = np.full(int(who.max()) + 1 if len(who) else 0, n_claims if returning == "first" else -1)
    if returning == "first":
        np.minimum.at(place, owner, order)
        counted = place[owner] == order
    else:
        np.maximum.at(place, owner, order)
        counted = np.ones(n_claims, dtype=bool)
    entered = np.sort(place[place < prefix])
    rows = counted[batch] & (place[who] < prefix)
    given = ~np.isnan(labels)
    filled = np.where(given, labels, missing)
    sizes = np.bincount(place[who[rows]], minlength=n_claims)[entered]
    sums = group_sums(place[who[rows]], filled[rows], n_claims)[entered]
    names = np.empty(n_claims, dtype=object)
    names[batch] = np.asarray(annotators)
    numbers = np.zeros(n_claims, dtype=np.int64)
    numbers[batch] = np.asarray(claims, dtype=np.int64)
    return AnnotatorUnits(
        values=sums / sizes,
        annotators=tuple(names[entered].tolist()),
        claims=numbers[entered],
        n_labels=np.asarray(sizes, dtype=np.int64),
        n_waiting=n_waiting,
        n_missing=int(np.sum(rows & ~given)),
        n_ignored=int(np.sum(~counted[:prefix])),
    )
