"""Means and differences of systems from human labels and judges' scores, the judge's bias, and how many labels are needed."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats import clusters
from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    label_codes,
    validate_non_negative,
    validate_within_bounds,
    vector,
)
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.prediction_powered import (
    CombinedEstimate,
    JudgeUse,
    LabelledSample,
    build_record,
    combine,
    contrast_estimate,
    correlation_with_people,
    labelled_sample,
)
from analysis.stats.results import Estimate, Record, ResultWarning

# How far a judge's scores are above or below the human ones, overall and by group.


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
    scores = np.asarray(judges, dtype=np.float64)
    codes, n_groups = label_codes(groups, "groups", len(scores))
    called = np.unique(np.asarray(groups)).tolist()
    sample = labelled_sample(
        values, annotators, items, judges, prompts=prompts, names=names, groups=codes, level=level, bounds=bounds
    )
    found = []
    for column, judge in enumerate(sample.names):
        for group in range(n_groups):
            is_group = sample.groups == group
            own = sample.of_items(is_group)
            bias = bias_of_judge(own, column, analysis="prediction_powered.bias")
            favour = _favour(sample, column, group)
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


def bias_of_judge(sample: LabelledSample, column: int, *, analysis: str) -> Estimate:
    """Return the mean of judge minus human over all labels, with the test that it is 0."""
    kind = "annotator" if sample.annotators is not None else sample.samples.removesuffix("s")
    labels: dict[str, Any] = {"analysis": analysis, "estimand": "mean of judge minus human", "unit": kind}
    scores, bounds = sample.judges[:, column], sample.bounds
    if _is_outside(scores, bounds):
        return Estimate(status="not_applicable", reason=OUTSIDE, n=0, **labels)
    ends = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    gaps = scores[sample.items] - sample.values
    options: dict[str, Any] = {"weights": sample.weights, "null": 0.0, "level": sample.level, "bounds": ends, **labels}
    if sample.annotators is None:
        found = clusters.clustered_mean(gaps, sample.row_prompts, **options)
    else:
        found = clusters.annotator_prompt_clustered_mean(gaps, sample.annotators, sample.row_prompts, **options)
    return replace(found, sensitivity=())


def _favour(sample: LabelledSample, column: int, group: int) -> Estimate:
    """Return the bias in a group minus the mean bias in the other groups."""
    labels: dict[str, Any] = {
        "analysis": "prediction_powered.bias.favour",
        "estimand": "bias here minus bias in the other groups",
    }
    scores, bounds = sample.judges[:, column], sample.bounds
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
    return contrast_estimate(sample, found, null=0.0, level=sample.level, bounds=ends, **labels)


def _is_outside(scores: FloatArray, bounds: Bounds) -> bool:
    """Return whether a judge's scores are outside the human scale, if its ends are declared."""
    return bounds is not None and bool(scores.min() < bounds[0] or scores.max() > bounds[1])


# Mean human score of all items.


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
    than ten labelled prompts for each judge, the mean of the standardised judges has one weight. The variance is the two-way one of the headlines (`cluster_variances.two_way_jackknife`): a prompt contributes through its labels and through its share
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
    sample = labelled_sample(
        values, annotators, items, judges, prompts=prompts, names=names, strata=strata, level=level, bounds=bounds
    )
    options: dict[str, Any] = {"null": null, "level": level, "bounds": bounds}
    human = human_mean(sample, analysis=f"{analysis}.human_only", estimand=estimand, **options)
    found = combine(sample, np.ones(1), weights=declared_weights(weights, sample)) if human.interval else None
    return build_record(
        sample,
        human,
        found,
        judges=uses_of_judges(sample, analysis=analysis),
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


def uses_of_judges(sample: LabelledSample, *, analysis: str) -> tuple[JudgeUse, ...]:
    """Return each judge with its correlation and bias, and the weight 0."""
    return tuple(
        JudgeUse(
            judge=name,
            weight=0.0,
            correlation=correlation_with_people(sample, column),
            bias=bias_of_judge(sample, column, analysis=f"{analysis}.bias"),
        )
        for column, name in enumerate(sample.names)
    )


# Differences of systems: mean ratings on the same prompts, and preferences between outputs.


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOfSystems(Record):
    """The comparison of two systems. Positive differences, and preferences above .5, are in favour of `first`.

    `warnings` has `judge_of_own_family` for each judge that belongs to the family of one of the two systems.
    """

    first: str
    second: str
    result: CombinedEstimate
    warnings: tuple[ResultWarning, ...] = ()


def prediction_powered_differences(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    *,
    judges: npt.ArrayLike,
    systems: npt.ArrayLike,
    prompts: npt.ArrayLike,
    names: Sequence[str] | None = None,
    strata: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    bounds: Bounds = None,
    price: float | None = None,
    families: Mapping[str, str] | None = None,
) -> tuple[PairOfSystems, ...]:
    """Estimate the difference of the mean human scores of each two systems that answered the same prompts.

    An item is the output of a system for a prompt; `systems` and `prompts` (n_items,) name both, and `families` has the
    family of models of judges and of systems, by their names. The other arguments are as in `prediction_powered_mean`.
    There is one record for each two systems, in the order of their names. `interval_adjusted` of the estimates are
    Bonferroni's: they hold for all pairs jointly. A prompt, or an annotator, moves both means, so what it adds to both
    cancels (pairing); nobody needs to label both outputs. The weights of the judges are those of the difference. They
    can be smaller than those of a mean: a judge can know which prompts are hard and not which system is better.

    >>> rng = np.random.default_rng(0)
    >>> systems, prompts = np.repeat(["a", "b"], 300), np.tile(np.arange(300), 2)
    >>> quality = rng.normal(0, 1, 300)[prompts] + rng.normal(0, 1, 600) + 0.5 * (systems == "a")
    >>> items = np.flatnonzero(prompts < 60)
    >>> values = quality[items] + rng.normal(0, 0.3, 120)
    >>> (pair,) = prediction_powered_differences(values, prompts[items] % 20, items, judges=quality + rng.normal(0, 0.5, 600),
    ...                                          systems=systems, prompts=prompts)
    >>> pair.first, pair.second, pair.result.saved.se_ratio < 0.7, pair.result.combined.interval.low > 0
    ('a', 'b', True, True)
    """
    scores = np.asarray(judges, dtype=np.float64)
    codes, n_systems = label_codes(systems, "systems", len(scores))
    if n_systems < 2:
        raise ValueError("systems: a difference needs two systems")
    called = [str(name) for name in np.unique(np.asarray(systems)).tolist()]
    sample = labelled_sample(
        values,
        annotators,
        items,
        judges,
        prompts=prompts,
        names=names,
        groups=codes,
        strata=strata,
        level=level,
        bounds=bounds,
    )
    declared = declared_weights(weights, sample)
    ends = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    analysis = "prediction_powered.difference"
    options: dict[str, Any] = {"null": 0.0, "level": level, "bounds": ends}
    options["estimand"] = "difference of the mean human scores of all items"
    results = []
    for first, second in itertools.combinations(range(n_systems), 2):
        own = _of_two(sample, first, second)
        human = _human_difference(own, analysis=f"{analysis}.human_only", **options)
        contrast = np.array([1.0, -1.0])
        found = combine(own, contrast, weights=declared) if human.interval else None
        uses = uses_of_judges(own, analysis=analysis)
        result = build_record(own, human, found, judges=uses, price=price, analysis=analysis, **options)
        results.append(_pair(called[first], called[second], result, families or {}))
    return _adjusted(results)


def prediction_powered_preferences(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    *,
    judges: npt.ArrayLike,
    firsts: npt.ArrayLike,
    seconds: npt.ArrayLike,
    prompts: npt.ArrayLike,
    names: Sequence[str] | None = None,
    strata: npt.ArrayLike | None = None,
    level: float = 0.95,
    price: float | None = None,
    families: Mapping[str, str] | None = None,
) -> tuple[PairOfSystems, ...]:
    """Estimate the share of preferences for the first of each two systems, from verdicts of people and of judges on pairs.

    An item is a pair of outputs for a prompt; `firsts`, `seconds` and `prompts` (n_items,) are its two systems and its
    prompt. `values` are human verdicts on some pairs: 1 for the output of the item's first system, 0 for the second's,
    .5 for a tie. `judges` (n_items, n_judges) or (n_items,) has the judges' verdicts on all pairs, from 0 to 1, in the
    same sense. The other arguments are as in `prediction_powered_differences`. There is one record for each two systems
    that have a pair, `first` before `second` by name, with `interval_adjusted` as there. A verdict outside 0..1, or a
    pair of a system with itself, raises ValueError.

    >>> rng = np.random.default_rng(0)
    >>> verdicts = (rng.random(400) < 0.7).astype(float)
    >>> judge = np.where(rng.random(400) < 0.9, verdicts, 1 - verdicts)
    >>> (pair,) = prediction_powered_preferences(verdicts[:80], np.arange(80) % 20, np.arange(80), judges=judge,
    ...     firsts=np.repeat("a", 400), seconds=np.repeat("b", 400), prompts=np.arange(400))
    >>> pair.result.saved.se_ratio < 0.9, pair.result.combined.interval.low < 0.7 < pair.result.combined.interval.high
    (True, True)
    """
    scores = np.asarray(judges, dtype=np.float64)
    both = np.concatenate([np.asarray(firsts), np.asarray(seconds)])
    codes, n_systems = label_codes(both, "firsts and seconds", 2 * len(scores))
    first, second = codes[: len(scores)], codes[len(scores) :]
    same = np.flatnonzero(first == second)
    if len(same):
        raise ValueError(f"firsts: row {int(same[0])} compares a system with itself")
    called = [str(name) for name in np.unique(both).tolist()]
    sample = labelled_sample(
        values, annotators, items, judges, prompts=prompts, names=names, strata=strata, level=level, bounds=(0, 1)
    )
    validate_within_bounds(sample.judges, (0, 1), "judges")
    is_turned = first > second
    turned = replace(
        sample,
        values=np.where(is_turned[sample.items], 1 - sample.values, sample.values),
        judges=np.where(is_turned[:, None], 1 - sample.judges, sample.judges),
    )
    pairs = np.minimum(first, second) * n_systems + np.maximum(first, second)
    results = []
    for pair in np.unique(pairs).tolist():
        is_pair = pairs == pair
        own = turned.of_items(is_pair)
        result = prediction_powered_mean(
            own.values,
            own.annotators,
            own.items,
            judges=own.judges,
            names=own.names,
            prompts=own.prompts,
            strata=own.strata,
            null=0.5,
            level=level,
            bounds=(0, 1),
            price=price,
            analysis="prediction_powered.preference",
            estimand="share of preferences for the first system, ties half",
        )
        results.append(_pair(called[pair // n_systems], called[pair % n_systems], result, families or {}))
    return _adjusted(results)


def _of_two(sample: LabelledSample, first: int, second: int) -> LabelledSample:
    """Return the labels and scores of two systems, as the groups 0 and 1."""
    is_used = (sample.groups == first) | (sample.groups == second)
    return replace(sample.of_items(is_used), groups=(sample.groups[is_used] == second).astype(np.int64))


def _human_difference(sample: LabelledSample, **options: Any) -> Estimate:
    """Return the difference of people alone, by the variance of the headlines."""
    found = combine(sample, np.array([1.0, -1.0]), weights=np.zeros(len(sample.names)))
    if found is not None:
        return contrast_estimate(sample, found, **options)
    labels = {"analysis": options["analysis"], "estimand": options["estimand"], "unit": "annotator"}
    has_both = len(np.unique(sample.row_groups)) == 2
    status, reason = ("n_lt_2", "one annotator or one prompt has all labels of a system")
    if not has_both:
        status, reason = "no_data", "people labelled no output of one of the systems"
    return Estimate(status=status, reason=reason, n=0, **labels)


def _pair(first: str, second: str, result: CombinedEstimate, families: Mapping[str, str]) -> PairOfSystems:
    warnings = tuple(
        ResultWarning("judge_of_own_family", "warn", {"judge": use.judge, "system": system})
        for use in result.judges
        for system in (first, second)
        if use.judge in families and families[use.judge] == families.get(system)
    )
    return PairOfSystems(first=first, second=second, result=result, warnings=warnings)


def _adjusted(pairs: Sequence[PairOfSystems]) -> tuple[PairOfSystems, ...]:
    """Return the pairs with adjusted p-values and intervals, of people alone and combined."""
    human = adjusted_together([pair.result.human for pair in pairs], "human differences")
    combined = adjusted_together([pair.result.combined for pair in pairs], "combined differences")
    return tuple(
        replace(pair, result=replace(pair.result, human=alone, combined=both))
        for pair, alone, both in zip(pairs, human, combined, strict=True)
    )


# How many human labels an interval of a wanted width needs, with and without the judges of a pilot.


USELESS, USEFUL, UNCLEAR = "useless", "useful", "unclear"
# The share of the labels that a judge must save to be of use.
USEFUL_SHARE = 0.1
# A correlation needs more labelled prompts than this for an interval.
FEWEST_PROMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNeed(Record):
    """The labels that an interval of one width needs.

    `people_alone` and `with_judge` are numbers of labels, each with a lower and an upper answer (`_low`, `_high`) that allow
    for the pilot's uncertainty. `share_saved` = 1 - with_judge / people_alone at the pilot's spread of labels; its lower and
    upper answers allow for the uncertain accuracy of the judges. `money` is the price of the labels with the judges.
    `needs_more_items` says that the labels with the judges are more than the planned items can have.
    """

    width: float
    people_alone: int
    people_alone_low: int
    people_alone_high: int
    with_judge: int
    with_judge_low: int
    with_judge_high: int
    share_saved: float
    share_saved_low: float
    share_saved_high: float
    needs_more_items: bool
    money: float | None
    money_saved: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePlan(Record):
    """The plan. `explained` is the share of the variance of the human mean that the judges explain, between `explained_low` and `explained_high` at `level`.

    `verdict`: "useless" if the judges save less than `useful_share` of the labels of every width, "useful" if they save at least that also by the lower answer, otherwise
    "unclear": a larger pilot is needed. None without enough data, with a `reason`.
    """

    n_labels: int
    n_labelled: int
    n_items: int
    level: float
    useful_share: float
    explained: float | None
    explained_low: float | None
    explained_high: float | None
    needs: tuple[LabelNeed, ...]
    verdict: str | None
    reason: str = ""


def plan_labels_with_judge(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    *,
    judges: npt.ArrayLike,
    widths: Sequence[float],
    n_items: int | None = None,
    prompts: npt.ArrayLike | None = None,
    price: float | None = None,
    level: float = 0.95,
) -> JudgePlan:
    """Plan the number of human labels from a pilot with the same judges.

    Parameters
    ----------
    values, annotators, items, judges, prompts, price, level
        The pilot, as in `prediction_powered_mean`.
    widths : sequence of float
        Wanted widths of the interval of the mean, in points of the human scale.
    n_items : int, optional
        Number of items that the judges will score. Those of the pilot if None.

    Returns
    -------
    JudgePlan
        The labels for each width, and the verdict.

    Raises
    ------
    ValueError
        As in `prediction_powered_mean`, or for a width that is not positive.

    Notes
    -----
    With n labels, Var(people) = V n0 / n and Var(combined) = V n0 / n (1 - E (1 - n / N)): V and E are the pilot's variance and the explained share,
    N the labels if all items were labelled. People and prompts grow with the labels. V has a chi-squared interval, E that of a squared correlation of as many
    prompts (Fisher's z). The upper answer has the larger V and the smaller E, so it is cautious.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.normal(3, 1, 2000)
    >>> values = quality[:100] + rng.normal(0, 0.3, 100)
    >>> plan = plan_labels_with_judge(values, None, np.arange(100), judges=quality + rng.normal(0, 0.5, 2000), widths=[0.2])
    >>> plan.verdict, plan.needs[0].with_judge < plan.needs[0].people_alone / 2
    ('useful', True)
    """
    if price is not None:
        validate_non_negative(price=price)
    strange = [width for width in widths if not (math.isfinite(width) and width > 0)]
    if strange or not len(widths):
        raise ValueError(f"widths: expected positive numbers, got {list(widths)!r}")
    sample = labelled_sample(values, annotators, items, judges, prompts=prompts, names=None, level=level)
    n_labelled = len(np.unique(sample.items))
    planned = sample.n_items if n_items is None else n_items
    if planned < n_labelled:
        raise ValueError(f"n_items: {planned} is less than the {n_labelled} labelled items of the pilot")
    pilot = _pilot(sample)
    n_labels = len(sample.values)
    needs: tuple[LabelNeed, ...]
    spans: tuple[float, float, float] | tuple[None, None, None] = (None, None, None)
    if isinstance(pilot, str):
        needs, reason = (), pilot
    else:
        variance, df, explained, n_prompts = pilot
        known = _span_of_explained(explained, n_prompts, level)
        spans, reason = known, ""
        most = n_labels * planned / n_labelled
        needs = tuple(
            _need(width, variance * n_labels, df, n_labels, known, most, level=level, price=price) for width in widths
        )
    return JudgePlan(
        n_labels=n_labels,
        n_labelled=n_labelled,
        n_items=planned,
        level=level,
        useful_share=USEFUL_SHARE,
        explained=spans[0],
        explained_low=spans[1],
        explained_high=spans[2],
        needs=needs,
        verdict=_verdict(needs),
        reason=reason,
    )


def _pilot(sample: LabelledSample) -> tuple[float, float, float, int] | str:
    """Return the variance and the degrees of freedom of people alone, the explained share, and the prompts; or why not."""
    if not len(sample.values):
        return "the pilot has no label"
    alone = combine(sample, np.ones(1), weights=np.zeros(len(sample.names)))
    both = combine(sample, np.ones(1), is_judge_mean_known=True)
    if alone is None or both is None:
        return "one annotator or one prompt has all labels of the pilot"
    if alone.n_prompts < FEWEST_PROMPTS:
        return f"the pilot has labels of fewer than {FEWEST_PROMPTS} prompts"
    if alone.variance < MIN_SPREAD**2:
        return "the labels of the pilot do not vary"
    return alone.variance, alone.df, max(0.0, 1 - both.variance / alone.variance), alone.n_prompts


def _span_of_explained(explained: float, n_prompts: int, level: float) -> tuple[float, float, float]:
    """Return the explained share and its interval by Fisher's z."""
    correlation = math.sqrt(min(explained, 1 - 1e-9))
    half = float(special.ndtri((1 + level) / 2)) / math.sqrt(n_prompts - 3)
    low = math.tanh(max(0.0, math.atanh(correlation) - half))
    return explained, low**2, math.tanh(math.atanh(correlation) + half) ** 2


def _labels(width: float, unit_variance: float, df_share: float, explained: float, most: float, level: float) -> float:
    """Return the number of labels that gives the width. Labels beyond those of the planned items are of people alone."""

    def width_of(n: float) -> float:
        quantile = float(special.stdtrit(max(1.0, df_share * n), (1 + level) / 2))
        return 2 * quantile * math.sqrt(unit_variance / n * (1 - explained * max(0.0, 1 - n / most)))

    low, high = 2.0, 4.0
    while width_of(high) > width:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if width_of(middle) <= width else (middle, high)
    return high


def _need(
    width: float,
    unit_variance: float,
    df: float,
    n_labels: int,
    spans: tuple[float, float, float],
    most: float,
    *,
    level: float,
    price: float | None,
) -> LabelNeed:
    """Return the labels for one width: the pilot's answer, the lower and the upper one."""
    point, low, high = spans
    smaller, larger = (
        unit_variance * df / float(special.chdtri(df, tail)) for tail in ((1 - level) / 2, (1 + level) / 2)
    )

    def labels(variance: float, explained: float) -> float:
        return _labels(width, variance, df / n_labels, explained, most, level)

    def whole(count: float) -> int:
        return math.ceil(count - 1e-6)

    alone, joint = labels(unit_variance, 0.0), labels(unit_variance, point)
    n_alone, n_joint = whole(alone), whole(joint)
    return LabelNeed(
        width=width,
        people_alone=n_alone,
        people_alone_low=whole(labels(smaller, 0.0)),
        people_alone_high=whole(labels(larger, 0.0)),
        with_judge=n_joint,
        with_judge_low=whole(labels(smaller, high)),
        with_judge_high=whole(labels(larger, low)),
        share_saved=1 - joint / alone,
        share_saved_low=1 - labels(unit_variance, low) / alone,
        share_saved_high=1 - labels(unit_variance, high) / alone,
        needs_more_items=joint > most,
        money=None if price is None else n_joint * price,
        money_saved=None if price is None else (n_alone - n_joint) * price,
    )


def _verdict(needs: Sequence[LabelNeed]) -> str | None:
    """Return the verdict over all widths."""
    if not needs:
        return None
    if all(need.share_saved < USEFUL_SHARE for need in needs):
        return USELESS
    return USEFUL if all(need.share_saved_low >= USEFUL_SHARE for need in needs) else UNCLEAR
