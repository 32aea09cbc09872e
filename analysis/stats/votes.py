"""Votes between pairs of systems, or stated chances, in rows: the likelihood of Davidson's model and its maximum.

Sums over the rows are enough: there is no matrix of rows and systems, and none of systems for each person.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse, special
from scipy.linalg import lapack

from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    label_codes_where,
    matrix,
    validate_within_bounds,
    vector,
)
from analysis.stats.cluster_models import MIN_CURVATURE, ModelJackknife

# Systems that comparisons connect.


def connected_components(adjacency: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of nodes joined by links in either direction; `adjacency` has shape (K, K).

    >>> connected_components(np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool))
    ((0, 1), (2,))
    """
    # The first node that can be reached identifies the group.
    names = np.argmax(reachability(adjacency | adjacency.T), axis=1)
    return tuple(tuple(np.flatnonzero(names == name).tolist()) for name in np.unique(names))


def reachability(adjacency: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which node reaches which along directed links, including itself; shapes (..., K, K).

    >>> reachability(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool))[0].tolist()
    [True, True, True]
    """
    n_nodes = adjacency.shape[-1]
    reach = (adjacency | np.eye(n_nodes, dtype=bool)).astype(np.float32)
    length = 1
    while length < n_nodes and not reach.all():
        reach = (np.matmul(reach, reach) > 0).astype(np.float32)
        length *= 2
    return np.asarray(reach > 0)


def checked_system_pairs(
    first: npt.ArrayLike, second: npt.ArrayLike, length: int, n_systems: int
) -> tuple[IntArray, IntArray]:
    """Return the numbers of the two systems of each row; both of shape (length,).

    Raise ValueError with the row for a number outside 0..n_systems-1 or a system compared with itself.

    >>> checked_system_pairs([0, 2], [1, 2], 2, 3)
    Traceback (most recent call last):
        ...
    ValueError: second: row 1 compares system 2 with itself
    """
    x, y = (_systems(systems, name, length, n_systems) for systems, name in ((first, "first"), (second, "second")))
    itself = np.flatnonzero(x == y)
    if len(itself):
        raise ValueError(f"second: row {int(itself[0])} compares system {int(x[itself[0]])} with itself")
    return x, y


def _systems(values: npt.ArrayLike, name: str, length: int, n_systems: int) -> IntArray:
    array = np.asarray(values)
    if array.shape != (length,):
        raise ValueError(f"{name}: expected {length} systems, got an array of shape {array.shape}")
    if length and array.dtype.kind not in "iu":
        raise ValueError(f"{name}: systems are numbered with integers")
    array = array.astype(np.int64)
    wrong = np.flatnonzero((array < 0) | (array >= n_systems))
    if len(wrong):
        raise ValueError(f"{name}: row {int(wrong[0])} is {int(array[wrong[0]])}, not one of {n_systems} systems")
    return array


# Sums over millions of votes: the derivatives of the likelihood, and what each person moves the strengths by.


MAX_STEPS = 50
TOLERANCE = 1e-9
# Coefficients beyond this mean that the likelihood has no maximum.
DIVERGED = 30.0
# Numbers of people and parameters in memory at once.
CELLS = 4_000_000
# Of people with more than this share of the information, or of the information about some difference, the move is
# computed exactly. Nobody has a larger share of the latter than the person's leverage, so it is computed for few.
LARGE_SHARE = 0.005
LARGE_SHARE_OF_A_DIFFERENCE = 0.05
LARGE_LEVERAGE = 0.2
# A root of the scaled information below this is 0: a covariate says the same as the systems.
MIN_SCALED_CURVATURE = 1e-10
POWERS = 3
# With more votes than this, Newton's method starts from a tenth as many.
MANY_VOTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Derivatives:
    """Of each vote's log-likelihood: by the log-odds and by log nu, and minus the second ones; nu's are None without ties."""

    by_odds: FloatArray
    by_nu: FloatArray | None
    odds_odds: FloatArray
    odds_nu: FloatArray | None
    nu_nu: FloatArray | None


@dataclass(frozen=True, slots=True)
class Votes:
    """Checked votes, sorted by person: pairs of systems, outcomes, weights, and covariates of the log-odds (n, p).

    `starts` (G + 1,) are the first rows of the people. `prompts` are the codes of the second sample, None if there is
    none. The parameters are K strengths, log nu if `with_nu`, p slopes.
    """

    first: IntArray
    second: IntArray
    outcomes: FloatArray
    weights: FloatArray | None
    covariates: FloatArray
    starts: IntArray
    n_systems: int
    with_nu: bool
    prompts: IntArray | None = None

    @property
    def people(self) -> IntArray:
        """Return the code of each row's person, from 0."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def n_parameters(self) -> int:
        """Return the number of parameters."""
        return self.n_systems + int(self.with_nu) + int(self.covariates.shape[1])

    @property
    def constants(self) -> FloatArray | None:
        """Return the covariates if all rows have the same: all votes about a pair have the same chances, one cell of a table."""
        if not (self.covariates == self.covariates[:1]).all():
            return None
        return np.asarray(self.covariates[:1].sum(axis=0))

    def changes_by_cell(self, parameters: FloatArray) -> FloatArray:
        """Return the log-odds of each pair of systems, with covariates that are constants; shape (K * K,)."""
        k = self.n_systems
        strengths, constants = parameters[:k], self.covariates[:1].sum(axis=0)
        apart = (strengths[:, None] - strengths[None, :]).ravel()
        return np.asarray(apart + constants @ parameters[k + self.with_nu :])

    def weighted(self, values: FloatArray) -> FloatArray:
        """Return values by vote times the weights."""
        return values if self.weights is None else np.asarray(values * self.weights, dtype=np.float64)

    def derivatives(self, parameters: FloatArray) -> Derivatives:
        """Return the weighted derivatives at the parameters."""
        k = self.n_systems
        log_nu = float(parameters[k]) if self.with_nu else None
        constants, strengths, slopes = self.constants, parameters[:k], parameters[k + self.with_nu :]
        if constants is None:
            odds = strengths[self.first] - strengths[self.second] + self.covariates @ slopes
        else:
            odds = self.changes_by_cell(parameters)
        tied = None
        if log_nu is None:
            won = special.expit(odds)
            score, curvature = won, won * (1 - won)
        else:
            nu = np.exp(log_nu)
            up = np.exp(np.abs(odds) / -2)
            total = 1 + up * up + nu * up
            tied = nu * up / total
            won = np.where(odds >= 0, 1.0, up * up) / total
            score = won + tied / 2
            curvature = won + tied / 4 - score**2
        cells = None if constants is None else self.first * k + self.second

        def by_vote(values: FloatArray) -> FloatArray:
            return self.weighted(np.asarray(values if cells is None else values[cells]))

        by_odds = self.weighted(self.outcomes - (score if cells is None else score[cells]))
        if tied is None:
            return Derivatives(by_odds, None, by_vote(curvature), None, None)
        by_nu = self.weighted((self.outcomes == 0.5) - (tied if cells is None else tied[cells]))
        return Derivatives(
            by_odds, by_nu, by_vote(curvature), by_vote(tied / 2 - score * tied), by_vote(tied * (1 - tied))
        )

    def parts(self) -> Iterator[tuple[int, slice, IntArray]]:
        """Give the rows of as many people as fit into memory at once: the first person, the rows, and their first rows among these."""
        n, step = len(self.starts) - 1, max(1, CELLS // self.n_parameters)
        for low in range(0, n, step):
            high = min(n, low + step)
            yield low, slice(int(self.starts[low]), int(self.starts[high])), self.starts[low:high] - self.starts[low]

    def gradient(self, found: Derivatives) -> FloatArray:
        """Return the sum of the first derivatives over all votes."""
        rows = slice(0, len(self.outcomes))
        return np.asarray(self.sums(rows, np.zeros(1, dtype=np.int64), found.by_odds, found.by_nu)[0])

    def sums(self, rows: slice, starts: IntArray, by_odds: FloatArray, by_nu: FloatArray | None) -> FloatArray:
        """Return the sums over each person's votes of (e_x - e_y, covariates) by_odds, and of by_nu; (people, parameters).

        `starts` are the first rows of the people among `rows`; the derivatives are those of `rows`.
        """
        k, n_people = self.n_systems, len(starts)
        sizes = np.diff(np.append(starts, len(by_odds)))
        places = np.repeat(np.arange(n_people) * k, sizes)
        table = np.zeros((n_people, self.n_parameters))
        gained = np.bincount(places + self.first[rows], by_odds, minlength=n_people * k)
        lost = np.bincount(places + self.second[rows], by_odds, minlength=n_people * k)
        table[:, :k] = (gained - lost).reshape(n_people, k)
        if by_nu is not None:
            table[:, k] = np.add.reduceat(by_nu, starts)
        for place, column in enumerate(self.covariates[rows].T):
            table[:, k + self.with_nu + place] = np.add.reduceat(by_odds * column, starts)
        return table

    def information(self, found: Derivatives, rows: slice | None = None) -> FloatArray:
        """Return minus the sum of the second derivatives over all votes, or over some rows; (parameters, parameters)."""
        rows = slice(0, len(self.outcomes)) if rows is None else rows
        k, n = self.n_systems, self.n_parameters
        x, y, z = self.first[rows], self.second[rows], self.covariates[rows]
        information = np.zeros((n, n))
        table = np.bincount(x * k + y, found.odds_odds[rows], minlength=k * k).reshape(k, k)
        table = table + table.T
        information[:k, :k] = np.diag(table.sum(axis=1)) - table

        def by_system(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(x, values, minlength=k) - np.bincount(y, values, minlength=k))

        if found.odds_nu is not None and found.nu_nu is not None:
            information[:k, k] = information[k, :k] = by_system(found.odds_nu[rows])
            information[k, k] = found.nu_nu[rows].sum()
        first = k + self.with_nu
        for place in range(z.shape[1]):
            column = first + place
            weighted = found.odds_odds[rows] * z[:, place]
            information[:k, column] = information[column, :k] = by_system(weighted)
            information[column, first:] = weighted @ z
            if found.odds_nu is not None:
                information[k, column] = information[column, k] = found.odds_nu[rows] @ z[:, place]
        return information

    def fitted(self, start: FloatArray) -> "FittedVotes | None":
        """Run Newton's method from `start`; return None if there is no maximum."""
        parameters = start
        if self.covariates.shape[1] and len(self.outcomes) > MANY_VOTES:
            # A sample is enough for the first steps.
            near = self.sampled(len(self.outcomes) // (MANY_VOTES // 10)).fitted(start)
            parameters = start if near is None else near.parameters
        for _ in range(MAX_STEPS):
            found = self.derivatives(parameters)
            information = self.information(found)
            information += self._fixed(information)
            step = np.linalg.solve(information, self.gradient(found))
            largest = float(np.max(np.abs(step)))
            if not np.isfinite(largest) or np.max(np.abs(parameters + step)) > DIVERGED:
                return None
            if largest < TOLERANCE:
                return FittedVotes(self, parameters + step, found, information, np.asarray(np.linalg.inv(information)))
            # A long step can leave the region where Newton's method converges.
            parameters = parameters + step * min(1.0, 2 / largest)
        return None

    def sampled(self, every: int) -> "Votes":
        """Return every nth vote, for a fit without people."""
        return self.selected(slice(None, None, every), self.starts[:0])

    def grouped(self, codes: IntArray) -> "Votes":
        """Return the votes sorted by other groups than people, with codes from 0 that all occur; shape (n_rows,)."""
        if np.all(np.diff(codes) >= 0):
            return replace(self, starts=np.append(0, np.cumsum(np.bincount(codes))))
        return self.selected(sorted_by_code(codes), np.append(0, np.cumsum(np.bincount(codes))))

    def selected(self, rows: IntArray | slice, starts: IntArray) -> "Votes":
        """Return some rows, with the first rows of their people."""
        weights = None if self.weights is None else self.weights[rows]
        arrays = {name: getattr(self, name)[rows] for name in ("first", "second", "outcomes", "covariates")}
        return replace(self, weights=weights, starts=starts, prompts=None, **arrays)

    def is_identified(self, parameters: FloatArray) -> bool:
        """Return whether no covariate says the same as the systems or as other covariates."""
        information = self.information(self.derivatives(parameters))
        information += self._fixed(information)
        # Covariates have units of their own.
        scale = 1 / np.sqrt(np.maximum(np.diag(information), 1e-300))
        return bool(np.linalg.eigvalsh(information * scale[:, None] * scale[None, :])[0] > MIN_SCALED_CURVATURE)

    def _fixed(self, information: FloatArray) -> FloatArray:
        """Return the constant that fixes the sum of the strengths, which votes leave open."""
        k = self.n_systems
        fixed = np.zeros_like(information)
        fixed[:k, :k] = max(float(np.trace(information[:k, :k])) / k**2, 1e-12)
        return fixed


@dataclass(frozen=True, slots=True)
class FittedVotes:
    """Votes at the maximum of their likelihood.

    `information`, shape (m, m), is minus the second derivatives of all votes, with a constant that fixes the sum of the
    strengths. `inverse` is its inverse.
    """

    votes: Votes
    parameters: FloatArray
    derivatives: Derivatives
    information: FloatArray
    inverse: FloatArray

    def sums(self, codes: IntArray, n_groups: int) -> FloatArray:
        """Return the sums of the first derivatives over the votes of groups; `codes` (n_rows,), shape (n_groups, m)."""
        votes = self.votes.grouped(codes)
        found = votes.derivatives(self.parameters)
        return votes.sums(slice(0, len(codes)), votes.starts[:n_groups], found.by_odds, found.by_nu)

    def jackknife(self, codes: IntArray) -> ModelJackknife:
        """Return the jackknife over clusters with these codes from 0; shape (n_rows,). Covariates must be constants."""
        votes, k = self.votes.grouped(codes), self.votes.n_systems
        found = votes.derivatives(self.parameters)
        moved, lost = zip(*replace(self, votes=votes, derivatives=found).moves(), strict=True)
        cells, shape = votes.first * k + votes.second, (len(votes.starts) - 1, k * k)

        def sums_by_cell(curves: FloatArray) -> sparse.csr_array:
            return sparse.csr_array((curves, cells, votes.starts), shape=shape)

        of_odds = sums_by_cell(found.odds_odds)
        of_nu = None
        if found.odds_nu is not None and found.nu_nu is not None:
            of_nu = sums_by_cell(found.odds_nu), sums_by_cell(found.nu_nu).sum(axis=1)

        def informed(direction: FloatArray) -> FloatArray:
            apart = votes.changes_by_cell(direction)
            information = of_odds @ apart**2
            if of_nu is not None:
                information += 2 * direction[k] * (of_nu[0] @ apart) + direction[k] ** 2 * of_nu[1]
            return np.asarray(information)

        return ModelJackknife(self.inverse, informed, np.concatenate(moved) @ self.inverse, np.concatenate(lost))

    def moves(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Give, for some people after another, the information times what each of them moves, and what is lost without them.

        The latter are directions that are not identified without some person; shape (L, m). Without person g the
        parameters move by (I - I_g)^-1 s_g = I^-1 s_g + I^-1 I_g I^-1 s_g + ... The sum is cut after the second term,
        whose error is of the order of the squared share of a person; for people with large shares the equation is
        solved.
        """
        votes, found = self.votes, self.derivatives
        total = float(found.odds_odds.sum())
        least = MIN_CURVATURE * float(np.trace(self.information)) / votes.n_parameters
        probe = np.random.default_rng(0).normal(size=votes.n_parameters)
        for low, rows, starts in votes.parts():
            sums = votes.sums(rows, starts, found.by_odds[rows], None if found.by_nu is None else found.by_nu[rows])
            moved = sums + self._curved(rows, starts, sums @ self.inverse)
            weights = found.odds_odds[rows]
            largest = self._largest_shares(rows, starts)
            is_large = np.add.reduceat(weights, starts) > LARGE_SHARE * total
            is_large |= largest > LARGE_SHARE_OF_A_DIFFERENCE
            lost = [np.empty((0, votes.n_parameters))]
            for one in np.flatnonzero(is_large).tolist():
                own = slice(int(votes.starts[low + one]), int(votes.starts[low + one + 1]))
                without = self.information - votes.information(found, own)
                *_, solved, failure = lapack.dposv(without, np.column_stack([sums[one], probe]))
                # A random vector has a part along a direction without curvature, which the solution makes very long.
                if not failure and least * np.linalg.norm(solved[:, 1]) < np.linalg.norm(probe):
                    moved[one] = self.information @ solved[:, 0]
                    continue
                roots, directions = np.linalg.eigh(without)
                is_lost = roots <= least
                kept = directions[:, ~is_lost]
                moved[one] = self.information @ (kept @ (kept.T @ sums[one] / roots[~is_lost]))
                lost.append(directions[:, is_lost].T)
            yield moved, np.concatenate(lost)

    def person_covariance(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the parameters' covariance over people (CV3), and the overlap of people's shares of information.

        The result has the covariance (m, m), the overlaps (K, K) of people's shares of the systems' information, each
        person's share of all information (G,), and the directions (L, m) that are not identified without some person,
        whose variance is unknown.
        """
        votes, weights = self.votes, self.derivatives.odds_odds
        k, n = votes.n_systems, len(votes.starts) - 1
        shares = np.add.reduceat(weights, votes.starts[:-1])
        products, overlap, totals = np.zeros_like(self.information), np.zeros((k, k)), np.zeros(k)
        directions = []
        for side in (votes.first, votes.second):
            totals += np.bincount(side, weights, minlength=k)
        for (moved, lost), (_, rows, starts) in zip(self.moves(), votes.parts(), strict=True):
            products += moved.T @ moved
            directions.append(lost)
            places = np.repeat(np.arange(len(starts)) * k, np.diff(np.append(starts, rows.stop - rows.start)))
            of_systems = sum(
                np.bincount(places + side[rows], weights[rows], minlength=len(starts) * k)
                for side in (votes.first, votes.second)
            )
            table = (np.asarray(of_systems).reshape(-1, k) / totals).astype(np.float32)
            overlap += table.T @ table
        covariance = (n - 1) / n * self.inverse @ products @ self.inverse
        return covariance, overlap, shares / shares.sum(), np.concatenate(directions)

    def _largest_shares(self, rows: slice, starts: IntArray) -> FloatArray:
        """Return each person's largest share of the information about any difference, by power iteration; 0 if it is small."""
        people = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows.stop - rows.start)))
        leverages = np.add.reduceat(self.derivatives.odds_odds[rows] * self._variances(rows), starts)
        largest = np.where(leverages > LARGE_LEVERAGE, leverages, 0.0)
        chosen = np.flatnonzero(largest)
        if len(chosen) == 0:
            return largest
        is_chosen = largest[people] > 0
        votes = self.votes.selected(rows.start + np.flatnonzero(is_chosen), np.searchsorted(people[is_chosen], chosen))
        fit = replace(self, votes=votes, derivatives=votes.derivatives(self.parameters))
        moves = np.random.default_rng(0).normal(size=(len(chosen), votes.n_parameters))
        for _ in range(POWERS):
            before = moves
            moves = fit._curved(slice(0, len(votes.outcomes)), votes.starts, before) @ self.inverse
        sizes = [np.einsum("gi,gi->g", one @ self.information, one) for one in (moves, before)]
        largest[chosen] = np.sqrt(sizes[0] / sizes[1])
        return largest

    def _variances(self, rows: slice) -> FloatArray:
        """Return the variances of the log-odds of rows, by the inverse of the information."""
        votes, k, inverse = self.votes, self.votes.n_systems, self.inverse
        x, y, z, place = votes.first[rows], votes.second[rows], votes.covariates[rows], k + votes.with_nu
        scale = np.diag(inverse)[:k]
        variances = (scale[:, None] + scale[None, :] - 2 * inverse[:k, :k]).ravel()[x * k + y]
        for column in range(z.shape[1]):
            across = inverse[place + column, :k]
            variances = variances + z[:, column] * (2 * (across[x] - across[y]) + z @ inverse[place:, place + column])
        return np.asarray(variances)

    def _curved(self, rows: slice, starts: IntArray, moves: FloatArray) -> FloatArray:
        """Return I_g times the moves of each person g; (people, parameters)."""
        votes, found, k = self.votes, self.derivatives, self.votes.n_systems
        people = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows.stop - rows.start)))
        flat, places = moves.ravel(), people * votes.n_parameters
        apart = flat[places + votes.first[rows]] - flat[places + votes.second[rows]]
        if votes.covariates.shape[1]:
            apart += np.einsum("np,np->n", votes.covariates[rows], moves[people, k + votes.with_nu :])
        if found.odds_nu is None or found.nu_nu is None:
            return votes.sums(rows, starts, found.odds_odds[rows] * apart, None)
        of_nu = moves[people, k]
        by_odds = found.odds_odds[rows] * apart + found.odds_nu[rows] * of_nu
        return votes.sums(rows, starts, by_odds, found.odds_nu[rows] * apart + found.nu_nu[rows] * of_nu)


def checked_votes(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    n_systems: int,
    ties: str,
    covariates: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Votes:
    """Return the votes without the missing ones, sorted by person. Raise ValueError with the row for an invalid one."""
    if ties not in ("davidson", "half"):
        raise ValueError(f"ties: {ties!r} is neither davidson nor half")
    values = vector(np.asarray(outcomes, dtype=np.float64), "outcomes")
    x, y = checked_system_pairs(first, second, len(values), n_systems)
    is_used = ~np.isnan(values)
    if ties == "davidson":
        wrong = np.flatnonzero(is_used & (values != 0) & (values != 0.5) & (values != 1))
        if len(wrong):
            raise ValueError(f"outcomes: row {int(wrong[0])} is {values[wrong[0]]:g}, none of 0, .5 and 1")
    validate_within_bounds(values, (0.0, 1.0), "outcomes")
    table = np.empty((len(values), 0)) if covariates is None else matrix(covariates, "covariates")
    if len(table) != len(values):
        raise ValueError(f"covariates: {len(table)} rows where outcomes has {len(values)}")
    if np.isnan(table[is_used]).any():
        row = int(np.flatnonzero(np.isnan(table).any(axis=1) & is_used)[0])
        raise ValueError(f"covariates: row {row} is missing")
    size = None if weights is None else vector(weights, "weights")
    if size is not None and (size.shape != values.shape or not np.all(size[is_used] > 0)):
        raise ValueError("weights: one positive number a row is needed")
    codes, n_people = label_codes_where(annotators, "annotators", is_used)
    by_person = sorted_by_code(codes)
    order = by_person if is_used.all() else np.flatnonzero(is_used)[by_person]
    return Votes(
        x[order],
        y[order],
        values[order],
        None if size is None else size[order],
        table[order],
        np.append(0, np.cumsum(np.bincount(codes, minlength=n_people))).astype(np.int64),
        n_systems,
        ties == "davidson" and bool(np.any(values == 0.5)),
        None if prompts is None else label_codes_where(prompts, "prompts", is_used)[0][by_person],
    )


def win_and_tie_tables(votes: Votes) -> tuple[FloatArray, FloatArray]:
    """Return the weighted wins (halves for ties without nu), and the weighted ties; both (K, K)."""
    k = votes.n_systems
    cells, size = votes.first * k + votes.second, k * k
    is_tie = (votes.outcomes == 0.5) if votes.with_nu else np.zeros(len(votes.outcomes), dtype=np.bool_)
    won = np.bincount(cells, votes.weighted(np.where(is_tie, 0.0, votes.outcomes)), minlength=size).reshape(k, k)
    lost = np.bincount(cells, votes.weighted(np.where(is_tie, 0.0, 1 - votes.outcomes)), minlength=size).reshape(k, k)
    tied = np.bincount(cells, votes.weighted(is_tie.astype(np.float64)), minlength=size).reshape(k, k)
    return np.asarray(won + lost.T, dtype=np.float64), np.asarray(tied + tied.T, dtype=np.float64)


def sorted_by_code(codes: IntArray) -> IntArray:
    """Return the stable order of codes from 0: by their last 16 bits, then by the next, which numpy sorts in linear time."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    rest = codes >> 16
    while len(rest) and rest.max() > 0:
        order = order[np.argsort(rest[order].astype(np.uint16), kind="stable")]
        rest = rest >> 16
    return np.asarray(order, dtype=np.int64)
