"""A proportional-odds model of ordered ratings."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, group_sizes, label_codes_where, validate_level
from analysis.stats.ratings._systems import missing_rating_estimate, select_two_systems
from analysis.stats.results import Estimate

MAX_STEPS = 100
HALVINGS = 40
TOLERANCE = 1e-10


def cumulative_logit(
    ratings: npt.ArrayLike,
    systems: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    system: object,
    reference: object,
    level: float = 0.95,
) -> Estimate:
    """Estimate the log odds ratio of a higher rating, `system` against `reference`, in a proportional-odds model.

    NaN is a missing rating, and rows of other systems are left out. The model is logit P(rating > k) = b [row is of
    system] - c_k for every threshold k (McCullagh 1980, Regression models for ordinal data). The interval and the test
    are those of `clusters.ModelSpread`: the jackknife over annotators, and with prompts over both. Without prompts, or
    with fewer than five, the estimate is for exactly these prompts. `detail["by_threshold"]` has the log odds ratio at
    each threshold (None if a cell is empty). If these differ much, the proportional-odds assumption fails: do not
    report the single number. The status is `separation` if all ratings of one system are at or above the other's,
    `not_identified` if no two ratings are equal or one annotator (or prompt) alone connects the systems, and `failed`
    if the fit does not converge.

    >>> rng = np.random.default_rng(0)
    >>> ratings = np.r_[rng.integers(2, 6, 40), rng.integers(1, 5, 40)]
    >>> result = cumulative_logit(ratings, ["x"] * 40 + ["y"] * 40, [*range(40)] * 2, system="x", reference="y")
    >>> result.status, result.estimate > 0
    ('ok', True)
    """
    validate_level(level)
    observed, treated, is_used = select_two_systems(ratings, systems, system, reference)
    positions, n_annotators = label_codes_where(annotators, "annotators", is_used)
    prompt_codes = None if prompts is None else label_codes_where(prompts, "prompts", is_used)[0]
    common: dict[str, Any] = {
        "analysis": "rating.cumulative_logit",
        "estimand": "log odds ratio of a higher rating, system against reference",
        "unit": "annotator",
        "n": n_annotators,
        "n_clusters": n_annotators,
        "n_rows": len(observed),
        "settings": {"system": str(system), "reference": str(reference), "level": level},
    }
    edge = missing_rating_estimate(treated, common)
    if edge is not None:
        return edge
    points = np.unique(observed)
    if len(points) == 1:
        return Estimate(status="zero_variance", reason="all ratings are equal", **common)
    if n_annotators < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread", **common)
    system_ratings, reference_ratings = observed[treated == 1], observed[treated == 0]
    if system_ratings.min() >= reference_ratings.max() or reference_ratings.min() >= system_ratings.max():
        return Estimate(status="separation", reason="one system's ratings all lie above the other's", **common)
    detail = {
        "by_threshold": [_threshold(system_ratings, reference_ratings, point) for point in points[:-1]],
        "points": points,
    }
    if len(points) == len(observed):
        reason = "no two ratings are equal, so every one has a parameter of its own"
        return Estimate(status="not_identified", reason=reason, detail=detail, **common)
    fitted = _fit_ordered(observed, treated)
    if isinstance(fitted, str):
        return Estimate(status="failed", reason=fitted, detail=detail, **common)
    value, rows = fitted
    spread = clusters.ModelSpread.from_rows(rows, positions, prompt_codes, unit="annotator")
    contrast = np.zeros(len(rows.information))
    contrast[-1] = 1.0
    detail["odds_ratio"] = math.exp(min(700.0, value))
    return spread.estimate(value, contrast, level=level, null=0.0, detail=detail, **common)


def _threshold(system_ratings: FloatArray, reference_ratings: FloatArray, point: float) -> float | None:
    """Return the log odds ratio of a rating above `point`."""
    above, below = float(np.sum(system_ratings > point)), float(np.sum(system_ratings <= point))
    other_above, other_below = float(np.sum(reference_ratings > point)), float(np.sum(reference_ratings <= point))
    if min(above, below, other_above, other_below) == 0:
        return None
    return math.log(above / below) - math.log(other_above / other_below)


def _fit_ordered(ratings: FloatArray, treated: FloatArray) -> tuple[float, clusters.FittedRows] | str:
    """Return the coefficient and the derivatives of the rows, or the reason why they are undefined.

    Newton's method on the counts of ratings by system. The log-likelihood is concave, so there is one maximum.
    """
    _, level = np.unique(ratings, return_inverse=True)
    n_cuts = int(level.max())
    row = treated.astype(np.int64)
    counts = group_sizes(row * (n_cuts + 1) + level, 2 * (n_cuts + 1)).reshape(2, n_cuts + 1)
    above = np.cumsum(counts.sum(axis=0)) / counts.sum()
    point = np.append(special.logit(above[:-1]), 0.0)
    current = _Cumulative.at(point, counts)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(current.information, current.slope)
        following = _Cumulative.at(point + step, counts)
        # A step that is too long can reverse thresholds, so that the likelihood is undefined or lower.
        for _ in range(HALVINGS):
            if following.log_likelihood >= current.log_likelihood - 1e-9 * (1 + abs(current.log_likelihood)):
                break
            step = step / 2
            following = _Cumulative.at(point + step, counts)
        point, current = point + step, following
        if float(np.max(np.abs(step))) < TOLERANCE:
            break
    else:
        return "the fit did not converge"
    cells, k = row * (n_cuts + 1) + level, n_cuts + 1
    scores = current.scores.reshape(-1, k)[cells]
    return float(point[-1]), clusters.FittedRows(
        current.information, scores, cells, -current.curvature.reshape(-1, k, k)
    )


@dataclass(frozen=True, slots=True)
class _Cumulative:
    """The proportional-odds likelihood at thresholds c and coefficient b, from counts (2, K): reference, system.

    P(rating <= k) = expit(c_k - b [system]). `scores` (2, K, K) are the derivatives of each cell's log-probability by
    (c_1 .. c_K-1, b), `curvature` (2, K, K, K) the second ones. `slope` is the sum of the former over all rows,
    `information` minus that of the latter.
    """

    log_likelihood: float
    scores: FloatArray
    curvature: FloatArray
    slope: FloatArray
    information: FloatArray

    @classmethod
    def at(cls, point: FloatArray, counts: FloatArray) -> "_Cumulative":
        n_cuts = len(point) - 1
        ends = point[:-1] - np.array([[0.0], [point[-1]]])
        below = np.column_stack([np.zeros(2), special.expit(ends), np.ones(2)])
        chances = np.diff(below, axis=1)
        nothing = np.zeros((2, n_cuts + 1, n_cuts + 1))
        if np.any(np.diff(point[:-1]) <= 0) or np.any(chances <= 0):
            return cls(-math.inf, nothing, nothing, nothing[0, 0], nothing[0])
        density = below * (1 - below)
        bend = density * (1 - 2 * below)
        # Derivatives of the two ends of each cell by the parameters; the first and last end are constant.
        moves = np.zeros((2, n_cuts + 2, n_cuts + 1))
        moves[:, np.arange(1, n_cuts + 1), np.arange(n_cuts)] = 1.0
        moves[1, 1:-1, -1] = -1.0
        edge = density[..., None] * moves
        scores = np.diff(edge, axis=1) / chances[..., None]
        second = bend[..., None, None] * moves[..., :, None] * moves[..., None, :]
        curvature = np.diff(second, axis=1) / chances[..., None, None] - scores[..., :, None] * scores[..., None, :]
        return cls(
            float(np.sum(counts * np.log(chances))),
            scores,
            curvature,
            np.einsum("ik,ikp->p", counts, scores),
            -np.einsum("ik,ikpq->pq", counts, curvature),
        )
