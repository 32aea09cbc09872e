"""Procedures that are measured beside ours and not offered, because they cover worse: a comparison needs both."""

import math

import numpy as np
from scipy import optimize, stats

from analysis.stats.arrays import MIN_SPREAD
from analysis.stats.bootstrap import percentile_interval
from analysis.stats.confidence import TCurve


def score_t(values, null, bounds):
    """Return p, t and the 95 % interval of the mean of independent values, as by `confidence.ScoreCurve`; the ends by a search.

    A mean m is tested with the classical standard error times sqrt(h(m) / h(mean)) (1 + 4 (1 - h(m) / h(middle)) / df) if that is larger,
    where h(m) = (m - low) (high - m).
    """
    values = np.asarray(values, dtype=float)
    mean, se, d = values.mean(), stats.sem(values), values - values.mean()
    df = min(len(values) - 1, 3 * np.sum(d**2) ** 2 / np.sum(d**4) - 1)

    def h(m):
        return (m - bounds[0]) * (bounds[1] - m)

    def t_of(m):
        factor = math.sqrt(h(m) / h(mean)) * (1 + 4 * (1 - h(m) / h(np.mean(bounds))) / max(2, df))
        return (mean - m) / (se * max(1.0, factor))

    wanted = stats.t.ppf(0.975, df)
    low = optimize.brentq(lambda m: t_of(m) - wanted, bounds[0] + 1e-9, mean)
    high = optimize.brentq(lambda m: t_of(m) + wanted, mean, bounds[1] - 1e-9)
    return 2 * stats.t.sf(abs(t_of(null)), df), t_of(null), low, high


def bootstrap_t(values, *, level=0.95, resamples=999, rng):
    """The studentised interval of a mean, mean - q s / sqrt(n) with q the quantiles of (mean* - mean) / (s* / sqrt(n)).

    Resamples without spread have no t and are left out; None where all are so. Source: Efron 1982, section 10.10;
    Hall 1988.
    """
    n = len(values)
    points, times = np.unique(values, return_counts=True)
    drawn = rng.multinomial(n, times / n, size=resamples)
    means = drawn @ points / n
    errors = np.sqrt(np.maximum(0.0, drawn @ points**2 - n * means**2) / (n - 1) / n)
    is_spread = errors > MIN_SPREAD
    if not is_spread.any():
        return None
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(n)
    t = (means - mean)[is_spread] / errors[is_spread]
    low, high = np.quantile(t, [(1 - level) / 2, (1 + level) / 2])
    return mean - high * error, mean - low * error


def pigeonhole(values, annotators, items, *, level=0.95, resamples=499, rng):
    """The percentile interval of a mean over annotators and items resampled apart: a row counts as often as its
    annotator was drawn, times as often as its item was. Source: Owen 2007, The pigeonhole bootstrap.
    """
    weights = np.ones((resamples, len(values)))
    for codes in (annotators, items):
        n = int(codes.max()) + 1
        weights *= rng.multinomial(n, np.full(n, 1 / n), size=resamples)[:, codes]
    return percentile_interval(weights @ values / weights.sum(axis=1), level)


def sandwich_variances(influences, *ways):
    """The clustered sandwich (CR1), G / (G - 1) times the sum of the squared influences of clusters, for each way."""
    sums = [np.bincount(codes, influences) for codes in ways]
    return [len(one) / (len(one) - 1) * float(np.sum(one**2)) for one in sums]


def sandwich(values, *ways, weights=None):
    """The t curve of a mean over one or two ways, with the largest variance and min(G) - 1 degrees of freedom.

    Source: Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering.
    """
    weights = np.ones(len(values)) if weights is None else weights
    mean, codes = np.average(values, weights=weights), [np.unique(way, return_inverse=True)[1] for way in ways]
    influences = weights * (values - mean) / weights.sum()
    variances = sandwich_variances(influences, *codes)
    if len(codes) == 2:
        pairs = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].reshape(-1)
        variances.append(sum(variances) - sandwich_variances(influences, pairs)[0])
    return TCurve(float(mean), math.sqrt(max(variances)), float(min(one.max() for one in codes)))
