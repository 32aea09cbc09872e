"""Procedures that are measured beside ours and not offered, because they cover worse: a comparison needs both."""

import math

import numpy as np

from analysis.stats.arrays import MIN_SPREAD
from analysis.stats.bootstrap import percentile_interval


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
