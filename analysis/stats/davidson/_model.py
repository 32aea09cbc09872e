"""The likelihood of wins and ties, and its maximum, for one table of counts or for many at once.

Everything goes by the pairs i < j that were asked: a table of K systems is three counts a pair (i won, j won, tie). What
the likelihood is made of at a point, one exponential a pair, serves its height there and both of its derivatives.
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
# Newton's steps square: what a step of this size leaves to the next is 1e-12.
TOLERANCE = 1e-6
HALVINGS = 40
# Newton's step rises where it changes no difference of strengths by more than this, r: without ties the third derivative along
# it is at most r times the second, and (exp(r) - r - 1) / r^2 < 1 up to 1.79 (Bach 2010, proposition 1).
SAFE_STEP = 1.79
# Log-odds beyond this mean that the likelihood rises for ever.
DIVERGED = 30.0
# Resamples lie near the sample, so that its curvature serves them: so many steps before each is given its own.
MAX_CHORD_STEPS = 15
# Their steps shrink by a tenth or less, and no quantile of resamples is printed to more than four digits.
CHORD_TOLERANCE = 1e-8
# From so many tables on a loop over the systems costs less than it saves.
MANY_TABLES = 10

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A point of the parameters and the chances that it gives: `won` and `tied` (K, K), row against column.

    `information` (K + 1, K + 1) is that of the labels alone, made invertible.
    """

    strengths: FloatArray
    log_nu: float | None
    won: FloatArray
    tied: FloatArray
    log_likelihood: float
    information: FloatArray

    def sum_zero_covariance(self) -> FloatArray:
        """The inverse information of the strengths that add up to zero, and of log nu in the last place (0 without)."""
        k = len(self.strengths)
        inverse = np.linalg.inv(self.information)
        # What `PairCounts.information` put in about the sum, of which the labels are silent, is taken out again.
        inverse[:k, :k] -= 1 / k**2
        if self.log_nu is None:
            inverse[k, k] = 0.0
        return np.asarray(inverse)


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """At some parameters, for B tables of P pairs: how far `apart` the two strengths are, the chances that the first wins,
    and of a tie (None where no table has one), and the logarithm of what they are divided by, e^half + e^-half + nu."""

    strength_differences: FloatArray
    won: FloatArray
    tied: FloatArray | None
    log_total: FloatArray

    @property
    def expected_score(self) -> FloatArray:
        """What the first of a pair may expect, a tie counting half."""
        return self.won if self.tied is None else self.won + self.tied / 2

    def rows(self, table_indices: IntArray) -> "PairProbabilities":
        """The same for some of the tables."""
        tied = None if self.tied is None else self.tied[table_indices]
        return PairProbabilities(
            self.strength_differences[table_indices], self.won[table_indices], tied, self.log_total[table_indices]
        )

    @classmethod
    def at(cls, strength_differences: FloatArray, log_nu: FloatArray | None) -> "PairProbabilities":
        """From differences of strengths (..., P), and log nu as broadcasts to them."""
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
    """Of B tables of K systems the counts (B, P) of the pairs `first` < `second` that any of them asked.

    Where no table has a tie, `ties` is None and log nu stays out of every sum.
    """

    first: IntArray
    second: IntArray
    n_systems: int
    wins: FloatArray
    losses: FloatArray
    ties: FloatArray | None

    @classmethod
    def of(cls, wins: FloatArray, ties: FloatArray) -> "PairCounts":
        """From tables of wins and ties, both of shape (B, K, K)."""
        n_tables, k, _ = wins.shape
        asked = (wins + wins.transpose(0, 2, 1) + ties).any(axis=0)
        cells = np.flatnonzero(np.triu(asked, 1))
        first, second = np.divmod(cells, k)
        won, tied = wins.reshape(n_tables, -1), ties.reshape(n_tables, -1)
        of_pairs = tied.take(cells, axis=1) if ties.any() else None
        return cls(first, second, k, won.take(cells, axis=1), won.take(second * k + first, axis=1), of_pairs)

    def rows(self, table_indices: IntArray) -> "PairCounts":
        """The same for some of the tables."""
        if len(table_indices) == len(self.wins):
            return self
        tied = None if self.ties is None else self.ties[table_indices]
        return replace(self, wins=self.wins[table_indices], losses=self.losses[table_indices], ties=tied)

    def weighted_sums(self, weights: FloatArray) -> "PairCounts":
        """Sums of the tables, each taken as often as `weights` (resamples, B) say."""
        tied = None if self.ties is None else weights @ self.ties
        return replace(self, wins=weights @ self.wins, losses=weights @ self.losses, ties=tied)

    def mean(self) -> "PairCounts":
        """One table, the mean of all."""
        return self.weighted_sums(np.full((1, len(self.wins)), 1 / len(self.wins)))

    @property
    def asked(self) -> FloatArray:
        total = self.wins + self.losses
        return total if self.ties is None else total + self.ties

    @property
    def points(self) -> FloatArray:
        """Points of the first of each pair, a tie counting half."""
        return self.wins if self.ties is None else self.wins + self.ties / 2

    @property
    def has_ties(self) -> BoolArray:
        """Whether a table has any tie; without one nu is 0, at the edge of its range."""
        if self.ties is None:
            return np.zeros(len(self.wins), dtype=np.bool_)
        return np.asarray(self.ties.any(axis=1))

    def has_maximum(self) -> BoolArray:
        """Whether there is a way from every system to every other, from winner to loser or over a tie.

        Without one somebody's strength is unbounded (Ford 1957). With ties it is necessary and not sufficient.
        """
        tied = 0.0 if self.ties is None else self.ties
        linked = self._table(self.wins + tied > 0) | self._table(self.losses + tied > 0).transpose(0, 2, 1)
        reach = reachability(linked)
        return np.asarray((reach & reach.transpose(0, 2, 1)).all(axis=(1, 2)))

    def initial_strengths(self) -> FloatArray:
        """The strengths (B, K) that would explain the shares of points if all opponents were alike: two of Newton's
        steps nearer than 0."""
        (won, lost), (first, second) = self._sums(self.points - self.asked / 2), self._sums(self.asked)
        share = (won - lost + (first + second) / 2 + 0.5) / (first + second + 1)
        found = np.log(share / (1 - share))
        return np.asarray(found - found.mean(axis=1, keepdims=True))

    def probabilities(self, parameters: FloatArray) -> PairProbabilities:
        """At the parameters (B, K + 1)."""
        apart = parameters.take(self.first, axis=1) - parameters.take(self.second, axis=1)
        return PairProbabilities.at(apart, None if self.ties is None else parameters[:, -1:])

    def height(self, parameters: FloatArray, pair_probabilities: PairProbabilities, ridge: float) -> FloatArray:
        """The log-likelihood of each table, less the prior's penalty."""
        found = (
            (self.wins - self.losses) * pair_probabilities.strength_differences / 2
            - self.asked * pair_probabilities.log_total
        ).sum(axis=1)
        if self.ties is not None:
            found += np.where(
                self.has_ties, self.ties.sum(axis=1) * np.where(self.has_ties, parameters[:, -1], 0.0), 0.0
            )
        return np.asarray(found - ridge * np.sum(parameters[:, :-1] ** 2, axis=1) / 2)

    def slope(self, parameters: FloatArray, ridge: float) -> FloatArray:
        """The derivatives by the strengths and by log nu; shape (B, K + 1)."""
        if len(parameters) >= MANY_TABLES:
            return self._gradient_by_first(parameters, ridge)
        return self.gradient_given_probabilities(parameters, self.probabilities(parameters), ridge)

    def gradient_given_probabilities(
        self, parameters: FloatArray, pair_probabilities: PairProbabilities, ridge: float
    ) -> FloatArray:
        """`slope` where the chances are known."""
        found = np.zeros_like(parameters)
        given, taken = self._sums(self.points - self.asked * pair_probabilities.expected_score)
        found[:, :-1] = given - taken - ridge * parameters[:, :-1]
        if pair_probabilities.tied is not None and self.ties is not None:
            found[:, -1] = np.where(self.has_ties, (self.ties - self.asked * pair_probabilities.tied).sum(axis=1), 0.0)
        return found

    def _sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What stands (B, P) at the pairs in which a system is the first, added up, and the second; both (B, K)."""
        table = self._table(values)
        return np.asarray(table.sum(axis=2)), np.asarray(table.sum(axis=1))

    def _table(self, values: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """(B, K, K) with what stands (B, P) at the pairs in the row of the first and the column of the second."""
        k = self.n_systems
        table = np.zeros((len(values), k * k), dtype=values.dtype)
        table[:, self.first * k + self.second] = values
        return table.reshape(-1, k, k)

    def _gradient_by_first(self, values: FloatArray, ridge: float) -> FloatArray:
        """`slope` where tables are many: a system with all its later opponents at a time stays in the processor's cache,
        and worths need one exponential a system, not one a pair."""
        worth, found = np.exp(values[:, :-1]), np.zeros_like(values)
        found[:, :-1] = -ridge * values[:, :-1]
        root, nu = np.sqrt(worth), np.exp(values[:, -1:])
        systems, starts = np.unique(self.first, return_index=True)
        for system, low, high in zip(systems, starts, np.append(starts[1:], len(self.first)), strict=True):
            others: IntArray | slice = self.second[low:high]
            if self.second[high - 1] - self.second[low] == high - low - 1:
                others = slice(self.second[low], self.second[high - 1] + 1)
            own, scored = worth[:, system : system + 1], self.wins[:, low:high]
            asked, score = scored + self.losses[:, low:high], own
            total = own + worth[:, others]
            if self.ties is not None:
                ties, tied = self.ties[:, low:high], nu * root[:, system : system + 1] * root[:, others]
                asked, scored = asked + ties, scored + ties / 2
                total, score = total + tied, own + tied / 2
                found[:, -1] += (ties - asked * (tied / total)).sum(axis=1)
            surplus = asked * (score / total) - scored
            found[:, system] -= surplus.sum(axis=1)
            found[:, others] += surplus
        found[~self.has_ties, -1] = 0.0
        return found

    def information(self, pair_probabilities: PairProbabilities, ridge: float) -> FloatArray:
        """Minus the second derivatives, (B, K + 1, K + 1), made invertible: the sum of the strengths is held at 0, and
        so is the step of log nu where it has none."""
        won, tied, score = pair_probabilities.won, pair_probabilities.tied, pair_probabilities.expected_score
        weight = self.asked * ((won if tied is None else won + tied / 4) - score**2)
        k = self.n_systems
        found = np.zeros((len(won), k + 1, k + 1))
        upper, diagonal = self._table(weight), np.arange(k)
        found[:, :k, :k] = 1.0 - upper - upper.transpose(0, 2, 1)
        found[:, diagonal, diagonal] += ridge + upper.sum(axis=2) + upper.sum(axis=1)
        found[:, k, k] = 1.0
        if tied is not None:
            given, taken = self._sums(self.asked * (tied / 2 - score * tied))
            corner = (self.asked * tied * (1 - tied)).sum(axis=1)
            found[:, :k, k] = found[:, k, :k] = np.where(self.has_ties[:, None], given - taken, 0.0)
            found[:, k, k] = np.where(self.has_ties, corner, 1.0)
        return found


def fit_parameters_by_table(counts: PairCounts, *, ridge: float = 0.0, start: FloatArray | None = None) -> FloatArray:
    """The parameters (B, K + 1) at which each table is likeliest: strengths that add up to 0, and log nu.

    log nu is minus infinity for a table without ties; all is NaN where there is no maximum, which without a `ridge`
    (the precision of a normal prior on the strengths) may be. `start` (K + 1,) is a point near all of them. The
    likelihood is concave, so where its slope is 0 is the maximum, however it was reached.
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
        # What has settled has a maximum; of the others only those are searched that may have one.
        is_there = counts.rows(rest).has_maximum()
        values[rest[~is_there]] = np.nan
        rest = rest[is_there]
    if len(rest):
        some = counts.rows(rest)
        values[rest, :k] = some.initial_strengths()
        values[rest] = _by_newton(some, values[rest], ridge)
    return values


def fit_win_and_tie_table(wins: FloatArray, ties: FloatArray, *, ridge: float = 0.0) -> FittedModel | None:
    """The fit to one pair of tables (K, K), None where there is none."""
    counts = PairCounts.of(wins[None], ties[None])
    values = fit_parameters_by_table(counts, ridge=ridge)
    if np.isnan(values).any():
        return None
    strengths, log_nu = values[0, :-1], float(values[0, -1])
    here = counts.probabilities(values)
    is_tied = math.isfinite(log_nu)
    of_all = PairProbabilities.at(strengths[:, None] - strengths[None, :], np.array(log_nu) if is_tied else None)
    tied = np.zeros_like(of_all.won) if of_all.tied is None else of_all.tied
    return FittedModel(
        strengths - np.mean(strengths),
        log_nu if is_tied else None,
        of_all.won,
        tied,
        float(counts.height(values, here, 0.0)[0]),
        counts.information(here, 0.0)[0],
    )


def checked_square_counts(values: npt.ArrayLike, name: str) -> FloatArray:
    """`values` as a square table of counts; raises ValueError, naming the row, for what is none."""
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
    """Steps by the curvature of the mean table at `near`, for all tables; and which of them have settled."""
    mean = counts.mean()
    inverse = np.linalg.inv(mean.information(mean.probabilities(near[np.argmax(counts.has_ties)][None]), ridge)[0])
    is_settled = np.zeros(len(near), dtype=np.bool_)
    active = np.arange(len(near))
    for _ in range(MAX_CHORD_STEPS):
        some = counts.rows(active)
        step = some.slope(near[active], ridge) @ inverse
        step[~some.has_ties, -1] = 0.0
        near[active] += step
        size = np.abs(step).max(axis=1)
        is_settled[active[size < CHORD_TOLERANCE]] = True
        # What runs away is left to the surer way.
        active = active[(size >= CHORD_TOLERANCE) & (size < 1)]
        if len(active) == 0:
            break
    return near, is_settled


def _by_newton(counts: PairCounts, values: FloatArray, ridge: float) -> FloatArray:
    """Newton's method for each table, a step that falls halved; NaN for those that run away or do not settle."""
    k = counts.n_systems
    found, active = np.full_like(values, np.nan), np.arange(len(values))
    some, here = counts, values
    for _ in range(MAX_STEPS):
        chances = some.probabilities(here)
        step = _solved(some.information(chances, ridge), some.gradient_given_probabilities(here, chances, ridge))
        if step is None:
            break
        size = np.abs(step).max(axis=1)
        if some.ties is not None or 2 * size.max() > SAFE_STEP:
            _shorten(some, here, step, some.height(here, chances, ridge), ridge)
        here = here + step
        far = np.ptp(here[:, :k], axis=1) > DIVERGED
        far |= some.has_ties & (np.abs(here[:, k]) > DIVERGED)
        is_settled = ~far & (size < TOLERANCE)
        found[active[is_settled]] = here[is_settled]
        going = np.flatnonzero(~far & ~is_settled)
        if len(going) == 0:
            break
        if len(going) < len(active):
            active, here, some = active[going], here[going], some.rows(going)
    return found


def _solved(information: FloatArray, slope: FloatArray) -> FloatArray | None:
    """The step of each table, None where the information of one is singular."""
    if len(information) == 1:
        # It is symmetric and positive: Cholesky's way is half the work, for which numpy has no function.
        *_, step, failure = lapack.dposv(information[0], slope[0])
        return None if failure else np.asarray(step)[None]
    try:
        return np.asarray(np.linalg.solve(information, slope[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return None


def _shorten(counts: PairCounts, here: FloatArray, step: FloatArray, height: FloatArray, ridge: float) -> None:
    """Halve, in place, the steps that would fall."""
    least = height - 1e-9 * (1 + np.abs(height))
    for _ in range(HALVINGS):
        # A step that is far too long may overflow, which is no height either.
        with np.errstate(over="ignore", invalid="ignore"):
            there = counts.height(here + step, counts.probabilities(here + step), ridge)
        # Rounding may cost a hair at the top; a step that really falls is halved.
        fell = ~(there >= least)
        if not fell.any():
            break
        step[fell] /= 2
