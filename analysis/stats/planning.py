"""Before the first answer: what a design would find, how precisely, and for how much.

Where the test has an exact power it is computed (`power`, `choice_simulation`, `group_sequential`); else the study is
made up many times (`generators`) and every time analysed by the function that will analyse the data, or by a form of it
that takes all runs at once and gives the same numbers. A simulated power carries its error sqrt(p (1 - p) / R).

A plan rests on assumptions about annotators nobody has met yet; it is no observed power, and says nothing about data.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import (
    basic,
    choice,
    choice_simulation,
    clusters,
    generators,
    group_sequential,
    groups,
    leaderboard,
    multiplicity,
    power,
    ratings,
    spa,
)
from analysis.stats.arrays import DEGENERATE, BoolArray, FloatArray, codes, refuse_level
from analysis.stats.bootstrap import monte_carlo_error
from analysis.stats.cost import Cost, study_cost
from analysis.stats.results import MODES, Estimate, Record, Warning
from analysis.stats.sequential import Boundaries

T = TypeVar("T")

MAX_RUNS = 2000
MAX_ANSWERS = 50_000_000
# How many answers a block of runs holds, and in how many steps progress is told at least.
CELLS = 2_000_000
BLOCKS = 20
# A simulated power is too coarse for more halvings than these.
HALVINGS = 10
SECONDS_AN_HOUR = 3600.0


class Cancelled(Exception):
    """The simulation was told to stop; nothing of it is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(Record):
    """What a label costs: see `cost.study_cost`. `seconds` a label takes, None where nobody knows."""

    pay: float
    fee_rate: float = 0.2
    overhead: float = 0.0
    test_share: float = 0.0
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What every planner takes: the test's `significance`, divided by `tests` (the first step of a Holm family), the
    power `wanted`, how many `runs` to simulate, whether to look for the smallest `detectable` effect by simulation (ten
    more simulations), `prices`, and the two hooks of a long job: `progress(done, total)` after each block of runs, and
    `is_cancelled()`, asked before each, upon which `Cancelled` is raised.
    """

    significance: float = 0.05
    tests: int = 1
    wanted: float = 0.8
    runs: int = 1000
    find_detectable: bool = False
    prices: Prices | None = None
    progress: Callable[[int, int], None] | None = None
    is_cancelled: Callable[[], bool] | None = None

    def __post_init__(self) -> None:
        refuse_level(self.significance)
        refuse_level(self.wanted)
        if self.tests < 1:
            raise ValueError(f"tests: {self.tests} is less than 1")


@dataclass(frozen=True, slots=True)
class Outcomes(Record):
    """What the analysis said in each run: arrays of shape (runs,), or (runs, k) for k comparisons.

    NaN where it had no such answer. `is_equivalent`, where a margin was given: whether TOST showed equivalence.
    """

    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    pvalue: FloatArray
    is_equivalent: BoolArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Record):
    """What a design would do if its assumptions held.

    `power` of finding `effect` at `significance` / `tests`; `power_error`, its Monte-Carlo standard error, is None where
    it is exact. `detectable` is the smallest effect found with probability `wanted` (None: not looked for, or none is).
    `width` is the expected width of the 1 - significance interval. `n` counts units (`unit`), `labels` the answers paid
    for, expected where the study may stop early; `hours` are annotators' working hours.
    """

    protocol: str
    estimand: str
    method: str
    unit: str
    n: int
    effect: float
    power: float
    significance: float
    tests: int
    wanted: float
    labels: float
    power_error: float | None = None
    detectable: float | None = None
    width: float | None = None
    cost: Cost | None = None
    hours: float | None = None
    runs: int | None = None
    warnings: tuple[Warning, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def simulate(
    generate: Callable[[int, np.random.Generator], T],
    analyse: Callable[[T], Outcomes],
    *,
    answers: int,
    runs: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None = None,
    is_cancelled: Callable[[], bool] | None = None,
) -> Outcomes:
    """`runs` made-up studies of `answers` answers each, analysed: `generate(size, rng)` makes the next `size` of them.

    Raises ValueError for more than 2,000 runs or 50,000,000 answers in all, `Cancelled` when told to stop.

    >>> outcomes = simulate(lambda size, rng: rng.normal(0.6, 0.2, (size, 30)), one_sample_outcomes, answers=30, runs=400,
    ...                     rng=np.random.default_rng(0))
    >>> bool(np.mean(outcomes.pvalue < 0.05) > 0.6)
    True
    """
    refuse_size(runs, answers)
    size = max(1, min(CELLS // max(1, answers), math.ceil(runs / BLOCKS)))
    parts = []
    for start in range(0, runs, size):
        if is_cancelled is not None and is_cancelled():
            raise Cancelled(f"after {start} of {runs} runs")
        here = min(size, runs - start)
        parts.append(analyse(generate(here, rng)))
        if progress is not None:
            progress(start + here, runs)
    equivalent = [part.is_equivalent for part in parts if part.is_equivalent is not None]
    return Outcomes(
        np.concatenate([part.estimate for part in parts]),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        np.concatenate([part.pvalue for part in parts]),
        np.concatenate(equivalent) if equivalent else None,
    )


def refuse_size(runs: int, answers: int) -> None:
    """Raises ValueError, saying what to do, for a simulation that is too large to run beside a website.

    >>> refuse_size(2000, 40_000)
    Traceback (most recent call last):
        ...
    ValueError: runs: 2000 runs of 40000 answers are more than 50000000 answers; at most 1250 runs of this study
    """
    if not 1 <= runs <= MAX_RUNS:
        raise ValueError(f"runs: {runs} is not in 1..{MAX_RUNS}")
    if runs * answers > MAX_ANSWERS:
        advice = (
            f"at most {MAX_ANSWERS // answers} runs of this study" if answers <= MAX_ANSWERS else "too large a study"
        )
        raise ValueError(f"runs: {runs} runs of {answers} answers are more than {MAX_ANSWERS} answers; {advice}")


def outcomes_of(estimates: Iterable[Estimate]) -> Outcomes:
    """The results of an analysis that takes one run at a time.

    >>> outcomes_of([basic.one_sample([0.6, 0.7], null=0.5), basic.one_sample([], null=0.5)]).pvalue.round(3).tolist()
    [0.205, nan]
    """
    rows = []
    for found in estimates:
        ends = (None, None) if found.interval is None else (found.interval.low, found.interval.high)
        rows.append([found.estimate, *ends, found.pvalue])
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
    return Outcomes(*table.T)


def one_sample_outcomes(
    values: npt.ArrayLike,
    *,
    null: float = 0.5,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    margin: float | None = None,
) -> Outcomes:
    """`basic.one_sample` on each row of `values` (runs, n), NaN missing, all rows at once, with the same numbers.

    Rows with an edge of their own (no variance, a ceiling) go through that function one by one. With `margin`, whether
    TOST within null -/+ margin is significant at 1 - level.

    >>> values = np.random.default_rng(0).normal(0.6, 0.2, (3, 30))
    >>> ours, theirs = one_sample_outcomes(values), basic.one_sample(values[1], null=0.5)
    >>> bool(abs(ours.pvalue[1] - theirs.pvalue) < 1e-12)
    True
    """
    refuse_level(level)
    table = np.asarray(values, dtype=np.float64)
    here = ~np.isnan(table)
    n = here.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(here, table, 0.0).sum(axis=1) / n
        sd = np.sqrt((np.where(here, table - mean[:, None], 0.0) ** 2).sum(axis=1) / (n - 1))
        se = sd / np.sqrt(n)
    is_plain = (n > 1) & (sd >= DEGENERATE)
    if bounds is not None:
        is_plain &= (n >= basic.CEILING_N) | (_largest_share(table, here, n) < basic.CEILING_SHARE)
    df = np.where(is_plain, n - 1, 1)
    scale = np.where(is_plain, se, 1.0)
    pvalue = np.minimum(1.0, 2 * special.stdtr(df, -np.abs((mean - null) / scale)))
    half = special.stdtrit(df, (1 + level) / 2) * scale
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
    equivalent = None
    if margin is not None:
        reach = special.stdtrit(df, level) * scale
        equivalent = is_plain & (mean - reach > null - margin) & (mean + reach < null + margin)
    for row in np.flatnonzero(~is_plain):
        alone = outcomes_of([basic.one_sample(table[row], null=null, level=level, bounds=bounds)])
        mean[row], low[row], high[row], pvalue[row] = alone.estimate[0], alone.low[0], alone.high[0], alone.pvalue[0]
    return Outcomes(mean, low, high, pvalue, equivalent)


def two_way_outcomes(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike,
    *,
    null: float = 0.5,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Outcomes:
    """`clusters.two_way_mean` on each row of `values` (runs, n_rows), none missing, all runs at once.

    `annotators` and `items` have shape (n_rows,): who answered what is the same in every run.

    >>> values = np.random.default_rng(0).random((2, 60)) < 0.6
    >>> who, what = np.repeat(np.arange(12), 5), np.tile(np.arange(20), 3)
    >>> ours = two_way_outcomes(values, who, what)
    >>> bool(abs(ours.pvalue[0] - clusters.two_way_mean(values[0], who, what, null=0.5).pvalue) < 1e-12)
    True
    """
    refuse_level(level)
    table = np.asarray(values, dtype=np.float64)
    n_rows = table.shape[1]
    who, n_annotators = codes(np.asarray(annotators), "annotators", n_rows)
    what, n_items = codes(np.asarray(items), "items", n_rows)
    mean = table.mean(axis=1)
    residuals = table - mean[:, None]
    cells, n_cells = codes(who * n_items + what, "cells", n_rows)
    fewest = min(n_annotators, n_items)
    if fewest < 2:
        nothing = np.full(len(table), np.nan)
        return Outcomes(mean, nothing, nothing, nothing)
    by_annotator, by_item, by_cell = (
        _cr1(residuals, labels, count) for labels, count in ((who, n_annotators), (what, n_items), (cells, n_cells))
    )
    variance = np.maximum.reduce([by_annotator + by_item - by_cell, by_annotator, by_item])
    se, df = np.sqrt(variance), fewest - 1
    is_plain = se >= DEGENERATE
    scale = np.where(is_plain, se, 1.0)
    pvalue = np.minimum(1.0, 2 * special.stdtr(df, -np.abs((mean - null) / scale)))
    if fewest < clusters.TOO_FEW_CLUSTERS:
        pvalue = np.full(len(table), np.nan)
    half = float(special.stdtrit(df, (1 + level) / 2)) * scale
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = np.maximum(low, bounds[0]), np.minimum(high, bounds[1])
    return Outcomes(
        mean, np.where(is_plain, low, np.nan), np.where(is_plain, high, np.nan), np.where(is_plain, pvalue, np.nan)
    )


def plan_mean(
    difference: float,
    sd: float,
    n: int,
    *,
    answers_each: int = 1,
    excluded_share: float = 0.0,
    margin: float | None = None,
    options: Options | None = None,
    protocol: str = "mean",
) -> Plan:
    """One value a unit against a null, exactly: SPA answers combined, paired rating differences, annotators' means.

    `sd` of the units' values and `difference` of their mean from the null are on one scale, values taken as normal. `n`
    units are analysed; `excluded_share` of those paid are lost before. With `margin`, detail["equivalence_power"] is the
    chance that TOST shows equivalence. The width is 2 t E[s] / sqrt(n).

    >>> plan = plan_mean(0.10, 0.30, 90, answers_each=2)
    >>> round(plan.power, 3), round(plan.detectable, 3), round(plan.width, 3), plan.labels
    (0.879, 0.09, 0.125, 180.0)
    """
    chosen = options or Options()
    level = chosen.significance / chosen.tests
    found = power.t_power(difference / _positive(sd, "sd"), n, significance=level)
    detectable = power.detectable_effect(
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
    return _plan(
        chosen,
        protocol=protocol,
        estimand="mean of one value a unit, against its null",
        method="exact",
        unit="annotator",
        n=n,
        effect=difference,
        power=found,
        detectable=detectable,
        width=width,
        labels=_recruited(n, excluded_share) * answers_each,
        detail=detail,
        settings={"sd": sd, "answers_each": answers_each, "excluded_share": excluded_share, "margin": margin},
    )


def plan_two_groups(
    difference: float,
    n_x: int,
    n_y: int,
    *,
    sd_x: float,
    sd_y: float | None = None,
    answers_each: int = 1,
    excluded_share: float = 0.0,
    options: Options | None = None,
    protocol: str = "two_groups",
) -> Plan:
    """One value a unit in two independent groups (arms of a training study), Welch's test, exactly.

    The width is that at the true variances, 2 t se with Satterthwaite's degrees of freedom.

    >>> round(plan_two_groups(0.05, 315, 315, sd_x=0.224).power, 2)
    0.8
    """
    chosen = options or Options()
    other = sd_x if sd_y is None else sd_y
    level = chosen.significance / chosen.tests
    found = power.two_sample_power(difference, n_x, n_y, sd_x=sd_x, sd_y=sd_y, significance=level)
    detectable = power.two_sample_detectable(
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
    return _plan(
        chosen,
        protocol=protocol,
        estimand="difference of the means of two independent groups",
        method="exact",
        unit="annotator",
        n=n_x + n_y,
        effect=difference,
        power=found,
        detectable=detectable,
        width=width,
        labels=_recruited(n_x + n_y, excluded_share) * answers_each,
        settings={
            "n_x": n_x,
            "n_y": n_y,
            "sd_x": sd_x,
            "sd_y": other,
            "answers_each": answers_each,
            "excluded_share": excluded_share,
        },
    )


def plan_share(
    p: float,
    n: int,
    *,
    null: float = 0.5,
    excluded_share: float = 0.0,
    options: Options | None = None,
    protocol: str = "choice",
) -> Plan:
    """A share of `n` independent labels, one an annotator, by the exact binomial test; Wilson's width.

    >>> plan = plan_share(0.60, 210)
    >>> round(plan.power, 3), round(plan.detectable, 3), round(plan.width, 3)
    (0.82, 0.097, 0.131)
    """
    chosen = options or Options()
    level = chosen.significance / chosen.tests
    found = power.proportion_power(p, n, null=null, significance=level)
    try:
        detectable = power.proportion_detectable(
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
    ends = np.array([basic.wilson(int(k), n, 1 - chosen.significance) for k in counts])
    return _plan(
        chosen,
        protocol=protocol,
        estimand="share of independent labels",
        method="exact",
        unit="annotator",
        n=n,
        effect=p - null,
        power=found,
        detectable=detectable,
        width=float(chances @ (ends[:, 1] - ends[:, 0])),
        labels=_recruited(n, excluded_share),
        settings={"p": p, "null": null, "excluded_share": excluded_share},
    )


def plan_sequential(p: float, rule: Boundaries, *, options: Options | None = None, protocol: str = "choice") -> Plan:
    """A rule that looks after every label (one an annotator), exactly: how often it finds A, and after how many labels.

    `rule` is made for its own error and its greatest n (`sequential.beta_binomial_boundaries`); `power` is the chance of
    the true winner's verdict by then (of either, at p = .5: the rule's error), `labels` the expected number.

    >>> from analysis.stats.sequential import beta_binomial_boundaries
    >>> plan = plan_sequential(0.6125, beta_binomial_boundaries(1000))
    >>> round(plan.power, 3), round(plan.labels)
    (1.0, 170)
    """
    chosen = options or Options()
    table = choice_simulation.rule_table(p, rule)
    wins, losses = float(table.a_better[-1]), float(table.b_better[-1])
    found = wins if p > 0.5 else losses if p < 0.5 else wins + losses
    return _plan(
        chosen,
        protocol=protocol,
        estimand="share of independent labels, watched",
        method="exact",
        unit="annotator",
        n=len(rule.upper),
        effect=p - 0.5,
        power=found,
        labels=table.mean_n,
        detail=table.at_end(),
        settings={"p": p, "rule": rule.name},
    )


def plan_group_sequential(
    difference: float,
    sd: float,
    looks: Sequence[int],
    *,
    shape: str = "obrien_fleming",
    answers_each: int = 1,
    options: Options | None = None,
    protocol: str = "mean",
) -> Plan:
    """`plan_mean` with planned looks: power, and the expected numbers of units and labels (large-sample boundaries).

    >>> plan = plan_group_sequential(0.075, 0.27, [40, 80, 120, 160, 200])
    >>> round(plan.power, 2), round(plan.detail["expected_n"])
    (0.97, 131)
    """
    chosen = options or Options()
    at = np.asarray(looks, dtype=np.float64)
    if at.ndim != 1 or len(at) == 0 or np.any(np.diff(at) <= 0):
        raise ValueError(f"looks: {list(looks)} do not ascend")
    boundaries = group_sequential.design(at / at[-1], shape=shape, significance=chosen.significance / chosen.tests)
    drift = difference / _positive(sd, "sd") * math.sqrt(float(at[-1]))
    leaving = group_sequential.exit_probabilities(at / at[-1], boundaries.z, drift=drift)
    found = min(1.0, float(leaving.sum()))
    expected = float(leaving @ at) + (1 - found) * float(at[-1])
    return _plan(
        chosen,
        protocol=protocol,
        estimand="mean of one value a unit, against its null, at planned looks",
        method="exact",
        unit="annotator",
        n=int(at[-1]),
        effect=difference,
        power=found,
        labels=expected * answers_each,
        detail={"expected_n": expected, "stopping": leaving.tolist()},
        settings={"sd": sd, "looks": [int(look) for look in at], "shape": shape, "answers_each": answers_each},
    )


def plan_strategy(
    mean_difficulty: float,
    n_requests: int,
    strategy: choice.Strategy,
    *,
    rule: Boundaries,
    rng: np.random.Generator,
    options: Options | None = None,
    **agents: Any,
) -> Plan:
    """A labelling strategy and its stopping rule, by simulation: how often the better system wins, at what effort.

    `agents` go to `choice_simulation.planned_effort`, which redraws annotators and requests in every run. Runs without
    a decision have paid for all `n_requests`.

    >>> from analysis.stats.sequential import beta_binomial_boundaries
    >>> plan = plan_strategy(0.25, 1000, choice.Strategy("max_three"), rule=beta_binomial_boundaries(1000),
    ...                      rng=np.random.default_rng(0), options=Options(runs=100))
    >>> plan.power, 200 < plan.labels < 600
    (1.0, True)
    """
    chosen = options or Options()

    def generate(size: int, generator: np.random.Generator) -> choice.Effort:
        return choice_simulation.planned_effort(
            mean_difficulty, n_requests, strategy, rule=rule, runs=size, rng=generator, **agents
        )

    def analyse(effort: choice.Effort) -> Outcomes:
        # The sign of the verdict and the labels it took, carried as an estimate and an end of an interval.
        winner = effort.winner.astype(np.float64)
        return Outcomes(winner, effort.n_requests.astype(np.float64), effort.n_labels.astype(np.float64), winner)

    found = _runs(generate, analyse, n_requests * strategy.most, chosen, rng)
    side = 1.0 if mean_difficulty > 0 else -1.0
    is_right = found.estimate == side if mean_difficulty else found.estimate != 0
    labels = found.high
    return _plan(
        chosen,
        protocol="choice",
        estimand="share of A among requests decided by the strategy",
        method="monte_carlo",
        unit="request",
        n=n_requests,
        effect=mean_difficulty,
        power=float(np.mean(is_right)),
        labels=float(np.mean(labels)),
        detail={
            "decided_share": float(np.mean(found.estimate != 0)),
            "wrong_share": float(np.mean(found.estimate == -side)) if mean_difficulty else None,
            "labels_median": float(np.median(labels)),
            "labels_90": float(np.quantile(labels, 0.9)),
        },
        settings={
            "mean_difficulty": mean_difficulty,
            "strategy": strategy.name,
            "workers": strategy.workers,
            "rule": rule.name,
            **agents,
        },
    )


def plan_spa(
    n_annotators: int,
    preferences: float | Sequence[float],
    *,
    mode: str = "recommended",
    tau: float | None = None,
    margin: float | None = None,
    rng: np.random.Generator,
    options: Options | None = None,
    **answers: Any,
) -> Plan:
    """System-level probabilities by simulation, `answers` going to `generators.spa_answers`.

    Recommended: t on the combined answers of everybody; paper: on the answers with x named first. Either after the rule
    `tau` if one is given, to see what it does. Several `preferences` are pairs of one study: Holm over them in each run
    (beside `options.tests`, for a family larger than these); `power` is then the mean over the pairs whose preference is
    not .5, detail["by_pair"] has each, and detail["all_found"] the share of runs that found all of those. With all at
    .5, `power` is the share of runs with any false finding. The detectable effect is a distance from .5 shared by all
    pairs. `n` is the number recruited; those excluded are paid too.

    >>> plan = plan_spa(90, 0.6, annotator_sd=0.28, order_sd=0.1, rng=np.random.default_rng(0), options=Options(runs=200))
    >>> 0.8 < plan.power < 0.97, plan.labels, round(plan.detail["by_pair"][0]["estimate"], 1)
    (True, 180.0, 0.6)
    """
    chosen = options or Options()
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is none of {', '.join(MODES)}")
    wanted = np.atleast_1d(np.asarray(preferences, dtype=np.float64))
    n_orders = 2 if mode == "recommended" or tau is not None else 1
    size = n_annotators * len(wanted) * n_orders

    def generate(distance: float | None) -> Callable[[int, np.random.Generator], generators.SpaAnswers]:
        pairs = wanted if distance is None else np.full(len(wanted), 0.5 + distance)
        return lambda runs, generator: generators.spa_answers(
            n_annotators, pairs.tolist(), runs=runs, rng=generator, **answers
        )

    def analyse(made: generators.SpaAnswers) -> Outcomes:
        values = _spa_values(made, mode, tau)
        each = [
            one_sample_outcomes(values[:, :, pair], level=1 - chosen.significance, bounds=spa.BOUNDS, margin=margin)
            for pair in range(values.shape[2])
        ]
        return _beside(each)

    is_real = np.abs(wanted - 0.5) > DEGENERATE

    def share(found: Outcomes, real: BoolArray) -> float:
        is_found = _holm_found(found.pvalue, chosen)
        return float(np.mean(is_found[:, real])) if real.any() else float(np.mean(is_found.any(axis=1)))

    found = _runs(generate(None), analyse, size, chosen, rng)
    is_found = _holm_found(found.pvalue, chosen)
    detectable, warnings = _detectable(
        lambda distance, seeded, hooks: share(
            _runs(generate(distance), analyse, size, hooks, seeded), np.ones(len(wanted), dtype=np.bool_)
        ),
        0.5,
        chosen,
        rng,
    )
    by_pair = [
        {
            "preference": float(wanted[pair]),
            "power": float(np.mean(is_found[:, pair])),
            **_means(found, pair),
            "equivalence_power": None if found.is_equivalent is None else float(np.mean(found.is_equivalent[:, pair])),
        }
        for pair in range(len(wanted))
    ]
    return _plan(
        chosen,
        protocol="spa",
        estimand="mean over annotators of P[x > y]",
        method="monte_carlo",
        unit="annotator",
        n=n_annotators,
        effect=float(np.mean(np.abs(wanted[is_real] - 0.5))) if is_real.any() else 0.0,
        power=share(found, is_real),
        detectable=detectable,
        width=_mean(found.high - found.low),
        labels=float(size),
        warnings=warnings,
        detail={
            "by_pair": by_pair,
            "all_found": float(np.mean(is_found[:, is_real].all(axis=1))) if is_real.any() else None,
            "n_undefined": int(np.isnan(found.pvalue).sum()),
        },
        settings={"preferences": wanted.tolist(), "mode": mode, "tau": tau, "margin": margin, **answers},
    )


def plan_rating(
    n_annotators: int,
    n_each: int,
    difference: float,
    *,
    estimator: str = "superiority",
    rng: np.random.Generator,
    options: Options | None = None,
    **answers: Any,
) -> Plan:
    """Two systems rated on a Likert scale by the same annotators, by simulation; `answers` to `generators.likert_ratings`.

    `difference` is that of the latent means, in units of the latent noise. "superiority": P(x above y) on one prompt,
    the annotator as cluster (`ratings.superiority`; the width is that of the t interval, where the data get a bootstrap).
    "mean_difference": points, with prompts as second cluster if `n_prompts` are shared (`ratings.mean_difference`).

    >>> plan = plan_rating(60, 5, 0.4, rng=np.random.default_rng(0), options=Options(runs=200))
    >>> plan.power > 0.9, 0.55 < plan.detail["estimate"] < 0.65, plan.labels
    (True, True, 600.0)
    """
    chosen = options or Options()
    if estimator not in ("superiority", "mean_difference"):
        raise ValueError(f"estimator: {estimator!r} is neither superiority nor mean_difference")
    is_superiority = estimator == "superiority"
    is_two_way = not is_superiority and answers.get("n_prompts") is not None
    points = len(answers.get("thresholds", generators.FIVE_POINTS))

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.LikertRatings]:
        return lambda runs, generator: generators.likert_ratings(
            n_annotators, n_each, [effect, 0.0], runs=runs, rng=generator, **answers
        )

    def analyse(made: generators.LikertRatings) -> Outcomes:
        differences = made.ratings[..., 0] - made.ratings[..., 1]
        level = 1 - chosen.significance
        if is_two_way:
            rows = differences.reshape(len(differences), -1)
            who = np.repeat(np.arange(n_annotators), n_each)
            return two_way_outcomes(rows, who, made.prompts.ravel(), null=0.0, level=level)
        scores = (np.sign(differences) + 1) / 2 if is_superiority else differences
        # With equally many rows each, leaving one annotator out is the t test of the annotators' means.
        found = one_sample_outcomes(scores.mean(axis=2), null=0.5 if is_superiority else 0.0, level=level)
        few = n_annotators < clusters.TOO_FEW_CLUSTERS and n_each > 1
        return replace(found, pvalue=np.full_like(found.pvalue, np.nan)) if few else found

    return _simulated_plan(
        generate,
        analyse,
        difference,
        largest=6.0,
        size=n_annotators * n_each * 2,
        chosen=chosen,
        rng=rng,
        protocol="rating",
        estimand="P(x rated above y), ties half" if is_superiority else "mean difference of ratings, points",
        n=n_annotators,
        settings={"n_each": n_each, "estimator": estimator, "n_points": points + 1, **answers},
    )


def plan_expected_utility(
    n_annotators: int,
    n_each: int,
    difference: float,
    *,
    utility: float = 0.5,
    rng: np.random.Generator,
    options: Options | None = None,
    **answers: Any,
) -> Plan:
    """Two systems on a continuous scale with planted references, by simulation (`generators.continuous_ratings`).

    The systems' mean utilities are `utility` + and - half the `difference`, within 0..1. Ratings are put between each
    annotator's references by `ratings.between_references`, averaged per annotator and system, and compared by paired t;
    whoever violates the references is left out, and has been paid. Labels count the two reference ratings too.

    >>> plan = plan_expected_utility(60, 4, 0.1, rng=np.random.default_rng(0), options=Options(runs=100))
    >>> plan.power > 0.9, plan.labels
    (True, 600.0)
    """
    chosen = options or Options()
    if not abs(difference) / 2 <= min(utility, 1 - utility):
        raise ValueError(f"difference: {difference!r} around {utility!r} leaves 0..1")

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.ContinuousRatings]:
        means = [utility + effect / 2, utility - effect / 2]
        return lambda runs, generator: generators.continuous_ratings(
            n_annotators, n_each, means, runs=runs, rng=generator, **answers
        )

    def analyse(made: generators.ContinuousRatings) -> Outcomes:
        runs = len(made.ratings)
        # To the rescaling, an annotator of another run is another annotator: one call serves all runs.
        per = n_each * 2 + 2
        ends = [made.reference_minimum[..., None], made.reference_maximum[..., None]]
        rows = np.concatenate([made.ratings.reshape(runs, n_annotators, -1), *ends], axis=2).reshape(-1)
        place = np.tile(np.arange(per), runs * n_annotators)
        rescaled = ratings.between_references(
            rows,
            np.repeat(np.arange(runs * n_annotators), per),
            is_minimum=place == per - 2,
            is_maximum=place == per - 1,
        ).values.reshape(runs, n_annotators, per)[..., : per - 2]
        means = rescaled.reshape(runs, n_annotators, n_each, 2).mean(axis=2)
        return one_sample_outcomes(means[..., 0] - means[..., 1], null=0.0, level=1 - chosen.significance)

    return _simulated_plan(
        generate,
        analyse,
        difference,
        largest=2 * min(utility, 1 - utility),
        size=n_annotators * (2 * n_each + 2),
        chosen=chosen,
        rng=rng,
        protocol="rating",
        estimand="difference of expected expected utilities",
        n=n_annotators,
        settings={"n_each": n_each, "utility": utility, **answers},
    )


def plan_human_likeness(
    n_annotators: int,
    n_each: int,
    d_prime: float,
    *,
    measure: str = "accuracy",
    rng: np.random.Generator,
    options: Options | None = None,
    **answers: Any,
) -> Plan:
    """Human or machine, by simulation; `answers` go to `generators.human_like_ratings`.

    "accuracy": the share correct against .5, annotators and texts as clusters (`detection.accuracy`). "sensitivity":
    marginal d' against 0 by the probit contrast (`detection.sensitivity`). Texts are shared if `n_texts` says how many.
    To compare conditions of training, each annotator in one: `plan_two_groups` on annotators' accuracies.

    >>> plan = plan_human_likeness(130, 5, 0.5, n_texts=100, rng=np.random.default_rng(0), options=Options(runs=200))
    >>> plan.power > 0.9, round(plan.detail["estimate"], 1), plan.labels
    (True, 0.6, 650.0)
    """
    chosen = options or Options()
    if measure not in ("accuracy", "sensitivity"):
        raise ValueError(f"measure: {measure!r} is neither accuracy nor sensitivity")
    who = np.repeat(np.arange(n_annotators), n_each)
    level = 1 - chosen.significance

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.HumanLikeRatings]:
        return lambda runs, generator: generators.human_like_ratings(
            n_annotators, n_each, d_prime=effect, runs=runs, rng=generator, **answers
        )

    def analyse(made: generators.HumanLikeRatings) -> Outcomes:
        says = (made.ratings > 2.5).reshape(len(made.ratings), -1)
        texts = made.texts.ravel()
        truth = made.is_machine[texts]
        if measure == "accuracy":
            return two_way_outcomes(says == truth, who, texts, level=level, bounds=(0.0, 1.0))
        return outcomes_of(
            groups.cell_contrast(
                said, truth, {True: 1.0, False: -1.0}, who, texts, link="probit", corrected=True, level=level
            )
            for said in says.astype(np.float64)
        )

    return _simulated_plan(
        generate,
        analyse,
        d_prime,
        largest=4.0,
        size=n_annotators * n_each,
        chosen=chosen,
        rng=rng,
        protocol="humanlike",
        estimand="share of correct answers" if measure == "accuracy" else "marginal d'",
        n=n_annotators,
        settings={"n_each": n_each, "measure": measure, **answers},
    )


def plan_choice(
    n_annotators: int,
    n_each: int,
    mean_difficulty: float,
    *,
    rng: np.random.Generator,
    options: Options | None = None,
    **answers: Any,
) -> Plan:
    """Two-choice labels at a fixed n, several an annotator, by simulation; `answers` to `generators.choice_answers`.

    The test is t on annotators' means (`choice.preference`), or, with one label each, the exact binomial test of all
    labels. detail["estimate"] is the mean share of A, .5 + about .45 times the mean difficulty.

    >>> plan = plan_choice(100, 5, 0.25, rng=np.random.default_rng(0), options=Options(runs=200))
    >>> plan.power > 0.95, round(plan.detail["estimate"], 2), plan.labels
    (True, 0.61, 500.0)
    """
    chosen = options or Options()
    level = 1 - chosen.significance

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.ChoiceAnswers]:
        return lambda runs, generator: generators.choice_answers(
            n_annotators, n_each, mean_difficulty=effect, runs=runs, rng=generator, **answers
        )

    def analyse(made: generators.ChoiceAnswers) -> Outcomes:
        if n_each > 1:
            return one_sample_outcomes(made.chose_a.mean(axis=2), level=level, bounds=(0.0, 1.0))
        # What the test says depends on the number of labels for A alone, which few runs do not share.
        _, first, which = np.unique(made.chose_a.sum(axis=(1, 2)), return_index=True, return_inverse=True)
        who = np.arange(n_annotators)
        found = outcomes_of(choice.preference(made.chose_a[row, :, 0], who, level=level) for row in first)
        return Outcomes(found.estimate[which], found.low[which], found.high[which], found.pvalue[which])

    return _simulated_plan(
        generate,
        analyse,
        mean_difficulty,
        largest=1.0,
        size=n_annotators * n_each,
        chosen=chosen,
        rng=rng,
        protocol="choice",
        estimand="annotator-weighted share of A",
        n=n_annotators,
        settings={"n_each": n_each, **answers},
    )


def plan_leaderboard(
    n_items: int,
    difference: float,
    *,
    score: float = 0.7,
    rng: np.random.Generator,
    options: Options | None = None,
    **answers: Any,
) -> Plan:
    """Two systems on one draw of items, one label each, by simulation; `answers` to `generators.leaderboard_answers`.

    `difference` and `score` (of the worse system) are in 0..1; the test is `leaderboard.difference` (annotators as
    clusters, items paired and sampled), whose estimate and width are in points of 100.

    >>> plan = plan_leaderboard(300, 0.1, rng=np.random.default_rng(0), options=Options(runs=40))
    >>> plan.power > 0.5, plan.labels, 5 < plan.detail["estimate"] < 15
    (True, 600.0, True)
    """
    chosen = options or Options()
    items, systems = np.tile(np.arange(n_items), 2), np.repeat([0, 1], n_items)

    def generate(effect: float) -> Callable[[int, np.random.Generator], generators.LeaderboardAnswers]:
        return lambda runs, generator: generators.leaderboard_answers(
            n_items, [score + effect, score], runs=runs, rng=generator, **answers
        )

    def analyse(made: generators.LeaderboardAnswers) -> Outcomes:
        return outcomes_of(
            leaderboard.difference(
                values.ravel(), systems, items, annotators.ravel(), x=0, y=1, level=1 - chosen.significance
            )
            for values, annotators in zip(made.values, made.annotators, strict=True)
        )

    return _simulated_plan(
        generate,
        analyse,
        difference,
        largest=1.0 - score,
        size=2 * n_items,
        chosen=chosen,
        rng=rng,
        protocol="leaderboard",
        estimand="difference of two systems' scores, points of 100",
        n=int(answers.get("n_annotators", 50)),
        settings={"n_items": n_items, "score": score, **answers},
    )


def _simulated_plan(
    generate: Callable[[float], Callable[[int, np.random.Generator], T]],
    analyse: Callable[[T], Outcomes],
    effect: float,
    *,
    largest: float,
    size: int,
    chosen: Options,
    rng: np.random.Generator,
    **named: Any,
) -> Plan:
    level = chosen.significance / chosen.tests
    found = _runs(generate(effect), analyse, size, chosen, rng)
    detectable, warnings = _detectable(
        lambda other, seeded, hooks: float(
            np.mean(_runs(generate(other), analyse, size, hooks, seeded).pvalue < level)
        ),
        largest,
        chosen,
        rng,
    )
    means = _means(found, None)
    return _plan(
        chosen,
        method="monte_carlo",
        unit="annotator",
        effect=effect,
        power=float(np.mean(found.pvalue < level)),
        detectable=detectable,
        width=means["width"],
        labels=float(size),
        warnings=warnings,
        detail={"estimate": means["estimate"], "n_undefined": int(np.isnan(found.pvalue).sum())},
        **named,
    )


def _plan(chosen: Options, *, method: str, power: float, labels: float, settings: dict[str, Any], **named: Any) -> Plan:
    is_simulated = method == "monte_carlo"
    bill, hours = None, None
    if chosen.prices is not None:
        prices = chosen.prices
        bill = study_cost(
            math.ceil(labels - 1e-9),
            pay=prices.pay,
            fee_rate=prices.fee_rate,
            overhead=prices.overhead,
            test_share=prices.test_share,
        )
        hours = None if prices.seconds is None else bill.n_labels * prices.seconds / SECONDS_AN_HOUR
    return Plan(
        method=method,
        power=power,
        power_error=monte_carlo_error(power, chosen.runs) if is_simulated else None,
        runs=chosen.runs if is_simulated else None,
        labels=float(labels),
        cost=bill,
        hours=hours,
        significance=chosen.significance,
        tests=chosen.tests,
        wanted=chosen.wanted,
        settings=settings,
        **named,
    )


def _runs(
    generate: Callable[[int, np.random.Generator], T],
    analyse: Callable[[T], Outcomes],
    size: int,
    chosen: Options,
    rng: np.random.Generator,
) -> Outcomes:
    return simulate(
        generate,
        analyse,
        answers=size,
        runs=chosen.runs,
        rng=rng,
        progress=_told(chosen, 0),
        is_cancelled=chosen.is_cancelled,
    )


def _told(chosen: Options, before: int) -> Callable[[int, int], None] | None:
    """Progress on the whole job, of which the search for a detectable effect is most."""
    told = chosen.progress
    if told is None:
        return None
    total = chosen.runs * (1 + (HALVINGS + 1 if chosen.find_detectable else 0))
    return lambda done, _: told(min(total, before + done), total)


def _detectable(
    power_at: Callable[[float, np.random.Generator, Options], float],
    largest: float,
    chosen: Options,
    rng: np.random.Generator,
) -> tuple[float | None, tuple[Warning, ...]]:
    """The least effect with the power wanted, by halving, every simulation from the same random numbers."""
    if not chosen.find_detectable:
        return None, ()
    seed = int(rng.integers(2**63))

    def at(effect: float, number: int) -> float:
        told = _told(chosen, chosen.runs * (1 + number))
        hooks = replace(chosen, find_detectable=False, progress=told)
        return power_at(effect, np.random.default_rng(seed), hooks)

    if at(largest, 0) < chosen.wanted:
        # Whoever waits for the rest of the search need not.
        if (told := _told(chosen, chosen.runs * (HALVINGS + 1))) is not None:
            told(chosen.runs, chosen.runs)
        return None, (Warning("not_detectable", "warn", {"largest": largest, "wanted": chosen.wanted}),)
    low, high = 0.0, largest
    for number in range(1, HALVINGS + 1):
        middle = (low + high) / 2
        if at(middle, number) >= chosen.wanted:
            high = middle
        else:
            low = middle
    return high, ()


def _spa_values(made: generators.SpaAnswers, mode: str, tau: float | None) -> FloatArray:
    values = spa.combined(made.xy_percent, made.yx_percent) if mode == "recommended" else made.xy_percent / 100
    if tau is None:
        return np.asarray(values)
    # The rule judges each annotator alone, so all runs' annotators are judged in one call.
    flat = (-1, made.xy_percent.shape[2])
    flags = spa.tau_flags(made.xy_percent.reshape(flat), made.yx_percent.reshape(flat), tau=tau)
    incoherent = flags.incoherent.reshape(made.xy_percent.shape[:2])
    return np.where(incoherent[:, :, None], np.nan, values)


def _beside(each: Sequence[Outcomes]) -> Outcomes:
    equivalent = [one.is_equivalent for one in each if one.is_equivalent is not None]
    return Outcomes(
        np.stack([one.estimate for one in each], axis=1),
        np.stack([one.low for one in each], axis=1),
        np.stack([one.high for one in each], axis=1),
        np.stack([one.pvalue for one in each], axis=1),
        np.stack(equivalent, axis=1) if equivalent else None,
    )


def _holm_found(pvalues: FloatArray, chosen: Options) -> BoolArray:
    """Which comparisons each run finds, Holm within the run's family; shape of `pvalues`."""
    size = max(chosen.tests, pvalues.shape[1])
    if size == 1:
        return np.asarray(pvalues < chosen.significance)
    after = [multiplicity.holm(row, size=size) for row in pvalues.tolist()]
    table = np.array(after, dtype=np.float64).reshape(pvalues.shape)
    return np.asarray(table < chosen.significance)


def _means(found: Outcomes, column: int | None) -> dict[str, float | None]:
    chosen = slice(None) if column is None else (slice(None), column)
    return {"estimate": _mean(found.estimate[chosen]), "width": _mean((found.high - found.low)[chosen])}


def _mean(values: FloatArray) -> float | None:
    kept = values[~np.isnan(values)]
    return float(np.mean(kept)) if kept.size else None


def _largest_share(table: FloatArray, here: BoolArray, n: npt.NDArray[np.int64]) -> FloatArray:
    """The share of each row's most frequent value, or 0 where that is under one half (of which the median is none)."""
    ordered = np.sort(np.where(here, table, np.inf), axis=1)
    middle = np.take_along_axis(ordered, np.maximum(0, (n - 1) // 2)[:, None], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((here & (table == middle)).sum(axis=1) / n)


def _cr1(residuals: FloatArray, labels: npt.NDArray[np.int64], count: int) -> FloatArray:
    """`clusters.cr1_variance` of each row."""
    runs, n_rows = residuals.shape
    cells = labels[None, :] + count * np.arange(runs)[:, None]
    sums = np.bincount(cells.ravel(), residuals.ravel(), runs * count).reshape(runs, count)
    return np.asarray(count / (count - 1) * (sums**2).sum(axis=1) / n_rows**2)


def _recruited(n: int, excluded_share: float) -> float:
    if not 0 <= excluded_share < 1:
        raise ValueError(f"excluded_share: {excluded_share!r} is not in 0..1")
    return float(math.ceil(n / (1 - excluded_share) - 1e-9))


def _positive(value: float, name: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}: {value!r} is not a positive number")
    return value
