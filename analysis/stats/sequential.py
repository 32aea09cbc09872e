"""Rules that can stop a pairwise choice study while it runs, and the verdicts that they allow.

A unit's value is 1 if A was chosen, 0 if B was chosen, or a share in between. The published rule (Hoeffding's
bound for a fixed n, applied after every answer) is kept in both readings. It declares a winner between equal
systems much more often than its stated error. The other rules are e-processes. With them a study may check after
every unit and stop for any reason. The probability of an error is at most 1 - level over all checks.

E-processes need that, given all earlier units, each unit has the mean in question. So units are annotators, not
labels, with one value each, in the order in which they claimed their work (see `annotator_means_in_claim_order`).

References: Thorleiksdottir et al. 2022, Dynamic Human Evaluation for Relative Model Comparisons, section 3.2
(paper mode); Robbins 1970 (the mixture), Waudby-Smith and Ramdas 2024 (betting), Howard et al. 2021 (confidence
sequences).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import betting
from analysis.stats.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.betting import ConfidenceSequence
from analysis.stats.results import Estimate, HypothesisTest, Interval, Record, ResultWarning
from analysis.stats.stopping_boundaries import (
    CONCENTRATION,
    READINGS,
    Boundaries,
    anytime_pvalues,
    beta_binomial_boundaries,
    beta_binomial_log_e_values,
    checked_sequential_values,
    confidence_sequence,
    find_boundary_crossings,
    hoeffding_boundaries,
    hoeffding_radius,
    validate_null_and_margin,
)

# Convert labels to the units of a sequential rule: annotators in the order of their claims.


# The value of a label that is missing from a settled batch.
MISSING = 0.5


@dataclass(frozen=True, slots=True)
class AnnotatorUnits(Record):
    """The units of a sequential rule: `values` (n,), one per annotator, in the order of claims.

    `n_labels` (n,) counts the labels of each. `n_waiting` counts finished claims after one that is still open.
    `n_missing` counts labels of finished claims that were never given; they count as .5. `n_ignored`
    counts claims of annotators who returned.
    """

    values: FloatArray
    annotators: tuple[object, ...]
    claims: IntArray
    n_labels: IntArray
    n_waiting: int
    n_missing: int
    n_ignored: int


def annotator_means_in_claim_order(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    claims: npt.ArrayLike,
    *,
    is_settled: npt.ArrayLike | None = None,
) -> AnnotatorUnits:
    """Convert labels to units: one mean per annotator, in the order in which batches were claimed.

    A row is a planned label: 1 for A, 0 for B, between for a share or tie, and NaN if it was not given. `claims` has
    the number of each row's claim, a whole number per batch, and `is_settled` says whether the batch was submitted or
    released. A label missing from a settled batch has the value .5, because leaving it out would drop annotators who
    quit after losing. If an annotator claims again, only the first batch counts. The units end at the first open claim:
    if later ones counted, fast annotators would enter first. Two annotators who share a claim raise ValueError with the
    row.

    >>> units = annotator_means_in_claim_order([1, 0, 1, 1, np.nan], ["x", "x", "y", "z", "z"], [1, 1, 3, 2, 2])
    >>> units.values.tolist(), units.annotators
    ([0.5, 0.75, 1.0], ('x', 'z', 'y'))
    """
    labels = vector(values, "values")
    validate_within_bounds(labels, (0.0, 1.0), "values")
    annotator_codes, _ = label_codes(np.asarray(annotators), "annotators", len(labels))
    batch, n_claims = label_codes(np.asarray(claims), "claims", len(labels))
    settled = np.ones(len(labels), dtype=bool) if is_settled is None else np.asarray(is_settled, dtype=bool)
    if settled.shape != labels.shape:
        raise ValueError(f"is_settled: expected {len(labels)} values, got an array of shape {settled.shape}")
    owner = np.zeros(n_claims, dtype=np.int64)
    owner[batch] = annotator_codes
    shared = np.flatnonzero(owner[batch] != annotator_codes)
    if len(shared):
        raise ValueError(f"claims: row {int(shared[0])} has a claim that is also another annotator's")
    is_open = np.bincount(batch, weights=~settled, minlength=n_claims) > 0
    prefix = int(np.argmax(is_open)) if is_open.any() else n_claims
    n_waiting = int(np.sum(~is_open[prefix:]))

    order = np.arange(n_claims)
    claim_places = np.full(int(annotator_codes.max()) + 1 if len(annotator_codes) else 0, n_claims)
    np.minimum.at(claim_places, owner, order)
    counted = claim_places[owner] == order
    entered = np.sort(claim_places[claim_places < prefix])
    rows = counted[batch] & (claim_places[annotator_codes] < prefix)
    is_observed = ~np.isnan(labels)
    filled = np.where(is_observed, labels, MISSING)
    sizes = np.bincount(claim_places[annotator_codes[rows]], minlength=n_claims)[entered]
    sums = group_sums(claim_places[annotator_codes[rows]], filled[rows], n_claims)[entered]
    names = np.empty(n_claims, dtype=object)
    names[batch] = np.asarray(annotators)
    numbers = np.zeros(n_claims, dtype=np.int64)
    numbers[batch] = np.asarray(claims, dtype=np.int64)
    return AnnotatorUnits(
        values=sums / sizes,
        annotators=tuple(names[entered].tolist()),
        claims=numbers[entered],
        n_labels=np.asarray(sizes, dtype=np.int64),
        n_waiting=n_waiting,
        n_missing=int(np.sum(rows & ~is_observed)),
        n_ignored=int(np.sum(~counted[:prefix])),
    )


# The verdict after every unit.


VERDICTS = (
    "a_better",
    "b_better",
    "equivalent",
    "different_but_trivial",
    "inconclusive",
    "budget_exhausted",
)
STOPPING_VERDICTS = VERDICTS[:4]


@dataclass(frozen=True, slots=True)
class SequentialResult(Record):
    """The current state of a sequential comparison.

    `estimate` describes the units up to the crossing (all units without one): mean, confidence sequence and anytime
    p-value. `verdict` is one of VERDICTS, or None without a conclusion. `stopped_at` is the number of units at the
    crossing. `n_overrun` units came later, or after the budget, and do not count. `log_e`, `pvalues` (n,) and
    `sequence` continue to the last unit, for the plot.
    """

    estimate: Estimate
    verdict: str | None
    stopped_at: int | None
    n_overrun: int
    log_e: FloatArray
    pvalues: FloatArray
    sequence: ConfidenceSequence


@dataclass(frozen=True, slots=True)
class RunningShare(Record):
    """The share of A after each of n units, and the bounds of its rule there; `share`, `low` and `high` (n,)."""

    share: FloatArray
    low: FloatArray
    high: FloatArray

    def thinned(self, most: int) -> list[tuple[int, float, float, float]]:
        """Return (n, share, low, high) after at most `most` units, evenly spaced, with the last one."""
        n = len(self.share)
        units = sorted({*range(0, n, max(1, -(-n // max(1, most - 1)))), n - 1}) if n else []
        return [(i + 1, float(self.share[i]), float(self.low[i]), float(self.high[i])) for i in units]


def running_mean(values: npt.ArrayLike) -> FloatArray:
    """Return the mean of the values so far, after each."""
    series = vector(values, "values")
    return np.asarray(np.cumsum(series) / np.arange(1, len(series) + 1))


def hoeffding_running_share(answers: npt.ArrayLike, *, delta: float) -> RunningShare:
    """Return the running share of A with the paper's bound after each answer, as its Figure 1 draws them.

    `answers` are as for `hoeffding_decision`: the decision is where `low` is above or `high` below one half.

    >>> running = hoeffding_running_share([1] * 30, delta=0.001)
    >>> int(np.argmax(running.low > 0.5)) + 1
    14
    """
    series = vector(answers, "answers")
    share = running_mean(series[~np.isnan(series)])
    radius = hoeffding_radius(np.arange(1, len(share) + 1), delta)
    return RunningShare(share, np.maximum(0.0, share - radius), np.minimum(1.0, share + radius))


def sequential_test(
    values: npt.ArrayLike,
    *,
    process: str = "betting",
    null: float = 0.5,
    level: float = 0.95,
    margin: float | None = None,
    budget: int | None = None,
    stops: tuple[str, ...] = STOPPING_VERDICTS,
    annotators: npt.ArrayLike | None = None,
    concentration: float = CONCENTRATION,
) -> SequentialResult:
    """Test a pairwise choice sequentially: which system is better, or equivalence, with a verdict after every unit.

    `values` has one value in 0..1 per unit, in the order in which units enter; "beta_binomial" (with the parameter
    `concentration` of its Beta prior) needs 0/1 labels, one per annotator. `margin` is the equivalence margin and
    `stops` the verdicts that end the study, both set before the first unit; `annotators` serves to check that each gave
    one value. a_better and b_better mean that the e-process against `null` has reached 1 / (1 - level), equivalent that
    the confidence sequence is within null -/+ margin and contains the null, different_but_trivial that it is within,
    without the null, budget_exhausted that there are `budget` units without one of these, and inconclusive that there
    is no decision yet. A false difference and a false equivalence each have probability at most 1 - level. The mean at
    a crossing overestimates the preference (warning `optional_stopping`); the interval does not. The test's statistic
    is the greatest log e so far. Constant values are allowed, because no variance is estimated. An empty confidence
    sequence (the units drift) has the status `failed` and no verdict.

    >>> result = sequential_test([1] * 20, process="beta_binomial")
    >>> result.verdict, result.stopped_at, result.n_overrun, round(result.estimate.pvalue, 4)
    ('a_better', 15, 5, 0.0433)
    >>> sequential_test([0.6, 0.4, 0.5]).verdict
    'inconclusive'
    """
    validate_level(level)
    validate_null_and_margin(null, margin)
    unknown = sorted(set(stops) - set(STOPPING_VERDICTS))
    if unknown:
        raise ValueError(f"stops: {unknown[0]!r} is not one of {', '.join(STOPPING_VERDICTS)}")
    if budget is not None and budget < 1:
        raise ValueError(f"budget: {budget} is less than one unit")
    series = checked_sequential_values(values, process)
    if annotators is not None:
        _, n_annotators = label_codes(np.asarray(annotators), "annotators", len(series))
        if n_annotators < len(series):
            raise ValueError("annotators: someone gave more than one value; make one unit of them first")
    if process == "betting":
        log_e = betting.log_wealth(series, null, level=level)
    else:
        counts = np.arange(1, len(series) + 1)
        log_e = beta_binomial_log_e_values(np.cumsum(series), counts, null=null, concentration=concentration)
    sequence = confidence_sequence(series, process=process, level=level, concentration=concentration)
    pvalues = anytime_pvalues(log_e)
    is_excluded = np.maximum.accumulate(log_e) >= math.log(1 / (1 - level)) if len(log_e) else np.zeros(0, dtype=bool)
    sequence = _sharpened(sequence, is_excluded, null)
    verdicts = _verdicts(sequence, is_excluded, null, margin)
    within = verdicts[: budget if budget is not None else len(verdicts)]
    stopping = np.flatnonzero(np.isin(within, [VERDICTS.index(word) for word in stops]))
    drift_at = sequence.drift_at if sequence.drift_at is not None and sequence.drift_at <= len(within) else None
    stopped_at = int(stopping[0]) + 1 if len(stopping) else None
    n = stopped_at or len(within)
    common: dict[str, Any] = {
        "analysis": "choice.sequential",
        "estimand": "annotator-weighted mean of P[x chosen] over the items shown",
        "unit": "annotator",
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
            interval=sequence.interval_after(n),
            warnings=(ResultWarning("drift", "block", {"at": drift_at}),),
            **common,
        )
    else:
        verdict = VERDICTS[int(verdicts[n - 1])]
        if verdict == "inconclusive" and budget is not None and n >= budget:
            verdict = "budget_exhausted"
        estimate = Estimate(
            estimate=float(np.mean(series[:n])),
            interval=sequence.interval_after(n),
            test=HypothesisTest(
                name=f"{process}_e_process",
                null=null,
                statistic=float(np.max(log_e[:n])),
                pvalue=float(pvalues[n - 1]),
            ),
            warnings=() if stopped_at is None else (ResultWarning("optional_stopping", "info", {"at": stopped_at}),),
            detail={"verdict": verdict, "n_overrun": len(series) - n},
            **common,
        )
    return SequentialResult(estimate, verdict, stopped_at, len(series) - n, log_e, pvalues, sequence)


def _sharpened(sequence: ConfidenceSequence, is_excluded: BoolArray, null: float) -> ConfidenceSequence:
    """Return the sequence with its end at the null if the null was refuted but is within the last step of a grid."""
    reach = 1.5 / (betting.GRID - 1) if sequence.method == "betting" else 1e-9
    is_above, is_below = sequence.low > null - reach, sequence.high < null + reach
    return replace(
        sequence,
        low=np.where(is_excluded & is_above, np.maximum(sequence.low, null), sequence.low),
        high=np.where(is_excluded & is_below, np.minimum(sequence.high, null), sequence.high),
    )


def _verdicts(sequence: ConfidenceSequence, is_excluded: BoolArray, null: float, margin: float | None) -> IntArray:
    """Return the place in VERDICTS of the verdict after each unit."""
    verdicts = np.full(len(is_excluded), VERDICTS.index("inconclusive"))
    verdicts[is_excluded & (sequence.low >= null)] = VERDICTS.index("a_better")
    verdicts[is_excluded & (sequence.high <= null)] = VERDICTS.index("b_better")
    if margin is not None:
        is_small = (sequence.low > null - margin) & (sequence.high < null + margin)
        verdicts[is_small & ~is_excluded] = VERDICTS.index("equivalent")
        verdicts[is_small & is_excluded] = VERDICTS.index("different_but_trivial")
    return verdicts


# The expected number of further units.


# Number of units that `predict_remaining_units` simulates if no budget ends the study.
HORIZON = 5000
RUNS = 500


@dataclass(frozen=True, slots=True)
class RemainingUnits(Record):
    """The number of further units until the rule stops, in `runs` simulated futures of at most `horizon` units.

    `median` and `high` (the 90 % quantile) are None if that share of the futures does not stop within the horizon.
    """

    median: int | None
    high: int | None
    share_stopping: float
    horizon: int
    runs: int
    unit: str


def predict_remaining_units(
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
) -> RemainingUnits:
    """Predict the number of further units that the rule needs if the future is like the past.

    The result is the median and the 90 % quantile over `runs` simulated futures, for display only and not for
    decisions. `values` are as in `sequential_test`, and `concentration` is the parameter of the Beta prior, for
    "beta_binomial". Each future draws the distribution of a unit from its Bayesian bootstrap posterior with one
    pseudo-unit at 0 and one at 1 (for 0/1 labels exactly Beta(1 + S, 1 + n - S)). `budget` is the largest number of
    units in the study; without one, the simulation ends after 5,000 further units.

    >>> left = predict_remaining_units([1, 1, 0, 1] * 5, process="beta_binomial", rng=np.random.default_rng(0))
    >>> left.median < left.high
    True
    """
    validate_level(level)
    validate_null_and_margin(null, margin)
    if runs < 1:
        raise ValueError(f"runs: {runs} is less than 1")
    series = checked_sequential_values(values, process)
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
    n_further = np.sort(np.maximum(0.0, stops - n))

    def quantile(share: float) -> int | None:
        value = float(n_further[math.ceil(share * runs) - 1])
        return int(value) if math.isfinite(value) else None

    share = float(np.mean(np.isfinite(n_further)))
    return RemainingUnits(quantile(0.5), quantile(0.9), share, horizon, runs, "annotator")


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


# The stopping decision of the paper.


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
