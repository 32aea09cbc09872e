"""What coders write beside a comment: one code or a set of labels each, and how far two coders mean the same.

A set of labels may be empty: the coder looked and no label applies, which is an answer. A coder who did not look gave
none, which is None. The two are never mixed.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap
from analysis.stats.agreement import (
    Distance,
    category_codes,
    category_table,
    fleiss_kappa,
    krippendorff_alpha,
    listed,
)
from analysis.stats.arrays import DEGENERATE, FloatArray, IntArray, codes, matrix, refuse_level
from analysis.stats.results import Estimate, Interval, Warning

MERGE_RULES = ("union", "intersection", "both_counted")
# Under this many codings with a label an interval of kappa covers as little as a third of the time (nominal 95 %).
FEW_CODINGS = 10

LabelSet = Collection[str] | None


def jaccard_distance(a: Collection[str], b: Collection[str]) -> float:
    """1 - |a and b| / |a or b|; two empty sets are equal, distance 0.

    >>> jaccard_distance({"grammar", "genre"}, {"grammar"}), jaccard_distance(set(), set())
    (0.5, 0.0)
    """
    first, second = set(a), set(b)
    if first == second:
        return 0.0
    return 1 - len(first & second) / len(first | second)


def masi_distance(a: Collection[str], b: Collection[str]) -> float:
    """1 - J M: Jaccard's similarity J times a monotonicity M that spares a coder who merely found more.

    M is 1 for equal sets, 2/3 where one holds the other, 1/3 where they overlap, 0 where they share nothing. Two empty
    sets are equal; an empty set and another share nothing.

    Source: Passonneau 2006, Measuring agreement on set-valued items (MASI).

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


DISTANCES: Mapping[str, Distance] = {"masi": masi_distance, "jaccard": jaccard_distance}


def cohen_kappa(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    *,
    categories: Sequence[Any] | None = None,
    weights: str | npt.ArrayLike | None = None,
    method: str = "fisher_z",
    level: float = 0.95,
    analysis: str = "cohen_kappa",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """Cohen's kappa of two coders who coded the same units, plain or weighted, with its interval.

    `first` and `second` have shape (n_units,), one code each, None where a coder gave none; such units are left out
    and counted in detail["n_incomplete"]. `weights`: None counts every disagreement alike; "linear" and "quadratic"
    by the distance of the categories' places, so text needs `categories` in order; or a matrix (k, k) of
    disagreements, 0 on the diagonal. `method`: "fisher_z", tanh(atanh(kappa) -/+ z se / (1 - kappa^2)), which covers
    best and stays within -1..1; "wald", kappa -/+ z se. Both coders constant and equal: `not_identified`; no
    disagreement: 1, `zero_variance`. detail has the raw agreement, what chance gives, both coders' shares of the
    categories.

    With shares p_ij, their margins and agreement weights w_ij = 1 - d_ij / max d:
    kappa = (sum w p_ij - sum w p_i p_j) / (1 - sum w p_i p_j).

    Source: Cohen 1960 and 1968; standard error of Fleiss, Cohen and Everitt 1969, Large sample standard errors of
    kappa and weighted kappa.

    >>> first, second = [1, 2, 3, 3, 2, 1, 1, 3, 2, 2], [1, 2, 3, 2, 2, 1, 2, 3, 2, 1]
    >>> round(cohen_kappa(first, second).estimate, 4), round(cohen_kappa(first, second, weights="linear").estimate, 4)
    (0.5385, 0.625)
    """
    refuse_level(level)
    if method not in ("fisher_z", "wald"):
        raise ValueError(f"method: {method!r} is neither fisher_z nor wald")
    ours, theirs = listed(first), listed(second)
    if len(ours) != len(theirs):
        raise ValueError(f"second: {len(theirs)} codes where first has {len(ours)}")
    if isinstance(weights, str) and weights not in ("linear", "quadratic"):
        raise ValueError(f"weights: {weights!r} is neither linear nor quadratic")
    if weights is not None and categories is None and any(isinstance(code, str) for code in (*ours, *theirs)):
        raise ValueError("categories: weights need the categories in order")
    both = [a is not None and b is not None and a == a and b == b for a, b in zip(ours, theirs, strict=True)]
    n = sum(both)
    pairs = [code for side in (ours, theirs) for code, here in zip(side, both, strict=True) if here]
    places, offered = category_codes(pairs, categories=categories, name="first and second")
    k = len(offered)
    agreeing = 1 - _disagreement(weights, k)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "Cohen's kappa" if weights is None else "weighted kappa",
        "unit": unit,
        "mode": mode,
        "n": n,
        "n_rows": 2 * n,
        "settings": {
            "weights": weights if weights is None or isinstance(weights, str) else "matrix",
            "method": method,
            "level": level,
            "categories": [str(category) for category in offered],
        },
    }
    detail: dict[str, Any] = {"n_incomplete": len(ours) - n}
    if n == 0:
        return Estimate(status="no_data", reason="no unit has two codes", detail=detail, **common)
    table = np.bincount(places[:n] * k + places[n:], minlength=k * k).reshape(k, k) / n
    by_first, by_second = table.sum(axis=1), table.sum(axis=0)
    observed = float(np.sum(agreeing * table))
    chance = float(by_first @ agreeing @ by_second)
    detail |= {
        "percent_agreement": float(np.trace(table)),
        "weighted_agreement": observed,
        "expected_agreement": chance,
        "prevalence_first": by_first,
        "prevalence_second": by_second,
    }
    if 1 - chance < DEGENERATE:
        reason = "both coders gave one and the same code throughout"
        return Estimate(status="not_identified", reason=reason, detail=detail, **common)
    kappa = (observed - chance) / (1 - chance)
    if n == 1:
        return Estimate(status="n_lt_2", reason="one unit has no spread", estimate=kappa, detail=detail, **common)
    from_first, from_second = agreeing @ by_second, agreeing.T @ by_first
    spread = agreeing - (from_first[:, None] + from_second[None, :]) * (1 - kappa)
    variance = float(np.sum(table * spread**2)) - (kappa - chance * (1 - kappa)) ** 2
    se = math.sqrt(max(0.0, variance) / n) / (1 - chance)
    detail["se"] = se
    # Rounding leaves a variance of about 1e-17 where there is none.
    if se < math.sqrt(DEGENERATE) or abs(kappa) >= 1:
        return Estimate(
            status="zero_variance", reason="the standard error is 0", estimate=kappa, detail=detail, **common
        )
    z = basic.normal_quantile(level)
    low, high = kappa - z * se, kappa + z * se
    if method == "fisher_z":
        centre, half = math.atanh(kappa), z * se / (1 - kappa**2)
        low, high = math.tanh(centre - half), math.tanh(centre + half)
    return Estimate(estimate=kappa, interval=Interval(level, low, high, method), detail=detail, **common)


def label_set_alpha(
    units: npt.ArrayLike,
    coders: npt.ArrayLike,
    label_sets: Sequence[LabelSet],
    *,
    distance: str | Distance = "masi",
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "coding.alpha",
    unit: str = "comment",
    mode: str = "recommended",
) -> Estimate:
    """Krippendorff's alpha of coders who may apply several labels to a comment, with a bootstrap over comments.

    `units`, `coders` and `label_sets` have shape (n_rows,), one row a coder's set for one comment; an empty set says
    that no label applies, None that the comment was not coded. `distance` of two sets is "masi", "jaccard" or a
    function. detail counts the empty sets and the rows not coded. Raises ValueError, naming the row, for text in place
    of a set and for a coder who coded a comment twice.

    Source: Passonneau 2006; coding of comments in Clark et al. 2021, appendix A.3.

    >>> units, coders = [1, 1, 2, 2, 3, 3], list("ababab")
    >>> sets = [{"form"}, {"form"}, {"form", "content"}, {"content"}, set(), set()]
    >>> round(label_set_alpha(units, coders, sets, rng=np.random.default_rng(0)).estimate, 4)
    0.7222
    """
    given, name = (DISTANCES.get(distance), distance) if isinstance(distance, str) else (distance, "function")
    if given is None:
        raise ValueError(f"distance: {distance!r} is none of {', '.join(DISTANCES)}")
    sets, _, _ = _coded(units, coders, label_sets)
    kinds = sorted({found for found in sets if found is not None}, key=sorted)
    table, values = category_table(np.asarray(units), sets, categories=kinds)
    result = krippendorff_alpha(
        table,
        values,
        distance=given,
        level=level,
        resamples=resamples,
        rng=rng,
        analysis=analysis,
        unit=unit,
        mode=mode,
    )
    counts = {
        "n_empty": sum(found == frozenset() for found in sets),
        "n_not_coded": sum(found is None for found in sets),
    }
    # The counts of each distinct set would need the sets beside them to mean anything.
    detail = {key: value for key, value in result.detail.items() if key != "marginals"}
    return replace(
        result,
        estimand=f"Krippendorff's alpha of label sets ({name})",
        detail={**detail, **counts, "n_distinct_sets": len(kinds)},
        settings={**result.settings, "distance": name},
    )


def label_agreement(
    units: npt.ArrayLike,
    coders: npt.ArrayLike,
    label_sets: Sequence[LabelSet],
    labels: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "coding.label",
    unit: str = "comment",
    mode: str = "recommended",
) -> tuple[Estimate, ...]:
    """For every label of the codebook, whether coders agree on where it applies: kappa of applied or not.

    Rows as for `label_set_alpha`; `labels` is the codebook, in its order, and settings["label"] names each estimate's.
    Two coders in all: Cohen's kappa; more, of whom each comment has some: Fleiss' kappa. detail has the raw agreement,
    the prevalence (share of codings with the label) and the positive agreement, 2 both / (2 both + one only): the
    chance that a second coder applies a label that one has applied. Comments with one coding are left out and counted
    (detail["n_incomplete"], for Fleiss "n_unpairable"). A label that nobody (or everybody) used has no
    kappa: `not_identified`. Warning `rare_label` under ten codings with or without it. Raises ValueError for a label
    outside the codebook.

    Source: Clark et al. 2021, appendix A.3 and Table 4.

    >>> units, coders = [1, 1, 2, 2, 3, 3, 4, 4], list("abababab")
    >>> sets = [{"form"}, {"form"}, {"form"}, {"content"}, {"content"}, {"content"}, set(), set()]
    >>> form, content = label_agreement(units, coders, sets, ["form", "content"], rng=np.random.default_rng(0))
    >>> round(form.estimate, 4), form.detail["prevalence"], round(form.detail["positive_agreement"], 4)
    (0.5, 0.375, 0.6667)
    """
    refuse_level(level)
    sets, positions, who = _coded(units, coders, label_sets)
    _refuse_unknown(sets, labels)
    is_coded = np.array([found is not None for found in sets], dtype=np.bool_)
    names, who = np.unique(who[is_coded], return_inverse=True)
    positions, n_units = codes(positions[is_coded], "units", int(is_coded.sum()))
    common: dict[str, Any] = {"level": level, "analysis": analysis, "unit": unit, "mode": mode}
    results = []
    for label in labels:
        applied = np.array([label in found for found in sets if found is not None], dtype=np.bool_)
        if len(names) == 2:
            sides: list[list[bool | None]] = [[None] * n_units for _ in range(2)]
            for coder, position, here in zip(who, positions, applied, strict=True):
                sides[int(coder)][int(position)] = bool(here)
            result = cohen_kappa(sides[0], sides[1], categories=[False, True], **common)
            pairable = np.array([None not in pair for pair in zip(*sides, strict=True)])[positions]
        else:
            table, _ = category_table(positions, applied.tolist(), categories=[False, True])
            result = fleiss_kappa(table, resamples=resamples, rng=rng, **common)
            pairable = (table.sum(axis=1) > 1)[positions] if len(positions) else np.zeros(0, dtype=np.bool_)
        results.append(_of_label(result, label, positions[pairable], applied[pairable]))
    return tuple(results)


def label_counts(
    units: npt.ArrayLike,
    coders: npt.ArrayLike,
    label_sets: Sequence[LabelSet],
    labels: Sequence[str],
    *,
    rule: str,
) -> FloatArray:
    """How often each label counts for each coded comment once its coders are merged; shape (n_units, n_labels).

    `rule`: "union" (1 where any coder applied it), "intersection" (1 where all who coded the comment did) or
    "both_counted" (once for every coder who did). Comments that nobody coded are left out. The paper does not say
    which rule it used, so the rule is always named.

    >>> sets = [{"form"}, {"form", "content"}, set(), None]
    >>> label_counts([1, 1, 2, 2], list("abab"), sets, ["form", "content"], rule="both_counted").tolist()
    [[2.0, 1.0], [0.0, 0.0]]
    """
    if rule not in MERGE_RULES:
        raise ValueError(f"rule: {rule!r} is none of {', '.join(MERGE_RULES)}")
    sets, positions, _ = _coded(units, coders, label_sets)
    _refuse_unknown(sets, labels)
    place = {label: column for column, label in enumerate(labels)}
    n_units = int(positions.max()) + 1 if len(positions) else 0
    counts, n_coders = np.zeros((n_units, len(place))), np.zeros(n_units)
    for position, found in zip(positions, sets, strict=True):
        if found is not None:
            n_coders[position] += 1
            for label in found:
                counts[position, place[label]] += 1
    counts, n_coders = counts[n_coders > 0], n_coders[n_coders > 0]
    if rule == "union":
        return np.asarray(counts > 0, dtype=np.float64)
    return np.asarray(counts == n_coders[:, None], dtype=np.float64) if rule == "intersection" else counts


def category_shares(
    counts: npt.ArrayLike,
    labels: Sequence[str],
    codebook: Mapping[str, Collection[str]],
    *,
    excluded: Collection[str] = (),
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "coding.category_share",
    unit: str = "comment",
    mode: str = "recommended",
) -> tuple[Estimate, ...]:
    """The share of the labels given (not of the comments) that fall in each category of the codebook, summing to 1.

    `counts` has shape (n_comments, n_labels), its columns `labels` (see `label_counts`); `codebook` maps a category to
    its labels; the categories in `excluded` and their labels are left out of the total, as the paper leaves out Null.
    The interval is the percentile bootstrap over comments, with all their labels; `n` counts comments with a label
    that counts, `n_rows` such labels. Raises ValueError for a label in no category or in two.

    Source: Clark et al. 2021, Table 3.

    >>> shares = category_shares([[1, 0], [1, 1], [0, 1], [1, 0]], ["grammar", "factuality"],
    ...                          {"form": ["grammar"], "content": ["factuality"]}, rng=np.random.default_rng(0))
    >>> [(share.settings["category"], share.estimate) for share in shares]
    [('form', 0.6), ('content', 0.4)]
    """
    refuse_level(level)
    table, names = _by_category(counts, labels, codebook, excluded)
    totals = table.sum(axis=1, keepdims=True)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "share of label assignments",
        "unit": unit,
        "mode": mode,
        "n": int(np.sum(totals > 0)),
        "n_rows": int(totals.sum()),
    }
    settings = {"level": level, "resamples": resamples, "excluded": sorted(excluded)}
    if common["n_rows"] == 0:
        return _by_name(names, settings, common, status="no_data", reason="no label counts")
    draws = _share_draws(table, resamples, rng)
    counted = table.sum(axis=0)
    details = [{"n_labels": int(count)} for count in counted]
    return _by_name(names, settings, common, estimates=counted / counted.sum(), draws=draws, details=details)


def category_share_differences(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    labels: Sequence[str],
    codebook: Mapping[str, Collection[str]],
    *,
    excluded: Collection[str] = (),
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "coding.category_share_difference",
    unit: str = "comment",
    mode: str = "recommended",
) -> tuple[Estimate, ...]:
    """How the shares of the categories differ between two conditions, x - y, bootstrapping the comments of each.

    `x` and `y` have shapes (n_x, n_labels) and (n_y, n_labels), the label counts of different comments in two
    conditions; the rest as for `category_shares`.

    Source: Clark et al. 2021, Table 3, whose two rows are compared by eye.

    >>> form, content = category_share_differences([[1, 0], [1, 1]] * 20, [[0, 1], [1, 1]] * 20, ["grammar", "facts"],
    ...                    {"form": ["grammar"], "content": ["facts"]}, rng=np.random.default_rng(0), resamples=999)
    >>> round(form.estimate, 4), form.interval.low > 0, round(form.estimate + content.estimate, 9)
    (0.3333, True, 0.0)
    """
    refuse_level(level)
    ours, names = _by_category(x, labels, codebook, excluded)
    theirs, _ = _by_category(y, labels, codebook, excluded)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "difference of shares of label assignments x - y",
        "unit": unit,
        "mode": mode,
        "n": int(np.sum(ours.sum(axis=1) > 0) + np.sum(theirs.sum(axis=1) > 0)),
        "n_rows": int(ours.sum() + theirs.sum()),
    }
    settings = {"level": level, "resamples": resamples, "excluded": sorted(excluded)}
    if min(ours.sum(), theirs.sum()) == 0:
        reason = "no label counts in one of the conditions"
        return _by_name(names, settings, common, status="no_data", reason=reason)
    draws = _share_draws(ours, resamples, rng) - _share_draws(theirs, resamples, rng)
    of_x, of_y = (table.sum(axis=0) / table.sum() for table in (ours, theirs))
    details = [{"share_x": float(x), "share_y": float(y)} for x, y in zip(of_x, of_y, strict=True)]
    return _by_name(names, settings, common, estimates=of_x - of_y, draws=draws, details=details)


def _disagreement(weights: str | npt.ArrayLike | None, k: int) -> FloatArray:
    """Disagreements of k categories in 0..1."""
    if weights is None:
        return 1.0 - np.eye(k)
    if isinstance(weights, str):
        apart = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :]) / max(1, k - 1)
        return np.asarray(apart**2 if weights == "quadratic" else apart, dtype=np.float64)
    given = matrix(weights, "weights")
    if given.shape != (k, k):
        raise ValueError(f"weights: shape {given.shape} where there are {k} categories")
    if np.isnan(given).any() or np.any(given < 0) or np.any(np.diag(given) != 0) or not np.any(given > 0):
        raise ValueError("weights: a matrix of disagreements, 0 on the diagonal and nowhere negative, is wanted")
    return given / float(given.max())


def _coded(
    units: npt.ArrayLike, coders: npt.ArrayLike, label_sets: Sequence[LabelSet]
) -> tuple[list[frozenset[str] | None], IntArray, IntArray]:
    """The sets, frozen, and the codes of units and coders; each coder once a unit."""
    sets: list[frozenset[str] | None] = []
    for row, found in enumerate(label_sets):
        if isinstance(found, str):
            raise ValueError(f"label_sets: row {row} is text, {found!r}; a set of labels is wanted")
        sets.append(None if found is None else frozenset(found))
    positions, n_units = codes(np.asarray(units), "units", len(sets))
    who, _ = codes(np.asarray(coders), "coders", len(sets))
    keys = who * n_units + positions
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        row = int(np.setdiff1d(np.arange(len(keys)), first)[0])
        raise ValueError(f"coders: row {row} codes a unit that this coder coded before")
    return sets, positions, who


def _refuse_unknown(sets: Sequence[frozenset[str] | None], labels: Sequence[str]) -> None:
    if len(set(labels)) < len(labels):
        raise ValueError("labels: one of them stands twice")
    known = frozenset(labels)
    for row, found in enumerate(sets):
        if found is not None and not found <= known:
            raise ValueError(f"label_sets: row {row} has {sorted(found - known)[0]!r}, which is not in the codebook")


def _of_label(result: Estimate, label: str, positions: IntArray, applied: npt.NDArray[np.bool_]) -> Estimate:
    """The kappa of one label with what a reader needs beside it, over the codings of units with at least two."""
    n_applied, n = int(applied.sum()), len(applied)
    detail = {**result.detail, "n_applied": n_applied, "prevalence": None if n == 0 else n_applied / n}
    if n_applied:
        # Of the pairs of codings in which one has the label, weighted by coders: how often the other has it too.
        per_unit = np.bincount(positions).astype(np.float64)
        with_label = np.bincount(positions, weights=applied)
        others = np.where(per_unit > 1, per_unit - 1, 1.0)
        detail["positive_agreement"] = float(np.sum(with_label * (with_label - 1) / others)) / n_applied
    warnings = result.warnings
    if n > 0 and min(n_applied, n - n_applied) < FEW_CODINGS:
        warnings = (*warnings, Warning("rare_label", "warn", {"n_applied": n_applied, "n_codings": n}))
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
    return np.column_stack([table[:, place].sum(axis=1) for place in columns]).reshape(len(table), len(names)), names


def _share_draws(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Resampled shares of the categories, (resamples, n_categories), over comments with any label that counts."""
    kept = table[table.sum(axis=1) > 0]
    totals = np.broadcast_to(kept.sum(axis=1, keepdims=True), kept.shape)
    return bootstrap.ratio_draws(kept, totals, bootstrap.multinomial_weights(len(kept), resamples, rng))


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
    """One estimate for each category, which its settings name; without `estimates` the same status for all."""
    found = []
    for column, name in enumerate(names):
        named = {**common, "settings": {**settings, "category": name}}
        if estimates is None or draws is None:
            found.append(Estimate(**undefined, **named))
            continue
        named |= {"estimate": float(estimates[column]), "detail": details[column]}
        found.append(bootstrap.percentile_estimate(draws[:, column], level=settings["level"], **named))
    return tuple(found)
