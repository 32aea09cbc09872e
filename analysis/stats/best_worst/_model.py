"""The sequential best-then-worst logit: its likelihood, its maximum, and covariances over clusters of answers.

The maximum exists if and only if the graph "was chosen over" is strongly connected. In a direction d of the
strengths, the log-probability that i is the best of S has the slope d_i - max over S of d in the limit. That of j as
the worst of the rest R has the slope min over R of d - d_j. Neither slope is above 0. The log-likelihood is concave,
so it has exactly one maximum (among strengths with sum 0) unless all slopes are 0 for some d that is not constant
(Rockafellar 1970, theorem 27.1). Such a d never rises from a chosen system to one that was not chosen, so it is
constant around a directed cycle of choices. In a strongly connected graph there is no such d. In any other graph
some systems were never chosen over the others: d = 1 for the former and 0 for the latter is such a direction.
This is Ford's condition of 1957 for comparisons of pairs.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.best_worst._answers import BestWorstAnswers

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
