"""Strengths over resampled annotators, or over resampled labels if the labels are independent."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, validate_level
from analysis.stats.bootstrap import estimate_with_percentile_interval, multinomial_weights
from analysis.stats.clusters import cluster_warnings
from analysis.stats.davidson._comparison import (
    PairedComparison,
    fit_bradley_terry_to_counts,
    fit_davidson_to_counts,
    strength_difference_and_fields,
)
from analysis.stats.davidson._labels import PairedComparisonLabels
from analysis.stats.davidson._model import PairCounts, checked_square_counts, fit_parameters_by_table
from analysis.stats.results import Estimate, Record

RESAMPLES = 999
# Number of counts in memory at once.
CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class ResampledComparison(Record):
    """A model of K systems that was fitted again to every resample.

    `strengths` (sum 0) has one Estimate per system, `tie` is that of nu, both with percentile intervals. `draws` (B, K)
    are the strengths in each resample, NaN if they had no maximum. They can be passed to `ranks.rank_confidence_sets`.
    `tie_draws` (B,) is nu in each resample, 0 if it has no ties.
    """

    status: str
    reason: str
    strengths: tuple[Estimate, ...]
    tie: Estimate | None
    draws: FloatArray
    tie_draws: FloatArray | None
    level: float
    _common: dict[str, Any]

    def difference(self, x: int, y: int) -> Estimate:
        """Return the strength of system `x` minus that of `y`, with the percentile interval of the same resamples."""
        value, common = strength_difference_and_fields(self.strengths, x, y, self._common)
        if self.status != "ok" or value is None:
            return Estimate(status=self.status, reason=self.reason, estimate=value, **common)
        draws = self.draws[:, x] - self.draws[:, y]
        return estimate_with_percentile_interval(draws, level=self.level, estimate=value, **common)


def davidson_bootstrap(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    n_systems: int,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "choice.davidson.bootstrap",
    unit: str = "annotator",
) -> ResampledComparison:
    """`fit_davidson` with intervals from resampled annotators, each with all labels; use it for claims and ranks.

    Parameters
    ----------
    first, second : array_like, shape (n_rows,)
        System numbers 0..n_systems-1.
    outcomes : array_like, shape (n_rows,)
        1 if the first was chosen, 0 the second, .5 a tie; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    n_systems : int
        Number of systems.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default RESAMPLES
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    ResampledComparison
        The refitted model. Resamples in which a system always won (or lost) are left out (warning
        `undefined_resamples`). One annotator: `n_lt_2`.

    Notes
    -----
    The sandwich covariance of `fit_davidson` takes strengths as normal. Strengths from few labels, and nu, are skewed;
    these intervals follow that.

    References
    ----------
    Field and Welsh 2007, Bootstrapping clustered data, for the resampling of whole clusters.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> annotators, first = np.repeat(np.arange(40), 6), np.tile([0, 1, 2], 80)
    >>> wins = rng.random(240) < np.array([0.7, 0.7, 0.2])[first]
    >>> outcomes = np.where(rng.random(240) < 0.2, 0.5, wins)
    >>> result = davidson_bootstrap(first, (first + 1) % 3, outcomes, annotators, n_systems=3, rng=rng, resamples=199)
    >>> result.difference(0, 2).interval.low > 0, result.draws.shape
    (True, (199, 3))
    """
    validate_level(level)
    labels = PairedComparisonLabels.from_arrays(first, second, outcomes, annotators, n_systems)
    wins, ties = labels.win_and_tie_tables()
    common: dict[str, Any] = {
        "analysis": analysis,
        "unit": unit,
        "n": labels.n_annotators,
        "n_clusters": labels.n_annotators,
        "n_rows": len(labels.outcomes),
        "settings": {"model": "davidson", "level": level, "resamples": resamples},
        "warnings": cluster_warnings(np.bincount(labels.annotators), name=unit) if labels.n_annotators else (),
    }
    fitted = fit_davidson_to_counts(wins, ties, level=level)
    if fitted.status == "ok" and labels.n_annotators < 2:
        return _without(fitted, "n_lt_2", "one annotator has no spread", level, common)
    if fitted.status != "ok":
        return _without(fitted, fitted.status, fitted.reason, level, common)
    by_annotator = PairCounts.from_tables(*labels.win_and_tie_tables_by_annotator())
    weights = multinomial_weights(labels.n_annotators, resamples, rng)
    parts = [_refitted(by_annotator.weighted_sums(block), _start(fitted)) for block in weights]
    draws, nus = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _resampled(fitted, draws, nus, level, common)


def bradley_terry_bootstrap(
    wins: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    analysis: str = "choice.bradley_terry.bootstrap",
    unit: str = "label",
) -> ResampledComparison:
    """`fit_bradley_terry_to_counts` with intervals from resampled independent labels.

    Parameters
    ----------
    wins : array_like, shape (K, K)
        Whole number of labels in which the row was preferred to the column.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default RESAMPLES
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.
    analysis, unit : str, optional
        Labels that are copied to the record.

    Returns
    -------
    ResampledComparison
        The refitted model.

    Raises
    ------
    ValueError
        If a count is not whole.

    Notes
    -----
    The number of labels of each pair is fixed; the resamples draw its wins. For labels that share annotators use
    `davidson_bootstrap`.

    Examples
    --------
    >>> result = bradley_terry_bootstrap([[0, 30], [10, 0]], rng=np.random.default_rng(0))
    >>> interval = result.difference(0, 1).interval
    >>> round(result.difference(0, 1).estimate, 4), 0.3 < interval.low < 0.6, 1.7 < interval.high < 2.2
    (1.0986, True, True)
    """
    validate_level(level)
    won = checked_square_counts(wins, "wins")
    if np.any(won != np.round(won)):
        raise ValueError("wins: only whole labels can be resampled")
    fitted = fit_bradley_terry_to_counts(won, level=level)
    n, k = int(won.sum()), len(won)
    common: dict[str, Any] = {
        "analysis": analysis,
        "unit": unit,
        "n": n,
        "n_rows": n,
        "settings": {"model": "bradley_terry", "level": level, "resamples": resamples},
    }
    if fitted.status != "ok":
        return _without(fitted, fitted.status, fitted.reason, level, common)
    counts = PairCounts.from_tables(won[None], np.zeros((1, k, k)))
    # Draw one pair at a time: the generator sets up once for each number of labels and share.
    pairs = zip(counts.n_labels[0], counts.wins[0], strict=True)
    drawn = np.stack(
        [rng.binomial(int(n_labels), n_wins / n_labels, size=resamples) for n_labels, n_wins in pairs], axis=1
    )
    wins_drawn = drawn.astype(np.float64)
    draws, _ = _refitted(replace(counts, wins=wins_drawn, losses=counts.n_labels - wins_drawn), _start(fitted))
    return _resampled(fitted, draws, None, level, common)


def _refitted(counts: PairCounts, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the strengths (B, K) and nu (B,) of each table; NaN if there is no maximum."""
    n = len(counts.wins)
    step = max(1, CELLS // max(1, len(counts.first)))
    blocks = [
        fit_parameters_by_table(counts.select_tables(np.arange(low, min(n, low + step))), start=start)
        for low in range(0, n, step)
    ]
    values = np.concatenate(blocks)
    return values[:, :-1], np.exp(values[:, -1])


def _start(fitted: PairedComparison) -> FloatArray:
    """Return the fitted strengths and log nu as one vector, minus infinity for log nu without ties."""
    strengths = [strength.estimate for strength in fitted.strengths]
    nu = None if fitted.tie is None else fitted.tie.estimate
    with np.errstate(divide="ignore"):
        return np.append(np.array(strengths, dtype=np.float64), np.log(nu or 0.0))


def _resampled(
    fitted: PairedComparison, draws: FloatArray, nus: FloatArray | None, level: float, common: dict[str, Any]
) -> ResampledComparison:
    named = {**common, "analysis": f"{common['analysis']}.strength"}
    strengths = tuple(
        estimate_with_percentile_interval(
            draws[:, system], level=level, estimate=strength.estimate, estimand=strength.estimand, **named
        )
        for system, strength in enumerate(fitted.strengths)
    )
    tie = None
    if fitted.tie is not None and nus is not None:
        named = {**common, "analysis": f"{common['analysis']}.tie", "estimand": fitted.tie.estimand}
        if fitted.tie.status != "ok":
            tie = Estimate(status=fitted.tie.status, reason=fitted.tie.reason, estimate=fitted.tie.estimate, **named)
        else:
            tie = estimate_with_percentile_interval(nus, level=level, estimate=fitted.tie.estimate, **named)
    return ResampledComparison("ok", "", strengths, tie, draws, nus, level, common)


def _without(
    fitted: PairedComparison, status: str, reason: str, level: float, common: dict[str, Any]
) -> ResampledComparison:
    """Return the point estimates, if there are any, without resamples."""

    def named(part: str, estimate: Estimate) -> Estimate:
        fields = {
            **common,
            "analysis": f"{common['analysis']}.{part}",
            "estimand": estimate.estimand,
            "estimate": estimate.estimate,
        }
        warnings = (*common.get("warnings", ()), *estimate.warnings)
        return Estimate(status=status, reason=reason, **{**fields, "warnings": warnings})

    strengths = tuple(named("strength", estimate) for estimate in fitted.strengths)
    tie = None if fitted.tie is None else named("tie", fitted.tie)
    empty = np.empty((0, len(strengths)))
    return ResampledComparison(status, reason, strengths, tie, empty, None, level, common)
