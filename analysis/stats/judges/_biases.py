"""Probes of a judge beside people: the length of the output, and the judge's own family of models."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, binary_vector, validate_level
from analysis.stats.judges._jackknife import SumsJackknife, ratio
from analysis.stats.judges._rows import ClusteredRows, paired_scores
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True)
class FamilyProbe(Record):
    """The judge's scores minus people's, for outputs of the judge's own family of models and for the others.

    `difference` is own minus others, with the test that it is 0.
    """

    own: Estimate
    others: Estimate
    difference: Estimate


def length_probe(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    lengths: npt.ArrayLike,
    *,
    annotators: npt.ArrayLike | None,
    prompts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Estimate the change of the judge's error (its score minus a person's) per doubling of the output's length.

    A row is a score of a person, beside the judge's score of the same output; NaN is missing. `lengths` are greater
    than 0, for example in words. `annotators` is None if nobody knows the person of each row, and `weights` are the
    inverse probabilities with which the outputs were drawn (equal if None). The estimate is the slope, in points of the
    scale, of weighted least squares of judge - person on log2(length). It is positive if the judge favours long outputs
    more than people do. `detail["judge_slope"]` and `detail["people_slope"]` are the slopes of both scores, whose
    difference it is. The variance is that of leaving out each person and each prompt. If all outputs are equally long,
    the status is `not_identified`.

    >>> people, prompts = np.repeat(np.arange(8), 20), np.tile(np.arange(20), 8)
    >>> words = 50 * 2.0 ** (prompts % 4)
    >>> said = 3.0 + (people + prompts * 3) % 3
    >>> slope = length_probe(said + 0.5 * np.log2(words) + (prompts % 5) / 9, said, words, annotators=people, prompts=prompts)
    >>> round(slope.estimate, 2), slope.pvalue < 0.001
    (0.5, True)
    """
    validate_level(level)
    apart, is_used, columns = paired_scores(judge, people, lengths=lengths)
    refused = np.flatnonzero(columns["lengths"] <= 0)
    if len(refused):
        raise ValueError(f"lengths: row {int(refused[0])} is {columns['lengths'][refused[0]]:g}, not above 0")
    rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights)
    x, w = np.log2(columns["lengths"][is_used]), rows.weights
    x -= float(np.average(x, weights=w)) if len(x) else 0.0

    def contributions(y: FloatArray) -> FloatArray:
        centred = y - float(np.average(y, weights=w)) if len(y) else y
        return np.asarray(w[:, None] * np.column_stack([np.ones_like(x), x, centred, x**2, x * centred]))

    slopes = {
        f"{name}_slope": float(value) if np.isfinite(value) else None
        for name in ("judge", "people")
        for value in _slope(contributions(columns[name][is_used]).sum(axis=0))
    }
    jackknife = SumsJackknife.from_rows(rows, contributions(apart[is_used]), _slope)
    return jackknife.estimate(
        undefined="all outputs are equally long",
        level=level,
        null=0.0,
        analysis="judges.length",
        estimand="change of (judge - person) per doubling of the length",
        detail={**slopes, "n_missing": int(np.sum(~is_used))},
    )


def family_probe(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    is_own_family: npt.ArrayLike,
    *,
    annotators: npt.ArrayLike | None,
    prompts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> FamilyProbe:
    """Test whether a judge favours outputs of its own family of models, beyond what people think of them.

    `is_own_family` is 1 if the system of the output belongs to the judge's family, else 0, with NaN for missing; the
    other arguments are as in `length_probe`. The result has the mean errors for both kinds of outputs and their
    difference, in points of the scale: the difference in differences (judge - person | own) - (judge - person |
    others). A good family is no favour, because people's scores are subtracted. The variance of the difference is that
    of leaving out each person and each prompt with both kinds of outputs. If there is no output of one kind, the status
    is `not_identified`.

    >>> people, prompts, own = (axis.ravel() for axis in np.indices((8, 20, 2)))
    >>> said = 3.0 + (people + prompts * 3) % 3
    >>> probe = family_probe(said + 0.4 * own + (prompts % 7) * own / 30, said, own, annotators=people, prompts=prompts)
    >>> round(probe.difference.estimate, 2), probe.difference.pvalue < 0.001
    (0.49, True)
    """
    validate_level(level)
    own_family = binary_vector(is_own_family, "is_own_family")
    apart, is_used, _ = paired_scores(judge, people, is_own_family=own_family)
    rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights)
    error, is_own = apart[is_used], own_family[is_used] == 1
    own, others = (
        rows.where(kind).mean(
            error[kind],
            level=level,
            bounds=None,
            analysis=f"judges.family.{name}",
            estimand=f"mean of judge - person, {name}",
        )
        for kind, name in ((is_own, "own family"), (~is_own, "other systems"))
    )

    def difference(sums: FloatArray) -> FloatArray:
        return (ratio(sums[..., 1], sums[..., 0]) - ratio(sums[..., 3], sums[..., 2]))[..., None]

    kinds = [is_own.astype(np.float64), 1.0 - is_own]
    contributions = rows.weights[:, None] * np.column_stack(
        [column for kind in kinds for column in (kind, kind * error)]
    )
    jackknife = SumsJackknife.from_rows(rows, contributions, difference)
    return FamilyProbe(
        own,
        others,
        jackknife.estimate(
            undefined="people scored outputs of the judge's own family only, or none of them",
            level=level,
            null=0.0,
            analysis="judges.family.difference",
            estimand="mean of judge - person, own family - other systems",
            detail={"n_missing": int(np.sum(~is_used))},
        ),
    )


def _slope(sums: FloatArray) -> FloatArray:
    n, x, y, squares, products = np.moveaxis(sums, -1, 0)
    return ratio(products - x * ratio(y, n), squares - x * ratio(x, n))[..., None]
