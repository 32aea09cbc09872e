"""The sequential best-then-worst logit: its likelihood, its maximum, and covariances over clusters of answers.

When the maximum exists. In a direction d of the strengths the logarithm of the chance that i is the best of S tends to
t (d_i - max over S of d), and that of j as the worst of the rest R to t (min over R of d - d_j); neither slope is above 0.
The log-likelihood is concave, so it has a maximum, and one only among strengths that add up to 0, unless every slope is 0
for some d that is not constant (Rockafellar 1970, theorem 27.1): unless some such d never rises from whoever was chosen to
whoever was not. Around a directed circle of choices d must be constant. Hence, where the graph "was chosen over" is strongly
connected, there is no such d and the maximum exists; where it is not, some systems were never chosen over by the others, and
d = 1 for these and 0 for the others is such a direction. This is Ford's condition of 1957 for comparisons of pairs.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.best_worst._answers import BestWorstAnswers

MAX_STEPS = 100
HALVINGS = 40
TOLERANCE = 1e-10
# Less than this of the mean curvature is none: strengths differ by no more than that in what is left of the answers.
MIN_CURVATURE = 1e-9


@dataclass(frozen=True, slots=True)
class FittedLogit:
    """The maximum: `strengths` (K,) that add up to 0, and at it, a row an answer, the chances (n, K) of being the best and,
    of the rest, the worst; `scores` (n, K) are the answers' derivatives, `information` (K, K) minus the second ones."""

    strengths: FloatArray
    best: FloatArray
    worst: FloatArray
    scores: FloatArray
    information: FloatArray
    log_likelihood: float

    def sandwich_covariance(self, cluster_codes: IntArray, n_clusters: int) -> FloatArray:
        """CR1: G / (G - 1) (N - 1) / (N - k) times the sandwich; `cluster_codes` (n,) are the answers' clusters from 0."""
        k, n_rows = len(self.strengths), len(self.scores)
        sums = np.zeros((n_clusters, k))
        np.add.at(sums, cluster_codes, self.scores)
        # Scores add up to 0, so that what `_anchored` puts in about the sum of the strengths meets none of them.
        bread = np.linalg.inv(_anchored(self.information))
        factor = n_clusters / (n_clusters - 1)
        if n_rows > k - 1:
            factor *= (n_rows - 1) / (n_rows - k + 1)
        moves = sums @ bread
        return np.asarray(factor * (moves.T @ moves))

    def jackknife_covariance(self, cluster_codes: IntArray, n_clusters: int) -> FloatArray | None:
        """CV3 by one Newton step from the maximum without each cluster; None where one cluster alone tells of some system."""
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
    """The fit to answers for which it exists; None where Newton's method does not settle, for numerical reasons."""
    strengths = np.zeros(answers.n_systems)
    fit = _at(strengths, answers)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(_anchored(fit.information), fit.scores.sum(axis=0))
        fit = fit_after_damped_step(fit, step, answers)
        if float(np.max(np.abs(step))) < TOLERANCE:
            return fit
    return None


def fit_after_damped_step(fit: FittedLogit, step: FloatArray, answers: BestWorstAnswers) -> FittedLogit:
    """The fit after the step (K,), which is halved until the likelihood does not fall."""
    step = step - np.mean(step)
    for _ in range(HALVINGS):
        there = _at(fit.strengths + step, answers)
        # Rounding may cost a hair at the top.
        if there.log_likelihood >= fit.log_likelihood - 1e-12 * abs(fit.log_likelihood):
            return there
        step = step / 2
    return fit


def _at(strengths: FloatArray, asked: BestWorstAnswers) -> FittedLogit:
    rows, columns = np.nonzero(asked.is_shown)
    shape = (len(asked.best), asked.n_systems)
    answers = np.arange(len(asked.best))
    is_there = np.zeros(shape, dtype=np.bool_)
    is_there[rows, asked.systems[rows, columns]] = True
    upward = np.where(is_there, strengths, -np.inf)
    is_there[answers, asked.best] = False
    downward = np.where(is_there, -strengths, -np.inf)
    log_best, log_worst = (special.log_softmax(values, axis=1) for values in (upward, downward))
    best, worst = np.exp(log_best), np.exp(log_worst)
    scores = worst - best
    scores[answers, asked.best] += 1
    scores[answers, asked.worst] -= 1
    height = float(np.sum(log_best[answers, asked.best] + log_worst[answers, asked.worst]))
    return FittedLogit(strengths, best, worst, scores, _information(best, worst), height)


def _information(best: FloatArray, worst: FloatArray) -> FloatArray:
    """Minus the second derivatives of answers with these chances, (K, K); its rows add up to 0."""
    return np.asarray(np.diag((best + worst).sum(axis=0)) - best.T @ best - worst.T @ worst)


def _anchored(information: FloatArray) -> FloatArray:
    """The information, made invertible: a constant added to all strengths, of which answers are silent, costs something."""
    return information + 1.0
