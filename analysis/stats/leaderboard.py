"""Scores of systems on one fixed draw of items, 0 to 100, and what may be said of their differences.

The paper resamples annotations, as if each came from somebody else: with a workforce of which a few give most of the
labels its 95 % interval covers less than half of the time. Here the unit is the annotator, items weigh equally however
many labels each got, and systems are compared on the items they share.

Source: Genie (Khashabi et al. 2022), sections 4 and 6, appendix C.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, betting, bootstrap, clusters, ranks
from analysis.stats.arrays import (
    DEGENERATE,
    FloatArray,
    IntArray,
    codes,
    kept_codes,
    refuse_level,
    refuse_outside,
    totals,
    vector,
)
from analysis.stats.multiplicity import Family, adjusted
from analysis.stats.results import MODES, Estimate, HypothesisTest, Interval, Record, Warning

SCALE = 100.0
BOUNDS = (0.0, SCALE)


@dataclass(frozen=True, slots=True)
class Leaderboard(Record):
    """Systems from best to worst: their scores, the sets of ranks, and each one's distance from the best.

    `scores` and `from_best` follow `ranks.systems`; the best system's own distance is `not_applicable`.
    """

    scores: tuple[Estimate, ...]
    ranks: ranks.RankSets
    from_best: tuple[Estimate, ...]


@dataclass(frozen=True, slots=True)
class Labelling(Record):
    """The spread of a score at one budget: k labels on N / k items (multilabel), or one label on each of N.

    `sd_unilabel` and `sd_multilabel` are over `rounds` simulated rounds, in points of 100, and `exact_unilabel`,
    `exact_multilabel` their values without simulation error. `icc` is the share of variance that lies between items,
    None where it cannot be told, and `design_effect` = 1 + (k - 1) icc what multilabel costs in variance.
    """

    sd_unilabel: float
    sd_multilabel: float
    exact_unilabel: float
    exact_multilabel: float
    icc: float | None
    design_effect: float | None
    n_items: int
    labels_per_item: int
    rounds: int
    aggregate: str

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON-safe dict."""
        return Record.as_dict(self) | {"unit": "item", "n": self.n_items}


def unit_scores(points: npt.ArrayLike, *, n_points: int = 5) -> FloatArray:
    """Points 1..n of a Likert scale as equally spaced scores 0..1, NaN missing; n = 2 is no and yes.

    Raises ValueError, naming the row, for what is no point of the scale. Source: the paper's footnote 6.

    >>> unit_scores([1, 2, 3, 4, 5]).tolist(), unit_scores([1, 2], n_points=2).tolist()
    ([0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 1.0])
    """
    if n_points < 2:
        raise ValueError(f"n_points: {n_points} is less than 2")
    array = vector(points, "points")
    refuse_outside(array, (1, n_points), "points")
    between = np.flatnonzero(~np.isnan(array) & (array != np.round(array)))
    if len(between):
        raise ValueError(f"points: row {int(between[0])} is {array[between[0]]:g}, no point of the scale")
    return (array - 1) / (n_points - 1)


def worst_case_se(score: float, n: int, *, design_effect: float = 1.0) -> float:
    """The largest standard error that n answers within 0..100 can have, in points: sqrt(mu (100 - mu) / n) sqrt(deff).

    With a design effect of 1 it bounds answers that are independent, one an annotator; the answers of one person are
    not, and their design effect belongs in it. For use before there are data.

    Source: appendix C (the inequality of Bhatia and Davis 2000).

    >>> round(worst_case_se(50, 800), 2), round(worst_case_se(50, 300), 2)
    (1.77, 2.89)
    """
    if not 0 <= score <= SCALE:
        raise ValueError(f"score: {score!r} is not in 0..100")
    if n < 1:
        raise ValueError(f"n: {n} is less than 1")
    if not design_effect > 0:
        raise ValueError(f"design_effect: {design_effect!r} is not a positive number")
    return math.sqrt(score * (SCALE - score) / n * design_effect)


def design_effect(cluster_size: float, icc: float) -> float:
    """How much `cluster_size` answers each of a cluster inflate the variance of a mean: 1 + (m - 1) icc.

    Of annotators with m labels each; or, of items with k labels each, what labelling k times costs against labelling k
    times as many items (section 4, Q3). Never below 1: one label an item never loses for the mean.

    >>> round(math.sqrt(design_effect(20, 0.3)), 1), design_effect(3, 0.4)
    (2.6, 1.8)
    """
    if not cluster_size >= 1:
        raise ValueError(f"cluster_size: {cluster_size!r} is less than 1")
    if not 0 <= icc <= 1:
        raise ValueError(f"icc: {icc!r} is not in 0..1")
    return 1 + (cluster_size - 1) * icc


def system_score(
    values: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    mode: str = "recommended",
    level: float = 0.95,
    items_sampled: bool = True,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "leaderboard.score",
    unit: str = "annotator",
) -> Estimate:
    """The score of one system, 100 times a mean of answers in 0..1; arrays of shape (n_rows,), NaN missing.

    `paper`: the mean of the answers and the percentile bootstrap over them (warning `annotators_ignored`).
    `recommended`: the mean over items of each item's mean, V_a by leaving one annotator out (CV3), t on the smaller of
    G* - 1 and the number of items - 1. With `items_sampled` the claim goes beyond these very items:
    V = max(V_a + V_i - V_ai, V_a, V_i); without it V = V_a. Sensitivities: the BCa bootstrap over annotators, and the
    mean of the annotators' means. Nine equal answers in ten from fewer than 100 annotators: a betting interval over
    the annotators' means (warning `ceiling`). `n` counts annotators in recommended and answers in paper mode.
    detail has `plus` and `minus`, the interval's arms as the paper prints them, and the worst-case standard error.

    Source: section 6, Uncertainty Quantification.

    >>> rng = np.random.default_rng(0)
    >>> annotators, items = np.repeat(np.arange(20), 5), np.arange(100)
    >>> found = system_score(rng.choice([0.5, 0.75, 1], 100), items, annotators, rng=rng, resamples=999)
    >>> round(found.estimate, 1), found.interval.method, found.n
    (76.5, 'cv3_t', 20)
    """
    refuse_level(level)
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is none of {', '.join(MODES)}")
    rows = _Rows.of(values, items, annotators)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "score, 0 to 100: mean of answers" if mode == "paper" else "score, 0 to 100: mean over items",
        "mode": mode,
        "n_rows": len(rows.values),
        "settings": {"level": level, "items_sampled": items_sampled, "resamples": resamples},
    }
    if mode == "paper":
        return _paper_score(rows, level=level, resamples=resamples, rng=rng, common=common)
    common |= {"unit": unit, "n": rows.n_annotators, "n_clusters": rows.n_annotators}
    if len(rows.values) == 0:
        return Estimate(status="no_data", reason="no answer to analyse", **common)
    weights = rows.weights
    estimate = SCALE * float(weights @ rows.values)
    detail: dict[str, Any] = {"n_items": rows.n_items, "n_missing": rows.n_missing, **_worst_case(rows, estimate)}
    if rows.n_annotators == 1:
        return Estimate(
            status="n_lt_2", reason="one annotator has no spread", estimate=estimate, detail=detail, **common
        )
    found = _variance([_Arm(rows, weights, 1.0)], items_sampled=items_sampled, is_difference=False)
    if found is None:
        return Estimate(
            status="not_identified",
            reason="without one annotator nothing is left",
            estimate=estimate,
            detail=detail,
            **common,
        )
    detail |= found.as_dict()
    sizes = np.bincount(rows.annotators)
    warnings = clusters.cluster_warnings(sizes, name=unit)
    means = SCALE * np.bincount(rows.annotators, rows.values) / sizes
    bet = betting.betting_interval(np.clip(means, *BOUNDS), level=level, bounds=BOUNDS)
    se = SCALE * math.sqrt(found.variance)
    if se < DEGENERATE * SCALE:
        reason = "the annotators' answers do not differ, so the standard error is 0"
        return Estimate(
            status="zero_variance",
            reason=reason,
            estimate=estimate,
            interval=bet,
            warnings=warnings,
            detail=detail,
            **common,
        )
    interval: Interval = basic.t_interval(estimate, se, found.df, level=level, bounds=BOUNDS, method="cv3_t")
    share = basic.largest_share(rows.values)
    if bet is not None and rows.n_annotators < basic.CEILING_N and share >= basic.CEILING_SHARE:
        ends = {"cv3_t_low": interval.low, "cv3_t_high": interval.high}
        warnings = (*warnings, Warning("ceiling", "warn", {"largest_share": share, **ends}))
        interval = bet
    sensitivity = _sensitivities(
        rows, estimate, means, level=level, resamples=resamples, rng=rng, analysis=analysis, unit=unit
    )
    return Estimate(
        estimate=estimate,
        interval=interval,
        sensitivity=sensitivity,
        warnings=warnings,
        detail={**detail, **_arms(estimate, interval)},
        **common,
    )


def difference(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    x: object,
    y: object,
    level: float = 0.95,
    items_sampled: bool = True,
    analysis: str = "leaderboard.difference",
    unit: str = "annotator",
) -> Estimate:
    """The difference of two systems' scores, x - y, over the items that have answers for both; shapes (n_rows,).

    Each item counts once, with the difference of its mean answers d_i. The standard error is clustered by annotators:
    V_a leaves one annotator out of both systems at once (CV3). Where an item's two answers come from different people,
    V_a also holds the items' own spread, which the pairing has taken out of the difference; with `items_sampled`
    V = max(V_a + V_i - V_ai, V_i) removes it again, V_i being the variance of the paired d_i and V_ai that of the
    cells of one annotator and one item. Without it V = V_a, wider and about these items alone. t on G* - 1, against 0;
    no test under six annotators. `n` counts annotators, detail["n_items"] the shared items.

    >>> answers, who = [1, 0.75, 0.5, 1, 0.5, 0.5, 0.25, 0.5], [1, 2, 3, 4, 1, 2, 3, 4]
    >>> found = difference(answers, ["a"] * 4 + ["b"] * 4, [1, 2, 3, 4] * 2, who, x="a", y="b")
    >>> found.estimate, found.detail["n_items"], found.test is None
    (37.5, 4, True)
    """
    refuse_level(level)
    array = vector(values, "values")
    refuse_outside(array, (0.0, 1.0), "values")
    labels = np.asarray(systems)
    codes(labels, "systems", len(array))
    item_codes, n_all = codes(np.asarray(items), "items", len(array))
    codes(np.asarray(annotators), "annotators", len(array))
    given = ~np.isnan(array)
    is_x, is_y = given & np.asarray(labels == x), given & np.asarray(labels == y)
    shared = (np.bincount(item_codes[is_x], minlength=n_all) > 0) & (np.bincount(item_codes[is_y], minlength=n_all) > 0)
    here = (is_x | is_y) & shared[item_codes]
    both = _Rows.of(array[here], item_codes[here], np.asarray(annotators)[here])
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": f"difference of scores in points, {x} - {y}, over shared items",
        "unit": unit,
        "n": both.n_annotators,
        "n_clusters": both.n_annotators,
        "n_rows": len(both.values),
        "settings": {"x": str(x), "y": str(y), "level": level, "items_sampled": items_sampled},
    }
    detail: dict[str, Any] = {
        "n_items": both.n_items,
        "n_items_dropped": len(np.unique(item_codes[is_x | is_y])) - both.n_items,
    }
    if x == y:
        return Estimate(status="not_applicable", reason="a system does not differ from itself", detail=detail, **common)
    if both.n_items == 0:
        return Estimate(status="no_data", reason="the two systems share no item", detail=detail, **common)
    first = is_x[here]
    arms = [_Arm.of(both, first, 1.0), _Arm.of(both, ~first, -1.0)]
    estimate = SCALE * sum(arm.sign * arm.mean for arm in arms)
    if both.n_annotators == 1:
        return Estimate(
            status="n_lt_2", reason="one annotator has no spread", estimate=estimate, detail=detail, **common
        )
    found = _variance(arms, items_sampled=items_sampled, is_difference=True)
    if found is None:
        reason = "all answers of one system come from one annotator"
        return Estimate(status="not_identified", reason=reason, estimate=estimate, detail=detail, **common)
    return clusters.t_estimate(
        estimate,
        SCALE * math.sqrt(found.variance),
        found.df,
        fewest=both.n_annotators,
        level=level,
        method="cv3_t",
        null=0.0,
        bounds=(-SCALE, SCALE),
        reason="the difference does not vary, so the standard error is 0",
        warnings=clusters.cluster_warnings(np.bincount(both.annotators), name=unit),
        detail={**detail, **found.as_dict()},
        **common,
    )


def from_reference(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    reference: object,
    planned: Sequence[Any] | None = None,
    level: float = 0.95,
    items_sampled: bool = True,
) -> dict[Any, Estimate]:
    """Every other system's `difference` to a reference that was named beforehand, Holm over the planned systems.

    `planned` are the systems to be compared (all others in the data where None); one without answers still counts.

    >>> answers, who = [1, 0.75, 0.5, 1, 0.5, 0.5, 0.25, 0.5], [1, 2, 3, 4, 1, 2, 3, 4]
    >>> found = from_reference(answers, ["a"] * 4 + ["b"] * 4, [1, 2, 3, 4] * 2, who, reference="b")
    >>> list(found), found["a"].estimate
    (['a'], 37.5)
    """
    names = np.unique(np.asarray(systems)).tolist() if planned is None else list(planned)
    others = [name for name in names if name != reference]
    found = {
        str(other): difference(
            values, systems, items, annotators, x=other, y=reference, level=level, items_sampled=items_sampled
        )
        for other in others
    }
    after = adjusted(found, Family("leaderboard.reference", tuple(found)), star_scheme=None)
    return {other: after[str(other)] for other in others}


def leaderboard(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    mode: str = "recommended",
    level: float = 0.95,
    items_sampled: bool = True,
    resamples: int = bootstrap.RESAMPLES,
    unit: str = "annotator",
) -> Leaderboard:
    """Scores, rank sets and distances from the best of all systems; arrays of shape (n_rows,), NaN missing.

    Each score is a `system_score` in `mode`. Ranks (`ranks.rank_sets`) and distances rest on resamples of annotators,
    items weighing equally within each system. Because the best is chosen by the data, the distances have intervals and
    p-values that hold for all pairs of systems at once (test "max_t"). A new submission changes all of them: compute
    the whole board anew.

    >>> rng = np.random.default_rng(0)
    >>> annotators, items, systems = np.repeat(np.arange(20), 6), np.tile(np.arange(60), 2), np.repeat(["a", "b"], 60)
    >>> answers = np.clip(0.5 + 0.3 * (systems == "b") + rng.normal(0, 0.2, 120), 0, 1)
    >>> board = leaderboard(answers, systems, items, annotators, rng=rng, resamples=999)
    >>> board.ranks.systems, board.ranks.low, board.ranks.best
    (('b', 'a'), (1, 2), (True, False))
    """
    array = vector(values, "values")
    refuse_outside(array, (0.0, 1.0), "values")
    labels = np.asarray(systems)
    codes(labels, "systems", len(array))
    drawn = ranks.score_draws(
        SCALE * array,
        annotators,
        labels,
        weights=_equal_items(array, labels, items),
        resamples=resamples,
        rng=rng,
        unit=unit,
    )
    order = np.argsort(-drawn.scores, kind="stable")
    names = tuple(drawn.systems[i] for i in order)
    frame: dict[str, Any] = {"level": level, "df": drawn.df[np.ix_(order, order)]}
    sets = ranks.rank_sets(
        drawn.scores[order],
        drawn.draws[:, order],
        systems=names,
        unit=unit,
        n=drawn.n_annotators,
        n_rows=drawn.n_rows,
        warnings=drawn.warnings,
        settings={"critical": "t"},
        **frame,
    )
    item_labels, people = np.asarray(items), np.asarray(annotators)
    scores = []
    for name in names:
        own = np.asarray(labels == name)
        scores.append(
            system_score(
                array[own],
                item_labels[own],
                people[own],
                rng=rng,
                mode=mode,
                level=level,
                items_sampled=items_sampled,
                resamples=resamples,
                unit=unit,
            )
        )
    draws = drawn.draws[:, order]
    draws = draws[np.isfinite(draws).all(axis=1)]
    found = ranks.differences(drawn.scores[order], draws, **frame) if sets.low is not None else None
    common: dict[str, Any] = {"unit": unit, "n": drawn.n_annotators, "n_clusters": drawn.n_annotators}
    return Leaderboard(
        scores=tuple(scores),
        ranks=sets,
        from_best=tuple(
            _distance(place, names, drawn.scores[order], found, sets, common) for place in range(len(names))
        ),
    )


def stability(
    values: npt.ArrayLike,
    days: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "leaderboard.stability",
    unit: str = "annotator",
) -> Estimate:
    """The largest difference between the scores of one system on several days, in points; shapes (n_rows,).

    Only items answered on every day count, so that days differ in people and time alone. Noise makes the largest
    difference exceed 0 even if nothing changed: read the interval, from max_ij (|d_ij| - h_ij), at least 0, to
    max_ij (|d_ij| + h_ij), with h_ij the half width of the simultaneous interval for days i and j, annotators
    resampled. The test ("max_t") is that no two days differ. detail["by_day"] has the score of each day.

    Source: section 4, Figure 2 (one system on three weekdays).

    >>> rng = np.random.default_rng(0)
    >>> days, items, annotators = np.repeat([1, 2], 60), np.tile(np.arange(60), 2), np.repeat(np.arange(24), 5)
    >>> found = stability(rng.choice([0.5, 0.75, 1], 120), days, items, annotators, rng=rng, resamples=999)
    >>> found.detail["n_items"], found.interval.low
    (60, 0.0)
    """
    refuse_level(level)
    array = vector(values, "values")
    refuse_outside(array, (0.0, 1.0), "values")
    day_codes, _ = codes(np.asarray(days), "days", len(array))
    item_codes, n_items = codes(np.asarray(items), "items", len(array))
    codes(np.asarray(annotators), "annotators", len(array))
    given = ~np.isnan(array)
    present = np.unique(day_codes[given])
    seen = np.zeros((int(day_codes.max(initial=0)) + 1, n_items), dtype=bool)
    seen[day_codes[given], item_codes[given]] = True
    on_all = np.asarray(seen[present].all(axis=0)) if len(present) else np.zeros(n_items, dtype=bool)
    here = given & on_all[item_codes]
    labels, shared = np.asarray(days)[here], item_codes[here]
    people = np.asarray(annotators)[here]
    n = len(np.unique(people))
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "largest difference between days, in points of 100",
        "unit": unit,
        "n": n,
        "n_clusters": n,
        "n_rows": int(here.sum()),
        "settings": {"level": level, "resamples": resamples},
    }
    detail: dict[str, Any] = {
        "n_days": len(present),
        "n_items": int(on_all.sum()),
        "n_items_dropped": len(np.unique(item_codes[given])) - int(on_all.sum()),
    }
    if not given.any():
        return Estimate(status="no_data", reason="no answer to analyse", detail=detail, **common)
    if len(present) == 1:
        return Estimate(status="not_applicable", reason="all answers are of one day", detail=detail, **common)
    if not here.any():
        return Estimate(status="not_identified", reason="no item was answered on every day", detail=detail, **common)
    drawn = ranks.score_draws(
        SCALE * array[here],
        people,
        labels,
        weights=_equal_items(array[here], labels, shared),
        resamples=resamples,
        rng=rng,
        unit=unit,
    )
    spread = float(np.ptp(drawn.scores))
    detail["by_day"] = {str(day): score for day, score in zip(drawn.systems, drawn.scores.tolist(), strict=True)}
    common |= {"estimate": spread, "warnings": drawn.warnings, "detail": detail}
    draws = drawn.draws[np.isfinite(drawn.draws).all(axis=1)]
    if n == 1:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    if len(draws) < ranks.MAX_UNDEFINED * resamples:
        return Estimate(status="not_identified", reason="some days were rated by too few to be resampled", **common)
    found = ranks.differences(drawn.scores, draws, level=level, df=drawn.df)
    if not found.decidable[~np.eye(len(drawn.systems), dtype=bool)].all():
        return Estimate(status="zero_variance", reason="the difference of two days does not vary", **common)
    half = np.nan_to_num((found.high - found.low) / 2, nan=0.0)
    sizes = np.abs(found.estimates)
    low, high = max(0.0, float(np.max(sizes - half))), float(np.max(sizes + half))
    pvalue = float(np.nanmin(found.pvalues))
    tested = n >= clusters.TOO_FEW_CLUSTERS
    return Estimate(
        interval=Interval(level, low, min(SCALE, high), "max_t", clipped=high > SCALE),
        test=HypothesisTest(name="max_t", null=0.0, statistic=None, pvalue=pvalue) if tested else None,
        **common,
    )


def labelling_spread(
    labels: npt.ArrayLike, *, rng: np.random.Generator, rounds: int = 500, aggregate: str = "mean"
) -> Labelling:
    """How much the score would vary if one budget bought k labels on few items, or one label on k times as many.

    `labels` has shape (n_items, k), complete, in 0..1. Each round draws with replacement either n_items / k items with
    all their labels, aggregated within each item ("mean", or "majority": the median, which is the majority wherever
    there is one and k is odd), or n_items of all labels. Both cost n_items labels. The paper's figures are the
    standard deviations over its 500 rounds.

    Source: section 4, Q2 and Q3, Figure 3.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.clip(rng.normal(0.7, 0.2, (90, 1)) + rng.normal(0, 0.2, (90, 3)), 0, 1)
    >>> found = labelling_spread(labels, rng=rng)
    >>> found.exact_multilabel > found.exact_unilabel, round(found.design_effect, 1)
    (True, 1.7)
    """
    table = np.asarray(labels, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise ValueError(f"labels: at least two items with two labels each are needed, got shape {table.shape}")
    if np.isnan(table).any():
        raise ValueError(f"labels: row {int(np.argwhere(np.isnan(table))[0][0])} has a missing label")
    refuse_outside(table.ravel(), (0.0, 1.0), "labels")
    if aggregate not in ("mean", "majority"):
        raise ValueError(f"aggregate: {aggregate!r} is neither mean nor majority")
    if rounds < 2:
        raise ValueError(f"rounds: {rounds} is less than 2")
    n_items, k = table.shape
    n_few = max(1, round(n_items / k))
    each = table.mean(axis=1) if aggregate == "mean" else np.median(table, axis=1)
    few = each[rng.integers(0, n_items, (rounds, n_few))].mean(axis=1)
    many = table.ravel()[rng.integers(0, n_items * k, (rounds, n_items))].mean(axis=1)
    parts = clusters.between_variance(table.ravel(), np.repeat(np.arange(n_items), k))
    return Labelling(
        sd_unilabel=SCALE * float(np.std(many, ddof=1)),
        sd_multilabel=SCALE * float(np.std(few, ddof=1)),
        exact_unilabel=SCALE * float(np.std(table)) / math.sqrt(n_items),
        exact_multilabel=SCALE * float(np.std(each)) / math.sqrt(n_few),
        icc=parts.icc,
        design_effect=None if parts.icc is None else design_effect(k, parts.icc),
        n_items=n_items,
        labels_per_item=k,
        rounds=rounds,
        aggregate=aggregate,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Answers without the missing ones, items and annotators as codes; `weights` give every item the same total."""

    values: FloatArray
    items: IntArray
    annotators: IntArray
    n_items: int
    n_annotators: int
    n_missing: int

    @classmethod
    def of(cls, values: npt.ArrayLike, items: npt.ArrayLike, annotators: npt.ArrayLike) -> "_Rows":
        array = vector(values, "values")
        refuse_outside(array, (0.0, 1.0), "values")
        here = ~np.isnan(array)
        n = int(here.sum())
        item_codes, n_items = kept_codes(items, "items", here)
        annotator_codes, n_annotators = kept_codes(annotators, "annotators", here)
        return cls(array[here], item_codes, annotator_codes, n_items, n_annotators, len(array) - n)

    @property
    def weights(self) -> FloatArray:
        return np.asarray(1 / (self.n_items * np.bincount(self.items)[self.items]), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Arm:
    """One system's part of a contrast: weights over all rows, adding up to 1, and the sign it enters with."""

    rows: _Rows
    weights: FloatArray
    sign: float

    @classmethod
    def of(cls, rows: _Rows, own: npt.NDArray[np.bool_], sign: float) -> "_Arm":
        per_item = np.bincount(rows.items[own], minlength=rows.n_items)
        return cls(rows, np.where(own, 1 / (rows.n_items * per_item[rows.items]), 0.0), sign)

    @property
    def mean(self) -> float:
        return float(self.weights @ self.rows.values)


@dataclass(frozen=True, slots=True)
class _Variance:
    variance: float
    df: float
    by_annotator: float
    by_item: float | None
    by_cell: float | None
    effective: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "se": SCALE * math.sqrt(self.variance),
            "df": self.df,
            "variance_annotators": SCALE**2 * self.by_annotator,
            "variance_items": None if self.by_item is None else SCALE**2 * self.by_item,
            "variance_cells": None if self.by_cell is None else SCALE**2 * self.by_cell,
            "effective_clusters": self.effective,
        }


def _variance(arms: Sequence[_Arm], *, items_sampled: bool, is_difference: bool) -> _Variance | None:
    """Of sum(sign * mean) over the arms, which share their rows; None where one annotator is all of an arm."""
    rows = arms[0].rows
    n = rows.n_annotators
    contrast = sum(arm.sign * arm.mean for arm in arms)
    without = np.zeros(n)
    shares = np.zeros(n)
    influence = np.zeros(len(rows.values))
    for arm in arms:
        weight = np.bincount(rows.annotators, arm.weights, n)
        if float(weight.max()) > 1 - 1e-12:
            return None
        left = float(arm.weights @ rows.values) - np.bincount(rows.annotators, arm.weights * rows.values, n)
        without += arm.sign * left / (1 - weight)
        shares += weight
        influence += arm.sign * arm.weights * (rows.values - arm.mean)
    by_annotator = (n - 1) / n * float(np.sum((without - contrast) ** 2))
    effective = clusters.effective_clusters(shares)
    df = max(1.0, effective - 1)
    if not items_sampled or rows.n_items < 2:
        return _Variance(by_annotator, df, by_annotator, None, None, effective)
    # Influences are shares of the score already, where `cr1_variance` divides by the number of rows.
    moves = influence * len(influence)
    cells, _ = codes(rows.annotators * rows.n_items + rows.items, "cells", len(moves))
    by_item, by_cell = clusters.cr1_variance(moves, rows.items), clusters.cr1_variance(moves, cells)
    combined = by_annotator + by_item - by_cell
    # A difference that is paired by item must not be widened by what the pairing took out, so V_a is no floor there.
    variance = max(combined, by_item) if is_difference else max(combined, by_annotator, by_item)
    return _Variance(variance, min(df, rows.n_items - 1.0), by_annotator, by_item, by_cell, effective)


def _equal_items(array: FloatArray, systems: npt.ArrayLike, items: npt.ArrayLike) -> FloatArray:
    """1 / (answers of the row's item for the row's system), so that each item weighs the same; 0 where missing."""
    system_codes, _ = codes(np.asarray(systems), "systems", len(array))
    item_codes, n_items = codes(np.asarray(items), "items", len(array))
    cells = system_codes * n_items + item_codes
    given = ~np.isnan(array)
    counts = np.bincount(cells[given], minlength=int(cells.max(initial=0)) + 1)[cells]
    return np.where(given, 1 / np.maximum(counts, 1), 0.0)


def _arms(estimate: float, interval: Interval) -> dict[str, float]:
    return {"plus": interval.high - estimate, "minus": estimate - interval.low}


def _worst_case(rows: _Rows, estimate: float) -> dict[str, Any]:
    """The bound for independent answers, and the same times the root of the observed design effect."""
    parts = clusters.between_variance(rows.values, rows.annotators)
    n, score = len(rows.values), min(SCALE, max(0.0, estimate))
    dependent = None if parts.design_effect is None else worst_case_se(score, n, design_effect=parts.design_effect)
    return {
        "worst_case_se": worst_case_se(score, n),
        "worst_case_se_clustered": dependent,
        "annotator_icc": parts.icc,
        "design_effect": parts.design_effect,
    }


def _paper_score(
    rows: _Rows, *, level: float, resamples: int, rng: np.random.Generator, common: Mapping[str, Any]
) -> Estimate:
    n = len(rows.values)
    named = {**common, "unit": "answer", "n": n}
    if n == 0:
        return Estimate(status="no_data", reason="no answer to analyse", **named)
    estimate = SCALE * float(np.mean(rows.values))
    detail: dict[str, Any] = {"n_annotators": rows.n_annotators, "n_items": rows.n_items, "n_missing": rows.n_missing}
    detail |= {"worst_case_se": worst_case_se(min(SCALE, estimate), n)}
    if n == 1:
        return Estimate(status="n_lt_2", reason="one answer has no spread", estimate=estimate, detail=detail, **named)
    scores, counts = np.unique(rows.values, return_counts=True)
    if len(scores) == 1:
        return Estimate(
            status="zero_variance", reason="all answers are equal", estimate=estimate, detail=detail, **named
        )
    draws = SCALE * (rng.multinomial(n, counts / n, resamples) @ scores) / n
    interval = bootstrap.percentile_interval(np.asarray(draws), level)
    warnings = () if rows.n_annotators == n else (Warning("annotators_ignored", "block", {"n": rows.n_annotators}),)
    arms = {} if interval is None else _arms(estimate, interval)
    return Estimate(estimate=estimate, interval=interval, warnings=warnings, detail={**detail, **arms}, **named)


def _sensitivities(
    rows: _Rows,
    estimate: float,
    means: FloatArray,
    *,
    level: float,
    resamples: int,
    rng: np.random.Generator,
    analysis: str,
    unit: str,
) -> tuple[Estimate, ...]:
    n = rows.n_annotators
    weights = rows.weights
    sums, counts = SCALE * totals(rows.annotators, weights * rows.values, n), totals(rows.annotators, weights, n)
    draws = bootstrap.ratio_draws(sums[:, None], counts[:, None], bootstrap.multinomial_weights(n, resamples, rng))
    interval = bootstrap.interval_from_draws(estimate, draws[:, 0], sums, counts, method="bca", level=level)
    resampled = Estimate(
        analysis=f"{analysis}.bootstrap",
        estimand="score, 0 to 100: mean over items",
        unit=unit,
        n=n,
        n_clusters=n,
        estimate=estimate,
        interval=interval,
        settings={"method": "bca", "level": level, "resamples": resamples},
    )
    of_means = basic.one_sample(
        np.clip(means, *BOUNDS),
        null=estimate,
        level=level,
        bounds=BOUNDS,
        analysis=f"{analysis}.annotator_means",
        estimand=f"score, 0 to 100: mean of {unit} means",
        unit=unit,
    )
    return resampled, replace(of_means, test=None, effect=None)


def _distance(
    place: int,
    names: tuple[Any, ...],
    scores: FloatArray,
    found: ranks.Differences | None,
    sets: ranks.RankSets,
    common: Mapping[str, Any],
) -> Estimate:
    named: dict[str, Any] = {
        "analysis": "leaderboard.from_best",
        "estimand": f"difference of scores in points, {names[place]} - {names[0]} (the best)",
        "estimate": float(scores[place] - scores[0]),
        **common,
    }
    if place == 0:
        return Estimate(status="not_applicable", reason="the best system is not compared with itself", **named)
    if found is None:
        return Estimate(status=sets.status, reason=sets.reason, **named)
    if not found.decidable[place, 0]:
        return Estimate(status="zero_variance", reason="the difference does not vary", **named)
    pvalue = float(found.pvalues[place, 0])
    size = len(names) * (len(names) - 1) // 2
    tested = common["n"] >= clusters.TOO_FEW_CLUSTERS
    return Estimate(
        interval=Interval(found.level, float(found.low[place, 0]), float(found.high[place, 0]), "max_t"),
        test=HypothesisTest(
            name="max_t",
            null=0.0,
            statistic=float(scores[place] - scores[0]) / float(found.standard_errors[place, 0]),
            pvalue=pvalue,
            pvalue_adjusted=pvalue,
            adjust="max_t",
            family="leaderboard.pairs",
            family_size=size,
        )
        if tested
        else None,
        detail={"se": float(found.standard_errors[place, 0])},
        **named,
    )
