"""The likelihood of wins and ties, and its maximum, for one table of counts.

All sums run over the pairs i < j that were compared. A table of K systems has three counts for each pair: i won,
j won, tie. One exponential for each pair gives the log-likelihood and both of its derivatives.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from analysis.stats.arrays import FloatArray, IntArray, matrix
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
