"""How far a judge's scores are above or below the human ones, overall and by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import FloatArray, label_codes, validate_level, validate_within_bounds
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.prediction_powered._choose import contrast_estimate
from analysis.stats.prediction_powered._combine import combine
from analysis.stats.prediction_powered._sample import LabelledSample, labelled_sample
from analysis.stats.results import Estimate, Record, ResultWarning

Bounds = tuple[float, float] | None
OUTSIDE = "the judge's scores are outside the declared scale"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBias(Record):
    """A judge's bias in one group of items.

    `bias` is the mean of judge minus human on the human scale. `favour` is that bias minus the mean bias in the other groups: above 0,
    the judge favours the group more than people do. Their adjusted intervals hold for all groups and judges jointly.
    `warnings` has `judge_of_own_family` if the judge belongs to the family of the judged system.
    """

    judge: str
    group: str
    n_items: int
    n_labels: int
    bias: Estimate
    favour: Estimate
    warnings: tuple[ResultWarning, ...] = ()


def judge_bias_by_group(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    *,
    judges: npt.ArrayLike,
    groups: npt.ArrayLike,
    names: Sequence[str] | None = None,
    prompts: npt.ArrayLike | None = None,
    level: float = 0.95,
    bounds: Bounds = None,
    families: Mapping[str, str] | None = None,
) -> tuple[GroupBias, ...]:
    """Estimate the bias of each judge in each group of items: a system, or a subgroup such as long texts.

    Arguments are as in `prediction_powered_mean`; `groups` has the group of each item, and `families` the family of
    models of judges and of systems, by their names. A judge and a group with the same family get a warning. There is
    one record for each judge and group, in this order. The bias is the mean of judge minus human over the labels, with
    the variance of `clusters.annotator_prompt_clustered_mean`; the favour is a contrast of such means, this group minus
    the mean of the others. Adjusted intervals are Bonferroni's, one family for biases and one for favours.

    >>> rng = np.random.default_rng(0)
    >>> human, systems = rng.normal(3, 1, 200), np.repeat(["a", "b"], 100)
    >>> judge = human + np.where(systems == "a", 0.8, 0.0) + rng.normal(0, 0.3, 200)
    >>> found = judge_bias_by_group(human, np.arange(200) % 20, np.arange(200), judges=judge, groups=systems,
    ...                             prompts=np.tile(np.arange(100), 2), families={"judge 1": "x", "a": "x"})
    >>> [(one.group, round(one.favour.estimate, 1), [warning.code for warning in one.warnings]) for one in found]
    [('a', 0.8, ['judge_of_own_family']), ('b', -0.8, [])]
    """
    validate_level(level)
    scores = np.asarray(judges, dtype=np.float64)
    codes, n_groups = label_codes(groups, "groups", len(scores))
    called = np.unique(np.asarray(groups)).tolist()
    sample = labelled_sample(values, annotators, items, judges, prompts=prompts, names=names, groups=codes)
    if bounds is not None:
        validate_within_bounds(sample.values, bounds, "values")
    found = []
    for column, judge in enumerate(sample.names):
        for group in range(n_groups):
            is_group = sample.groups == group
            own = sample.of_items(is_group)
            bias = bias_of_judge(own, column, bounds, level=level, analysis="prediction_powered.bias")
            favour = _favour(sample, column, group, bounds, level=level)
            name = str(called[group])
            families = families or {}
            is_own = judge in families and families[judge] == families.get(name)
            warning = ResultWarning("judge_of_own_family", "warn", {"judge": judge, "system": name})
            found.append(
                GroupBias(
                    judge=judge,
                    group=name,
                    n_items=int(is_group.sum()),
                    n_labels=len(own.values),
                    bias=bias,
                    favour=favour,
                    warnings=(warning,) if is_own else (),
                )
            )
    biases = adjusted_together([one.bias for one in found], "biases of judges")
    favours = adjusted_together([one.favour for one in found], "favours of judges")
    return tuple(
        replace(one, bias=bias, favour=favour) for one, bias, favour in zip(found, biases, favours, strict=True)
    )


def adjusted_together(estimates: Sequence[Estimate], name: str) -> list[Estimate]:
    """Return the estimates with Bonferroni's p-values and intervals, as one family."""
    keys = tuple(str(place) for place in range(len(estimates)))
    family = Family(name, keys, "bonferroni")
    adjusted = adjust_pvalues_and_intervals_of_family(dict(zip(keys, estimates, strict=True)), family, star_scheme=None)
    return [adjusted[key] for key in keys]


def bias_of_judge(
    sample: LabelledSample,
    column: int,
    bounds: Bounds,
    *,
    level: float,
    analysis: str,
) -> Estimate:
    """Return the mean of judge minus human over all labels, with the test that it is 0."""
    kind = "annotator" if sample.annotators is not None else sample.samples.removesuffix("s")
    labels: dict[str, Any] = {"analysis": analysis, "estimand": "mean of judge minus human", "unit": kind}
    scores = sample.judges[:, column]
    if _is_outside(scores, bounds):
        return Estimate(status="not_applicable", reason=OUTSIDE, n=0, **labels)
    ends = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    gaps = scores[sample.items] - sample.values
    options: dict[str, Any] = {"weights": sample.weights, "null": 0.0, "level": level, "bounds": ends, **labels}
    if sample.annotators is None:
        found = clusters.clustered_mean(gaps, sample.row_prompts, **options)
    else:
        found = clusters.annotator_prompt_clustered_mean(gaps, sample.annotators, sample.row_prompts, **options)
    return replace(found, sensitivity=())


def _favour(
    sample: LabelledSample,
    column: int,
    group: int,
    bounds: Bounds,
    *,
    level: float,
) -> Estimate:
    """Return the bias in a group minus the mean bias in the other groups."""
    labels: dict[str, Any] = {
        "analysis": "prediction_powered.bias.favour",
        "estimand": "bias here minus bias in the other groups",
    }
    scores = sample.judges[:, column]
    others = [other for other in np.unique(sample.row_groups).tolist() if other != group]
    is_outside = _is_outside(scores, bounds)
    if is_outside or not others:
        reason = OUTSIDE if is_outside else "there is no other group with labels"
        return Estimate(status="not_applicable", reason=reason, n=0, unit="annotator", **labels)
    contrast = np.zeros(sample.n_groups)
    contrast[group], contrast[others] = 1.0, -1.0 / len(others)
    gaps = replace(sample, values=scores[sample.items] - sample.values)
    found = combine(gaps, contrast, weights=np.zeros(len(sample.names)))
    if found is None:
        reason = "a group has labels of one annotator or one prompt only"
        return Estimate(status="n_lt_2", reason=reason, n=0, unit="annotator", **labels)
    ends = None if bounds is None else (2 * (bounds[0] - bounds[1]), 2 * (bounds[1] - bounds[0]))
    return contrast_estimate(sample, found, null=0.0, level=level, bounds=ends, **labels)


def _is_outside(scores: FloatArray, bounds: Bounds) -> bool:
    """Return whether a judge's scores are outside the human scale, if its ends are declared."""
    return bounds is not None and bool(scores.min() < bounds[0] or scores.max() > bounds[1])
