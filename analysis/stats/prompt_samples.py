"""Stated chances about two systems whose annotators read other prompts for x than for y: two independent samples of prompts.

With the same prompts for both systems, an easy prompt helps both and cancels out. Here it does not, so both sets of
prompts that a person read are random. References: Ethayarajh and Jurafsky 2022, section 5.2, step 1; Cameron, Gelbach
and Miller 2011, Robust inference with multiway clustering.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import BoolArray, FloatArray, vector
from analysis.stats.cluster_variances import PEOPLE, PEOPLE_AND_PROMPTS, TOO_FEW_CLUSTERS, validate_population
from analysis.stats.results import AnswersBehind, Estimate

ESTIMATOR = "two_prompt_samples"


def two_prompt_samples_mean(
    values: npt.ArrayLike,
    x_sets: npt.ArrayLike,
    y_sets: npt.ArrayLike,
    *,
    analysis: str,
    population: str = "",
    **options: Any,
) -> Estimate:
    """Mean over annotators, for people like these and, with six sets of prompts of each system or more, for prompts like these.

    Parameters
    ----------
    values : array_like, shape (n,)
        One value of each annotator, without missing ones.
    x_sets, y_sets : array_like, shape (n,)
        Labels of the set of prompts that the annotator read for x and for y. Two sets of a system share no prompt.
    analysis : str
        Name of the analysis. That over people only, among the sensitivities, has ".by_annotator" after it.
    population : {"", "people_and_prompts", "people"}, default ""
        What the mean is about, as for `clusters.annotator_prompt_clustered_mean`.
    **options : Any
        `null`, `level`, `bounds`, `estimand` and `unit`, as for `clusters.two_way_clustered_mean`.

    Returns
    -------
    Estimate
        `settings["estimator"]` is "two_prompt_samples"; `detail` has the numbers of sets, `n_sets_x` and `n_sets_y`.

    Notes
    -----
    The variance is V = V_x + V_y - V_xy: jackknives over the sets of x and over those of y, less the variance of
    independent pairs of sets, at least V_x and V_y. Each annotator read one pair, so the noise of people is in all three
    and counts once.

    Examples
    --------
    >>> sets = np.arange(48) % 8, np.arange(48) // 6
    >>> values = 0.5 + 0.02 * (sets[0] - 3.5) - 0.03 * (sets[1] - 3.5) + 0.05 * (np.arange(48) % 3 - 1)
    >>> result = two_prompt_samples_mean(values, *sets, analysis="demo", null=0.5, bounds=(0, 1))
    >>> result.settings["population"], result.n, result.detail["n_sets_x"], result.sensitivity[-1].analysis
    ('people and prompts', 48, 8, 'demo.by_annotator')
    """
    validate_population(population)
    array = vector(values, "values")
    first, second = np.asarray(x_sets), np.asarray(y_sets)
    n_sets = {"n_sets_x": len(np.unique(first)), "n_sets_y": len(np.unique(second))}
    by_annotator = clusters.clustered_mean(array, np.arange(len(array)), analysis=f"{analysis}.by_annotator", **options)
    if min(n_sets.values()) < TOO_FEW_CLUSTERS or population == "people":
        result, about = replace(by_annotator, analysis=analysis), PEOPLE
    else:
        named = {**options, "unit": "batch"}  # the word for a set of prompts in warnings
        result, about = (
            clusters.two_way_clustered_mean(array, first, second, analysis=analysis, **named),
            PEOPLE_AND_PROMPTS,
        )
        sensitivity = (*by_annotator.sensitivity, replace(by_annotator, sensitivity=()))
        result = replace(result, unit=by_annotator.unit, n=len(array), sensitivity=sensitivity)

    def influences() -> tuple[FloatArray, FloatArray]:
        shares = (array - np.mean(array)) / len(array)
        return shares, shares

    def refit(is_kept: BoolArray) -> Estimate:
        kept = (one[is_kept] for one in (array, first, second))
        again = "people" if about == PEOPLE else population
        return two_prompt_samples_mean(*kept, analysis=analysis, population=again, **options)

    return replace(
        result,
        settings={**result.settings, "population": about, "estimator": ESTIMATOR},
        detail={**result.detail, **n_sets},
        _answers=AnswersBehind(np.arange(len(array)), None, influences, refit),
    )
