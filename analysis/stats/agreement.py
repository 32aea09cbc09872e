"""How far annotators agree, and how far a second half of them would have said the same.

Agreement is information about the people and the question, not only about quality: low agreement on a question of
taste means that tastes differ. No adjectives are attached to the numbers. A coefficient corrected for chance also
depends on how often each answer is given, so the share of agreement and the prevalence stand beside every one of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import DEGENERATE, FloatArray, IntArray, codes, matrix, refuse_level, vector
from analysis.stats.bootstrap import percentile_estimate, percentile_interval
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, Warning

LEVELS = ("nominal", "ordinal", "interval", "ratio")
ICC_KINDS = ("one_way", "absolute", "consistency")

Distance = Callable[[Any, Any], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionSystemAgreement(Record):
    """The same choices coded twice: by the place on the screen that was chosen, and by the system that stood there.

    The two `kappa` differ although nobody agreed more or less: where places are randomised their prevalence is one
    half, that of the systems is whatever the annotators prefer, and chance agreement with it. `percent_agreement`
    (P-bar) is one number where a place holds the same system for everybody. The prevalences map each place and each
    system to its share (the mean over items of the share of answers).
    """

    n_items: int
    n_annotators: int
    n_rows: int
    n_unpairable: int
    percent_agreement_position: float | None
    percent_agreement_system: float | None
    kappa_position: Estimate
    kappa_system: Estimate
    ac1_position: Estimate
    ac1_system: Estimate
    prevalence_position: dict[str, float]
    prevalence_system: dict[str, float]


def count_table(units: npt.ArrayLike, values: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Ratings in rows as a table of shape (n_units, n_values): how often each value was given to each unit.

    `units` and `values` have shape (n_rows,); a missing value is left out. Returns the table and the sorted values of
    its columns.

    >>> counts, values = count_table(["a", "a", "b"], [1, 3, 3])
    >>> counts.tolist(), values.tolist()
    ([[1.0, 1.0], [0.0, 1.0]], [1.0, 3.0])
    """
    array = vector(values, "values")
    positions, n_units = codes(np.asarray(units), "units", len(array))
    here = ~np.isnan(array)
    kept = array if here.all() else array[here]
    positions = positions if here.all() else positions[here]
    found, columns = _scale(kept)
    table = np.bincount(positions * len(found) + columns, minlength=n_units * len(found))
    return table.reshape(n_units, len(found)).astype(np.float64), found


def listed(labels: Sequence[Any] | npt.NDArray[Any]) -> list[Any]:
    """Labels of any kind as a list of Python's own: text, numbers, sets, None where one is missing.

    >>> listed(np.array([1, 2])), listed([np.int64(3), None])
    ([1, 2], [3, None])
    """
    if isinstance(labels, np.ndarray):
        return list(labels.tolist())
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def category_codes(
    labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None, name: str = "labels"
) -> tuple[IntArray, tuple[Any, ...]]:
    """The place of each label among `categories`, -1 where it is missing (None or NaN), and the categories.

    Without `categories` they are the labels found, sorted, which must then be text or numbers. Raises ValueError,
    naming the row, for a label that is none of the categories.

    >>> category_codes(["yes", None, "no"], categories=["no", "yes", "maybe"])[0].tolist()
    [1, -1, 0]
    """
    given = listed(labels)
    found = {label for label in given if label is not None and label == label}
    if categories is None:
        unordered = [label for label in found if not isinstance(label, (str, int, float))]
        if unordered:
            raise ValueError(f"categories: needed to order labels such as {unordered[0]!r}")
        categories = sorted(found, key=lambda label: (isinstance(label, str), label))
    place = {category: column for column, category in enumerate(categories)}
    if len(place) < len(categories):
        raise ValueError("categories: one of them stands twice")
    unknown = found - set(place)
    if unknown:
        row = next(row for row, label in enumerate(given) if label in unknown)
        raise ValueError(f"{name}: row {row} is {given[row]!r}, none of the categories")
    return np.array([place.get(label, -1) for label in given], dtype=np.int64), tuple(categories)


def category_table(
    units: npt.ArrayLike, labels: Sequence[Any] | npt.NDArray[Any], *, categories: Sequence[Any] | None = None
) -> tuple[FloatArray, tuple[Any, ...]]:
    """Labels of any kind in rows as a table of shape (n_units, n_categories), and the category of each column.

    `units` and `labels` have shape (n_rows,); a missing label (None or NaN) is left out, its unit stays. `categories`
    are the answers that were offered, in their order: the chance agreement of `gwet_ac1` depends on how many there
    were, also on those that nobody chose; see `category_codes`.

    >>> table, categories = category_table(["i", "i", "j"], ["A", "B", "A"])
    >>> table.tolist(), categories
    ([[1.0, 1.0], [1.0, 0.0]], ('A', 'B'))
    """
    columns, offered = category_codes(labels, categories=categories)
    positions, n_units = codes(np.asarray(units), "units", len(columns))
    here = columns >= 0
    table = np.bincount(positions[here] * len(offered) + columns[here], minlength=n_units * len(offered))
    return table.reshape(n_units, len(offered)).astype(np.float64), offered


def krippendorff_alpha(
    counts: npt.ArrayLike,
    values: npt.ArrayLike | Sequence[Any],
    *,
    level_of_measurement: str | None = None,
    distance: npt.ArrayLike | Distance | None = None,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "krippendorff_alpha",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """Krippendorff's alpha, 1 - observed / expected disagreement, with a bootstrap interval over units.

    `counts` has shape (n_units, n_values), how often each value was given to each unit (see `count_table`,
    `category_table`); any number of raters per unit, units with fewer than two ratings carry no information and are
    left out. How far two values disagree is either a `level_of_measurement` of numbers or a `distance` of one's own:
    nominal 0 or 1; ordinal the squared difference of mid-ranks; interval the squared difference; ratio
    ((a - b) / (a + b))^2; `distance` a matrix (n_values, n_values) or a function of two values, symmetric,
    non-negative, 0 between equals (a squared one for an interval scale: nothing is squared here). `values` has shape
    (n_values,), ascending numbers for a level, anything the function takes for a distance. `n` counts pairable units.
    One value only, or nothing pairable: `not_identified`, with the percentage of agreement in detail.

    With n_uc ratings of value c among m_u of unit u and n_c in all N pairable ratings:
    alpha = 1 - (N - 1) sum_u sum_ck n_uc n_uk d_ck / (m_u - 1) / sum_ck n_c n_k d_ck.

    Source: Krippendorff 2011, Computing Krippendorff's alpha-reliability; used in Clark et al. 2021, section 3.

    >>> table = [[3, 0], [1, 2], [0, 3], [2, 1]]
    >>> result = krippendorff_alpha(table, [1, 2], level_of_measurement="nominal", rng=np.random.default_rng(0))
    >>> round(result.estimate, 4), round(result.detail["percent_agreement"], 4)
    (0.3889, 0.6667)
    >>> apart = lambda a, b: float(a != b)
    >>> same = krippendorff_alpha(table, ["no", "yes"], distance=apart, rng=np.random.default_rng(0))
    >>> same.estimate == result.estimate, same.settings["distance"]
    (True, '<lambda>')
    """
    refuse_level(level)
    table = _counts(counts)
    distances, name = _disagreement(values, table.shape[1], level_of_measurement, distance)
    ratings = table.sum(axis=1)
    pairable = table[ratings > 1]
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"Krippendorff's alpha ({name})",
        "unit": unit,
        "mode": mode,
        "n": len(pairable),
        "n_rows": int(pairable.sum()),
        "settings": {
            "level_of_measurement": level_of_measurement,
            "distance": None if distance is None else name,
            "level": level,
            "resamples": resamples,
        },
    }
    detail: dict[str, Any] = {"n_unpairable": int(np.sum(ratings <= 1)), "marginals": pairable.sum(axis=0)}
    if len(pairable) == 0:
        return _unpaired(table, detail, common)
    patterns, weights = _patterns(pairable)
    detail["percent_agreement"] = float(_observed(patterns, weights[None, :].astype(np.float64))[0][0])
    estimate = _alphas(patterns, weights[None, :].astype(np.float64), distances)[0]
    if not np.isfinite(estimate):
        return Estimate(status="not_identified", reason="no two ratings differ", detail=detail, **common)

    def alphas(drawn: FloatArray) -> FloatArray:
        return _alphas(patterns, drawn, distances)

    return _resampled(float(estimate), weights, alphas, rng=rng, detail=detail, **common)


def fleiss_kappa(
    counts: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "fleiss_kappa",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """Fleiss' kappa for any number of raters per item, with a bootstrap interval over items.

    `counts` has shape (n_items, n_categories), how often each category was given to each item (see `category_table`).
    Items with one rating are left out and counted in detail["n_unpairable"]; `n` counts the others. With
    n_ij ratings j among n_i: P_i = (sum_j n_ij^2 - n_i) / (n_i (n_i - 1)), p_j = the mean over items of n_ij / n_i,
    kappa = (mean P_i - sum p_j^2) / (1 - sum p_j^2); with equal n_i this is Fleiss' own. detail has mean P_i
    ("percent_agreement"), the agreement expected by chance and the prevalence p_j. All ratings in one category:
    `not_identified`, the percentage of agreement in detail.

    Source: Fleiss 1971, Measuring nominal scale agreement among many raters; used in Thorleiksdottir et al. 2021,
    section 4, where the choices were coded by place on the screen: see `position_and_system`.

    >>> result = fleiss_kappa([[3, 0], [1, 3], [0, 3], [2, 0]], rng=np.random.default_rng(0))
    >>> round(result.estimate, 6), result.detail["percent_agreement"]
    (0.746032, 0.875)
    """
    return _chance_corrected(
        counts,
        _by_squares,
        estimand="Fleiss' kappa",
        level=level,
        resamples=resamples,
        rng=rng,
        analysis=analysis,
        unit=unit,
        mode=mode,
    )


def gwet_ac1(
    counts: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "gwet_ac1",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """Gwet's AC1: agreement corrected for a chance that shrinks, rather than grows, where one answer prevails.

    `counts` as for `fleiss_kappa`, with a column for every category that was offered, chosen or not. With the same
    P_i and p_j over k categories: P_e = sum p_j (1 - p_j) / (k - 1), AC1 = (mean P_i - P_e) / (1 - P_e). Defined also
    where everyone said the same, then 1. Fewer than two categories: `not_identified`.

    Source: Gwet 2008, Computing inter-rater reliability and its variance in the presence of high agreement.

    >>> prevalent = [[10, 0]] * 9 + [[9, 1]]
    >>> round(gwet_ac1(prevalent, rng=np.random.default_rng(0)).estimate, 2)
    0.98
    >>> round(fleiss_kappa(prevalent, rng=np.random.default_rng(0)).estimate, 2)
    -0.01
    """
    return _chance_corrected(
        counts,
        _by_spread,
        estimand="Gwet's AC1",
        level=level,
        resamples=resamples,
        rng=rng,
        analysis=analysis,
        unit=unit,
        mode=mode,
    )


def position_and_system(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    positions: Sequence[Any] | npt.NDArray[Any],
    systems: Sequence[Any] | npt.NDArray[Any],
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
    unit: str = "item",
    mode: str = "recommended",
) -> PositionSystemAgreement:
    """Agreement on choices between two systems, coded by place on the screen and by system, in one record.

    All arrays have shape (n_rows,), one row a choice: the item (the pair of outputs shown), who chose, the place that
    was chosen ("A", "B", a tie if there was one) and the system that stood there; None in both where no choice was
    made. One pair of systems at a time: chance agreement among systems that never met means nothing. Raises
    ValueError, naming the row, for an annotator who judged an item twice and for a choice coded only one way.

    Source: Thorleiksdottir et al. 2021 printed kappa by place (.69 where by system it is .28, at one and the same
    agreement of .84); both are needed to read either.

    >>> record = position_and_system([1, 1, 2, 2], list("abab"), list("AABB"), list("xxxx"),
    ...                              rng=np.random.default_rng(0))
    >>> record.kappa_position.estimate, record.kappa_system.status, record.ac1_system.detail["percent_agreement"]
    (1.0, 'not_identified', 1.0)
    """
    places, chosen = listed(positions), listed(systems)
    if len(places) != len(chosen):
        raise ValueError(f"systems: {len(chosen)} choices where positions has {len(places)}")
    item_codes, n_items = codes(np.asarray(items), "items", len(places))
    who, n_annotators = codes(np.asarray(annotators), "annotators", len(places))
    made, coded = (np.array([label is not None and label == label for label in side]) for side in (places, chosen))
    made, coded = made.astype(np.bool_), coded.astype(np.bool_)
    halved = np.flatnonzero(made != coded)
    if len(halved):
        raise ValueError(f"systems: row {int(halved[0])} has a place without a system, or a system without a place")
    keys = (who * n_items + item_codes)[made]
    _, first = np.unique(keys, return_index=True)
    if len(first) < len(keys):
        twice = int(np.flatnonzero(made)[np.setdiff1d(np.arange(len(keys)), first)[0]])
        raise ValueError(f"annotators: row {twice} judges an item that this annotator judged before")
    by_place, place_names = category_table(item_codes, places)
    by_system, system_names = category_table(item_codes, chosen)
    more: dict[str, Any] = {"level": level, "resamples": resamples, "rng": rng, "unit": unit, "mode": mode}
    kappa_position = fleiss_kappa(by_place, analysis="fleiss_kappa.by_position", **more)
    kappa_system = fleiss_kappa(by_system, analysis="fleiss_kappa.by_system", **more)
    return PositionSystemAgreement(
        n_items=kappa_position.n,
        n_annotators=len(np.unique(who[made])) if made.any() else 0,
        n_rows=kappa_position.n_rows or 0,
        n_unpairable=n_items - kappa_position.n,
        percent_agreement_position=kappa_position.detail.get("percent_agreement"),
        percent_agreement_system=kappa_system.detail.get("percent_agreement"),
        kappa_position=kappa_position,
        kappa_system=kappa_system,
        ac1_position=gwet_ac1(by_place, analysis="gwet_ac1.by_position", **more),
        ac1_system=gwet_ac1(by_system, analysis="gwet_ac1.by_system", **more),
        prevalence_position=_named_shares(place_names, kappa_position),
        prevalence_system=_named_shares(system_names, kappa_system),
    )


def intraclass_correlation(
    scores: npt.ArrayLike,
    *,
    kind: str = "absolute",
    average: bool = False,
    level: float = 0.95,
    analysis: str = "intraclass_correlation",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """The share of the variance of scores on a continuous scale that lies between items, with its F interval.

    `scores` has shape (n_annotators, n_items), NaN where missing; `n` counts items. `kind` says what disagreement is:
    "one_way" (each item has annotators of its own: everything but the item is error), "absolute" (two-way random: the
    same annotators score all items, and a stricter one disagrees) or "consistency" (a stricter one does not). Of one
    annotator's score, or with `average` of the mean of the k who scored the item. For the two-way kinds an item with
    a missing score is left out (detail["n_incomplete"]); one-way needs two scores an item, and unequal numbers make
    its interval approximate, with k0 = (N - sum k_i^2 / N) / (n - 1) for k. The test is that of no variance between
    items. Nothing varies, or fewer than two items or annotators: a status. No disagreement at all: 1, `zero_variance`.

    With mean squares R of items, C of annotators, W within items and E of the residual, k annotators, n items:
    one-way (R - W) / (R + (k - 1) W); consistency (R - E) / (R + (k - 1) E); absolute
    (R - E) / (R + (k - 1) E + k (C - E) / n); average (R - W) / R, (R - E) / R, (R - E) / (R + (C - E) / n).

    Source: McGraw and Wong 1996, Forming inferences about some intraclass correlation coefficients (ICC(1), ICC(A,1),
    ICC(C,1) and the same of k); the data of the example are those of Shrout and Fleiss 1979.

    >>> scores = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]
    >>> [round(intraclass_correlation(scores, kind=kind).estimate, 2) for kind in ICC_KINDS]
    [0.17, 0.29, 0.71]
    """
    refuse_level(level)
    if kind not in ICC_KINDS:
        raise ValueError(f"kind: {kind!r} is none of {', '.join(ICC_KINDS)}")
    table = matrix(scores, "scores")
    here = ~np.isnan(table)
    table, here = table[here.any(axis=1)], here[here.any(axis=1)]
    per_item = here.sum(axis=0)
    kept = per_item > 1 if kind == "one_way" else (per_item == len(table)) & (per_item > 0)
    dropped = int(np.sum((per_item > 0) & ~kept))
    table, here, per_item = table[:, kept], here[:, kept], per_item[kept]
    n_items, n_rows = table.shape[1], int(here.sum())
    of = "the mean of an item's annotators" if average else "one annotator's score"
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"intraclass correlation ({kind}) of {of}",
        "unit": unit,
        "mode": mode,
        "n": n_items,
        "n_rows": n_rows,
        "settings": {"kind": kind, "average": average, "level": level},
    }
    detail: dict[str, Any] = {"n_annotators": int(here.any(axis=1).sum()), "n_incomplete": dropped}
    if per_item.size == 0 and dropped == 0:
        return Estimate(status="no_data", reason="no score to analyse", detail=detail, **common)
    if n_items < 2 or len(table) < 2:
        reason = "needs two items that at least two annotators scored"
        return Estimate(status="not_identified", reason=reason, detail=detail, **common)
    raters = (n_rows - float(np.sum(per_item**2)) / n_rows) / (n_items - 1)
    squares = _mean_squares(table, here, per_item, kind)
    detail |= {"raters_per_item": raters, **squares}
    between, error, annotators = squares["ms_items"], squares["ms_error"], squares.get("ms_annotators", 0.0)
    tiny = DEGENERATE * max(1.0, float(np.nanmax(np.abs(table)))) ** 2
    if between <= tiny and error <= tiny and (kind == "consistency" or annotators <= tiny):
        return Estimate(status="zero_variance", reason="all scores are equal", detail=detail, **common)
    extra = raters * (annotators - error) / n_items if kind == "absolute" else 0.0
    below = between + (0 if average else (raters - 1) * error) + (extra / raters if average else extra)
    if abs(below) <= tiny:
        return Estimate(status="not_identified", reason="the items' means do not vary", detail=detail, **common)
    value = (between - error) / below
    if error <= tiny and (kind != "absolute" or annotators <= tiny):
        reason = "the annotators never disagree, so the interval has no width"
        return Estimate(status="zero_variance", reason=reason, estimate=value, detail=detail, **common)
    ends = _icc_ends(squares, raters, n_items, kind, level)
    if average and ends is not None:
        ends = _raised(ends[0], raters), _raised(ends[1], raters)
    method = "f" if len(set(per_item.tolist())) == 1 else "f_approximate"
    test = None
    if error > tiny:
        statistic = between / error
        pvalue = float(special.fdtrc(squares["df_items"], squares["df_error"], statistic))
        test = HypothesisTest(name="f", null=0.0, statistic=statistic, pvalue=pvalue, alternative="greater")
    return Estimate(
        estimate=value,
        interval=None if ends is None else Interval(level, ends[0], ends[1], method),
        test=test,
        detail=detail,
        **common,
    )


def split_half_reliability(
    scores: npt.ArrayLike,
    *,
    level: float = 0.95,
    splits: int = 500,
    resamples: int = 999,
    rng: np.random.Generator,
    analysis: str = "split_half_reliability",
    unit: str = "item",
    mode: str = "recommended",
) -> Estimate:
    """How well the mean scores of one random half of the annotators predict those of the other half.

    `scores` has shape (n_annotators, n_items), NaN where an annotator did not score the item. For each of `splits`
    random halvings of the annotators the items' means in both halves are correlated (Pearson, over items scored in
    both) and stepped up to all annotators by Spearman and Brown, 2 r / (1 + r); the estimate is their mean. The
    interval is the percentile bootstrap over items, each resample with a random halving of its own, so it holds both
    sources of chance. `n` counts items. Fewer than three items, or fewer than two annotators: `not_identified`.

    >>> truth = np.arange(8.0)
    >>> scores = truth + np.random.default_rng(0).normal(0, 0.1, (10, 8))
    >>> split_half_reliability(scores, rng=np.random.default_rng(1)).estimate > 0.99
    True
    """
    refuse_level(level)
    table = matrix(scores, "scores")
    here = ~np.isnan(table)
    table = table[here.any(axis=1)][:, here.any(axis=0)]
    here = ~np.isnan(table)
    n_annotators, n_items = table.shape
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "split-half reliability of the items' means (Spearman-Brown)",
        "unit": unit,
        "mode": mode,
        "n": n_items,
        "n_rows": int(here.sum()),
        "settings": {"level": level, "splits": splits, "resamples": resamples},
        "detail": {"n_annotators": n_annotators},
    }
    if table.size == 0:
        return Estimate(status="no_data", reason="no score to analyse", **common)
    if n_items < 3 or n_annotators < 2:
        return Estimate(status="not_identified", reason="needs three items and two annotators", **common)
    filled, ones = np.where(here, table, 0.0), here.astype(np.float64)
    first, second = _halves(filled, ones, max(splits, 1), rng)
    correlations = _weighted_correlations(first, second, np.ones((len(first), n_items)))
    defined = _stepped_up(correlations)
    defined = defined[np.isfinite(defined)]
    if len(defined) <= len(first) / 2:
        return Estimate(status="not_identified", reason="the halves share too few items that differ", **common)
    first, second = _halves(filled, ones, resamples, rng)
    weights = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=resamples).astype(np.float64)
    draws = _stepped_up(_weighted_correlations(first, second, weights))
    finite = draws[np.isfinite(draws)]
    warnings: tuple[Warning, ...] = ()
    if len(finite) < resamples:
        warnings = (Warning("undefined_resamples", "warn", {"share": 1 - len(finite) / resamples}),)
    interval = percentile_interval(finite, level) if len(finite) > resamples / 2 else None
    return Estimate(estimate=float(np.mean(defined)), interval=interval, warnings=warnings, **common)


def _scale(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct values, ascending, and the place of each rating among them."""
    whole = values.astype(np.int64)
    if len(values) and np.array_equal(whole, values):
        places, n_values = codes(whole, "values", len(values))
        found = np.empty(n_values)
        found[places] = values
        return found, places
    found, places = np.unique(values, return_inverse=True)
    return found, np.asarray(places, dtype=np.int64)


def _patterns(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """The distinct rows and how many units have each: a bootstrap then costs the same for a million ratings."""
    base = int(table.max()) + 1
    if base ** table.shape[1] < 2**62:
        keys = table.astype(np.int64) @ (base ** np.arange(table.shape[1], dtype=np.int64))
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return table[first], np.asarray(counts, dtype=np.int64)
    rows, counts = np.unique(table, axis=0, return_counts=True)
    return rows, np.asarray(counts, dtype=np.int64)


def _alphas(patterns: FloatArray, weights: FloatArray, distances: FloatArray | None) -> FloatArray:
    """Alpha for each row of `weights` (n_resamples, n_patterns); NaN where no disagreement was possible.

    Without `distances` the values are ordinal: their distances depend on the marginals of each resample.
    """
    per_unit = patterns.sum(axis=1)
    marginals = weights @ patterns
    total = marginals.sum(axis=1)
    if distances is None:
        ranks = np.cumsum(marginals, axis=1) - marginals / 2
        # sum_ck n_c n_k (r_c - r_k)^2 = 2 (m sum_c n_c r_c^2 - (sum_c n_c r_c)^2): no table of pairs is needed.
        squares, linear = patterns @ (ranks**2).T, patterns @ ranks.T
        spread = 2 * (per_unit[:, None] * squares - linear**2) / (per_unit - 1)[:, None]
        observed = np.einsum("bp,pb->b", weights, spread)
        expected = 2 * (total * np.sum(marginals * ranks**2, axis=1) - np.sum(marginals * ranks, axis=1) ** 2)
    else:
        spread = np.sum((patterns @ distances) * patterns, axis=1) / (per_unit - 1)
        observed = weights @ spread
        expected = np.sum((marginals @ distances) * marginals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = 1 - (total - 1) * observed / expected
    return np.where(expected > DEGENERATE * np.maximum(1.0, total**2), alphas, np.nan)


def _counts(counts: npt.ArrayLike) -> FloatArray:
    table = matrix(counts, "counts")
    if np.isnan(table).any() or np.any(table < 0) or np.any(table != np.round(table)):
        raise ValueError("counts: only whole, non-negative numbers count ratings")
    return table


def _unpaired(table: FloatArray, detail: dict[str, Any], common: dict[str, Any]) -> Estimate:
    is_empty = len(table) == 0 or float(table.sum()) == 0
    status = "no_data" if is_empty else "not_identified"
    return Estimate(status=status, reason="no unit has two ratings", detail=detail, **common)


def _resampled(
    estimate: float,
    weights: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    *,
    rng: np.random.Generator,
    **common: Any,
) -> Estimate:
    """The estimate with the percentile interval over resampled units; `weights` counts the units of each pattern."""
    n_units, level, resamples = int(weights.sum()), common["settings"]["level"], common["settings"]["resamples"]
    common |= {"estimate": estimate, "n_clusters": n_units}
    if n_units < 2:
        return Estimate(status="n_lt_2", reason="one unit has no spread", **common)
    drawn = rng.multinomial(n_units, weights / n_units, size=resamples).astype(np.float64)
    return percentile_estimate(statistic(drawn), level=level, **common)


def _observed(patterns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean agreement of pairs of raters (n_resamples,) and the categories' shares (n_resamples, k)."""
    per_unit = patterns.sum(axis=1)
    agreeing = (np.sum(patterns**2, axis=1) - per_unit) / (per_unit * (per_unit - 1))
    n_units = weights.sum(axis=1)
    return weights @ agreeing / n_units, weights @ (patterns / per_unit[:, None]) / n_units[:, None]


def _by_squares(shares: FloatArray) -> FloatArray:
    return np.asarray(np.sum(shares**2, axis=1), dtype=np.float64)


def _by_spread(shares: FloatArray) -> FloatArray:
    return np.asarray(np.sum(shares * (1 - shares), axis=1) / (shares.shape[1] - 1), dtype=np.float64)


def _chance_corrected(
    counts: npt.ArrayLike,
    expected_by_chance: Callable[[FloatArray], FloatArray],
    *,
    estimand: str,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    analysis: str,
    unit: str,
    mode: str,
) -> Estimate:
    refuse_level(level)
    table = _counts(counts)
    ratings = table.sum(axis=1)
    pairable = table[ratings > 1]
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "mode": mode,
        "n": len(pairable),
        "n_rows": int(pairable.sum()),
        "settings": {"level": level, "resamples": resamples},
    }
    detail: dict[str, Any] = {"n_unpairable": int(np.sum(ratings <= 1)), "n_categories": table.shape[1]}
    if len(pairable) == 0:
        return _unpaired(table, detail, common)
    patterns, weights = _patterns(pairable)
    agreed, shares = _observed(patterns, weights[None, :].astype(np.float64))
    detail |= {"percent_agreement": float(agreed[0]), "prevalence": shares[0]}
    if table.shape[1] < 2:
        return Estimate(status="not_identified", reason="there is one category only", detail=detail, **common)
    chance = float(expected_by_chance(shares)[0])
    detail |= {"expected_agreement": chance, "raters_per_item": [int(ratings[ratings > 1].min()), int(ratings.max())]}
    if 1 - chance < DEGENERATE:
        return Estimate(status="not_identified", reason="all ratings are in one category", detail=detail, **common)

    def coefficients(drawn: FloatArray) -> FloatArray:
        agreeing, prevalence = _observed(patterns, drawn)
        by_chance = expected_by_chance(prevalence)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(1 - by_chance < DEGENERATE, np.nan, (agreeing - by_chance) / (1 - by_chance))

    estimate = (float(agreed[0]) - chance) / (1 - chance)
    return _resampled(estimate, weights, coefficients, rng=rng, detail=detail, **common)


def _named_shares(names: tuple[Any, ...], kappa: Estimate) -> dict[str, float]:
    shares = kappa.detail.get("prevalence")
    return {} if shares is None else {str(name): float(share) for name, share in zip(names, shares, strict=True)}


def _disagreement(
    values: npt.ArrayLike | Sequence[Any],
    n_values: int,
    level_of_measurement: str | None,
    distance: npt.ArrayLike | Distance | None,
) -> tuple[FloatArray | None, str]:
    """The matrix of disagreements (None for ordinal) and its name."""
    if (level_of_measurement is None) == (distance is None):
        raise ValueError("distance: exactly one of level_of_measurement and distance must be given")
    if distance is not None:
        things = list(cast(Sequence[Any], values))
        if len(things) != n_values:
            raise ValueError(f"values: {len(things)} values where counts has {n_values} columns")
        if callable(distance):
            made = np.array([[distance(a, b) for b in things] for a in things], dtype=np.float64)
            return _valid_distances(made.reshape(n_values, n_values)), getattr(distance, "__name__", "function")
        return _valid_distances(matrix(distance, "distance"), n_values), "matrix"
    if level_of_measurement not in LEVELS:
        raise ValueError(f"level_of_measurement: {level_of_measurement!r} is none of {', '.join(LEVELS)}")
    scale = vector(values, "values")
    if n_values != len(scale):
        raise ValueError(f"values: {len(scale)} values where counts has {n_values} columns")
    if np.any(np.diff(scale) <= 0):
        raise ValueError("values: must ascend")
    if level_of_measurement == "ratio" and len(scale) and scale[0] < 0:
        raise ValueError("values: a ratio scale has no negative value")
    return None if level_of_measurement == "ordinal" else _distances(scale, level_of_measurement), level_of_measurement


def _valid_distances(distances: FloatArray, n_values: int | None = None) -> FloatArray:
    if n_values is not None and distances.shape != (n_values, n_values):
        raise ValueError(f"distance: shape {distances.shape} where counts has {n_values} columns")
    if not np.isfinite(distances).all() or np.any(distances < 0):
        raise ValueError("distance: only finite, non-negative numbers are distances")
    if not np.allclose(distances, distances.T, rtol=1e-12, atol=0.0):
        raise ValueError("distance: not symmetric")
    if np.any(np.diag(distances) != 0):
        raise ValueError("distance: a value is not at distance 0 from itself")
    largest = float(distances.max()) if distances.size else 0.0
    # Alpha does not depend on the unit of the distance; what counts as no disagreement should not either.
    return distances / largest if largest > 0 else distances


def _distances(scale: FloatArray, level_of_measurement: str) -> FloatArray:
    if level_of_measurement == "nominal":
        return 1.0 - np.eye(len(scale))
    difference = scale[:, None] - scale[None, :]
    if level_of_measurement == "interval":
        # Divided by the range, so that what counts as no disagreement does not depend on the unit of the scale.
        span = float(scale[-1] - scale[0]) if len(scale) > 1 else 1.0
        return np.asarray((difference / span) ** 2, dtype=np.float64)
    sums = scale[:, None] + scale[None, :]
    return np.asarray(np.where(sums > 0, difference / np.where(sums > 0, sums, 1.0), 0.0) ** 2, dtype=np.float64)


def _halves(
    filled: FloatArray, ones: FloatArray, splits: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The items' means in the two halves of `splits` random halvings; NaN where a half did not score an item."""
    n_annotators = len(filled)
    order = np.argsort(rng.random((splits, n_annotators)), axis=1)
    # With an odd number the extra annotator falls to either half, so neither is systematically the larger.
    size = n_annotators // 2 + (rng.integers(0, 2, size=splits) if n_annotators % 2 else np.zeros(splits, dtype=int))
    in_first = (order < size[:, None]).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        first = (in_first @ filled) / (in_first @ ones)
        second = ((1 - in_first) @ filled) / ((1 - in_first) @ ones)
    return first, second


def _weighted_correlations(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """Pearson's correlation of each row over its items, weighted; NaN under three items or without variance."""
    usable = ~np.isnan(first) & ~np.isnan(second)
    weight = np.where(usable, weights, 0.0)
    x, y = np.where(usable, first, 0.0), np.where(usable, second, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = weight.sum(axis=1, keepdims=True)
        x = x - (weight * x).sum(axis=1, keepdims=True) / total
        y = y - (weight * y).sum(axis=1, keepdims=True) / total
        spread_x, spread_y = (weight * x * x).sum(axis=1), (weight * y * y).sum(axis=1)
        correlation = (weight * x * y).sum(axis=1) / np.sqrt(spread_x * spread_y)
    varies = (spread_x > DEGENERATE) & (spread_y > DEGENERATE) & ((weight > 0).sum(axis=1) >= 3)
    return np.where(varies, correlation, np.nan)


def _stepped_up(correlations: FloatArray) -> FloatArray:
    # A correlation near -1 would step up to minus infinity; such halves simply do not agree.
    with np.errstate(invalid="ignore", divide="ignore"):
        stepped = 2 * correlations / (1 + correlations)
    return np.where(np.isnan(correlations), np.nan, np.maximum(stepped, -1.0))


def _mean_squares(table: FloatArray, here: npt.NDArray[np.bool_], per_item: IntArray, kind: str) -> dict[str, float]:
    """Mean squares and degrees of freedom; one-way, the error is within items and there is none of annotators."""
    n_items, n_rows = table.shape[1], int(here.sum())
    filled = np.where(here, table, 0.0)
    # Sums of squares about the grand mean lose fewer digits than squares of raw sums.
    centred = np.where(here, filled - filled.sum() / n_rows, 0.0)
    item_means = centred.sum(axis=0) / per_item
    items = float(np.sum(per_item * item_means**2))
    within = float(np.sum(np.where(here, centred - item_means, 0.0) ** 2))
    if kind == "one_way":
        df_error = n_rows - n_items
        found = {"ms_items": items / (n_items - 1), "ms_error": within / df_error}
        return {**found, "df_items": float(n_items - 1), "df_error": float(df_error)}
    n_annotators = len(table)
    annotator_means = centred.mean(axis=1)
    annotators = n_items * float(np.sum(annotator_means**2))
    residual = float(np.sum((centred - item_means - annotator_means[:, None]) ** 2))
    df_error = (n_items - 1) * (n_annotators - 1)
    return {
        "ms_items": items / (n_items - 1),
        "ms_annotators": annotators / (n_annotators - 1),
        "ms_error": residual / df_error,
        "df_items": float(n_items - 1),
        "df_error": float(df_error),
    }


def _icc_ends(
    squares: dict[str, float], raters: float, n_items: int, kind: str, level: float
) -> tuple[float, float] | None:
    """The interval of the single-score coefficient; that of the average follows from it by Spearman and Brown."""
    tail = (1 - level) / 2
    between, error, annotators = squares["ms_items"], squares["ms_error"], squares.get("ms_annotators", 0.0)
    df_items, df_error = squares["df_items"], squares["df_error"]
    if kind != "absolute":
        ratio = between / error
        low = ratio / float(special.fdtri(df_items, df_error, 1 - tail))
        high = ratio * float(special.fdtri(df_error, df_items, 1 - tail))
        return (low - 1) / (low + raters - 1), (high - 1) / (high + raters - 1)
    value = (between - error) / (between + (raters - 1) * error + raters * (annotators - error) / n_items)
    a = raters * value / (n_items * (1 - value))
    b = 1 + raters * value * (n_items - 1) / (n_items * (1 - value))
    # Satterthwaite's degrees of freedom of a C + b E.
    parts = (a * annotators) ** 2 / (raters - 1) + (b * error) ** 2 / df_error
    df = (a * annotators + b * error) ** 2 / parts if parts > 0 else 0.0
    if not df > 0:
        return None
    mixed = raters * annotators + (raters * n_items - raters - n_items) * error
    below, above = float(special.fdtri(df_items, df, 1 - tail)), float(special.fdtri(df, df_items, 1 - tail))
    low = n_items * (between - below * error) / (below * mixed + n_items * between)
    high = n_items * (above * between - error) / (mixed + n_items * above * between)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _raised(value: float, raters: float) -> float:
    return raters * value / (1 + (raters - 1) * value)
