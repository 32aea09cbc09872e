"""Delete-one-cluster (CV3) variances of smooth functions of weighted sums: kappas, ratios, slopes, differences."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, IntArray, group_sums
from analysis.stats.judges._rows import PROMPTS, ClusteredRows, pair_codes
from analysis.stats.results import Estimate, ResultWarning

# Takes sums (..., m) and returns values (..., q); NaN is undefined.
OfSums = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class SumsJackknife:
    """Values of a function of the sums of all rows, and what they become without each cluster.

    `covariances` (q, q) are those over annotators and over prompts, or the one that the population has; `of_pairs` is that of
    independent pairs of annotator and prompt.
    """

    values: FloatArray
    covariances: tuple[FloatArray, ...]
    of_pairs: FloatArray | None
    dfs: tuple[float, ...]
    n_clusters: tuple[int, ...]
    names: tuple[str, ...]
    population: str
    warnings: tuple[ResultWarning, ...]
    n_rows: int
    weight_detail: dict[str, float]

    @classmethod
    def from_rows(cls, rows: ClusteredRows, contributions: FloatArray, function: OfSums) -> "SumsJackknife":
        """Compute the jackknife; `contributions` (n_rows, m) are what each row adds to the sums, weights included."""
        ways: list[tuple[str, IntArray]] = []
        n_prompts = int(rows.prompts.max(initial=-1)) + 1
        if rows.annotators is not None:
            ways.append(("annotator", rows.annotators))
        if rows.annotators is None or n_prompts >= clusters.TOO_FEW_ITEMS:
            ways.append(("prompt", rows.prompts))
        total = contributions.sum(axis=0)
        values = np.atleast_1d(function(total))
        covariances = tuple(_covariance(codes, contributions, total, values, function) for _, codes in ways)
        dfs = tuple(
            max(1.0, clusters.effective_n_clusters(np.bincount(codes, rows.weights)) - 1) if len(codes) else 1.0
            for _, codes in ways
        )
        of_pairs, warnings = None, rows.population_warnings
        population = clusters.PEOPLE if rows.annotators is not None else PROMPTS
        if len(ways) == 2 and len(rows.prompts):
            pairs = pair_codes(ways[0][1], ways[1][1])
            of_pairs = _covariance(pairs, contributions, total, values, function)
            population = clusters.PEOPLE_AND_PROMPTS
            warnings = (*warnings, *clusters.two_way_warnings(ways[0][1], ways[1][1]))
        elif len(rows.prompts):
            warnings = (*warnings, *clusters.cluster_warnings(np.bincount(ways[0][1]), name=ways[0][0]))
        return cls(
            values,
            covariances,
            of_pairs,
            dfs,
            tuple(int(codes.max(initial=-1)) + 1 for _, codes in ways),
            tuple(name for name, _ in ways),
            population,
            warnings,
            len(rows.prompts),
            rows.weight_detail(),
        )

    @property
    def has_enough_clusters(self) -> bool:
        """Return whether annotators and prompts are enough for a test."""
        fewest = {"annotator": clusters.TOO_FEW_CLUSTERS, "prompt": clusters.TOO_FEW_ITEMS}
        return all(n >= fewest[name] for n, name in zip(self.n_clusters, self.names, strict=True))

    def labels(self) -> dict[str, Any]:
        """Return the unit and the counts for an `Estimate`."""
        return {
            "unit": self.names[0],
            "n": self.n_clusters[0],
            "n_clusters": min(self.n_clusters),
            "n_rows": self.n_rows,
            "warnings": self.warnings,
        }

    def estimate(
        self,
        position: int = 0,
        *,
        undefined: str,
        level: float,
        null: float | None = None,
        bounds: tuple[float, float] | None = None,
        detail: dict[str, Any] | None = None,
        **labels: str,
    ) -> Estimate:
        """Return one of the values with its t interval and its test; `undefined` is the reason if it has no value."""
        found: dict[str, Any] = {
            **self.labels(),
            **labels,
            "detail": {**(detail or {}), "n_prompts": self.n_clusters[-1], **self.weight_detail},
            "settings": {"null": null, "level": level, "bounds": bounds, "population": self.population},
        }
        value = float(self.values[position])
        if self.n_rows == 0:
            return Estimate(status="no_data", reason="no label of a person beside one of the judge", **found)
        if not math.isfinite(value):
            return Estimate(status="not_identified", reason=undefined, **found)
        if min(self.n_clusters) < 2:
            return Estimate(status="n_lt_2", reason="one cluster has no spread", estimate=value, **found)
        parts = [float(covariance[position, position]) for covariance in self.covariances]
        if not np.isfinite(parts).all() or (
            self.of_pairs is not None and not np.isfinite(self.of_pairs[position, position])
        ):
            name = self.names[int(np.argmin(np.isfinite(parts)))]
            reason = f"without one {name} the number is undefined; collect more labels"
            return Estimate(status="not_identified", reason=reason, estimate=value, **found)
        if self.of_pairs is None:
            variance, df, method = parts[0], self.dfs[0], "cv3_t"
        else:
            spread, df = clusters.combine_two_way_variances(
                (parts[0], parts[1]), float(self.of_pairs[position, position]), (self.dfs[0], self.dfs[1])
            )
            variance, method = spread.variance, "two_way_cv3_t"
            found["detail"] |= spread.detail()
        return clusters.t_estimate(
            value,
            math.sqrt(variance),
            df,
            fewest_clusters=None,
            level=level,
            method=method,
            null=null if self.has_enough_clusters else None,
            test_name="clustered_t" if self.of_pairs is None else "two_way_t",
            bounds=bounds,
            reason="the number is the same without any one cluster, so the standard error is 0",
            **found,
        )


def _covariance(
    codes: IntArray, contributions: FloatArray, total: FloatArray, values: FloatArray, function: OfSums
) -> FloatArray:
    n_clusters = int(codes.max(initial=-1)) + 1
    if n_clusters < 2:
        return np.full((len(values), len(values)), np.nan)
    own = np.stack([group_sums(codes, column, n_clusters) for column in contributions.T], axis=1)
    without = function(total - own).reshape(n_clusters, len(values))
    moves = without - values
    return np.asarray((n_clusters - 1) / n_clusters * (moves.T @ moves))


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the ratio of two sums; NaN if the denominator is 0 up to rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.abs(denominator) > 1e-9, numerator / denominator, np.nan)
