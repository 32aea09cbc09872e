"""Rankings of systems from pairwise choices: Davidson's model with ties, Bradley and Terry's without.

P(i beats j) = e^{b_i} / D, P(tie) = nu e^{(b_i + b_j) / 2} / D, D = e^{b_i} + e^{b_j} + nu e^{(b_i + b_j) / 2}.
The model is log-linear, so its likelihood has one maximum, found from the K x K tables of wins and ties. nu = 0
is Bradley and Terry's model, which also fits stated chances. To drop ties, give NaN; to split them, `ties="half"`.

Strengths sum to zero; only differences are tested. If earlier answers chose the next pair, the estimates are
valid and the intervals are not.

References: Davidson 1970, On extending the Bradley-Terry model to accommodate ties; Bradley and Terry 1952; Ford
1957 for when the maximum exists; Bach 2010, Self-concordant analysis for logistic regression, for the steps that
need no check.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack

from analysis.stats import cluster_models
from analysis.stats.arrays import FloatArray, IntArray, matrix, validate_level
from analysis.stats.results import Estimate, Interval, Record, ResultWarning
from analysis.stats.votes import (
    FittedVotes,
    Votes,
    checked_votes,
    connected_components,
    reachability,
    win_and_tie_tables,
)

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


def fit_votes(
    votes: Votes, wins: FloatArray, ties: FloatArray, components: tuple[tuple[int, ...], ...]
) -> tuple[str, str, FittedVotes | None]:
    """Return the status, its reason, and the fit (None without a maximum) of votes with these tables and connections."""
    if len(votes.outcomes) == 0:
        return "no_data", "no comparison to analyse", None
    if len(components) > 1:
        return "not_identified", "no chain of comparisons connects all systems; rank only within a component", None
    found = find_maximum(PairCounts.from_tables(wins, ties))
    if found is None:
        return "separation", "some systems were preferred without exception, so their distance is unbounded", None
    start = np.append(found[: len(wins) + votes.with_nu], np.zeros(votes.covariates.shape[1]))
    if votes.covariates.shape[1] and not votes.is_identified(start):
        return "not_identified", "a covariate says the same as the systems or as another covariate", None
    fit = votes.fitted(start)
    if fit is None:
        return "separation", "the likelihood with covariates has no maximum", None
    return "ok", "", fit


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
class ModelParameters:
    """The parameters of a fitted model, strengths with sum 0 first, and what their Estimates have in common.

    `values` is None if nothing is estimated, and `spread` if there is no maximum.
    """

    status: str
    reason: str
    values: FloatArray | None
    spread: cluster_models.ModelSpread | None
    level: float
    common: dict[str, Any]

    def named(self, part: str, estimand: str) -> dict[str, Any]:
        """Return the fields of an Estimate; `part` is the last part of the name of its analysis."""
        return {**self.common, "analysis": f"{self.common['analysis']}.{part}", "estimand": estimand}

    def estimate(self, part: str, estimand: str, place: int, *, null: float | None = None) -> Estimate:
        """Return the estimate of the parameter at a place."""
        if self.values is None:
            return Estimate(status=self.status, reason=self.reason, **self.named(part, estimand))
        return self.wald(float(self.values[place]), {place: 1.0}, null=null, **self.named(part, estimand))

    def wald(self, value: float, weights: dict[int, float], *, null: float | None = None, **common: Any) -> Estimate:
        """Return the estimate of the sum of parameters times `weights`, which is `value`."""
        if self.spread is None:
            warnings = (*common["warnings"], ResultWarning("not_identified", "block", {"ridge": RIDGE}))
            return Estimate(status=self.status, reason=self.reason, estimate=value, **{**common, "warnings": warnings})
        contrast = np.zeros(len(self.spread.annotators.inverse))
        contrast[list(weights)] = list(weights.values())
        return self.spread.estimate(value, contrast, level=self.level, null=null, **common)


@dataclass(frozen=True, slots=True)
class PairedComparison(Record):
    """A fitted model of K systems.

    `strengths` (log-odds) has one Estimate per system; `tie` is that of nu. `probabilities` (K, K) are the
    fitted P[row beats column], `tie_probabilities` those of a tie. `observed` are the mean outcomes for the row, NaN
    for a pair without any. `components` are the groups of systems connected by comparisons: rank systems only within
    one.
    """

    status: str
    reason: str
    strengths: tuple[Estimate, ...]
    tie: Estimate
    probabilities: FloatArray
    tie_probabilities: FloatArray
    observed: FloatArray
    components: tuple[tuple[int, ...], ...]
    _parameters: ModelParameters

    def difference(self, x: int, y: int) -> Estimate:
        """Return the strength of system `x` minus that of `y`, with its interval and the test that they are equal."""
        value, common = strength_difference_and_fields(self.strengths, x, y, self._parameters.common)
        if value is None:
            return Estimate(status=self.status, reason=self.reason, **common)
        return self._parameters.wald(value, {x: 1.0, y: -1.0}, null=0.0, **common)


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
    ties: str = "davidson",
    reference: int | None = None,
    ridge: float = RIDGE,
    level: float = 0.95,
    analysis: str = "choice.davidson",
    settings: dict[str, Any] | None = None,
    second_sample: str = "prompt",
) -> PairedComparison:
    """Strengths of Davidson's or Bradley and Terry's model from labels or stated chances, for annotators and prompts like these.

    Parameters
    ----------
    first, second : array_like, shape (n_rows,)
        System numbers 0..n_systems-1, in the order of the question.
    outcomes, annotators : array_like, shape (n_rows,)
        1 if the first was chosen, 0 the second, .5 a tie, NaN missing; and the label of each row's annotator. With
        ties="half" also any chance between, as a person states it.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. Without prompts, or with fewer than five, the fit is for exactly these prompts.
    n_systems : int
        Number of systems.
    ties : {"davidson", "half"}, default 'davidson'
        Davidson's model, with a parameter nu of ties, or half a win for each (Bradley-Terry). Chances need "half": their
        means are modelled (Papke and Wooldridge's fractional logit).
    reference : int, optional
        System whose strength is 0. By default the sum of all strengths is 0.
    ridge : float, default .5
        Precision of the normal prior under which separated systems have an order. They have no estimates if it is 0.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        First part of the names of the analyses.
    settings : dict, optional
        Settings of the estimates, instead of the model and its level.
    second_sample : str, optional
        What a prompt is called.

    Returns
    -------
    PairedComparison
        The fit. Intervals and tests are those of `cluster_models.ModelSpread`; `settings["population"]` says what they are
        about. No tests with fewer than six annotators who inform a difference. `not_identified`: no chain of comparisons
        connects all systems. `separation`: the likelihood has no maximum (a system always won); estimates under a normal
        prior give an order only. Without ties nu is 0.

    Notes
    -----
    The jackknife over annotators takes one step, as in `vote_ratings.paired_ratings`: see `votes.FittedVotes.moves`.

    Examples
    --------
    >>> fit = fit_davidson([0, 1, 2, 0, 1, 2, 0, 0], [1, 2, 0, 1, 2, 0, 1, 2], [1, 1, 1, .5, 1, 0, 0, .5],
    ...                [1, 1, 1, 2, 2, 2, 3, 3], n_systems=3)
    >>> [round(strength.estimate, 3) + 0 for strength in fit.strengths], round(fit.tie.estimate, 3)
    ([0.0, 0.866, -0.866], 0.774)
    """
    validate_level(level)
    votes = checked_votes(first, second, outcomes, annotators, prompts, n_systems=n_systems, ties=ties)
    wins, tied = win_and_tie_tables(votes)
    n_outcomes = wins + wins.T + tied
    components = connected_components(n_outcomes > 0)
    status, reason, fit = fit_votes(votes, wins, tied, components)
    common = {
        **_counted(votes, settings or {"model": "davidson", "level": level, "covariance": "cv3"}),
        "analysis": analysis,
    }
    values, spread = None, None
    if fit is not None:
        sampled = votes.people, votes.prompts
        spread = cluster_models.ModelSpread.from_rows(fit, *sampled, unit="annotator", second=second_sample)
        values = fit.parameters.copy()
    elif status == "separation" and ridge:
        values = find_maximum(PairCounts.from_tables(wins, tied), ridge=ridge)
    won = of_ties = np.full((n_systems, n_systems), np.nan)
    if values is not None:
        values[:n_systems] -= np.mean(values[:n_systems])
        log_nu = float(values[n_systems]) if votes.with_nu else None
        chances = PairProbabilities.at(values[:n_systems, None] - values[None, :n_systems], log_nu)
        is_itself = np.eye(n_systems, dtype=bool)
        won = np.where(is_itself, np.nan, chances.won)
        of_ties = np.where(is_itself, np.nan, 0.0 if chances.tied is None else chances.tied)
    with np.errstate(invalid="ignore"):
        observed = (wins + tied / 2) / n_outcomes
    found = ModelParameters(status, reason, values, spread, level, common)
    strengths = tuple(_strength(found, system, reference) for system in range(n_systems))
    tie = _tie(found, n_systems if votes.with_nu else None, ties)
    return PairedComparison(status, reason, strengths, tie, won, of_ties, observed, components, found)


def first_named_bonus(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    n_systems: int,
    level: float = 0.95,
    settings: dict[str, Any] | None = None,
    second_sample: str = "prompt",
) -> Estimate:
    """Log-odds that being named first adds, by Bradley and Terry's model with a constant.

    Parameters and intervals are those of `fit_davidson` with ties="half". `not_identified`: the constant needs mixed
    orders of the systems, or a directed cycle of questions.

    >>> first, second, people = [0, 1] * 4, [1, 0] * 4, np.repeat(np.arange(4), 2)
    >>> bonus = first_named_bonus(first, second, [.7, .5, .6, .6, .8, .6, .7, .5], people, n_systems=2)
    >>> round(bonus.estimate, 3)
    0.524
    """
    validate_level(level)
    constant = np.ones((np.size(outcomes), 1))
    votes = checked_votes(
        first, second, outcomes, annotators, prompts, n_systems=n_systems, ties="half", covariates=constant
    )
    wins, tied = win_and_tie_tables(votes)
    components = connected_components(wins + wins.T > 0)
    status, reason, fit = fit_votes(votes, wins, tied, components)
    common = _counted(votes, settings or {"level": level})
    common |= {"analysis": "choice.framing", "estimand": "log-odds bonus of the system named first"}
    if status == "not_identified" and len(components) == 1:
        reason = "the questions asked cannot tell being named first from being better"
        common["warnings"] = (ResultWarning("order_not_identified"),)
    if fit is None:
        return Estimate(status=status, reason=reason, **common)
    sampled = votes.people, votes.prompts
    spread = cluster_models.ModelSpread.from_rows(fit, *sampled, unit="annotator", second=second_sample)
    contrast = np.append(np.zeros(n_systems), 1.0)
    return spread.estimate(float(fit.parameters[-1]), contrast, level=level, null=0.0, **common)


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


def _strength(found: ModelParameters, system: int, reference: int | None) -> Estimate:
    if reference is None:
        return found.estimate("strength", f"strength of system {system} (log-odds, sum zero)", system)
    named = found.named("strength", f"log-odds of system {system} against system {reference}")
    if found.values is None:
        return Estimate(status=found.status, reason=found.reason, **named)
    if system == reference:
        reason = "the reference is 0 by definition"
        return Estimate(status="not_applicable", reason=reason, estimate=0.0, **named)
    value = float(found.values[system] - found.values[reference])
    return found.wald(value, {system: 1.0, reference: -1.0}, null=0.0, **named)


def _tie(found: ModelParameters, place: int | None, ties: str) -> Estimate:
    """Return the estimate of nu from that of its logarithm, the parameter at a place, None if no label was a tie."""
    named = found.named("tie", "tie parameter nu")
    if ties == "half":
        return Estimate(status="not_applicable", reason="a tie counts as half a win for each", **named)
    if found.values is None:
        return Estimate(status=found.status, reason=found.reason, **named)
    if place is None:
        reason = "no label was a tie, so nu lies at its edge"
        return Estimate(status="separation", reason=reason, estimate=0.0, **named)
    logarithm = found.estimate("tie", named["estimand"], place)
    value, interval = float(found.values[place]), logarithm.interval
    if interval is not None:
        interval = Interval(interval.level, math.exp(interval.low), math.exp(interval.high), interval.method)
    return replace(
        logarithm,
        estimate=math.exp(value),
        interval=interval,
        detail={"log_nu": value, "se_log_nu": logarithm.detail.get("se")},
    )


def _counted(votes: Votes, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an Estimate from votes."""
    n = len(votes.starts) - 1
    counts = {"unit": "annotator", "n": n, "n_clusters": n, "n_rows": len(votes.outcomes)}
    return {**counts, "settings": settings, "warnings": ()}
