"""Clusters of systems without significant differences, as in shared tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import (
    FloatArray,
    group_sizes,
    group_sums,
    label_codes,
    validate_level,
    vector,
)
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import MODES, Estimate, HypothesisTest, Record, ResultWarning, json_safe
from analysis.stats.unpaired._superiority import _mann_whitney


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemClusters(Record):
    """Systems from best to worst by their mean, and their clusters by significance.

    `clusters` counts from 1; a new one begins if every system so far beats every later one. `rank_low` is 1 + the
    number of systems that beat this one, `rank_high` is K - the number that it beats. `pairs` maps (better, worse) to
    the estimated probability that the better one is above the other.
    """

    systems: tuple[Any, ...]
    means: tuple[float, ...]
    n_segments: tuple[int, ...]
    clusters: tuple[int, ...]
    rank_low: tuple[int, ...]
    rank_high: tuple[int, ...]
    pairs: dict[tuple[Any, Any], Estimate]
    warnings: tuple[ResultWarning, ...]
    mode: str
    significance: float

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dict; the pairs are a list, with the better system first."""
        pairs = [
            {"better": json_safe(better), "worse": json_safe(worse), **estimate.as_dict()}
            for (better, worse), estimate in self.pairs.items()
        ]
        return Record.as_dict(replace(self, pairs={})) | {"pairs": pairs, "unit": "segment"}


def significance_clusters(
    values: npt.ArrayLike,
    systems: npt.ArrayLike,
    segments: npt.ArrayLike,
    *,
    mode: str = "recommended",
    significance: float = 0.05,
    alternative: str | None = None,
    planned: Sequence[Any] | None = None,
    annotators_for_warning: npt.ArrayLike | None = None,
    analysis: str = "rating.significance_clusters",
) -> SystemClusters:
    """Order systems by their mean, with a line where all above are significantly better than all below.

    Parameters
    ----------
    values : array_like, shape (n_rows,)
        Values, usually `ratings.z_scores_by_annotator`; NaN is left out.
    systems, segments : array_like, shape (n_rows,)
        Labels of each row's system and segment.
    mode : {"recommended", "paper"}, default 'recommended'
        "recommended": two-sided tests, Holm over all pairs. "paper": one-sided and unadjusted, as in shared tasks;
        more systems then give more false lines.
    significance : float, default 0.05
        Significance level of the test.
    alternative : str, optional
        Overrides the alternative of the test.
    planned : sequence[Any], optional
        Planned systems; those in the data if None.
    annotators_for_warning : array_like, shape (n_rows,), optional
        Label of each row's annotator, for the warning `annotators_ignored`.
    analysis : str, optional
        Labels that are copied to the record.

    Returns
    -------
    SystemClusters
        The ordered systems and their clusters.

    Raises
    ------
    ValueError
        If `mode` is not allowed or a system was not planned.

    Notes
    -----
    Ratings are averaged within system and segment; the segment is the unit. Each pair has a Mann-Whitney test of the
    segment means. The test takes them as independent, although annotators and usually segments (warning
    `segments_shared`) are shared. Use it as a sensitivity analysis, not as the only result.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> values = np.concatenate([rng.normal(mean, 1, 80) for mean in (1.0, 0.9, 0.0)])
    >>> result = significance_clusters(values, np.repeat(["a", "b", "c"], 80), np.tile(np.arange(80), 3))
    >>> result.systems, result.clusters, result.rank_high
    (('a', 'b', 'c'), (1, 1, 2), (2, 2, 3))
    """
    validate_level(1 - significance)
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not one of {', '.join(MODES)}")
    array = vector(values, "values")
    labels = np.asarray(systems)
    of_system, n_systems = label_codes(labels, "systems", len(array))
    of_segment, n_segments = label_codes(np.asarray(segments), "segments", len(array))
    is_observed = ~np.isnan(array)
    cells = of_system * n_segments + of_segment
    counts = group_sizes(cells[is_observed], n_systems * n_segments).reshape(n_systems, n_segments)
    sums = group_sums(cells[is_observed], array[is_observed], n_systems * n_segments).reshape(n_systems, n_segments)
    names = [labels[of_system == number][0].item() for number in range(n_systems)]
    if planned is not None and (unplanned := [name for name in names if name not in list(planned)]):
        raise ValueError(f"systems: {unplanned[0]!r} is not among the planned systems")
    scores = {}
    for number, name in enumerate(names):
        has = counts[number] > 0
        if has.any():
            scores[name] = sums[number, has] / counts[number, has]
    order = sorted(scores, key=lambda name: (-float(np.mean(scores[name])), str(name)))
    n_planned = len(names if planned is None else planned)
    side = alternative or ("greater" if mode == "paper" else "two-sided")
    pairs = _pairs(scores, order, n_planned, mode, analysis, {"significance": significance, "alternative": side})
    warnings = []
    if annotators_for_warning is not None:
        annotator_codes, n_annotators = label_codes(np.asarray(annotators_for_warning), "annotators", len(array))
        if n_annotators < len(array):
            warnings.append(ResultWarning("annotators_ignored", "warn", {"n_annotators": n_annotators}))
    if np.any((counts > 0).sum(axis=0) > 1):
        warnings.append(ResultWarning("segments_shared", "info", {"n_segments": n_segments}))
    beats = np.zeros((len(order), len(order)), dtype=np.bool_)
    for (better, worse), estimate in pairs.items():
        pvalue = None if estimate.test is None else estimate.test.pvalue_adjusted
        # Systems are ordered by means and tested by ranks, so a few extreme ratings can make the two disagree.
        is_above = estimate.estimate is not None and estimate.estimate > 0.5
        beats[order.index(better), order.index(worse)] = is_above and pvalue is not None and pvalue < significance
    number, cluster_numbers = 1, []
    for position in range(len(order)):
        if position and beats[:position, position:].all():
            number += 1
        cluster_numbers.append(number)
    return SystemClusters(
        systems=tuple(order),
        means=tuple(float(np.mean(scores[name])) for name in order),
        n_segments=tuple(len(scores[name]) for name in order),
        clusters=tuple(cluster_numbers),
        rank_low=tuple(int(1 + beats[:, position].sum()) for position in range(len(order))),
        rank_high=tuple(int(len(order) - beats[position].sum()) for position in range(len(order))),
        pairs=pairs,
        warnings=tuple(warnings),
        mode=mode,
        significance=significance,
    )


def _pairs(
    scores: dict[Any, FloatArray], order: list[Any], n_planned: int, mode: str, analysis: str, settings: dict[str, Any]
) -> dict[tuple[Any, Any], Estimate]:
    pairs = {}
    for position, better in enumerate(order):
        for worse in order[position + 1 :]:
            estimate = _mann_whitney(
                scores[better],
                scores[worse],
                analysis=analysis,
                unit="segment",
                mode=mode,
                alternative=settings["alternative"],
            )
            estimand = f"probability that a segment mean of {better} is above one of {worse}, ties half"
            pairs[better, worse] = replace(estimate, estimand=estimand, settings=settings)
    if mode == "paper":
        return {pair: replace(estimate, test=_unadjusted(estimate.test)) for pair, estimate in pairs.items()}
    keys = {pair: f"pair {number}" for number, pair in enumerate(pairs)}
    # A planned pair without data still counts in the family.
    absent = n_planned * (n_planned - 1) // 2 - len(keys)
    family = Family(f"{analysis}.pairs", (*keys.values(), *(f"absent {number}" for number in range(absent))))
    after = adjust_pvalues_and_intervals_of_family(
        {keys[pair]: estimate for pair, estimate in pairs.items()}, family, star_scheme=None
    )
    return {pair: after[key] for pair, key in keys.items()}


def _unadjusted(test: HypothesisTest | None) -> HypothesisTest | None:
    return None if test is None else replace(test, pvalue_adjusted=test.pvalue, adjust="none", family_size=1)
