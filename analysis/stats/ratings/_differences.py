"""Two systems rated by the same annotators: differences of means, their reversal, and what only ranks say."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import basic, bootstrap, clusters
from analysis.stats.arrays import FloatArray, codes, group_sums, refuse_outside, sizes_of, vector
from analysis.stats.results import Estimate, Record, ResultWarning


@dataclass(frozen=True, slots=True)
class ReversalGuard(Record):
    """How far rounding to the scale's steps can have moved a difference of means, at worst.

    The true difference lies in the open interval (low, high); where that holds 0, a reversal of the preference cannot
    be excluded, which is not to say that it occurred.
    """

    observed: float
    step: float
    low: float
    high: float
    is_reversal_possible: bool

    def as_dict(self) -> dict[str, Any]:
        """The data of the sentence that a report prints."""
        sentence = "reversal_cannot_be_excluded" if self.is_reversal_possible else "reversal_excluded"
        return Record.as_dict(self) | {"sentence": sentence}


def paired_delta_paper(
    x: npt.ArrayLike, y: npt.ArrayLike, *, level: float = 0.95, analysis: str = "rating.pair", unit: str = "annotator"
) -> Estimate:
    """The paper's comparison: the mean difference of each annotator's ratings of two systems, with a paired t test.

    `x` and `y` have shape (n,), row i one annotator, one rating each; NaN drops the annotator.

    Source: section 6.1, the last column of Table 1 (with Holm over the pairs).

    >>> paired_delta_paper([3, 2, 4, 5], [3, 1, 4, 5]).estimate
    0.25
    """
    return basic.paired(
        x, y, level=level, analysis=analysis, estimand="mean difference of ratings x - y", unit=unit, mode="paper"
    )


def reversal_guard(observed: float, *, step: float = 1.0) -> ReversalGuard:
    """Propositions 1 and 2 as a warning: a true difference may differ from the observed one by up to one step.

    An annotator who rounds a utility up to the next point of the scale adds a residual in [0, step). The difference of
    two means is off by the difference of two mean residuals, so the true one lies in (observed - step,
    observed + step), and its sign is certain only if |observed| >= step. A continuous scale has a small step.

    Source: section 3, Remark 2, Propositions 1 and 2.

    >>> reversal_guard(0.644).is_reversal_possible, reversal_guard(-1.2).is_reversal_possible
    (True, False)
    """
    if not (math.isfinite(step) and step > 0):
        raise ValueError(f"step: {step!r} is not a positive number")
    if not math.isfinite(observed):
        raise ValueError("observed: not a finite number")
    return ReversalGuard(observed, step, observed - step, observed + step, abs(observed) < step)


def mean_difference(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike | None = None,
    scale: tuple[float, float],
    level: float = 0.95,
    analysis: str = "rating.mean_difference",
    unit: str = "annotator",
) -> Estimate:
    """The mean of x - y over annotator-prompt pairs, clustered by annotator and, where given, by prompt too.

    `x`, `y`, `annotators` and `prompts` have shape (n_rows,): row i holds one annotator's ratings of both systems for
    one prompt. `scale` gives the scale's ends; detail["share_of_range"] is the difference as a share of its length. With
    one row an annotator and no prompts this is the paired t test. Prompts make the claim one about the systems, not
    about these prompts. The interval scale is an assumption (warning `interval_scale_assumed`).

    >>> result = mean_difference([4, 5, 3, 4], [3, 3, 3, 3], [1, 2, 3, 4], scale=(1, 5))
    >>> result.estimate, result.detail["share_of_range"]
    (1.0, 0.25)
    """
    first, second = _rated(x, y, scale)
    common: dict[str, Any] = {
        "null": 0.0,
        "level": level,
        "analysis": analysis,
        "estimand": "mean difference of ratings x - y",
        "unit": unit,
    }
    if prompts is not None:
        result = clusters.two_way_mean(first - second, annotators, prompts, **common)
    else:
        labels = np.asarray(annotators)
        here = ~np.isnan(first - second)
        is_one_each = labels.shape == first.shape and len(np.unique(labels[here])) == int(here.sum())
        if is_one_each:
            del common["null"]
            result = basic.paired(first, second, **common)
        else:
            result = clusters.clustered_mean(first - second, labels, **common)
    share = None if result.estimate is None else result.estimate / (scale[1] - scale[0])
    assumed = ResultWarning("interval_scale_assumed", "info")
    return replace(
        result,
        warnings=(*result.warnings, assumed),
        detail={**result.detail, "share_of_range": share},
        settings={**result.settings, "scale": scale},
    )


def superiority(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    method: str = "bca",
    level: float = 0.95,
    resamples: int = bootstrap.RESAMPLES,
    analysis: str = "rating.superiority",
    unit: str = "annotator",
) -> Estimate:
    """The probability that an annotator rates x above y for the same prompt, a tie counting half: PS.

    `x`, `y` and `annotators` have shape (n_rows,), row i one annotator's two ratings for one prompt. Only the order of
    ratings counts, so any relabelling of the scale that keeps it changes nothing. PS = mean of {1, .5, 0} over rows;
    Cliff's delta = 2 PS - 1 is in detail. The interval resamples annotators with all their rows (`method` "bca" or
    "percentile"); the test against .5 is the clustered t (CV3), absent under six annotators. All ties: PS = .5 and
    `zero_variance`.

    Source: recommended in place of mean Likert differences, which section 3, Remark 1 shows to rest on equal intervals.

    >>> result = superiority([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4], rng=np.random.default_rng(0), resamples=999)
    >>> result.estimate, result.detail["cliff_delta"], result.detail["n_ties"]
    (0.625, 0.25, 1)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    scores = np.where(np.isnan(difference), np.nan, (np.sign(difference) + 1) / 2)
    common: dict[str, Any] = {
        "level": level,
        "bounds": (0.0, 1.0),
        "analysis": analysis,
        "estimand": "probability that x is rated above y, ties half",
        "unit": unit,
    }
    labels = np.asarray(annotators)
    tested = clusters.clustered_mean(scores, labels, null=0.5, **common)
    resampled = bootstrap.bootstrap_mean(scores, clusters=labels, method=method, resamples=resamples, rng=rng, **common)
    kept = scores[~np.isnan(scores)]
    detail = {
        **tested.detail,
        "cliff_delta": None if tested.estimate is None else 2 * tested.estimate - 1,
        "n_above": int(np.sum(kept == 1)),
        "n_ties": int(np.sum(kept == 0.5)),
        "n_below": int(np.sum(kept == 0)),
    }
    if tested.status == "ok" and resampled.interval is not None:
        tested = replace(tested, interval=resampled.interval)
    found = {warning.code: warning for warning in (*resampled.warnings, *tested.warnings)}
    settings = {**tested.settings, "interval_method": method, "resamples": resamples}
    return replace(tested, detail=detail, warnings=tuple(found.values()), settings=settings)


def rank_tests(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    analysis: str = "rating",
    unit: str = "annotator",
) -> tuple[Estimate, Estimate]:
    """The sign test and Wilcoxon's test (of symmetry) of x - y, one difference an annotator.

    Shapes as in `superiority`; an annotator with several rows enters with the mean difference, since rows of one person
    are not independent.

    >>> sign, symmetry = rank_tests([4, 5, 3, 4], [3, 3, 3, 5], [1, 2, 3, 4])
    >>> sign.detail["n_ties"], sign.estimate
    (1, 0.6666666666666666)
    """
    first, second = _rated(x, y, None)
    difference = first - second
    here = ~np.isnan(difference)
    positions, n_annotators = codes(np.asarray(annotators)[here], "annotators", int(here.sum()))
    means = group_sums(positions, difference[here], n_annotators) / sizes_of(positions, n_annotators)
    return (
        basic.sign_test(means, analysis=f"{analysis}.sign_test", unit=unit),
        basic.wilcoxon(means, analysis=f"{analysis}.wilcoxon", unit=unit),
    )


def _rated(x: npt.ArrayLike, y: npt.ArrayLike, scale: tuple[float, float] | None) -> tuple[FloatArray, FloatArray]:
    first, second = vector(x, "x"), vector(y, "y")
    if first.shape != second.shape:
        raise ValueError(f"y: {len(second)} ratings where x has {len(first)}")
    if scale is not None:
        refuse_outside(first, scale, "x")
        refuse_outside(second, scale, "y")
    return first, second
