"""The likelihood of wins and ties, and its maximum, for one table of counts or for many at once.

Everything goes by the pairs i < j that were asked: a table of K systems is three counts a pair (i won, j won, tie), and
the derivatives of the likelihood are products with the (P, K) matrix of who meets whom.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, matrix
from analysis.stats.bradley_terry import reachable

MAX_STEPS = 100
# Steps of this size no longer change what is printed.
TOLERANCE = 1e-10
HALVINGS = 40
# Log-odds beyond this mean that the likelihood rises for ever.
DIVERGED = 30.0
# Resamples lie near the sample, so that its curvature serves them: so many steps before each is given its own.
CHORDS = 15
# Their steps shrink by a tenth or less, and no quantile of resamples is printed to more than four digits.
CHORD_TOLERANCE = 1e-8
# From so many tables on a loop over the systems costs less than it saves.
MANY = 10


@dataclass(frozen=True, slots=True)
class Fitted:
    """A point of the parameters and the chances that it gives: `won` and `tied` (K, K), row against column."""

    strengths: FloatArray
    log_nu: float | None
    won: FloatArray
    tied: FloatArray
    log_likelihood: float


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Of B tables of K systems the counts (B, P) of the pairs `first` < `second` that any of them asked.

    `meetings` (P, K) is 1 for the first and -1 for the second system of each pair. Where no table has a tie, `ties` is
    None and log nu stays out of every sum.
    """

    first: IntArray
    second: IntArray
    meetings: FloatArray
    wins: FloatArray
    losses: FloatArray
    ties: FloatArray | None

    @classmethod
    def of(cls, wins: FloatArray, ties: FloatArray) -> "PairCounts":
        """From tables of wins and ties, both of shape (B, K, K)."""
        asked = (wins + wins.transpose(0, 2, 1) + ties).any(axis=0)
        first, second = np.nonzero(np.triu(asked, 1))
        meetings = np.zeros((len(first), wins.shape[-1]))
        meetings[np.arange(len(first)), first] = 1.0
        meetings[np.arange(len(first)), second] = -1.0
        tied = ties[:, first, second] if ties.any() else None
        return cls(first, second, meetings, wins[:, first, second], wins[:, second, first], tied)

    def rows(self, chosen: IntArray) -> "PairCounts":
        """The same for some of the tables."""
        if len(chosen) == len(self.wins):
            return self
        tied = None if self.ties is None else self.ties[chosen]
        return replace(self, wins=self.wins[chosen], losses=self.losses[chosen], ties=tied)

    def weighted(self, weights: FloatArray) -> "PairCounts":
        """Sums of the tables, each taken as often as `weights` (resamples, B) say."""
        tied = None if self.ties is None else weights @ self.ties
        return replace(self, wins=weights @ self.wins, losses=weights @ self.losses, ties=tied)

    def mean(self) -> "PairCounts":
        """One table, the mean of all."""
        return self.weighted(np.full((1, len(self.wins)), 1 / len(self.wins)))

    @property
    def n_systems(self) -> int:
        return int(self.meetings.shape[1])

    @property
    def asked(self) -> FloatArray:
        total = self.wins + self.losses
        return total if self.ties is None else total + self.ties

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
        k = self.n_systems
        linked = np.zeros((len(self.wins), k, k), dtype=np.bool_)
        tied = np.zeros_like(self.wins) if self.ties is None else self.ties
        linked[:, self.first, self.second] = (self.wins > 0) | (tied > 0)
        linked[:, self.second, self.first] = (self.losses > 0) | (tied > 0)
        reach = reachable(linked)
        return np.asarray((reach & reach.transpose(0, 2, 1)).all(axis=(1, 2)))

    def chances(self, values: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """The chances (B, P) that the first wins, and of a tie, at parameters (B, K + 1)."""
        apart = values[:, self.first] - values[:, self.second]
        if self.ties is None:
            return np.asarray(special.expit(apart)), None
        up, nu = np.exp(apart / 2), np.exp(values[:, -1:])
        total = up + 1 / up + nu
        return up / total, nu / total

    def height(self, values: FloatArray, ridge: float) -> FloatArray:
        """The log-likelihood of each table, less the prior's penalty."""
        half = (values[:, self.first] - values[:, self.second]) / 2
        total = np.logaddexp(half, -half)
        if self.ties is not None:
            total = np.logaddexp(total, values[:, -1:])
        found = ((self.wins - self.losses) * half - self.asked * total).sum(axis=1)
        if self.ties is not None:
            found += np.where(self.has_ties, self.ties.sum(axis=1) * np.where(self.has_ties, values[:, -1], 0.0), 0.0)
        return np.asarray(found - ridge * np.sum(values[:, :-1] ** 2, axis=1) / 2)

    def slope(self, values: FloatArray, ridge: float) -> FloatArray:
        """The derivatives by the strengths and by log nu; shape (B, K + 1)."""
        if self.ties is None and len(values) >= MANY:
            return self._slope_by_first(values, ridge)
        won, tied = self.chances(values)
        score, found = won if tied is None else won + tied / 2, np.zeros_like(values)
        scored = self.wins if self.ties is None else self.wins + self.ties / 2
        found[:, :-1] = (scored - self.asked * score) @ self.meetings - ridge * values[:, :-1]
        if tied is not None and self.ties is not None:
            found[:, -1] = np.where(self.has_ties, (self.ties - self.asked * tied).sum(axis=1), 0.0)
        return found

    def _slope_by_first(self, values: FloatArray, ridge: float) -> FloatArray:
        """`slope` where nobody ties and tables are many: a system with all its later opponents at a time stays in the
        processor's cache, and worths need one exponential a system, not one a pair."""
        worth, found = np.exp(values[:, :-1]), np.zeros_like(values)
        found[:, :-1] = -ridge * values[:, :-1]
        systems, starts = np.unique(self.first, return_index=True)
        for system, low, high in zip(systems, starts, np.append(starts[1:], len(self.first)), strict=True):
            others: IntArray | slice = self.second[low:high]
            if self.second[high - 1] - self.second[low] == high - low - 1:
                others = slice(self.second[low], self.second[high - 1] + 1)
            own, wins = worth[:, system : system + 1], self.wins[:, low:high]
            surplus = (wins + self.losses[:, low:high]) * (own / (own + worth[:, others])) - wins
            found[:, system] -= surplus.sum(axis=1)
            found[:, others] += surplus
        return found

    def information(self, values: FloatArray, ridge: float) -> FloatArray:
        """Minus the second derivatives, (B, K + 1, K + 1), made invertible: the sum of the strengths is held at 0, and
        so is the step of log nu where it has none."""
        won, tied = self.chances(values)
        score = won if tied is None else won + tied / 2
        weight = self.asked * ((won if tied is None else won + tied / 4) - score**2)
        k = self.n_systems
        found = np.zeros((len(values), k + 1, k + 1))
        found[:, self.first, self.second] = -weight
        found[:, self.second, self.first] = -weight
        diagonal = np.arange(k)
        found[:, diagonal, diagonal] = ridge - found.sum(axis=2)[:, :k]
        found[:, :k, :k] += 1.0
        found[:, k, k] = 1.0
        if tied is not None:
            across = (self.asked * (tied / 2 - score * tied)) @ self.meetings
            corner = (self.asked * tied * (1 - tied)).sum(axis=1)
            found[:, :k, k] = found[:, k, :k] = np.where(self.has_ties[:, None], across, 0.0)
            found[:, k, k] = np.where(self.has_ties, corner, 1.0)
        return found


def maxima(counts: PairCounts, *, ridge: float = 0.0, start: FloatArray | None = None) -> FloatArray:
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
        values[rest] = _by_newton(counts.rows(rest), values[rest], ridge)
    return values


def maximum(wins: FloatArray, ties: FloatArray, *, ridge: float = 0.0) -> Fitted | None:
    """The fit to one pair of tables (K, K), None where there is none."""
    counts = PairCounts.of(wins[None], ties[None])
    values = maxima(counts, ridge=ridge)
    if np.isnan(values).any():
        return None
    strengths, log_nu = values[0, :-1], float(values[0, -1])
    height = float(counts.height(values, 0.0)[0])
    found = None if math.isinf(log_nu) else log_nu
    return Fitted(strengths - np.mean(strengths), found, *chances(strengths, log_nu), height)


def chances(strengths: FloatArray, log_nu: float) -> tuple[FloatArray, FloatArray]:
    """P[row beats column] and P[tie], both (K, K)."""
    half = (strengths[:, None] - strengths[None, :]) / 2
    total = np.logaddexp(np.logaddexp(half, -half), log_nu)
    return np.exp(half - total), np.exp(log_nu - total)


def sum_zero_covariance(wins: FloatArray, ties: FloatArray, fit: Fitted) -> FloatArray:
    """The inverse information of the strengths that add up to zero, and of log nu in the last place (0 without it)."""
    k = len(fit.strengths)
    values = np.append(fit.strengths, -math.inf if fit.log_nu is None else fit.log_nu)
    inverse = np.linalg.inv(PairCounts.of(wins[None], ties[None]).information(values[None], 0.0)[0])
    # What `information` put in about the sum, of which the labels are silent, is taken out again.
    inverse[:k, :k] -= 1 / k**2
    if fit.log_nu is None:
        inverse[k, k] = 0.0
    return np.asarray(inverse)


def checked_table(values: npt.ArrayLike, name: str) -> FloatArray:
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
    inverse = np.linalg.inv(counts.mean().information(near[np.argmax(counts.has_ties)][None], ridge)[0])
    is_settled = np.zeros(len(near), dtype=np.bool_)
    active = np.arange(len(near))
    for _ in range(CHORDS):
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
    found = np.full_like(values, np.nan)
    active, height = np.arange(len(values)), counts.height(values, ridge)
    for _ in range(MAX_STEPS):
        some, here = counts.rows(active), values[active]
        try:
            step = np.linalg.solve(some.information(here, ridge), some.slope(here, ridge)[..., None])[..., 0]
        except np.linalg.LinAlgError:
            break
        least = height[active] - 1e-9 * (1 + np.abs(height[active]))
        after = some.height(here + step, ridge)
        for _ in range(HALVINGS):
            # Rounding may cost a hair at the top; a step that really falls is halved.
            fell = np.flatnonzero(~(after >= least))
            if len(fell) == 0:
                break
            step[fell] /= 2
            after[fell] = some.rows(fell).height((here + step)[fell], ridge)
        values[active], height[active] = here + step, after
        far = np.ptp(values[active, :k], axis=1) > DIVERGED
        far |= some.has_ties & (np.abs(values[active, k]) > DIVERGED)
        is_settled = ~far & (np.abs(step).max(axis=1) < TOLERANCE)
        found[active[is_settled]] = values[active[is_settled]]
        active = active[~far & ~is_settled]
        if len(active) == 0:
            break
    return found
