"""The combined estimate of a contrast of group means, with its variance over people and prompts."""

import math
from dataclasses import dataclass

import numpy as np

from analysis.stats.arrays import FloatArray, IntArray, group_sums
from analysis.stats.clusters import (
    TwoWayVariance,
    abs_skewness_of_clustered_mean,
    combine_two_way_variances,
    effective_n_clusters,
    pair_variance,
)
from analysis.stats.prediction_powered._sample import LabelledSample

# With fewer labelled prompts for each judge, the judges have one weight together.
PROMPTS_PER_JUDGE = 10
# A stratum with fewer labelled prompts is joined with others: its mean would be estimated from too few.
PROMPTS_PER_STRATUM = 5
LEAST_SQUARES, MEAN_OF_JUDGES, DECLARED, NO_WEIGHTS = "least squares", "mean of the judges", "declared", "none"


@dataclass(frozen=True, slots=True)
class Combination:
    """A contrast of means with the judges' correction: its variance, degrees of freedom, skewness and mean weights.

    `skewness` is that of the labels, `score_skewness` that of a labelled mean of the judges' scores, from the scores of all items.
    """

    estimate: float
    variance: float
    spread: TwoWayVariance | None
    df: float
    skewness: float
    score_skewness: float
    weights: FloatArray
    method: str
    n_annotators: int | None
    n_prompts: int


def combine(
    sample: LabelledSample,
    contrast: FloatArray,
    *,
    weights: FloatArray | None = None,
    is_judge_mean_known: bool = False,
) -> Combination | None:
    """Return the contrast of the groups' means, corrected by the judges; None if a group has too few clusters.

    Parameters
    ----------
    sample : LabelledSample
        Labels and scores.
    contrast : ndarray of float, shape (n_groups,)
        Coefficients of the groups' means.
    weights : ndarray of float, shape (n_judges,), optional
        Declared weights of the judges; zeros give the estimate of people alone. Estimated if None.
    is_judge_mean_known : bool, default False
        Whether to count the judges' means over all items as known, as if they had scored very many items.

    Returns
    -------
    Combination or None
        None if one prompt or one annotator has all labels of a group.

    Notes
    -----
    z = y - l'(f - mean of f over all items of the group), with l estimated without the prompt of the row. theta = sum over groups
    of contrast times the weighted mean of z. A prompt contributes A_p + B_p to the variance: A_p is the jackknife's change of the labelled
    mean of z, B_p that of the judges' mean over all items. Strata are further columns f, 1 for the items of a stratum: they
    bring the strata to their shares of all items, so the spread between them counts once for each of all prompts.
    """
    groups, prompts = sample.row_groups, sample.row_prompts
    totals = group_sums(groups, sample.weights, sample.n_groups)
    used = contrast != 0
    if np.any(totals[used] <= 0):
        return None
    counts = group_sums(sample.groups, np.ones(sample.n_items), sample.n_groups)
    is_alone = weights is not None and not np.any(weights)
    strata = np.empty((0, sample.n_items)) if is_alone else _strata_columns(sample, contrast)
    centred = np.stack(
        [
            column - (group_sums(sample.groups, column, sample.n_groups) / np.maximum(counts, 1))[sample.groups]
            for column in (*sample.judges.T, *strata)
        ],
        axis=1,
    )
    # What a row adds to the contrast for each unit of its value.
    shares = np.where(totals > 0, contrast / np.where(totals > 0, totals, 1.0), 0.0)[groups] * sample.weights
    slopes, method = _slopes(sample, centred, shares, weights)
    z = sample.values - np.sum(slopes[prompts] * centred[sample.items], axis=1)
    means = group_sums(groups, sample.weights * z, sample.n_groups) / np.where(totals > 0, totals, 1.0)
    influences = shares * (z - means[groups])
    is_used = shares != 0
    n_prompts = len(np.unique(prompts[is_used]))
    changes = _jackknife(sample, contrast, z, prompts, totals)
    if changes is None:
        return None
    mean_slopes = _mean_slopes(sample, slopes, totals)
    n_judges = len(sample.names)
    of_judges = _judge_part(sample, contrast, centred[:, :n_judges], counts, mean_slopes[:, :n_judges])
    # The labelled part may hold none of a few huge scores: its own skewness would not show what it misses.
    score_skewness = abs_skewness_of_clustered_mean(of_judges, np.arange(len(of_judges))) * math.sqrt(
        len(of_judges) / n_prompts
    )
    if not is_judge_mean_known:
        changes = changes + _judge_part(sample, contrast, centred, counts, mean_slopes)
    by_prompt = float(np.sum(changes**2))
    df_prompts = max(1.0, effective_n_clusters(_sizes(prompts, shares)) - 1)
    skewness = abs_skewness_of_clustered_mean(influences[is_used], _codes(prompts[is_used]))
    total_weight = np.average(mean_slopes[:, :n_judges], axis=0, weights=np.abs(contrast))
    estimate = float(contrast @ means)
    if sample.annotators is None:
        return Combination(
            estimate, by_prompt, None, df_prompts, skewness, score_skewness, total_weight, method, None, n_prompts
        )
    people = sample.annotators
    of_people = _jackknife(sample, contrast, z, people, totals)
    if of_people is None:
        return None
    df_people = max(1.0, effective_n_clusters(_sizes(people, shares)) - 1)
    by_pair = pair_variance(influences[is_used], people[is_used], prompts[is_used])
    spread, df = combine_two_way_variances((float(np.sum(of_people**2)), by_prompt), by_pair, (df_people, df_prompts))
    skewness = max(skewness, abs_skewness_of_clustered_mean(influences[is_used], _codes(people[is_used])))
    n_people = len(np.unique(people[is_used]))
    return Combination(
        estimate, spread.variance, spread, df, skewness, score_skewness, total_weight, method, n_people, n_prompts
    )


def _codes(labels: IntArray) -> IntArray:
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def _sizes(labels: IntArray, shares: FloatArray) -> FloatArray:
    sizes = group_sums(labels, np.abs(shares), int(labels.max()) + 1)
    return sizes[sizes > 0]


def _strata_columns(sample: LabelledSample, contrast: FloatArray) -> FloatArray:
    """Return a column for each stratum but the largest, shape (n_strata - 1, n_items).

    In a difference a stratum moves the two means in opposite directions: what it moves alike cancels.
    """
    if sample.strata is None:
        return np.empty((0, sample.n_items))
    is_used = contrast[sample.row_groups] != 0
    prompts, place = np.unique(sample.row_prompts[is_used], return_index=True)
    labelled = np.bincount(sample.strata[sample.items[is_used][place]], minlength=int(sample.strata.max()) + 1)
    large = np.flatnonzero(labelled >= PROMPTS_PER_STRATUM)
    if len(large) == 0 or PROMPTS_PER_JUDGE * len(large) > len(prompts):
        return np.empty((0, sample.n_items))
    kept = large[large != large[np.argmax(labelled[large])]]
    return np.asarray((sample.strata == kept[:, None]) * np.sign(contrast)[sample.groups], dtype=np.float64)


def _slopes(
    sample: LabelledSample,
    centred: FloatArray,
    shares: FloatArray,
    weights: FloatArray | None,
) -> tuple[FloatArray, str]:
    """Return the weights of the judges and the strata for each prompt, estimated without it, shape (n_prompts, n_columns)."""
    n_prompts, n_judges = int(sample.prompts.max()) + 1, len(sample.names)
    n_strata = centred.shape[1] - n_judges
    values, method = sample.values, LEAST_SQUARES
    if weights is not None:
        method = DECLARED if np.any(weights) else NO_WEIGHTS
        declared = np.tile(weights, (n_prompts, 1))
        if not n_strata:
            return declared, method
        values = values - centred[sample.items, :n_judges] @ weights
        centred = centred[:, n_judges:]
    prompts, groups = sample.row_prompts, sample.row_groups
    scale = np.sqrt(np.mean(centred**2, axis=0))
    # A judge that scores everything alike gets no weight.
    scale = np.where(scale > 1e-12, scale, np.inf)
    scores = centred / scale
    n_labelled = len(np.unique(prompts[shares != 0]))
    is_single = weights is None and n_judges > 1 and n_labelled < PROMPTS_PER_JUDGE * n_judges
    if is_single:
        scores = np.hstack([np.mean(scores[:, :n_judges], axis=1, keepdims=True), scores[:, n_judges:]])
        method = MEAN_OF_JUDGES
    u = group_sums(prompts, shares * values, n_prompts)
    contributions = [group_sums(prompts, shares * column[sample.items], n_prompts) for column in scores.T]
    # The groups' means are coefficients too: the mean of all labels would bring the prompt's own labels into its weights.
    levels = [group_sums(prompts, shares * (groups == group), n_prompts) for group in range(sample.n_groups)]
    v = np.stack([*contributions, *levels], axis=1)
    products, targets = v.T @ v, v.T @ u
    without = products - v[:, :, None] * v[:, None, :]
    # The pseudo-inverse gives judges that copy one another a common weight.
    inverse = np.linalg.pinv(without, rcond=1e-9, hermitian=True)
    fitted = np.einsum("pij,pj->pi", inverse, targets - v * u[:, None])[:, : scores.shape[1]]
    if is_single:
        fitted = np.hstack([np.repeat(fitted[:, :1] / n_judges, n_judges, axis=1), fitted[:, 1:]])
    fitted = fitted / scale
    return (np.hstack([declared, fitted]) if weights is not None else fitted), method


def _jackknife(
    sample: LabelledSample, contrast: FloatArray, z: FloatArray, labels: IntArray, totals: FloatArray
) -> FloatArray | None:
    """Return how much each cluster moves the contrast of the labelled means; the sum of their squares is the CV3 variance."""
    n_clusters = int(max(labels.max(), sample.prompts.max())) + 1
    changes = np.zeros(n_clusters)
    for group in np.flatnonzero(contrast):
        rows = sample.row_groups == group
        sizes = np.bincount(labels[rows], sample.weights[rows], n_clusters)
        sums = np.bincount(labels[rows], sample.weights[rows] * z[rows], n_clusters)
        present = sizes > 0
        n_present = int(present.sum())
        rest = totals[group] - sizes[present]
        if n_present < 2 or np.any(rest <= 1e-12 * totals[group]):
            return None
        mean = float(sums.sum() / totals[group])
        without = (sums.sum() - sums[present]) / rest
        changes[present] += contrast[group] * np.sqrt((n_present - 1) / n_present) * (mean - without)
    return changes


def _mean_slopes(sample: LabelledSample, slopes: FloatArray, totals: FloatArray) -> FloatArray:
    """Return the mean weights in each group, shape (n_groups, n_judges)."""
    of_rows = slopes[sample.row_prompts] * sample.weights[:, None]
    sums = np.stack([group_sums(sample.row_groups, column, sample.n_groups) for column in of_rows.T], axis=1)
    return np.asarray(sums / np.where(totals > 0, totals, 1.0)[:, None], dtype=np.float64)


def _judge_part(
    sample: LabelledSample, contrast: FloatArray, centred: FloatArray, counts: FloatArray, slopes: FloatArray
) -> FloatArray:
    """Return how much each prompt moves the contrast through the judges' mean over all items."""
    n_clusters = int(sample.prompts.max()) + 1
    changes = np.zeros(n_clusters)
    for group in np.flatnonzero(contrast):
        of_group = sample.groups == group
        corrections = centred[of_group] @ slopes[group]
        sizes = np.bincount(sample.prompts[of_group], minlength=n_clusters)
        sums = np.bincount(sample.prompts[of_group], corrections, n_clusters)
        n_present = int(np.sum(sizes > 0))
        rest = np.maximum(counts[group] - sizes, 1)
        changes += contrast[group] * np.sqrt((n_present - 1) / n_present) * sums / rest
    return changes
