"""Intervals and tests of contrasts of fitted strengths, over people, and over people and prompts."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from analysis.stats import clusters
from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, group_sizes, label_codes
from analysis.stats.best_worst._model import FittedLogit
from analysis.stats.results import Estimate, HypothesisTest, ResultWarning

# Relative size of a sum of squares that is due to rounding alone.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clusters of answers: people (one covariance), or people and prompts (V_a, V_i, and V_a + V_i - V_ai).

    Covariances have shape (K, K). A contrast uses the largest variance, a joint hypothesis the smallest F. `dfs` are the
    degrees of freedom of each way. Without covariances `status` and `reason` say why there are none.
    """

    covariances: tuple[FloatArray, ...]
    dfs: tuple[float, ...]
    n_clusters: int
    method: str
    warnings: tuple[ResultWarning, ...]
    status: str = "ok"
    reason: str = ""
    n_prompts: int | None = None

    @property
    def df(self) -> float:
        """Return the degrees of freedom of a joint test before Hotelling's correction: the smaller ones of two ways."""
        return min(self.dfs)

    @property
    def is_two_way(self) -> bool:
        """Return whether prompts are clusters too."""
        return self.method == "two_way"

    def contrast(
        self, strengths: FloatArray, weights: FloatArray, *, null: float | None, level: float, **common: Any
    ) -> Estimate:
        """Return the sum of strengths times weights, both (K,), with its interval and, given a `null`, its test."""
        common = self._named(common)
        value = float(weights @ strengths)
        if not self.covariances:
            return Estimate(status=self.status, reason=self.reason, estimate=value, **common)
        variances, df = [_variance(covariance, weights) for covariance in self.covariances], self.df
        if self.is_two_way:
            by_people, by_prompts, combined = variances
            spread, df = clusters.combine_two_way_variances(
                (by_people, by_prompts), by_people + by_prompts - combined, (self.dfs[0], self.dfs[1])
            )
            common["detail"] = {**common.get("detail", {}), **spread.detail()}
        return clusters.t_estimate(
            value,
            math.sqrt(max(0.0, *variances)),
            df,
            # The rule of six is about people; prompts are clusters only if there are five or more.
            fewest_clusters=common["n"],
            level=level,
            method=f"{self.method}_t",
            null=null,
            test_name="two_way_t" if self.is_two_way else "clustered_t",
            reason="the answers of all clusters say the same, so the standard error is 0",
            **common,
        )

    def joint_test(self, strengths: FloatArray, **common: Any) -> Estimate:
        """Return the joint F test that all strengths (K,) are equal."""
        common = self._named(common)
        if not self.covariances:
            return Estimate(status=self.status, reason=self.reason, **common)
        q = len(strengths) - 1
        df, factor = self.df, 1.0
        if not self.is_two_way:
            # Hotelling's correction for an estimated covariance. With two ways the least of three F replaces it.
            df = self.df - q + 1
            factor = df / self.df
        if df < 1 or self.n_clusters <= max(q, clusters.TOO_FEW_CLUSTERS - 1):
            return Estimate(status="not_identified", reason="too few clusters for a joint test", **common)
        contrasts = strengths[:-1] - strengths[-1]
        statistics = [
            float(contrasts @ np.linalg.solve(spread, contrasts)) / q
            for spread in map(_differences, self._candidates())
            if float(np.linalg.eigvalsh(spread)[0]) > MIN_SPREAD * max(1.0, float(np.trace(spread)))
        ]
        if not statistics:
            return Estimate(status="zero_variance", reason="some differences of strengths do not vary", **common)
        statistic = factor * min(statistics)
        test = HypothesisTest(
            name="clustered_f",
            null=0.0,
            statistic=statistic,
            pvalue=float(special.fdtrc(q, df, statistic)),
            alternative="greater",
        )
        common["detail"] |= {"df_between": q, "df_within": df}
        return Estimate(test=test, **common)

    def _candidates(self) -> tuple[FloatArray, ...]:
        if not self.is_two_way:
            return self.covariances
        people, prompts, combined = self.covariances
        is_definite = float(np.linalg.eigvalsh(_differences(combined))[0]) > 1e-9 * float(np.trace(people + prompts))
        return people, prompts, combined if is_definite else people + prompts

    def _named(self, common: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of an Estimate over these clusters; its n still counts people."""
        population = clusters.PEOPLE_AND_PROMPTS if self.is_two_way else clusters.PEOPLE
        return {
            **common,
            "warnings": self.warnings,
            "n_clusters": self.n_clusters,
            "settings": {**common.get("settings", {}), "population": population},
            "detail": {**common.get("detail", {}), **({} if self.n_prompts is None else {"n_prompts": self.n_prompts})},
        }


def _variance(covariance: FloatArray, weights: FloatArray) -> float:
    """Return the variance of a contrast, exactly 0 if only rounding is left (which differs between processors)."""
    variance = float(weights @ covariance @ weights)
    terms = float(np.abs(weights) @ np.sqrt(np.maximum(np.diag(covariance), 0.0))) ** 2
    return 0.0 if abs(variance) <= ROUNDING * terms else variance


def person_and_prompt_clusterings(
    fit: FittedLogit, people_codes: IntArray, n_people: int, prompt_codes: IntArray | None
) -> tuple[Clustering, ...]:
    """Return the clustering over people and prompts if there are five prompts or more, then the one over people.

    `people_codes` and `prompt_codes` (n,) are numbered from 0.
    """
    sizes = group_sizes(people_codes, n_people)
    people = clusters.cluster_warnings(sizes)
    if n_people < 2:
        return (Clustering((), (1.0,), n_people, "cv3", people, "n_lt_2", "one annotator has no spread"),)
    over_people = fit.jackknife_covariance(people_codes, n_people)
    df = max(1.0, clusters.effective_n_clusters(sizes) - 1)
    one_way = _defined_clustering((over_people,), (df,), n_people, "cv3", people, "annotator")
    if prompt_codes is None:
        return (one_way,)
    n_prompts = int(prompt_codes.max()) + 1
    one_way = replace(one_way, n_prompts=n_prompts)
    if n_prompts < clusters.TOO_FEW_ITEMS:
        return (one_way,)
    pairs, _ = label_codes(people_codes * n_prompts + prompt_codes, "pairs", len(people_codes))
    over_prompts = fit.jackknife_covariance(prompt_codes, n_prompts)
    over_pairs = fit.jackknife_covariance(pairs, int(pairs.max()) + 1)
    over_both = (
        None
        if over_people is None or over_prompts is None or over_pairs is None
        else over_people + over_prompts - over_pairs
    )
    fewest = min(n_people, n_prompts)
    own_df = max(1.0, clusters.effective_n_clusters(group_sizes(prompt_codes, n_prompts)) - 1)
    warnings = clusters.two_way_warnings(people_codes, prompt_codes)
    two_way = _defined_clustering(
        (over_people, over_prompts, over_both), (df, own_df), fewest, "two_way", warnings, "annotator or prompt"
    )
    return replace(two_way, n_prompts=n_prompts), one_way


def first_with_rest_as_sensitivity(estimates: tuple[Estimate, ...]) -> Estimate:
    """Return the first estimate, with that over annotators only, if it is another one, as its sensitivity analysis."""
    others = tuple(replace(other, analysis=f"{other.analysis}.by_annotator") for other in estimates[1:])
    return replace(estimates[0], sensitivity=others)


def _defined_clustering(
    covariances: tuple[FloatArray | None, ...],
    dfs: tuple[float, ...],
    n_clusters: int,
    method: str,
    warnings: tuple[ResultWarning, ...],
    unit: str,
) -> Clustering:
    defined = tuple(covariance for covariance in covariances if covariance is not None)
    if len(defined) == len(covariances):
        return Clustering(defined, dfs, n_clusters, method, warnings)
    reason = f"one {unit} alone gives the answers that connect some system with the others"
    return Clustering((), dfs, n_clusters, method, warnings, "not_identified", reason)


def _differences(covariance: FloatArray) -> FloatArray:
    """Return the covariance of all strengths minus the last one; shape (K - 1, K - 1)."""
    return np.asarray(covariance[:-1, :-1] - covariance[:-1, -1:] - covariance[-1:, :-1] + covariance[-1, -1])
