"""The effect of the order in which the question names the systems."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, equivalence
from analysis.stats.arrays import vector
from analysis.stats.results import Estimate, ResultWarning
from analysis.stats.spa._answers import checked_orders, share_with_wilson_interval

# A gap between the two orders beyond this many percentage points is counted as one-sided.
GAP_PERCENT = 10
SYMMETRY_MARGIN = 0.05


def naming_order_effect(
    xy_percent: npt.ArrayLike,
    yx_percent: npt.ArrayLike,
    *,
    is_after_tau: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Estimate the effect of the order of naming, the mean gap g = p_xy + p_yx - 1, and test whether it is 0 (t test).

    The answers are on 0..100 with x (or y) named first, and annotators with one order only are left out. If g > 0, the
    system that is named first gains; if g < 0, both answers together are below 1. The convictions p_xy - .5 and .5 -
    p_yx differ by exactly g. A result that is not significant does not show symmetry; the sensitivity is TOST within
    .05, on the scale 0..1, and `detail["verdict"]` joins both tests. `detail["shares"]` counts gaps beyond 10 points to
    either side. Tau excludes large sums, that is large g, so after this filter the data show a negative gap whatever
    the annotators think. With `is_after_tau` there is no answer: the status is `not_applicable`, with the reason
    `circular`. The source is Ethayarajh and Jurafsky 2022, section 6.2 and Figure 1, which report the gap, and Figure 5
    after the filter.

    >>> result = naming_order_effect([70, 80, 65, 30], [30, 25, 45, 20])
    >>> round(result.estimate, 4), result.detail["shares"]["within"]["count"]
    (-0.0875, 3)
    >>> naming_order_effect([70, 80], [30, 20], is_after_tau=True).reason
    'circular'
    """
    labels: dict[str, Any] = {"estimand": "mean over annotators of p_xy + p_yx - 1", "unit": "annotator"}
    settings = {"margin": SYMMETRY_MARGIN, "level": level, "gap_percent": GAP_PERCENT}
    if is_after_tau:
        return Estimate(
            analysis="spa.order_symmetry",
            n=0,
            status="not_applicable",
            reason="circular",
            warnings=(ResultWarning("circular", "block", {"rule": "incoherent"}),),
            settings=settings,
            **labels,
        )
    xy, yx = checked_orders(vector(xy_percent, "xy_percent"), vector(yx_percent, "yx_percent"))
    gaps = xy + yx - 100
    gaps = gaps[~np.isnan(gaps)]
    result = basic.one_sample_t_test(gaps / 100, null=0.0, level=level, bounds=(-1.0, 1.0))
    result = result.labelled(analysis="spa.order_symmetry", **labels)
    tost = equivalence.equivalence_test(
        gaps / 100, null=0.0, margin=SYMMETRY_MARGIN, significance=1 - level, bounds=(-1.0, 1.0)
    ).labelled(analysis="spa.order_symmetry.equivalence", **labels)
    n = len(gaps)
    shares = {}
    for name, count in (
        ("above", int(np.sum(gaps > GAP_PERCENT))),
        ("within", int(np.sum(np.abs(gaps) <= GAP_PERCENT))),
        ("below", int(np.sum(gaps < -GAP_PERCENT))),
    ):
        shares[name] = share_with_wilson_interval(count, n, level)
    verdict = equivalence.difference_and_equivalence_verdict(result.pvalue, tost.pvalue, significance=1 - level)
    return replace(
        result,
        n_rows=2 * n,
        sensitivity=(tost,),
        detail={**result.detail, "shares": shares, "verdict": verdict},
        settings=settings,
    )
