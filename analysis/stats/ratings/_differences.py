"""Two systems rated by the same annotators: mean differences, reversals of the preference, and rank tests."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, clusters
from analysis.stats.arrays import FloatArray, group_sizes, group_sums, label_codes, validate_within_bounds, vector
from analysis.stats.results import Estimate, Record, ResultWarning


@dataclass(frozen=True, slots=True)
class ReversalGuard(Record):
    """How far rounding to the steps of the scale can have changed a difference of means.

    The true difference is in the open interval (low, high). If that contains 0, a reversal of the preference cannot
    be excluded; this does not mean that it occurred.
    """

    observed: float
    step: float
    low: float
    high: float
    is_reversal_possible: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the data of the sentence in the report."""
        sentence = "reversal_cannot_be_excluded" if self.is_reversal_possible else "reversal_excluded"
        return Record.as_dict(self) | {"sentence": sentence}


def paired_difference_paper(x: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """The paper's comparison: the mean difference of each annotator's ratings of two systems, with a paired t test.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        One rating per annotator; row i of both is the same annotator. NaN leaves the annotator out.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.

    Returns
    -------
    Estimate
        The mean difference, in mode "paper".

    References
    ----------
    Section 6.1, the last column of Table 1 (with Holm over the pairs).

    Examples
    --------
    >>> paired_difference_paper([3, 2, 4, 5], [3, 1, 4, 5]).estimate
    0.25
    """
    return basic.paired_t_test(x, y, level=level, mode="paper").labelled(
        analysis="rating.pair", estimand="mean difference of ratings x - y", unit="annotator"
    )


def rounding_reversal_guard(observed: float, *, step: float = 1.0) -> ReversalGuard:
    """Check whether rounding to the scale can have reversed a preference (propositions 1 and 2 of the paper).

    `observed` is a difference of means, and `step` the distance between two points of the scale, which is small for a
    continuous scale. An annotator who rounds a utility up to the next point adds a residual in [0, step). The true
    difference of means is therefore in (observed - step, observed + step), and its sign is certain only if |observed|
    >= step (section 3, remark 2 and propositions 1 and 2).

    >>> rounding_reversal_guard(0.644).is_reversal_possible, rounding_reversal_guard(-1.2).is_reversal_possible
    (True, False)
    """
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"step: {step!r} is not a positive number")
    if not math.isfinite(observed):
        raise ValueError("observed: not a finite number")
    return ReversalGuard(observed, step, observed - step, observed + step, abs(observed) < step)


def paired_mean_difference(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None = None,
    population: str = "",
    scale: tuple[float, float],
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    analysis: str = "rating.mean_difference",
) -> Estimate:
    """Mean of x - y over annotator-prompt pairs, clustered by annotator and, if given, by prompt.

    Parameters
    ----------
    x, y : array_like, shape (n_rows,)
        One annotator's ratings of both systems for one prompt; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. With five prompts or more the claim is about prompts like these, too.
    population : {"", "people_and_prompts", "people"}, default ""
        What the claim is about, see `clusters.annotator_prompt_clustered_mean`. Without prompts it has no effect.
    scale : tuple[float, float]
        Ends of the scale.
    bounds : tuple[float, float], optional
        Least and greatest possible difference. By default -/+ the length of the scale.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        Name that is copied to the record.

    Returns
    -------
    Estimate
        The mean difference. `detail["share_of_range"]` is the difference divided by the length of the scale.

    Notes
    -----
    It assumes an interval scale (warning `interval_scale_assumed`). See `clusters.annotator_prompt_clustered_mean`. With one row per
    annotator and no prompts this is the paired t test, unless the differences are very skewed.

    Examples
    --------
    >>> result = paired_mean_difference([4, 5, 3, 4], [3, 3, 3, 3], [1, 2, 3, 4], scale=(1, 5))
    >>> result.estimate, result.detail["share_of_range"]
    (1.0, 0.25)
    """
    first, second = _rated(x, y, scale)
    span = float(scale[1] - scale[0])
    common: dict[str, Any] = {
        "null": 0.0,
        "level": level,
        "bounds": (-span, span) if bounds is None else bounds,
        "analysis": analysis,
        "estimand": "mean difference of ratings x - y",
        "unit": "annotator",
    }
    if prompts is None:
        result = clusters.clustered_mean(first - second, annotators, **common)
    else:
        result = clusters.annotator_prompt_clustered_mean(
            first - second, annotators, prompts, population=population, **common
        )
    share = None if result.estimate is None else result.estimate / (scale[1] - scale[0])
    assumed = ResultWarning("interval_scale_assumed", "info")
    return replace(
        result,
        warnings=(*result.warnings, assumed),
        detail={**result.detail, "share_of_range": share},
        settings={**result.settings, "scale": scale},
    )


def probability_of_superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None = None,
    population: str = "",
    level: float = 0.95,
    analysis: str = "rating.superiority",
) -> Estimate:
    """Probability that an annotator rates x above y for the same prompt; ties count half.

    Parameters
    ----------
    x, y : array_like, shape (n_rows,)
        One annotator's ratings of both systems for one prompt; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.
    prompts : array_like, shape (n_rows,), optional
        Label of each row's prompt. With five prompts or more the claim is about prompts like these, too.
    population : {"", "people_and_prompts", "people"}, default ""
        What the claim is about, see `clusters.annotator_prompt_clustered_mean`. Without prompts it has no effect.
    level : float, default 0.95
        Confidence level of the interval, between 0 and 1.
    analysis : str, optional
        Name that is copied to the record.

    Returns
    -------
    Estimate
        PS, the mean of {1, .5, 0} over rows. `detail` has Cliff's delta = 2 PS - 1. There is no test with fewer than six
        annotators.

    Notes
    -----
    Only the order of the ratings matters. The test is against .5; see `clusters.annotator_prompt_clustered_mean`, or
    `clusters.clustered_mean` without prompts.

    References
    ----------
    Recommended instead of mean Likert differences, which need equal intervals by section 3, Remark 1.

    Examples
    --------
    >>> result = probability_of_superiority([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4])
    >>> result.estimate, result.detail["cliff_delta"], result.detail["n_ties"]
    (0.625, 0.25, 1)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    scores = np.where(np.isnan(difference), np.nan, (np.sign(difference) + 1) / 2)
    common: dict[str, Any] = {
        "null": 0.5,
        "level": level,
        "bounds": (0.0, 1.0),
        "analysis": analysis,
        "estimand": "probability that x is rated above y, ties half",
        "unit": "annotator",
    }
    if prompts is None:
        result = clusters.clustered_mean(scores, annotators, **common)
    else:
        result = clusters.annotator_prompt_clustered_mean(scores, annotators, prompts, population=population, **common)
    observed = scores[~np.isnan(scores)]
    detail = {
        **result.detail,
        "cliff_delta": None if result.estimate is None else 2 * result.estimate - 1,
        "n_above": int(np.sum(observed == 1)),
        "n_ties": int(np.sum(observed == 0.5)),
        "n_below": int(np.sum(observed == 0)),
    }
    return replace(result, detail=detail)


def sign_and_wilcoxon_tests(x: npt.ArrayLike, y: npt.ArrayLike, annotators: npt.ArrayLike) -> tuple[Estimate, Estimate]:
    """Sign test and Wilcoxon's test of symmetry of x - y, one difference per annotator.

    Parameters
    ----------
    x, y : array_like, shape (n_rows,)
        One annotator's ratings of both systems for one prompt; NaN is missing.
    annotators : array_like, shape (n_rows,)
        Label of each row's annotator.

    Returns
    -------
    tuple[Estimate, Estimate]
        The sign test and Wilcoxon's test.

    Notes
    -----
    An annotator with several rows counts with the mean difference, because these rows are not independent.

    Examples
    --------
    >>> sign, symmetry = sign_and_wilcoxon_tests([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4])
    >>> sign.detail["n_ties"], sign.estimate
    (1, 0.6666666666666666)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    is_complete = ~np.isnan(difference)
    positions, n_annotators = label_codes(np.asarray(annotators)[is_complete], "annotators", int(is_complete.sum()))
    means = group_sums(positions, difference[is_complete], n_annotators) / group_sizes(positions, n_annotators)
    return (
        basic.sign_test(means).labelled(analysis="rating.sign_test", unit="annotator"),
        basic.wilcoxon(means).labelled(analysis="rating.wilcoxon", unit="annotator"),
    )


def _rated(x: npt.ArrayLike, y: npt.ArrayLike, scale: tuple[float, float] | None) -> tuple[FloatArray, FloatArray]:
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} ratings where x has {len(first)}")
    if scale is not None:
        validate_within_bounds(first, scale, "x")
        validate_within_bounds(second, scale, "y")
    return first, second
