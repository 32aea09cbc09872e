"""Ratings of single outputs: the standard protocol on a Likert scale, and what may be said of it beyond a mean.

A difference of mean ratings assumes that the points of the scale are equally far apart in every annotator's mind. The
probability of superiority assumes only their order, and is the default; the others stand beside it.

Source: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, sections 3, 4 and 6.
"""

import math
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap, clusters
from analysis.stats.arrays import (
    DEGENERATE,
    FloatArray,
    IntArray,
    codes,
    kept_codes,
    refuse_level,
    refuse_outside,
    sizes_of,
    totals,
    vector,
)
from analysis.stats.results import Estimate, Record, Warning

MIN_Z_RATINGS = 10
MIN_REFERENCE_SPREAD = 10.0


@dataclass(frozen=True, slots=True)
class ReversalGuard(Record):
    """How far rounding to the scale's steps can have moved a difference of means, at worst.

    The true difference lies in the open interval (low, high); where that holds 0, a reversal of the preference cannot
    be excluded, which is not to say that it occurred.
    """

    observed: float
    step: float
    low: float
    high: float
    is_reversal_possible: bool

    def as_dict(self) -> dict[str, Any]:
        """The data of the sentence that a report prints."""
        sentence = "reversal_cannot_be_excluded" if self.is_reversal_possible else "reversal_excluded"
        return Record.as_dict(self) | {"sentence": sentence}


@dataclass(frozen=True, slots=True)
class ZScores(Record):
    """`scores` (n_rows,), NaN for rows of the annotators (codes) in `dropped`, who gave too few or equal ratings."""

    scores: FloatArray
    dropped: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Rescaled(Record):
    """`values` (n_rows,) between each annotator's own references (0 the minimal, 1 the maximal), NaN where left out.

    `extremum_violation` and `narrow_references` name the annotators left out, `no_references` those who rated none.
    """

    values: FloatArray
    extremum_violation: tuple[Any, ...]
    narrow_references: tuple[Any, ...]
    no_references: tuple[Any, ...]


def paired_delta_paper(
    x: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.95, analysis: str = "rating.pair", unit: str = "annotator"
) -> Estimate:
    """The paper's comparison: the mean difference of each annotator's ratings of two systems, with a paired t test.

    `x` and `y` have shape (n,), row i one annotator, one rating each; NaN drops the annotator.

    Source: section 6.1, the last column of Table 1 (with Holm over the pairs).

    >>> paired_delta_paper([3, 2, 4, 5], [3, 1, 4, 5]).estimate
    0.25
    """
    return basic.paired(
        x, y, level=level, analysis=analysis, estimand="mean difference of ratings x - y", unit=unit, mode="paper"
    )


def reversal_guard(observed: float, *, step: float = 1.0) -> ReversalGuard:
    """Propositions 1 and 2 as a warning: a true difference may differ from the observed one by up to one step.

    An annotator who rounds a utility up to the next point of the scale adds a residual in [0, step). The difference of
    two means is off by the difference of two mean residuals, so the true one lies in (observed - step,
    observed + step), and its sign is certain only if |observed| >= step. A continuous scale has a small step.

    Source: section 3, Remark 2, Propositions 1 and 2.

    >>> reversal_guard(0.644).is_reversal_possible, reversal_guard(-1.2).is_reversal_possible
    (True, False)
    """
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"step: {step!r} is not a positive number")
    if not math.isfinite(observed):
        raise ValueError("observed: not a finite number")
    return ReversalGuard(observed, step, observed - step, observed + step, abs(observed) < step)


def mean_difference(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None = None,
    scale: tuple[float, float],
    level: float = 0.95,
    analysis: str = "rating.mean_difference",
    unit: str = "annotator",
) -> Estimate:
    """The mean of x - y over annotator-prompt pairs, clustered by annotator and, where given, by prompt too.

    `x`, `y`, `annotators` and `prompts` have shape (n_rows,): row i holds one annotator's ratings of both systems for
    one prompt. `scale` gives the scale's ends; detail["share_of_range"] is the difference as a share of its length. With
    one row an annotator and no prompts this is the paired t test. Prompts make the claim one about the systems, not
    about these prompts. The interval scale is an assumption (warning `interval_scale_assumed`).

    >>> result = mean_difference([4, 5, 3, 4], [3, 3, 3, 3], [1, 2, 3, 4], scale=(1, 5))
    >>> result.estimate, result.detail["share_of_range"]
    (1.0, 0.25)
    """
    first, second = _rated(x, y, scale)
    common: dict[str, Any] = {
        "null": 0.0,
        "level": level,
        "analysis": analysis,
        "estimand": "mean difference of ratings x - y",
        "unit": unit,
    }
    if prompts is not None:
        result = clusters.two_way_mean(first - second, annotators, prompts, **common)
    else:
        labels = np.asarray(annotators)
        here = ~np.isnan(first - second)
        is_one_each = labels.shape == first.shape and len(np.unique(labels[here])) == int(here.sum())
        if is_one_each:
            del common["null"]
            result = basic.paired(first, second, **common)
        else:
            result = clusters.clustered_mean(first - second, labels, **common)
    share = None if result.estimate is None else result.estimate / (scale[1] - scale[0])
    assumed = Warning("interval_scale_assumed", "info")
    return replace(
        result,
        warnings=(*result.warnings, assumed),
        detail={**result.detail, "share_of_range": share},
        settings={**result.settings, "scale": scale},
    )


def superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    method: str = "bca",
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "rating.superiority",
    unit: str = "annotator",
) -> Estimate:
    """The probability that an annotator rates x above y for the same prompt, a tie counting half: PS.

    `x`, `y` and `annotators` have shape (n_rows,), row i one annotator's two ratings for one prompt. Only the order of
    ratings counts, so any relabelling of the scale that keeps it changes nothing. PS = mean of {1, .5, 0} over rows;
    Cliff's delta = 2 PS - 1 is in detail. The interval resamples annotators with all their rows (`method` "bca" or
    "percentile"); the test against .5 is the clustered t (CV3), absent under six annotators. All ties: PS = .5 and
    `zero_variance`.

    Source: recommended in place of mean Likert differences, which section 3, Remark 1 shows to rest on equal intervals.

    >>> result = superiority([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4], rng=np.random.default_rng(0), resamples=999)
    >>> result.estimate, result.detail["cliff_delta"], result.detail["n_ties"]
    (0.625, 0.25, 1)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    scores = np.where(np.isnan(difference), np.nan, (np.sign(difference) + 1) / 2)
    common: dict[str, Any] = {
        "level": level,
        "bounds": (0.0, 1.0),
        "analysis": analysis,
        "estimand": "probability that x is rated above y, ties half",
        "unit": unit,
    }
    labels = np.asarray(annotators)
    tested = clusters.clustered_mean(scores, labels, null=0.5, **common)
    resampled = bootstrap.bootstrap_mean(scores, clusters=labels, method=method, resamples=resamples, rng=rng, **common)
    kept = scores[~np.isnan(scores)]
    detail = {
        **tested.detail,
        "cliff_delta": None if tested.estimate is None else 2 * tested.estimate - 1,
        "n_above": int(np.sum(kept == 1)),
        "n_ties": int(np.sum(kept == 0.5)),
        "n_below": int(np.sum(kept == 0)),
    }
    if tested.status == "ok" and resampled.interval is not None:
        tested = replace(tested, interval=resampled.interval)
    found = {warning.code: warning for warning in (*resampled.warnings, *tested.warnings)}
    settings = {**tested.settings, "interval_method": method, "resamples": resamples}
    return replace(tested, detail=detail, warnings=tuple(found.values()), settings=settings)


def rank_tests(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    analysis: str = "rating",
    unit: str = "annotator",
) -> tuple[Estimate, Estimate]:
    """The sign test and Wilcoxon's test (of symmetry) of x - y, one difference an annotator.

    Shapes as in `superiority`; an annotator with several rows enters with the mean difference, since rows of one person
    are not independent.

    >>> sign, symmetry = rank_tests([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4])
    >>> sign.detail["n_ties"], sign.estimate
    (1, 0.6666666666666666)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    here = ~np.isnan(difference)
    positions, n_annotators = codes(np.asarray(annotators)[here], "annotators", int(here.sum()))
    means = totals(positions, difference[here], n_annotators) / sizes_of(positions, n_annotators)
    return (
        basic.sign_test(means, analysis=f"{analysis}.sign_test", unit=unit),
        basic.wilcoxon(means, analysis=f"{analysis}.wilcoxon", unit=unit),
    )


def cumulative_logit(
    ratings: npt.ArrayLike,
    systems: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    system: object,
    reference: object,
    level: float = 0.95,
    analysis: str = "rating.cumulative_logit",
    unit: str = "annotator",
) -> Estimate:
    """The log odds ratio of being rated higher, `system` against `reference`, in a proportional-odds model.

    `ratings`, `systems` and `annotators` have shape (n_rows,); rows of other systems are left out. logit P(rating > k)
    = b [row is of system] - c_k for every threshold k; standard errors over annotators, t on G - 1. detail
    ["by_threshold"] has the log odds ratio at each threshold on its own (None where a cell is empty): where they differ
    much, the one number misleads. A system whose ratings all lie above the other's: `separation`; a fit that does not
    settle: `failed`.

    Source: McCullagh 1980, Regression models for ordinal data.

    >>> rng = np.random.default_rng(0)
    >>> ratings = np.r_[rng.integers(2, 6, 40), rng.integers(1, 5, 40)]
    >>> result = cumulative_logit(ratings, ["x"] * 40 + ["y"] * 40, [*range(40)] * 2, system="x", reference="y")
    >>> result.status, result.estimate > 0
    ('ok', True)
    """
    refuse_level(level)
    array = vector(ratings, "ratings")
    names = np.asarray(systems)
    if names.shape != array.shape:
        raise ValueError(f"systems: expected {len(array)} labels, got an array of shape {names.shape}")
    is_system = np.asarray(names == system)
    here = ~np.isnan(array) & (is_system | np.asarray(names == reference))
    kept, treated = array[here], is_system[here].astype(np.float64)
    positions, n_annotators = kept_codes(annotators, "annotators", here)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "log odds ratio of a higher rating, system against reference",
        "unit": unit,
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": len(kept),
        "settings": {"system": str(system), "reference": str(reference), "level": level},
    }
    n_treated = int(treated.sum())
    if n_treated == 0 or n_treated == len(kept):
        return Estimate(status="no_data", reason="one of the two systems has no rating", **common)
    points = np.unique(kept)
    if len(points) == 1:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    ours, theirs = kept[treated == 1], kept[treated == 0]
    if ours.min() >= theirs.max() or theirs.min() >= ours.max():
        return Estimate(status="separation", reason="one system's ratings all lie above the other's", **common)
    detail = {"by_threshold": [_threshold(ours, theirs, point) for point in points[:-1]], "points": points}
    fitted = _fit_ordered(kept, treated, positions)
    if isinstance(fitted, str):
        return Estimate(status="failed", reason=fitted, detail=detail, **common)
    value, se = fitted
    return clusters.t_estimate(
        value,
        se,
        n_annotators - 1,
        fewest=n_annotators,
        level=level,
        method="cr1_t",
        null=0.0,
        warnings=clusters.cluster_warnings(sizes_of(positions, n_annotators), name=unit),
        detail={**detail, "odds_ratio": math.exp(min(700.0, value))},
        **common,
    )


def crossed_mixed(
    ratings: npt.ArrayLike,
    systems: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike,
    *,
    system: object,
    reference: object,
    level: float = 0.95,
    analysis: str = "rating.crossed_mixed",
    unit: str = "annotator",
) -> Estimate:
    """The difference of mean ratings in a model with random annotators and random prompts, crossed.

    All arrays have shape (n_rows,); rows of other systems are left out. detail has the components of variance and
    their shares (`icc_annotator`, `icc_prompt`), which planning needs. A fit that does not converge falls back to the
    two-way clustered contrast of means (warning `mixed_not_converged`, detail["method"] says which it is). Takes seconds
    for thousands of rows: never inside a web request.

    >>> rng = np.random.default_rng(3)
    >>> annotators, prompts = np.repeat(np.arange(8), 12), np.tile(np.repeat(np.arange(6), 2), 8)
    >>> systems = np.tile(["x", "y"], 48)
    >>> ratings = 3 + (systems == "x") + rng.normal(0, 1, 8)[annotators] + rng.normal(0, 1, 96)
    >>> round(crossed_mixed(ratings, systems, annotators, prompts, system="x", reference="y").estimate, 1)
    1.0
    """
    refuse_level(level)
    array = vector(ratings, "ratings")
    names = np.asarray(systems)
    if names.shape != array.shape:
        raise ValueError(f"systems: expected {len(array)} labels, got an array of shape {names.shape}")
    is_system = np.asarray(names == system)
    here = ~np.isnan(array) & (is_system | np.asarray(names == reference))
    kept, treated = array[here], is_system[here].astype(np.float64)
    annotator_codes, n_annotators = kept_codes(annotators, "annotators", here)
    prompt_codes, n_prompts = kept_codes(prompts, "prompts", here)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "difference of mean ratings, system - reference",
        "unit": unit,
        "n": n_annotators,
        "n_clusters": min(n_annotators, n_prompts) if len(kept) else 0,
        "n_rows": len(kept),
        "settings": {"system": str(system), "reference": str(reference), "level": level},
    }
    n_treated = int(treated.sum())
    if n_treated == 0 or n_treated == len(kept):
        return Estimate(status="no_data", reason="one of the two systems has no rating", **common)
    difference = float(np.mean(kept[treated == 1])) - float(np.mean(kept[treated == 0]))
    if min(n_annotators, n_prompts) < 2:
        reason = "one annotator, or one prompt, has no spread"
        return Estimate(status="n_lt_2", reason=reason, estimate=difference, **common)
    if float(np.std(kept)) < DEGENERATE:
        return Estimate(status="zero_variance", reason="all ratings are equal", estimate=difference, **common)
    fitted = _fit_mixed(kept, treated, annotator_codes, prompt_codes)
    warnings: tuple[Warning, ...] = ()
    if isinstance(fitted, str):
        value, se = difference, _two_way_contrast_se(kept, treated, annotator_codes, prompt_codes)
        warnings = (Warning("mixed_not_converged", "warn", {"reason": fitted}),)
        detail: dict[str, Any] = {"method": "two_way_cluster"}
    else:
        value, se, components = fitted
        total = sum(components.values())
        detail = {"method": "mixed", "components": components}
        for name in ("annotator", "prompt"):
            detail[f"icc_{name}"] = components[name] / total if total > DEGENERATE else None
    return clusters.t_estimate(
        value,
        se,
        float(min(n_annotators, n_prompts) - 1),
        fewest=min(n_annotators, n_prompts),
        level=level,
        method=f"{detail['method']}_t",
        null=0.0,
        test=detail["method"],
        warnings=(*warnings, *clusters.cluster_warnings(sizes_of(annotator_codes, n_annotators), name=unit)),
        detail=detail,
        **common,
    )


def z_scores(values: npt.ArrayLike, annotators: npt.ArrayLike, *, minimum: int = MIN_Z_RATINGS) -> ZScores:
    """Each rating as its distance from its annotator's mean in units of that annotator's standard deviation.

    `values` and `annotators` have shape (n_rows,). Annotators with fewer than `minimum` ratings, or equal ones, are
    dropped and named. This removes location and spread only, not unequal distances between points (section 3, Remark 1),
    and needs systems assigned to annotators at random and in balance: a sensitivity, never the only result.

    >>> z_scores([1, 2, 3, 5, 5, 5], ["a", "a", "a", "b", "b", "b"], minimum=3).scores.tolist()
    [-1.0, 0.0, 1.0, nan, nan, nan]
    """
    array = vector(values, "values")
    labels = np.asarray(annotators)
    positions, n_annotators = codes(labels, "annotators", len(array))
    here = ~np.isnan(array)
    size = sizes_of(positions[here], n_annotators)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = totals(positions[here], array[here], n_annotators) / size
        centred = array - mean[positions]
        sd = np.sqrt(totals(positions[here], centred[here] ** 2, n_annotators) / (size - 1))
    usable = (size >= max(2, minimum)) & (sd > DEGENERATE)
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.where(usable[positions], centred / sd[positions], np.nan)
    return ZScores(scores, _labels(labels, positions, np.flatnonzero(~usable)))


def between_references(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    is_minimum: npt.ArrayLike,
    is_maximum: npt.ArrayLike,
    minimum_spread: float = MIN_REFERENCE_SPREAD,
) -> Rescaled:
    """Continuous ratings on each annotator's own scale, between the references that everybody was shown.

    `values` (n_rows,) on the question's scale, `is_minimum` and `is_maximum` (n_rows,) booleans that mark the ratings of
    the planted references. u = (x - min) / (max - min) with the annotator's mean ratings of the two. An annotator who
    rates the maximal reference no higher than the minimal violates extremum equivalence; one who keeps them less than
    `minimum_spread` points apart does not use the scale. Both are left out and named.

    Source: section 4, point 2; Boutilier 2003 for extremum equivalence.

    >>> rescaled = between_references([10, 90, 50], ["a"] * 3, is_minimum=[True, False, False],
    ...                               is_maximum=[False, True, False])
    >>> rescaled.values.tolist()
    [0.0, 1.0, 0.5]
    """
    array = vector(values, "values")
    labels = np.asarray(annotators)
    positions, n_annotators = codes(labels, "annotators", len(array))
    ends = []
    for name, mark in (("is_minimum", is_minimum), ("is_maximum", is_maximum)):
        mask = np.asarray(mark, dtype=np.bool_)
        if mask.shape != array.shape:
            raise ValueError(f"{name}: expected {len(array)} booleans, got an array of shape {mask.shape}")
        mask = mask & ~np.isnan(array)
        with np.errstate(invalid="ignore", divide="ignore"):
            ends.append(totals(positions[mask], array[mask], n_annotators) / sizes_of(positions[mask], n_annotators))
    low, high = ends
    absent = np.isnan(low) | np.isnan(high)
    with np.errstate(invalid="ignore"):
        violated = ~absent & (high <= low)
        narrow = ~absent & ~violated & (high - low < minimum_spread)
    left_out = absent | violated | narrow
    with np.errstate(invalid="ignore", divide="ignore"):
        rescaled = (array - low[positions]) / (high - low)[positions]
    return Rescaled(
        np.where(left_out[positions], np.nan, rescaled),
        _labels(labels, positions, np.flatnonzero(violated)),
        _labels(labels, positions, np.flatnonzero(narrow)),
        _labels(labels, positions, np.flatnonzero(absent)),
    )


def expected_utility(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    has_references: bool,
    level: float = 0.95,
    analysis: str = "rating.expected_utility",
    unit: str = "annotator",
) -> Estimate:
    """EEU, the mean over annotators of the mean of their ratings of one system: every annotator weighs the same.

    `values` (n_rows,) are the ratings of one system's outputs, rescaled by `between_references` if `has_references`.
    Without references annotators' scales cannot be compared: the estimate is then labelled a mean rating, not EEU, with
    the warning `no_references`.

    Source: equation (1); section 4.

    >>> expected_utility([0.5, 0.7, 0.1], ["a", "a", "b"], has_references=True).estimate
    0.35
    """
    array = vector(values, "values")
    here = ~np.isnan(array)
    positions, n_annotators = kept_codes(annotators, "annotators", here)
    means = totals(positions, array[here], n_annotators) / sizes_of(positions, n_annotators)
    result = basic.one_sample(
        means,
        null=0.0,
        level=level,
        analysis=analysis,
        estimand="expected expected utility (EEU)" if has_references else "mean rating (not EEU)",
        unit=unit,
    )
    missing = () if has_references else (Warning("no_references", "warn"),)
    # The null of a mean utility is nothing anyone asked about: only differences are tested.
    return replace(
        result,
        test=None,
        effect=None,
        n_rows=int(here.sum()),
        warnings=(*result.warnings, *missing),
        settings={"level": level, "has_references": has_references},
    )


def position_effect(
    ratings: npt.ArrayLike,
    positions: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    systems: npt.ArrayLike | None = None,
    level: float = 0.95,
    analysis: str = "rating.position_effect",
    unit: str = "annotator",
) -> Estimate:
    """The change of a rating per place on the page (or in the sequence), clustered by annotator (CV3).

    All arrays have shape (n_rows,), `positions` numbers. Least squares of rating on position, with a constant for each
    of `systems` where given, so that a system that happened to stand first more often is not mistaken for the effect.

    >>> annotators = np.repeat(np.arange(10), 3)
    >>> noise = np.tile([0.1, -0.1, 0.0, 0.2, -0.2], 6)
    >>> round(position_effect(3 - np.tile([0, 1, 2], 10) + noise, np.tile([0, 1, 2], 10), annotators).estimate, 1)
    -1.0
    """
    refuse_level(level)
    array, places = vector(ratings, "ratings"), vector(positions, "positions")
    if places.shape != array.shape:
        raise ValueError(f"positions: {len(places)} values where ratings has {len(array)}")
    here = ~np.isnan(array) & ~np.isnan(places)
    labels, n_annotators = kept_codes(annotators, "annotators", here)
    groups, n_groups = kept_codes(np.zeros(len(array)) if systems is None else systems, "systems", here)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "change of the rating per place",
        "unit": unit,
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": int(here.sum()),
        "settings": {"level": level, "within_systems": systems is not None},
    }
    if not here.any():
        return Estimate(status="no_data", reason="no rating to analyse", **common)
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    design = np.column_stack([np.eye(n_groups)[groups], places[here]])
    try:
        fit = clusters.clustered_regression(design, array[here], labels)
    except ValueError as problem:
        return Estimate(status="not_identified", reason=str(problem), **common)
    return clusters.t_estimate(
        float(fit.coefficients[-1]),
        math.sqrt(float(fit.covariance[-1, -1])),
        fit.df,
        fewest=n_annotators,
        level=level,
        method="cv3_t",
        null=0.0,
        warnings=clusters.cluster_warnings(sizes_of(labels, n_annotators), name=unit),
        **common,
    )


def use_of_scale(
    values: npt.ArrayLike, annotators: npt.ArrayLike, *, scale: tuple[float, float]
) -> list[Mapping[str, Any]]:
    """How each annotator used the scale: n, mean, sd, share of its range, and the entropy of the answers in bits.

    `values` and `annotators` have shape (n_rows,). A description for a reader who looks for straight-lining; nobody is
    left out by it.

    >>> use_of_scale([3, 3, 1, 5], ["a", "a", "b", "b"], scale=(1, 5))[1]["used_range"]
    1.0
    """
    array = vector(values, "values")
    refuse_outside(array, scale, "values")
    labels = np.asarray(annotators)
    positions, n_annotators = codes(labels, "annotators", len(array))
    rows: list[Mapping[str, Any]] = []
    for number in range(n_annotators):
        member = positions == number
        kept = array[member & ~np.isnan(array)]
        row: dict[str, Any] = {"annotator": labels[member][0].item(), "n": len(kept)}
        if len(kept):
            _, counts = np.unique(kept, return_counts=True)
            shares = counts / len(kept)
            row["mean"] = float(np.mean(kept))
            row["sd"] = float(np.std(kept, ddof=1)) if len(kept) > 1 else None
            row["used_range"] = float(np.ptp(kept)) / (scale[1] - scale[0])
            row["entropy"] = float(-np.sum(shares * np.log2(shares))) + 0.0
        rows.append(row)
    return rows


def _rated(x: npt.ArrayLike, y: npt.ArrayLike, scale: tuple[float, float] | None) -> tuple[FloatArray, FloatArray]:
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} ratings where x has {len(first)}")
    if scale is not None:
        refuse_outside(first, scale, "x")
        refuse_outside(second, scale, "y")
    return first, second


def _labels(labels: npt.NDArray[Any], positions: IntArray, wanted: npt.NDArray[np.intp]) -> tuple[Any, ...]:
    first = {int(position): row for row, position in reversed(list(enumerate(positions.tolist())))}
    return tuple(labels[first[int(number)]].item() for number in wanted)


def _threshold(ours: FloatArray, theirs: FloatArray, point: float) -> float | None:
    """The log odds ratio of a rating above `point`."""
    above, below = float(np.sum(ours > point)), float(np.sum(ours <= point))
    other_above, other_below = float(np.sum(theirs > point)), float(np.sum(theirs <= point))
    if min(above, below, other_above, other_below) == 0:
        return None
    return math.log(above / below) - math.log(other_above / other_below)


def _fit_ordered(ratings: FloatArray, treated: FloatArray, positions: IntArray) -> tuple[float, float] | str:
    """The coefficient and its clustered standard error, or why there is none."""
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    _, levels = np.unique(ratings, return_inverse=True)
    try:
        with python_warnings.catch_warnings(), np.errstate(all="ignore"):
            python_warnings.simplefilter("ignore")
            fit = OrderedModel(levels, treated[:, None], distr="logit").fit(
                method="bfgs", disp=0, maxiter=500, cov_type="cluster", cov_kwds={"groups": positions}
            )
        converged = bool(fit.mle_retvals["converged"])
        value, se = float(fit.params[0]), float(fit.bse[0])
    except (ValueError, np.linalg.LinAlgError, FloatingPointError) as problem:
        return f"the fit failed: {problem}"
    if not converged:
        return "the fit did not converge"
    if not (math.isfinite(value) and math.isfinite(se) and se > DEGENERATE):
        return "the fit has no finite standard error"
    return value, se


def _fit_mixed(
    ratings: FloatArray, treated: FloatArray, annotators: IntArray, prompts: IntArray
) -> tuple[float, float, dict[str, float]] | str:
    """The contrast, its standard error and the components of variance, or why there are none."""
    from statsmodels.regression.mixed_linear_model import MixedLM, VCSpec

    names: Sequence[str] = ("annotator", "prompt")
    factors = [np.eye(int(labels.max()) + 1)[labels] for labels in (annotators, prompts)]
    spec = VCSpec(
        list(names),
        [[[f"{name}[{k}]" for k in range(factor.shape[1])]] for name, factor in zip(names, factors, strict=True)],
        [[factor] for factor in factors],
    )
    design = np.column_stack([np.ones(len(ratings)), treated])
    try:
        with python_warnings.catch_warnings(), np.errstate(all="ignore"):
            python_warnings.simplefilter("ignore")
            fit = MixedLM(ratings, design, groups=np.ones(len(ratings)), exog_vc=spec).fit()
        converged = bool(fit.converged)
        value, se = float(fit.params[1]), float(fit.bse[1])
        components = {name: float(part) for name, part in zip(names, fit.vcomp, strict=True)}
        components["residual"] = float(fit.scale)
    except (ValueError, np.linalg.LinAlgError, FloatingPointError) as problem:
        return f"the fit failed: {problem}"
    if not converged:
        return "the fit did not converge"
    if not all(map(math.isfinite, (value, se, *components.values()))):
        return "the fit has no finite standard error"
    return value, se, components


def _two_way_contrast_se(ratings: FloatArray, treated: FloatArray, annotators: IntArray, prompts: IntArray) -> float:
    """Two-way CR1 of the difference of means, the maximum rule applied to the contrast itself."""
    mean_x, mean_y = float(np.mean(ratings[treated == 1])), float(np.mean(ratings[treated == 0]))
    n_x = float(treated.sum())
    n_y = len(treated) - n_x
    influence = np.where(treated == 1, (ratings - mean_x) / n_x, -(ratings - mean_y) / n_y) * len(ratings)
    return math.sqrt(clusters.two_way_variance(influence, annotators, prompts).variance)
