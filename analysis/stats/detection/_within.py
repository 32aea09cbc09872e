"""d' within annotators: with a random criterion, or with each annotator as a stratum."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from analysis.stats import basic, clusters
from analysis.stats.arrays import MIN_SPREAD, FloatArray, validate_level
from analysis.stats.detection._answers import n_rows_and_signal_counts_by_annotator
from analysis.stats.detection._measures import SignalDetection, signal_detection
from analysis.stats.results import Estimate

NODES = 41
# Bounds of the spread of criteria: above the upper one all answers are equal, below the lower one it counts as 0.
SPREAD = (1e-3, 6.0)


def mantel_haenszel_log_odds_ratio(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the Mantel-Haenszel log odds ratio of saying "machine" to a machine text, with each annotator as a stratum.

    An answer is 1 for "machine", 0 for "human", and NaN if it is missing. The estimate is log(sum h (N_h - f) / N / sum
    (N_m - h) f / N), over annotators with h hits on N_m machine texts and f false alarms on N_h human texts, N = N_m +
    N_h (Mantel and Haenszel 1959). Each annotator's criterion cancels, without an assumption about its distribution,
    and the estimate is consistent for many annotators with five texts each (Breslow 1981 for many small strata). The
    interval leaves out one annotator at a time. `n` counts annotators who saw both kinds and gave both answers.

    >>> says, truth = [1, 0, 1, 0, 0, 0, 1, 1, 1, 0], [1, 0, 0, 1, 1, 0, 1, 0, 1, 0]
    >>> round(mantel_haenszel_log_odds_ratio(says, truth, np.repeat([1, 2], 5)).estimate, 4)
    0.9163
    """
    validate_level(level)
    table = n_rows_and_signal_counts_by_annotator(answered_machine, is_machine, annotators)[1]
    hits, n_machine, false, n_human = table.T
    size = np.maximum(1.0, n_machine + n_human)
    agreeing, crossing = hits * (n_human - false) / size, (n_machine - hits) * false / size
    informative = (n_machine > 0) & (n_human > 0) & (hits + false > 0) & (hits + false < n_machine + n_human)
    agreeing, crossing = agreeing[informative], crossing[informative]
    n = int(informative.sum())
    common: dict[str, Any] = {
        "analysis": "humanlike.stratified",
        "estimand": "log odds ratio of saying machine, within annotators",
        "unit": "annotator",
        "n": n,
        "n_clusters": n,
        "n_rows": int(size[informative].sum()),
        "settings": {"level": level, "null": 0.0},
        "detail": {"n_uninformative": len(table) - n},
    }
    if n == 0:
        reason = "no annotator saw both kinds and gave both answers"
        return Estimate(status="no_data" if len(table) == 0 else "not_identified", reason=reason, **common)
    for_it, against = float(agreeing.sum()), float(crossing.sum())
    if min(for_it, against) <= 0:
        return Estimate(status="separation", reason="no annotator erred, or none was right", **common)
    estimate = math.log(for_it / against)
    remaining = for_it - agreeing, against - crossing
    if n < 2 or min(remaining[0].min(), remaining[1].min()) <= MIN_SPREAD:
        reason = "one annotator alone decides the odds"
        return Estimate(status="n_lt_2", reason=reason, estimate=estimate, **common)
    without = np.log(remaining[0] / remaining[1])
    se = math.sqrt((n - 1) / n * float(np.sum((without - estimate) ** 2)))
    return clusters.t_estimate(estimate, se, n - 1, fewest_clusters=n, level=level, method="cv3_t", null=0.0, **common)


def random_criterion_d_prime(
    answered_machine: npt.ArrayLike,
    is_machine: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate d' within annotators with normally distributed criteria, by a probit model with a random intercept.

    An answer is 1 for "machine", 0 for "human", and NaN if it is missing. P("machine") = Phi(d' / 2 - c) for a machine
    text and Phi(-d' / 2 - c) for a human text, with normal c and the same d' for all (DeCarlo 1998, Signal detection
    theory and generalized linear models). The likelihood is integrated by Gauss-Hermite quadrature, the interval uses
    the observed information, and texts are taken as fixed. `detail` has the mean and sd of the criterion and the
    marginal d' = d' / sqrt(1 + sd^2). The status is `separation` if one kind of text got one answer only.

    >>> rng = np.random.default_rng(0)
    >>> annotators, truth = np.repeat(np.arange(300), 10), np.tile([0, 1], 1500)
    >>> noise = rng.normal(0, 1, 3000) - np.repeat(rng.normal(0, 0.8, 300), 10)
    >>> result = random_criterion_d_prime(noise + truth > 0.5, truth, annotators)
    >>> abs(result.estimate - 1) < 0.15, result.detail["marginal_d_prime"] < result.estimate
    (True, True)
    """
    validate_level(level)
    n_rows, table = n_rows_and_signal_counts_by_annotator(answered_machine, is_machine, annotators)
    hits, n_machine, false, n_human = table.sum(axis=0) if len(table) else np.zeros(4)
    common: dict[str, Any] = {
        "analysis": "humanlike.random_criterion",
        "estimand": "d' within annotators (random criterion)",
        "unit": "annotator",
        "n": len(table),
        "n_clusters": len(table),
        "n_rows": n_rows,
        "settings": {"level": level, "null": 0.0, "nodes": NODES},
    }
    if min(n_machine, n_human) == 0:
        status = "no_data" if n_rows == 0 else "not_identified"
        return Estimate(status=status, reason="d' needs texts of both kinds", **common)
    if min(hits, n_machine - hits, false, n_human - false) == 0:
        return Estimate(status="separation", reason="one kind of text got one answer only", **common)
    if len(table) < 2:
        return Estimate(status="n_lt_2", reason="one annotator has no spread of criteria", **common)
    patterns, weights = np.unique(table, axis=0, return_counts=True)
    start = signal_detection(int(hits), int(n_machine - hits), int(false), int(n_human - false))
    fit = _fit_criteria(patterns, weights.astype(np.float64), start)
    if isinstance(fit, str):
        return Estimate(status="failed", reason=fit, **common)
    (d_prime, centre, spread), se = fit
    detail = {"criterion": centre, "criterion_sd": spread, "marginal_d_prime": d_prime / math.sqrt(1 + spread**2)}
    null = 0.0 if len(table) >= clusters.TOO_FEW_CLUSTERS else None
    return basic.wald_estimate(d_prime, se, null=null, level=level, detail=detail, **common)


def _fit_criteria(
    patterns: FloatArray, weights: FloatArray, start: SignalDetection | None
) -> tuple[tuple[float, float, float], float] | str:
    """Return the maximum-likelihood (d', mean criterion, its sd) and the standard error of d', or a reason."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(NODES)
    log_masses = np.log(masses / masses.sum())
    hits, n_machine, false, n_human = patterns.T[:, :, None]

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return minus the log-likelihood and its gradient."""
        d_prime, centre, log_spread = parameters
        spread = math.exp(log_spread)
        criteria = (centre + spread * nodes)[None, :]
        logs, slopes = log_masses, []
        for shift, n_said_machine, n_texts in ((d_prime / 2, hits, n_machine), (-d_prime / 2, false, n_human)):
            z = shift - criteria
            yes, no = special.log_ndtr(z), special.log_ndtr(-z)
            logs = logs + n_said_machine * yes + (n_texts - n_said_machine) * no
            density = -(z**2) / 2 - math.log(2 * math.pi) / 2
            slopes.append(n_said_machine * np.exp(density - yes) - (n_texts - n_said_machine) * np.exp(density - no))
        # Subtracting the largest keeps the likelihood of a long pattern from vanishing.
        largest = logs.max(axis=1, keepdims=True)
        parts = np.exp(logs - largest)
        sums = parts.sum(axis=1, keepdims=True)
        parts = weights[:, None] * parts / sums
        by_d, by_criterion = (slopes[0] - slopes[1]) / 2, -(slopes[0] + slopes[1])
        gradient = [np.sum(parts * move) for move in (by_d, by_criterion, by_criterion * spread * nodes)]
        return -float(weights @ (np.log(sums) + largest)[:, 0]), -np.array(gradient)

    low, high = (math.log(end) for end in SPREAD)
    first = (0.0, 0.0) if start is None else (start.d_prime, start.criterion)
    best = min(
        (
            optimize.minimize(
                loss, (*first, guess), jac=True, method="L-BFGS-B", bounds=[(-12, 12), (-12, 12), (low, high)]
            )
            for guess in (math.log(0.3), math.log(1.0))
        ),
        key=lambda fitted: float(fitted.fun),
    )
    estimates = np.asarray(best.x, dtype=np.float64)
    if estimates[2] > high - 1e-6:
        return "criteria are too widely spread to tell d' from them"
    # Without spread its information is 0, and d' is that of the pooled model.
    free = 2 if estimates[2] < math.log(0.02) else 3
    information = _hessian(loss, estimates, free)
    if not np.isfinite(information).all() or float(np.linalg.eigvalsh(information)[0]) <= 0:
        return "the fit has no finite standard error"
    se = math.sqrt(float(np.linalg.inv(information)[0, 0]))
    spread = 0.0 if free == 2 else math.exp(float(estimates[2]))
    return (float(estimates[0]), float(estimates[1]), spread), se


def _hessian(loss: Callable[[FloatArray], tuple[float, FloatArray]], at: FloatArray, free: int) -> FloatArray:
    """Return the second derivatives by the first `free` parameters, by central differences of the gradient."""
    step = 1e-5
    rows = [
        (loss(at + step * unit)[1] - loss(at - step * unit)[1])[:free] / (2 * step) for unit in np.eye(len(at))[:free]
    ]
    return np.asarray((np.array(rows) + np.array(rows).T) / 2, dtype=np.float64)
