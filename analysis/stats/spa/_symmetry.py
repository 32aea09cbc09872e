"""Whether it matters which system the question names first."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, equivalence
from analysis.stats.arrays import vector
from analysis.stats.results import Estimate, ResultWarning
from analysis.stats.spa._answers import checked_orders, share_with_interval

# A gap between the two orders beyond this many percentage points is counted as one-sided.
GAP_PERCENT = 10
SYMMETRY_MARGIN = 0.05


def order_symmetry(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    margin: float = SYMMETRY_MARGIN,
    is_after_tau: bool = False,
    level: float = 0.95,
    analysis: str = "spa.order_symmetry",
    unit: str = "annotator",
) -> Estimate:
    """Whether it matters which system the question names first: the mean gap g = p_xy + p_yx - 1, tested against 0.

    Both arguments have shape (n,); annotators with one order only are left out. g > 0 means that whoever is named first
    gains, g < 0 that both directions together fall short of 1. The convictions p_xy - .5 and .5 - p_yx differ by
    exactly g. No significance is no symmetry: the sensitivity is TOST within `margin`, and detail["verdict"] joins the
    two. detail["shares"] counts gaps beyond 10 points to either side.

    Tau cuts sums, that is g itself, off from above: with `is_after_tau` there is no answer (`not_applicable`, reason
    `circular`), since the filtered data show a negative gap whatever people think.

    Source: section 6.2 and Figure 1, which report it, Figure 5 after the filter.

    >>> result = order_symmetry([70, 80, 65, 30], [30, 25, 45, 20])
    >>> round(result.estimate, 4), result.detail["shares"]["within"]["count"]
    (-0.0875, 3)
    >>> order_symmetry([70, 80], [30, 20], is_after_tau=True).reason
    'circular'
    """
    estimand = "mean over annotators of p_xy + p_yx - 1"
    settings = {"margin": margin, "level": level, "gap_percent": GAP_PERCENT}
    if is_after_tau:
        return Estimate(
            analysis=analysis,
            estimand=estimand,
            unit=unit,
            n=0,
            status="not_applicable",
            reason="circular",
            warnings=(ResultWarning("circular", "block", {"rule": "incoherent"}),),
            settings=settings,
        )
    xy, yx = checked_orders(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    gaps = xy + yx - 100
    gaps = gaps[~np.isnan(gaps)]
    common: dict[str, Any] = {"bounds": (-1.0, 1.0), "estimand": estimand, "unit": unit}
    result = basic.one_sample(gaps / 100, null=0.0, level=level, analysis=analysis, **common)
    tost = equivalence.equivalence(
        gaps / 100, null=0.0, margin=margin, significance=1 - level, analysis=f"{analysis}.equivalence", **common
    )
    n = len(gaps)
    shares = {}
    for name, count in (
        ("above", int(np.sum(gaps > GAP_PERCENT))),
        ("within", int(np.sum(np.abs(gaps) <= GAP_PERCENT))),
        ("below", int(np.sum(gaps < -GAP_PERCENT))),
    ):
        shares[name] = share_with_interval(count, n, level)
    verdict = equivalence.verdict(result.pvalue, tost.pvalue, significance=1 - level)
    return replace(
        result,
        n_rows=2 * n,
        sensitivity=(tost,),
        detail={**result.detail, "shares": shares, "verdict": verdict},
        settings=settings,
    )
