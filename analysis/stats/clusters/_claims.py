"""The mean behind a claim about two systems, and the population that the claim is about."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import label_codes_where, vector
from analysis.stats.clusters._means import clustered_mean
from analysis.stats.clusters._populations import PEOPLE, PEOPLE_AND_PROMPTS, too_few_prompts, validate_population
from analysis.stats.clusters._two_way import two_way_clustered_mean
from analysis.stats.clusters._warnings import TOO_FEW_ITEMS
from analysis.stats.results import Estimate


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
    validate_population(population)
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


def mean_of_population(
    values: npt.ArrayLike, annotators: npt.ArrayLike, prompts: npt.ArrayLike, *, population: str, **options: Any
) -> Estimate:
    """Mean over rows of one system, without a test, for a table about this population.

    Parameters
    ----------
    values, annotators, prompts : array_like, shape (n_rows,)
        As in `annotator_prompt_clustered_mean`.
    population : {"", "people_and_prompts", "people"}
        What the table is about. "people_and_prompts" is strict: with fewer than five prompts there is no interval.
    **options : Any
        Other arguments of `annotator_prompt_clustered_mean`.

    Returns
    -------
    Estimate
        The mean with its interval, or `not_identified` with the reason.

    Examples
    --------
    >>> people, prompts = np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)
    >>> found = mean_of_population((people * prompts) % 5, people, prompts, population="people_and_prompts", analysis="demo")
    >>> found.interval, found.status, found.settings["population"]
    (None, 'not_identified', 'people and prompts')
    """
    mean = annotator_prompt_clustered_mean(values, annotators, prompts, null=None, population=population, **options)
    if population == "people_and_prompts":
        return without_interval_if_too_few(mean, mean.detail["n_prompts"])
    return mean


def without_interval_if_too_few(estimate: Estimate, n_prompts: int, unit: str = "prompts") -> Estimate:
    """Return an estimate about people and prompts without its interval and test, if there are fewer than five prompts.

    >>> mean = Estimate(analysis="demo", estimand="mean", unit="annotator", n=9, estimate=0.4)
    >>> without_interval_if_too_few(mean, 3).reason
    '3 prompts are too few for an interval about prompts like these, which needs five'
    """
    if n_prompts >= TOO_FEW_ITEMS or estimate.estimate is None:
        return estimate
    return replace(
        estimate,
        status="not_identified",
        reason=too_few_prompts(n_prompts, unit),
        interval=None,
        test=None,
        _curve=None,
        settings={**estimate.settings, "population": PEOPLE_AND_PROMPTS},
    )
