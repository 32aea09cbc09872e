"""The stopping decision of the paper."""

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import validate_level, vector
from analysis.stats.results import Estimate, Interval, ResultWarning
from analysis.stats.sequential._boundaries import (
    READINGS,
    find_boundary_crossings,
    hoeffding_boundaries,
    hoeffding_radius,
)


def hoeffding_decision(answers: npt.ArrayLike, *, delta: float = 0.01, reading: str = "first") -> Estimate:
    """The paper's decision on one series of final answers.

    Parameters
    ----------
    answers : array_like, shape (n,)
        1 if A was chosen, else 0, in the order of the items; NaN (no majority) is left out.
    delta : float, default 0.01
        Probability of an error on one side.
    reading : {"first", "stays"}, default 'first'
        As in `find_boundary_crossings`.

    Returns
    -------
    Estimate
        The share of A at the decision (over all answers without one), and the interval mean -/+ t. `detail` has
        `winner` ("a", "b" or None) and `n_decision`. There is no test.

    Raises
    ------
    ValueError
        If `reading` is not allowed.

    Notes
    -----
    The level is 1 - 2 delta for an n fixed before the study. The bound does not hold at an n chosen by the data
    (warning `fixed_n_bound`, severity block). With "stays" there is also the warning `hindsight`.

    References
    ----------
    Section 3.2; "stays" is what the released code computes.

    Examples
    --------
    >>> result = hoeffding_decision([1] * 30, delta=0.001)
    >>> result.detail["winner"], result.n
    ('a', 14)
    """
    series = vector(answers, "answers")
    observed = series[~np.isnan(series)]
    settings = {"delta": delta, "reading": reading}
    common: dict[str, Any] = {
        "analysis": "choice.hoeffding",
        "estimand": "share of items on which A was chosen",
        "unit": "item",
        "mode": "paper",
        "settings": settings,
    }
    validate_level(1 - delta)
    if reading not in READINGS:
        raise ValueError(f"reading: {reading!r} is not one of {', '.join(READINGS)}")
    if len(observed) == 0:
        return Estimate(n=0, status="no_data", reason="no answer to analyse", **common)
    crossings = find_boundary_crossings(observed, hoeffding_boundaries(len(observed), delta=delta), reading=reading)
    n, winner = int(crossings.n[0]), int(crossings.winner[0])
    used = n or len(observed)
    mean, radius = float(np.mean(observed[:used])), float(hoeffding_radius(used, delta))
    low, high = mean - radius, mean + radius
    warnings = [ResultWarning("fixed_n_bound", "block", {"delta": delta})]
    if reading == "stays":
        warnings.append(ResultWarning("hindsight", "block", {"n_answers": len(observed)}))
    return Estimate(
        n=used,
        n_rows=used,
        estimate=mean,
        interval=Interval(1 - 2 * delta, max(0.0, low), min(1.0, high), "hoeffding", low < 0 or high > 1)
        if delta < 0.5
        else None,
        warnings=tuple(warnings),
        detail={
            "winner": {1: "a", -1: "b", 0: None}[winner],
            "n_decision": n or None,
            "n_answers": len(observed),
            "n_missing": len(series) - len(observed),
        },
        **common,
    )
