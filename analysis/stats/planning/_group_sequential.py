"""The plan of a test with looks, by simulation."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from analysis.stats import group_sequential
from analysis.stats.arrays import FloatArray
from analysis.stats.planning._plan import Plan, PlanOptions

# Simulated studies of a test with looks: the standard error of a power of .9 is .001.
CROSSING_RUNS = 100_000


def compute_group_sequential_power(
    difference: float,
    sd: float,
    looks: Sequence[int],
    *,
    shape: str = "obrien_fleming",
    is_one_sided: bool = False,
    options: PlanOptions | None = None,
) -> Plan:
    """Compute the power of a test of a mean with planned looks, and the expected numbers of units and labels.

    `difference` is that of the mean from its null, `sd` is the standard deviation of a unit, and `looks` are the
    numbers of units at the looks, ascending from at least 2. `shape` is as in
    `group_sequential.group_sequential_design`. With `is_one_sided` only a mean above the null is a claim, as for goals
    by a margin, and each look has half the level. The boundaries are those of a large sample, and each look is a t
    test. With few units the power is clearly below that of a z test, so it is simulated, for normal values and with a
    fixed seed, from the means and variances of the units between two looks. `detail["simulation_error"]` is the
    standard error of the power.

    >>> plan = compute_group_sequential_power(0.075, 0.27, [40, 80, 120, 160, 200])
    >>> round(plan.power, 2), round(plan.detail["expected_n"], -1)
    (0.97, 130.0)
    """
    chosen = options or PlanOptions()
    at = np.asarray(looks, dtype=np.float64)
    # A planner raises the same errors as the test itself.
    if at.ndim != 1 or len(at) == 0 or np.any(at != np.round(at)) or at[0] < 2 or not np.all(np.diff(at) > 0):
        raise ValueError(f"looks: {list(looks)} are not whole numbers that ascend from at least 2")
    boundaries = group_sequential.group_sequential_design(
        at / at[-1], shape=shape, significance=chosen.significance / chosen.tests
    )
    if not math.isfinite(difference):
        raise ValueError(f"difference: {difference!r} is not finite")
    if not (math.isfinite(sd) and sd > 0):
        raise ValueError(f"sd: {sd!r} is not a positive number")
    leaving = _simulated_crossings(at, boundaries.nominal, difference / sd, is_one_sided)
    total_power = float(leaving.sum())
    expected = float(leaving @ at) + (1 - total_power) * float(at[-1])
    return Plan(
        protocol="mean",
        estimand="mean of one value a unit, against its null, at planned looks",
        method="simulation",
        unit="annotator",
        n=int(at[-1]),
        effect=difference,
        power=total_power,
        labels=expected,
        significance=chosen.significance,
        tests=chosen.tests,
        wanted=chosen.wanted,
        detail={
            "expected_n": expected,
            "stopping": leaving.tolist(),
            "simulation_error": math.sqrt(total_power * (1 - total_power) / CROSSING_RUNS),
        },
        settings={
            "sd": sd,
            "looks": [int(look) for look in at],
            "shape": shape,
            "answers_each": 1,
            "is_one_sided": is_one_sided,
        },
    )


def _simulated_crossings(looks: FloatArray, nominal: FloatArray, effect: float, is_one_sided: bool) -> FloatArray:
    """Return the share of simulated studies whose t test first makes a claim at each look; `effect` in units of sd."""
    rng = np.random.default_rng(0)
    mean, squares, crossed_before = (
        np.zeros(CROSSING_RUNS),
        np.zeros(CROSSING_RUNS),
        np.zeros(CROSSING_RUNS, dtype=bool),
    )
    leaving, seen = [], 0.0
    for n, boundary in zip(looks.tolist(), nominal.tolist(), strict=True):
        added = n - seen
        new_mean = effect + rng.normal(size=CROSSING_RUNS) / math.sqrt(added)
        new_squares = rng.chisquare(added - 1, CROSSING_RUNS) if added > 1 else 0.0
        squares = squares + new_squares + (new_mean - mean) ** 2 * seen * added / n
        mean = mean + (new_mean - mean) * added / n
        statistic = mean * np.sqrt(n * (n - 1) / squares)
        claims = statistic if is_one_sided else np.abs(statistic)
        crosses = (2 * special.stdtr(n - 1, -claims) <= boundary) & ~crossed_before
        leaving.append(float(crosses.mean()))
        crossed_before |= crosses
        seen = n
    return np.array(leaving)
