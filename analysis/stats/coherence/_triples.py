"""Triples of systems: whether an annotator's preferences among three systems are transitive."""

from dataclasses import dataclass, replace
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap
from analysis.stats.arrays import FloatArray, matrix, validate_level
from analysis.stats.coherence._cycles import cycle_probability_of_means, fundamental_cycle_log_odds_sums
from analysis.stats.coherence._graph import TIE, Pairs, _table
from analysis.stats.results import Estimate, Record

TRANSITIVITIES = ("weak", "moderate", "strong")


@dataclass(frozen=True, slots=True)
class Coherence(Record):
    """The coherence of a set of pairwise preferences; see `coherence`."""

    transitivity: tuple[Estimate, ...]
    cycle: Estimate
    cycles: tuple[tuple[int, ...], ...]
    cycle_sums: tuple[Estimate, ...]


def coherence(
    values: npt.ArrayLike,
    pairs: Pairs,
    *,
    n_systems: int,
    rng: np.random.Generator,
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
) -> Coherence:
    """Transitivity of each annotator, cycles in the means, and sums of log-odds around cycles of questions.

    Parameters
    ----------
    values : array_like, shape (n_annotators, n_pairs)
        P[x > y] in 0..1; NaN is missing.
    pairs : Pairs
        System numbers (x, y) of each column.
    n_systems : int
        Number of systems.
    rng : numpy.random.Generator
        Source of the random draws.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default bootstrap.RESAMPLES
        Number of resamples.

    Returns
    -------
    Coherence
        All three analyses, from one set of resamples of the annotators.

    Raises
    ------
    ValueError
        If a pair is repeated (also reversed), a system is out of range, or a value is outside 0..1.

    Examples
    --------
    >>> answers = [[0.8, 0.7, 0.3], [0.7, 0.8, 0.4], [0.9, 0.6, 0.2]]
    >>> result = coherence(answers, [(0, 1), (1, 2), (0, 2)], n_systems=3, rng=np.random.default_rng(0), resamples=999)
    >>> result.cycles, [estimate.estimate for estimate in result.transitivity]
    (((0, 1, 2),), [1.0, 1.0, 1.0])
    """
    validate_level(level)
    table = _table(values, pairs, n_systems)
    draws = bootstrap_pair_means(table, resamples=resamples, rng=rng)
    cycle, cycles = cycle_probability_of_means(table, pairs, draws, n_systems=n_systems)
    return Coherence(
        transitivity_violation_shares(table, pairs, n_systems=n_systems, level=level),
        cycle,
        cycles,
        fundamental_cycle_log_odds_sums(table, pairs, draws, n_systems=n_systems, level=level),
    )


def bootstrap_pair_means(values: npt.ArrayLike, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Compute the mean of every pair in each bootstrap sample of annotators.

    `values` (n_annotators, n_pairs) has P[x > y] in 0..1, with NaN for missing. The means have the shape (resamples,
    n_pairs), or (0, n_pairs) without annotators.

    >>> bootstrap_pair_means([[0.5], [0.5]], resamples=3, rng=np.random.default_rng(0)).ravel().tolist()
    [0.5, 0.5, 0.5]
    """
    table = matrix(values, "values")
    is_observed = ~np.isnan(table)
    if len(table) == 0:
        return np.empty((0, table.shape[1]))
    weights = bootstrap.multinomial_weights(len(table), resamples, rng)
    return bootstrap.ratio_draws(np.where(is_observed, table, 0.0), is_observed.astype(np.float64), weights)


def transitivity_violation_shares(
    values: npt.ArrayLike,
    pairs: Pairs,
    *,
    n_systems: int,
    level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the share of an annotator's triples that violate weak, moderate and strong stochastic transitivity.

    `values` (n_annotators, n_pairs) has P[x > y] in 0..1, with NaN for missing, and `pairs` has the system numbers (x,
    y) of each column. If P[a > b] >= .5 and P[b > c] >= .5, weak transitivity needs P[a > c] >= .5, moderate at least
    the smaller of the two, and strong at least the larger. Only triples with all three pairs answered count, and a
    triple violates if any of its six orders does. There is one estimate for each kind, the mean over annotators, and
    `n_rows` counts triples. There is no test, because chance alone produces some violations.

    >>> weak, moderate, strong = transitivity_violation_shares([[0.8, 0.7, 0.75]], [(0, 1), (1, 2), (0, 2)], n_systems=3)
    >>> weak.estimate, moderate.estimate, strong.estimate
    (0.0, 0.0, 1.0)
    """
    table = _table(values, pairs, n_systems)
    preference = np.full((len(table), n_systems, n_systems), np.nan)
    for column, (x, y) in enumerate(pairs):
        preference[:, x, y] = table[:, column]
        preference[:, y, x] = 1 - table[:, column]
    asked_pairs = {frozenset(pair) for pair in pairs}
    triples = np.array(
        [
            triple
            for triple in combinations(range(n_systems), 3)
            if all(frozenset(pair) in asked_pairs for pair in combinations(triple, 2))
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    if len(triples) == 0:
        return tuple(
            Estimate(
                analysis=f"spa.coherence.transitivity.{name}",
                estimand=f"share of triples that violate {name} stochastic transitivity",
                unit="annotator",
                n=0,
                n_rows=0,
                status="not_applicable",
                reason="no triple of systems was asked in all three pairs",
            )
            for name in TRANSITIVITIES
        )
    violated = {name: np.zeros((len(table), len(triples)), dtype=np.bool_) for name in TRANSITIVITIES}
    for order in permutations(range(3)):
        a, b, c = triples[:, order[0]], triples[:, order[1]], triples[:, order[2]]
        ab, bc, ac = preference[:, a, b], preference[:, b, c], preference[:, a, c]
        holds = (ab >= 0.5 - TIE) & (bc >= 0.5 - TIE)
        violated["weak"] |= holds & (ac < 0.5 - TIE)
        violated["moderate"] |= holds & (ac < np.minimum(ab, bc) - TIE)
        violated["strong"] |= holds & (ac < np.maximum(ab, bc) - TIE)
    first, second, third = triples.T
    complete = ~np.isnan(preference[:, first, second] + preference[:, second, third] + preference[:, first, third])
    n_complete = complete.sum(axis=1)
    answered = n_complete > 0
    estimates = []
    for name in TRANSITIVITIES:
        shares = (violated[name] & complete).sum(axis=1)[answered] / n_complete[answered]
        estimates.append(
            _share(
                shares,
                n_violations=int((violated[name] & complete).sum()),
                n_triples=int(n_complete.sum()),
                name=name,
                level=level,
            )
        )
    return tuple(estimates)


def _share(shares: FloatArray, *, n_violations: int, n_triples: int, name: str, level: float) -> Estimate:
    result = basic.one_sample_t_test(shares, null=0.0, level=level, bounds=(0.0, 1.0))
    return replace(
        result,
        analysis=f"spa.coherence.transitivity.{name}",
        estimand=f"share of triples that violate {name} stochastic transitivity",
        n_rows=n_triples,
        test=None,
        effect=None,
        detail={"n_violations": n_violations, "n_triples": n_triples},
        settings={"level": level},
    )
