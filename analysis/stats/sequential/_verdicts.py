"""The verdict after every unit."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import betting
from analysis.stats.arrays import BoolArray, FloatArray, IntArray, label_codes, validate_level
from analysis.stats.betting import ConfidenceSequence
from analysis.stats.results import Estimate, HypothesisTest, Record, ResultWarning
from analysis.stats.sequential._processes import (
    CONCENTRATION,
    anytime_pvalues,
    beta_binomial_log_e_values,
    checked_sequential_values,
    confidence_sequence,
    validate_null_and_margin,
)

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
