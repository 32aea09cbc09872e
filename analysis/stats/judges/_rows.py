"""Labels of people beside those of a judge, with their annotators, prompts and weights."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import BoolArray, FloatArray, IntArray, label_codes, label_codes_where, vector
from analysis.stats.results import Estimate, ResultWarning

# What an estimate is about if nobody knows which person gave which label, or for majorities of people.
PROMPTS = "prompts"
PEOPLE_LEFT_OUT = ResultWarning("people_left_out", "warn", {"interval": "does not contain variation between people"})


@dataclass(frozen=True, slots=True)
class ClusteredRows:
    """Codes of each row's annotator (None if nobody knows them) and prompt, from 0, and the weights of the rows.

    `weights` are inverse inclusion probabilities. `has_people` says whether people gave labels at all, known or not.
    """

    annotators: IntArray | None
    prompts: IntArray
    weights: FloatArray
    is_weighted: bool
    has_people: bool = True

    @classmethod
    def from_arrays(
        cls,
        is_used: BoolArray,
        *,
        annotators: npt.ArrayLike | None,
        prompts: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        has_people: bool = True,
    ) -> "ClusteredRows":
        return cls(
            None if annotators is None else label_codes_where(annotators, "annotators", is_used)[0],
            label_codes_where(prompts, "prompts", is_used)[0],
            clusters.weights_of_rows(weights, is_used),
            weights is not None,
            has_people,
        )

    @property
    def population_warnings(self) -> tuple[ResultWarning, ...]:
        """Return the warning that the intervals do not contain the variation between people, if so."""
        return (PEOPLE_LEFT_OUT,) if self.annotators is None and self.has_people else ()

    def where(self, mask: BoolArray) -> "ClusteredRows":
        """Return the rows in a mask."""
        annotators = None if self.annotators is None else label_codes_where(self.annotators, "annotators", mask)[0]
        prompts = label_codes_where(self.prompts, "prompts", mask)[0]
        return replace(self, annotators=annotators, prompts=prompts, weights=self.weights[mask])

    def mean(
        self,
        values: FloatArray,
        *,
        null: float | None = None,
        level: float,
        bounds: tuple[float, float] | None = (0.0, 1.0),
        **labels: Any,
    ) -> Estimate:
        """Return the weighted mean over rows, for people and prompts, or for prompts if the people are not known."""
        options: dict[str, Any] = {"weights": self.weights, "null": null, "level": level, "bounds": bounds, **labels}
        if self.annotators is None:
            found = clusters.clustered_mean(values, self.prompts, unit="prompt", **options)
            found = replace(
                found,
                settings={**found.settings, "population": PROMPTS},
                warnings=(*found.warnings, *self.population_warnings),
            )
        else:
            found = clusters.annotator_prompt_clustered_mean(
                values, self.annotators, self.prompts, unit="annotator", **options
            )
        n_prompts = int(self.prompts.max()) + 1 if len(self.prompts) else 0
        detail = {**found.detail, "n_prompts": n_prompts, **self.weight_detail()}
        return replace(found, detail=detail, settings={**found.settings, "is_weighted": self.is_weighted})

    def weight_detail(self) -> dict[str, float]:
        """Return the number of equally weighted rows with the same information (Kish), if the rows have weights."""
        if not self.is_weighted or len(self.weights) == 0:
            return {}
        return {"n_effective_rows": clusters.effective_n_clusters(self.weights)}


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """Codes of the judge's and the people's labels (positions in `names`), of rows that have both."""

    judge: IntArray
    people: IntArray
    names: tuple[Any, ...]
    rows: ClusteredRows
    is_used: BoolArray

    @property
    def n_missing(self) -> int:
        """Return the number of rows without one of the labels."""
        return int(np.sum(~self.is_used))

    @property
    def agrees(self) -> FloatArray:
        """Return 1 for each row with equal labels, else 0."""
        return np.asarray(self.judge == self.people, dtype=np.float64)

    @classmethod
    def from_arrays(
        cls,
        judge: npt.ArrayLike | Sequence[object],
        people: npt.ArrayLike | Sequence[object],
        *,
        annotators: npt.ArrayLike | None,
        prompts: npt.ArrayLike,
        weights: npt.ArrayLike | None,
        categories: Sequence[Any] | None,
    ) -> "JudgedRows":
        sides, names = label_positions({"judge": judge, "people": people}, categories)
        is_used = (sides["judge"] >= 0) & (sides["people"] >= 0)
        rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights)
        return cls(sides["judge"][is_used], sides["people"][is_used], names, rows, is_used)


def label_positions(
    sides: dict[str, npt.ArrayLike | Sequence[object]], categories: Sequence[Any] | None
) -> tuple[dict[str, IntArray], tuple[Any, ...]]:
    """Return each side's labels as positions in the categories (-1 is missing), and the categories.

    Without categories, they are the labels that occur, sorted.
    """
    lists = {name: np.asarray(values, dtype=object) for name, values in sides.items()}
    length = len(next(iter(lists.values())))
    plain: dict[str, list[Any]] = {}
    for name, array in lists.items():
        if array.shape != (length,):
            raise ValueError(f"{name}: shape {array.shape} where the first argument has {length} rows")
        # NaN is the only label that differs from itself.
        plain[name] = [None if label is None or label != label else label for label in array.tolist()]
    if categories is None:
        found = {label for labels in plain.values() for label in labels if label is not None}
        try:
            names = tuple(sorted(found))
        except TypeError:
            raise ValueError("categories: numbers and texts are mixed; give the labels one kind") from None
    else:
        names = tuple(categories)
        if len(set(names)) < len(names):
            raise ValueError("categories: a label occurs twice")
    position: dict[Any, int] = {label: number for number, label in enumerate(names)}
    position[None] = -1
    codes = {}
    for name, labels in plain.items():
        unknown = [row for row, label in enumerate(labels) if label not in position]
        if unknown:
            raise ValueError(f"{name}: row {unknown[0]} is {labels[unknown[0]]!r}, which is no category")
        codes[name] = np.array([position[label] for label in labels], dtype=np.int64)
    return codes, names


def paired_scores(
    judge: npt.ArrayLike, people: npt.ArrayLike, **columns: npt.ArrayLike
) -> tuple[FloatArray, BoolArray, dict[str, FloatArray]]:
    """Return the judge's score minus the person's of each row, which rows have all numbers, and the other columns."""
    arrays = {name: vector(values, name) for name, values in {"judge": judge, "people": people, **columns}.items()}
    n_rows = len(arrays["judge"])
    for name, array in arrays.items():
        if len(array) != n_rows:
            raise ValueError(f"{name}: {len(array)} values where judge has {n_rows}")
    is_used = ~np.isnan(np.sum(list(arrays.values()), axis=0))
    return arrays["judge"] - arrays["people"], is_used, arrays


def pair_codes(first: IntArray, second: IntArray) -> IntArray:
    """Return codes of pairs of two codes, from 0."""
    return label_codes(first * (int(second.max(initial=0)) + 1) + second, "pairs", len(first))[0]
