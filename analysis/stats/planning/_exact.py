"""Plans with exact power, and the plan of a test with looks by simulation."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from analysis.stats import basic, choice_simulation, group_sequential, power
from analysis.stats.arrays import FloatArray
from analysis.stats.planning._plan import Plan, PlanOptions, build_plan, n_to_recruit, require_positive
from analysis.stats.sequential import Boundaries

# Simulated studies of a test with looks: the standard error of a power of .9 is .001.
CROSSING_RUNS = 100_000


def compute_mean_test_power(
    difference: float,
    sd: float,
    n: int,
    *,
    answers_each: int = 1,
    excluded_share: float = 0.0,
    margin: float | None = None,
    options: PlanOptions | None = None,
    protocol: str = "mean",
) -> Plan:
    """Plan a test of a mean with one value per unit, exactly.

    Parameters
    ----------
    difference : float
        True difference of the mean from the null, on the scale of `sd`.
    sd : float
        Standard deviation of the units' values, which are taken as normal.
    n : int
        Number of units that are analysed.
    answers_each : int, default 1
        Answers per unit.
    excluded_share : float, default 0.0
        Share of paid units that is excluded before the analysis.
    margin : float, optional
        Equivalence margin. With it, `detail["equivalence_power"]` is the power of TOST.
    options : PlanOptions, optional
        Options of the planner.
    protocol : str, default 'mean'
        Name of the protocol.

    Returns
    -------
    Plan
        The plan; the width is 2 t E[s] / sqrt(n).

    Notes
    -----
    Use it for combined SPA answers, paired rating differences, or annotators' means.

    Examples
    --------
    >>> plan = compute_mean_test_power(0.10, 0.30, 90, answers_each=2)
    >>> round(plan.power, 3), round(plan.detectable, 3), round(plan.width, 3), plan.labels
    (0.879, 0.09, 0.125, 180.0)
    """
    chosen = options or PlanOptions()
    level = chosen.significance / chosen.tests
    power_of_test = power.t_test_power(difference / require_positive(sd, "sd"), n, significance=level)
    detectable = power.t_test_detectable_difference(
        n, sd=sd, power=chosen.wanted, significance=chosen.significance, tests=chosen.tests
    )
    expected_sd = sd * math.exp(
        0.5 * math.log(2 / (n - 1)) + float(special.gammaln(n / 2)) - float(special.gammaln((n - 1) / 2))
    )
    width = 2 * float(special.stdtrit(n - 1, 1 - chosen.significance / 2)) * expected_sd / math.sqrt(n)
    detail = {}
    if margin is not None:
        detail["equivalence_power"] = power.equivalence_power(
            n, sd=sd, margin=margin, difference=difference, significance=chosen.significance
        )
    return build_plan(
        chosen,
        protocol=protocol,
        estimand="mean of one value a unit, against its null",
        method="exact",
        unit="annotator",
        n=n,
        effect=difference,
        power=power_of_test,
        detectable=detectable,
        width=width,
        labels=n_to_recruit(n, excluded_share) * answers_each,
        detail=detail,
        settings={"sd": sd, "answers_each": answers_each, "excluded_share": excluded_share, "margin": margin},
    )


def compute_two_group_test_power(
    difference: float,
    n_x: int,
    n_y: int,
    *,
    sd_x: float,
    sd_y: float | None = None,
    answers_each: int = 1,
    excluded_share: float = 0.0,
    options: PlanOptions | None = None,
    protocol: str = "two_groups",
) -> Plan:
    """Plan Welch's test of two independent groups (for example arms of a training study), exactly.

    Parameters
    ----------
    difference : float
        True difference of the means.
    n_x, n_y : int
        Units that are analysed in each group.
    sd_x, sd_y : float
        Standard deviations; `sd_y` equals `sd_x` if None.
    answers_each : int, default 1
        Answers per unit.
    excluded_share : float, default 0.0
        Share of paid units that is excluded before the analysis.
    options : PlanOptions, optional
        Options of the planner.
    protocol : str, default 'two_groups'
        Name of the protocol.

    Returns
    -------
    Plan
        The plan; the width is 2 t se at the true variances with Satterthwaite's degrees of freedom.

    Examples
    --------
    >>> round(compute_two_group_test_power(0.05, 315, 315, sd_x=0.224).power, 2)
    0.8
    """
    chosen = options or PlanOptions()
    other = sd_x if sd_y is None else sd_y
    level = chosen.significance / chosen.tests
    power_of_test = power.two_sample_t_test_power(difference, n_x, n_y, sd_x=sd_x, sd_y=sd_y, significance=level)
    detectable = power.two_sample_detectable_difference(
        n_x,
        n_y,
        sd_x=sd_x,
        sd_y=sd_y,
        power=chosen.wanted,
        significance=chosen.significance,
        tests=chosen.tests,
    )
    part_x, part_y = sd_x**2 / n_x, other**2 / n_y
    df = (part_x + part_y) ** 2 / (part_x**2 / (n_x - 1) + part_y**2 / (n_y - 1))
    width = 2 * float(special.stdtrit(df, 1 - chosen.significance / 2)) * math.sqrt(part_x + part_y)
    return build_plan(
        chosen,
        protocol=protocol,
        estimand="difference of the means of two independent groups",
        method="exact",
        unit="annotator",
        n=n_x + n_y,
        effect=difference,
        power=power_of_test,
        detectable=detectable,
        width=width,
        labels=n_to_recruit(n_x + n_y, excluded_share) * answers_each,
        settings={
            "n_x": n_x,
            "n_y": n_y,
            "sd_x": sd_x,
            "sd_y": other,
            "answers_each": answers_each,
            "excluded_share": excluded_share,
        },
    )


def compute_share_test_power(
    p: float,
    n: int,
    *,
    null: float = 0.5,
    excluded_share: float = 0.0,
    options: PlanOptions | None = None,
    protocol: str = "choice",
) -> Plan:
    """Plan the exact binomial test of a share of independent labels, one per annotator.

    Parameters
    ----------
    p : float
        True share.
    n : int
        Number of labels that are analysed.
    null : float, default 0.5
        Value of the null hypothesis.
    excluded_share : float, default 0.0
        Share of paid units that is excluded before the analysis.
    options : PlanOptions, optional
        Options of the planner.
    protocol : str, default 'choice'
        Name of the protocol.

    Returns
    -------
    Plan
        The plan; the width is that of Wilson's interval.

    Examples
    --------
    >>> plan = compute_share_test_power(0.60, 210)
    >>> round(plan.power, 3), round(plan.detectable, 3), round(plan.width, 3)
    (0.82, 0.097, 0.131)
    """
    chosen = options or PlanOptions()
    level = chosen.significance / chosen.tests
    power_of_test = power.proportion_power(p, n, null=null, significance=level)
    try:
        detectable = power.proportion_detectable_increase(
            n, null=null, power=chosen.wanted, significance=chosen.significance, tests=chosen.tests
        )
    except ValueError:
        detectable = None
    counts = np.arange(n + 1)
    chances = np.exp(
        special.gammaln(n + 1)
        - special.gammaln(counts + 1)
        - special.gammaln(n - counts + 1)
        + special.xlogy(counts, p)
        + special.xlog1py(n - counts, -p)
    )
    counts, chances = counts[chances > 1e-14], chances[chances > 1e-14]
    ends = np.array([basic.wilson_interval(int(k), n, 1 - chosen.significance) for k in counts])
    return build_plan(
        chosen,
        protocol=protocol,
        estimand="share of independent labels",
        method="exact",
        unit="annotator",
        n=n,
        effect=p - null,
        power=power_of_test,
        detectable=detectable,
        width=float(chances @ (ends[:, 1] - ends[:, 0])),
        labels=n_to_recruit(n, excluded_share),
        settings={"p": p, "null": null, "excluded_share": excluded_share},
    )


def compute_sequential_rule_power(
    p: float, rule: Boundaries, *, options: PlanOptions | None = None, protocol: str = "choice"
) -> Plan:
    """Plan a sequential rule with a check after every label (one per annotator), exactly.

    Parameters
    ----------
    p : float
        True share of labels for A.
    rule : Boundaries
        Rule with its own error and largest n, from `sequential.beta_binomial_boundaries`.
    options : PlanOptions, optional
        Options of the planner.
    protocol : str, default 'choice'
        Name of the protocol.

    Returns
    -------
    Plan
        The plan. `power` is the probability of the true winner's verdict (of either at p = .5: the rule's error).
        `labels` is the expected number.

    Examples
    --------
    >>> from analysis.stats.sequential import beta_binomial_boundaries
    >>> plan = compute_sequential_rule_power(0.6125, beta_binomial_boundaries(1000))
    >>> round(plan.power, 3), round(plan.labels)
    (1.0, 170)
    """
    chosen = options or PlanOptions()
    table = choice_simulation.exact_verdict_probabilities(p, rule)
    wins, losses = float(table.a_better[-1]), float(table.b_better[-1])
    power_of_rule = wins if p > 0.5 else losses if p < 0.5 else wins + losses
    return build_plan(
        chosen,
        protocol=protocol,
        estimand="share of independent labels, watched",
        method="exact",
        unit="annotator",
        n=len(rule.upper),
        effect=p - 0.5,
        power=power_of_rule,
        labels=table.mean_n,
        detail=table.final_probabilities(),
        settings={"p": p, "rule": rule.name},
    )


def compute_group_sequential_power(
    difference: float,
    sd: float,
    looks: Sequence[int],
    *,
    shape: str = "obrien_fleming",
    answers_each: int = 1,
    options: PlanOptions | None = None,
    protocol: str = "mean",
) -> Plan:
    """Plan a test of a mean with planned looks: power, and expected numbers of units and labels.

    Parameters
    ----------
    difference, sd : float
        As in `compute_mean_test_power`.
    looks : sequence[int]
        Numbers of units at the looks, ascending from at least 2.
    shape : str, default 'obrien_fleming'
        Shape of the boundaries, as in `group_sequential.group_sequential_design`.
    answers_each : int, default 1
        Answers per unit.
    options : PlanOptions, optional
        Options of the planner.
    protocol : str, default 'mean'
        Name of the protocol.

    Returns
    -------
    Plan
        The plan, by simulation of normal values with a fixed seed. `detail["simulation_error"]` is the standard error
        of the power.

    Raises
    ------
    ValueError
        If `looks` do not ascend, or `difference` is not finite.

    Notes
    -----
    The boundaries are those of a large sample, and each look is a t test. With few units the power is clearly below
    that of a z test, so it is simulated from the means and variances of the units between two looks.

    Examples
    --------
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
    leaving = _simulated_crossings(at, boundaries.nominal, difference / require_positive(sd, "sd"))
    total_power = float(leaving.sum())
    expected = float(leaving @ at) + (1 - total_power) * float(at[-1])
    return build_plan(
        chosen,
        protocol=protocol,
        estimand="mean of one value a unit, against its null, at planned looks",
        method="simulation",
        unit="annotator",
        n=int(at[-1]),
        effect=difference,
        power=total_power,
        labels=expected * answers_each,
        detail={
            "expected_n": expected,
            "stopping": leaving.tolist(),
            "simulation_error": math.sqrt(total_power * (1 - total_power) / CROSSING_RUNS),
        },
        settings={"sd": sd, "looks": [int(look) for look in at], "shape": shape, "answers_each": answers_each},
    )


def _simulated_crossings(looks: FloatArray, nominal: FloatArray, effect: float) -> FloatArray:
    """Return the share of simulated studies whose t test is first significant at each look; `effect` in units of sd."""
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
        crosses = (2 * special.stdtr(n - 1, -np.abs(statistic)) <= boundary) & ~crossed_before
        leaving.append(float(crosses.mean()))
        crossed_before |= crosses
        seen = n
    return np.array(leaving)
