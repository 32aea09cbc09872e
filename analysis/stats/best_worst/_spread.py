"""What contrasts of fitted strengths are worth: intervals and tests over people, and over people and prompts."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from analysis.stats import clusters
from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, group_sizes, label_codes
from analysis.stats.best_worst._model import FittedLogit
from analysis.stats.results import Estimate, HypothesisTest, ResultWarning

# The part of a sum of squares that rounding alone may leave of it.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Clustering:
    """A way to take clusters: people (one covariance), or people and prompts (over people, over prompts, and V_a + V_i - V_ai).

    Covariances have shape (K, K). The largest variance rules a contrast, and the least F a joint hypothesis. Without
    covariances `status` and `reason` say why there are none.
    """

    covariances: tuple[FloatArray, ...]
    df: float
    n_clusters: int
    method: str
    warnings: tuple[ResultWarning, ...]
    status: str = "ok"
    reason: str = ""

    @property
    def is_two_way(self) -> bool:
        """Whether prompts are clusters too."""
        return self.method == "two_way"

    def contrast(
        self, strengths: FloatArray, weights: FloatArray, *, null: float | None, level: float, **common: Any
    ) -> Estimate:
        """The sum of the strengths times the weights, both (K,), with its interval and, given a `null`, its test."""
        common = self._named(common)
        value = float(weights @ strengths)
        if not self.covariances:
            return Estimate(status=self.status, reason=self.reason, estimate=value, **common)
        variances = [_variance(covariance, weights) for covariance in self.covariances]
        if self.is_two_way:
            common["detail"] = {**common.get("detail", {}), **clusters.TwoWayVariance(*variances).detail()}
        return clusters.t_estimate(
            value,
            math.sqrt(max(0.0, *variances)),
            self.df,
            fewest_clusters=self.n_clusters,
            level=level,
            method=f"{self.method}_t",
            null=null,
            test_name="two_way_t" if self.is_two_way else "clustered_t",
            reason="the answers of all clusters say the same, so the standard error is 0",
            **common,
        )

    def joint_test(self, strengths: FloatArray, **common: Any) -> Estimate:
        """The joint F test that all strengths (K,) are equal."""
        common = self._named(common)
        if not self.covariances:
            return Estimate(status=self.status, reason=self.reason, **common)
        q = len(strengths) - 1
        df, factor = self.df, 1.0
        if not self.is_two_way:
            # Hotelling's correction for a covariance that is estimated; with two ways the least of three makes up for it.
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
        return Estimate(test=test, detail={"df_between": q, "df_within": df}, **common)

    def _candidates(self) -> tuple[FloatArray, ...]:
        if not self.is_two_way:
            return self.covariances
        people, prompts, combined = self.covariances
        is_definite = float(np.linalg.eigvalsh(_differences(combined))[0]) > 1e-9 * float(np.trace(people + prompts))
        return people, prompts, combined if is_definite else people + prompts

    def _named(self, common: dict[str, Any]) -> dict[str, Any]:
        """The fields of an Estimate over these clusters; its n goes on counting people."""
        found = {**common, "warnings": self.warnings, "n_clusters": self.n_clusters}
        return {**found, "analysis": f"{common['analysis']}.two_way"} if self.is_two_way else found


def _variance(covariance: FloatArray, weights: FloatArray) -> float:
    """The variance of a contrast, and exactly 0 where its terms cancel except for rounding, which differs between processors."""
    variance = float(weights @ covariance @ weights)
    terms = float(np.abs(weights) @ np.sqrt(np.maximum(np.diag(covariance), 0.0))) ** 2
    return 0.0 if abs(variance) <= ROUNDING * terms else variance


def person_and_prompt_clusterings(
    fit: FittedLogit, people_codes: IntArray, n_people: int, prompt_codes: IntArray | None, *, method: str, unit: str
) -> tuple[Clustering, ...]:
    """Over people, and after it over people and prompts where the answers have prompts; `who` and `what` (n,) from 0."""
    sizes = group_sizes(people_codes, n_people)
    people = clusters.cluster_warnings(sizes, name=unit)
    if n_people < 2:
        return (Clustering((), 1.0, n_people, method, people, "n_lt_2", f"one {unit} has no spread"),)
    over_people = _covariance(fit, people_codes, method)
    df = max(1.0, clusters.effective_n_clusters(sizes) - 1) if method == "cv3" else n_people - 1.0
    one_way = _way((over_people,), df, n_people, method, people, unit)
    if prompt_codes is None:
        return (one_way,)
    n_prompts = int(prompt_codes.max()) + 1
    pairs, _ = label_codes(people_codes * n_prompts + prompt_codes, "pairs", len(people_codes))
    over_prompts, over_pairs = _covariance(fit, prompt_codes, method), _covariance(fit, pairs, method)
    both = (
        None
        if over_people is None or over_prompts is None or over_pairs is None
        else over_people + over_prompts - over_pairs
    )
    fewest = min(n_people, n_prompts)
    warnings = clusters.two_way_warnings(people_codes, prompt_codes, unit=unit)
    return one_way, _way(
        (over_people, over_prompts, both), fewest - 1.0, fewest, "two_way", warnings, f"{unit} or prompt"
    )


def first_with_rest_as_sensitivity(estimates: tuple[Estimate, ...]) -> Estimate:
    """The first estimate, the others its sensitivity."""
    return replace(estimates[0], sensitivity=estimates[1:])


def _way(
    covariances: tuple[FloatArray | None, ...],
    df: float,
    n_clusters: int,
    method: str,
    warnings: tuple[ResultWarning, ...],
    unit: str,
) -> Clustering:
    defined = tuple(one for one in covariances if one is not None)
    if len(defined) == len(covariances):
        return Clustering(defined, df, n_clusters, method, warnings)
    reason = f"one {unit} alone gives the answers that connect some system with the others"
    return Clustering((), df, n_clusters, method, warnings, "not_identified", reason)


def _covariance(fit: FittedLogit, positions: IntArray, method: str) -> FloatArray | None:
    n_clusters = int(positions.max()) + 1
    return (fit.jackknife_covariance if method == "cv3" else fit.sandwich_covariance)(positions, n_clusters)


def _differences(covariance: FloatArray) -> FloatArray:
    """The covariance of all strengths less the last one, (K - 1, K - 1)."""
    return np.asarray(covariance[:-1, :-1] - covariance[:-1, -1:] - covariance[-1:, :-1] + covariance[-1, -1])
