"""A logit model of the strengths of systems from best-worst answers."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray, validate_level
from analysis.stats.best_worst._answers import BestWorstAnswers, person_and_prompt_cluster_codes
from analysis.stats.best_worst._model import fit_logit
from analysis.stats.best_worst._spread import Clustering, first_with_rest_as_sensitivity, person_and_prompt_clusterings
from analysis.stats.bradley_terry import connected_components, reachability
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True)
class BestWorstLogit(Record):
    """A fitted best-worst model of K systems.

    `strengths` (log-odds, sum 0 over the systems shown) has one Estimate per system. `pairs` has the difference of
    each pair of systems shown, with Holm-adjusted tests that it is 0; its detail has the systems, `x` < `y`.
    `omnibus` is the joint F test that all strengths are equal. `covariance` (K, K) of the strengths is over people,
    NaN if undefined. `probabilities` (K, K) are the fitted probabilities that the row beats the column in a set of
    two. `components` are the groups of systems connected by sets: rank systems only within one. `df` belongs to the t
    distribution over people.
    """

    status: str
    reason: str
    strengths: tuple[Estimate, ...]
    pairs: tuple[Estimate, ...]
    omnibus: Estimate
    covariance: FloatArray
    probabilities: FloatArray
    log_likelihood: float | None
    components: tuple[tuple[int, ...], ...]
    n_shown: IntArray
    df: float | None
    level: float
    n_clusters: int
    n_rows: int
    _clusterings: tuple[Clustering, ...]
    _common: dict[str, Any]

    def difference(self, x: int, y: int) -> Estimate:
        """Return the strength of system `x` minus that of `y`, with its interval and the unadjusted test of 0."""
        k = len(self.strengths)
        if not (0 <= x < k and 0 <= y < k) or x == y:
            raise ValueError(f"x: {x} and {y} are not two of {k} systems")
        common = {
            **self._common,
            "analysis": f"{self._common['analysis']}.difference",
            "estimand": f"log-odds of system {x} against system {y}",
            "detail": {"x": x, "y": y},
        }
        weights = np.zeros(k)
        weights[x], weights[y] = 1.0, -1.0
        values = np.array([np.nan if strength.estimate is None else strength.estimate for strength in self.strengths])
        for strength in (self.strengths[x], self.strengths[y]):
            if strength.estimate is None:
                return Estimate(status=strength.status, reason=strength.reason, **common)
        is_shown = self.n_shown > 0
        return _over(self._clusterings, values[is_shown], weights[is_shown], 0.0, self.level, common)


def best_worst_logit(
    sets: npt.ArrayLike,
    best: npt.ArrayLike,
    worst: npt.ArrayLike,
    people: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    n_systems: int,
    level: float = 0.95,
) -> BestWorstLogit:
    """Estimate the strengths of systems from best-worst answers, in a sequential logit model clustered by annotator.

    Each row is one answer, coded as in `maxdiff_score_rows`; `n` counts people, `n_rows` answers. An answer has the
    probability exp(b_best) / sum over the set of exp(b) times exp(-b_worst) / sum over the set without the best of
    exp(-b) (Marley and Louviere 2005). The covariance is the jackknife over people (CV3) by one Newton step, with G* -
    1 degrees of freedom (MacKinnon, Nielsen and Webb 2023, Leverage, influence, and the jackknife in clustered
    regression models); it is undefined if one person's answers alone connect a system, and the estimates then have no
    interval (`not_identified`). With five prompts or more, contrasts are about people and prompts: V = V_a + V_i -
    V_ai, at least V_a and V_i, with the degrees of freedom of `clusters.combine_two_way_variances` (Cameron, Gelbach
    and Miller 2011), and the contrasts about people only are their sensitivity. Over people only, the omnibus test has
    F = (df - q + 1) / df b' V^-1 b / q for q = K - 1 differences b, on q and df - q + 1; there is no test with fewer
    than six people. The status is `not_identified` if no chain of sets connects all systems, and `separation` if some
    systems were chosen over others without exception, because the likelihood then has no maximum; a system that was
    never shown has `no_data`.

    >>> sets = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [0, 1, 2], [2, 1, 0]] * 2
    >>> fit = best_worst_logit(sets, [0, 1, 0, 2, 0, 1] * 2, [2, 0, 1, 1, 1, 2] * 2, list("aabbccddeeff"), n_systems=3)
    >>> [round(strength.estimate, 3) for strength in fit.strengths], round(fit.difference(0, 2).estimate, 3)
    ([0.472, -0.337, -0.135], 0.607)
    """
    validate_level(level)
    answers = BestWorstAnswers.from_arrays(sets, best, worst, n_systems)
    people_codes, n_people, prompt_codes = person_and_prompt_cluster_codes(people, prompts, len(answers.best))
    n_shown = answers.shown_counts()
    present = np.flatnonzero(n_shown)
    of_present = np.ix_(present, present)
    common: dict[str, Any] = {
        "unit": "annotator",
        "n": n_people,
        "n_clusters": n_people,
        "n_rows": len(answers.best),
        "settings": {"model": "best_worst", "method": "cv3", "level": level},
        "analysis": "best_worst.strength",
    }
    beats = answers.has_beaten_matrix()[of_present]
    groups = connected_components(beats) if len(present) else ()
    components = tuple(tuple(present[list(group)].tolist()) for group in groups)
    status, reason = _problem(len(answers.best), components, beats)
    fit = fit_logit(answers.renumber_systems(present)) if status == "ok" else None
    if status == "ok" and fit is None:
        status, reason = "failed", "the search for the maximum of the likelihood did not settle"
    clusterings = () if fit is None else person_and_prompt_clusterings(fit, people_codes, n_people, prompt_codes)
    values = np.full(n_systems, np.nan)
    covariance = np.full((n_systems, n_systems), np.nan)
    if fit is not None:
        values[present] = fit.strengths
        if clusterings[-1].covariances:
            covariance[of_present] = clusterings[-1].covariances[0]

    def strength(system: int) -> Estimate:
        named = {
            **common,
            "analysis": "best_worst.strength.strength",
            "estimand": f"strength of system {system} (log-odds, sum zero)",
            "detail": {"system": system, "n_shown": int(n_shown[system])},
        }
        if fit is None:
            return Estimate(status=status, reason=reason, **named)
        if not n_shown[system]:
            return Estimate(status="no_data", reason=f"system {system} was never shown", **named)
        return _over(clusterings, fit.strengths, (present == system).astype(np.float64), None, level, named)

    joint = {**common, "analysis": "best_worst.strength.omnibus", "estimand": "whether all strengths are equal"}
    if fit is None:
        omnibus = Estimate(status=status, reason=reason, **joint)
    else:
        omnibus = first_with_rest_as_sensitivity(
            tuple(clustering.joint_test(fit.strengths, **joint) for clustering in clusterings)
        )
    result = BestWorstLogit(
        status=status,
        reason=reason,
        strengths=tuple(strength(system) for system in range(n_systems)),
        pairs=(),
        omnibus=omnibus,
        covariance=covariance,
        probabilities=np.asarray(special.expit(values[:, None] - values[None, :]), dtype=np.float64),
        log_likelihood=None if fit is None else fit.log_likelihood,
        components=components,
        n_shown=n_shown,
        df=clusterings[-1].df if clusterings and clusterings[-1].covariances else None,
        level=level,
        n_clusters=n_people,
        n_rows=len(answers.best),
        _clusterings=clusterings,
        _common=common,
    )
    pairs = {f"{x} > {y}": result.difference(x, y) for x, y in combinations(present.tolist(), 2)}
    family = Family("best_worst.strength.pairs", tuple(pairs))
    return replace(
        result, pairs=tuple(adjust_pvalues_and_intervals_of_family(pairs, family, star_scheme=None).values())
    )


def _problem(n_rows: int, components: tuple[tuple[int, ...], ...], beats: npt.NDArray[np.bool_]) -> tuple[str, str]:
    if n_rows == 0:
        return "no_data", "no answer to analyse"
    if len(components) > 1:
        return "not_identified", "no chain of sets connects all systems; rank only within a component"
    reach = reachability(beats)
    if not np.all(reach & reach.T):
        return "separation", "some systems were chosen over others without exception, so their distance is unbounded"
    return "ok", ""


def _over(
    clusterings: tuple[Clustering, ...],
    strengths: FloatArray,
    weights: FloatArray,
    null: float | None,
    level: float,
    common: dict[str, Any],
) -> Estimate:
    return first_with_rest_as_sensitivity(
        tuple(clustering.contrast(strengths, weights, null=null, level=level, **common) for clustering in clusterings)
    )
