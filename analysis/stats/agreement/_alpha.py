"""Krippendorff's alpha for any level of measurement and any distance."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from analysis.stats.agreement._counts import (
    PairableUnits,
    count_pairable_patterns_by_cluster,
    estimate_with_unit_bootstrap,
    pairwise_agreement_and_prevalence,
)
from analysis.stats.arrays import MIN_SPREAD, FloatArray, matrix, validate_level, vector
from analysis.stats.results import Estimate

LEVELS = ("nominal", "ordinal", "interval", "ratio")
Distance = Callable[[Any, Any], float]


def krippendorff_alpha(
    counts: npt.ArrayLike,
    values: npt.ArrayLike | Sequence[Any],
    *,
    level_of_measurement: str | None = None,
    distance: npt.ArrayLike | Distance | None = None,
    clusters: npt.ArrayLike | None = None,
    cluster_name: str = "cluster",
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> Estimate:
    """Krippendorff's alpha, 1 - observed / expected disagreement, with a bootstrap interval over units.

    Parameters
    ----------
    counts : array_like, shape (n_units, n_values)
        Number of ratings with each value for each unit (see `value_counts_by_unit`, `category_counts_by_unit`).
        Units with fewer than two ratings are left out.
    values : array_like or sequence[Any], shape (n_values,)
        Values of the columns: ascending numbers for a level of measurement, anything that `distance` accepts
        otherwise.
    level_of_measurement : {"nominal", "ordinal", "interval", "ratio"}, optional
        Distance of two values: nominal 0 or 1; ordinal the squared difference of mid-ranks; interval the squared
        difference; ratio ((a - b) / (a + b))^2.
    distance : array_like or Distance, optional
        A matrix (n_values, n_values) or a function of two values: symmetric, non-negative, 0 between equals. It is
        not squared.
    clusters : array_like, shape (n_units,), optional
        Units that do not vary independently, such as outputs ranked against each other. They are resampled together.
    cluster_name : str, default 'cluster'
        Name of a cluster.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    resamples : int, default 999
        Number of resamples.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    Estimate
        Alpha; `n` counts units with two or more ratings. One value only, or no such unit: `not_identified`, with the
        percentage of agreement in `detail`.

    Notes
    -----
    With n_uc ratings of value c among m_u of unit u, and n_c in all N pairable ratings: alpha = 1 - (N - 1) sum_u
    sum_ck n_uc n_uk d_ck / (m_u - 1) / sum_ck n_c n_k d_ck. The interval is about other units, not about other
    raters.

    References
    ----------
    Krippendorff 2011, Computing Krippendorff's alpha-reliability; used in Clark et al. 2021, section 3.

    Examples
    --------
    >>> table = [[3, 0], [1, 2], [0, 3], [2, 1]]
    >>> result = krippendorff_alpha(table, [1, 2], level_of_measurement="nominal", rng=np.random.default_rng(0))
    >>> round(result.estimate, 4), round(result.detail["percent_agreement"], 4)
    (0.3889, 0.6667)
    >>> apart = lambda a, b: float(a != b)
    >>> same = krippendorff_alpha(table, ["no", "yes"], distance=apart, rng=np.random.default_rng(0))
    >>> same.estimate == result.estimate, same.settings["distance"]
    (True, '<lambda>')
    """
    validate_level(level)
    units = PairableUnits.from_counts(counts)
    patterns, weights, marginals = units.patterns, units.weights, units.marginals
    distances, name = _disagreement(values, patterns.shape[1], level_of_measurement, distance)
    common: dict[str, Any] = {
        "analysis": "krippendorff_alpha",
        "estimand": f"Krippendorff's alpha ({name})",
        "unit": "item",
        "n": units.n_units,
        "n_rows": int(marginals.sum()),
        "settings": {
            "level_of_measurement": level_of_measurement,
            "distance": None if distance is None else name,
            "level": level,
            "resamples": resamples,
            **({} if clusters is None else {"resampled": cluster_name}),
        },
    }
    detail: dict[str, Any] = {"n_unpairable": units.n_unpairable, "marginals": marginals}
    if len(patterns) == 0:
        return units.undefined_estimate(detail, common)
    detail["percent_agreement"] = float(
        pairwise_agreement_and_prevalence(patterns, weights[None, :].astype(np.float64))[0][0]
    )
    estimate = _alphas(patterns, weights[None, :].astype(np.float64), distances)[0]
    if not np.isfinite(estimate):
        return Estimate(status="not_identified", reason="no two ratings differ", detail=detail, **common)

    def alphas(drawn: FloatArray) -> FloatArray:
        return _alphas(patterns, drawn, distances)

    together = None if clusters is None else count_pairable_patterns_by_cluster(counts, clusters, patterns)
    return estimate_with_unit_bootstrap(
        float(estimate), weights, alphas, rng=rng, pattern_counts_by_cluster=together, detail=detail, **common
    )


def _alphas(patterns: FloatArray, weights: FloatArray, distances: FloatArray | None) -> FloatArray:
    """Return alpha for each row of `weights` (n_resamples, n_patterns); NaN if no disagreement was possible.

    Without `distances` the values are ordinal: their distances depend on the marginals of each resample.
    """
    per_unit = patterns.sum(axis=1)
    marginals = weights @ patterns
    total = marginals.sum(axis=1)
    if distances is None:
        ranks = np.cumsum(marginals, axis=1) - marginals / 2
        # sum_ck n_c n_k (r_c - r_k)^2 = 2 (m sum_c n_c r_c^2 - (sum_c n_c r_c)^2): no table of pairs is needed.
        squares, linear = patterns @ (ranks**2).T, patterns @ ranks.T
        spread = 2 * (per_unit[:, None] * squares - linear**2) / (per_unit - 1)[:, None]
        observed = np.einsum("bp,pb->b", weights, spread)
        expected = 2 * (total * np.sum(marginals * ranks**2, axis=1) - np.sum(marginals * ranks, axis=1) ** 2)
    else:
        spread = np.sum((patterns @ distances) * patterns, axis=1) / (per_unit - 1)
        observed = weights @ spread
        expected = np.sum((marginals @ distances) * marginals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas = 1 - (total - 1) * observed / expected
    return np.where(expected > MIN_SPREAD * np.maximum(1.0, total**2), alphas, np.nan)


def _disagreement(
    values: npt.ArrayLike | Sequence[Any],
    n_values: int,
    level_of_measurement: str | None,
    distance: npt.ArrayLike | Distance | None,
) -> tuple[FloatArray | None, str]:
    """Return the matrix of disagreements (None for ordinal) and its name."""
    if (level_of_measurement is None) == (distance is None):
        raise ValueError("distance: exactly one of level_of_measurement and distance must be given")
    if distance is not None:
        things = list(cast(Sequence[Any], values))
        if len(things) != n_values:
            raise ValueError(f"values: {len(things)} values where counts has {n_values} columns")
        if callable(distance):
            distances = np.array([[distance(a, b) for b in things] for a in things], dtype=np.float64)
            return _valid_distances(distances.reshape(n_values, n_values)), getattr(distance, "__name__", "function")
        return _valid_distances(matrix(distance, "distance"), n_values), "matrix"
    if level_of_measurement not in LEVELS:
        raise ValueError(f"level_of_measurement: {level_of_measurement!r} is not one of {', '.join(LEVELS)}")
    scale = vector(values, "values")
    if n_values != len(scale):
        raise ValueError(f"values: {len(scale)} values where counts has {n_values} columns")
    if np.any(np.diff(scale) <= 0):
        raise ValueError("values: must ascend")
    if level_of_measurement == "ratio" and len(scale) and scale[0] < 0:
        raise ValueError("values: a ratio scale has no negative value")
    return None if level_of_measurement == "ordinal" else _distances(scale, level_of_measurement), level_of_measurement


def _valid_distances(distances: FloatArray, n_values: int | None = None) -> FloatArray:
    if n_values is not None and distances.shape != (n_values, n_values):
        raise ValueError(f"distance: shape {distances.shape} where counts has {n_values} columns")
    if not np.isfinite(distances).all() or np.any(distances < 0):
        raise ValueError("distance: only finite, non-negative numbers are distances")
    if not np.allclose(distances, distances.T, rtol=1e-12, atol=0.0):
        raise ValueError("distance: not symmetric")
    if np.any(np.diag(distances) != 0):
        raise ValueError("distance: a value is not at distance 0 from itself")
    largest = float(distances.max()) if distances.size else 0.0
    # Alpha does not depend on the unit of the distance, and neither should the threshold for no disagreement.
    return distances / largest if largest > 0 else distances


def _distances(scale: FloatArray, level_of_measurement: str) -> FloatArray:
    if level_of_measurement == "nominal":
        return 1.0 - np.eye(len(scale))
    difference = scale[:, None] - scale[None, :]
    if level_of_measurement == "interval":
        # Divide by the range, so that the threshold for no disagreement does not depend on the unit of the scale.
        span = float(scale[-1] - scale[0]) if len(scale) > 1 else 1.0
        return np.asarray((difference / span) ** 2, dtype=np.float64)
    sums = scale[:, None] + scale[None, :]
    return np.asarray(np.where(sums > 0, difference / np.where(sums > 0, sums, 1.0), 0.0) ** 2, dtype=np.float64)
