"""Simulated answers of a whole study, by the model of `quick_power`."""

import math

import numpy as np
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray
from analysis.stats.plan_inputs import StudySize, Target, Variation
from analysis.stats.quick_moments import MARK_POINTS, scale_cuts
from analysis.stats.quick_power import ORDER_SD, shift_of


def assign_prompts(size: StudySize, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return the annotator and the prompt of each answer, as the site draws batches.

    All prompts are shuffled; each annotator takes the next ones, passing over those that they have already. Then the
    prompts are shuffled again. So prompts are shown equally often, up to one. Of several conditions only the two that
    are compared have annotators here, first all of x; each shows the prompts equally often.

    Parameters
    ----------
    size : StudySize
        The size of the study.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    tuple[ndarray of int, ndarray of int]
        The codes of annotators and prompts, shape (answers,).

    Examples
    --------
    >>> size = StudySize(protocol="rating", people=6, prompts=9, prompts_each=3)
    >>> people, prompts = assign_prompts(size, np.random.default_rng(0))
    >>> np.bincount(prompts).tolist(), sorted(prompts[:3].tolist()) == sorted(set(prompts[:3].tolist()))
    ([2, 2, 2, 2, 2, 2, 2, 2, 2], True)
    """
    given = []
    for _ in range(min(2, size.conditions)):
        waiting: list[int] = []
        for _ in range(size.people_each):
            own: list[int] = []
            passed_over: list[int] = []
            while len(own) < size.prompts_each:
                if not waiting:
                    waiting = rng.permutation(size.prompts).tolist()
                prompt = waiting.pop()
                (passed_over if prompt in own else own).append(prompt)
            waiting += passed_over[::-1]
            given.append(own)
    return np.repeat(np.arange(len(given)), size.prompts_each), np.array(given, dtype=np.int64).ravel()


def simulate_answers(
    size: StudySize,
    target: Target,
    variation: Variation,
    people: IntArray,
    prompts: IntArray,
    *,
    runs: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Simulate the answers of a study, on the scale of its headline.

    Parameters
    ----------
    size, target, variation : StudySize, Target, Variation
        The design, the true difference, and how much people and prompts vary.
    people, prompts : ndarray of int, shape (answers,)
        Who answers about what, from `assign_prompts`.
    runs : int
        Number of studies.
    rng : numpy.random.Generator
        Source of the random draws.

    Returns
    -------
    ndarray of float
        Shape (runs, answers), or (runs, people) in SPA.

    Notes
    -----
    If the claim is about exactly these prompts, their effects have the mean 0, so that the difference is true of them.

    Examples
    --------
    >>> size = StudySize(protocol="two_choice", people=20, prompts=30, prompts_each=15)
    >>> who, what = assign_prompts(size, np.random.default_rng(0))
    >>> values = simulate_answers(size, Target(), Variation(), who, what, runs=200, rng=np.random.default_rng(1))
    >>> values.shape, bool(abs(values.mean() - 0.6) < 0.02)
    ((200, 300), True)
    """
    of_people = variation.sd_people * rng.standard_normal((runs, size.people))
    of_prompts = variation.sd_prompts * rng.standard_normal((runs, size.prompts))
    if not size.is_about_prompts(target.population) and size.prompts > 1:
        of_prompts -= of_prompts.mean(axis=1, keepdims=True)
    shift = shift_of(target.difference, variation)
    if size.kind == "chance":
        return stated_chances(size, shift, variation, of_people, of_prompts, prompts, rng)
    d = rng.standard_normal((runs, len(people)))
    d += shift
    if size.is_between_conditions:
        d[:, people >= size.people_each] += shift_of(target.baseline, variation) - shift
    d += of_people[:, people]
    d += of_prompts[:, prompts]
    return answers_of_differences(d, size, variation, people, prompts, rng)


def answers_of_differences(
    d: FloatArray, size: StudySize, variation: Variation, people: IntArray, prompts: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Return the answers to perceived differences of shape (runs, answers), as the protocol asks for them. Not for SPA."""
    runs = len(d)
    if size.kind == "preference" or size.is_between_conditions:
        return np.asarray(d > 0, dtype=np.float64)
    if size.kind == "score":
        return np.asarray(np.clip(5 * np.rint(MARK_POINTS * d / 5), -100.0, 100.0), dtype=np.float64)
    cuts = np.array(scale_cuts(size.points))
    if size.kind == "point":
        return np.asarray(np.searchsorted(cuts, d) - (size.points - 1) / 2, dtype=np.float64)
    quality = variation.sd_quality * rng.standard_normal(d.shape)
    quality += (variation.sd_quality_people * rng.standard_normal((runs, size.people)))[:, people]
    quality += (variation.sd_quality_prompts * rng.standard_normal((runs, size.prompts)))[:, prompts]
    above = np.sign(np.searchsorted(cuts, quality + d / 2) - np.searchsorted(cuts, quality - d / 2))
    return np.asarray((above + 1) / 2, dtype=np.float64)


def stated_chances(
    size: StudySize,
    shift: float,
    variation: Variation,
    of_people: FloatArray,
    of_prompts: FloatArray,
    prompts: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return what each person states, both orders combined: the share of prompts like those read for which x is better."""
    runs, m = len(of_people), size.prompts_each
    read = of_prompts[:, prompts].reshape(runs, size.people, m).mean(axis=2)
    opinion = shift + of_people + read + rng.standard_normal((runs, size.people)) / math.sqrt(m)
    share = special.ndtr(opinion / math.hypot(1.0, variation.sd_prompts))
    both = []
    for stated in (share, 1 - share):
        noisy = stated + ORDER_SD * rng.standard_normal(share.shape)
        both.append(np.clip(5 * np.rint(20 * noisy), 0.0, 100.0))
    return np.asarray((both[0] + 100 - both[1]) / 200)
