"""Made-up studies of best-worst scaling, and their likelihood written independently."""

import math

import numpy as np

STRENGTHS = (0.0, 0.3, 0.6, 0.9, 1.2)


def study(
    seed=0, n_people=24, n_sets=8, strengths=STRENGTHS, lean=0.4, size=4, n_prompts=0, prompt_lean=0.0, sizes=None
):
    """Sets of a study, what was chosen as best and as worst, by whom and for which prompt."""
    draw, k = np.random.default_rng(seed), len(strengths)
    people = np.repeat(np.arange(n_people), n_sets if sizes is None else sizes)
    prompts = draw.integers(0, n_prompts, len(people)) if n_prompts else None
    own = (np.asarray(strengths) + draw.normal(0, lean, (n_people, k)))[people]
    if prompts is not None:
        own = own + draw.normal(0, prompt_lean, (n_prompts, k))[prompts]
    sets = np.argsort(draw.random((len(people), k)), axis=1)[:, :size]
    rows, worths = np.arange(len(people)), np.take_along_axis(own, sets, axis=1)
    # The largest of values with Gumbel noise is chosen as by a logit.
    best = np.argmax(worths + draw.gumbel(size=worths.shape), axis=1)
    lows = draw.gumbel(size=worths.shape) - worths
    lows[rows, best] = -np.inf
    return sets, sets[rows, best], sets[rows, np.argmax(lows, axis=1)], people, prompts


def log_likelihood(strengths, sets, best, worst):
    """One answer after the other, from the probabilities as they are written in the papers."""
    total = 0.0
    for shown, first, last in zip(np.asarray(sets).tolist(), best, worst, strict=True):
        shown = [system for system in shown if system >= 0]
        total += strengths[first] - math.log(sum(math.exp(strengths[one]) for one in shown))
        rest = [one for one in shown if one != first]
        total -= strengths[last] + math.log(sum(math.exp(-strengths[one]) for one in rest))
    return total


def estimates(fit):
    return np.array([strength.estimate for strength in fit.strengths])
