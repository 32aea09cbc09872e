"""Rankings of systems from pairwise choices: Davidson's model with ties, Bradley and Terry's without.

P(i beats j) = e^{b_i} / D, P(tie) = nu e^{(b_i + b_j) / 2} / D, D = e^{b_i} + e^{b_j} + nu e^{(b_i + b_j) / 2}.
The model is log-linear, so its likelihood has one maximum, found from the K x K tables of wins and ties. nu = 0
is Bradley and Terry's model. To drop or split ties, give `fractional_bradley_terry` NaN or .5; it can also model
the place shown first.

Strengths sum to zero; only differences are tested. If earlier answers chose the next pair, the estimates are
valid and the intervals are not.

References: Davidson 1970, On extending the Bradley-Terry model to accommodate ties; Bradley and Terry 1952; Ford
1957 for when the maximum exists; Bach 2010, Self-concordant analysis for logistic regression, for the steps that
need no check.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from analysis.stats import cluster_models
from analysis.stats.arrays import FloatArray, IntArray, label_codes_where, matrix, validate_level, vector
from analysis.stats.bradley_terry import checked_system_pairs, connected_components, reachability
from analysis.stats.results import Estimate, Interval, Record, ResultWarning

# Checked labels of pairwise choices in rows, and the tables of their counts.


@dataclass(frozen=True, slots=True)
class PairedComparisonLabels:
    """Rows without the missing ones: `outcomes` is 1 if `first` was chosen, 0 if `second` was, .5 for a tie.

    `annotators` and `prompts` (None if not given) are codes from 0.
    """

    first: IntArray
    second: IntArray
    outcomes: FloatArray
    annotators: IntArray
    n_annotators: int
    n_systems: int
    prompts: IntArray | None = None

    @classmethod
    def from_arrays(
        cls,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        outcomes: npt.ArrayLike,
        annotators: npt.ArrayLike,
        n_systems: int,
        prompts: npt.ArrayLike | None = None,
    ) -> "PairedComparisonLabels":
        """Build from arrays. Raise ValueError with the row for an invalid pair of systems or an invalid outcome."""
        labels = vector(outcomes, "outcomes")
        x, y = checked_system_pairs(first, second, len(labels), n_systems)
        wrong = np.flatnonzero(~np.isnan(labels) & (labels != 0) & (labels != 0.5) & (labels != 1))
        if len(wrong):
            raise ValueError(f"outcomes: row {int(wrong[0])} is {labels[wrong[0]]:g}, none of 0, .5 and 1")
        is_observed = ~np.isnan(labels)
        annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
        prompt_codes = None if prompts is None else label_codes_where(prompts, "prompts", is_observed)[0]
        rows = x[is_observed], y[is_observed], labels[is_observed]
        return cls(*rows, annotator_codes, n_annotators, n_systems, prompt_codes)

    def win_and_tie_tables(self) -> tuple[FloatArray, FloatArray]:
        """Return the wins of the row over the column, and the ties (symmetric); both (K, K)."""
        k, is_tie = self.n_systems, self.outcomes == 0.5
        winner, loser = (np.where(self.outcomes == side, self.first, self.second) for side in (1.0, 0.0))
        wins, ties = (
            np.bincount((rows * k + columns)[mask], minlength=k * k).astype(np.float64).reshape(k, k)
            for rows, columns, mask in ((winner, loser, ~is_tie), (self.first, self.second, is_tie))
        )
        return wins, ties + ties.T


# The likelihood of wins and ties, and its maximum, for one table of counts.
#
# All sums run over the pairs i < j that were compared. A table of K systems has three counts for each pair: i won, j
# won, tie. One exponential for each pair gives the log-likelihood and both of its derivatives.


MAX_STEPS = 100
# Newton's method converges quadratically: after a step of this size the error is about 1e-12.
TOLERANCE = 1e-6
HALVINGS = 40
# A Newton step increases the likelihood if it changes no difference of strengths by more than this, r. Without ties
# the third derivative along it is at most r times the second, and (exp(r) - r - 1) / r^2 < 1 up to r = 1.79
# (Bach 2010, proposition 1).
SAFE_STEP = 1.79
# Log-odds beyond this mean that the likelihood has no maximum.
DIVERGED = 30.0

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class FittedModel:
    """The estimated parameters and the fitted probabilities `won` and `tied` (K, K), row against column.

    `information` (K + 1, K + 1) is that of the labels alone, made invertible.
    """

    strengths: FloatArray
    log_nu: float | None
    won: FloatArray
    tied: FloatArray
    information: FloatArray


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """Probabilities of outcomes at given parameters, for P pairs: `won` by the first, `tied` (or None).

    `strength_differences` is first minus second; `log_total` is the log of the denominator, e^half + e^-half + nu.
    """

    strength_differences: FloatArray
    won: FloatArray
    tied: FloatArray | None
    log_total: FloatArray

    @property
    def expected_score(self) -> FloatArray:
        """Return the expected score of the first system of each pair; a tie counts half."""
        return self.won if self.tied is None else self.won + self.tied / 2

    @classmethod
    def at(cls, strength_differences: FloatArray, log_nu: float | None) -> "PairProbabilities":
        """Compute the probabilities from differences of strengths and log nu (None without ties)."""
        distance = np.abs(strength_differences)
        odds = np.exp(-distance)
        total = 1 + odds
        tied = None
        if log_nu is not None:
            tied = np.exp(log_nu - distance / 2)
            total = total + tied
            tied = tied / total
        won = np.where(strength_differences >= 0, 1.0, odds) / total
        return cls(strength_differences, won, tied, np.asarray(distance / 2 + np.log(total)))


@dataclass(frozen=True, slots=True)
class PairCounts:
    """The counts (P,) of a table of K systems, for the pairs `first` < `second` that were compared.

    Without ties `ties` is None, and log nu (the last parameter) is left out of every sum: nu is 0, at the edge of its
    range.
    """

    first: IntArray
    second: IntArray
    n_systems: int
    wins: FloatArray
    losses: FloatArray
    ties: FloatArray | None

    @classmethod
    def from_tables(cls, wins: FloatArray, ties: FloatArray) -> "PairCounts":
        """Build the counts from a table of wins and one of ties, both of shape (K, K)."""
        k = len(wins)
        cells = np.flatnonzero(np.triu(wins + wins.T + ties != 0, 1))
        first, second = np.divmod(cells, k)
        tied = ties.take(cells) if ties.any() else None
        return cls(first, second, k, wins.take(cells), wins.take(second * k + first), tied)

    @property
    def n_labels(self) -> FloatArray:
        """Return the number of labels of each pair; shape (P,)."""
        total = self.wins + self.losses
        return total if self.ties is None else total + self.ties

    @property
    def points(self) -> FloatArray:
        """Return the points of the first system of each pair; a tie counts half."""
        return self.wins if self.ties is None else self.wins + self.ties / 2

    def has_maximum(self) -> bool:
        """Return whether a chain of wins or ties leads from every system to every other.

        Without it a strength is unbounded (Ford 1957). With ties the condition is necessary but not sufficient.
        """
        tied = 0.0 if self.ties is None else self.ties
        linked = self._table(self.wins + tied > 0) | self._table(self.losses + tied > 0).T
        reach = reachability(linked)
        return bool((reach & reach.T).all())

    def initial_parameters(self) -> FloatArray:
        """Return the strengths if all opponents were equally strong, and log nu; this start saves two Newton steps."""
        (won, lost), (first, second) = self._sums(self.points - self.n_labels / 2), self._sums(self.n_labels)
        share = (won - lost + (first + second) / 2 + 0.5) / (first + second + 1)
        strengths = np.log(share / (1 - share))
        return np.append(strengths - strengths.mean(), -math.inf if self.ties is None else 0.0)

    def probabilities(self, parameters: FloatArray) -> PairProbabilities:
        """Return the probabilities of the outcomes at the parameters (K + 1,)."""
        apart = parameters.take(self.first) - parameters.take(self.second)
        return PairProbabilities.at(apart, None if self.ties is None else float(parameters[-1]))

    def penalised_log_likelihood(self, parameters: FloatArray, chances: PairProbabilities, ridge: float) -> float:
        """Return the log-likelihood, minus the penalty of the prior."""
        log_likelihood = (
            (self.wins - self.losses) * chances.strength_differences / 2 - self.n_labels * chances.log_total
        ).sum()
        if self.ties is not None:
            log_likelihood += self.ties.sum() * parameters[-1]
        return float(log_likelihood - ridge * np.sum(parameters[:-1] ** 2) / 2)

    def gradient(self, parameters: FloatArray, chances: PairProbabilities, ridge: float) -> FloatArray:
        """Return the derivatives by the strengths and by log nu; shape (K + 1,)."""
        gradient = np.zeros_like(parameters)
        gained, lost = self._sums(self.points - self.n_labels * chances.expected_score)
        gradient[:-1] = gained - lost - ridge * parameters[:-1]
        if chances.tied is not None and self.ties is not None:
            gradient[-1] = (self.ties - self.n_labels * chances.tied).sum()
        return gradient

    def _sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of values (P,) over the pairs in which a system is first, and second; both (K,)."""
        table = self._table(values)
        return np.asarray(table.sum(axis=1)), np.asarray(table.sum(axis=0))

    def _table(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return a table (K, K) with the values (P,) in the row of the first and the column of the second."""
        k = self.n_systems
        table = np.zeros(k * k, dtype=values.dtype)
        table[self.first * k + self.second] = values
        return table.reshape(k, k)

    def information(self, chances: PairProbabilities, ridge: float) -> FloatArray:
        """Return minus the second derivatives, invertible; the sum of strengths (and log nu without ties) is fixed."""
        won, tied, score = chances.won, chances.tied, chances.expected_score
        weight = self.n_labels * ((won if tied is None else won + tied / 4) - score**2)
        k = self.n_systems
        hessian = np.zeros((k + 1, k + 1))
        upper, diagonal = self._table(weight), np.arange(k)
        hessian[:k, :k] = 1.0 - upper - upper.T
        hessian[diagonal, diagonal] += ridge + upper.sum(axis=1) + upper.sum(axis=0)
        hessian[k, k] = 1.0
        if tied is not None:
            gained, lost = self._sums(self.n_labels * (tied / 2 - score * tied))
            hessian[:k, k] = hessian[k, :k] = gained - lost
            hessian[k, k] = (self.n_labels * tied * (1 - tied)).sum()
        return hessian


def find_maximum(counts: PairCounts, *, ridge: float = 0.0) -> FloatArray | None:
    """Return the maximum-likelihood parameters (K + 1,), strengths with sum 0 and log nu; None if there is no maximum.

    log nu is minus infinity without ties. With a `ridge` (the precision of a normal prior on the strengths) there is a
    maximum.
    """
    if not ridge and not counts.has_maximum():
        return None
    k, point = counts.n_systems, counts.initial_parameters()
    for _ in range(MAX_STEPS):
        chances = counts.probabilities(point)
        step = _newton_step(counts.information(chances, ridge), counts.gradient(point, chances, ridge))
        if step is None:
            return None
        size = np.abs(step).max()
        if counts.ties is not None or 2 * size > SAFE_STEP:
            _shorten(counts, point, step, counts.penalised_log_likelihood(point, chances, ridge), ridge)
        point = point + step
        if np.ptp(point[:k]) > DIVERGED or (counts.ties is not None and abs(point[k]) > DIVERGED):
            return None
        if size < TOLERANCE:
            return point
    return None


def fit_win_and_tie_table(wins: FloatArray, ties: FloatArray, *, ridge: float = 0.0) -> FittedModel | None:
    """Return the fit to one table of wins and one of ties, both (K, K), or None if there is no maximum."""
    counts = PairCounts.from_tables(wins, ties)
    found = find_maximum(counts, ridge=ridge)
    if found is None:
        return None
    strengths, log_nu = found[:-1], None if counts.ties is None else float(found[-1])
    of_all = PairProbabilities.at(strengths[:, None] - strengths[None, :], log_nu)
    tied = np.zeros_like(of_all.won) if of_all.tied is None else of_all.tied
    information = counts.information(counts.probabilities(found), 0.0)
    return FittedModel(strengths - np.mean(strengths), log_nu, of_all.won, tied, information)


def checked_square_counts(wins: npt.ArrayLike) -> FloatArray:
    """Return `wins` as a square table of counts. Raise ValueError with the row if they are not one."""
    table = matrix(wins, "wins")
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"wins: shape {table.shape} is not square")
    if np.isnan(table).any() or np.any(table < 0):
        row = int(np.argwhere(np.isnan(table) | (table < 0))[0][0])
        raise ValueError(f"wins: row {row} has a count that is missing or negative")
    itself = np.flatnonzero(np.diag(table))
    if len(itself):
        raise ValueError(f"wins: row {int(itself[0])} compares system {int(itself[0])} with itself")
    return table


def _newton_step(information: FloatArray, slope: FloatArray) -> FloatArray | None:
    """Return the step, or None if the information matrix is singular."""
    # The matrix is symmetric and positive, so Cholesky's method is half the work; numpy has no solver for it.
    *_, step, failure = lapack.dposv(information, slope)
    return None if failure else np.asarray(step)


def _shorten(counts: PairCounts, point: FloatArray, step: FloatArray, height: float, ridge: float) -> None:
    """Halve the step, in place, while it would lower the log-likelihood."""
    least = height - 1e-9 * (1 + abs(height))
    for _ in range(HALVINGS):
        # A step that is far too long can overflow; its height is then undefined.
        with np.errstate(over="ignore", invalid="ignore"):
            next_height = counts.penalised_log_likelihood(point + step, counts.probabilities(point + step), ridge)
        # At the maximum rounding can lower the height slightly; only a real fall halves the step.
        if next_height >= least:
            break
        step /= 2


# Fitted models of paired comparisons.


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
    _spread: cluster_models.ModelSpread | None
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
        The fit. Intervals and tests are those of `cluster_models.ModelSpread`; `settings["population"]` says what they are
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


def _spread(fit: FittedModel, labels: PairedComparisonLabels) -> cluster_models.ModelSpread:
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
    fitted = cluster_models.FittedRows(fit.information, scores, cells, of_pairs)
    return cluster_models.ModelSpread.from_rows(fitted, labels.annotators, labels.prompts, unit="annotator")


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
    spread: cluster_models.ModelSpread | None,
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
