"""The share of choices for a system, its repeatability, and the effect of the side of the screen."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats import agreement, basic, clusters
from analysis.stats.arrays import (
    FloatArray,
    IntArray,
    binary_vector,
    group_sizes,
    label_codes_where,
    validate_level,
    validate_within_bounds,
    vector,
)
from analysis.stats.results import Estimate, ResultWarning


def choice_agreement(
    chose_a: npt.ArrayLike,
    a_was_first: npt.ArrayLike,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 999,
    rng: np.random.Generator,
) -> agreement.PositionSystemAgreement:
    """Estimate Fleiss' kappa and Gwet's AC1 of the labels, coded by the place chosen and by the system chosen.

    `chose_a` is 1 if A was chosen, 0 if B was, and NaN without a label; `a_was_first` is 1 if A was shown first, else
    0, and a choice without it is an error. The observed agreement is the same in both codings, but the agreement by
    chance is not: places alternate, so their shares are equal, whereas the share of a much better system is large, so
    kappa by system is lower at the same agreement. The paper (section 5.6) prints kappa by place. Low agreement can
    mean different tastes as well as poor labels, so do not exclude annotators because of it.

    >>> result = choice_agreement([1, 1, 1, 1, 1, 0], [1, 1, 0, 0, 1, 1], list("ppqqrr"), list("xyxyxy"),
    ...                          rng=np.random.default_rng(0))
    >>> round(result.kappa_position.estimate, 4), round(result.kappa_system.estimate, 4)
    (0.3333, -0.2)
    """
    system = binary_vector(chose_a, "chose_a")
    first = binary_vector(a_was_first, "a_was_first")
    if first.shape != system.shape:
        raise ValueError(f"a_was_first: {len(first)} rows where chose_a has {len(system)}")
    unplaced = np.flatnonzero(~np.isnan(system) & np.isnan(first))
    if len(unplaced):
        raise ValueError(f"a_was_first: row {int(unplaced[0])} is missing where a choice was made")
    chosen = {1.0: ("a", "first"), 0.0: ("b", "second")}
    names = [chosen[label][0] if label == label else None for label in system.tolist()]
    places = [
        chosen[float(label == first_place)][1] if label == label else None
        for label, first_place in zip(system, first, strict=True)
    ]
    return agreement.agreement_by_position_and_by_system(
        items, annotators, places, names, level=level, resamples=resamples, rng=rng
    )


def preference_share_difference_by_position(
    chose_a: npt.ArrayLike,
    a_was_first: npt.ArrayLike,
    annotators: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Estimate:
    """Estimate the effect of being shown first on being chosen: P(A | A first) - P(A | A second).

    `chose_a` is 1 if A was chosen, 0 if B was, and NaN without a label; `a_was_first` is 1 if A was shown first, else
    0. The estimate is the slope of a linear probability model of choosing A on the place of A, with the covariance that
    leaves out one annotator at a time (CV3) and t on G* - 1. `detail` has `share_first` (choices of the first place),
    both conditional shares, and `balanced_share`, the share of A if each order had half of the labels. The status is
    `not_identified` if A was always in the same place.

    >>> chose, first = [1, 0, 1, 1, 0, 0, 1, 0], [1, 0, 1, 0, 1, 0, 1, 0]
    >>> result = preference_share_difference_by_position(chose, first, [1, 1, 2, 2, 3, 3, 4, 4])
    >>> result.estimate, result.detail["share_first"], result.detail["balanced_share"]
    (0.5, 0.75, 0.5)
    """
    rows = _Halves.from_arrays(chose_a, a_was_first, annotators, "a_was_first")
    common = rows.common(level)
    if len(rows.chosen) == 0:
        return Estimate(status="no_data", reason="no label to analyse", **common)
    if rows.is_one_sided:
        return Estimate(
            status="not_identified",
            reason="A stood in the same place on every label",
            warnings=(ResultWarning("order_not_identified"),),
            **common,
        )
    when_first, when_second = rows.shares
    shares = {
        "share_first": float(np.mean(rows.chosen == rows.side)),
        "share_a_when_first": when_first,
        "share_a_when_second": when_second,
        "balanced_share": (when_first + when_second) / 2,
    }
    return rows.difference(level, {**common, "detail": shares})


def annotator_weighted_preference_share(
    chose_a: npt.ArrayLike,
    annotators: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    *,
    population: str = "",
    level: float = 0.95,
) -> Estimate:
    """Estimate the share of choices for A, with the same weight for all annotators, and test that it is one half at a fixed n.

    `chose_a` is 1 if A was chosen, 0 if B was, .5 for a tie, and NaN without a label. Without items, and if every
    annotator gave one label without ties, the method is the exact binomial test with Wilson's interval. Otherwise it is
    `clusters.annotator_prompt_clustered_mean` (`clusters.clustered_mean` without items) with weight 1 / (number of
    labels of the annotator) for each row; if annotators gave several labels, the label-weighted share is a sensitivity.
    With five items or more the claim is about items like these, too; `population` says what the claim is about, as in
    `clusters.annotator_prompt_clustered_mean`, and has no effect without items. Use the function only if n was fixed
    before the study; otherwise see `sequential`.

    >>> annotator_weighted_preference_share([1, 1, 1, 0, 1, 1, 1, 1], range(8)).test.name
    'exact_binomial'
    >>> annotator_weighted_preference_share([1, 1, 1, 0, 1, 1, 0, 1], [1, 1, 2, 2, 3, 3, 4, 4]).estimate
    0.75
    """
    labels = vector(chose_a, "chose_a")
    validate_within_bounds(labels[~np.isnan(labels)], (0.0, 1.0), "chose_a")
    is_observed = ~np.isnan(labels)
    observed = labels[is_observed]
    annotator_codes, n_annotators = label_codes_where(annotators, "annotators", is_observed)
    names: dict[str, Any] = {"analysis": "choice.preference", "estimand": "annotator-weighted share of A, ties half"}
    common: dict[str, Any] = {"null": 0.5, "level": level, "bounds": (0.0, 1.0)}
    if items is None and len(observed) == n_annotators and not np.any(observed == 0.5):
        return basic.proportion(int(np.sum(observed)), len(observed), null=0.5, level=level).labelled(**names)
    weights = 1 / group_sizes(annotator_codes, n_annotators)[annotator_codes]
    if items is None:
        result = clusters.clustered_mean(observed, annotator_codes, weights=weights, **names, **common)
    else:
        item_codes, _ = label_codes_where(items, "items", is_observed)
        result = clusters.annotator_prompt_clustered_mean(
            observed, annotator_codes, item_codes, weights=weights, population=population, **names, **common
        )
    if len(observed) == n_annotators:
        return result
    by_label = clusters.clustered_mean(observed, annotator_codes, analysis="choice.preference.label_weighted", **common)
    return replace(result, sensitivity=(*result.sensitivity, by_label))


@dataclass(frozen=True, slots=True)
class _Halves:
    """Labels of two parts of a study that share annotators, such as the study and its repetition."""

    chosen: FloatArray
    side: FloatArray
    annotators: IntArray
    n_annotators: int

    @classmethod
    def from_arrays(
        cls, chose_a: npt.ArrayLike, side: npt.ArrayLike, annotators: npt.ArrayLike, name: str
    ) -> "_Halves":
        chosen, sides = binary_vector(chose_a, "chose_a"), binary_vector(side, name)
        if sides.shape != chosen.shape:
            raise ValueError(f"{name}: {len(sides)} rows where chose_a has {len(chosen)}")
        is_observed = ~np.isnan(chosen) & ~np.isnan(sides)
        return cls(chosen[is_observed], sides[is_observed], *label_codes_where(annotators, "annotators", is_observed))

    @property
    def is_one_sided(self) -> bool:
        return len(np.unique(self.side)) < 2

    @property
    def shares(self) -> tuple[float, float]:
        """Return the share of A where the side is 1, and where it is 0."""
        return float(np.mean(self.chosen[self.side == 1])), float(np.mean(self.chosen[self.side == 0]))

    def common(self, level: float) -> dict[str, Any]:
        validate_level(level)
        return {
            "analysis": "choice.position",
            "estimand": "P(A chosen | A shown first) - P(A chosen | A shown second)",
            "unit": "annotator",
            "n": self.n_annotators,
            "n_clusters": self.n_annotators,
            "n_rows": len(self.chosen),
            "settings": {"null": 0.0, "level": level, "method": "cv3"},
        }

    def difference(self, level: float, common: dict[str, Any]) -> Estimate:
        """Return the difference of the two shares with a standard error over annotators, after the edge cases."""
        difference = self.shares[0] - self.shares[1]
        sizes = group_sizes(self.annotators, self.n_annotators)
        common = {**common, "warnings": clusters.cluster_warnings(sizes, name="annotator")}
        if self.n_annotators < 2:
            return Estimate(status="n_lt_2", reason="one annotator has no spread", estimate=difference, **common)
        design = np.column_stack([np.ones(len(self.chosen)), self.side])
        try:
            fit = clusters.clustered_regression(design, self.chosen, self.annotators)
        except ValueError:
            reason = "one annotator alone has seen one of the two conditions"
            return Estimate(status="not_identified", reason=reason, estimate=difference, **common)
        return clusters.t_estimate(
            difference,
            math.sqrt(max(0.0, float(fit.covariance[1, 1]))),
            fit.df,
            fewest_clusters=self.n_annotators,
            level=level,
            method="cv3_t",
            null=0.0,
            bounds=(-1.0, 1.0),
            **common,
        )
