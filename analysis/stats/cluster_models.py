"""Variances of regressions and of fitted models over rows in clusters."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, IntArray, group_sizes, group_sums, label_codes, vector
from analysis.stats.cluster_variances import (
    PEOPLE,
    PEOPLE_AND_PROMPTS,
    TOO_FEW_CLUSTERS,
    TOO_FEW_ITEMS,
    cluster_warnings,
    combine_two_way_variances,
    effective_n_clusters,
    sums_by_cluster,
    two_way_warnings,
)
from analysis.stats.clusters import t_estimate
from analysis.stats.results import Estimate, Record, ResultWarning

# Delete-one-cluster (CV3) variances of the parameters of a fitted model, over annotators and over prompts.


# An eigenvalue below this share of the mean eigenvalue counts as 0: the parameters are not identified along it.
MIN_CURVATURE = 1e-9
# A direction that a contrast has less of than this counts as no part of it.
MIN_PART = 1e-6


@dataclass(frozen=True, slots=True)
class ModelJackknife:
    """What the parameters of a fitted model become without each cluster.

    Attributes
    ----------
    inverse : ndarray of float, shape (k, k)
        Inverse of the information (minus the second derivatives of the log-likelihood) at the maximum.
    informed : callable
        What each cluster's rows say about a direction v (k,) of the parameters: v' I_g v, shape (G,).
    moves : ndarray of float, shape (G, k)
        Parameters with all clusters minus those without cluster g.
    lost : ndarray of float, shape (L, k)
        Directions that are not identified without some cluster.

    Notes
    -----
    One Newton step from the maximum without each cluster: moves_g = (I - I_g)^-1 s_g, with the cluster's score s_g. The
    covariance is (G - 1) / G sum_g moves_g moves_g'. A cluster's share of the information about a contrast c is
    w_g = c' I^-1 I_g I^-1 c / c' I^-1 c, and the contrast has 1 / sum(w_g^2) - 1 degrees of freedom, at least 1.

    References
    ----------
    MacKinnon, Nielsen and Webb 2023, Leverage, influence, and the jackknife in clustered regression models.

    Examples
    --------
    >>> own = np.full((4, 1, 1), 5.0)
    >>> jackknife = ModelJackknife.from_derivatives(own.sum(axis=0), own, np.array([[1.0], [-1.0], [2.0], [-2.0]]))
    >>> round(jackknife.variance(np.ones(1)), 4), jackknife.n_informed_and_df(np.ones(1))
    (0.0333, (4, 3.0))
    """

    inverse: FloatArray
    informed: Callable[[FloatArray], FloatArray]
    moves: FloatArray
    lost: FloatArray

    @classmethod
    def from_derivatives(cls, information: FloatArray, own: FloatArray, scores: FloatArray) -> "ModelJackknife":
        """Compute the moves.

        `information` (k, k) is that of all rows, made invertible by a constant if the rows leave a direction open.
        `own` (G, k, k) is the information of each cluster's rows. `scores` (G, k) are the sums of the first derivatives
        of the log-likelihood in each cluster.
        """
        roots, directions = np.linalg.eigh(information - own)
        is_lost = roots <= MIN_CURVATURE * float(np.trace(information)) / len(information)
        with np.errstate(divide="ignore"):
            inverse_roots = np.where(is_lost, 0.0, 1 / roots)
        along = np.einsum("gki,gk->gi", directions, scores) * inverse_roots
        moves = np.einsum("gki,gi->gk", directions, along)
        lost = directions.transpose(0, 2, 1)[is_lost]
        inverse = np.asarray(np.linalg.inv(information))
        return cls(inverse, lambda direction: (own @ direction) @ direction, moves, lost)

    @property
    def covariance(self) -> FloatArray:
        """Return the covariance of the parameters; shape (k, k)."""
        n_clusters = len(self.moves)
        return np.asarray((n_clusters - 1) / n_clusters * (self.moves.T @ self.moves))

    def variance(self, contrast: FloatArray) -> float:
        """Return the variance of the sum of parameters times `contrast` (k,)."""
        n_clusters, parts = len(self.moves), np.flatnonzero(contrast)
        return (n_clusters - 1) / n_clusters * float(np.sum((self.moves[:, parts] @ contrast[parts]) ** 2))

    def is_identified(self, contrast: FloatArray) -> bool:
        """Return whether `contrast` (k,) keeps an estimate without each of the clusters."""
        largest = np.max(np.abs(self.lost @ contrast), initial=0.0)
        return bool(largest <= MIN_PART * float(np.linalg.norm(contrast)))

    def n_informed_and_df(self, contrast: FloatArray) -> tuple[int, float]:
        """Return how many clusters' rows inform `contrast` (k,), and the degrees of freedom of its t distribution."""
        informed = np.maximum(self.informed(self.inverse @ contrast), 0.0)
        shares = informed / float(np.sum(informed))
        return int(np.count_nonzero(shares > MIN_PART)), max(1.0, 1 / float(np.sum(shares**2)) - 1)


class ClusteredModel(Protocol):
    """A model at the maximum of its likelihood; see `FittedRows` for what its two functions return."""

    def jackknife(self, codes: IntArray) -> ModelJackknife:
        """Return the jackknife over clusters."""

    def sums(self, codes: IntArray, n_groups: int) -> FloatArray:
        """Return the sums of the first derivatives over groups."""


@dataclass(frozen=True, slots=True)
class FittedRows:
    """The rows of a fitted model, at the maximum of its likelihood.

    Attributes
    ----------
    information : ndarray of float, shape (k, k)
        Minus the second derivatives of the log-likelihood of all rows, made invertible by a constant if the rows leave a
        direction open.
    scores : ndarray of float, shape (n_rows, k)
        First derivatives of each row's log-likelihood.
    cells : ndarray of int, shape (n_rows,)
        Cell of each row, from 0. Rows in one cell have the same second derivatives.
    of_cells : ndarray of float, shape (n_cells, k, k)
        Minus the second derivatives of a row with weight 1 in each cell.
    weights : ndarray of float, shape (n_rows,), or None
        Weights of the rows. All are 1 if None.
    """

    information: FloatArray
    scores: FloatArray
    cells: IntArray
    of_cells: FloatArray
    weights: FloatArray | None = None

    def jackknife(self, codes: IntArray) -> ModelJackknife:
        """Return the jackknife over clusters with these codes from 0; shape (n_rows,)."""
        n_clusters, (n_cells, k, _) = int(codes.max()) + 1, self.of_cells.shape
        weights = np.ones(len(codes)) if self.weights is None else self.weights
        counts = group_sums(codes * n_cells + self.cells, weights, n_clusters * n_cells).reshape(n_clusters, n_cells)
        own = (counts @ self.of_cells.reshape(n_cells, -1)).reshape(n_clusters, k, k)
        return ModelJackknife.from_derivatives(self.information, own, self.sums(codes, n_clusters))

    def sums(self, codes: IntArray, n_groups: int) -> FloatArray:
        """Return the sums of the scores over the rows of groups with these codes from 0; shape (n_groups, k)."""
        return sums_by_cluster(self.scores, codes, n_groups)


@dataclass(frozen=True, slots=True)
class ModelSpread:
    """The spread of a fitted model's parameters over annotators and, if they matter, over prompts.

    Attributes
    ----------
    annotators : ModelJackknife
        The jackknife over annotators.
    prompts : ModelJackknife or None
        That over prompts. None if the population is the annotators alone.
    pair_moves : ndarray of float, shape (P, k), or None
        What each pair of annotator and prompt moves the parameters by.
    warnings : tuple[ResultWarning, ...]
        Warnings about few or unequal clusters.
    unit, second : str
        Names of an annotator and of a prompt.
    """

    annotators: ModelJackknife
    prompts: ModelJackknife | None
    pair_moves: FloatArray | None
    warnings: tuple[ResultWarning, ...]
    unit: str
    second: str = "prompt"

    @classmethod
    def from_rows(
        cls,
        rows: ClusteredModel,
        annotators: IntArray,
        prompts: IntArray | None = None,
        *,
        unit: str,
        second: str = "prompt",
    ) -> "ModelSpread":
        """Compute the spread.

        `annotators` and `prompts` are the codes of each row's annotator and prompt, from 0; fewer than five prompts
        count as fixed. `unit` and `second` are the names of an annotator and of a prompt.
        """
        by_annotator = rows.jackknife(annotators)
        if prompts is None or int(prompts.max()) + 1 < TOO_FEW_ITEMS:
            return cls(by_annotator, None, None, cluster_warnings(np.bincount(annotators), name=unit), unit, second)
        n_prompts = int(prompts.max()) + 1
        pairs, n_pairs = label_codes(annotators * n_prompts + prompts, "pairs", len(annotators))
        moves = rows.sums(pairs, n_pairs) @ by_annotator.inverse
        warnings = two_way_warnings(annotators, prompts, unit=unit)
        return cls(by_annotator, rows.jackknife(prompts), moves, warnings, unit, second)

    @property
    def population(self) -> str:
        """Return what the estimates are about: people and prompts like these, or people for exactly these prompts."""
        return PEOPLE if self.prompts is None else PEOPLE_AND_PROMPTS

    def estimate(
        self,
        value: float,
        contrast: FloatArray,
        *,
        level: float,
        null: float | None = None,
        bounds: tuple[float, float] | None = None,
        **common: Any,
    ) -> Estimate:
        """Return the estimate of a contrast of the parameters, with its t interval and its test.

        `value` is the sum of parameters times `contrast` (k,), and `common` has the other fields of the `Estimate`.
        There is no test if `null` is None, and the interval is clipped to `bounds`, the ends of the scale. The status
        is `n_lt_2` with one annotator, and `not_identified` if one annotator (or prompt) alone connects what is
        compared. Only clusters that inform the contrast count; with fewer than six annotators there is no test. V = V_a
        over annotators; with prompts it is the largest of V_a, V_p and V_a + V_p - V_ap, where V_ap is the variance of
        independent pairs of annotator and prompt. Each way has the degrees of freedom of `ModelJackknife`. If the sum
        is the largest, they are combined by Satterthwaite's rule; otherwise those of the larger variance are used.
        """
        common["warnings"] = (*common.get("warnings", ()), *self.warnings)
        common["settings"] = {**common.get("settings", {}), "population": self.population}
        if len(self.annotators.moves) < 2:
            return Estimate(status="n_lt_2", reason=f"one {self.unit} has no spread", estimate=value, **common)
        for way, name in ((self.annotators, self.unit), (self.prompts, self.second)):
            if way is not None and not way.is_identified(contrast):
                reason = f"one {name} alone gave the answers that connect what is compared; collect more answers"
                return Estimate(status="not_identified", reason=reason, estimate=value, **common)
        n_informed, df = self.annotators.n_informed_and_df(contrast)
        variance, name, has_enough = self.annotators.variance(contrast), "clustered_t", n_informed >= TOO_FEW_CLUSTERS
        detail: dict[str, Any] = {"n_informed": n_informed}
        if self.prompts is not None and self.pair_moves is not None:
            of_pairs = float(np.sum((self.pair_moves @ contrast) ** 2))
            n_prompts, df_of_prompts = self.prompts.n_informed_and_df(contrast)
            spread, df = combine_two_way_variances(
                (variance, self.prompts.variance(contrast)), of_pairs, (df, df_of_prompts)
            )
            detail |= {**spread.detail(), "n_prompts_informed": n_prompts}
            has_enough = has_enough and n_prompts >= TOO_FEW_ITEMS
            variance, name = spread.variance, "two_way_t"
        common["detail"] = {**common.get("detail", {}), **detail}
        return t_estimate(
            value,
            math.sqrt(variance),
            df,
            fewest_clusters=None,
            level=level,
            method="cv3_t" if self.prompts is None else "two_way_cv3_t",
            null=null if has_enough else None,
            test_name=name,
            bounds=bounds,
            reason="all annotators gave the same answers",
            **common,
        )


# Least-squares regressions with clustered standard errors.


@dataclass(frozen=True, slots=True)
class Regression(Record):
    """Least squares with a clustered covariance.

    `coefficients` (k,), `covariance` (k, k), `df` of the t distribution.
    """

    coefficients: FloatArray
    covariance: FloatArray
    df: float
    n_rows: int
    n_clusters: int


def clustered_regression(design: npt.ArrayLike, response: npt.ArrayLike, clusters: npt.ArrayLike) -> Regression:
    """Ordinary least squares with a clustered covariance.

    Parameters
    ----------
    design : array_like, shape (n_rows, k)
        Columns of the model, including the constant. No missing values.
    response : array_like, shape (n_rows,)
        Response. No missing values.
    clusters : array_like, shape (n_rows,)
        Label of each row's cluster.

    Returns
    -------
    Regression
        Coefficients, covariance and degrees of freedom.

    Raises
    ------
    ValueError
        If a row has a missing value, there are fewer than two clusters, or the columns are linearly dependent. Also
        if they are dependent without one of the clusters: that cluster alone then identifies a coefficient.

    Notes
    -----
    CV3: (G - 1) / G sum_g (b without g - b)(b without g - b)' with G* - 1 degrees of freedom.

    Examples
    --------
    >>> design = [[1, 0], [1, 1], [1, 0], [1, 1], [1, 0], [1, 1]]
    >>> fit = clustered_regression(design, [1, 2, 2, 3, 1, 4], [0, 0, 1, 1, 2, 2])
    >>> np.round(fit.coefficients, 4).tolist()
    [1.3333, 1.6667]
    """
    columns = np.asarray(design, dtype=np.float64)
    observed = vector(response, "response")
    if columns.ndim != 2 or columns.shape[0] != len(observed):
        raise ValueError(f"design: shape {columns.shape} where response has {len(observed)} rows")
    if np.isnan(columns).any() or np.isnan(observed).any():
        raise ValueError("design: a row with a missing value; leave it out first")
    positions, n_clusters = label_codes(np.asarray(clusters), "clusters", len(observed))
    n_rows, k = columns.shape
    if n_clusters < 2:
        raise ValueError("clusters: at least two are needed")
    if np.linalg.matrix_rank(columns) < k:
        raise ValueError("design: the columns are linearly dependent")
    sizes = group_sizes(positions, n_clusters)
    squares = sums_by_cluster(columns[:, :, None] * columns[:, None, :], positions, n_clusters)
    products = sums_by_cluster(columns * observed[:, None], positions, n_clusters)
    coefficients = np.linalg.solve(squares.sum(axis=0), products.sum(axis=0))
    rest = squares.sum(axis=0)[None] - squares
    if np.any(np.linalg.matrix_rank(rest) < k):
        raise ValueError("clusters: without one of them the columns are linearly dependent")
    without = np.linalg.solve(rest, (products.sum(axis=0)[None] - products)[:, :, None])[:, :, 0]
    shift = without - coefficients
    return Regression(
        coefficients,
        (n_clusters - 1) / n_clusters * (shift.T @ shift),
        max(1.0, effective_n_clusters(sizes) - 1),
        n_rows,
        n_clusters,
    )
