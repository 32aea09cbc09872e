"""Reference numbers and simulated labels for the tests of leaderboards."""

import math

import numpy as np

from tests.analysis.stats.golden import golden

GOLDEN = golden("leaderboard")


def answers(draw, share):
    """Five points, mapped to 0..1, with the given expectation each."""
    return draw.binomial(4, np.clip(share, 0, 1)) / 4


def unilabels(draw, n_items=800, n_annotators=40, spread=0.18, is_heavy=True):
    """One label an item from a workforce whose means differ by `spread`, the true score being 60."""
    activity = np.minimum(draw.pareto(1.1, n_annotators) + 1, 300) if is_heavy else np.ones(n_annotators)
    who = draw.choice(n_annotators, n_items, p=activity / activity.sum())
    return answers(draw, draw.normal(0.6, spread, n_annotators)[who]), np.arange(n_items), who


def two_systems(draw, design, n_items=400, n_annotators=40, spread=0.15, item_spread=0.2, shift=0.0):
    """Answers of two systems on the same items: `same` annotator for both, or `other` ones."""
    first = draw.permutation(np.arange(n_items) % n_annotators)
    if design == "heavy":
        # Without a cap now and then one annotator gives all answers, and nothing can be estimated.
        activity = np.minimum(draw.pareto(1.1, n_annotators) + 1, 300)
        first = draw.choice(n_annotators, n_items, p=activity / activity.sum())
    second = first if design == "same" else draw.permutation(first)
    taste = draw.normal(0, spread, (n_annotators, 2)) / math.sqrt(2) + draw.normal(0, spread, (n_annotators, 1))
    item = draw.normal(0, item_spread, n_items)
    x = np.clip(0.5 + shift + item + taste[first, 0] + draw.normal(0, 0.15, n_items), 0, 1)
    y = np.clip(0.5 + item + taste[second, 1] + draw.normal(0, 0.15, n_items), 0, 1)
    return np.r_[x, y], np.repeat(["x", "y"], n_items), np.tile(np.arange(n_items), 2), np.r_[first, second]
