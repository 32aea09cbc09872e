"""Codes that coders give to comments: one code or a set of labels each, and the agreement of coders.

An empty set of labels is an answer: the coder read the comment and no label applies. None means that the coder
gave no answer. The two are kept apart.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap
from analysis.stats.agreement import (
    as_label_list,
    category_codes,
    category_counts_by_unit,
    fleiss_kappa,
    krippendorff_alpha,
)
from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, label_codes, matrix, validate_level
from analysis.stats.results import Estimate, Interval, ResultWarning

# Sets of labels and their distances.


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


# Agreement of coders.


def cohen_kappa(
    first: Sequence[Any] | npt.NDArray[Any],
    second: Sequence[Any] | npt.NDArray[Any],
    *,
    categories: Sequence[Any] | None = None,
    weights: str | npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Cohen's kappa of two coders of the same units, plain or weighted, with its interval.

    Parameters
    ----------
    first, second : sequence[Any] or ndarray, shape (n_units,)
        One code per unit; None is missing. Units with a missing code are left out.
    categories : sequence[Any], optional
        Categories in order; needed for weights with text.
    weights : str or array_like, optional
        None counts all disagreements alike. "linear" and "quadratic" use the distance of the categories' places. Or a
        matrix (k, k) of disagreements, 0 on the diagonal.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        Kappa. `detail` has the raw agreement, the agreement by chance, the categories' shares, and `n_incomplete`.
        Both coders constant and equal: `not_identified`. No disagreement: 1 and `zero_variance`.

    Raises
    ------
    ValueError
        If the lengths differ or an option is not allowed.

    Notes
    -----
    With shares p_ij, their margins and agreement weights w_ij = 1 - d_ij / max d: kappa = (sum w p_ij - sum w p_i
    p_j) / (1 - sum w p_i p_j). The interval is tanh(atanh(kappa) -/+ z se / (1 - kappa^2)), within -1..1.

    References
    ----------
    Cohen 1960 and 1968; standard error of Fleiss, Cohen and Everitt 1969, Large sample standard errors of kappa and
    weighted kappa.

    Examples
    --------
    >>> first, second = [1, 2, 3, 3, 2, 1, 1, 3, 2, 2], [1, 2, 3, 2, 2, 1, 2, 3, 2, 1]
    >>> round(cohen_kappa(first, second).estimate, 4), round(cohen_kappa(first, second, weights="linear").estimate, 4)
    (0.5385, 0.625)
    """
    validate_level(level)
    first_labels, second_labels = as_label_list(first), as_label_list(second)
    if len(first_labels) != len(second_labels):
        raise ValueError(f"second: {len(second_labels)} codes where first has {len(first_labels)}")
    if isinstance(weights, str) and weights not in ("linear", "quadratic"):
        raise ValueError(f"weights: {weights!r} is neither linear nor quadratic")
    if (
        weights is not None
        and categories is None
        and any(isinstance(code, str) for code in (*first_labels, *second_labels))
    ):
        raise ValueError("categories: weights need the categories in order")
    is_complete = [
        a is not None and b is not None and a == a and b == b for a, b in zip(first_labels, second_labels, strict=True)
    ]
    n = sum(is_complete)
    pairs = [
        code
        for side in (first_labels, second_labels)
        for code, is_coded in zip(side, is_complete, strict=True)
        if is_coded
    ]
    places, offered = category_codes(pairs, categories=categories, name="first and second")
    k = len(offered)
    agreeing = 1 - _disagreement(weights, k)
    common: dict[str, Any] = {
        "analysis": "cohen_kappa",
        "estimand": "Cohen's kappa" if weights is None else "weighted kappa",
        "unit": "item",
        "n": n,
        "n_rows": 2 * n,
        "settings": {
            "weights": weights if weights is None or isinstance(weights, str) else "matrix",
            "method": "fisher_z",
            "level": level,
            "categories": [str(category) for category in offered],
        },
    }
    detail: dict[str, Any] = {"n_incomplete": len(first_labels) - n}
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
    if 1 - chance < MIN_SPREAD:
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
    # Rounding leaves a variance of about 1e-17 instead of 0.
    if se < math.sqrt(MIN_SPREAD) or abs(kappa) >= 1:
        return Estimate(
            status="zero_variance", reason="the standard error is 0", estimate=kappa, detail=detail, **common
        )
    centre, half = math.atanh(kappa), basic.two_sided_normal_quantile(level) * se / (1 - kappa**2)
    interval = Interval(level, math.tanh(centre - half), math.tanh(centre + half), "fisher_z")
    return Estimate(estimate=kappa, interval=interval, detail=detail, **common)


def label_set_alpha(
    units: npt.ArrayLike,
    coders: npt.ArrayLike,
    label_sets: Sequence[LabelSet],
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Estimate Krippendorff's alpha of coders who may apply several labels to a comment, with a bootstrap over comments.

    A row of `label_sets` has one coder's set for one comment. An empty set means that no label applies, None that the
    comment was not coded, and `detail` counts both. The distance of two sets is `masi_distance`. A row with text
    instead of a set, or with a comment that its coder coded twice, raises ValueError with the row. The coding of
    comments is that of Clark et al. 2021, appendix A.3.

    >>> units, coders = [1, 1, 2, 2, 3, 3], list("ababab")
    >>> sets = [{"form"}, {"form"}, {"form", "content"}, {"content"}, set(), set()]
    >>> round(label_set_alpha(units, coders, sets, rng=np.random.default_rng(0)).estimate, 4)
    0.7222
    """
    sets, _, _ = _coded(units, coders, label_sets)
    kinds = sorted({label_set for label_set in sets if label_set is not None}, key=sorted)
    table, values = category_counts_by_unit(np.asarray(units), sets, categories=kinds)
    result = krippendorff_alpha(table, values, distance=masi_distance, level=level, resamples=resamples, rng=rng)
    counts = {
        "n_empty": sum(label_set == frozenset() for label_set in sets),
        "n_not_coded": sum(label_set is None for label_set in sets),
    }
    # The counts of distinct sets mean nothing without the sets, so they are left out.
    detail = {key: value for key, value in result.detail.items() if key != "marginals"}
    return replace(
        result,
        analysis="coding.alpha",
        estimand="Krippendorff's alpha of label sets (masi)",
        unit="comment",
        detail={**detail, **counts, "n_distinct_sets": len(kinds)},
        settings={**result.settings, "distance": "masi"},
    )


def kappa_by_label(
    units: npt.ArrayLike,
    coders: npt.ArrayLike,
    label_sets: Sequence[LabelSet],
    labels: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> tuple[Estimate, ...]:
    """Estimate the kappa of each label of the codebook (applied or not), over coders.

    There is one estimate per label of `labels`, in their order, with the name in `settings["label"]`: Cohen's kappa for
    two coders, Fleiss' kappa for more (Clark et al. 2021, appendix A.3 and Table 4). `label_sets` is as in
    `label_set_alpha`, a label outside the codebook raises ValueError, and comments with one coding are left out.
    `detail` has the raw agreement, the prevalence and the positive agreement, 2 both / (2 both + one only), which is
    the probability that a second coder applies a label that one applied. A label that no coder (or every coder) used
    has the status `not_identified`. Fewer than ten codings with or without a label give the warning `rare_label`.

    >>> units, coders = [1, 1, 2, 2, 3, 3, 4, 4], list("abababab")
    >>> sets = [{"form"}, {"form"}, {"form"}, {"content"}, {"content"}, {"content"}, set(), set()]
    >>> form, content = kappa_by_label(units, coders, sets, ["form", "content"], rng=np.random.default_rng(0))
    >>> round(form.estimate, 4), form.detail["prevalence"], round(form.detail["positive_agreement"], 4)
    (0.5, 0.375, 0.6667)
    """
    validate_level(level)
    sets, positions, coder_codes = _coded(units, coders, label_sets)
    _refuse_unknown(sets, labels)
    is_coded = np.array([label_set is not None for label_set in sets], dtype=np.bool_)
    names, coder_codes = np.unique(coder_codes[is_coded], return_inverse=True)
    positions, n_units = label_codes(positions[is_coded], "units", int(is_coded.sum()))
    results = []
    for label in labels:
        applied = np.array([label in label_set for label_set in sets if label_set is not None], dtype=np.bool_)
        if len(names) == 2:
            sides: list[list[bool | None]] = [[None] * n_units for _ in range(2)]
            for coder, position, is_applied in zip(coder_codes, positions, applied, strict=True):
                sides[int(coder)][int(position)] = bool(is_applied)
            result = cohen_kappa(sides[0], sides[1], categories=[False, True], level=level)
            pairable = np.array([None not in pair for pair in zip(*sides, strict=True)])[positions]
        else:
            table, _ = category_counts_by_unit(positions, applied.tolist(), categories=[False, True])
            result = fleiss_kappa(table, level=level, resamples=resamples, rng=rng)
            pairable = (table.sum(axis=1) > 1)[positions] if len(positions) else np.zeros(0, dtype=np.bool_)
        result = _of_label(result, label, positions[pairable], applied[pairable])
        results.append(result.labelled(analysis="coding.label", unit="comment"))
    return tuple(results)


# Shares of codes, and their differences between groups.


def merged_label_counts_of_coded_units(
    units: npt.ArrayLike,
    coders: npt.ArrayLike,
    label_sets: Sequence[LabelSet],
    labels: Sequence[str],
    *,
    rule: str,
) -> FloatArray:
    """Count how often each label counts for each coded comment after the comment's coders are merged.

    The result has the shape (n_units, n_labels); a label set is None if the coder gave no answer, and comments that
    were not coded are left out. By the rule "union" a label counts 1 if any coder applied it, by "intersection" 1 if
    all coders of the comment did, and by "both_counted" once for each coder who did; the paper does not name its rule.
    It is an error if a label is unknown, or if a coder has two rows for one comment.

    >>> sets = [{"form"}, {"form", "content"}, set(), None]
    >>> merged_label_counts_of_coded_units([1, 1, 2, 2], list("abab"), sets, ["form", "content"], rule="both_counted").tolist()
    [[2.0, 1.0], [0.0, 0.0]]
    """
    if rule not in MERGE_RULES:
        raise ValueError(f"rule: {rule!r} is not one of {', '.join(MERGE_RULES)}")
    sets, positions, _ = _coded(units, coders, label_sets)
    _refuse_unknown(sets, labels)
    column_of = {label: column for column, label in enumerate(labels)}
    n_units = int(positions.max()) + 1 if len(positions) else 0
    counts, n_coders = np.zeros((n_units, len(column_of))), np.zeros(n_units)
    for position, label_set in zip(positions, sets, strict=True):
        if label_set is not None:
            n_coders[position] += 1
            for label in label_set:
                counts[position, column_of[label]] += 1
    counts, n_coders = counts[n_coders > 0], n_coders[n_coders > 0]
    if rule == "union":
        return np.asarray(counts > 0, dtype=np.float64)
    return np.asarray(counts == n_coders[:, None], dtype=np.float64) if rule == "intersection" else counts


def label_shares_by_category(
    counts: npt.ArrayLike,
    labels: Sequence[str],
    codebook: Mapping[str, Collection[str]],
    *,
    excluded: Collection[str] = (),
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    rng: np.random.Generator,
) -> tuple[Estimate, ...]:
    """Estimate the share of the labels given (not of the comments) in each category of the codebook.

    `counts`, of shape (n_comments, n_labels), are those of `merged_label_counts_of_coded_units`, and `codebook` has the
    labels of each category; a label in no category or in two is an error. There is one estimate per category, and the
    shares sum to 1; `excluded` categories are left out of the total, as the paper leaves out Null (Clark et al. 2021,
    Table 3). The interval is the percentile bootstrap over comments, with all their labels. `n` counts comments with a
    label that counts, `n_rows` such labels.

    >>> shares = label_shares_by_category([[1, 0], [1, 1], [0, 1], [1, 0]], ["grammar", "factuality"],
    ...                          {"form": ["grammar"], "content": ["factuality"]}, rng=np.random.default_rng(0))
    >>> [(share.settings["category"], share.estimate) for share in shares]
    [('form', 0.6), ('content', 0.4)]
    """
    validate_level(level)
    table, names = _by_category(counts, labels, codebook, excluded)
    totals = table.sum(axis=1, keepdims=True)
    common: dict[str, Any] = {
        "analysis": "coding.category_share",
        "estimand": "share of label assignments",
        "unit": "comment",
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
) -> tuple[Estimate, ...]:
    """Estimate the differences of the categories' shares between two conditions, x - y, with a bootstrap over comments.

    `x` and `y` are label counts, of shapes (n_x, n_labels) and (n_y, n_labels), of different comments in two
    conditions, with labels, codebook and excluded categories as in `label_shares_by_category`. There is one estimate
    per category. Clark et al. 2021, Table 3, compares its two rows without a test.

    >>> form, content = category_share_differences([[1, 0], [1, 1]] * 20, [[0, 1], [1, 1]] * 20, ["grammar", "facts"],
    ...                    {"form": ["grammar"], "content": ["facts"]}, rng=np.random.default_rng(0), resamples=999)
    >>> round(form.estimate, 4), form.interval.low > 0, round(form.estimate + content.estimate, 9)
    (0.3333, True, 0.0)
    """
    validate_level(level)
    x_counts, names = _by_category(x, labels, codebook, excluded)
    y_counts, _ = _by_category(y, labels, codebook, excluded)
    common: dict[str, Any] = {
        "analysis": "coding.category_share_difference",
        "estimand": "difference of shares of label assignments x - y",
        "unit": "comment",
        "n": int(np.sum(x_counts.sum(axis=1) > 0) + np.sum(y_counts.sum(axis=1) > 0)),
        "n_rows": int(x_counts.sum() + y_counts.sum()),
    }
    settings = {"level": level, "resamples": resamples, "excluded": sorted(excluded)}
    if min(x_counts.sum(), y_counts.sum()) == 0:
        reason = "no label counts in one of the conditions"
        return _by_name(names, settings, common, status="no_data", reason=reason)
    draws = _share_draws(x_counts, resamples, rng) - _share_draws(y_counts, resamples, rng)
    of_x, of_y = (table.sum(axis=0) / table.sum() for table in (x_counts, y_counts))
    details = [{"share_x": float(x), "share_y": float(y)} for x, y in zip(of_x, of_y, strict=True)]
    return _by_name(names, settings, common, estimates=of_x - of_y, draws=draws, details=details)
