"""Probes of a judge: what it favours, whether it repeats itself, and where it agrees less with people."""

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import (
    MIN_SPREAD,
    FloatArray,
    IntArray,
    binary_vector,
    label_codes,
    validate_within_bounds,
    vector,
)
from analysis.stats.judges import ClusteredRows, JudgedRows, SumsJackknife, label_positions, paired_scores, ratio
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import Estimate, HypothesisTest, Record

# Probes of a judge beside people: the length of the output, and the judge's own family of models.


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
    apart, is_used, columns = paired_scores(judge, people, lengths=lengths)
    refused = np.flatnonzero(columns["lengths"] <= 0)
    if len(refused):
        raise ValueError(f"lengths: row {int(refused[0])} is {columns['lengths'][refused[0]]:g}, not above 0")
    rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights, level=level)
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
    own_family = binary_vector(is_own_family, "is_own_family")
    apart, is_used, _ = paired_scores(judge, people, is_own_family=own_family)
    rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights, level=level)
    error, is_own = apart[is_used], own_family[is_used] == 1
    own, others = (
        rows.where(kind).mean(
            error[kind],
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
            null=0.0,
            analysis="judges.family.difference",
            estimand="mean of judge - person, own family - other systems",
            detail={"n_missing": int(np.sum(~is_used))},
        ),
    )


def _slope(sums: FloatArray) -> FloatArray:
    n, x, y, squares, products = np.moveaxis(sums, -1, 0)
    return ratio(products - x * ratio(y, n), squares - x * ratio(x, n))[..., None]


# Probes of a judge beside itself: the order of a pair, and repeated runs.


@dataclass(frozen=True, slots=True)
class OrderProbe(Record):
    """What a judge's verdicts owe to the order of the pair.

    Attributes
    ----------
    flips : Estimate
        Share of pairs with another verdict in the other order.
    first_place : Estimate
        Mean preference for the output in the first place, with the test that it is .5.
    n_to_first, n_to_second : int
        Pairs whose verdicts both favour the first (second) place.
    """

    flips: Estimate
    first_place: Estimate
    n_to_first: int
    n_to_second: int


@dataclass(frozen=True, slots=True)
class RepeatProbe(Record):
    """How much a judge agrees with itself.

    Attributes
    ----------
    identical : Estimate
        Share of pairs of runs with the same verdict.
    always_identical : Estimate
        Share of items with the same verdict in all runs.
    sd : Estimate
        Standard deviation of a verdict between runs, within items. Verdicts that are no numbers: `not_applicable`.
    """

    identical: Estimate
    always_identical: Estimate
    sd: Estimate


def order_probe(
    original: npt.ArrayLike,
    exchanged: npt.ArrayLike,
    *,
    prompts: npt.ArrayLike,
    level: float = 0.95,
) -> OrderProbe:
    """Compare a judge's verdicts on the same pairs of outputs in both orders.

    Both arrays have the preference for the same output A of each pair, from 0 (the other) to 1, with .5 for a tie and
    NaN for missing: `original` with A in the first place, `exchanged` with A in the second. The preference for the
    first place of a pair is (original + 1 - exchanged) / 2. The results are shares of pairs, with the intervals of
    `clusters.clustered_mean` over prompts; `n` counts prompts, and `n_rows` counts pairs.

    >>> probe = order_probe([1, 1, 0, 1, 1, 0] * 5, [1, 0, 0, 0, 1, 1] * 5, prompts=np.arange(30))
    >>> round(probe.flips.estimate, 3), round(probe.first_place.estimate, 3), probe.n_to_first, probe.n_to_second
    (0.5, 0.583, 10, 5)
    """
    first, second = vector(original, "original"), vector(exchanged, "exchanged")
    if len(second) != len(first):
        raise ValueError(f"exchanged: {len(second)} values where original has {len(first)}")
    for name, values in (("original", first), ("exchanged", second)):
        validate_within_bounds(values, (0.0, 1.0), name)
    is_used = ~np.isnan(first + second)
    rows = ClusteredRows.from_arrays(
        is_used, annotators=None, prompts=prompts, weights=None, level=level, has_people=False
    )
    first, second = first[is_used], second[is_used]
    flips = rows.mean(
        np.asarray(first != second, dtype=np.float64),
        analysis="judges.order.flips",
        estimand="share of pairs with another verdict in the other order",
    )
    place = rows.mean(
        (first + 1 - second) / 2,
        null=0.5,
        analysis="judges.order.first_place",
        estimand="mean preference for the output in the first place",
    )
    to_first, to_second = ((first > 0.5) & (second < 0.5), (first < 0.5) & (second > 0.5))
    return OrderProbe(flips, place, int(to_first.sum()), int(to_second.sum()))


def repeat_probe(
    verdicts: npt.ArrayLike | Sequence[Sequence[object]],
    *,
    prompts: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> RepeatProbe:
    """Estimate the agreement of a judge with itself in repeated runs on the same items.

    `verdicts` (n_items, n_runs) are numbers or texts; None and NaN are missing, and an item with fewer than two
    verdicts is left out. If `prompts` is None, each item is its own prompt. `weights` are the inverse probabilities
    with which the items were drawn (equal if None). `identical` is per item the share of its pairs of runs with the
    same verdict, then the mean over items, and `sd` is the root of the mean over items of the variance (ddof = 1). The
    intervals are over prompts, that of `sd` by leaving out each prompt; `n` counts prompts, and `n_rows` counts items.

    >>> probe = repeat_probe([[4, 4, 4], [3, 4, 4], [5, 5, 5], [2, 2, 3]] * 3)
    >>> round(probe.identical.estimate, 3), probe.always_identical.estimate, round(probe.sd.estimate, 3)
    (0.667, 0.5, 0.408)
    """
    table = np.asarray(verdicts, dtype=object)
    if table.ndim != 2:
        raise ValueError(f"verdicts: expected two dimensions, got {table.ndim}")
    n_items, n_runs = table.shape
    positions, names = label_positions({"verdicts": table.ravel()}, None)
    codes = positions["verdicts"].reshape(n_items, n_runs)
    is_used = np.sum(codes >= 0, axis=1) >= 2
    rows = ClusteredRows.from_arrays(
        is_used,
        annotators=None,
        prompts=np.arange(n_items) if prompts is None else prompts,
        weights=weights,
        level=level,
        has_people=False,
    )
    codes = codes[is_used]
    n = np.sum(codes >= 0, axis=1)
    pairs = np.zeros(len(codes))
    is_same = np.zeros(len(codes), dtype=np.bool_)
    for number in range(len(names)):
        count = np.sum(codes == number, axis=1)
        pairs += count * (count - 1)
        is_same |= count == n
    identical = rows.mean(
        pairs / (n * (n - 1)),
        analysis="judges.repeat.identical",
        estimand="share of pairs of runs with the same verdict",
    )
    always = rows.mean(
        is_same.astype(np.float64),
        analysis="judges.repeat.always_identical",
        estimand="share of items with the same verdict in all runs",
    )
    return RepeatProbe(identical, always, _sd(rows, codes, names))


def _sd(rows: ClusteredRows, codes: npt.NDArray[np.int64], names: tuple[Any, ...]) -> Estimate:
    labels: dict[str, Any] = {
        "analysis": "judges.repeat.sd",
        "estimand": "standard deviation of a verdict between runs, within items",
    }
    if not all(isinstance(name, numbers.Real) for name in names):
        reason = "the verdicts are no numbers"
        return Estimate(status="not_applicable", reason=reason, unit="prompt", n=0, **labels)
    values = np.where(codes >= 0, np.array([*names, np.nan], dtype=np.float64)[codes], np.nan)
    variances = np.nanvar(values, axis=1, ddof=1) if len(values) else np.empty(0)
    contributions = rows.weights[:, None] * np.column_stack([np.ones(len(variances)), variances])
    jackknife = SumsJackknife.from_rows(
        rows, contributions, lambda sums: np.sqrt(np.maximum(0.0, ratio(sums[..., 1], sums[..., 0])))[..., None]
    )
    return jackknife.estimate(undefined="no item has two runs", **labels)


# Agreement of a judge with people by system or subgroup.


@dataclass(frozen=True, slots=True)
class GroupAgreement(Record):
    """Agreement within one group, and its difference from the agreement in all other groups together."""

    group: Any
    agreement: Estimate
    difference: Estimate


@dataclass(frozen=True, slots=True)
class AgreementByGroup(Record):
    """Agreement of a judge with people in each group, and the joint test that it is the same in all groups."""

    groups: tuple[GroupAgreement, ...]
    joint: Estimate
    n_missing: int


def agreement_by_group(
    judge: npt.ArrayLike | Sequence[object],
    people: npt.ArrayLike | Sequence[object],
    groups: npt.ArrayLike | Sequence[object],
    *,
    annotators: npt.ArrayLike | None,
    prompts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> AgreementByGroup:
    """Estimate the agreement of a judge with people by system or subgroup, and test whether it differs.

    Each row is a person's label and the judge's label of the same output, None or NaN if missing; `annotators` is None
    if nobody knows who they are, and `weights` are inverse probabilities with which the outputs were drawn. The groups
    are in sorted order, Holm's method adjusts the p-values of their differences, and with one group the differences and
    the joint test are `not_applicable`. The differences of all groups from the last, b (q,), have the covariance V of
    leaving out each person and each prompt; F = b' V^-1 b / q on q and G* - 1 degrees of freedom, with the smaller G*.
    With two ways the joint test uses the smallest F of the covariances over people, over prompts and over both, so it
    rejects too seldom rather than too often; with one way, it uses Hotelling's correction (df - q + 1) / df. There is
    no joint test with no more clusters than q, or with fewer than six people or five prompts.

    >>> people, prompts, systems = (axis.ravel() for axis in np.indices((8, 12, 2)))
    >>> said = (people + prompts) % 3 > 0
    >>> judge = np.where(systems == 0, said, (prompts + people // 2) % 2 > 0)
    >>> found = agreement_by_group(judge, said, systems, annotators=people, prompts=prompts)
    >>> [round(one.agreement.estimate, 3) for one in found.groups], found.joint.pvalue < 0.001
    ([1.0, 0.5], True)
    """
    judged = JudgedRows.from_arrays(judge, people, annotators=annotators, prompts=prompts, weights=weights, level=level)
    codes, names = _groups(groups, judged)
    n_groups = len(names)
    members = np.eye(n_groups)[codes]
    agrees, w = judged.agrees, judged.rows.weights
    contributions = w[:, None] * np.column_stack([members, members * agrees[:, None]])

    def differences(sums: FloatArray) -> FloatArray:
        n, agreed = sums[..., :n_groups], sums[..., n_groups:]
        others = (part.sum(axis=-1, keepdims=True) - part for part in (agreed, n))
        return ratio(agreed, n) - ratio(*others)

    def means(sums: FloatArray) -> FloatArray:
        return ratio(sums[..., n_groups:], sums[..., :n_groups])

    apart = SumsJackknife.from_rows(judged.rows, contributions, differences)
    within = {
        name: judged.rows.where(codes == number).mean(
            agrees[codes == number],
            analysis="judges.agreement_by_group",
            estimand=f"share of people's labels that the judge gave too, {name}",
        )
        for number, name in enumerate(names)
    }
    keys = [str(name) for name in names]
    tested = {key: _difference(apart, number, key, n_groups=n_groups) for number, key in enumerate(keys)}
    if len(set(keys)) == n_groups:
        family = Family("judges.agreement_by_group", tuple(keys))
        tested = adjust_pvalues_and_intervals_of_family(tested, family, star_scheme=None)
    joint = _joint(SumsJackknife.from_rows(judged.rows, contributions, means), n_groups)
    return AgreementByGroup(
        tuple(GroupAgreement(name, within[name], tested[str(name)]) for name in names), joint, judged.n_missing
    )


def _groups(groups: npt.ArrayLike | Sequence[object], judged: JudgedRows) -> tuple[IntArray, list[Any]]:
    """Return the codes of the used rows' groups, and the groups."""
    labels = np.asarray(groups)
    label_codes(labels, "groups", len(judged.is_used))
    distinct, codes = np.unique(labels[judged.is_used], return_inverse=True)
    return np.asarray(codes, dtype=np.int64), distinct.tolist()


def _difference(apart: SumsJackknife, number: int, name: str, *, n_groups: int) -> Estimate:
    labels: dict[str, Any] = {
        "analysis": "judges.agreement_by_group.difference",
        "estimand": f"agreement of the judge, {name} - all other groups",
    }
    if n_groups < 2:
        return Estimate(status="not_applicable", reason="there is one group only", **labels, **apart.labels())
    return apart.estimate(
        number,
        undefined="a group has no labels",
        null=0.0,
        bounds=(-1.0, 1.0),
        **labels,
    )


def _joint(means: SumsJackknife, n_groups: int) -> Estimate:
    n_contrasts = n_groups - 1
    common: dict[str, Any] = {
        **means.labels(),
        "analysis": "judges.agreement_by_group.joint",
        "estimand": "whether the agreement of the judge with people differs between groups",
        "settings": {"level": means.level, "population": means.population},
    }
    if means.n_rows == 0:
        return Estimate(status="no_data", reason="no label of a person beside one of the judge", **common)
    if n_contrasts < 1:
        return Estimate(status="not_applicable", reason="there is one group only", **common)
    if not means.has_enough_clusters or min(means.n_clusters) <= n_contrasts:
        return Estimate(status="not_identified", reason="too few people or prompts for a joint test", **common)
    hypotheses = np.column_stack([np.eye(n_contrasts), -np.ones(n_contrasts)])
    contrasts = hypotheses @ means.values
    statistics = []
    for covariance in _candidates(means):
        between = hypotheses @ covariance @ hypotheses.T
        if not np.isfinite(between).all():
            reason = "one person (or prompt) alone gives the labels of a group"
            return Estimate(status="not_identified", reason=reason, **common)
        if float(np.linalg.eigvalsh(between)[0]) > MIN_SPREAD * max(1.0, float(np.trace(between))):
            statistics.append(float(contrasts @ np.linalg.solve(between, contrasts)) / n_contrasts)
    if not statistics:
        return Estimate(status="zero_variance", reason="the differences do not vary", **common)
    statistic, df = min(statistics), min(means.dfs)
    if len(means.covariances) == 1 and df > n_contrasts:
        statistic *= (df - n_contrasts + 1) / df
        df -= n_contrasts - 1
    return Estimate(
        test=HypothesisTest(
            name="clustered_f",
            null=0.0,
            statistic=statistic,
            df=df,
            pvalue=float(special.fdtrc(n_contrasts, df, statistic)),
            alternative="greater",
        ),
        detail={"df_between": n_contrasts, "df_within": df},
        **common,
    )


def _candidates(means: SumsJackknife) -> list[FloatArray]:
    if means.of_pairs is None:
        return list(means.covariances)
    both = means.covariances[0] + means.covariances[1]
    combined = both - means.of_pairs
    is_definite = np.isfinite(combined).all() and float(np.linalg.eigvalsh(combined)[0]) > 1e-9 * np.trace(both)
    return [*means.covariances, combined if is_definite else both]
