"""Fitted models of paired comparisons."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, validate_level
from analysis.stats.bradley_terry import connected_components
from analysis.stats.davidson._labels import PairedComparisonLabels
from analysis.stats.davidson._model import (
    FittedModel,
    PairCounts,
    checked_square_counts,
    find_maximum,
    fit_win_and_tie_table,
)
from analysis.stats.results import Estimate, Interval, Record, ResultWarning

# Precision of the prior that bounds the strengths of separated systems, which give only an order.
RIDGE = 0.5


@dataclass(frozen=True, slots=True)
class PairedComparison(Record):
    """A fitted model of K systems.

    `strengths` (log-odds, sum 0) has one Estimate per system; `tie` is that of nu. `probabilities` (K, K) are the
    fitted P[row beats column], `tie_probabilities` those of a tie. `components` are the groups of systems connected by
    comparisons: rank systems only within one.
    """

    status: str
    reason: str
    strengths: tuple[Estimate, ...]
    tie: Estimate
    probabilities: FloatArray
    tie_probabilities: FloatArray
    components: tuple[tuple[int, ...], ...]
    level: float
    _spread: clusters.ModelSpread | None
    _common: dict[str, Any]

    def difference(self, x: int, y: int) -> Estimate:
        """Return the strength of system `x` minus that of `y`, with its interval and the test that they are equal."""
        value, common = strength_difference_and_fields(self.strengths, x, y, self._common)
        if value is None:
            return Estimate(status=self.status, reason=self.reason, **common)
        contrast = np.zeros(len(self.strengths) + 1)
        contrast[x], contrast[y] = 1.0, -1.0
        return _wald(
            value,
            contrast,
            status=self.status,
            reason=self.reason,
            spread=self._spread,
            level=self.level,
            null=0.0,
            common=common,
        )


def strength_difference_and_fields(
    strengths: tuple[Estimate, ...], x: int, y: int, common: dict[str, Any]
) -> tuple[float | None, dict[str, Any]]:
    """Return the strength of `x` minus that of `y` (None if undefined), and the fields of its Estimate."""
    k = len(strengths)
    if not (0 <= x < k and 0 <= y < k) or x == y:
        raise ValueError(f"x: {x} and {y} are not two of {k} systems")
    named = {
        **common,
        "analysis": f"{common['analysis']}.difference",
        "estimand": f"log-odds of system {x} against system {y}",
    }
    of_x, of_y = strengths[x].estimate, strengths[y].estimate
    return (None if of_x is None or of_y is None else of_x - of_y), named


def fit_davidson(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    n_systems: int,
    level: float = 0.95,
    analysis: str = "choice.davidson",
) -> PairedComparison:
    """Strengths and the tie parameter of Davidson's model from labels, for annotators and prompts like these.

    Parameters
    ----------
    first, second : array_like, shape (n_rows,)
        System numbers 0..n_systems-1.
    outcomes, annotators : array_like, shape (n_rows,)
        1 if the first was chosen, 0 the second, .5 a tie, NaN missing; and the label of each row's annotator.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. Without prompts, or with fewer than five, the fit is for exactly these prompts.
    n_systems : int
        Number of systems.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        First part of the names of the analyses.

    Returns
    -------
    PairedComparison
        The fit. Intervals and tests are those of `clusters.ModelSpread`; `settings["population"]` says what they are
        about. No tests with fewer than six annotators who inform a difference. `not_identified`: no chain of comparisons
        connects all systems. `separation`: the likelihood has no maximum (a system always won); estimates under a normal
        prior of precision .5 give an order only. Without ties nu is 0.

    Examples
    --------
    >>> fit = fit_davidson([0, 1, 2, 0, 1, 2, 0, 0], [1, 2, 0, 1, 2, 0, 1, 2], [1, 1, 1, .5, 1, 0, 0, .5],
    ...                [1, 1, 1, 2, 2, 2, 3, 3], n_systems=3)
    >>> [round(strength.estimate, 3) + 0 for strength in fit.strengths], round(fit.tie.estimate, 3)
    ([0.0, 0.866, -0.866], 0.774)
    """
    validate_level(level)
    labels = PairedComparisonLabels.from_arrays(first, second, outcomes, annotators, n_systems, prompts)
    wins, ties = labels.win_and_tie_tables()
    common: dict[str, Any] = {
        "analysis": analysis,
        "unit": "annotator",
        "n": labels.n_annotators,
        "n_clusters": labels.n_annotators,
        "n_rows": len(labels.outcomes),
        "settings": {"model": "davidson", "level": level, "covariance": "cv3"},
        "warnings": (),
    }
    return _fitted(wins, ties, labels, level, common)


def _spread(fit: FittedModel, labels: PairedComparisonLabels) -> clusters.ModelSpread:
    """Return the spread of the strengths and of log nu (in the last place) over annotators and prompts."""
    x, y, k = labels.first, labels.second, labels.n_systems
    score = fit.won + fit.tied / 2
    rows = np.arange(len(x))
    scores = np.zeros((len(x), k + 1))
    scores[rows, x] = labels.outcomes - score[x, y]
    scores[rows, y] = -scores[rows, x]
    pairs, cells = np.unique(x * k + y, return_inverse=True)
    first, second = np.divmod(pairs, k)
    chance, tied = score[first, second], fit.tied[first, second]
    # The two sufficient statistics of a label are the signs of its systems times its score, and whether it is a tie.
    signs, is_nu = np.zeros((len(pairs), k + 1)), np.zeros(k + 1)
    signs[np.arange(len(pairs)), first], signs[np.arange(len(pairs)), second] = 1.0, -1.0
    of_pairs = _outer(signs, signs, fit.won[first, second] + tied / 4 - chance**2)
    if fit.log_nu is not None:
        scores[:, k] = (labels.outcomes == 0.5) - fit.tied[x, y]
        is_nu[k] = 1.0
        nus = np.tile(is_nu, (len(pairs), 1))
        mixed = _outer(signs, nus, tied / 2 - chance * tied)
        of_pairs = of_pairs + mixed + mixed.transpose(0, 2, 1) + _outer(nus, nus, tied * (1 - tied))
    fitted = clusters.FittedRows(fit.information, scores, cells, of_pairs)
    return clusters.ModelSpread.from_rows(fitted, labels.annotators, labels.prompts, unit="annotator")


def _outer(first: FloatArray, second: FloatArray, weights: FloatArray) -> FloatArray:
    """Return weights (n,) times the outer products of the rows of two arrays (n, k); shape (n, k, k)."""
    return np.asarray(first[:, :, None] * second[:, None, :] * weights[:, None, None])


def bradley_terry_strengths(wins: npt.ArrayLike) -> FloatArray | None:
    """Return the strengths (K,) of Bradley and Terry's model, log-odds with sum 0; None if there is no estimate.

    `wins` (K, K) counts how often the row was preferred to the column.

    >>> bradley_terry_strengths([[0, 30], [10, 0]]).round(6).tolist()
    [0.549306, -0.549306]
    >>> bradley_terry_strengths([[0, 30], [0, 0]]) is None
    True
    """
    won = checked_square_counts(wins)
    found = None if len(won) < 2 else find_maximum(PairCounts.from_tables(won, np.zeros_like(won)))
    return None if found is None else np.asarray(found[:-1] - np.mean(found[:-1]))


def _fitted(
    wins: FloatArray,
    ties: FloatArray,
    labels: PairedComparisonLabels,
    level: float,
    common: dict[str, Any],
) -> PairedComparison:
    """Return the fit to the tables; `labels` are the rows behind them."""
    n_systems = len(wins)
    n_labels = wins + wins.T + ties
    components = connected_components(n_labels > 0)
    empty = np.full((n_systems, n_systems), np.nan)
    status, reason = "ok", ""
    fit: FittedModel | None = None
    if not np.any(n_labels > 0):
        status, reason = "no_data", "no comparison to analyse"
    elif len(components) > 1:
        status = "not_identified"
        reason = "no chain of comparisons connects all systems; rank only within a component"
    else:
        fit = fit_win_and_tie_table(wins, ties)
        if fit is None:
            status = "separation"
            reason = "some systems were preferred without exception, so their distance is unbounded"
            fit = fit_win_and_tie_table(wins, ties, ridge=RIDGE)
    if fit is None:
        none = tuple(
            _undefined(status, reason, f"strength of system {system}", "strength", common)
            for system in range(n_systems)
        )
        tie = _undefined(status, reason, "tie parameter nu", "tie", common)
        return PairedComparison(status, reason, none, tie, empty, empty, components, level, None, common)
    won, tied = fit.won, fit.tied
    off_diagonal = ~np.eye(n_systems, dtype=bool)
    spread = _spread(fit, labels) if status == "ok" else None
    named = {**common, "analysis": f"{common['analysis']}.strength"}
    wald = partial(_wald, status=status, reason=reason, spread=spread, level=level)
    strengths = tuple(
        wald(
            float(fit.strengths[system]),
            np.arange(n_systems + 1) == system,
            common={**named, "estimand": f"strength of system {system} (log-odds, sum zero)"},
        )
        for system in range(n_systems)
    )
    return PairedComparison(
        status=status,
        reason=reason,
        strengths=strengths,
        tie=_tie(fit, wald, common),
        probabilities=np.where(off_diagonal, won, np.nan),
        tie_probabilities=np.where(off_diagonal, tied, np.nan),
        components=components,
        level=level,
        _spread=spread,
        _common=common,
    )


def _wald(
    value: float,
    weights: npt.ArrayLike,
    *,
    status: str,
    reason: str,
    spread: clusters.ModelSpread | None,
    level: float,
    null: float | None = None,
    common: dict[str, Any],
) -> Estimate:
    """Return the estimate of strengths and log nu times `weights` (K + 1,); `spread` is None without a maximum."""
    if spread is None:
        warnings = (*common["warnings"], ResultWarning("not_identified", "block", {"ridge": RIDGE}))
        return Estimate(status=status, reason=reason, estimate=value, **{**common, "warnings": warnings})
    return spread.estimate(value, np.asarray(weights, dtype=np.float64), level=level, null=null, **common)


def _tie(fit: FittedModel, wald: Callable[..., Estimate], common: dict[str, Any]) -> Estimate:
    named = {**common, "analysis": f"{common['analysis']}.tie", "estimand": "tie parameter nu"}
    if fit.log_nu is None:
        reason = "no label was a tie, so nu lies at its edge"
        return Estimate(status="separation", reason=reason, estimate=0.0, **named)
    n_systems = len(fit.strengths)
    logarithm = wald(fit.log_nu, np.arange(n_systems + 1) == n_systems, common=named)
    interval = logarithm.interval
    if interval is not None:
        interval = Interval(interval.level, math.exp(interval.low), math.exp(interval.high), interval.method)
    return Estimate(
        status=logarithm.status,
        reason=logarithm.reason,
        estimate=math.exp(fit.log_nu),
        interval=interval,
        detail={"log_nu": fit.log_nu, "se_log_nu": logarithm.detail.get("se")},
        **{**named, "warnings": logarithm.warnings, "settings": logarithm.settings},
    )


def _undefined(status: str, reason: str, estimand: str, part: str, common: dict[str, Any]) -> Estimate:
    named = {**common, "analysis": f"{common['analysis']}.{part}"}
    return Estimate(estimand=estimand, status=status, reason=reason, **named)
