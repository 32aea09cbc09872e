"""Bradley-Terry strengths from probabilities: a ranking of systems from paired comparisons.

P[x > y] = 1 / (1 + exp(-(b_x - b_y))). Answers are probabilities, not wins, so the likelihood is the fractional
(quasi-binomial) one of Papke and Wooldridge 1996. It allows 0 and 1, and the standard errors leave out one annotator at
a time. The point estimate needs only the sum and the count of each ordered pair.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    group_sizes,
    group_sums,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.cluster_models import FittedRows, ModelSpread
from analysis.stats.results import Estimate, Record, ResultWarning

MAX_STEPS = 100
TOLERANCE = 1e-11


@dataclass(frozen=True, slots=True)
class BradleyTerry(Record):
    """A fitted comparison model of K systems.

    `strengths` (log-odds against the reference, system 0) has one Estimate per system. `framing` is the intercept
    of being named first, if it was asked for. `covariance` (K, K) over annotators has zeros for the reference.
    `probabilities` (K, K) are the fitted P[row > column]. `observed` are the mean answers in the same form, NaN if a
    pair was not asked. `components` are the groups of systems connected by comparisons: rank systems only within one.
    """

    status: str
    reason: str
    strengths: tuple[Estimate, ...]
    framing: Estimate | None
    covariance: FloatArray
    probabilities: FloatArray
    observed: FloatArray
    components: tuple[tuple[int, ...], ...]
    n_clusters: int
    n_rows: int


def fractional_bradley_terry(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    batches: npt.ArrayLike | None = None,
    *,
    n_systems: int,
    framing: bool = False,
    level: float = 0.95,
) -> BradleyTerry:
    """Strengths of systems from answers P[first > second] in 0..1, clustered by annotator.

    Parameters
    ----------
    first, second : array_like, shape (n_rows,)
        System numbers 0..n_systems-1 in the order of the question.
    values, clusters : array_like, shape (n_rows,)
        Answers (NaN is missing), and labels of their annotators.
    batches : array_like, shape (n_rows,), optional
        Labels of the second sample: groups of batches that share no prompt. Without them, or with fewer than five, the fit is
        about exactly these prompts.
    n_systems : int
        Number of systems. System 0 is the reference, with strength 0.
    framing : bool, default False
        Add a constant for the system named first. It needs mixed orders or a directed cycle of questions.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    BradleyTerry
        The fit. Intervals are those of `cluster_models.ModelSpread` over annotators (CV3) and batches; no tests with fewer than six
        annotators who inform a strength. `not_identified`: no chain of comparisons connects all systems (one strength:
        one annotator alone connects it). `separation`: one always got 0 or 1.

    Raises
    ------
    ValueError
        With the argument and the row, for an invalid system or answer.

    Examples
    --------
    >>> fit = fractional_bradley_terry([0, 0, 1, 1, 0, 0], [1, 1, 2, 2, 2, 2], [.7, .6, .55, .65, .8, .7],
    ...                                [1, 2, 1, 2, 1, 2], n_systems=3)
    >>> [round(strength.estimate, 6) for strength in fit.strengths]
    [0.0, -0.642586, -1.070343]
    """
    validate_level(level)
    answers = vector(values, "values")
    x, y = checked_system_pairs(first, second, len(answers), n_systems)
    validate_within_bounds(answers, (0.0, 1.0), "values")
    is_observed = ~np.isnan(answers)
    x, y, answers = x[is_observed], y[is_observed], answers[is_observed]
    positions, n_clusters = label_codes_where(clusters, "clusters", is_observed)

    cells = x * n_systems + y
    counts = group_sizes(cells, n_systems**2).reshape(n_systems, n_systems)
    sums = group_sums(cells, answers, n_systems**2).reshape(n_systems, n_systems)
    settings = {"reference": 0, "framing": framing, "level": level}
    common: dict[str, Any] = {
        "unit": "annotator",
        "n": n_clusters,
        "n_clusters": n_clusters,
        "n_rows": len(answers),
        "settings": settings,
    }
    favour = sums + (counts - sums).T
    n_answers = counts + counts.T
    with np.errstate(invalid="ignore"):
        observed = np.where(n_answers > 0, favour / n_answers, np.nan)
    components = connected_components(n_answers > 0)
    status, reason = _problem(len(answers), components, favour)
    if status != "ok":
        return _undefined(status, reason, n_systems, observed, components, framing, common)

    named = np.argwhere(counts > 0)
    design = np.zeros((len(named), n_systems))
    design[np.arange(len(named)), named[:, 0]] = 1
    design[np.arange(len(named)), named[:, 1]] -= 1
    # A slice would lie otherwise in memory, which changes the last digits of the fit.
    design = design[:, np.arange(1, n_systems)]
    is_framing_identified = False
    if framing:
        with_constant = np.column_stack([design, np.ones(len(named))])
        is_framing_identified = np.linalg.matrix_rank(with_constant) > np.linalg.matrix_rank(design)
        if is_framing_identified:
            design = with_constant
    weights, shares = counts[counts > 0], sums[counts > 0] / counts[counts > 0]
    coefficients, information = _newton(design, weights, shares)
    if coefficients is None or information is None:
        reason = "the likelihood has no maximum: some preference is without exception"
        return _undefined("separation", reason, n_systems, observed, components, framing, common)

    strengths = np.zeros(n_systems)
    strengths[1:] = coefficients[: n_systems - 1]
    constant = float(coefficients[-1]) if is_framing_identified else 0.0
    # Number the named pairs of systems; each is a cell of rows with the same second derivatives.
    pair = np.zeros(n_systems**2, dtype=np.int64)
    pair[named[:, 0] * n_systems + named[:, 1]] = np.arange(len(named))
    pair = pair[cells]
    chances = special.expit(design @ coefficients)
    of_pairs = design[:, :, None] * design[:, None, :] * (chances * (1 - chances))[:, None, None]
    rows = FittedRows(information, design[pair] * (answers - chances[pair])[:, None], pair, of_pairs)
    groups = None if batches is None else label_codes_where(batches, "batches", is_observed)[0]
    spread = ModelSpread.from_rows(rows, positions, groups, unit="annotator", second="batch")
    covariance = np.zeros((n_systems, n_systems))
    covariance[1:, 1:] = spread.annotators.covariance[: n_systems - 1, : n_systems - 1]
    estimates = tuple(
        _strength(
            float(strengths[system]),
            spread,
            system - 1 if system else None,
            f"log-odds of system {system} against system 0",
            level=level,
            common={"analysis": "spa.ranking.strength", **common},
        )
        for system in range(n_systems)
    )
    intercept = None
    if framing:
        intercept = _framing(constant, spread, is_framing_identified, level, common)
    return BradleyTerry(
        status="ok",
        reason="",
        strengths=estimates,
        framing=intercept,
        covariance=covariance,
        probabilities=np.asarray(special.expit(strengths[:, None] - strengths[None, :]), dtype=np.float64),
        observed=observed,
        components=components,
        n_clusters=n_clusters,
        n_rows=len(answers),
    )


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


def _problem(n_rows: int, components: tuple[tuple[int, ...], ...], favour: FloatArray) -> tuple[str, str]:
    if n_rows == 0:
        return "no_data", "no comparison to analyse"
    if len(components) > 1:
        return "not_identified", "no chain of comparisons connects all systems; rank only within a component"
    reach = reachability(favour > 0)
    if not np.all(reach & reach.T):
        return "separation", "some systems were preferred over others without exception, so their distance is unbounded"
    return "ok", ""


def _newton(design: FloatArray, weights: FloatArray, shares: FloatArray) -> tuple[FloatArray | None, FloatArray | None]:
    """Run Newton's method on the cells; return None if it does not converge, because there is no maximum."""
    coefficients = np.zeros(design.shape[1])
    deviance = math.inf
    for _ in range(MAX_STEPS):
        linear = design @ coefficients
        expected = special.expit(linear)
        information = (design * (weights * expected * (1 - expected))[:, None]).T @ design
        score = design.T @ (weights * (shares - expected))
        try:
            step = np.linalg.solve(information, score)
        except np.linalg.LinAlgError:
            return None, None
        loss = float(np.sum(weights * (np.logaddexp(0, linear) - shares * linear)))
        if loss > deviance + 1e-9 * abs(deviance):
            step = step / 2
        deviance = loss
        coefficients = coefficients + step
        if float(np.max(np.abs(step))) < TOLERANCE:
            return np.asarray(coefficients), np.asarray(information)
        if float(np.max(np.abs(coefficients))) > 40:
            return None, None
    return None, None


def _strength(
    value: float, spread: ModelSpread, place: int | None, estimand: str, *, level: float, common: dict[str, Any]
) -> Estimate:
    """Return the estimate of the coefficient at a place of the design; the reference (None) has no place."""
    if place is None:
        return Estimate(
            estimand=estimand,
            status="not_applicable",
            reason="the reference is 0 by definition",
            estimate=0.0,
            **common,
        )
    contrast = np.zeros(len(spread.annotators.inverse))
    contrast[place] = 1.0
    return spread.estimate(value, contrast, level=level, null=0.0, estimand=estimand, **common)


def _framing(
    constant: float,
    spread: ModelSpread,
    is_identified: bool,
    level: float,
    common: dict[str, Any],
) -> Estimate:
    estimand = "log-odds bonus of the system named first"
    named = {"analysis": "spa.ranking.framing", **common}
    if not is_identified:
        return Estimate(
            estimand=estimand,
            status="not_identified",
            reason="the questions asked cannot tell being named first from being better",
            warnings=(ResultWarning("order_not_identified"),),
            **named,
        )
    return _strength(constant, spread, -1, estimand, level=level, common=named)


def _undefined(
    status: str,
    reason: str,
    n_systems: int,
    observed: FloatArray,
    components: tuple[tuple[int, ...], ...],
    framing: bool,
    common: dict[str, Any],
) -> BradleyTerry:
    empty = np.full((n_systems, n_systems), np.nan)
    strengths = tuple(
        Estimate(
            analysis="spa.ranking.strength",
            estimand=f"log-odds of system {system}",
            status=status,
            reason=reason,
            **common,
        )
        for system in range(n_systems)
    )
    intercept = None
    if framing:
        intercept = Estimate(
            analysis="spa.ranking.framing",
            estimand="log-odds bonus of the system named first",
            status=status,
            reason=reason,
            **common,
        )
    return BradleyTerry(
        status, reason, strengths, intercept, empty, empty, observed, components, common["n_clusters"], common["n_rows"]
    )
