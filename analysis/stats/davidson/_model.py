"""The likelihood of wins and ties, and its maximum, for one table of counts or for many tables at once.

All sums run over the pairs i < j that were compared. A table of K systems has three counts for each pair: i won,
j won, tie. One exponential for each pair gives the log-likelihood and both of its derivatives.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, matrix
from analysis.stats.bradley_terry import reachability

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
# Number of steps with the curvature of the sample, which is close to that of its resamples.
MAX_CHORD_STEPS = 15
# Each of these steps is at most a tenth of the one before, and quantiles are printed with four digits at most.
CHORD_TOLERANCE = 1e-8
# With at least this many tables, a loop over the systems is faster.
MANY_TABLES = 10

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
    log_likelihood: float
    information: FloatArray

    def sum_zero_covariance(self) -> FloatArray:
        """Return the inverse information of strengths with sum zero, and of log nu in the last row (0 without ties)."""
        k = len(self.strengths)
        inverse = np.linalg.inv(self.information)
        # Remove the constant that `PairCounts.information` added for the sum, which labels do not identify.
        inverse[:k, :k] -= 1 / k**2
        if self.log_nu is None:
            inverse[k, k] = 0.0
        return np.asarray(inverse)


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """Probabilities of outcomes at given parameters, for B tables of P pairs: `won` by the first, `tied` (or None).

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

    def select_tables(self, table_indices: IntArray) -> "PairProbabilities":
        """Return the probabilities of the selected tables."""
        tied = None if self.tied is None else self.tied[table_indices]
        return PairProbabilities(
            self.strength_differences[table_indices], self.won[table_indices], tied, self.log_total[table_indices]
        )

    @classmethod
    def at(cls, strength_differences: FloatArray, log_nu: FloatArray | None) -> "PairProbabilities":
        """Compute the probabilities from differences of strengths (..., P) and log nu, which is broadcast to them."""
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
    """The counts (B, P) of B tables of K systems, for the pairs `first` < `second` that occur in any of the tables.

    If no table has a tie, `ties` is None and log nu is left out of every sum.
    """

    first: IntArray
    second: IntArray
    n_systems: int
    wins: FloatArray
    losses: FloatArray
    ties: FloatArray | None

    @classmethod
    def from_tables(cls, wins: FloatArray, ties: FloatArray) -> "PairCounts":
        """Build the counts from tables of wins and ties, both of shape (B, K, K)."""
        n_tables, k, _ = wins.shape
        is_asked = (wins + wins.transpose(0, 2, 1) + ties).any(axis=0)
        cells = np.flatnonzero(np.triu(is_asked, 1))
        first, second = np.divmod(cells, k)
        won, tied = wins.reshape(n_tables, -1), ties.reshape(n_tables, -1)
        of_pairs = tied.take(cells, axis=1) if ties.any() else None
        return cls(first, second, k, won.take(cells, axis=1), won.take(second * k + first, axis=1), of_pairs)

    def select_tables(self, table_indices: IntArray) -> "PairCounts":
        """Return the counts of the selected tables."""
        if len(table_indices) == len(self.wins):
            return self
        tied = None if self.ties is None else self.ties[table_indices]
        return replace(self, wins=self.wins[table_indices], losses=self.losses[table_indices], ties=tied)

    def weighted_sums(self, weights: FloatArray) -> "PairCounts":
        """Return weighted sums of the tables; `weights` (resamples, B) are the weights of the tables."""
        tied = None if self.ties is None else weights @ self.ties
        return replace(self, wins=weights @ self.wins, losses=weights @ self.losses, ties=tied)

    def mean(self) -> "PairCounts":
        """Return one table, the mean of all tables."""
        return self.weighted_sums(np.full((1, len(self.wins)), 1 / len(self.wins)))

    @property
    def n_labels(self) -> FloatArray:
        """Return the number of labels of each pair; shape (B, P)."""
        total = self.wins + self.losses
        return total if self.ties is None else total + self.ties

    @property
    def points(self) -> FloatArray:
        """Return the points of the first system of each pair; a tie counts half."""
        return self.wins if self.ties is None else self.wins + self.ties / 2

    @property
    def has_ties(self) -> BoolArray:
        """Return whether each table has a tie. Without ties nu is 0, at the edge of its range."""
        if self.ties is None:
            return np.zeros(len(self.wins), dtype=np.bool_)
        return np.asarray(self.ties.any(axis=1))

    def has_maximum(self) -> BoolArray:
        """Return whether a chain of wins or ties leads from every system to every other, for each table.

        Without it a strength is unbounded (Ford 1957). With ties the condition is necessary but not sufficient.
        """
        tied = 0.0 if self.ties is None else self.ties
        linked = self._table(self.wins + tied > 0) | self._table(self.losses + tied > 0).transpose(0, 2, 1)
        reach = reachability(linked)
        return np.asarray((reach & reach.transpose(0, 2, 1)).all(axis=(1, 2)))

    def initial_strengths(self) -> FloatArray:
        """Return the strengths (B, K) if all opponents were equally strong; this start saves two Newton steps."""
        (won, lost), (first, second) = self._sums(self.points - self.n_labels / 2), self._sums(self.n_labels)
        share = (won - lost + (first + second) / 2 + 0.5) / (first + second + 1)
        strengths = np.log(share / (1 - share))
        return np.asarray(strengths - strengths.mean(axis=1, keepdims=True))

    def probabilities(self, parameters: FloatArray) -> PairProbabilities:
        """Return the probabilities of the outcomes at the parameters (B, K + 1)."""
        apart = parameters.take(self.first, axis=1) - parameters.take(self.second, axis=1)
        return PairProbabilities.at(apart, None if self.ties is None else parameters[:, -1:])

    def penalised_log_likelihood(self, parameters: FloatArray, chances: PairProbabilities, ridge: float) -> FloatArray:
        """Return the log-likelihood of each table, minus the penalty of the prior."""
        log_likelihood = (
            (self.wins - self.losses) * chances.strength_differences / 2 - self.n_labels * chances.log_total
        ).sum(axis=1)
        if self.ties is not None:
            log_likelihood += np.where(
                self.has_ties, self.ties.sum(axis=1) * np.where(self.has_ties, parameters[:, -1], 0.0), 0.0
            )
        return np.asarray(log_likelihood - ridge * np.sum(parameters[:, :-1] ** 2, axis=1) / 2)

    def gradient(self, parameters: FloatArray, ridge: float) -> FloatArray:
        """Return the derivatives by the strengths and by log nu; shape (B, K + 1)."""
        if len(parameters) >= MANY_TABLES:
            return self._gradient_by_first(parameters, ridge)
        return self.gradient_given_probabilities(parameters, self.probabilities(parameters), ridge)

    def gradient_given_probabilities(
        self, parameters: FloatArray, pair_probabilities: PairProbabilities, ridge: float
    ) -> FloatArray:
        """Return the same derivatives as `gradient` if the probabilities are already known."""
        gradient = np.zeros_like(parameters)
        gained, lost = self._sums(self.points - self.n_labels * pair_probabilities.expected_score)
        gradient[:, :-1] = gained - lost - ridge * parameters[:, :-1]
        if pair_probabilities.tied is not None and self.ties is not None:
            gradient[:, -1] = np.where(
                self.has_ties, (self.ties - self.n_labels * pair_probabilities.tied).sum(axis=1), 0.0
            )
        return gradient

    def _sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sums of values (B, P) over the pairs in which a system is first, and second; both (B, K)."""
        table = self._table(values)
        return np.asarray(table.sum(axis=2)), np.asarray(table.sum(axis=1))

    def _table(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return tables (B, K, K) with the values (B, P) in the row of the first and the column of the second."""
        k = self.n_systems
        table = np.zeros((len(values), k * k), dtype=values.dtype)
        table[:, self.first * k + self.second] = values
        return table.reshape(-1, k, k)

    def _gradient_by_first(self, values: FloatArray, ridge: float) -> FloatArray:
        """Return the derivatives of `gradient` for many tables, one system with all later opponents at a time."""
        worth, gradient = np.exp(values[:, :-1]), np.zeros_like(values)
        gradient[:, :-1] = -ridge * values[:, :-1]
        root, nu = np.sqrt(worth), np.exp(values[:, -1:])
        systems, starts = np.unique(self.first, return_index=True)
        for system, low, high in zip(systems, starts, np.append(starts[1:], len(self.first)), strict=True):
            others: IntArray | slice = self.second[low:high]
            if self.second[high - 1] - self.second[low] == high - low - 1:
                others = slice(self.second[low], self.second[high - 1] + 1)
            own, scored = worth[:, system : system + 1], self.wins[:, low:high]
            n_labels, score = scored + self.losses[:, low:high], own
            total = own + worth[:, others]
            if self.ties is not None:
                ties, tied = self.ties[:, low:high], nu * root[:, system : system + 1] * root[:, others]
                n_labels, scored = n_labels + ties, scored + ties / 2
                total, score = total + tied, own + tied / 2
                gradient[:, -1] += (ties - n_labels * (tied / total)).sum(axis=1)
            surplus = n_labels * (score / total) - scored
            gradient[:, system] -= surplus.sum(axis=1)
            gradient[:, others] += surplus
        gradient[~self.has_ties, -1] = 0.0
        return gradient

    def information(self, pair_probabilities: PairProbabilities, ridge: float) -> FloatArray:
        """Return minus the second derivatives, invertible; the sum of strengths (and log nu without ties) is fixed."""
        won, tied, score = pair_probabilities.won, pair_probabilities.tied, pair_probabilities.expected_score
        weight = self.n_labels * ((won if tied is None else won + tied / 4) - score**2)
        k = self.n_systems
        hessian = np.zeros((len(won), k + 1, k + 1))
        upper, diagonal = self._table(weight), np.arange(k)
        hessian[:, :k, :k] = 1.0 - upper - upper.transpose(0, 2, 1)
        hessian[:, diagonal, diagonal] += ridge + upper.sum(axis=2) + upper.sum(axis=1)
        hessian[:, k, k] = 1.0
        if tied is not None:
            gained, lost = self._sums(self.n_labels * (tied / 2 - score * tied))
            corner = (self.n_labels * tied * (1 - tied)).sum(axis=1)
            hessian[:, :k, k] = hessian[:, k, :k] = np.where(self.has_ties[:, None], gained - lost, 0.0)
            hessian[:, k, k] = np.where(self.has_ties, corner, 1.0)
        return hessian


def fit_parameters_by_table(counts: PairCounts, *, ridge: float = 0.0, start: FloatArray | None = None) -> FloatArray:
    """Return the maximum-likelihood parameters (B, K + 1) of each table: strengths with sum 0, and log nu.

    log nu is minus infinity for a table without ties. All parameters are NaN if there is no maximum, which is possible
    only without a `ridge` (the precision of a normal prior on the strengths). `start` (K + 1,) is a point near all.
    """
    k = counts.n_systems
    values = np.zeros((len(counts.wins), k + 1))
    values[~counts.has_ties, k] = -math.inf
    rest = np.arange(len(values))
    if start is not None and len(values):
        near = values.copy()
        near[:, :k] = start[:k]
        near[counts.has_ties, k] = start[k] if math.isfinite(start[k]) else 0.0
        near, is_settled = _by_chords(counts, near, ridge)
        values[is_settled], rest = near[is_settled], np.flatnonzero(~is_settled)
    if not ridge:
        # A converged table has a maximum. Of the others, search only those that can have one.
        is_there = counts.select_tables(rest).has_maximum()
        values[rest[~is_there]] = np.nan
        rest = rest[is_there]
    if len(rest):
        some = counts.select_tables(rest)
        values[rest, :k] = some.initial_strengths()
        values[rest] = _by_newton(some, values[rest], ridge)
    return values


def fit_win_and_tie_table(wins: FloatArray, ties: FloatArray, *, ridge: float = 0.0) -> FittedModel | None:
    """Return the fit to one table of wins and one of ties, both (K, K), or None if there is no maximum."""
    counts = PairCounts.from_tables(wins[None], ties[None])
    values = fit_parameters_by_table(counts, ridge=ridge)
    if np.isnan(values).any():
        return None
    strengths, log_nu = values[0, :-1], float(values[0, -1])
    pair_probabilities = counts.probabilities(values)
    is_tied = math.isfinite(log_nu)
    of_all = PairProbabilities.at(strengths[:, None] - strengths[None, :], np.array(log_nu) if is_tied else None)
    tied = np.zeros_like(of_all.won) if of_all.tied is None else of_all.tied
    return FittedModel(
        strengths - np.mean(strengths),
        log_nu if is_tied else None,
        of_all.won,
        tied,
        float(counts.penalised_log_likelihood(values, pair_probabilities, 0.0)[0]),
        counts.information(pair_probabilities, 0.0)[0],
    )


def checked_square_counts(values: npt.ArrayLike, name: str) -> FloatArray:
    """Return `values` as a square table of counts. Raise ValueError with the row if they are not one."""
    table = matrix(values, name)
    if table.shape[0] != table.shape[1]:
        raise ValueError(f"{name}: shape {table.shape} is not square")
    if np.isnan(table).any() or np.any(table < 0):
        row = int(np.argwhere(np.isnan(table) | (table < 0))[0][0])
        raise ValueError(f"{name}: row {row} has a count that is missing or negative")
    itself = np.flatnonzero(np.diag(table))
    if len(itself):
        raise ValueError(f"{name}: row {int(itself[0])} compares system {int(itself[0])} with itself")
    return table


def _by_chords(counts: PairCounts, near: FloatArray, ridge: float) -> tuple[FloatArray, BoolArray]:
    """Run steps with the curvature of the mean table at `near`; return the points and which tables have converged."""
    mean = counts.mean()
    inverse = np.linalg.inv(mean.information(mean.probabilities(near[np.argmax(counts.has_ties)][None]), ridge)[0])
    is_settled = np.zeros(len(near), dtype=np.bool_)
    active = np.arange(len(near))
    for _ in range(MAX_CHORD_STEPS):
        some = counts.select_tables(active)
        step = some.gradient(near[active], ridge) @ inverse
        step[~some.has_ties, -1] = 0.0
        near[active] += step
        size = np.abs(step).max(axis=1)
        is_settled[active[size < CHORD_TOLERANCE]] = True
        # Tables that diverge are left to Newton's method.
        active = active[(size >= CHORD_TOLERANCE) & (size < 1)]
        if len(active) == 0:
            break
    return near, is_settled


def _by_newton(counts: PairCounts, values: FloatArray, ridge: float) -> FloatArray:
    """Run Newton's method for each table, with step halving; NaN for tables that diverge or do not converge."""
    k = counts.n_systems
    solutions, active = np.full_like(values, np.nan), np.arange(len(values))
    some, points = counts, values
    for _ in range(MAX_STEPS):
        chances = some.probabilities(points)
        step = _solved(some.information(chances, ridge), some.gradient_given_probabilities(points, chances, ridge))
        if step is None:
            break
        size = np.abs(step).max(axis=1)
        if some.ties is not None or 2 * size.max() > SAFE_STEP:
            _shorten(some, points, step, some.penalised_log_likelihood(points, chances, ridge), ridge)
        points = points + step
        far = np.ptp(points[:, :k], axis=1) > DIVERGED
        far |= some.has_ties & (np.abs(points[:, k]) > DIVERGED)
        is_settled = ~far & (size < TOLERANCE)
        solutions[active[is_settled]] = points[is_settled]
        going = np.flatnonzero(~far & ~is_settled)
        if len(going) == 0:
            break
        if len(going) < len(active):
            active, points, some = active[going], points[going], some.select_tables(going)
    return solutions


def _solved(information: FloatArray, slope: FloatArray) -> FloatArray | None:
    """Return the step of each table, or None if any information matrix is singular."""
    if len(information) == 1:
        # The matrix is symmetric and positive, so Cholesky's method is half the work; numpy has no solver for it.
        *_, step, failure = lapack.dposv(information[0], slope[0])
        return None if failure else np.asarray(step)[None]
    try:
        return np.asarray(np.linalg.solve(information, slope[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return None


def _shorten(counts: PairCounts, points: FloatArray, step: FloatArray, height: FloatArray, ridge: float) -> None:
    """Halve, in place, the steps that would lower the log-likelihood."""
    least = height - 1e-9 * (1 + np.abs(height))
    for _ in range(HALVINGS):
        # A step that is far too long can overflow; its height is then undefined.
        with np.errstate(over="ignore", invalid="ignore"):
            next_height = counts.penalised_log_likelihood(points + step, counts.probabilities(points + step), ridge)
        # At the maximum rounding can lower the height slightly; only a real fall halves the step.
        fell = ~(next_height >= least)
        if not fell.any():
            break
        step[fell] /= 2
