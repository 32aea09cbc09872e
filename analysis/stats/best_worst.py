"""Best-worst scaling (MaxDiff): from each set of outputs an annotator chooses the best and the worst.

`maxdiff_scores` gives the score of the papers: times best minus times worst, divided by times shown. It depends
on the other systems in the sets. `best_worst_logit` fits one strength b per system, which does not. In a set S
the best is i with probability exp(b_i) / sum over S of exp(b). Of the rest R, the worst is j with probability
exp(-b_j) / sum over R of exp(-b). Both choices share one scale. If annotators choose the worst less carefully
than the best, the strengths are a compromise.

References: Finn and Louviere 1992, Determining the appropriate response to evidence of public concern; Marley and
Louviere 2005, Some probabilistic models of best, worst, and best-worst choices (the sequential model); Louviere,
Flynn and Marley 2015, Best-Worst Scaling; Kiritchenko and Mohammad 2017, Best-worst scaling more reliable than
rating scales (the counts).
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import cluster_variances, clusters
from analysis.stats.arrays import MIN_SPREAD, BoolArray, FloatArray, IntArray, group_sizes, label_codes, validate_level
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import Estimate, HypothesisTest, Record, ResultWarning
from analysis.stats.votes import connected_components, reachability

# Best-worst answers in rows: the sets that were shown and the choices, with validation.


# Placeholder for a system in sets that are smaller than the largest one.
PADDING = -1


@dataclass(frozen=True, slots=True)
class BestWorstAnswers:
    """Checked sets and choices: `systems` (n, k) with `is_shown` (n, k) False for padding, `best` and `worst` (n,)."""

    systems: IntArray
    is_shown: BoolArray
    best: IntArray
    worst: IntArray
    n_systems: int

    @classmethod
    def from_arrays(
        cls, sets: npt.ArrayLike, best: npt.ArrayLike, worst: npt.ArrayLike, n_systems: int
    ) -> "BestWorstAnswers":
        """Build from arrays. Raise ValueError with the argument and the row for an invalid answer."""
        if n_systems < 1:
            raise ValueError(f"n_systems: {n_systems} is not a positive number of systems")
        array = np.asarray(sets)
        if array.size == 0:
            array = np.zeros((len(array), 0), dtype=np.int64)
        if array.ndim != 2:
            raise ValueError(f"sets: expected two dimensions, got {array.ndim}")
        if array.dtype.kind not in "iu":
            raise ValueError("sets: systems are numbered with integers")
        systems = array.astype(np.int64)
        wrong = np.argwhere((systems < PADDING) | (systems >= n_systems))
        if len(wrong):
            row, column = wrong[0]
            raise ValueError(f"sets: row {row} shows {systems[row, column]}, which is not one of {n_systems} systems")
        is_shown = systems != PADDING
        small = np.flatnonzero(is_shown.sum(axis=1) < 2)
        if len(small):
            raise ValueError(f"sets: row {small[0]} shows fewer than two systems")
        ordered = np.sort(systems, axis=1)
        twice = np.argwhere((np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] != PADDING))
        if len(twice):
            row, column = twice[0]
            raise ValueError(f"sets: row {row} shows system {ordered[row, column]} twice")
        chosen = [_chosen(values, name, systems) for values, name in ((best, "best"), (worst, "worst"))]
        same_rows = np.flatnonzero(chosen[0] == chosen[1])
        if len(same_rows):
            raise ValueError(
                f"worst: row {same_rows[0]} has system {chosen[1][same_rows[0]]} as the worst and as the best"
            )
        return cls(systems, is_shown, chosen[0], chosen[1], n_systems)

    def shown_counts(self) -> IntArray:
        """Return how often each system was shown; shape (n_systems,)."""
        return np.bincount(self.systems[self.is_shown], minlength=self.n_systems)

    def renumber_systems(self, shown_systems: IntArray) -> "BestWorstAnswers":
        """Return the answers with the systems `shown_systems` (all that were shown) numbered from 0."""
        numbers = np.full(self.n_systems, PADDING, dtype=np.int64)
        numbers[shown_systems] = np.arange(len(shown_systems))
        systems = np.where(self.is_shown, numbers[self.systems], PADDING)
        return BestWorstAnswers(systems, self.is_shown, numbers[self.best], numbers[self.worst], len(shown_systems))

    def has_beaten_matrix(self) -> BoolArray:
        """Return whether the row system was chosen over the column system at least once."""
        rows, columns = np.nonzero(self.is_shown)
        has_won = np.zeros((self.n_systems, self.n_systems), dtype=np.bool_)
        has_won[self.best[rows], self.systems[rows, columns]] = True
        has_won[self.systems[rows, columns], self.worst[rows]] = True
        np.fill_diagonal(has_won, False)
        return has_won


def maxdiff_score_rows(
    sets: npt.ArrayLike, best: npt.ArrayLike, worst: npt.ArrayLike, *, n_systems: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Convert best-worst answers to one row for each system of each set.

    `sets` (n, k) has system numbers 0..n_systems-1, and -1 fills sets smaller than k; `best` and `worst` are the chosen
    systems. The result has, for each row, the row of the answer, the system, and 1 (best), -1 (worst) or 0. The means
    of these values are the scores of `maxdiff_scores`, and `ranks.rank_confidence_sets_from_rows` takes them with the
    annotators of the answers' rows. A ValueError with the argument and the row reports an invalid system number, a set
    with fewer than two systems or one twice, a choice that is not in its set, and a system that is both best and worst.

    >>> answers, systems, values = maxdiff_score_rows([[0, 1, 2], [2, 1, -1]], [0, 1], [2, 2], n_systems=3)
    >>> answers.tolist(), systems.tolist(), values.tolist()
    ([0, 0, 0, 1, 1], [0, 1, 2, 2, 1], [1.0, 0.0, -1.0, -1.0, 1.0])
    """
    return maxdiff_score_rows_of_checked_answers(BestWorstAnswers.from_arrays(sets, best, worst, n_systems))


def maxdiff_score_rows_of_checked_answers(checked_answers: BestWorstAnswers) -> tuple[IntArray, IntArray, FloatArray]:
    """Return `maxdiff_score_rows` of answers that were checked."""
    answers, columns = np.nonzero(checked_answers.is_shown)
    systems = checked_answers.systems[answers, columns]
    values = (systems == checked_answers.best[answers]).astype(np.float64) - (systems == checked_answers.worst[answers])
    return answers.astype(np.int64), systems, np.asarray(values)


def person_and_prompt_cluster_codes(
    people: npt.ArrayLike, prompts: npt.ArrayLike | None, n_rows: int
) -> tuple[IntArray, int, IntArray | None]:
    """Return integer codes of people and prompts, and the number of people.

    Prompts are None if there is only one.
    """
    people_codes, n_people = label_codes(np.asarray(people), "people", n_rows)
    if prompts is None:
        return people_codes, n_people, None
    prompt_codes, n_prompts = label_codes(np.asarray(prompts), "prompts", n_rows)
    return people_codes, n_people, prompt_codes if n_prompts > 1 else None


def _chosen(values: npt.ArrayLike, name: str, systems: IntArray) -> IntArray:
    array = np.asarray(values)
    if array.shape != (len(systems),):
        raise ValueError(f"{name}: expected {len(systems)} systems, got an array of shape {array.shape}")
    if len(array) and array.dtype.kind not in "iu":
        raise ValueError(f"{name}: systems are numbered with integers")
    codes = array.astype(np.int64)
    is_there = (systems == codes[:, None]).any(axis=1) & (codes != PADDING)
    absent = np.flatnonzero(~is_there)
    if len(absent):
        raise ValueError(f"{name}: row {absent[0]} is {codes[absent[0]]}, which its set does not show")
    return codes


# The sequential best-then-worst logit: its likelihood, its maximum, and covariances over clusters of answers.
#
# The maximum exists if and only if the graph "was chosen over" is strongly connected. In a direction d of the
# strengths, the log-probability that i is the best of S has the slope d_i - max over S of d in the limit. That of j
# as the worst of the rest R has the slope min over R of d - d_j. Neither slope is above 0. The log-likelihood is
# concave, so it has exactly one maximum (among strengths with sum 0) unless all slopes are 0 for some d that is not
# constant (Rockafellar 1970, theorem 27.1). Such a d never rises from a chosen system to one that was not chosen, so
# it is constant around a directed cycle of choices. In a strongly connected graph there is no such d. In any other
# graph some systems were never chosen over the others: d = 1 for the former and 0 for the latter is such a direction.
# This is Ford's condition of 1957 for comparisons of pairs.


MAX_STEPS = 100
HALVINGS = 40
TOLERANCE = 1e-10
# A smallest curvature below this share of the mean curvature counts as 0: the strengths are not identified.
MIN_CURVATURE = 1e-9


@dataclass(frozen=True, slots=True)
class FittedLogit:
    """The fit: `strengths` (K,) with sum 0, and the probabilities and derivatives at them.

    `best` (n, K) is the probability of each system to be chosen as best in each answer. `worst` (n, K) is that of being
    chosen as worst among the rest. `scores` (n, K) are the first derivatives of the answers' log-likelihoods,
    `information` (K, K) is minus the second derivatives of their sum.
    """

    strengths: FloatArray
    best: FloatArray
    worst: FloatArray
    scores: FloatArray
    information: FloatArray
    log_likelihood: float

    def jackknife_covariance(self, cluster_codes: IntArray, n_clusters: int) -> FloatArray | None:
        """Return the CV3 covariance (K, K), by one Newton step from the maximum without each cluster.

        Return None if the estimate without some cluster is not identified.
        """
        k = len(self.strengths)
        order = np.argsort(cluster_codes, kind="stable")
        ends = np.cumsum(np.bincount(cluster_codes, minlength=n_clusters))[:-1]
        moves = np.empty((n_clusters, k))
        least = MIN_CURVATURE * float(np.trace(self.information)) / k
        for cluster, rows in enumerate(np.split(order, ends)):
            rest = self.information - _information(self.best[rows], self.worst[rows])
            if float(np.linalg.eigvalsh(_anchored(rest))[0]) <= least:
                return None
            moves[cluster] = np.linalg.solve(_anchored(rest), self.scores[rows].sum(axis=0))
        return np.asarray((n_clusters - 1) / n_clusters * (moves.T @ moves))


def fit_logit(answers: BestWorstAnswers) -> FittedLogit | None:
    """Return the fit to answers that have a maximum, or None if Newton's method does not converge numerically."""
    strengths = np.zeros(answers.n_systems)
    fit = _at(strengths, answers)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(_anchored(fit.information), fit.scores.sum(axis=0))
        fit = fit_after_damped_step(fit, step, answers)
        if float(np.max(np.abs(step))) < TOLERANCE:
            return fit
    return None


def fit_after_damped_step(fit: FittedLogit, step: FloatArray, answers: BestWorstAnswers) -> FittedLogit:
    """Return the fit after the step (K,), which is halved until the likelihood does not fall."""
    step = step - np.mean(step)
    for _ in range(HALVINGS):
        next_fit = _at(fit.strengths + step, answers)
        # At the maximum rounding can lower the likelihood slightly.
        if next_fit.log_likelihood >= fit.log_likelihood - 1e-12 * abs(fit.log_likelihood):
            return next_fit
        step = step / 2
    return fit


def _at(strengths: FloatArray, choices: BestWorstAnswers) -> FittedLogit:
    rows, columns = np.nonzero(choices.is_shown)
    shape = (len(choices.best), choices.n_systems)
    answers = np.arange(len(choices.best))
    is_there = np.zeros(shape, dtype=np.bool_)
    is_there[rows, choices.systems[rows, columns]] = True
    upward = np.where(is_there, strengths, -np.inf)
    is_there[answers, choices.best] = False
    downward = np.where(is_there, -strengths, -np.inf)
    log_best, log_worst = (special.log_softmax(values, axis=1) for values in (upward, downward))
    best, worst = np.exp(log_best), np.exp(log_worst)
    scores = worst - best
    scores[answers, choices.best] += 1
    scores[answers, choices.worst] -= 1
    height = float(np.sum(log_best[answers, choices.best] + log_worst[answers, choices.worst]))
    return FittedLogit(strengths, best, worst, scores, _information(best, worst), height)


def _information(best: FloatArray, worst: FloatArray) -> FloatArray:
    """Return minus the second derivatives of answers with these probabilities; shape (K, K). Its rows sum to 0."""
    return np.asarray(np.diag((best + worst).sum(axis=0)) - best.T @ best - worst.T @ worst)


def _anchored(information: FloatArray) -> FloatArray:
    """Return the information made invertible by a penalty on the sum of strengths, which answers do not identify."""
    return information + 1.0


# Intervals and tests of contrasts of fitted strengths, over people, and over people and prompts.


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
            spread, df = cluster_variances.combine_two_way_variances(
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
        if df < 1 or self.n_clusters <= max(q, cluster_variances.TOO_FEW_CLUSTERS - 1):
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
        population = cluster_variances.PEOPLE_AND_PROMPTS if self.is_two_way else cluster_variances.PEOPLE
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
    people = cluster_variances.cluster_warnings(sizes)
    if n_people < 2:
        return (Clustering((), (1.0,), n_people, "cv3", people, "n_lt_2", "one annotator has no spread"),)
    over_people = fit.jackknife_covariance(people_codes, n_people)
    df = max(1.0, cluster_variances.effective_n_clusters(sizes) - 1)
    one_way = _defined_clustering((over_people,), (df,), n_people, "cv3", people, "annotator")
    if prompt_codes is None:
        return (one_way,)
    n_prompts = int(prompt_codes.max()) + 1
    one_way = replace(one_way, n_prompts=n_prompts)
    if n_prompts < cluster_variances.TOO_FEW_ITEMS:
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
    own_df = max(1.0, cluster_variances.effective_n_clusters(group_sizes(prompt_codes, n_prompts)) - 1)
    warnings = cluster_variances.two_way_warnings(people_codes, prompt_codes)
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


# Best-worst counts: how often each system was chosen as best and as worst.


@dataclass(frozen=True, slots=True)
class MaxDiffScores(Record):
    """Counts of K systems, shape (K,), and one Estimate per system of its score, (best - worst) / shown.

    The `detail` of each score has `n_shown`, `n_best` and `n_worst`. `n_rows` counts answers, `n_clusters` people.
    """

    status: str
    reason: str
    scores: tuple[Estimate, ...]
    n_shown: IntArray
    n_best: IntArray
    n_worst: IntArray
    n_clusters: int
    n_rows: int


def maxdiff_scores(
    sets: npt.ArrayLike,
    best: npt.ArrayLike,
    worst: npt.ArrayLike,
    people: npt.ArrayLike,
    prompts: npt.ArrayLike | None = None,
    *,
    n_systems: int,
    level: float = 0.95,
) -> MaxDiffScores:
    """Estimate the best-worst score of each system: (times best - times worst) / times shown, from -1 to 1.

    Each row is one answer, coded as in `maxdiff_score_rows`. A score is the mean of 1, -1 and 0 over the sets with the
    system (Finn and Louviere 1992; Kiritchenko and Mohammad 2017 for the score as a number from -1 to 1), with the
    standard error of `clusters.clustered_mean` (CV3) over annotators. If prompts were judged more than once, the last
    sensitivity is `clusters.two_way_clustered_mean`. There is no test, because the scores depend on each other and on
    which systems shared a set. The status of a score is `no_data` if the system was never shown, `n_lt_2` without an
    interval if one annotator saw it, and `zero_variance` with a betting interval if it was always the best; `n` counts
    the annotators who saw the system.

    >>> counts = maxdiff_scores([[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]], [0, 0, 0, 1], [2, 2, 1, 2],
    ...                         ["a", "a", "b", "b"], n_systems=3)
    >>> counts.n_best.tolist(), counts.n_worst.tolist(), [score.estimate for score in counts.scores]
    ([3, 1, 0], [0, 1, 3], [0.75, 0.0, -0.75])
    """
    checked_answers = BestWorstAnswers.from_arrays(sets, best, worst, n_systems)
    people_codes, n_people, prompt_codes = person_and_prompt_cluster_codes(people, prompts, len(checked_answers.best))
    answers, systems, values = maxdiff_score_rows_of_checked_answers(checked_answers)
    n_shown = checked_answers.shown_counts()
    first, last = (np.bincount(chosen, minlength=n_systems) for chosen in (checked_answers.best, checked_answers.worst))
    scores = []
    for system in range(n_systems):
        is_own = systems == system
        rows, own = answers[is_own], values[is_own]
        common: dict[str, Any] = {
            "level": level,
            "bounds": (-1.0, 1.0),
            "estimand": f"times best less times worst of system {system}, per time shown",
            "mode": "paper",
        }
        score = clusters.clustered_mean(own, people_codes[rows], analysis="best_worst.counts", **common)
        others = list(score.sensitivity)
        if prompt_codes is not None and len(rows) and 1 < len(np.unique(prompt_codes[rows])) < len(rows):
            others.append(
                clusters.two_way_clustered_mean(
                    own, people_codes[rows], prompt_codes[rows], analysis="best_worst.counts.two_way", **common
                )
            )
        counted = {"n_shown": int(n_shown[system]), "n_best": int(first[system]), "n_worst": int(last[system])}
        reason = score.reason if len(rows) else f"system {system} was never shown"
        scores.append(
            replace(
                score, reason=reason, sensitivity=tuple(others), detail={**score.detail, **counted, "system": system}
            )
        )
    is_there = len(checked_answers.best) > 0
    return MaxDiffScores(
        status="ok" if is_there else "no_data",
        reason="" if is_there else "no answer to analyse",
        scores=tuple(scores),
        n_shown=n_shown,
        n_best=first,
        n_worst=last,
        n_clusters=n_people,
        n_rows=len(checked_answers.best),
    )


# A logit model of the strengths of systems from best-worst answers.


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
