"""Whether the stated preferences of several systems fit together: triples, cycles, and sums around cycles.

A column is a pair (x, y) of system numbers, a row an annotator, a value P[x > y] in 0..1 as `spa.combined` gives it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import basic, bootstrap
from analysis.stats.arrays import DEGENERATE, FloatArray, matrix, refuse_level, refuse_outside
from analysis.stats.bradley_terry import reachable
from analysis.stats.results import Estimate, Record, Warning

Pairs = Sequence[tuple[int, int]]

TRANSITIVITIES = ("weak", "moderate", "strong")
# Answers are whole percentages, so combined ones differ by at least .005; rounding errors are far below this.
TIE = 1e-9


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
    analysis: str = "spa.coherence",
    unit: str = "annotator",
) -> Coherence:
    """Transitivity of each annotator, cycles in the aggregate, and the sums of log-odds around cycles of questions.

    `values` has shape (n_annotators, n_pairs), NaN missing; `pairs` the system numbers (x, y) of each column. One set
    of resamples of the annotators serves everything. Raises ValueError for a pair that stands twice (also reversed), a
    system out of range and values outside 0..1.

    >>> answers = [[0.8, 0.7, 0.3], [0.7, 0.8, 0.4], [0.9, 0.6, 0.2]]
    >>> found = coherence(answers, [(0, 1), (1, 2), (0, 2)], n_systems=3, rng=np.random.default_rng(0), resamples=999)
    >>> found.cycles, [estimate.estimate for estimate in found.transitivity]
    (((0, 1, 2),), [1.0, 1.0, 1.0])
    """
    refuse_level(level)
    table = _table(values, pairs, n_systems)
    draws = mean_draws(table, resamples=resamples, rng=rng)
    common: dict[str, Any] = {"level": level, "unit": unit}
    cycle, cycles = aggregate_cycles(table, pairs, draws, n_systems=n_systems, analysis=f"{analysis}.cycle", unit=unit)
    return Coherence(
        transitivity(table, pairs, n_systems=n_systems, analysis=f"{analysis}.transitivity", **common),
        cycle,
        cycles,
        cycle_sums(table, pairs, draws, n_systems=n_systems, analysis=f"{analysis}.cycle_sum", **common),
    )


def mean_draws(values: npt.ArrayLike, *, resamples: int, rng: np.random.Generator) -> FloatArray:
    """The mean of every pair in each of `resamples` bootstrap samples of annotators; shape (resamples, n_pairs).

    >>> mean_draws([[0.5], [0.5]], resamples=3, rng=np.random.default_rng(0)).ravel().tolist()
    [0.5, 0.5, 0.5]
    """
    table = matrix(values, "values")
    here = ~np.isnan(table)
    if len(table) == 0:
        return np.empty((0, table.shape[1]))
    weights = bootstrap.multinomial_weights(len(table), resamples, rng)
    return bootstrap.ratio_draws(np.where(here, table, 0.0), here.astype(np.float64), weights)


def transitivity(
    values: npt.ArrayLike,
    pairs: Pairs,
    *,
    n_systems: int,
    level: float = 0.95,
    analysis: str = "spa.coherence.transitivity",
    unit: str = "annotator",
) -> tuple[Estimate, ...]:
    """The share of an annotator's triples that violate weak, moderate and strong stochastic transitivity.

    Where P[a > b] >= .5 and P[b > c] >= .5, weak transitivity asks P[a > c] >= .5, moderate at least the smaller of
    the two, strong at least the larger. Only triples of which the annotator answered all three pairs count; each is
    looked at in all six orders and violates if one of them does. One Estimate for each of the three, the mean over
    annotators of their share; no test, because chance alone produces some. `n_rows` counts triples.

    >>> weak, moderate, strong = transitivity([[0.8, 0.7, 0.75]], [(0, 1), (1, 2), (0, 2)], n_systems=3)
    >>> weak.estimate, moderate.estimate, strong.estimate
    (0.0, 0.0, 1.0)
    """
    table = _table(values, pairs, n_systems)
    preference = np.full((len(table), n_systems, n_systems), np.nan)
    for column, (x, y) in enumerate(pairs):
        preference[:, x, y] = table[:, column]
        preference[:, y, x] = 1 - table[:, column]
    asked = {frozenset(pair) for pair in pairs}
    triples = np.array(
        [
            triple
            for triple in combinations(range(n_systems), 3)
            if all(frozenset(pair) in asked for pair in combinations(triple, 2))
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    common: dict[str, Any] = {"analysis": analysis, "unit": unit, "level": level}
    if len(triples) == 0:
        return tuple(
            Estimate(
                analysis=f"{analysis}.{name}",
                estimand=f"share of triples that violate {name} stochastic transitivity",
                unit=unit,
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
                **common,
            )
        )
    return tuple(estimates)


def aggregate_cycles(
    values: npt.ArrayLike,
    pairs: Pairs,
    draws: FloatArray,
    *,
    n_systems: int,
    analysis: str = "spa.coherence.cycle",
    unit: str = "annotator",
) -> tuple[Estimate, tuple[tuple[int, ...], ...]]:
    """Whether the mean preferences run in a circle, and the bootstrap probability that they do.

    An arrow goes from x to y where the mean of P[x > y] exceeds .5. `draws` comes from `mean_draws`. Returns the
    Estimate (the share of resamples of annotators with a cycle) and one shortest cycle for each group of systems that
    beat one another in a circle.

    >>> draws = np.array([[0.6, 0.6, 0.4], [0.6, 0.6, 0.6]])
    >>> result, cycles = aggregate_cycles([[0.6, 0.6, 0.4]], [(0, 1), (1, 2), (0, 2)], draws, n_systems=3)
    >>> result.estimate, cycles
    (0.5, ((0, 1, 2),))
    """
    table = _table(values, pairs, n_systems)
    n = int((~np.isnan(table)).any(axis=1).sum())
    common: dict[str, Any] = {
        "analysis": analysis,
        "estimand": "probability that the mean preferences contain a cycle",
        "unit": unit,
        "n": n,
        "n_rows": int((~np.isnan(table)).sum()),
        "settings": {"resamples": len(draws)},
    }
    if n == 0:
        return Estimate(status="no_data", reason="no comparison to analyse", **common), ()
    if n_systems < 3 or len(pairs) < 3:
        return Estimate(status="not_applicable", reason="fewer than three pairs cannot form a cycle", **common), ()
    beats = _arrows(_means(table)[None], pairs, n_systems)[0]
    cycles = _shortest_cycles(beats)
    share = float(np.mean(_is_cyclic(_arrows(draws, pairs, n_systems)))) if len(draws) else float(bool(cycles))
    detail = {
        "is_cyclic": bool(cycles),
        "cycles": cycles,
        "monte_carlo_error": bootstrap.monte_carlo_error(share, max(1, len(draws))),
    }
    return Estimate(estimate=share, detail=detail, **common), cycles


def cycle_sums(
    values: npt.ArrayLike,
    pairs: Pairs,
    draws: FloatArray,
    *,
    n_systems: int,
    level: float = 0.95,
    analysis: str = "spa.coherence.cycle_sum",
    unit: str = "annotator",
) -> tuple[Estimate, ...]:
    """S, the sum of the mean preferences' log-odds around each independent cycle of the questions asked.

    If all annotators shared one Bradley-Terry scale and the order of naming did nothing, every S would be 0. The
    converse fails: a mixture of annotators who are each perfectly coherent gives S far from 0, so S is evidence against
    *one scale*, not proof that wording matters (warning `not_one_scale`). Cycles are the fundamental ones of the
    undirected graph of pairs, walked so that more of the questions name the system one comes from first than the
    system one goes to; detail["implied_framing"] is S divided by their difference. The interval is the percentile
    bootstrap of annotators, over the resamples in which every question of the cycle was answered; where half of them were
    not, or one has a mean of 0 or 1, there is none. Either carries the warning `undefined_resamples`. A mean of 0 or 1 has no log-odds: `not_identified`.

    >>> table_1 = [[0.420, 0.688, 0.630, 0.575, 0.544]]
    >>> found = cycle_sums(table_1, [(0, 4), (1, 0), (2, 1), (3, 2), (4, 3)], np.empty((0, 5)), n_systems=5)
    >>> round(found[0].estimate, 4), round(found[0].detail["implied_framing"], 4)
    (1.479, 0.2958)
    """
    refuse_level(level)
    table = _table(values, pairs, n_systems)
    means = _means(table)
    asked = ~np.isnan(means)
    results = []
    for nodes, steps in _fundamental_cycles(pairs, asked, n_systems):
        columns = np.array([column for column, _ in steps], dtype=np.int64)
        signs = np.array([sign for _, sign in steps], dtype=np.float64)
        n = int((~np.isnan(table[:, columns])).any(axis=1).sum())
        common: dict[str, Any] = {
            "analysis": analysis,
            "estimand": "sum of log-odds around a cycle of questions",
            "unit": unit,
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
            Warning("not_one_scale", "info", {"meaning": "S differs from 0 also where annotators merely differ"})
        ]
        interval, status, reason = None, "ok", ""
        if n == 1:
            status, reason = "n_lt_2", f"one {unit} has no spread"
        elif len(draws):
            # A resample in which nobody answered one of the questions has no sum; one with a mean of 0 or 1 lies beyond all others.
            answered = draws[~np.isnan(draws[:, columns]).any(axis=1)][:, columns]
            if len(answered) and float(np.ptp(answered, axis=0).max()) < DEGENERATE:
                # An interval of no width would claim a certainty that equal answers do not give.
                status, reason = "zero_variance", "all resamples give the same sum"
            elif len(answered) > len(draws) / 2:
                interval = bootstrap.percentile_interval(special.logit(answered) @ signs, level)
            undefined = 1 - float(np.mean(((draws[:, columns] > 0) & (draws[:, columns] < 1)).all(axis=1)))
            if undefined:
                warnings.append(Warning("undefined_resamples", "warn", {"share": undefined}))
        common |= {"status": status, "reason": reason, "interval": interval, "warnings": tuple(warnings)}
        results.append(Estimate(estimate=total, detail=detail, **common))
    return tuple(results)


def _share(
    shares: FloatArray, *, n_violations: int, n_triples: int, name: str, analysis: str, unit: str, level: float
) -> Estimate:
    result = basic.one_sample(
        shares,
        null=0.0,
        level=level,
        bounds=(0.0, 1.0),
        analysis=f"{analysis}.{name}",
        estimand=f"share of triples that violate {name} stochastic transitivity",
        unit=unit,
    )
    return replace(
        result,
        n_rows=n_triples,
        test=None,
        effect=None,
        detail={"n_violations": n_violations, "n_triples": n_triples},
        settings={"level": level},
    )


def _table(values: npt.ArrayLike, pairs: Pairs, n_systems: int) -> FloatArray:
    table = matrix(values, "values")
    if table.shape[1] != len(pairs):
        raise ValueError(f"pairs: {len(pairs)} pairs where values has {table.shape[1]} columns")
    refuse_outside(table, (0.0, 1.0), "values")
    seen = set()
    for row, (x, y) in enumerate(pairs):
        if x == y or not (0 <= x < n_systems and 0 <= y < n_systems):
            raise ValueError(f"pairs: row {row} is ({x}, {y}), not two of {n_systems} systems")
        if frozenset((x, y)) in seen:
            raise ValueError(f"pairs: row {row}, ({x}, {y}), stands twice")
        seen.add(frozenset((x, y)))
    return table


def _means(table: FloatArray) -> FloatArray:
    here = ~np.isnan(table)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(here, table, 0.0).sum(axis=0) / here.sum(axis=0), dtype=np.float64)


def _arrows(means: FloatArray, pairs: Pairs, n_systems: int) -> npt.NDArray[np.bool_]:
    """Who beats whom; shape (n_draws, K, K) from means of shape (n_draws, n_pairs)."""
    beats = np.zeros((len(means), n_systems, n_systems), dtype=np.bool_)
    for column, (x, y) in enumerate(pairs):
        beats[:, x, y] = means[:, column] > 0.5 + TIE
        beats[:, y, x] = means[:, column] < 0.5 - TIE
    return beats


def _is_cyclic(beats: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    reach = reachable(beats)
    mutual = reach & np.swapaxes(reach, -1, -2) & ~np.eye(beats.shape[-1], dtype=np.bool_)
    return np.asarray(np.any(mutual, axis=(-1, -2)))


def _shortest_cycles(beats: npt.NDArray[np.bool_]) -> tuple[tuple[int, ...], ...]:
    reach = reachable(beats)
    mutual = reach & reach.T
    groups = sorted({tuple(int(node) for node in np.flatnonzero(row)) for row in mutual if row.sum() > 1})
    return tuple(
        min((_cycle_from(beats, start) for start in group), key=lambda found: (len(found), found)) for group in groups
    )


def _cycle_from(beats: npt.NDArray[np.bool_], start: int) -> tuple[int, ...]:
    """A shortest walk along arrows from `start` back to it, breadth first."""
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
    pairs: Pairs, asked: npt.NDArray[np.bool_], n_systems: int
) -> list[tuple[tuple[int, ...], list[tuple[int, int]]]]:
    """Each cycle as its nodes and its steps (column, +1 where the step goes from x to y, else -1)."""
    links: dict[int, dict[int, tuple[int, int]]] = {node: {} for node in range(n_systems)}
    for column, (x, y) in enumerate(pairs):
        if asked[column]:
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
    found = []
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
        found.append((nodes, steps))
    return found


def _ancestors(node: int, parent: dict[int, int | None]) -> list[int]:
    line = [node]
    above = parent[node]
    while above is not None:
        line.append(above)
        above = parent[above]
    return line
