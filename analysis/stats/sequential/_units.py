"""Convert labels to the units of a sequential rule: annotators in the order of their claims."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, group_sums, label_codes, validate_within_bounds, vector
from analysis.stats.results import Record

# The value of a label that is missing from a settled batch.
MISSING = 0.5


@dataclass(frozen=True, slots=True)
class AnnotatorUnits(Record):
    """The units of a sequential rule: `values` (n,), one per annotator, in the order of claims.

    `n_labels` (n,) counts the labels of each. `n_waiting` counts finished claims after one that is still open.
    `n_missing` counts labels of finished claims that were never given; they count as .5. `n_ignored`
    counts claims of annotators who returned.
    """

    values: FloatArray
    annotators: tuple[object, ...]
    claims: IntArray
    n_labels: IntArray
    n_waiting: int
    n_missing: int
    n_ignored: int


def annotator_means_in_claim_order(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    claims: npt.ArrayLike,
    *,
    is_settled: npt.ArrayLike | None = None,
) -> AnnotatorUnits:
    """Convert labels to units: one mean per annotator, in the order in which batches were claimed.

    A row is a planned label: 1 for A, 0 for B, between for a share or tie, and NaN if it was not given. `claims` has
    the number of each row's claim, a whole number per batch, and `is_settled` says whether the batch was submitted or
    released. A label missing from a settled batch has the value .5, because leaving it out would drop annotators who
    quit after losing. If an annotator claims again, only the first batch counts. The units end at the first open claim:
    if later ones counted, fast annotators would enter first. Two annotators who share a claim raise ValueError with the
    row.

    >>> units = annotator_means_in_claim_order([1, 0, 1, 1, np.nan], ["x", "x", "y", "z", "z"], [1, 1, 3, 2, 2])
    >>> units.values.tolist(), units.annotators
    ([0.5, 0.75, 1.0], ('x', 'z', 'y'))
    """
    labels = vector(values, "values")
    validate_within_bounds(labels, (0.0, 1.0), "values")
    annotator_codes, _ = label_codes(np.asarray(annotators), "annotators", len(labels))
    batch, n_claims = label_codes(np.asarray(claims), "claims", len(labels))
    settled = np.ones(len(labels), dtype=bool) if is_settled is None else np.asarray(is_settled, dtype=bool)
    if settled.shape != labels.shape:
        raise ValueError(f"is_settled: expected {len(labels)} values, got an array of shape {settled.shape}")
    owner = np.zeros(n_claims, dtype=np.int64)
    owner[batch] = annotator_codes
    shared = np.flatnonzero(owner[batch] != annotator_codes)
    if len(shared):
        raise ValueError(f"claims: row {int(shared[0])} has a claim that is also another annotator's")
    is_open = np.bincount(batch, weights=~settled, minlength=n_claims) > 0
    prefix = int(np.argmax(is_open)) if is_open.any() else n_claims
    n_waiting = int(np.sum(~is_open[prefix:]))

    order = np.arange(n_claims)
    claim_places = np.full(int(annotator_codes.max()) + 1 if len(annotator_codes) else 0, n_claims)
    np.minimum.at(claim_places, owner, order)
    counted = claim_places[owner] == order
    entered = np.sort(claim_places[claim_places < prefix])
    rows = counted[batch] & (claim_places[annotator_codes] < prefix)
    is_observed = ~np.isnan(labels)
    filled = np.where(is_observed, labels, MISSING)
    sizes = np.bincount(claim_places[annotator_codes[rows]], minlength=n_claims)[entered]
    sums = group_sums(claim_places[annotator_codes[rows]], filled[rows], n_claims)[entered]
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
        n_missing=int(np.sum(rows & ~is_observed)),
        n_ignored=int(np.sum(~counted[:prefix])),
    )
