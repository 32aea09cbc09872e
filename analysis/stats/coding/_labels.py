"""Sets of labels and their distances."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap
from analysis.stats.arrays import FloatArray, IntArray, label_codes, matrix
from analysis.stats.results import Estimate, ResultWarning

MERGE_RULES = ("union", "intersection", "both_counted")
# With fewer codings with a label, a nominal 95 % interval of kappa covers as little as a third of the time.
FEW_CODINGS = 10
LabelSet = Collection[str] | None


def masi_distance(a: Collection[str], b: Collection[str]) -> float:
    """Compute the MASI distance 1 - J M of two sets of labels: Jaccard's similarity J times a monotonicity M.

    The distance is in 0..1. M is 1 for equal sets, 2/3 if one contains the other, 1/3 if they overlap, and 0 if they
    share nothing. Two empty sets are equal; an empty set shares nothing with another set. The source is Passonneau
    2006, Measuring agreement on set-valued items (MASI).

    >>> round(masi_distance({"grammar", "genre"}, {"grammar"}), 4), masi_distance({"grammar"}, set())
    (0.6667, 1.0)
    """
    first, second = set(a), set(b)
    if first == second:
        return 0.0
    common = len(first & second)
    if common == 0:
        return 1.0
    monotonicity = 2 / 3 if first < second or second < first else 1 / 3
    return 1 - common / len(first | second) * monotonicity


def _disagreement(weights: str | npt.ArrayLike | None, k: int) -> FloatArray:
    """Return the disagreements of k categories, in 0..1."""
    if weights is None:
        return 1.0 - np.eye(k)
    if isinstance(weights, str):
        apart = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :]) / max(1, k - 1)
        return np.asarray(apart**2 if weights == "quadratic" else apart, dtype=np.float64)
    table = matrix(weights, "weights")
    if table.shape != (k, k):
        raise ValueError(f"weights: shape {table.shape} where there are {k} categories")
    if np.isnan(table).any() or np.any(table < 0) or np.any(np.diag(table) != 0) or not np.any(table > 0):
        raise ValueError("weights: a matrix of disagreements, 0 on the diagonal and nowhere negative, is wanted")
    return table / float(table.max())


def _coded(
    units: npt.ArrayLike, coders: npt.ArrayLike, label_sets: Sequence[LabelSet]
) -> tuple[list[frozenset[str] | None], IntArray, IntArray]:
    """Return the sets (frozen) and the codes of units and coders. Raise ValueError if a coder coded a unit twice."""
    sets: list[frozenset[str] | None] = []
    for row, label_set in enumerate(label_sets):
        if isinstance(label_set, str):
            raise ValueError(f"label_sets: row {row} is text, {label_set!r}; a set of labels is wanted")
        sets.append(None if label_set is None else frozenset(label_set))
    positions, n_units = label_codes(np.asarray(units), "units", len(sets))
    coder_codes, _ = label_codes(np.asarray(coders), "coders", len(sets))
    keys = coder_codes * n_units + positions
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        row = int(np.setdiff1d(np.arange(len(keys)), first)[0])
        raise ValueError(f"coders: row {row} codes a unit that this coder coded before")
    return sets, positions, coder_codes


def _refuse_unknown(sets: Sequence[frozenset[str] | None], labels: Sequence[str]) -> None:
    if len(set(labels)) < len(labels):
        raise ValueError("labels: one of them occurs twice")
    known = frozenset(labels)
    for row, label_set in enumerate(sets):
        if label_set is not None and not label_set <= known:
            raise ValueError(
                f"label_sets: row {row} has {sorted(label_set - known)[0]!r}, which is not in the codebook"
            )


def _of_label(result: Estimate, label: str, positions: IntArray, applied: npt.NDArray[np.bool_]) -> Estimate:
    """Return the kappa of one label with the numbers that a reader needs, over codings of units with two or more."""
    n_applied, n = int(applied.sum()), len(applied)
    detail = {**result.detail, "n_applied": n_applied, "prevalence": None if n == 0 else n_applied / n}
    if n_applied:
        # Share of the pairs of codings with the label in one in which the other has it too, weighted by coders.
        per_unit = np.bincount(positions).astype(np.float64)
        with_label = np.bincount(positions, weights=applied)
        others = np.where(per_unit > 1, per_unit - 1, 1.0)
        detail["positive_agreement"] = float(np.sum(with_label * (with_label - 1) / others)) / n_applied
    warnings = result.warnings
    if n > 0 and min(n_applied, n - n_applied) < FEW_CODINGS:
        warnings = (*warnings, ResultWarning("rare_label", "warn", {"n_applied": n_applied, "n_codings": n}))
    return replace(result, detail=detail, warnings=warnings, settings={**result.settings, "label": label})


def _by_category(
    counts: npt.ArrayLike, labels: Sequence[str], codebook: Mapping[str, Collection[str]], excluded: Collection[str]
) -> tuple[FloatArray, list[str]]:
    table = matrix(counts, "counts")
    if table.shape[1] != len(labels):
        raise ValueError(f"labels: {len(labels)} labels where counts has {table.shape[1]} columns")
    if np.isnan(table).any() or np.any(table < 0):
        raise ValueError("counts: only non-negative numbers count labels")
    for label in labels:
        homes = [category for category, members in codebook.items() if label in members]
        if len(homes) != 1:
            raise ValueError(f"codebook: label {label!r} is in {len(homes)} categories")
    unknown = sorted(set(excluded) - set(codebook))
    if unknown:
        raise ValueError(f"excluded: {unknown[0]!r} is no category of the codebook")
    names = [category for category in codebook if category not in excluded]
    columns = [[column for column, label in enumerate(labels) if label in codebook[category]] for category in names]
    return np.column_stack([table[:, category_columns].sum(axis=1) for category_columns in columns]).reshape(
        len(table), len(names)
    ), names


def _share_draws(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return resampled shares of the categories (resamples, n_categories), over comments with any label that counts."""
    counted = table[table.sum(axis=1) > 0]
    totals = np.broadcast_to(counted.sum(axis=1, keepdims=True), counted.shape)
    return bootstrap.ratio_draws(counted, totals, bootstrap.multinomial_weights(len(counted), resamples, rng))


def _by_name(
    names: Sequence[str],
    settings: dict[str, Any],
    common: dict[str, Any],
    *,
    estimates: FloatArray | None = None,
    draws: FloatArray | None = None,
    details: Sequence[dict[str, Any]] = (),
    **undefined: Any,
) -> tuple[Estimate, ...]:
    """Return one estimate for each category, named in its settings; without `estimates` all have the same status."""
    results = []
    for column, name in enumerate(names):
        named = {**common, "settings": {**settings, "category": name}}
        if estimates is None or draws is None:
            results.append(Estimate(**undefined, **named))
            continue
        named |= {"estimate": float(estimates[column]), "detail": details[column]}
        results.append(bootstrap.estimate_with_percentile_interval(draws[:, column], level=settings["level"], **named))
    return tuple(results)
