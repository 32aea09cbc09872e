"""Shares of codes, and their differences between groups."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap
from analysis.stats.arrays import FloatArray, validate_level
from analysis.stats.coding._labels import (
    MERGE_RULES,
    LabelSet,
    _by_category,
    _by_name,
    _coded,
    _refuse_unknown,
    _share_draws,
)
from analysis.stats.results import Estimate


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
