"""Equivalence tests: show that a difference is smaller than a margin.

A result that is not significant does not show equality. Only the verdict `equivalent`, against a margin that was
fixed before the data, may be printed as "indistinguishable".
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic
from analysis.stats.arrays import MIN_SPREAD, drop_and_count_missing, validate_level
from analysis.stats.confidence import ConfidenceCurve, TCurve
from analysis.stats.multiplicity import Family, adjust_detectable_difference, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import Estimate, HypothesisTest


def equivalence_test(
    values: npt.ArrayLike,
    *,
    null: float,
    margin: float,
    significance: float = 0.05,
    bounds: tuple[float, float] | None = None,
) -> Estimate:
    """Test the hypothesis that the mean is at least `margin` away from `null`, by two one-sided t tests (TOST).

    `values` has one value per unit, with NaN for missing, and `margin` is on the scale of the estimate. The estimate is
    the mean, with the larger of the two one-sided p-values and an interval of level 1 - 2 `significance`, clipped to
    `bounds`, the ends of the scale. p <= `significance` exactly if the interval is within null -/+ margin (Schuirmann
    1987). `detail["is_equivalent"]` uses the unadjusted p-value. Adjust it within a family of equivalence tests,
    separate from the tests of difference.

    >>> values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    >>> result = equivalence_test(values, null=0.5, margin=0.1)
    >>> round(result.pvalue, 8), round(result.interval.low, 4), result.detail["is_equivalent"]
    (1.267e-05, 0.474, True)
    """
    _refuse(margin, significance)
    observed, n_missing = drop_and_count_missing(values, "values")
    settings = {"null": null, "margin": margin, "significance": significance}
    common: dict[str, Any] = {"analysis": "equivalence", "estimand": "mean", "unit": "annotator"}
    edge = basic.degenerate_mean_estimate(
        observed,
        level=1 - 2 * significance,
        bounds=bounds,
        n_rows=len(observed),
        settings=settings,
        detail={"n_missing": n_missing},
        **common,
    )
    if edge is not None:
        return edge
    n = len(observed)
    return equivalence_test_from_se(
        float(np.mean(observed)),
        float(np.std(observed, ddof=1)) / math.sqrt(n),
        n - 1,
        n=n,
        null=null,
        margin=margin,
        significance=significance,
        bounds=bounds,
        **common,
    )


def equivalence_test_from_se(
    estimate: float,
    se: float,
    df: float,
    *,
    n: int,
    null: float,
    margin: float,
    significance: float = 0.05,
    bounds: tuple[float, float] | None = None,
    **common: Any,
) -> Estimate:
    """TOST from an estimate, its standard error and its degrees of freedom; see `equivalence_test`.

    Parameters
    ----------
    estimate, se, df : float
        Estimate, its standard error (clustered, for example), and the degrees of freedom.
    n : int
        Number of units.
    null : float
        Value of the null hypothesis.
    margin : float
        Equivalence margin on the scale of the estimate.
    significance : float, default 0.05
        Significance level; the interval has level 1 - 2 `significance`.
    bounds : tuple[float, float], optional
        Ends of the scale. The interval is clipped to them.
    **common : Any
        Other fields of the `Estimate`.

    Returns
    -------
    Estimate
        The estimate with the equivalence test.

    Examples
    --------
    >>> names = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> result = equivalence_test_from_se(0.5, 0.02, 30, n=31, null=0.5, margin=0.05, **names)
    >>> round(result.pvalue, 4)
    0.0091
    """
    _refuse(margin, significance)
    settings = {"null": null, "margin": margin, "significance": significance}
    if se < MIN_SPREAD:
        return Estimate(
            n=n,
            status="zero_variance",
            reason="the standard error is 0",
            estimate=estimate,
            settings=settings,
            **common,
        )
    curve = TCurve(estimate, se, df, bounds)
    return _equivalence_test_of_curve(
        curve, estimate=estimate, n=n, null=null, margin=margin, significance=significance, **common
    )


def equivalence_test_of_estimate(
    estimate: Estimate,
    *,
    null: float,
    margin: float,
    significance: float = 0.05,
) -> Estimate | None:
    """TOST of an estimate that has a t test of `null`.

    Parameters
    ----------
    estimate : Estimate
        An estimate with its standard error and degrees of freedom.
    null : float
        Value of the null hypothesis.
    margin : float
        Equivalence margin on the scale of the estimate.
    significance : float, default 0.05
        Significance level; the interval has level 1 - 2 `significance`.

    Returns
    -------
    Estimate or None
        The result, or None if there is no estimate or no standard error. An estimate without a test (fewer than six
        clusters) gives an interval and no p-value. A standard error of 0: `zero_variance`.

    Examples
    --------
    >>> from analysis.stats.basic import one_sample_t_test
    >>> values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    >>> result = equivalence_test_of_estimate(one_sample_t_test(values, null=0.5), null=0.5, margin=0.1)
    >>> result.analysis, round(result.pvalue, 8)
    ('one_sample.equivalence', 1.267e-05)
    """
    common: dict[str, Any] = {
        "analysis": f"{estimate.analysis}.equivalence",
        "estimand": estimate.estimand,
        "unit": estimate.unit,
    }
    if estimate.curve is not None:
        equivalence = _equivalence_test_of_curve(
            estimate.curve,
            estimate=estimate.estimate,
            n=estimate.n,
            null=null,
            margin=margin,
            significance=significance,
            **common,
        )
    else:
        tested, se = estimate.test, estimate.detail.get("se")
        df = estimate.detail.get("df", None if tested is None else tested.df)
        if estimate.estimate is None or se is None or (df is None and se >= MIN_SPREAD):
            return None
        equivalence = equivalence_test_from_se(
            estimate.estimate,
            float(se),
            1.0 if df is None else float(df),
            n=estimate.n,
            null=null,
            margin=margin,
            significance=significance,
            **common,
        )
    if population := estimate.settings.get("population"):
        equivalence = replace(equivalence, settings={**equivalence.settings, "population": population})
    if estimate.test is not None or equivalence.test is None:
        return equivalence
    return replace(equivalence, test=None, detail={"low_bound": null - margin, "high_bound": null + margin})


def _equivalence_test_of_curve(
    curve: ConfidenceCurve,
    *,
    estimate: float | None,
    n: int,
    null: float,
    margin: float,
    significance: float,
    **common: Any,
) -> Estimate:
    """Return the equivalence test of an estimate by its own confidence curve, so that it agrees with its interval."""
    _refuse(margin, significance)
    low, high = null - margin, null + margin
    if curve.bounds is not None and low <= curve.bounds[0] and high >= curve.bounds[1]:
        return Estimate(
            n=n,
            estimate=estimate,
            status="not_applicable",
            reason=f"the margin {margin:g} covers the whole scale, so equivalence would be concluded from any data",
            settings={"null": null, "margin": margin, "significance": significance},
            **common,
        )
    pvalue_low, pvalue_high = curve.one_sided_pvalues(low, high)
    closest = low if pvalue_low >= pvalue_high else high
    return Estimate(
        n=n,
        estimate=estimate,
        interval=curve.interval(curve.equivalence_level(significance)),
        test=HypothesisTest(
            name="tost" if curve.df is not None else f"{curve.test_name}_tost",
            null=null,
            statistic=curve.statistic(closest),
            df=curve.df,
            pvalue=max(pvalue_low, pvalue_high),
            alternative="within margin",
        ),
        detail={
            "low_bound": low,
            "high_bound": high,
            "pvalue_low": pvalue_low,
            "pvalue_high": pvalue_high,
            "is_equivalent": max(pvalue_low, pvalue_high) < significance,
        },
        settings={"null": null, "margin": margin, "significance": significance},
        _curve=curve,
        **common,
    )


def difference_and_equivalence_verdict(
    difference_pvalue: float | None, equivalence_pvalue: float | None, *, significance: float = 0.05
) -> str:
    """Combine the test of difference and the test of equivalence into one verdict.

    Parameters
    ----------
    difference_pvalue, equivalence_pvalue : float or None
        P-values, adjusted if there is a family; None without a test.
    significance : float, default 0.05
        Significance level of the test.

    Returns
    -------
    str
        `different` (only a difference is shown), `equivalent` (only equivalence is shown), `different_but_trivial`
        (both are shown) or `inconclusive` (neither is shown).

    Examples
    --------
    >>> difference_and_equivalence_verdict(0.001, 0.7), difference_and_equivalence_verdict(0.6, 0.001), difference_and_equivalence_verdict(0.001, 0.001), difference_and_equivalence_verdict(0.3, 0.2)
    ('different', 'equivalent', 'different_but_trivial', 'inconclusive')
    """
    validate_level(significance)
    is_different = difference_pvalue is not None and difference_pvalue < significance
    is_small = equivalence_pvalue is not None and equivalence_pvalue < significance
    if is_different:
        return "different_but_trivial" if is_small else "different"
    return "equivalent" if is_small else "inconclusive"


def _refuse(margin: float, significance: float) -> None:
    if not (math.isfinite(margin) and margin > 0):
        raise ValueError(f"margin: {margin!r} is not a positive number")
    if not 0 < significance < 0.5:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and .5")


def adjust_and_add_verdicts(
    estimates: Mapping[str, Estimate],
    family: Family,
    *,
    significance: float | Mapping[str, float] = 0.05,
    star_scheme: str | None = "10/5/1",
) -> dict[str, Estimate]:
    """Adjust the tests of difference and of equivalence together, and add the verdicts.

    Parameters
    ----------
    estimates : mapping[str, Estimate]
        Estimates by the keys of `family`. A TOST is the sensitivity whose analysis ends in ".equivalence".
    family : Family
        The declared family of the comparisons. The tests of equivalence have its name with ".equivalence" after it.
    significance : float or mapping[str, float], default 0.05
        Significance level of all tests, or of each by its key.
    star_scheme : str or None, default '10/5/1'
        Key of `multiplicity.STAR_SCHEMES`; None gives no stars.

    Returns
    -------
    dict[str, Estimate]
        The estimates with adjusted tests and `detail["verdict"]`. Without a TOST the verdict is `different` or
        absent. With a warning of severity `block`, a recommended estimate has no verdict but `inconclusive`. Behind a
        gate that is closed, the verdict is `not_tested`. `detail["gate"]` is the gate, if the family has one.

    Notes
    -----
    "No difference" and "at least the margin" cannot both be true, so the family-wise error of all these tests is at most the
    level although each comparison counts once: with the larger of its two p-values (see `multiplicity.adjust_among`).

    The detectable difference is that of the family's first step (see `multiplicity.adjust_detectable_difference`).

    Examples
    --------
    >>> from analysis.stats.spa import pair_preferences_recommended
    >>> xy, yx = [[50], [52], [48], [51]] * 9, [[50], [49], [51], [50]] * 9
    >>> pairs = pair_preferences_recommended(xy, yx, pair_names=["a > b"], margin=0.05, rng=np.random.default_rng(0))
    >>> adjust_and_add_verdicts(pairs, Family("spa.primary", ("a > b",)))["a > b"].detail["verdict"]
    'equivalent'
    """
    found = [(key, other) for key, estimate in estimates.items() for other in estimate.sensitivity]
    tosts = {key: other for key, other in found if other.analysis.endswith(".equivalence")}
    larger = {
        key: max(1.0 if one.pvalue is None else one.pvalue for one in (estimate, tosts.get(key, estimate)))
        for key, estimate in estimates.items()
    }
    differences = adjust_pvalues_and_intervals_of_family(estimates, family, others=larger, star_scheme=star_scheme)
    tosts = adjust_pvalues_and_intervals_of_family(
        tosts, replace(family, name=f"{family.name}.equivalence"), others=larger, star_scheme=None
    )
    results = {}
    for key, estimate in differences.items():
        tost = tosts.get(key)
        after = None if estimate.test is None else estimate.test.pvalue_adjusted
        small = None if tost is None or tost.test is None else tost.test.pvalue_adjusted
        level = significance[key] if isinstance(significance, Mapping) else significance
        verdict: str | None = difference_and_equivalence_verdict(after, small, significance=level)
        if estimate.supports_no_claim:
            verdict = "inconclusive"
        if tost is None and verdict == "inconclusive":
            verdict = None
        detail = {**estimate.detail, "verdict": verdict}
        if family.gate is not None:
            detail["gate"] = family.gate.as_dict()
            if not family.gate.is_open:
                detail["verdict"] = "not_tested"
        sensitivity = tuple(
            tost if tost is not None and other.analysis == tost.analysis else other for other in estimate.sensitivity
        )
        judged = replace(estimate, sensitivity=sensitivity, detail=detail)
        results[key] = adjust_detectable_difference(judged, family, significance=level)
    return results
