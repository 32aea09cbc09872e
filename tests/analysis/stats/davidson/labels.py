"""Reference numbers and simulated labels for the tests of Davidson's model."""

import math

import numpy as np

from analysis.stats import davidson
from tests.analysis.stats.golden import golden

GOLDEN = golden("davidson")


def labels(seed=0, n_annotators=40, n_labels=12, strengths=(0.6, 0.0, -0.2, -0.4), nu=0.5, lean=0.0):
    """Rows of a study: who was shown first and second, 1, .5 or 0, and by whom."""
    draw, k = np.random.default_rng(seed), len(strengths)
    annotators = np.repeat(np.arange(n_annotators), n_labels)
    first = draw.integers(0, k, len(annotators))
    second = (first + draw.integers(1, k, len(annotators))) % k
    own = (
        np.asarray(strengths) + draw.normal(0, lean, (n_annotators, k))
        if lean
        else np.tile(strengths, (n_annotators, 1))
    )
    x, y = own[annotators, first], own[annotators, second]
    wins, ties = np.exp((x - y) / 2), np.full(len(x), nu)
    total = wins + np.exp((y - x) / 2) + ties
    uniform = draw.random(len(x)) * total
    outcomes = np.where(uniform < wins, 1.0, np.where(uniform < wins + ties, 0.5, 0.0))
    return first, second, outcomes, annotators


def tables(first, second, outcomes, k):
    wins, ties = np.zeros((k, k)), np.zeros((k, k))
    for x, y, outcome in zip(first, second, outcomes, strict=True):
        if outcome == 0.5:
            ties[x, y] += 1
            ties[y, x] += 1
        elif outcome == 1:
            wins[x, y] += 1
        else:
            wins[y, x] += 1
    return wins, ties


def cost(parameters, wins, ties):
    """Minus the log-likelihood, from the probabilities as Davidson wrote them; the first system's strength is 1."""
    pi, nu = np.exp(np.r_[0.0, parameters[:-1]]), math.exp(parameters[-1])
    total = 0.0
    for i in range(len(wins)):
        for j in range(i + 1, len(wins)):
            whole = pi[i] + pi[j] + nu * math.sqrt(pi[i] * pi[j])
            total -= wins[i, j] * math.log(pi[i] / whole) + wins[j, i] * math.log(pi[j] / whole)
            total -= ties[i, j] * math.log(nu * math.sqrt(pi[i] * pi[j]) / whole)
    return total


def estimates(fit):
    return np.array([strength.estimate for strength in fit.strengths])


def fit_counts(wins, ties=None):
    """The model of tables of counts, without people: strengths, log nu and the information of independent labels."""
    won = np.asarray(wins, dtype=float)
    return davidson.fit_win_and_tie_table(won, np.zeros_like(won) if ties is None else np.asarray(ties, dtype=float))


def standard_error(fit, **weights):
    """The error of a contrast of strengths, ``of_1=1, of_0=-1``, or of log nu, ``of_nu=1``."""
    contrast = np.zeros(len(fit.information))
    for name, weight in weights.items():
        contrast[-1 if name == "of_nu" else int(name.removeprefix("of_"))] = weight
    return math.sqrt(contrast @ np.linalg.inv(fit.information) @ contrast)
