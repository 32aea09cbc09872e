"""Differences of systems: mean ratings on the same prompts, and preferences between outputs."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import label_codes, validate_level, validate_within_bounds
from analysis.stats.prediction_powered._bias import adjusted_together
from analysis.stats.prediction_powered._choose import build_record, contrast_estimate
from analysis.stats.prediction_powered._combine import combine
from analysis.stats.prediction_powered._mean import declared_weights, prediction_powered_mean, uses_of_judges
from analysis.stats.prediction_powered._records import CombinedEstimate
from analysis.stats.prediction_powered._sample import LabelledSample, labelled_sample
from analysis.stats.results import Estimate, Record, ResultWarning

Bounds = tuple[float, float] | None


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
    validate_level(level)
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
    )
    if bounds is not None:
        validate_within_bounds(sample.values, bounds, "values")
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
        uses = uses_of_judges(own, bounds, level=level, analysis=analysis)
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
    validate_level(level)
    scores = np.asarray(judges, dtype=np.float64)
    both = np.concatenate([np.asarray(firsts), np.asarray(seconds)])
    codes, n_systems = label_codes(both, "firsts and seconds", 2 * len(scores))
    first, second = codes[: len(scores)], codes[len(scores) :]
    same = np.flatnonzero(first == second)
    if len(same):
        raise ValueError(f"firsts: row {int(same[0])} compares a system with itself")
    called = [str(name) for name in np.unique(both).tolist()]
    sample = labelled_sample(values, annotators, items, judges, prompts=prompts, names=names, strata=strata)
    validate_within_bounds(sample.values, (0, 1), "values")
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
