"""Reference numbers and simulated labels for the tests of Davidson's model."""

import math
from types import SimpleNamespace

import numpy as np

from analysis.stats import cluster_models, davidson
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
    tied = np.zeros_like(won) if ties is None else np.asarray(ties, dtype=float)
    counts = davidson.PairCounts.from_tables(won, tied)
    found = davidson.find_maximum(counts)
    if found is None:
        return None
    strengths, log_nu = found[:-1], None if counts.ties is None else float(found[-1])
    chances = davidson.PairProbabilities.at(strengths[:, None] - strengths[None, :], log_nu)
    information = counts.information(counts.probabilities(found), 0.0)
    tied = np.zeros_like(won) if chances.tied is None else chances.tied
    return SimpleNamespace(strengths=strengths, log_nu=log_nu, won=chances.won, tied=tied, information=information)


def standard_error(fit, **weights):
    """The error of a contrast of strengths, ``of_1=1, of_0=-1``, or of log nu, ``of_nu=1``."""
    contrast = np.zeros(len(fit.information))
    for name, weight in weights.items():
        contrast[-1 if name == "of_nu" else int(name.removeprefix("of_"))] = weight
    return math.sqrt(contrast @ np.linalg.inv(fit.information) @ contrast)


def dense_spread(first, second, outcomes, annotators, strengths, *, nu=0.0, bonus=None, prompts=None):
    """The spread of a fit (strengths, nu, and the bonus of the first) by a design of rows and parameters, and a matrix of all parameters for each person."""
    outcomes, rows, k = np.asarray(outcomes, dtype=float), np.arange(len(outcomes)), len(strengths)
    with_nu, framing = nu > 0, bonus is not None
    design, is_nu = np.zeros((len(rows), k + with_nu + framing)), np.zeros(k + with_nu + framing)
    design[rows, first], design[rows, second], is_nu[k : k + with_nu] = 1, -1, 1
    odds = design[:, :k] @ np.asarray(strengths)
    if framing:
        design[:, -1], odds = 1, odds + bonus
    up = np.exp(odds / 2)
    won, tied = up / (up + 1 / up + nu), nu / (up + 1 / up + nu)
    score = won + tied / 2
    scores = design * (outcomes - score)[:, None] + is_nu * ((outcomes == 0.5) - tied)[:, None]
    curves = (
        (design, design, won + tied / 4 - score**2),
        (design, is_nu[None], tied / 2 - score * tied),
        (is_nu[None], design, tied / 2 - score * tied),
        (is_nu[None], is_nu[None], tied * (1 - tied)),
    )
    of_rows = sum(one[:, :, None] * other[:, None, :] * weight[:, None, None] for one, other, weight in curves)
    information = of_rows.sum(axis=0)
    information[:k, :k] += 1
    fitted = cluster_models.FittedRows(information, scores, rows, of_rows)
    return cluster_models.ModelSpread.from_rows(fitted, np.asarray(annotators), prompts, unit="annotator")


def dense_estimate(spread, **weights):
    """The estimate of a contrast of a spread, ``of_1=1, of_0=-1``, or of the last parameter, ``of_last=1``."""
    contrast = np.zeros(len(spread.annotators.inverse))
    for name, weight in weights.items():
        contrast[-1 if name == "of_last" else int(name.removeprefix("of_"))] = weight
    common = {"analysis": "dense", "estimand": "a contrast", "unit": "annotator", "n": 2}
    return spread.estimate(1.0, contrast, level=0.95, null=0.0, **common)
