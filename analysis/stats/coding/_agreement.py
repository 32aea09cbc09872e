"""Agreement of coders."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic
from analysis.stats.agreement import (
    as_label_list,
    category_codes,
    category_counts_by_unit,
    fleiss_kappa,
    krippendorff_alpha,
)
from analysis.stats.arrays import MIN_SPREAD, label_codes, validate_level
from analysis.stats.coding._labels import LabelSet, _coded, _disagreement, _of_label, _refuse_unknown, masi_distance
from analysis.stats.results import Estimate, Interval


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
