"""Simulated scores of people and of metrics."""

import itertools

import numpy as np


def scored(draw, n_items=60, k=6, noise=0.5, gap=0.15):
    """Human scores of k systems on the items, and a metric that follows them with `noise`."""
    human = draw.normal(0, 0.5, (n_items, 1)) + gap * np.arange(k) + draw.normal(0, 0.5, (n_items, k))
    return human, 3 * human + draw.normal(0, 3 * noise, (n_items, k)) + 7


def likert(draw, n_items=40, k=5):
    """Human scores on five points, so with ties, and a continuous metric."""
    quality = draw.normal(0, 1, (n_items, k)) + 0.4 * np.arange(k)
    return np.clip(np.rint(quality + 2), 0, 4) / 4, quality + draw.normal(0, 0.7, (n_items, k))


def brute_pairs(human, metric):
    """Differences of all pairs of outputs within each item."""
    for ours, theirs in zip(human, metric, strict=True):
        yield [
            (ours[i] - ours[j], theirs[i] - theirs[j])
            for i, j in itertools.combinations(range(len(ours)), 2)
            if not np.isnan([ours[i], ours[j], theirs[i], theirs[j]]).any()
        ]


def accuracy_at(human, metric, threshold):
    shares = []
    for pairs in brute_pairs(human, metric):
        right = [abs(m) <= threshold if h == 0 else abs(m) > threshold and h * m > 0 for h, m in pairs]
        if right:
            shares.append(np.mean(right))
    return float(np.mean(shares))
