"""Probability that a rating of x is above a rating of y."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap, clusters
from analysis.stats.arrays import (
    FloatArray,
    group_sizes,
    group_sums,
    label_codes,
    validate_level,
)
from analysis.stats.results import Estimate, HypothesisTest, Interval, ResultWarning
from analysis.stats.unpaired._samples import (
    BOUNDS,
    _common,
    _fewest,
    _nothing_of,
    _ratings,
    _resampled,
    _Spread,
    _TwoSamples,
)


def probability_of_superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    x_annotators: npt.ArrayLike | None = None,
    y_annotators: npt.ArrayLike | None = None,
    x_prompts: npt.ArrayLike | None = None,
    y_prompts: npt.ArrayLike | None = None,
    systems: tuple[str, str] = ("x", "y"),
    rng: np.random.Generator | None = None,
    level: float = 0.95,
    sensitivity_resamples: int = bootstrap.RESAMPLES,
    analysis: str = "rating.superiority_unpaired",
    unit: str = "annotator",
    mode_label: str = "recommended",
) -> Estimate:
    """P(x > y) + P(x = y) / 2 for ratings of two systems by different annotators, and the test of one half.

    Parameters
    ----------
    x, y : array_like, shapes (n_x,) and (n_y,)
        Ratings; NaN is missing. Only their order counts.
    x_annotators, y_annotators : array_like, optional
        Label of each rating's annotator; None means one rating per annotator.
    x_prompts, y_prompts : array_like, optional
        Label of each rating's prompt. With prompts, annotators and prompts are both clusters, as in
        `mean_difference`, an annotator may rate both systems, and there are no sensitivities.
    systems : tuple[str, str], default ('x', 'y')
        Names of x and y for reasons.
    rng : numpy.random.Generator, optional
        Source of the random draws, needed for the bootstrap.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    sensitivity_resamples : int, default bootstrap.RESAMPLES
        Number of resamples.
    analysis, unit, mode_label : str, optional
        Labels that are copied to the record.

    Returns
    -------
    Estimate
        The probability; `detail` has Cliff's delta. Sensitivities: the percentile bootstrap over annotators, and the
        Mann-Whitney test (of equal distributions). All of x above or below all of y: `separation`, no test. All
        ratings equal: `zero_variance`.

    Raises
    ------
    ValueError
        If an annotator rated both systems without prompts, or `rng` or annotators are missing.

    Notes
    -----
    The estimate is the mean of the placements F_y(x_i), the share of y below x_i, ties count half. V = V_x + V_y,
    each the CV3 variance of a mean of placements over annotators (with one rating each, Brunner and Munzel's s^2 /
    n); t on Satterthwaite's degrees of freedom. With `separation` the interval is Clopper and Pearson's for min(G_x,
    G_y) independent pairs of annotators that all went one way. No test with fewer than six annotators in a group if
    ratings share annotators.

    Examples
    --------
    >>> result = probability_of_superiority([4, 5, 3, 4, 5, 2], [3, 3, 2, 4, 1, 3], rng=np.random.default_rng(0), sensitivity_resamples=999)
    >>> round(result.estimate, 4), round(result.pvalue, 4), round(result.detail["cliff_delta"], 4)
    (0.7778, 0.0857, 0.5556)
    >>> apart = probability_of_superiority([4, 5, 5], [1, 2, 2], rng=np.random.default_rng(0))
    >>> apart.status, apart.estimate, round(apart.interval.low, 3)
    ('separation', 1.0, 0.292)
    """
    validate_level(level)
    if x_prompts is not None and y_prompts is not None:
        if x_annotators is None or y_annotators is None:
            raise ValueError("x_annotators: prompts are given, so annotators must be given too")
        rows = _TwoSamples.from_arrays(x, y, x_annotators, y_annotators, x_prompts, y_prompts)
        return _two_way_superiority(rows, systems, level=level, analysis=analysis, unit=unit, mode=mode_label)
    if rng is None:
        raise ValueError("rng: the bootstrap over annotators needs a generator")
    first, who_x = _ratings(x, x_annotators, "x")
    second, who_y = _ratings(y, y_annotators, "y")
    if x_annotators is not None and y_annotators is not None:
        in_both = sorted(set(who_x.tolist()) & set(who_y.tolist()), key=str)
        if in_both:
            raise ValueError(f"y_annotators: {in_both[0]!r} rated both systems; use ratings.probability_of_superiority")
    of_x, groups_x = label_codes(who_x, "x_annotators", len(first))
    of_y, groups_y = label_codes(who_y, "y_annotators", len(second))
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "probability that a rating of x is above one of y, ties half (different annotators)",
        "unit": unit,
        "mode": mode_label,
        "n": groups_x + groups_y,
        "n_clusters": groups_x + groups_y,
        "n_rows": len(first) + len(second),
        "settings": {"null": 0.5, "level": level, "resamples": sensitivity_resamples},
    }
    n_missing = np.size(x) + np.size(y) - len(first) - len(second)
    detail: dict[str, Any] = {"n_x": len(first), "n_y": len(second), "n_missing": n_missing}
    if min(len(first), len(second)) == 0:
        return Estimate(status="no_data", reason="a system has no rating", detail=detail, **common)
    place_x, place_y = _placements(first, second), _placements(second, first)
    estimate = float(np.mean(place_x))
    detail["cliff_delta"] = 2 * estimate - 1
    common |= {"estimate": estimate, "detail": detail}
    if np.ptp(np.concatenate([first, second])) == 0:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if estimate in BOUNDS:
        return Estimate(
            status="separation",
            reason="all ratings of one system lie above all of the other",
            interval=_separated(estimate, min(groups_x, groups_y), level),
            **common,
        )
    if min(groups_x, groups_y) == 1:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    size_x, size_y = group_sizes(of_x, groups_x), group_sizes(of_y, groups_y)
    part_x = clusters.cv3_variance(group_sums(of_x, place_x, groups_x), size_x)
    part_y = clusters.cv3_variance(group_sums(of_y, place_y, groups_y), size_y)
    se = math.sqrt(part_x + part_y)
    sensitivity = (
        _resampled(
            first, second, of_x, of_y, estimate, level=level, resamples=sensitivity_resamples, rng=rng, common=common
        ),
        _mann_whitney(first, second, analysis=f"{analysis}.mann_whitney", unit="rating", mode=mode_label),
    )
    df_x, df_y = (max(1.0, clusters.effective_n_clusters(sizes) - 1) for sizes in (size_x, size_y))
    parts = part_x**2 / df_x + part_y**2 / df_y
    df = (part_x + part_y) ** 2 / parts if parts > 0 else min(df_x, df_y)
    is_one_each = groups_x == len(first) and groups_y == len(second)
    warnings: tuple[ResultWarning, ...] = ()
    if not is_one_each:
        system_warnings = [*clusters.cluster_warnings(size_x, name=unit), *clusters.cluster_warnings(size_y, name=unit)]
        warnings = tuple({warning.code: warning for warning in system_warnings}.values())
    name = "brunner_munzel" if is_one_each else "clustered_brunner_munzel"
    return clusters.t_estimate(
        se=se,
        df=df,
        level=level,
        method=f"{name}_t",
        null=0.5,
        test_name=name,
        bounds=BOUNDS,
        sensitivity=sensitivity,
        warnings=warnings,
        fewest_clusters=None if is_one_each else min(groups_x, groups_y),
        **common,
    )


def _two_way_superiority(
    rows: _TwoSamples, systems: tuple[str, str], *, level: float, analysis: str, unit: str, mode: str
) -> Estimate:
    """Return `probability_of_superiority` with annotators and prompts as clusters."""
    estimand = "probability that a rating of x is above one of y, ties half (not side by side)"
    common = _common(rows, analysis, estimand, unit, mode, {"null": 0.5, "level": level})
    warnings = (ResultWarning("not_side_by_side", "info"),)
    if min(rows.sizes) == 0:
        return Estimate(status="no_data", reason=_nothing_of(rows, systems), warnings=warnings, **common)
    first, second = rows.values[rows.is_x == 1], rows.values[rows.is_x == 0]
    # `_TwoSamples` keeps the ratings of x before those of y.
    placements = np.concatenate([_placements(first, second), _placements(second, first)])
    estimate = float(np.mean(placements[: len(first)]))
    common |= {"estimate": estimate, "warnings": warnings}
    common["detail"]["cliff_delta"] = 2 * estimate - 1
    if np.ptp(rows.values) == 0:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if estimate in BOUNDS:
        return Estimate(
            status="separation",
            reason="all ratings of one system lie above all of the other",
            interval=_separated(estimate, _fewest(common["detail"]), level),
            **common,
        )
    if (edge := rows.too_few(systems)) is not None:
        return Estimate(status=edge[0], reason=edge[1], **common)
    spread = _Spread.from_rows(rows, placements)
    common["detail"] |= spread.detail()
    common["warnings"] = (*rows.warnings(unit), *warnings)
    return clusters.t_estimate(
        se=math.sqrt(spread.two_way.variance),
        df=spread.df,
        fewest_clusters=_fewest(common["detail"]),
        level=level,
        method="two_way_cv3_t",
        null=0.5,
        test_name="two_way_t",
        bounds=BOUNDS,
        **common,
    )


def _mann_whitney(
    x: FloatArray, y: FloatArray, *, analysis: str, unit: str, mode: str, alternative: str = "two-sided"
) -> Estimate:
    """Return U / (n_x n_y), and the test that both groups have one distribution."""
    from scipy import stats

    n_x, n_y = len(x), len(y)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "probability that x is above y, ties half: test of equal distributions",
        "unit": unit,
        "mode": mode,
        "n": n_x + n_y,
        "n_rows": n_x + n_y,
        "detail": {"n_x": n_x, "n_y": n_y},
        "settings": {"alternative": alternative},
    }
    estimate = float(np.mean(_placements(x, y)))
    if min(n_x, n_y) == 1:
        return Estimate(status="n_lt_2", reason="one value has no spread", estimate=estimate, **common)
    if np.ptp(np.concatenate([x, y])) == 0:
        return Estimate(status="zero_variance", reason="all values are equal", estimate=estimate, **common)
    outcome = stats.mannwhitneyu(x, y, alternative=alternative)
    test = HypothesisTest(
        name="mann_whitney",
        null=0.5,
        statistic=float(outcome.statistic),
        pvalue=min(1.0, float(outcome.pvalue)),
        alternative=alternative,
    )
    return Estimate(estimate=estimate, test=test, **common)


def _placements(values: FloatArray, others: FloatArray) -> FloatArray:
    """Return the share of the others below each value; ties count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return np.asarray(below / (2 * len(others)))


def _separated(estimate: float, n_pairs: int, level: float) -> Interval:
    low, high = basic.clopper_pearson_interval(n_pairs if estimate == 1 else 0, n_pairs, level)
    return Interval(level, low, high, "clopper_pearson_pairs")
