"""Human scores of a random part of the outputs, combined with judges' scores of all of them.

A judge is a metric or a language model. The combined estimate is the human one, corrected by how far the judges' scores of the
labelled outputs differ from those of all outputs. It is unbiased for any judge, because people, not judges, set its level;
a good judge makes it more precise. The labelled outputs must be a random sample of all, with equal probabilities. Each
record gives the human-only estimate first.

References: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, Prediction-powered inference; Angelopoulos, Duchi and
Zrnic 2023, PPI++ (the weight); Zrnic and Candès 2024, Cross-prediction-powered inference (weights from other outputs).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import clusters
from analysis.stats.arrays import (
    MIN_SPREAD,
    BoolArray,
    FloatArray,
    IntArray,
    group_sums,
    label_codes,
    label_codes_where,
    matrix,
    validate_level,
    validate_non_negative,
    validate_within_bounds,
    vector,
)
from analysis.stats.cluster_variances import (
    MAX_SKEWNESS,
    TOO_FEW_CLUSTERS,
    TOO_FEW_ITEMS,
    TwoWayVariance,
    abs_skewness_of_clustered_mean,
    combine_two_way_variances,
    effective_n_clusters,
    pair_variance,
    two_way_warnings,
)
from analysis.stats.confidence import TCurve
from analysis.stats.results import Estimate, Record, ResultWarning

# The records of combined estimates.


# What the intervals are about: which of people, prompts and items are a sample.
PEOPLE_AND_PROMPTS, PROMPTS, ITEMS = "people and prompts", "prompts", "items"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsSaved(Record):
    """What the judges save, in labels and in money.

    `se_ratio` is the standard error of the combined estimate divided by that of people alone (1 if the combined
    estimate is the human one). `labels_saved` = n_labels (1 / se_ratio^2 - 1): the further labels that people alone would
    need for the combined standard error, if people, prompts and labels grew in proportion. `share_saved` = 1 - se_ratio^2 is
    their share of all labels that people alone would need. They are negative if the judges make the estimate less precise. `money_saved` = labels_saved `price`. A number that is undefined is
    None, with a `reason`.
    """

    n_labels: int
    se_ratio: float | None = None
    labels_saved: float | None = None
    share_saved: float | None = None
    price: float | None = None
    money_saved: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse(Record):
    """One judge of a combined estimate.

    `weight` is the mean slope by which the judge's scores correct the human ones, in points of the human scale per point of the
    judge's; 0 if the combined estimate is the human one. `correlation` is that of the judge's scores with the mean human
    scores of the labelled items, None if one of them does not vary. `bias` is the mean of judge minus human on the human scale.
    """

    judge: str
    weight: float
    correlation: float | None
    bias: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class CombinedEstimate(Record):
    """The estimate of people alone (`human`, the number to report first) and the one of people and judges (`combined`).

    `samples` names what is a sample: "people and prompts", "prompts" or "items". `fallback` says why the combined estimate is the human one, or
    is empty. `n_items` counts the items with judges' scores, `n_labelled` those with human labels too. `weights` says how the
    weights were found: "least squares", "mean of the judges", "declared" or "none".
    """

    human: Estimate
    combined: Estimate
    saved: LabelsSaved
    judges: tuple[JudgeUse, ...]
    samples: str
    n_items: int
    n_labelled: int
    weights: str
    fallback: str = ""
    warnings: tuple[ResultWarning, ...] = ()


# Human labels of some items and judges' scores of all: validation, weights, and what each prompt contributes.


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """Human labels (rows) of some items, and the scores of all items by judges.

    `weights` of the rows are 1 / number of labels of the item. `groups` of the items are the systems whose means are
    combined. `annotators` is None if the file does not say who gave a label. `strata` of the items have shares that are
    known from all items. `bounds` are the ends of the human scale, and intervals have the `level`.
    """

    values: FloatArray
    items: IntArray
    annotators: IntArray | None
    weights: FloatArray
    judges: FloatArray
    prompts: IntArray
    groups: IntArray
    names: tuple[str, ...]
    samples: str
    n_missing: int
    level: float
    bounds: tuple[float, float] | None = None
    strata: IntArray | None = None

    @property
    def n_items(self) -> int:
        """Return the number of items."""
        return len(self.judges)

    @property
    def n_groups(self) -> int:
        """Return the number of groups."""
        return int(self.groups.max()) + 1 if len(self.groups) else 0

    @property
    def row_prompts(self) -> IntArray:
        """Return the prompt of each row."""
        return self.prompts[self.items]

    @property
    def row_groups(self) -> IntArray:
        """Return the group of each row."""
        return self.groups[self.items]

    def of_items(self, is_used: BoolArray) -> "LabelledSample":
        """Return the labels and the scores of some of the items, as one group."""
        new_positions = np.cumsum(is_used) - 1
        rows = is_used[self.items]
        n_used = int(is_used.sum())
        annotators = self.annotators
        return replace(
            self,
            values=self.values[rows],
            items=new_positions[self.items[rows]],
            annotators=None if annotators is None else label_codes(annotators[rows], "annotators", int(rows.sum()))[0],
            weights=self.weights[rows],
            judges=self.judges[is_used],
            prompts=label_codes(self.prompts[is_used], "prompts", n_used)[0],
            groups=np.zeros(n_used, dtype=np.int64),
            strata=None if self.strata is None else self.strata[is_used],
        )


def labelled_sample(
    values: npt.ArrayLike,
    annotators: npt.ArrayLike | None,
    items: npt.ArrayLike,
    judges: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None,
    names: Sequence[str] | None,
    groups: IntArray | None = None,
    strata: npt.ArrayLike | None = None,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> LabelledSample:
    """Return the checked sample. Raise ValueError with the argument and the row for input that cannot be used."""
    validate_level(level)
    labels = vector(values, "values")
    scores = np.asarray(judges, dtype=np.float64)
    scores = matrix(scores[:, None] if scores.ndim == 1 else scores, "judges")
    n_items, n_judges = scores.shape
    missing = np.argwhere(np.isnan(scores))
    if len(missing):
        row, column = missing[0].tolist()
        raise ValueError(f"judges: row {row} has no score of judge {column}; a judge must score every item")
    called = tuple(f"judge {column + 1}" for column in range(n_judges)) if names is None else tuple(names)
    if len(called) != n_judges or len(set(called)) != n_judges:
        raise ValueError(f"names: expected {n_judges} different names, one for each judge")
    positions = np.asarray(items)
    if positions.shape != labels.shape or (len(labels) and positions.dtype.kind not in "iu"):
        raise ValueError(f"items: expected {len(labels)} positions in the rows of judges")
    outside = np.flatnonzero((positions < 0) | (positions >= n_items))
    if len(outside):
        raise ValueError(f"items: row {int(outside[0])} is item {positions[outside[0]]}, but judges has {n_items} rows")
    is_observed = ~np.isnan(labels)
    if bounds is not None:
        validate_within_bounds(labels[is_observed], bounds, "values")
    used = positions[is_observed].astype(np.int64)
    who = None if annotators is None else label_codes_where(annotators, "annotators", is_observed)[0]
    of_prompts = np.arange(n_items) if prompts is None else label_codes(prompts, "prompts", n_items)[0]
    counts = np.bincount(used, minlength=n_items)
    return LabelledSample(
        values=labels[is_observed],
        items=used,
        annotators=who,
        weights=1 / counts[used],
        judges=scores,
        prompts=of_prompts,
        groups=np.zeros(n_items, dtype=np.int64) if groups is None else groups,
        names=called,
        samples=PEOPLE_AND_PROMPTS if annotators is not None else ITEMS if prompts is None else PROMPTS,
        n_missing=int((~is_observed).sum()),
        level=level,
        bounds=bounds,
        strata=None if strata is None else label_codes(strata, "strata", n_items)[0],
    )


def item_means(sample: LabelledSample) -> tuple[IntArray, FloatArray]:
    """Return the labelled items and the mean label of each."""
    labelled, codes = np.unique(sample.items, return_inverse=True)
    counts = np.bincount(codes, minlength=len(labelled))
    return labelled, group_sums(codes, sample.values, len(labelled)) / counts


def correlation_with_people(sample: LabelledSample, column: int) -> float | None:
    """Return the correlation of a judge's scores with the items' mean labels, each within its group, or None."""
    labelled, means = item_means(sample)
    if len(labelled) < 3:
        return None
    codes, n_groups = label_codes(sample.groups[labelled], "groups", len(labelled))
    sizes = np.bincount(codes, minlength=n_groups)
    parts = [
        part - (group_sums(codes, part, n_groups) / sizes)[codes] for part in (means, sample.judges[labelled, column])
    ]
    spread = float(np.sqrt(np.sum(parts[0] ** 2) * np.sum(parts[1] ** 2)))
    return None if spread < 1e-12 else float(np.clip(np.sum(parts[0] * parts[1]) / spread, -1, 1))


# The combined estimate of a contrast of group means, with its variance over people and prompts.


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

    A group has too few clusters if one prompt or one annotator has all of its labels. `contrast`, shape (n_groups,),
    has the coefficients of the groups' means. `weights`, shape (n_judges,), are declared weights of the judges: zeros
    give the estimate of people alone, and None estimates them. With `is_judge_mean_known` the judges' means over all
    items count as known, as if they had scored very many items. The corrected values are z = y - l'(f - mean of f over
    all items of the group), with l estimated without the prompt of the row. The estimate theta is the sum over groups
    of contrast times the weighted mean of z. A prompt contributes A_p + B_p to the variance: A_p is the jackknife's
    change of the labelled mean of z, B_p that of the judges' mean over all items. Strata are further columns f, 1 for
    the items of a stratum: they bring the strata to their shares of all items, so the spread between them counts once
    for each of all prompts.
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


# The choice between the combined estimate and that of people alone, and what the judges save.


# A combined interval that is wider than that of people alone by more is not used. A limit of 1 would choose the smaller of two
# uncertain standard errors too often: with eight people, .94 of the intervals would hold the truth instead of .95.
WIDEST = 1.05
# A few huge scores, as of perplexity, move the judges' mean and are seldom among the labelled ones. Above this skewness of a labelled mean of
# scores, combined intervals would hold the truth too seldom.
MOST_SCORE_SKEWNESS = 0.35
# Beside an interval by betting, which is wider, a t interval looks like the work of the judges even if they add noise.
NO_T_INTERVAL = "people alone have no t interval, so the widths cannot be compared"
FEW_PROMPTS = "people labelled fewer than five prompts"


def build_record(
    sample: LabelledSample,
    human: Estimate,
    found: Combination | None,
    *,
    judges: tuple[JudgeUse, ...],
    price: float | None,
    level: float,
    bounds: tuple[float, float] | None,
    **labels: Any,
) -> CombinedEstimate:
    """Return the record with the combined estimate, or with that of people alone if the judges cannot help."""
    if price is not None:
        validate_non_negative(price=price)
    analysis = labels["analysis"]
    combined, fallback = None, "" if human.interval else human.reason or "people alone give no interval"
    if not fallback:
        fallback = _why_not(sample, found, bounds)
    is_skewed = human.detail.get("skewness", 0.0) > MAX_SKEWNESS
    if not fallback and (is_skewed or not isinstance(human.curve, TCurve)):
        fallback = NO_T_INTERVAL
    if not fallback and found is not None:
        combined = contrast_estimate(sample, found, level=level, bounds=bounds, **labels)
        if not found.weights.any() or _is_wider(combined, human):
            combined, fallback = (
                None,
                "the judges make the interval wider" if found.weights.any() else "the judges have no weight",
            )
    is_used = combined is not None and found is not None
    if combined is None:
        combined = replace(human, analysis=analysis)
    if is_used and found is not None:
        judges = tuple(
            replace(judge, weight=float(weight)) for judge, weight in zip(judges, found.weights, strict=True)
        )
    labelled = set(sample.items.tolist())
    return CombinedEstimate(
        human=human,
        combined=combined,
        saved=_saved(sample, human, combined if is_used else None, price),
        judges=judges,
        samples=sample.samples,
        n_items=sample.n_items,
        n_labelled=len(labelled),
        weights=found.method if is_used and found is not None else NO_WEIGHTS,
        fallback=fallback,
        warnings=_warnings(sample),
    )


def _why_not(sample: LabelledSample, found: Combination | None, bounds: tuple[float, float] | None) -> str:
    """Return why no t interval of the combined estimate is valid, or nothing."""
    if found is None:
        return "one annotator or one prompt has all labels"
    if found.n_prompts < TOO_FEW_ITEMS:
        return FEW_PROMPTS if sample.samples != ITEMS else "people labelled fewer than five items"
    if found.n_annotators is not None and found.n_annotators < TOO_FEW_CLUSTERS:
        return "fewer than six people gave labels"
    if math.sqrt(found.variance) < MIN_SPREAD:
        return "the corrected labels do not vary"
    if bounds is not None and found.skewness > MAX_SKEWNESS:
        return "the corrected labels are too skewed for a t interval"
    if found.score_skewness > MOST_SCORE_SKEWNESS:
        return "the judges' scores of all outputs are too skewed for so few labelled ones"
    return ""


def contrast_estimate(
    sample: LabelledSample,
    found: Combination,
    *,
    null: float | None,
    level: float,
    bounds: tuple[float, float] | None,
    **labels: Any,
) -> Estimate:
    """Return the t interval and the t test of a combination."""
    se = math.sqrt(found.variance)
    has_enough = found.n_prompts >= TOO_FEW_ITEMS and (
        found.n_annotators is None or found.n_annotators >= TOO_FEW_CLUSTERS
    )
    warnings: tuple[ResultWarning, ...] = ()
    if sample.annotators is not None:
        warnings = two_way_warnings(sample.annotators, sample.row_prompts)
    if found.skewness > MAX_SKEWNESS:
        warnings = (*warnings, ResultWarning("small_n_skew", "warn", {"skewness": found.skewness}))
    detail = {
        **({} if found.spread is None else found.spread.detail()),
        "n_annotators": found.n_annotators,
        "n_prompts": found.n_prompts,
        "n_missing": sample.n_missing,
        "skewness": found.skewness,
        "se": se,
        "df": found.df,
    }
    common: dict[str, Any] = {
        **labels,
        "unit": "annotator" if found.n_annotators is not None else sample.samples.removesuffix("s"),
        "n": found.n_prompts if found.n_annotators is None else found.n_annotators,
        "n_clusters": min(found.n_prompts, found.n_annotators or found.n_prompts),
        "n_rows": len(sample.values),
        "estimate": found.estimate,
        "warnings": warnings,
        "detail": detail,
        "settings": {"null": null, "level": level, "bounds": bounds, "method": "cv3", "population": sample.samples},
    }
    if se < MIN_SPREAD:
        return Estimate(status="zero_variance", reason="the standard error is 0", **common)
    curve = TCurve(found.estimate, se, found.df, bounds, test_name="prediction_powered_t", method="cv3_t")
    return Estimate(
        interval=curve.interval(level),
        test=clusters.confidence_curve_test(curve, null) if null is not None and has_enough else None,
        _curve=curve,
        **common,
    )


def _is_wider(combined: Estimate, human: Estimate) -> bool:
    """Return whether the combined interval is too wide, before or after both are cut at the ends of the scale."""
    return any(_width(combined, is_cut) > WIDEST * _width(human, is_cut) for is_cut in (False, True))


def _width(estimate: Estimate, is_cut: bool) -> float:
    interval = estimate.interval
    if interval is None:
        return math.inf
    if not is_cut and isinstance(estimate.curve, TCurve):
        interval = replace(estimate.curve, bounds=None).interval(interval.level)
    return interval.high - interval.low


def _saved(sample: LabelledSample, human: Estimate, combined: Estimate | None, price: float | None) -> LabelsSaved:
    n_labels = len(sample.values)
    own = human.detail.get("se")
    if own is None or own < MIN_SPREAD:
        return LabelsSaved(n_labels=n_labels, price=price, reason="people alone have no standard error")
    ratio = 1.0 if combined is None else float(combined.detail["se"]) / own
    labels = n_labels * (1 / ratio**2 - 1)
    return LabelsSaved(
        n_labels=n_labels,
        se_ratio=ratio,
        labels_saved=labels,
        share_saved=1 - ratio**2,
        price=price,
        money_saved=None if price is None else labels * price,
        reason="" if price is not None else "no price of a label is given",
    )


def _warnings(sample: LabelledSample) -> tuple[ResultWarning, ...]:
    if sample.annotators is None:
        return (ResultWarning("people_unknown", "warn", {"samples": sample.samples}),)
    return ()
