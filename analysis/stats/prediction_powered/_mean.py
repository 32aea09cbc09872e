"""Mean human score of all items."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, validate_level, validate_within_bounds, vector
from analysis.stats.prediction_powered._bias import bias_of_judge
from analysis.stats.prediction_powered._choose import build_record
from analysis.stats.prediction_powered._combine import combine
from analysis.stats.prediction_powered._records import CombinedEstimate, JudgeUse
from analysis.stats.prediction_powered._sample import LabelledSample, correlation_with_people, labelled_sample
from analysis.stats.results import Estimate

Bounds = tuple[float, float] | None


def prediction_powered_mean(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    *,
    judges: npt.ArrayLike,
    names: Sequence[str] | None = None,
    prompts: npt.ArrayLike | None = None,
    strata: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    null: float | None = None,
    level: float = 0.95,
    bounds: Bounds = None,
    price: float | None = None,
    analysis: str = "prediction_powered.mean",
    estimand: str = "mean human score of all items",
) -> CombinedEstimate:
    """Mean human score of all items, from people's labels of a random part and judges' scores of all.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Human labels; NaN is missing.
    annotators : array_like, shape (n_rows,), or None
        Who gave each label. None if the data do not say so: then people are no sample, and the interval is about other items
        (or prompts) judged by exactly these people.
    items : array_like of int, shape (n_rows,)
        Row of `judges` of each label's item.
    judges : array_like, shape (n_items, n_judges) or (n_items,)
        Scores of all items, labelled or not, by each judge, on any scale.
    names : sequence of str, optional
        Names of the judges.
    prompts : array_like, shape (n_items,), optional
        Prompt of each item. Each item has a prompt of its own if None.
    strata : array_like, shape (n_items,), optional
        Stratum of each item, such as the domain of its prompt. Means are brought to the strata's shares of all items. A stratum
        with fewer than five labelled prompts is joined with others; none is used with fewer than ten prompts for each.
    weights : array_like, shape (n_judges,), optional
        Declared weights of the judges, for example those of an earlier study. Estimated if None.
    null : float, optional
        Value of the null hypothesis. There is no test if None.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    bounds : tuple[float, float], optional
        Ends of the human scale. A judge with a score outside has no bias on it.
    price : float, optional
        Price of a label.
    analysis, estimand : str, optional
        Labels that are copied to the record.

    Returns
    -------
    CombinedEstimate
        The estimate of people alone, the combined one, the labels saved, and each judge's weight and bias. The combined
        estimate is the human one, with the reason in `fallback`, if its interval would be wider by more than 5 % or the t
        distribution is not valid for it.

    Raises
    ------
    ValueError
        If a judge has no score for an item, a position or a label is outside its range, or lengths differ.

    Notes
    -----
    An item counts as much as any other: a label has the weight 1 / labels of the item. With
    z = y - l'(f - mean of f over all items), the estimate is the weighted mean of z. The weights l are least squares of the prompts'
    contributions, without the prompt of the label (cross-fitting), so the estimate is unbiased up to order 1 / n_items. With fewer
    than ten labelled prompts for each judge, the mean of the standardised judges has one weight. The variance is the two-way one of the headlines (`clusters.two_way_jackknife`): a prompt contributes through its labels and through its share
    of the judges' mean, an annotator through labels. Its degrees of freedom are those of people alone.

    References
    ----------
    See the package.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quality, items = rng.normal(3, 1, 1000), np.repeat(np.arange(100), 2)
    >>> values = quality[items] + rng.normal(0, 0.3, 200)
    >>> result = prediction_powered_mean(values, np.arange(200) % 40, items, judges=quality + rng.normal(0.5, 0.5, 1000))
    >>> result.combined.n, result.saved.se_ratio < 0.7, result.judges[0].bias.interval.low > 0
    (40, True, True)
    """
    validate_level(level)
    sample = labelled_sample(values, annotators, items, judges, prompts=prompts, names=names, strata=strata)
    if bounds is not None:
        validate_within_bounds(sample.values, bounds, "values")
    options: dict[str, Any] = {"null": null, "level": level, "bounds": bounds}
    human = human_mean(sample, analysis=f"{analysis}.human_only", estimand=estimand, **options)
    found = combine(sample, np.ones(1), weights=declared_weights(weights, sample)) if human.interval else None
    return build_record(
        sample,
        human,
        found,
        judges=uses_of_judges(sample, bounds, level=level, analysis=analysis),
        price=price,
        analysis=analysis,
        estimand=estimand,
        **options,
    )


def human_mean(sample: LabelledSample, *, analysis: str, **options: Any) -> Estimate:
    """Return the mean of people alone by the method of the headlines."""
    if sample.annotators is not None:
        return clusters.annotator_prompt_clustered_mean(
            sample.values,
            sample.annotators,
            sample.row_prompts,
            weights=sample.weights,
            analysis=analysis,
            unit="annotator",
            **options,
        )
    kind = sample.samples.removesuffix("s")
    found = clusters.clustered_mean(
        sample.values, sample.row_prompts, weights=sample.weights, analysis=analysis, unit=kind, **options
    )
    return replace(found, sensitivity=())


def declared_weights(weights: npt.ArrayLike | None, sample: LabelledSample) -> FloatArray | None:
    """Return the declared weights of the judges. Raise ValueError for another number or a missing one."""
    if weights is None:
        return None
    declared = vector(np.atleast_1d(np.asarray(weights, dtype=np.float64)), "weights")
    if declared.shape != (len(sample.names),) or np.isnan(declared).any():
        raise ValueError(f"weights: expected {len(sample.names)} numbers, one for each judge")
    return declared


def uses_of_judges(sample: LabelledSample, bounds: Bounds, *, level: float, analysis: str) -> tuple[JudgeUse, ...]:
    """Return each judge with its correlation and bias, and the weight 0."""
    return tuple(
        JudgeUse(
            judge=name,
            weight=0.0,
            correlation=correlation_with_people(sample, column),
            bias=bias_of_judge(sample, column, bounds, level=level, analysis=f"{analysis}.bias"),
        )
        for column, name in enumerate(sample.names)
    )
