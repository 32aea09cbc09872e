"""How often each code was given, and where groups differ in it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import bootstrap
from analysis.stats.arrays import FloatArray, refuse_level
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
