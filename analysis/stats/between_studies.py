"""Means of one question in several studies beside each other, where studies may share people and prompts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, effects
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    vector,
)
from analysis.stats.cell_contrasts import CellRows, cell_contrast, joint_test
from analysis.stats.cluster_variances import TOO_FEW_CLUSTERS, TOO_FEW_ITEMS
from analysis.stats.clusters import annotator_prompt_clustered_mean, weights_of_rows
from analysis.stats.results import Estimate, Record

# With fewer shared prompts, Fisher's z has no standard error.
FEWEST_SHARED_PROMPTS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class StudiesCompared(Record):
    """The same mean in several studies.

    `means` has one estimate for each study. `differences` and `agreements` have one for each pair of studies, in the order
    (first, second), (first, third), and so on. `equality` is the test that all means are equal.
    """

    means: tuple[Estimate, ...]
    differences: tuple[Estimate, ...]
    equality: Estimate
    agreements: tuple[Estimate, ...]


def compare_studies(
    values: npt.ArrayLike,
    studies: npt.ArrayLike,
    annotators: npt.ArrayLike,
    prompts: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    bounds: tuple[float, float] | None = None,
    population: str = "",
    level: float = 0.95,
) -> StudiesCompared:
    """Compare the means of two or more studies, with the covariance that shared people and shared prompts cause.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values, none missing.
    studies : array_like, shape (n_rows,)
        Study of each row: integers from 0, without gaps.
    annotators, prompts : array_like, shape (n_rows,)
        Labels, which are equal in two studies if the person, or the prompt, is the same.
    weights : array_like, shape (n_rows,), optional
        Positive weights of the rows. Equal if None.
    bounds : tuple[float, float], optional
        Ends of the scale. Intervals are clipped to what is possible.
    population : {"", "people_and_prompts", "people"}, default ""
        What the means are about, see `clusters.annotator_prompt_clustered_mean`. With fewer than five prompts in one of
        the studies, differences are about people only.
    level : float, default 0.95
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    StudiesCompared
        Means, differences (first minus second), the test of equality and agreements. `detail` of a difference has the
        numbers of shared people and shared prompts. Its `effect` is Cohen's d of people's means, None if people are
        shared. Without six people in each study nothing is tested.

    Raises
    ------
    ValueError
        If there are fewer than two studies, one has no row, a value is outside `bounds`, or `level` is not allowed.

    Notes
    -----
    Each study is a cell of `cell_contrasts.cell_contrast`. Its clusters are the people and the prompts of both studies
    together, so a cluster that is left out moves the mean of each study in which it has answers, and a difference is as
    precise as what the studies share allows. Two studies are equal by the t test of their difference, more by
    `cell_contrasts.joint_test`. Agreement is Pearson's correlation of the mean answers about shared prompts, with the
    interval of Fisher's z over prompts.

    References
    ----------
    Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering; MacKinnon, Nielsen and Webb 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people, prompts = np.repeat(np.arange(40), 8), np.tile(np.arange(8), 40)
    >>> values = rng.random(320) < np.where(people < 20, 0.7, 0.5)
    >>> found = compare_studies(values, people // 20, people, prompts, bounds=(0, 1))
    >>> [round(mean.estimate, 3) for mean in found.means], round(found.differences[0].estimate, 3)
    ([0.644, 0.438], 0.206)
    >>> found.differences[0].detail["n_shared_people"], found.differences[0].detail["n_shared_prompts"]
    (0, 8)
    """
    array = vector(values, "values")
    numbers = np.asarray(studies, dtype=np.int64)
    n_studies = int(numbers.max(initial=-1)) + 1
    masks = [numbers == study for study in range(n_studies)]
    if n_studies < 2 or not all(mask.any() for mask in masks):
        raise ValueError("studies: at least two with answers are needed")
    row_weights = weights_of_rows(weights, np.ones(len(array), dtype=np.bool_))
    people, n_people = label_codes(np.asarray(annotators), "annotators", len(array))
    items, n_items = label_codes(np.asarray(prompts), "prompts", len(array))
    named: dict[str, Any] = {"level": level, "bounds": bounds}
    means = tuple(
        annotator_prompt_clustered_mean(
            array[mask],
            people[mask],
            items[mask],
            weights=row_weights[mask],
            null=None,
            population=population,
            analysis="between_studies.mean",
            estimand="mean answer in the study",
            **named,
        )
        for mask in masks
    )
    of_people, of_items = (
        np.stack([np.bincount(codes[mask], minlength=n) for mask in masks])
        for codes, n in ((people, n_people), (items, n_items))
    )
    is_about_prompts = population != "people" and bool(np.all(np.count_nonzero(of_items, axis=1) >= TOO_FEW_ITEMS))
    second = items if is_about_prompts else None
    has_enough = np.count_nonzero(of_people, axis=1) >= TOO_FEW_CLUSTERS
    differences, agreements = [], []
    for pair in combinations(range(n_studies), 2):
        found = cell_contrast(
            array,
            numbers,
            dict(zip(pair, (1.0, -1.0), strict=True)),
            people,
            second,
            row_weights=row_weights,
            analysis="between_studies.difference",
            estimand="difference of the means of two studies",
            **named,
        )
        few = [one for study in pair for one in means[study].warnings if one.code == "few_clusters"]
        warnings = [one for one in found.warnings if one.code != "few_clusters"]
        shared = {
            name: int(np.sum(np.all(counts[list(pair)] > 0, axis=0)))
            for name, counts in (("n_shared_people", of_people), ("n_shared_prompts", of_items))
        }
        differences.append(
            replace(
                found,
                test=found.test if has_enough[list(pair)].all() else None,
                warnings=(*few, *warnings),
                detail={**found.detail, **shared},
                effect=None
                if shared["n_shared_people"]
                else effects.cohen_d(*(_means_of_people(array, people, masks[study]) for study in pair), level=level),
            )
        )
        agreements.append(_agreement(array, items, [masks[study] for study in pair], of_items[list(pair)], level))
    equality = differences[0]
    if n_studies > 2:
        rows = CellRows.from_arrays(
            array, numbers, people, second, cell_names=range(n_studies), row_weights=row_weights
        )
        hypotheses = np.hstack([np.ones((n_studies - 1, 1)), -np.eye(n_studies - 1)])
        labels = {"analysis": "between_studies.equality", "estimand": "whether the means of all studies are equal"}
        equality = joint_test(rows, hypotheses, level, **labels)
        if equality.test and not has_enough.all():
            reason = "a study has fewer than six people"
            equality = replace(equality, status="not_identified", reason=reason, test=None)
    return StudiesCompared(means=means, differences=tuple(differences), equality=equality, agreements=tuple(agreements))


def _means_of_people(values: FloatArray, people: IntArray, mask: BoolArray) -> FloatArray:
    counts = np.bincount(people[mask])
    return group_sums(people[mask], values[mask], len(counts))[counts > 0] / counts[counts > 0]


def _agreement(
    values: FloatArray, items: IntArray, masks: Sequence[BoolArray], counts: IntArray, level: float
) -> Estimate:
    """Return the correlation of the mean answers of two studies about shared prompts; `counts` (2, n_items) of answers."""
    is_shared = np.all(counts > 0, axis=0)
    n = int(np.sum(is_shared))
    common: dict[str, Any] = {
        "analysis": "between_studies.agreement",
        "estimand": "correlation of the mean answers about shared prompts",
        "unit": "prompt",
        "n": n,
        "n_rows": int(np.sum(counts[:, is_shared])),
        "settings": {"level": level, "population": "prompts"},
    }
    if n < FEWEST_SHARED_PROMPTS:
        reason = f"{n or 'no'} shared prompt{'' if n == 1 else 's'}; a correlation needs {FEWEST_SHARED_PROMPTS}"
        return Estimate(status="not_identified", reason=reason, **common)
    x, y = (
        group_sums(items[mask], values[mask], len(is_shared))[is_shared] / own[is_shared]
        for mask, own in zip(masks, counts, strict=True)
    )
    if min(float(np.std(x)), float(np.std(y))) < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="all shared prompts have the same mean answer", **common)
    correlation = float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))
    return Estimate(estimate=correlation, interval=basic.fisher_z_interval(correlation, n, level), **common)
