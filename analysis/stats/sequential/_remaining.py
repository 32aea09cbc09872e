"""The expected number of further units."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats import betting
from analysis.stats.arrays import BoolArray, FloatArray, validate_level
from analysis.stats.results import Record
from analysis.stats.sequential._boundaries import Boundaries, beta_binomial_boundaries
from analysis.stats.sequential._processes import CONCENTRATION, checked_sequential_values, validate_null_and_margin

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
