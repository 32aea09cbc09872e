"""Rules that may stop a two-choice comparison while it runs, and what they may conclude.

A unit's value is 1 where A was chosen, 0 where B was, or a share in between. The published rule (Hoeffding's bound for a
fixed n, applied after every answer) is kept as it is, in both readings; it decides between two equal systems far more
often than it says. The others are e-processes: wealth that a fair game cannot be expected to grow, so that one may look
after every unit, stop for any reason, and still be wrong with probability at most 1 - level, once for all looks.

What they need is that, given all earlier units, each unit's mean is the one asked about. So units are annotators, not
labels, one value each, in the order in which they claimed their work (see `annotator_units`).

Sources: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, section 3.2 (paper mode);
Robbins 1970 (the mixture), Waudby-Smith and Ramdas 2024 (betting), Howard et al. 2021 (confidence sequences).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import betting
from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    codes,
    refuse_level,
    refuse_outside,
    totals,
    vector,
)
from analysis.stats.betting import ConfidenceSequence
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, Warning

PROCESSES = ("beta_binomial", "betting")
READINGS = ("first", "stays")
RETURNING = ("first", "last")
VERDICTS = (
    "a_better",
    "b_better",
    "equivalent",
    "different_but_trivial",
    "inconclusive",
    "budget_exhausted",
)
STOPS = VERDICTS[:4]
# Beta(10, 10) suits effects of some ten points; with fewer than five expected, 50 decides sooner.
CONCENTRATION = 10.0
# How far `expected_remaining` looks ahead where no budget ends the study.
HORIZON = 5000
RUNS = 500
BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Boundaries(Record):
    """A rule for 0/1 values as what it needs after n of them, n = 1..n_max; all arrays have shape (n_max,).

    A wins with at least `upper` successes (n + 1 where none is enough), B with at most `lower` (-1 where none). With a
    margin, `above_low` is the least number that excludes every mean up to null - margin, and `below_high` the greatest
    that excludes every mean from null + margin on; both at some time: equivalent. `name` says what rule it is.
    """

    upper: IntArray
    lower: IntArray
    above_low: IntArray | None = None
    below_high: IntArray | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Crossings(Record):
    """Where each run decided: `n` (runs,) answers, 0 where it did not; `winner` 1 for A, -1 for B, 0 for neither."""

    n: IntArray
    winner: IntArray


@dataclass(frozen=True, slots=True)
class Units(Record):
    """What a sequential rule takes in: `values` (n,), one an annotator, in claim order.

    `n_labels` (n,) counts the labels in each. `n_waiting` finished claims stand behind one that is still open,
    `n_missing` labels of finished claims were never given and count as the declared value, `n_ignored` claims belong to
    annotators who came back.
    """

    values: FloatArray
    annotators: tuple[object, ...]
    claims: IntArray
    n_labels: IntArray
    n_waiting: int
    n_missing: int
    n_ignored: int


@dataclass(frozen=True, slots=True)
class SequentialResult(Record):
    """A sequential comparison as far as it has come.

    `estimate` describes the units up to the crossing (all, if none): their mean, the confidence sequence there, the
    anytime p-value. `verdict` is one of VERDICTS, None where there is nothing to conclude from. `stopped_at` is the
    number of units at the crossing; `n_overrun` units came after it, or after the budget, and change nothing. `log_e`
    and `pvalues` (n,) and `sequence` go on to the last unit, for the plot.
    """

    estimate: Estimate
    verdict: str | None
    stopped_at: int | None
    n_overrun: int
    log_e: FloatArray
    pvalues: FloatArray
    sequence: ConfidenceSequence


@dataclass(frozen=True, slots=True)
class Remaining(Record):
    """How many more units until the rule stops, in `runs` simulated futures of at most `horizon` units.

    `median` and `high` (the 90 % quantile) are None where that share of the futures does not stop by the horizon.
    """

    median: int | None
    high: int | None
    share_stopping: float
    horizon: int
    runs: int
    unit: str


def hoeffding_radius(n: npt.ArrayLike, delta: float) -> FloatArray:
    """t = sqrt(-ln(delta) / (2 n)): the mean of n values in 0..1 exceeds its expectation by t with probability <= delta.

    True for one n that was fixed beforehand, and one side. Source: the paper's equation 4.

    >>> round(float(hoeffding_radius(100, 0.01)), 6)
    0.151743
    """
    refuse_level(1 - delta)
    return np.asarray(np.sqrt(-math.log(delta) / (2 * np.asarray(n, dtype=np.float64))))


def hoeffding_boundaries(n_max: int, *, delta: float, every: int = 1, sides: str = "both") -> Boundaries:
    """The paper's rule: A wins where mean - t > .5, B where mean + t < .5, looked at after every `every`-th answer.

    `sides` "a" tests the lower bound alone, as the paper's simulation does.

    >>> rule = hoeffding_boundaries(100, delta=0.01)
    >>> int(np.argmax(rule.upper <= np.arange(1, 101))) + 1  # unanimous answers that it takes
    10
    """
    if sides not in ("both", "a"):
        raise ValueError(f"sides: {sides!r} is neither both nor a")
    if n_max < 1 or every < 1:
        raise ValueError(f"n_max: {n_max} answers, looked at every {every}, are no rule")
    n = np.arange(1, n_max + 1)
    upper = np.floor(n * (0.5 + hoeffding_radius(n, delta))).astype(np.int64) + 1
    upper = np.where((upper <= n) & (n % every == 0), upper, n + 1)
    lower = n - upper if sides == "both" else np.full(n_max, -1)
    return Boundaries(upper, lower, name=f"hoeffding, delta {delta:g}, every {every}, sides {sides}")


def beta_binomial_boundaries(
    n_max: int,
    *,
    level: float = 0.95,
    null: float = 0.5,
    margin: float | None = None,
    concentration: float = CONCENTRATION,
) -> Boundaries:
    """The beta-binomial rule as boundaries on the number of successes after 1..n_max labels.

    >>> rule = beta_binomial_boundaries(200, level=0.95)
    >>> int(np.argmax(rule.upper <= np.arange(1, 201))) + 1, int(rule.upper[99])
    (15, 66)
    """
    refuse_level(level)
    _refuse_null(null, margin)
    upper = _least_successes(n_max, null, level, concentration)
    n = np.arange(1, n_max + 1)
    lower = n - _least_successes(n_max, 1 - null, level, concentration)
    name = f"beta_binomial, level {level:g}, null {null:g}, margin {margin}, concentration {concentration:g}"
    if margin is None:
        return Boundaries(upper, lower, name=name)
    return Boundaries(
        upper,
        lower,
        _least_successes(n_max, null - margin, level, concentration),
        n - _least_successes(n_max, 1 - null - margin, level, concentration),
        name,
    )


def crossings(answers: npt.ArrayLike, boundaries: Boundaries, *, reading: str = "first") -> Crossings:
    """Where series of 0/1 answers cross the boundaries.

    `answers` has shape (n,) or (runs, n), n at most n_max. Reading "first": the first n at which a boundary is crossed,
    which is what a study that runs can do. "stays": the first n from which on the same boundary remains crossed to the
    end of the data, which only hindsight knows; it is what the paper's tables hold.

    >>> found = crossings([1] * 12 + [0] * 12, hoeffding_boundaries(24, delta=0.01))
    >>> found.n.tolist(), found.winner.tolist()
    ([10], [1])
    """
    if reading not in READINGS:
        raise ValueError(f"reading: {reading!r} is none of {', '.join(READINGS)}")
    series = np.atleast_2d(np.asarray(answers))
    if series.ndim != 2 or series.shape[1] > len(boundaries.upper):
        raise ValueError(f"answers: shape {series.shape}, where the boundaries are for {len(boundaries.upper)} answers")
    if series.dtype != np.bool_ and not np.all((series == 0) | (series == 1)):
        raise ValueError("answers: only 0 and 1 are counted")
    n = series.shape[1]
    if n == 0:
        none = np.zeros(len(series), dtype=np.int64)
        return Crossings(none, none)
    successes = np.cumsum(series, axis=1, dtype=np.int32)
    is_a = successes >= boundaries.upper[:n].astype(np.int32)
    is_b = successes <= boundaries.lower[:n].astype(np.int32)
    if reading == "first":
        at_a, at_b = _first_true(is_a), _first_true(is_b)
    else:
        at_a, at_b = _start_of_last_run(is_a), _start_of_last_run(is_b)
    found = np.minimum(at_a, at_b)
    winner = np.where(at_a < at_b, 1, -1)
    return Crossings(np.where(found > n, 0, found), np.where(found > n, 0, winner))


def hoeffding_decision(
    answers: npt.ArrayLike,
    *,
    delta: float = 0.01,
    reading: str = "first",
    analysis: str = "choice.hoeffding",
    unit: str = "item",
) -> Estimate:
    """The paper's decision on one series of final answers (1: A chosen), in the order of the items.

    `answers` has shape (n,), NaN (an item without a majority) is left out. The estimate is the share of A at the
    decision, over all answers where there is none; the interval is mean -/+ t there, its level 1 - 2 delta for an n
    fixed beforehand. detail: `winner` ("a", "b" or None), `n_decision`. Warning `fixed_n_bound` (block): the bound does
    not hold at an n that the data chose; with `stays` also `hindsight`. There is no test.

    Source: section 3.2; "stays" is what the released code computes.

    >>> result = hoeffding_decision([1] * 30, delta=0.001)
    >>> result.detail["winner"], result.n
    ('a', 14)
    """
    series = vector(answers, "answers")
    kept = series[~np.isnan(series)]
    settings = {"delta": delta, "reading": reading}
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "share of items on which A was chosen",
        "unit": unit,
        "mode": "paper",
        "settings": settings,
    }
    refuse_level(1 - delta)
    if reading not in READINGS:
        raise ValueError(f"reading: {reading!r} is none of {', '.join(READINGS)}")
    if len(kept) == 0:
        return Estimate(n=0, status="no_data", reason="no answer to analyse", **common)
    found = crossings(kept, hoeffding_boundaries(len(kept), delta=delta), reading=reading)
    n, winner = int(found.n[0]), int(found.winner[0])
    used = n or len(kept)
    mean, radius = float(np.mean(kept[:used])), float(hoeffding_radius(used, delta))
    low, high = mean - radius, mean + radius
    warnings = [Warning("fixed_n_bound", "block", {"delta": delta})]
    if reading == "stays":
        warnings.append(Warning("hindsight", "block", {"n_answers": len(kept)}))
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
            "n_answers": len(kept),
            "n_missing": len(series) - len(kept),
        },
        **common,
    )


def log_e_beta_binomial(
    successes: npt.ArrayLike, n: npt.ArrayLike, *, null: npt.ArrayLike = 0.5, concentration: float = CONCENTRATION
) -> FloatArray:
    """The logarithm of the beta-binomial mixture e-process against "each label is a success with probability `null`".

    log B(a + S, a + n - S) - log B(a, a) - S log(null) - (n - S) log(1 - null), a = `concentration`: the likelihood
    under a Beta(a, a) mixture over that under the null. The arguments broadcast. 0 at n = 0. Only for labels that are
    independent: one an annotator.

    Source: Robbins 1970, Statistical methods related to the law of the iterated logarithm; Ville 1939.

    >>> round(float(log_e_beta_binomial(130, 200)), 6)
    7.114851
    """
    k, size, m = (np.asarray(value, dtype=np.float64) for value in (successes, n, null))
    if not concentration > 0:
        raise ValueError(f"concentration: {concentration!r} is not a positive number")
    if np.any((k < 0) | (k > size)):
        raise ValueError("successes: not in 0..n")
    if np.any((m < 0) | (m > 1)):
        raise ValueError("null: outside 0..1")
    return np.asarray(
        _log_mixture(k, size, concentration) - special.xlogy(k, m) - special.xlog1py(size - k, -m), dtype=np.float64
    )


def beta_binomial_interval(
    successes: npt.ArrayLike, n: npt.ArrayLike, *, level: float = 0.95, concentration: float = CONCENTRATION
) -> tuple[FloatArray, FloatArray]:
    """The nulls that the beta-binomial e-process has not refuted at this n: the ends of an interval around S / n.

    The arguments broadcast to one shape, that of both results. log e is convex in the null, so there is one root on
    each side; the lower end is 0 without a success, the upper 1 without a failure. `confidence_sequence` intersects
    these over n.

    >>> low, high = beta_binomial_interval(60, 100, concentration=1)
    >>> round(float(low), 6), round(float(high), 6)
    (0.440774, 0.746036)
    """
    refuse_level(level)
    k, size = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64))
    threshold = math.log(1 / (1 - level))
    centre = np.divide(k, size, out=np.full(k.shape, 0.5), where=size > 0)

    # log e = mixture - S log(null) - (n - S) log(1 - null), and only the second part varies along the search.
    ceiling = _log_mixture(k, size, concentration) - threshold
    # Bisection, both ends at once, from a refuted point (or the edge of 0..1) towards the share, which never is.
    outside = np.stack([np.zeros(k.shape), np.ones(k.shape)])
    inside = np.stack([centre, centre])
    for _ in range(BISECTIONS):
        middle = (outside + inside) / 2
        refuted = special.xlogy(k, middle) + special.xlog1py(size - k, -middle) <= ceiling
        outside, inside = np.where(refuted, middle, outside), np.where(refuted, inside, middle)
    return np.where(k > 0, outside[0], 0.0), np.where(k < size, outside[1], 1.0)


def confidence_sequence(
    values: npt.ArrayLike, *, process: str = "betting", level: float = 0.95, concentration: float = CONCENTRATION
) -> ConfidenceSequence:
    """The intervals after each unit that all cover the mean at once with probability `level`, intersected as they go.

    `values` has shape (n,) in the order in which units enter: 0/1 labels for "beta_binomial", 0..1 for "betting".

    >>> sequence = confidence_sequence([1, 0, 1, 1] * 25, process="beta_binomial")
    >>> round(float(sequence.low[-1]), 4), round(float(sequence.high[-1]), 4)
    (0.5823, 0.8745)
    """
    refuse_level(level)
    series = _series(values, process)
    if process == "betting":
        return betting.confidence_sequence(series, level=level)
    n = np.arange(1, len(series) + 1)
    low, high = beta_binomial_interval(np.cumsum(series), n, level=level, concentration=concentration)
    low, high = np.maximum.accumulate(low), np.minimum.accumulate(high)
    empty = np.flatnonzero(low > high)
    if len(empty) == 0:
        return ConfidenceSequence(level, low, high, "beta_binomial")
    last = int(empty[0])
    low[last:], high[last:] = low[last - 1], high[last - 1]
    return ConfidenceSequence(level, low, high, "beta_binomial", last + 1)


def anytime_pvalues(log_e: npt.ArrayLike) -> FloatArray:
    """The p-value after each unit, min(1, 1 / the greatest e so far); shape (n,). It holds at any n, chosen anyhow.

    >>> anytime_pvalues(np.log([0.5, 4.0, 2.0, 10.0])).round(3).tolist()
    [1.0, 0.25, 0.25, 0.1]
    """
    series = vector(log_e, "log_e")
    return np.asarray(np.exp(-np.maximum.accumulate(np.maximum(series, 0.0)))) if len(series) else series


def annotator_units(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    claims: npt.ArrayLike,
    *,
    is_settled: npt.ArrayLike | None = None,
    missing: float = 0.5,
    returning: str = "first",
) -> Units:
    """Labels as the units of a sequential rule: one mean an annotator, in the order in which batches were claimed.

    `values` has shape (n_rows,), one planned label a row: 1 A, 0 B, between for a share or tie, NaN where it was not
    given. `annotators` and `claims` (whole numbers that count claims, one a batch) say whose it is; `is_settled` says
    whether its batch has been submitted or released (all, if None). Units run up to the first claim that is open: were
    finished ones let past it, those who answer fast would be heard first. A label missing from a settled batch counts
    as `missing`, by default one half: left out, those who quit after losing would drop out of the comparison.

    An annotator who claims again: with `returning` "first" only the first batch counts, the rest is left to the final
    analysis; with "last" all batches make one mean at the place of the last, which is valid only if coming back does
    not depend on the answers.

    Raises ValueError, naming the row, for values outside 0..1 and a claim shared by two annotators.

    >>> units = annotator_units([1, 0, 1, 1, np.nan], ["x", "x", "y", "z", "z"], [1, 1, 3, 2, 2])
    >>> units.values.tolist(), units.annotators
    ([0.5, 0.75, 1.0], ('x', 'z', 'y'))
    """
    if returning not in RETURNING:
        raise ValueError(f"returning: {returning!r} is none of {', '.join(RETURNING)}")
    labels = vector(values, "values")
    refuse_outside(labels, (0.0, 1.0), "values")
    if not 0 <= missing <= 1:
        raise ValueError(f"missing: {missing!r} is outside 0..1")
    who, _ = codes(np.asarray(annotators), "annotators", len(labels))
    batch, n_claims = codes(np.asarray(claims), "claims", len(labels))
    settled = np.ones(len(labels), dtype=bool) if is_settled is None else np.asarray(is_settled, dtype=bool)
    if settled.shape != labels.shape:
        raise ValueError(f"is_settled: expected {len(labels)} values, got an array of shape {settled.shape}")
    owner = np.zeros(n_claims, dtype=np.int64)
    owner[batch] = who
    shared = np.flatnonzero(owner[batch] != who)
    if len(shared):
        raise ValueError(f"claims: row {int(shared[0])} has a claim that is also another annotator's")
    is_open = np.bincount(batch, weights=~settled, minlength=n_claims) > 0
    prefix = int(np.argmax(is_open)) if is_open.any() else n_claims
    n_waiting = int(np.sum(~is_open[prefix:]))

    order = np.arange(n_claims)
    place = np.full(int(who.max()) + 1 if len(who) else 0, n_claims if returning == "first" else -1)
    if returning == "first":
        np.minimum.at(place, owner, order)
        counted = place[owner] == order
    else:
        np.maximum.at(place, owner, order)
        counted = np.ones(n_claims, dtype=bool)
    entered = np.sort(place[place < prefix])
    rows = counted[batch] & (place[who] < prefix)
    given = ~np.isnan(labels)
    filled = np.where(given, labels, missing)
    sizes = np.bincount(place[who[rows]], minlength=n_claims)[entered]
    sums = totals(place[who[rows]], filled[rows], n_claims)[entered]
    names = np.empty(n_claims, dtype=object)
    names[batch] = np.asarray(annotators)
    numbers = np.zeros(n_claims, dtype=np.int64)
    numbers[batch] = np.asarray(claims, dtype=np.int64)
    return Units(
        values=sums / sizes,
        annotators=tuple(names[entered].tolist()),
        claims=numbers[entered],
        n_labels=np.asarray(sizes, dtype=np.int64),
        n_waiting=n_waiting,
        n_missing=int(np.sum(rows & ~given)),
        n_ignored=int(np.sum(~counted[:prefix])),
    )


def sequential_test(
    values: npt.ArrayLike,
    *,
    process: str = "betting",
    null: float = 0.5,
    level: float = 0.95,
    margin: float | None = None,
    budget: int | None = None,
    stops: tuple[str, ...] = STOPS,
    annotators: npt.ArrayLike | None = None,
    concentration: float = CONCENTRATION,
    analysis: str = "choice.sequential",
    estimand: str = "annotator-weighted mean of P[A chosen] over the items shown",
    unit: str = "annotator",
) -> SequentialResult:
    """Is A better, is B, do they differ by less than `margin`, or cannot one tell yet: asked after every unit.

    `values` has shape (n,), one value in 0..1 a unit, in the order in which units enter. "beta_binomial" takes 0/1
    labels, only where every annotator gave exactly one (`annotators` (n,) makes sure of it); "betting" takes any values
    in 0..1. a_better or b_better: the e-process against `null` has reached 1 / (1 - level). equivalent: the confidence
    sequence lies within null -/+ margin (open ends), null included. different_but_trivial: it lies there without the
    null. budget_exhausted: `budget` units without one of these; inconclusive: not yet. `stops` says which of them end
    the study. `margin` and `stops` are part of the design, set before the first unit.

    The test's statistic is the greatest log e so far. A false difference, and a false equivalence, each happen with probability at most 1 - level. The mean at a crossing
    overstates the preference (warning `optional_stopping`); the interval does not. A confidence sequence that became
    empty (units drift) is status failed, without a verdict. Constant values are no obstacle: no variance is estimated.

    >>> result = sequential_test([1] * 20, process="beta_binomial")
    >>> result.verdict, result.stopped_at, result.n_overrun, round(result.estimate.pvalue, 4)
    ('a_better', 15, 5, 0.0433)
    >>> sequential_test([0.6, 0.4, 0.5]).verdict
    'inconclusive'
    """
    refuse_level(level)
    _refuse_null(null, margin)
    unknown = sorted(set(stops) - set(STOPS))
    if unknown:
        raise ValueError(f"stops: {unknown[0]!r} is none of {', '.join(STOPS)}")
    if budget is not None and budget < 1:
        raise ValueError(f"budget: {budget} is less than one unit")
    series = _series(values, process)
    if annotators is not None:
        _, n_annotators = codes(np.asarray(annotators), "annotators", len(series))
        if n_annotators < len(series):
            raise ValueError("annotators: someone gave more than one value; make one unit of them first")
    if process == "betting":
        log_e = betting.log_wealth(series, null, level=level)
    else:
        counts = np.arange(1, len(series) + 1)
        log_e = log_e_beta_binomial(np.cumsum(series), counts, null=null, concentration=concentration)
    sequence = confidence_sequence(series, process=process, level=level, concentration=concentration)
    pvalues = anytime_pvalues(log_e)
    is_excluded = np.maximum.accumulate(log_e) >= math.log(1 / (1 - level)) if len(log_e) else np.zeros(0, dtype=bool)
    sequence = _sharpened(sequence, is_excluded, null)
    found = _verdicts(sequence, is_excluded, null, margin)
    within = found[: budget if budget is not None else len(found)]
    stopping = np.flatnonzero(np.isin(within, [VERDICTS.index(word) for word in stops]))
    drift_at = sequence.drift_at if sequence.drift_at is not None and sequence.drift_at <= len(within) else None
    stopped_at = int(stopping[0]) + 1 if len(stopping) else None
    n = stopped_at or len(within)
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": estimand,
        "unit": unit,
        "n": n,
        "n_rows": n,
        "settings": {
            "process": process,
            "null": null,
            "level": level,
            "margin": margin,
            "budget": budget,
            "stops": stops,
            "concentration": concentration if process == "beta_binomial" else None,
        },
    }
    verdict: str | None
    if n == 0:
        verdict, estimate = None, Estimate(status="no_data", reason="no unit has entered yet", **common)
    elif drift_at is not None and (stopped_at is None or stopped_at >= drift_at):
        verdict, stopped_at = None, None
        estimate = Estimate(
            status="failed",
            reason="drift: no mean fits all units so far, so they do not share one",
            estimate=float(np.mean(series[:n])),
            interval=sequence.at(n),
            warnings=(Warning("drift", "block", {"at": drift_at}),),
            **common,
        )
    else:
        verdict = VERDICTS[int(found[n - 1])]
        if verdict == "inconclusive" and budget is not None and n >= budget:
            verdict = "budget_exhausted"
        estimate = Estimate(
            estimate=float(np.mean(series[:n])),
            interval=sequence.at(n),
            test=HypothesisTest(
                name=f"{process}_e_process",
                null=null,
                statistic=float(np.max(log_e[:n])),
                pvalue=float(pvalues[n - 1]),
            ),
            warnings=() if stopped_at is None else (Warning("optional_stopping", "info", {"at": stopped_at}),),
            detail={"verdict": verdict, "n_overrun": len(series) - n},
            **common,
        )
    return SequentialResult(estimate, verdict, stopped_at, len(series) - n, log_e, pvalues, sequence)


def expected_remaining(
    values: npt.ArrayLike,
    *,
    process: str = "betting",
    null: float = 0.5,
    level: float = 0.95,
    margin: float | None = None,
    budget: int | None = None,
    concentration: float = CONCENTRATION,
    runs: int = RUNS,
    rng: np.random.Generator,
    unit: str = "annotator",
) -> Remaining:
    """How many more units the rule will want, if the future resembles the past: for display, never for a decision.

    `values` as in `sequential_test`. Each of `runs` futures draws the distribution of a unit from its Bayesian
    bootstrap posterior with one pseudo-unit at 0 and one at 1 (for 0/1 labels exactly Beta(1 + S, 1 + n - S)), then
    units from it, up to the budget or 5,000 more. Nothing depends on it, so looking at it costs nothing.

    >>> left = expected_remaining([1, 1, 0, 1] * 5, process="beta_binomial", rng=np.random.default_rng(0))
    >>> left.median < left.high
    True
    """
    refuse_level(level)
    _refuse_null(null, margin)
    if runs < 1:
        raise ValueError(f"runs: {runs} is less than 1")
    series = _series(values, process)
    n = len(series)
    horizon = HORIZON if budget is None else max(0, budget - n)
    support, counts = np.unique(np.concatenate([series, [0.0, 1.0]]), return_counts=True)
    weights = rng.standard_gamma(counts.astype(np.float64), size=(runs, len(support)))
    cumulative = np.cumsum(weights, axis=1)
    cumulative /= cumulative[:, -1:]
    if process == "beta_binomial":
        rule = beta_binomial_boundaries(
            n + horizon + 1, level=level, null=null, margin=margin, concentration=concentration
        )
    nulls = [null] if margin is None else [null, null - margin, null + margin]
    threshold = math.log(1 / (1 - level))
    stops = np.empty(runs)
    for run in range(runs):
        future = support[np.searchsorted(cumulative[run], rng.random(horizon))]
        path = np.concatenate([series, future])
        if process == "beta_binomial":
            stops[run] = _stop_on_counts(np.cumsum(path), rule)
        else:
            stops[run] = _stop_on_wealth(betting.log_wealth(path, nulls, level=level), threshold)
    more = np.sort(np.maximum(0.0, stops - n))

    def quantile(share: float) -> int | None:
        found = float(more[math.ceil(share * runs) - 1])
        return int(found) if math.isfinite(found) else None

    return Remaining(quantile(0.5), quantile(0.9), float(np.mean(np.isfinite(more))), horizon, runs, unit)


def selection_lead(effect: float, *, error: float = 0.05) -> int:
    """The lead in wins at which Wald's sequential probability ratio test picks the leader.

    ceil(ln((1 - error) / error) / ln((1 + 2 effect) / (1 - 2 effect))): the worse of two systems at .5 -/+ effect is
    picked with probability at most `error`. A rule of selection, not a test: between equal systems it tosses a coin.

    >>> selection_lead(0.05)
    15
    """
    if not 0 < effect < 0.5:
        raise ValueError(f"effect: {effect!r} is not strictly between 0 and .5")
    if not 0 < error < 0.5:
        raise ValueError(f"error: {error!r} is not strictly between 0 and .5")
    return math.ceil(math.log((1 - error) / error) / math.log((1 + 2 * effect) / (1 - 2 * effect)))


def _log_mixture(successes: FloatArray, n: FloatArray, concentration: float) -> FloatArray:
    """The log-probability of one order of the labels, averaged over the Beta prior of their mean."""
    of_all = special.betaln(concentration + successes, concentration + n - successes)
    return np.asarray(of_all - special.betaln(concentration, concentration))


def _series(values: npt.ArrayLike, process: str) -> FloatArray:
    if process not in PROCESSES:
        raise ValueError(f"process: {process!r} is none of {', '.join(PROCESSES)}")
    series = vector(values, "values")
    missing = np.flatnonzero(np.isnan(series))
    if len(missing):
        raise ValueError(f"values: row {int(missing[0])} is missing; a series has no gaps, see annotator_units")
    refuse_outside(series, (0.0, 1.0), "values")
    broken = np.flatnonzero((series != 0) & (series != 1))
    if process == "beta_binomial" and len(broken):
        raise ValueError(f"values: row {int(broken[0])} is neither 0 nor 1; the betting process takes shares")
    return series


def _refuse_null(null: float, margin: float | None) -> None:
    if not 0 < null < 1:
        raise ValueError(f"null: {null!r} is not strictly between 0 and 1")
    if margin is not None and not 0 < margin < min(null, 1 - null):
        raise ValueError(f"margin: {margin!r} does not lie between 0 and the edge of the scale")


def _least_successes(n_max: int, null: float, level: float, concentration: float) -> IntArray:
    """The least S above n null that refutes the null after n labels, n + 1 where none does; shape (n_max,)."""
    if n_max < 1:
        raise ValueError(f"n_max: {n_max} labels are no rule")
    threshold = math.log(1 / (1 - level))
    n = np.arange(1, n_max + 1)
    # log e is at most 0 where S = n null, convex in S, and so crosses once above it.
    within, beyond = np.floor(n * null).astype(np.int64), n + 1
    while np.any(beyond - within > 1):
        middle = (within + beyond) // 2
        refuted = log_e_beta_binomial(middle, n, null=null, concentration=concentration) >= threshold
        within, beyond = np.where(refuted, within, middle), np.where(refuted, middle, beyond)
    return beyond


def _first_true(flags: BoolArray) -> IntArray:
    """The number of columns up to and with the first true one, one more than there are where none is."""
    at = np.argmax(flags, axis=1)
    is_none = (at == 0) & ~flags[:, 0]
    return np.asarray(np.where(is_none, flags.shape[1], at) + 1, dtype=np.int64)


def _start_of_last_run(flags: BoolArray) -> IntArray:
    """The column (from 1) from which on all are true; one more than there are where the last is not."""
    length = np.argmin(flags[:, ::-1], axis=1)
    is_all = (length == 0) & flags[:, -1]
    return np.asarray(flags.shape[1] - np.where(is_all, flags.shape[1], length) + 1, dtype=np.int64)


def _sharpened(sequence: ConfidenceSequence, is_excluded: BoolArray, null: float) -> ConfidenceSequence:
    """The same sequence, ending at the null where that was refuted itself but lies within the last step of a grid."""
    reach = 1.5 / (betting.GRID - 1) if sequence.method == "betting" else 1e-9
    is_above, is_below = sequence.low > null - reach, sequence.high < null + reach
    return replace(
        sequence,
        low=np.where(is_excluded & is_above, np.maximum(sequence.low, null), sequence.low),
        high=np.where(is_excluded & is_below, np.minimum(sequence.high, null), sequence.high),
    )


def _verdicts(sequence: ConfidenceSequence, is_excluded: BoolArray, null: float, margin: float | None) -> IntArray:
    """The place in VERDICTS of what can be said after each unit."""
    found = np.full(len(is_excluded), VERDICTS.index("inconclusive"))
    found[is_excluded & (sequence.low >= null)] = VERDICTS.index("a_better")
    found[is_excluded & (sequence.high <= null)] = VERDICTS.index("b_better")
    if margin is not None:
        is_small = (sequence.low > null - margin) & (sequence.high < null + margin)
        found[is_small & ~is_excluded] = VERDICTS.index("equivalent")
        found[is_small & is_excluded] = VERDICTS.index("different_but_trivial")
    return found


def _stop_on_counts(successes: FloatArray, rule: Boundaries) -> float:
    n = len(successes)
    stop = _first(np.asarray((successes >= rule.upper[:n]) | (successes <= rule.lower[:n])))
    if rule.above_low is None or rule.below_high is None:
        return stop
    small = max(_first(successes >= rule.above_low[:n]), _first(successes <= rule.below_high[:n]))
    return min(stop, small)


def _stop_on_wealth(log_e: FloatArray, threshold: float) -> float:
    crossed = [_first(row >= threshold) for row in log_e]
    return crossed[0] if len(crossed) == 1 else min(crossed[0], max(crossed[1:]))


def _first(flags: BoolArray) -> float:
    return float(np.argmax(flags)) + 1 if len(flags) and flags.any() else math.inf
