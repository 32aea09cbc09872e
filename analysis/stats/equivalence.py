"""Equivalence: showing that a difference is smaller than what matters, rather than failing to show that it exists.

The absence of significance is not equality. Only a verdict of `equivalent`, against a margin that was fixed before the
data, may be printed as "indistinguishable".
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic
from analysis.stats.arrays import MIN_SPREAD, drop_missing, refuse_level
from analysis.stats.multiplicity import Family, adjust_detectable, adjust_family
from analysis.stats.results import Estimate, HypothesisTest

VERDICTS = ("different", "equivalent", "different_but_trivial", "inconclusive")


def equivalence(
    values: npt.ArrayLike,
    *,
    null: float,
    margin: float,
    significance: float = 0.05,
    bounds: tuple[float, float] | None = None,
    analysis: str = "equivalence",
    estimand: str = "mean",
    unit: str = "annotator",
    mode: str = "recommended",
) -> Estimate:
    """Two one-sided t tests (TOST) of the hypothesis that the mean is at least `margin` away from `null`.

    `values` has shape (n,), one value a unit. p is the larger of the two one-sided p-values; at most `significance`
    exactly when the 1 - 2 `significance` interval, which is the one given, lies within null -/+ margin. Adjust it
    within a family of equivalence tests, apart from the tests of difference; detail["is_equivalent"] rests on the
    unadjusted p.

    Source: Schuirmann 1987.

    >>> values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    >>> result = equivalence(values, null=0.5, margin=0.1)
    >>> round(result.pvalue, 8), round(result.interval.low, 4), result.detail["is_equivalent"]
    (1.267e-05, 0.474, True)
    """
    _refuse(margin, significance)
    kept, n_missing = drop_missing(values, "values")
    settings = {"null": null, "margin": margin, "significance": significance}
    common: dict[str, Any] = {"analysis": analysis, "estimand": estimand, "unit": unit, "mode": mode}
    edge = basic.degenerate_estimate(
        kept,
        level=1 - 2 * significance,
        bounds=bounds,
        n_rows=len(kept),
        settings=settings,
        detail={"n_missing": n_missing},
        **common,
    )
    if edge is not None:
        return edge
    n = len(kept)
    return equivalence_from_se(
        float(np.mean(kept)),
        float(np.std(kept, ddof=1)) / math.sqrt(n),
        n - 1,
        n=n,
        null=null,
        margin=margin,
        significance=significance,
        bounds=bounds,
        **common,
    )


def equivalence_from_se(
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
    """`equivalence` from an estimate, its standard error (clustered, say) and degrees of freedom.

    >>> names = {"analysis": "a", "estimand": "b", "unit": "annotator"}
    >>> result = equivalence_from_se(0.5, 0.02, 30, n=31, null=0.5, margin=0.05, **names)
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
    from_low = (estimate - (null - margin)) / se
    from_high = (estimate - (null + margin)) / se
    pvalue_low, pvalue_high = float(special.stdtr(df, -from_low)), float(special.stdtr(df, from_high))
    pvalue = max(pvalue_low, pvalue_high)
    return Estimate(
        n=n,
        estimate=estimate,
        interval=basic.t_interval(estimate, se, df, level=1 - 2 * significance, bounds=bounds),
        test=HypothesisTest(
            name="tost",
            null=null,
            statistic=from_low if pvalue_low >= pvalue_high else from_high,
            df=df,
            pvalue=pvalue,
            alternative="within margin",
        ),
        detail={
            "low_bound": null - margin,
            "high_bound": null + margin,
            "pvalue_low": pvalue_low,
            "pvalue_high": pvalue_high,
            "is_equivalent": pvalue < significance,
        },
        settings=settings,
        **common,
    )


def equivalence_of_estimate(
    estimate: Estimate,
    *,
    null: float,
    margin: float,
    significance: float = 0.05,
    bounds: tuple[float, float] | None = None,
    analysis: str | None = None,
) -> Estimate | None:
    """TOST of an estimate that has a t test of `null`, from the standard error and the degrees of freedom of that test.

    An estimate that its own law does not test (under six clusters) is not tested here either: the result has the
    interval and no p-value, so nothing is equivalent. A standard error of 0: `zero_variance`. None where there is no
    estimate or no standard error. `analysis` is by default that of the estimate with ".equivalence".

    >>> from analysis.stats.basic import one_sample
    >>> values = [0.5, 0.55, 0.45, 0.6, 0.4, 0.5, 0.5, 0.52, 0.48, 0.5, 0.47, 0.53]
    >>> found = equivalence_of_estimate(one_sample(values, null=0.5), null=0.5, margin=0.1)
    >>> found.analysis, round(found.pvalue, 8)
    ('one_sample.equivalence', 1.267e-05)
    """
    tested, se = estimate.test, estimate.detail.get("se")
    df = estimate.detail.get("df", None if tested is None else tested.df)
    if estimate.estimate is None or se is None or (df is None and se >= MIN_SPREAD):
        return None
    found = equivalence_from_se(
        estimate.estimate,
        float(se),
        1.0 if df is None else float(df),
        n=estimate.n,
        null=null,
        margin=margin,
        significance=significance,
        bounds=bounds,
        analysis=analysis or f"{estimate.analysis}.equivalence",
        estimand=estimate.estimand,
        unit=estimate.unit,
    )
    if tested is not None or found.test is None:
        return found
    return replace(found, test=None, detail={"low_bound": null - margin, "high_bound": null + margin})


def verdict(difference_pvalue: float | None, equivalence_pvalue: float | None, *, significance: float = 0.05) -> str:
    """Which of four things the two tests together allow one to say; adjusted p-values go in where there is a family.

    `different` (a difference is shown, its smallness is not), `equivalent` (smallness is shown, a difference is not),
    `different_but_trivial` (both), `inconclusive` (neither: the data were too few to say). A missing test shows
    nothing.

    >>> verdict(0.001, 0.7), verdict(0.6, 0.001), verdict(0.001, 0.001), verdict(0.3, 0.2)
    ('different', 'equivalent', 'different_but_trivial', 'inconclusive')
    """
    refuse_level(significance)
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


def adjust_with_verdicts(
    estimates: Mapping[str, Estimate],
    family: Family,
    *,
    equivalence_family: Family | None = None,
    significance: float = 0.05,
    star_scheme: str | None = "10/5/1",
) -> dict[str, Estimate]:
    """Estimates with both kinds of test adjusted, each within a family of its own, and the verdict that they allow.

    `estimates` maps the keys of `family` to estimates; one with a TOST among its sensitivities (its analysis ends in
    ".equivalence") gets detail["verdict"] from the adjusted p-values. The equivalence family is by default the same
    planned keys under the name "<family>.equivalence". Without a TOST there is a verdict `different` or none. What could have
    been found is told at the family's first step (see `multiplicity.findable`).

    >>> from analysis.stats.spa import pair_recommended
    >>> pair = pair_recommended([50, 52, 48, 51] * 9, [50, 49, 51, 50] * 9, margin=0.05, rng=np.random.default_rng(0))
    >>> adjust_with_verdicts({"a > b": pair}, Family("spa.primary", ("a > b",)))["a > b"].detail["verdict"]
    'equivalent'
    """
    second = equivalence_family or Family(f"{family.name}.equivalence", family.planned, family.method)
    differences = adjust_family(estimates, family, star_scheme=star_scheme)
    tosts = {}
    for key, estimate in estimates.items():
        for other in estimate.sensitivity:
            if other.analysis.endswith(".equivalence"):
                tosts[key] = other
    tosts = adjust_family(tosts, second, star_scheme=None)
    results = {}
    for key, estimate in differences.items():
        tost = tosts.get(key)
        after = None if estimate.test is None else estimate.test.pvalue_adjusted
        small = None if tost is None or tost.test is None else tost.test.pvalue_adjusted
        found: str | None = verdict(after, small, significance=significance)
        if tost is None and found == "inconclusive":
            found = None
        sensitivity = tuple(
            tost if tost is not None and other.analysis == tost.analysis else other for other in estimate.sensitivity
        )
        judged = replace(estimate, sensitivity=sensitivity, detail={**estimate.detail, "verdict": found})
        results[key] = adjust_detectable(judged, family, significance=significance)
    return results
