"""Agreement of a judge with people by system or subgroup."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import MIN_SPREAD, FloatArray, IntArray, label_codes, validate_level
from analysis.stats.judges._jackknife import SumsJackknife, ratio
from analysis.stats.judges._rows import JudgedRows
from analysis.stats.multiplicity import Family, adjust_pvalues_and_intervals_of_family
from analysis.stats.results import Estimate, HypothesisTest, Record


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
    validate_level(level)
    judged = JudgedRows.from_arrays(
        judge, people, annotators=annotators, prompts=prompts, weights=weights, categories=None
    )
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
            level=level,
            analysis="judges.agreement_by_group",
            estimand=f"share of people's labels that the judge gave too, {name}",
        )
        for number, name in enumerate(names)
    }
    keys = [str(name) for name in names]
    tested = {key: _difference(apart, number, key, n_groups=n_groups, level=level) for number, key in enumerate(keys)}
    if len(set(keys)) == n_groups:
        family = Family("judges.agreement_by_group", tuple(keys))
        tested = adjust_pvalues_and_intervals_of_family(tested, family, star_scheme=None)
    joint = _joint(SumsJackknife.from_rows(judged.rows, contributions, means), n_groups, level=level)
    return AgreementByGroup(
        tuple(GroupAgreement(name, within[name], tested[str(name)]) for name in names), joint, judged.n_missing
    )


def _groups(groups: npt.ArrayLike | Sequence[object], judged: JudgedRows) -> tuple[IntArray, list[Any]]:
    """Return the codes of the used rows' groups, and the groups."""
    labels = np.asarray(groups)
    label_codes(labels, "groups", len(judged.is_used))
    distinct, codes = np.unique(labels[judged.is_used], return_inverse=True)
    return np.asarray(codes, dtype=np.int64), distinct.tolist()


def _difference(apart: SumsJackknife, number: int, name: str, *, n_groups: int, level: float) -> Estimate:
    labels: dict[str, Any] = {
        "analysis": "judges.agreement_by_group.difference",
        "estimand": f"agreement of the judge, {name} - all other groups",
    }
    if n_groups < 2:
        return Estimate(status="not_applicable", reason="there is one group only", **labels, **apart.labels())
    return apart.estimate(
        number,
        undefined="a group has no labels",
        level=level,
        null=0.0,
        bounds=(-1.0, 1.0),
        **labels,
    )


def _joint(means: SumsJackknife, n_groups: int, *, level: float) -> Estimate:
    n_contrasts = n_groups - 1
    common: dict[str, Any] = {
        **means.labels(),
        "analysis": "judges.agreement_by_group.joint",
        "estimand": "whether the agreement of the judge with people differs between groups",
        "settings": {"level": level, "population": means.population},
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
