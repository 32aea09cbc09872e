"""The mean behind a claim about two systems, and the population that the claim is about."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import label_codes_where, vector
from analysis.stats.clusters._means import clustered_mean
from analysis.stats.clusters._two_way import two_way_clustered_mean
from analysis.stats.clusters._warnings import TOO_FEW_ITEMS
from analysis.stats.results import Estimate

# What a claim is about: people and prompts like those of the study, or people only, for exactly these prompts.
PEOPLE_AND_PROMPTS, PEOPLE = "people and prompts", "people"
# What a design can declare for a comparison (the values of its column); empty is not declared.
DECLARED_POPULATIONS = ("", "people_and_prompts", "people")


def annotator_prompt_clustered_mean(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike,
    *,
    null: float | None,
    analysis: str,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    population: str = "",
    **labels: Any,
) -> Estimate:
    """Mean over rows, for people and prompts like these, or for people like these and exactly these prompts.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values; NaN is missing.
    annotators, prompts : array_like, shape (n_rows,)
        Labels of each row's annotator and prompt.
    null : float or None
        Value of the null hypothesis. There is no test if None.
    analysis : str
        Name of the analysis. That over people only, among the sensitivities, has ".by_annotator" after it.
    weights : array_like, shape (n_rows,), optional
        Positive weights of the rows. Equal if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the scale.
    population : {"", "people_and_prompts", "people"}, default ""
        What the mean is about. "people": exactly these prompts, however many they are. Otherwise prompts like these, unless
        they are fewer than five: no method is valid for so few.
    **labels : Any
        `estimand`, `unit` and `mode`, copied to the record.

    Returns
    -------
    Estimate
        `two_way_clustered_mean`, or `clustered_mean` with fewer than five prompts or for "people". `settings["population"]`
        says which ("people and prompts" or "people"); `detail["n_prompts"]` counts the prompts.

    Raises
    ------
    ValueError
        If `population` is another word.

    Examples
    --------
    >>> people, prompts = np.repeat(np.arange(12), 6), np.tile(np.arange(6), 12)
    >>> values = (people * prompts) % 5 > 1
    >>> result = annotator_prompt_clustered_mean(values, people, prompts, null=0.5, bounds=(0, 1), analysis="demo")
    >>> result.settings["population"], result.detail["n_prompts"], result.sensitivity[-1].analysis
    ('people and prompts', 6, 'demo.by_annotator')
    >>> options = {"null": 0.5, "bounds": (0, 1), "analysis": "demo"}
    >>> annotator_prompt_clustered_mean(values, people, prompts, population="people", **options).settings["population"]
    'people'
    """
    if population not in DECLARED_POPULATIONS:
        raise ValueError(f"population: {population!r} is not one of {', '.join(map(repr, DECLARED_POPULATIONS))}")
    options: dict[str, Any] = {"weights": weights, "null": null, "level": level, "bounds": bounds, **labels}
    _, n_prompts = label_codes_where(prompts, "prompts", ~np.isnan(vector(values, "values")))
    by_annotator = clustered_mean(values, annotators, analysis=f"{analysis}.by_annotator", **options)
    if n_prompts < TOO_FEW_ITEMS or population == "people":
        result = replace(by_annotator, analysis=analysis)
        is_about = PEOPLE
    else:
        result = two_way_clustered_mean(values, annotators, prompts, analysis=analysis, **options)
        result = replace(result, sensitivity=(*by_annotator.sensitivity, replace(by_annotator, sensitivity=())))
        is_about = PEOPLE_AND_PROMPTS
    return replace(
        result,
        settings={**result.settings, "population": is_about},
        detail={**result.detail, "n_prompts": n_prompts},
    )
