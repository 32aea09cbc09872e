"""Answers whose truth is known: nobody prefers anything, or the true mean is a given number."""

import numpy as np
from scipy import special


def spa_answers(rng, n, sd=0.25, shape="even"):
    """Two orders of one pair, in percent, with true preference .5: heaped to fives, at the ends, or skewed."""
    if shape == "at the ends":
        opinion = rng.choice([0.0, 1.0], n)
    elif shape == "skewed":
        # Mean one half: most lean slightly to one side, a tenth is certain of the other.
        opinion = np.where(rng.random(n) < 0.1, 0.0, 5 / 9)
    else:
        opinion = 0.5 + rng.normal(0, sd, n)
    xy = 5 * np.rint(20 * (opinion + rng.normal(0, 0.05, n)))
    yx = 5 * np.rint(20 * (1 - opinion + rng.normal(0, 0.05, n)))
    return np.clip(xy, 0, 100), np.clip(yx, 0, 100)


def noisy_orders(rng, n, sd=0.1):
    """Two orders of one pair about which nobody has an opinion, each with noise of its own."""
    return tuple(np.clip(np.rint(100 * (0.5 + rng.normal(0, sd, n))), 0, 100) for _ in range(2))


def likert_pair(rng, n, per=1, spread=0.5):
    """Ratings 1..5 of two systems of equal worth by n annotators with scales of their own, ``per`` prompts each."""
    annotators = np.repeat(np.arange(n), per)
    leniency = rng.normal(0, 0.7, n)[annotators]
    taste = rng.normal(0, spread, n)[annotators] / 2
    cuts = np.array([-1.2, -0.4, 0.4, 1.2])

    def rated(side):
        latent = leniency + side * taste + rng.normal(0, 1, n * per)
        return 1.0 + np.searchsorted(cuts, latent)

    return rated(1), rated(-1), annotators


def heavy_tailed(rng, n=40):
    """Annotators of whom a few give most of the labels; values with mean 0 and a spread between annotators."""
    sizes = np.minimum(np.ceil(8 * (rng.pareto(1.1, n) + 1)).astype(int), 600)
    annotators = np.repeat(np.arange(n), sizes)
    return rng.normal(0, 0.5, n)[annotators] + rng.normal(0, 1, len(annotators)), annotators


def grid(rng, n_annotators, n_items, mean=0.5, sd_annotators=0.1, sd_items=0.15):
    """Everybody judges every item, right or wrong; both differ."""
    annotators = np.repeat(np.arange(n_annotators), n_items)
    items = np.tile(np.arange(n_items), n_annotators)
    chance = mean + rng.normal(0, sd_annotators, n_annotators)[annotators] + rng.normal(0, sd_items, n_items)[items]
    return (rng.random(len(items)) < np.clip(chance, 0, 1)).astype(float), annotators, items


def sparse(rng, n_annotators=130, each=5, n_items=100, sd_annotators=0.1, sd_items=0.15):
    """Each annotator judges a few of many items."""
    annotators = np.repeat(np.arange(n_annotators), each)
    items = np.concatenate([rng.choice(n_items, each, replace=False) for _ in range(n_annotators)])
    chance = 0.5 + rng.normal(0, sd_annotators, n_annotators)[annotators] + rng.normal(0, sd_items, n_items)[items]
    return (rng.random(len(items)) < np.clip(chance, 0, 1)).astype(float), annotators, items


SCORES = np.array([0, 0.25, 0.5, 0.75, 1])
CEILING = np.array([0.01, 0.01, 0.02, 0.09, 0.87])
HIGH = np.array([0.05, 0.05, 0.1, 0.3, 0.5])


def comparisons(rng, n, strengths=(0.0, 0.4, 0.8, 1.2), spread=0.4):
    """P[x > y] of every pair of four systems by n annotators whose own scales differ; the population's truth comes with it."""
    pairs = [(x, y) for x in range(len(strengths)) for y in range(len(strengths)) if x < y]
    first = np.tile([x for x, _ in pairs], n)
    second = np.tile([y for _, y in pairs], n)
    annotators = np.repeat(np.arange(n), len(pairs))
    worth = np.array(strengths) + rng.normal(0, spread, (n, len(strengths)))
    logits = worth[annotators, first] - worth[annotators, second] + rng.normal(0, 0.3, len(first))
    return first, second, special.expit(logits), annotators


def choices_with_ties(rng, n, strengths=(0.0, 0.4, 0.8, 1.2), spread=0.4, nu=0.5):
    """Every pair of four systems chosen between, or called equal, by n annotators who see the systems' worth each in their own way."""
    pairs = [(x, y) for x in range(len(strengths)) for y in range(len(strengths)) if x < y]
    first = np.tile([x for x, _ in pairs], n)
    second = np.tile([y for _, y in pairs], n)
    annotators = np.repeat(np.arange(n), len(pairs))
    worth = np.exp(np.array(strengths) + rng.normal(0, spread, (n, len(strengths))))
    x, y = worth[annotators, first], worth[annotators, second]
    tie = nu * np.sqrt(x * y)
    drawn = rng.random(len(first)) * (x + y + tie)
    return first, second, np.where(drawn < x, 1.0, np.where(drawn < x + y, 0.0, 0.5)), annotators


def best_and_worst(rng, n, strengths=(0.0, 0.3, 0.6, 0.9, 1.2), spread=0.5):
    """The best and the worst of four of five systems, chosen by annotators of uneven activity who see worth each in their own way."""
    annotators = np.repeat(np.arange(n), np.clip(np.ceil(3 * (rng.pareto(1.2, n) + 1)).astype(int), 3, 80))
    rows = np.arange(len(annotators))
    worth = (np.array(strengths) + rng.normal(0, spread, (n, len(strengths))))[annotators]
    sets = np.argsort(rng.random(worth.shape), axis=1)[:, :4]
    worth = np.take_along_axis(worth, sets, axis=1)
    best = np.argmax(worth + rng.gumbel(size=worth.shape), axis=1)
    low = rng.gumbel(size=worth.shape) - worth
    low[rows, best] = -np.inf
    return sets, sets[rows, best], sets[rows, np.argmax(low, axis=1)], annotators
