"""Sums over millions of votes: the derivatives of the likelihood, and what each person moves the strengths by."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray, label_codes_where, matrix, validate_within_bounds, vector
from analysis.stats.bradley_terry import checked_system_pairs

MAX_STEPS = 50
TOLERANCE = 1e-9
# Coefficients beyond this mean that the likelihood has no maximum.
DIVERGED = 30.0
# Numbers of people and parameters in memory at once.
CELLS = 4_000_000
# Of people with more than this share of the information, the move is computed exactly.
LARGE_SHARE = 0.005
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

    `starts` (G + 1,) are the first rows of the people. The parameters are K strengths, log nu if `with_nu`, p slopes.
    """

    first: IntArray
    second: IntArray
    outcomes: FloatArray
    weights: FloatArray | None
    covariates: FloatArray
    starts: IntArray
    n_systems: int
    with_nu: bool

    @property
    def n_parameters(self) -> int:
        """Return the number of parameters."""
        return self.n_systems + int(self.with_nu) + int(self.covariates.shape[1])

    def weighted(self, values: FloatArray) -> FloatArray:
        """Return values by vote times the weights."""
        return values if self.weights is None else np.asarray(values * self.weights, dtype=np.float64)

    def derivatives(self, parameters: FloatArray) -> Derivatives:
        """Return the weighted derivatives at the parameters."""
        k = self.n_systems
        log_nu = float(parameters[k]) if self.with_nu else None
        is_plain = self.covariates.shape[1] == 0
        # Without covariates all votes about a pair have the same chances, so a table is enough.
        strengths = parameters[:k]
        if is_plain:
            odds = (strengths[:, None] - strengths[None, :]).ravel()
        else:
            slopes = parameters[k + self.with_nu :]
            odds = strengths[self.first] - strengths[self.second] + self.covariates @ slopes
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
        cells = self.first * k + self.second if is_plain else None

        def by_vote(values: FloatArray) -> FloatArray:
            return self.weighted(np.asarray(values if cells is None else values[cells]))

        by_odds = self.weighted(self.outcomes - (score if cells is None else score[cells]))
        if tied is None:
            return Derivatives(by_odds, None, by_vote(curvature), None, None)
        by_nu = self.weighted((self.outcomes == 0.5) - (tied if cells is None else tied[cells]))
        return Derivatives(
            by_odds, by_nu, by_vote(curvature), by_vote(tied / 2 - score * tied), by_vote(tied * (1 - tied))
        )

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

    def fitted(self, start: FloatArray) -> tuple[FloatArray, Derivatives, FloatArray] | None:
        """Run Newton's method from `start`; return parameters, derivatives and information, None without a maximum."""
        parameters = start
        if self.covariates.shape[1] and len(self.outcomes) > MANY_VOTES:
            # A sample is enough for the first steps.
            near = self.sampled(len(self.outcomes) // (MANY_VOTES // 10)).fitted(start)
            parameters = start if near is None else near[0]
        for _ in range(MAX_STEPS):
            found = self.derivatives(parameters)
            information = self.information(found)
            step = np.linalg.solve(information + self._fixed(information), self.gradient(found))
            largest = float(np.max(np.abs(step)))
            if not np.isfinite(largest) or np.max(np.abs(parameters + step)) > DIVERGED:
                return None
            if largest < TOLERANCE:
                return parameters, found, information
            # A long step can leave the region where Newton's method converges.
            parameters = parameters + step * min(1.0, 2 / largest)
        return None

    def sampled(self, every: int) -> "Votes":
        """Return every nth vote, for a fit without people."""
        weights = None if self.weights is None else self.weights[::every]
        rows = self.first[::every], self.second[::every], self.outcomes[::every], weights, self.covariates[::every]
        return Votes(*rows, self.starts[:0], self.n_systems, self.with_nu)

    def _fixed(self, information: FloatArray) -> FloatArray:
        """Return the constant that fixes the sum of the strengths, which votes leave open."""
        k = self.n_systems
        fixed = np.zeros_like(information)
        fixed[:k, :k] = max(float(np.trace(information[:k, :k])) / k**2, 1e-12)
        return fixed

    def person_covariance(
        self, found: Derivatives, information: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Covariance of the parameters over people (CV3), and the overlap of people's shares of the systems' information.

        Parameters
        ----------
        found : Derivatives
            The derivatives at the maximum.
        information : ndarray of float, shape (m, m)
            Minus the second derivatives of all votes.

        Returns
        -------
        tuple
            The covariance (m, m), the overlaps (K, K), and each person's share of all information (G,).

        Notes
        -----
        Without person g the parameters move by (I - I_g)^-1 s_g = I^-1 s_g + I^-1 I_g I^-1 s_g + ... The sum is cut after
        the second term, whose error is of the order of the squared share of a person; for people with large shares the
        equation is solved.
        """
        k, n = self.n_systems, len(self.starts) - 1
        inverse = np.linalg.inv(information + self._fixed(information))
        shares = np.add.reduceat(found.odds_odds, self.starts[:-1])
        shares = shares / shares.sum()
        products, overlap, totals = np.zeros_like(information), np.zeros((k, k)), np.diag(information)[:k]
        step = max(1, CELLS // self.n_parameters)
        for low in range(0, n, step):
            high = min(n, low + step)
            rows = slice(int(self.starts[low]), int(self.starts[high]))
            starts = self.starts[low:high] - self.starts[low]
            sums = self.sums(rows, starts, found.by_odds[rows], None if found.by_nu is None else found.by_nu[rows])
            moved = sums + self._curved(rows, starts, found, sums @ inverse)
            for one in np.flatnonzero(shares[low:high] > LARGE_SHARE).tolist():
                own = slice(int(self.starts[low + one]), int(self.starts[low + one + 1]))
                without = information + self._fixed(information) - self.information(found, own)
                moved[one] = information @ np.linalg.lstsq(without, sums[one], rcond=1e-12)[0]
            products += moved.T @ moved
            sizes = np.diff(np.append(starts, rows.stop - rows.start))
            places = np.repeat(np.arange(high - low) * k, sizes)
            of_systems = sum(
                np.bincount(places + side[rows], found.odds_odds[rows], minlength=(high - low) * k)
                for side in (self.first, self.second)
            )
            table = (np.asarray(of_systems).reshape(-1, k) / totals).astype(np.float32)
            overlap += table.T @ table
        return (n - 1) / n * inverse @ products @ inverse, overlap, shares

    def _curved(self, rows: slice, starts: IntArray, found: Derivatives, moves: FloatArray) -> FloatArray:
        """Return I_g times the moves of each person g; (people, parameters)."""
        k = self.n_systems
        sizes = np.diff(np.append(starts, rows.stop - rows.start))
        people = np.repeat(np.arange(len(starts)), sizes)
        flat, places = moves.ravel(), people * self.n_parameters
        apart = flat[places + self.first[rows]] - flat[places + self.second[rows]]
        if self.covariates.shape[1]:
            apart += np.einsum("np,np->n", self.covariates[rows], moves[people, k + self.with_nu :])
        if found.odds_nu is None or found.nu_nu is None:
            return self.sums(rows, starts, found.odds_odds[rows] * apart, None)
        of_nu = moves[people, k]
        by_odds = found.odds_odds[rows] * apart + found.odds_nu[rows] * of_nu
        return self.sums(rows, starts, by_odds, found.odds_nu[rows] * apart + found.nu_nu[rows] * of_nu)


def checked_votes(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    n_systems: int,
    covariates: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    ties: str,
) -> tuple[Votes, int]:
    """Return the votes without the missing ones, sorted by person, and the number of people."""
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
    order = _sorted_by_code(codes)
    if not is_used.all():
        order = np.flatnonzero(is_used)[order]
    starts = np.append(0, np.cumsum(np.bincount(codes, minlength=n_people))).astype(np.int64)
    return (
        Votes(
            x[order],
            y[order],
            values[order],
            None if size is None else size[order],
            table[order],
            starts,
            n_systems,
            ties == "davidson" and bool(np.any(values == 0.5)),
        ),
        n_people,
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


def _sorted_by_code(codes: IntArray) -> IntArray:
    """Return the stable order of codes from 0: by their last 16 bits, then by the next, which numpy sorts in linear time."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    rest = codes >> 16
    while len(rest) and rest.max() > 0:
        order = order[np.argsort(rest[order].astype(np.uint16), kind="stable")]
        rest = rest >> 16
    return np.asarray(order, dtype=np.int64)
