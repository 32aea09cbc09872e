"""Exposure: the same question about two systems after m = 1, 2, 4, 8 outputs of each.

The same annotators answer at every m (the paper calls one person at two m two agents). So levels are compared
within annotators, not as independent samples. The question whether more exposure makes annotators surer is about
the signed mean of P[x > y] and its change from one m to the next. Conviction, |mean - .5|, grows with noise
alone; it is shown and not tested.

Reference: Ethayarajh and Jurafsky 2022, The Authenticity Gap in Human Evaluation, section 6.2, Figure 1, appendix
B.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, spa
from analysis.stats.arrays import FloatArray, matrix, validate_level
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import Estimate, Record, ResultWarning

LEVELS = (1, 2, 4, 8)
# The paper's advice for studies with a single m (section 6.2).
RECOMMENDED_LEAST = 4
BOUNDS = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureStudy(Record):
    """The effect of the number of outputs m on a comparison.

    `by_level` has one recommended estimate per m, with the two orders of the paper among its sensitivities.
    `contrasts` are the steps from each m to the next, `slope` is the change per doubling of m. `diminishing_returns` is
    the last step minus the one before, `overconfidence` the first m minus the second.
    """

    levels: tuple[int, ...]
    by_level: tuple[Estimate, ...]
    contrasts: tuple[Estimate, ...]
    slope: Estimate
    diminishing_returns: Estimate
    overconfidence: Estimate

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict."""
        return Record.as_dict(self) | {"recommended_least": RECOMMENDED_LEAST}


def preference_by_n_outputs_seen(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    levels: Sequence[int] = LEVELS,
    level: float = 0.95,
) -> ExposureStudy:
    """Estimate the preference of one comparison at several exposures m, from the annotators who answered at each.

    A row is one annotator at all m, and a column is an exposure of `levels`, in ascending order and at least two.
    Answers are on 0..100, with NaN if not asked or answered. `by_level` is the mean c(m) = (p_xy + 1 - p_yx) / 2 with
    its test of .5, Holm over levels, and has the paper's one-order means as sensitivities. `contrasts` are paired t
    tests of c(next m) - c(m), Holm over them; `slope` is the mean of the annotators' slopes on log2 m;
    `diminishing_returns` is the last step minus the step before; `overconfidence` is c(first m) - c(second m).
    `detail["conviction"]` = |mean - .5| is biased upwards by noise and has no test. Levels answered by different
    annotators are not compared: the status is `not_identified`, with the warning `levels_not_paired`. If some
    annotators lack one of two levels, there is the warning `incomplete_pairs`.

    >>> xy = [[80, 60, 70, 75], [70, 55, 65, 70], [90, 70, 80, 80], [60, 60, 70, 90]]
    >>> study = preference_by_n_outputs_seen(xy, [[100 - p for p in row] for row in xy])
    >>> [round(estimate.estimate, 4) for estimate in study.contrasts]
    [-0.1375, 0.1, 0.075]
    >>> round(study.slope.estimate, 4), round(study.diminishing_returns.estimate, 4)
    (0.0212, -0.025)
    >>> preference_by_n_outputs_seen([[80, 60]], [[20, 40]], levels=[1, 2]).contrasts[0].status
    'n_lt_2'
    """
    validate_level(level)
    xy, yx = matrix(xy_percent, "xy_percent"), matrix(yx_percent, "yx_percent")
    steps = _levels(levels, xy.shape[1])
    values = spa.combine_orders(xy, yx)
    contrasts = _contrasts(values, steps, level)
    return ExposureStudy(
        levels=steps,
        by_level=_by_level(values, xy, yx, steps, level),
        contrasts=contrasts,
        slope=_slope(values, steps, level),
        diminishing_returns=_diminishing(values, steps, level),
        overconfidence=_overconfidence(contrasts[0], steps),
    )


def distance_of_mean_from_half(values: npt.ArrayLike) -> float | None:
    """Compute the conviction |mean - .5| of answers in 0..1.

    NaN is missing, and the result is None without an answer. Noise alone makes the conviction positive: without any
    preference its mean is sd sqrt(2 / (pi n)), not 0.

    >>> round(distance_of_mean_from_half([0.4, 0.3]), 4)
    0.15
    """
    array = np.asarray(values, dtype=np.float64)
    observed = array[~np.isnan(array)]
    return None if len(observed) == 0 else abs(float(np.mean(observed)) - 0.5)


def _levels(levels: Sequence[int], n_columns: int) -> tuple[int, ...]:
    steps = tuple(int(step) for step in levels)
    if len(steps) != n_columns:
        raise ValueError(f"levels: {len(steps)} exposures where xy_percent has {n_columns} columns")
    if len(steps) < 2:
        raise ValueError("levels: at least two exposures are compared")
    if steps[0] < 1 or any(later <= earlier for earlier, later in zip(steps, steps[1:], strict=False)):
        raise ValueError(f"levels: {list(steps)} do not ascend from at least 1")
    if list(steps) != list(levels):
        raise ValueError(f"levels: {list(levels)} are not whole numbers")
    return steps


def _by_level(
    values: FloatArray, xy: FloatArray, yx: FloatArray, steps: tuple[int, ...], level: float
) -> tuple[Estimate, ...]:
    names = tuple(f"m={step}" for step in steps)
    combined, by_order = {}, {}
    for column, name in enumerate(names):
        combined[name] = basic.one_sample_t_test(values[:, column], null=0.5, bounds=BOUNDS, level=level).labelled(
            analysis="spa.exposure.level",
            estimand=f"mean over annotators of P[x > y] after {name}, both orders combined",
        )
        for order, answers in (("xy", xy), ("yx", yx)):
            order_estimate = spa.pair_preference_paper(answers[:, column], level=level)
            named = f"mean over annotators of P[{' > '.join(order)}] after {name}, asked in this order"
            by_order[order, name] = order_estimate.labelled(analysis=f"spa.exposure.{order}", estimand=named)
    combined = adjust_pvalues_and_intervals_of_family(combined, Family("spa.exposure.levels", names), star_scheme=None)
    for order in ("xy", "yx"):
        adjusted = {name: by_order[order, name] for name in names}
        adjusted = adjust_pvalues_and_intervals_of_family(adjusted, Family(f"spa.exposure.{order}", names))
        by_order |= {(order, name): estimate for name, estimate in adjusted.items()}
    results = []
    for column, (step, name) in enumerate(zip(steps, names, strict=True)):
        estimate = combined[name]
        answered = {
            "n_xy": int(np.sum(~np.isnan(xy[:, column]))),
            "n_yx": int(np.sum(~np.isnan(yx[:, column]))),
            "n_both": int(np.sum(~np.isnan(xy[:, column] + yx[:, column]))),
        }
        descriptive = {
            "m": step,
            "conviction": distance_of_mean_from_half(values[:, column]),
            "is_conviction_descriptive": True,
        }
        results.append(
            replace(
                estimate,
                n_rows=answered["n_xy"] + answered["n_yx"],
                sensitivity=(by_order["xy", name], by_order["yx", name]),
                detail={**estimate.detail, **answered, **descriptive},
            )
        )
    return tuple(results)


def _contrasts(values: FloatArray, steps: tuple[int, ...], level: float) -> tuple[Estimate, ...]:
    contrasts = {}
    for column in range(len(steps) - 1):
        name = f"m={steps[column]}->{steps[column + 1]}"
        contrasts[name] = _within(
            {steps[column + 1]: 1.0, steps[column]: -1.0},
            values[:, [column + 1, column]],
            "spa.exposure.contrast",
            f"mean within annotators of c({steps[column + 1]}) - c({steps[column]})",
            level,
        )
    family = Family("spa.exposure.contrasts", tuple(contrasts))
    return tuple(adjust_pvalues_and_intervals_of_family(contrasts, family, star_scheme=None).values())


def _diminishing(values: FloatArray, steps: tuple[int, ...], level: float) -> Estimate:
    name = "spa.exposure.diminishing_returns"
    if len(steps) < 3:
        return Estimate(
            analysis=name,
            estimand="mean within annotators of the last step minus the step before",
            unit="annotator",
            n=0,
            status="not_applicable",
            reason="two exposures make one step",
        )
    early, middle, late = steps[-3:]
    return _within(
        {late: 1.0, middle: -2.0, early: 1.0},
        values[:, [-1, -2, -3]],
        name,
        f"mean within annotators of (c({late}) - c({middle})) - (c({middle}) - c({early}))",
        level,
    )


def _within(weights: dict[int, float], columns: FloatArray, analysis: str, estimand: str, level: float) -> Estimate:
    """Return a contrast of levels within annotators."""
    answered = ~np.isnan(columns)
    complete = answered.all(axis=1)
    differences = columns[complete] @ np.array(list(weights.values()))
    n_partial = int(np.sum(answered.any(axis=1) & ~complete))
    detail = {"n_complete": int(complete.sum()), "n_dropped": n_partial}
    settings = {"weights": {f"m={step}": weight for step, weight in weights.items()}, "level": level}
    if not complete.any() and answered.any(axis=0).all():
        return Estimate(
            analysis=analysis,
            estimand=estimand,
            unit="annotator",
            n=0,
            status="not_identified",
            reason="nobody answered at all of these exposures, and answers of different people are not compared",
            warnings=(ResultWarning("levels_not_paired", "block", {"n": n_partial}),),
            detail=detail,
            settings=settings,
        )
    farthest = sum(weight for weight in weights.values() if weight > 0)
    result = basic.one_sample_t_test(differences, null=0.0, bounds=(-farthest, farthest), level=level)
    warnings = result.warnings
    if n_partial:
        warnings = (*warnings, ResultWarning("incomplete_pairs", "info", {"n_dropped": n_partial}))
    test = None if result.test is None else replace(result.test, name="paired_t")
    return replace(
        result,
        analysis=analysis,
        estimand=estimand,
        test=test,
        warnings=warnings,
        detail={**result.detail, **detail},
        settings={**settings, "null": 0.0},
    )


def _slope(values: FloatArray, steps: tuple[int, ...], level: float) -> Estimate:
    is_observed = ~np.isnan(values)
    doublings = np.broadcast_to(np.array([math.log2(step) for step in steps]), values.shape)
    has_two = is_observed.sum(axis=1) >= 2
    is_observed, filled, doublings = is_observed[has_two], np.nan_to_num(values[has_two]), doublings[has_two]
    n_levels = is_observed.sum(axis=1, keepdims=True)
    centred = np.where(is_observed, doublings - (doublings * is_observed).sum(axis=1, keepdims=True) / n_levels, 0.0)
    slopes = (centred * filled).sum(axis=1) / (centred**2).sum(axis=1)
    result = basic.one_sample_t_test(slopes, null=0.0, level=level).labelled(
        analysis="spa.exposure.slope", estimand="mean over annotators of the change of P[x > y] per doubling of m"
    )
    n_complete = int(np.sum(is_observed.all(axis=1)))
    n_single = int(np.sum(~has_two & (~np.isnan(values)).any(axis=1)))
    detail = {**result.detail, "n_complete": n_complete, "n_dropped": n_single}
    return replace(
        result, n_rows=int(is_observed.sum()), detail=detail, settings={**result.settings, "levels": list(steps)}
    )


def _overconfidence(first: Estimate, steps: tuple[int, ...]) -> Estimate:
    """Return the first contrast with the opposite sign: the same test, p-value and place in the family."""
    interval, test, effect = first.interval, first.test, first.effect
    if interval is not None:
        interval = replace(interval, low=-interval.high, high=-interval.low)
    if test is not None and test.statistic is not None:
        test = replace(test, statistic=-test.statistic)
    if effect is not None:
        effect = replace(
            effect,
            value=-effect.value,
            hedges_g=None if effect.hedges_g is None else -effect.hedges_g,
            low=None if effect.high is None else -effect.high,
            high=None if effect.low is None else -effect.low,
        )
    settings = {**first.settings, "weights": {f"m={steps[0]}": 1.0, f"m={steps[1]}": -1.0}}
    return replace(
        first,
        analysis="spa.exposure.overconfidence",
        estimand=f"mean within annotators of c({steps[0]}) - c({steps[1]})",
        estimate=None if first.estimate is None else -first.estimate,
        interval=interval,
        test=test,
        effect=effect,
        settings=settings,
    )
