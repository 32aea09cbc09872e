"""Human labels of some items and judges' scores of all: validation, weights, and what each prompt contributes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    label_codes_where,
    matrix,
    vector,
)
from analysis.stats.prediction_powered._records import ITEMS, PEOPLE_AND_PROMPTS, PROMPTS


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """Human labels (rows) of some items, and the scores of all items by judges.

    `weights` of the rows are 1 / number of labels of the item. `groups` of the items are the systems whose means are
    combined. `annotators` is None if the file does not say who gave a label. `strata` of the items have shares that are
    known from all items.
    """

    values: FloatArray
    items: IntArray
    annotators: IntArray | None
    weights: FloatArray
    judges: FloatArray
    prompts: IntArray
    groups: IntArray
    names: tuple[str, ...]
    samples: str
    n_missing: int
    strata: IntArray | None = None

    @property
    def n_items(self) -> int:
        """Return the number of items."""
        return len(self.judges)

    @property
    def n_groups(self) -> int:
        """Return the number of groups."""
        return int(self.groups.max()) + 1 if len(self.groups) else 0

    @property
    def row_prompts(self) -> IntArray:
        """Return the prompt of each row."""
        return self.prompts[self.items]

    @property
    def row_groups(self) -> IntArray:
        """Return the group of each row."""
        return self.groups[self.items]

    def of_items(self, is_used: BoolArray) -> "LabelledSample":
        """Return the labels and the scores of some of the items, as one group."""
        new_positions = np.cumsum(is_used) - 1
        rows = is_used[self.items]
        n_used = int(is_used.sum())
        annotators = self.annotators
        return replace(
            self,
            values=self.values[rows],
            items=new_positions[self.items[rows]],
            annotators=None if annotators is None else label_codes(annotators[rows], "annotators", int(rows.sum()))[0],
            weights=self.weights[rows],
            judges=self.judges[is_used],
            prompts=label_codes(self.prompts[is_used], "prompts", n_used)[0],
            groups=np.zeros(n_used, dtype=np.int64),
            strata=None if self.strata is None else self.strata[is_used],
        )


def labelled_sample(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    judges: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None,
    names: Sequence[str] | None,
    groups: IntArray | None = None,
    strata: npt.ArrayLike | None = None,
) -> LabelledSample:
    """Return the checked sample. Raise ValueError with the argument and the row for input that cannot be used."""
    labels = vector(values, "values")
    scores = np.asarray(judges, dtype=np.float64)
    scores = matrix(scores[:, None] if scores.ndim == 1 else scores, "judges")
    n_items, n_judges = scores.shape
    missing = np.argwhere(np.isnan(scores))
    if len(missing):
        row, column = missing[0].tolist()
        raise ValueError(f"judges: row {row} has no score of judge {column}; a judge must score every item")
    called = tuple(f"judge {column + 1}" for column in range(n_judges)) if names is None else tuple(names)
    if len(called) != n_judges or len(set(called)) != n_judges:
        raise ValueError(f"names: expected {n_judges} different names, one for each judge")
    positions = np.asarray(items)
    if positions.shape != labels.shape or (len(labels) and positions.dtype.kind not in "iu"):
        raise ValueError(f"items: expected {len(labels)} positions in the rows of judges")
    outside = np.flatnonzero((positions < 0) | (positions >= n_items))
    if len(outside):
        raise ValueError(f"items: row {int(outside[0])} is item {positions[outside[0]]}, but judges has {n_items} rows")
    is_observed = ~np.isnan(labels)
    used = positions[is_observed].astype(np.int64)
    who = None if annotators is None else label_codes_where(annotators, "annotators", is_observed)[0]
    of_prompts = np.arange(n_items) if prompts is None else label_codes(prompts, "prompts", n_items)[0]
    counts = np.bincount(used, minlength=n_items)
    return LabelledSample(
        values=labels[is_observed],
        items=used,
        annotators=who,
        weights=1 / counts[used],
        judges=scores,
        prompts=of_prompts,
        groups=np.zeros(n_items, dtype=np.int64) if groups is None else groups,
        names=called,
        samples=PEOPLE_AND_PROMPTS if annotators is not None else ITEMS if prompts is None else PROMPTS,
        n_missing=int((~is_observed).sum()),
        strata=None if strata is None else label_codes(strata, "strata", n_items)[0],
    )


def item_means(sample: LabelledSample) -> tuple[IntArray, FloatArray]:
    """Return the labelled items and the mean label of each."""
    labelled, codes = np.unique(sample.items, return_inverse=True)
    counts = np.bincount(codes, minlength=len(labelled))
    return labelled, group_sums(codes, sample.values, len(labelled)) / counts


def correlation_with_people(sample: LabelledSample, column: int) -> float | None:
    """Return the correlation of a judge's scores with the items' mean labels, each within its group, or None."""
    labelled, means = item_means(sample)
    if len(labelled) < 3:
        return None
    codes, n_groups = label_codes(sample.groups[labelled], "groups", len(labelled))
    sizes = np.bincount(codes, minlength=n_groups)
    parts = [
        part - (group_sums(codes, part, n_groups) / sizes)[codes] for part in (means, sample.judges[labelled, column])
    ]
    spread = float(np.sqrt(np.sum(parts[0] ** 2) * np.sum(parts[1] ** 2)))
    return None if spread < 1e-12 else float(np.clip(np.sum(parts[0] * parts[1]) / spread, -1, 1))
