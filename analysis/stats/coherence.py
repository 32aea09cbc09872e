"""Coherence of stated preferences over several systems: triples, cycles, and sums of log-odds around cycles.

A column is a pair (x, y) of system numbers, a row an annotator, a value P[x > y] in 0..1 as from
`spa.combine_orders`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, bootstrap
from analysis.stats.arrays import MIN_SPREAD, FloatArray, matrix, validate_level, validate_within_bounds
from analysis.stats.results import Estimate, Record, ResultWarning
from analysis.stats.votes import reachability

# Pairs of systems as a graph: arrows, and the cycles in it.


Pairs = Sequence[tuple[int, int]]
# Answers are whole percentages, so combined ones differ by at least .005; rounding errors are far below this.
TIE = 1e-9


def _table(values: npt.ArrayLike, pairs: Pairs, n_systems: int) -> FloatArray:
    table = matrix(values, "values")
    if table.shape[1] != len(pairs):
        raise ValueError(f"pairs: {len(pairs)} pairs where values has {table.shape[1]} columns")
    validate_within_bounds(table, (0.0, 1.0), "values")
    seen = set()
    for row, (x, y) in enumerate(pairs):
        if x == y or not (0 <= x < n_systems and 0 <= y < n_systems):
            raise ValueError(f"pairs: row {row} is ({x}, {y}), not two of {n_systems} systems")
        if frozenset((x, y)) in seen:
            raise ValueError(f"pairs: row {row}, ({x}, {y}), occurs twice")
        seen.add(frozenset((x, y)))
    return table


def _means(table: FloatArray) -> FloatArray:
    is_observed = ~np.isnan(table)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(is_observed, table, 0.0).sum(axis=0) / is_observed.sum(axis=0), dtype=np.float64)


def _arrows(means: FloatArray, pairs: Pairs, n_systems: int) -> npt.NDArray[np.bool_]:
    """Return which system beats which (n_draws, K, K), from means of shape (n_draws, n_pairs)."""
    beats = np.zeros((len(means), n_systems, n_systems), dtype=np.bool_)
    for column, (x, y) in enumerate(pairs):
        beats[:, x, y] = means[:, column] > 0.5 + TIE
        beats[:, y, x] = means[:, column] < 0.5 - TIE
    return beats


def is_cyclic(beats: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether who beats whom contains a cycle, for each table; shapes (..., K, K) and (...).

    >>> is_cyclic(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)).item()
    True
    """
    reach = reachability(beats)
    mutual = reach & np.swapaxes(reach, -1, -2) & ~np.eye(beats.shape[-1], dtype=np.bool_)
    return np.asarray(np.any(mutual, axis=(-1, -2)))


def shortest_cycles(beats: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    """Return one shortest cycle for each group of systems that beat one another in a circle; `beats` is (K, K).

    >>> shortest_cycles(np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool))
    ((0, 1, 2),)
    """
    reach = reachability(beats)
    mutual = reach & reach.T
    groups = sorted({tuple(int(node) for node in np.flatnonzero(row)) for row in mutual if row.sum() > 1})
    return tuple(
        min((_cycle_from(beats, start) for start in group), key=lambda cycle: (len(cycle), cycle)) for group in groups
    )


def _cycle_from(beats: npt.NDArray[np.bool_], start: int) -> tuple[int, ...]:
    """Return a shortest cycle through `start` along the arrows, by breadth-first search."""
    paths: list[tuple[int, ...]] = [(start,)]
    seen = {start}
    while paths:
        longer: list[tuple[int, ...]] = []
        for path in paths:
            for node in np.flatnonzero(beats[path[-1]]).tolist():
                if node == start:
                    return path
                if node not in seen:
                    seen.add(node)
                    longer.append((*path, node))
        paths = longer
    raise ValueError(f"beats: no cycle passes through system {start}")


def _fundamental_cycles(
    pairs: Pairs, is_asked: npt.NDArray[np.bool_], n_systems: int
) -> list[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    """Return each cycle as its nodes and its steps (column, and +1 for a step from x to y, else -1)."""
    links: dict[int, dict[int, tuple[int, int]]] = {node: {} for node in range(n_systems)}
    for column, (x, y) in enumerate(pairs):
        if is_asked[column]:
            links[x][y] = (column, 1)
            links[y][x] = (column, -1)
    parent: dict[int, int | None] = {}
    for root in range(n_systems):
        if root in parent:
            continue
        parent[root] = None
        queue = [root]
        for node in queue:
            for other in sorted(links[node]):
                if other not in parent:
                    parent[other] = node
                    queue.append(other)
    cycles = []
    for x, y in pairs:
        if y not in links[x] or parent[x] == y or parent[y] == x:
            continue
        up_x, up_y = _ancestors(x, parent), _ancestors(y, parent)
        meeting = next(node for node in up_x if node in up_y)
        # From the meeting point down to x, over the closing pair to y, and back up.
        down = up_x[: up_x.index(meeting) + 1][::-1]
        back = up_y[: up_y.index(meeting)]
        nodes = tuple(down + back)
        steps = [links[a][b] for a, b in zip(nodes, (*nodes[1:], nodes[0]), strict=True)]
        if sum(sign for _, sign in steps) < 0:
            nodes = (nodes[0], *nodes[:0:-1])
            steps = [links[a][b] for a, b in zip(nodes, (*nodes[1:], nodes[0]), strict=True)]
        cycles.append((nodes, steps))
    return cycles


def _ancestors(node: int, parent: dict[int, int | None]) -> list[int]:
    line = [node]
    above = parent[node]
    while above is not None:
        line.append(above)
        above = parent[above]
    return line


# Cycles of systems, and sums of log-odds around them.


def cycle_probability_of_means(
    values: npt.ArrayLike,
    pairs: Pairs,
    draws: FloatArray,
    *,
    n_systems: int,
) -> tuple[Estimate, tuple[tuple[int, ...], ...]]:
    """Estimate the bootstrap probability that the mean preferences form a cycle.

    `values`, of shape (n_annotators, n_pairs), are P[x > y] in 0..1, NaN where missing, for the system numbers (x, y)
    of each column in `pairs`; `draws` are the result of `bootstrap_pair_means`. x beats y if the mean of P[x > y]
    exceeds .5. The result is the share of resamples with a cycle, and one shortest cycle for each group of systems that
    beat one another in a circle.

    >>> draws = np.array([[0.6, 0.6, 0.4], [0.6, 0.6, 0.6]])
    >>> result, cycles = cycle_probability_of_means([[0.6, 0.6, 0.4]], [(0, 1), (1, 2), (0, 2)], draws, n_systems=3)
    >>> result.estimate, cycles
    (0.5, ((0, 1, 2),))
    """
    table = _table(values, pairs, n_systems)
    n = int((~np.isnan(table)).any(axis=1).sum())
    common: dict[str, Any] = {
        "analysis": "spa.coherence.cycle",
        "estimand": "probability that the mean preferences contain a cycle",
        "unit": "annotator",
        "n": n,
        "n_rows": int((~np.isnan(table)).sum()),
        "settings": {"resamples": len(draws)},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no comparison to analyse", **common), ()
    if n_systems < 3 or len(pairs) < 3:
        return Estimate(status="not_applicable", reason="fewer than three pairs cannot form a cycle", **common), ()
    beats = _arrows(_means(table)[None], pairs, n_systems)[0]
    cycles = shortest_cycles(beats)
    share = float(np.mean(is_cyclic(_arrows(draws, pairs, n_systems)))) if len(draws) else float(bool(cycles))
    detail = {
        "is_cyclic": bool(cycles),
        "cycles": cycles,
        "monte_carlo_error": bootstrap.monte_carlo_error(share, max(1, len(draws))),
    }
    return Estimate(estimate=share, detail=detail, **common), cycles


def fundamental_cycle_log_odds_sums(
    values: npt.ArrayLike,
    pairs: Pairs,
    draws: FloatArray,
    *,
    n_systems: int,
    level: float = 0.95,
) -> tuple[Estimate, ...]:
    """Estimate the sum S of the mean preferences' log-odds around each independent cycle of questions.

    `values`, `pairs` and `draws` are as in `cycle_probability_of_means`, and there is one estimate per cycle. With one
    Bradley-Terry scale for all annotators and no effect of the order of naming, every S is 0. The converse is false: a
    mixture of coherent annotators can have S far from 0, so S is evidence against one scale, not for an effect of
    wording (warning `not_one_scale`). The cycles are the fundamental ones of the undirected graph of pairs, in the
    direction of most questions; `detail["implied_framing"]` is S divided by the difference of forward and backward
    questions, and a mean of 0 or 1 gives `not_identified`. The interval is the percentile bootstrap over annotators.
    Resamples without an answer to one of the questions are left out, and there is no interval if they are half of all;
    the warning `undefined_resamples` counts these and those with a mean of 0 or 1.

    >>> table_1 = [[0.420, 0.688, 0.630, 0.575, 0.544]]
    >>> result = fundamental_cycle_log_odds_sums(table_1, [(0, 4), (1, 0), (2, 1), (3, 2), (4, 3)], np.empty((0, 5)), n_systems=5)
    >>> round(result[0].estimate, 4), round(result[0].detail["implied_framing"], 4)
    (1.479, 0.2958)
    """
    validate_level(level)
    table = _table(values, pairs, n_systems)
    means = _means(table)
    is_asked = ~np.isnan(means)
    results = []
    for nodes, steps in _fundamental_cycles(pairs, is_asked, n_systems):
        columns = np.array([column for column, _ in steps], dtype=np.int64)
        signs = np.array([sign for _, sign in steps], dtype=np.float64)
        n = int((~np.isnan(table[:, columns])).any(axis=1).sum())
        common: dict[str, Any] = {
            "analysis": "spa.coherence.cycle_sum",
            "estimand": "sum of log-odds around a cycle of questions",
            "unit": "annotator",
            "n": n,
            "n_rows": int((~np.isnan(table[:, columns])).sum()),
            "settings": {"level": level, "resamples": len(draws)},
        }
        detail: dict[str, Any] = {"cycle": nodes, "means": means[columns], "signs": signs}
        if np.any((means[columns] <= 0) | (means[columns] >= 1)):
            reason = "a mean of 0 or 1 has no log-odds"
            results.append(Estimate(status="not_identified", reason=reason, detail=detail, **common))
            continue
        total = float(special.logit(means[columns]) @ signs)
        net = float(signs.sum())
        detail["implied_framing"] = total / net if net else None
        warnings = [
            ResultWarning("not_one_scale", "info", {"meaning": "S differs from 0 also where annotators merely differ"})
        ]
        interval, status, reason = None, "ok", ""
        if n == 1:
            status, reason = "n_lt_2", "one annotator has no spread"
        elif len(draws):
            # A resample without answers to one of the questions has no sum. With a mean of 0 or 1 it is infinite.
            answered = draws[~np.isnan(draws[:, columns]).any(axis=1)][:, columns]
            if len(answered) and float(np.ptp(answered, axis=0).max()) < MIN_SPREAD:
                # Equal answers do not give certainty, so an interval of width 0 is not shown.
                status, reason = "zero_variance", "all resamples give the same sum"
            elif len(answered) > len(draws) / 2:
                interval = bootstrap.percentile_interval(special.logit(answered) @ signs, level)
            undefined = 1 - float(np.mean(((draws[:, columns] > 0) & (draws[:, columns] < 1)).all(axis=1)))
            if undefined:
                warnings.append(ResultWarning("undefined_resamples", "warn", {"share": undefined}))
        common |= {"status": status, "reason": reason, "interval": interval, "warnings": tuple(warnings)}
        results.append(Estimate(estimate=total, detail=detail, **common))
    return tuple(results)


# Triples of systems: whether an annotator's preferences among three systems are transitive.


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
