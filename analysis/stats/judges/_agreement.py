"""Agreement of a judge with people, beside that of the best constant answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import FloatArray, group_sums, validate_level
from analysis.stats.judges._jackknife import SumsJackknife, ratio
from analysis.stats.judges._rows import JudgedRows
from analysis.stats.results import Estimate, Record


@dataclass(frozen=True, slots=True)
class LabelShares(Record):
    """How often people and the judge give a label (weighted shares of the rows), and the number of people's rows."""

    label: Any
    people: float
    judge: float
    n_people: int


@dataclass(frozen=True, slots=True)
class JudgeAgreement(Record):
    """Agreement of a judge with people, and what an answer that never looks at the item gets.

    Attributes
    ----------
    agreement : Estimate
        Share of labels of people that the judge gave too.
    constant : Any
        The label that people give most often; None without labels.
    constant_agreement : Estimate
        Share of people's labels that are `constant`.
    advantage : Estimate
        `agreement` minus `constant_agreement`, with the test that it is 0.
    kappa : Estimate
        Cohen's kappa of the judge and people.
    shares : tuple[LabelShares, ...]
        How often each label is given.
    n_missing : int
        Rows left out because one of the labels is missing.
    """

    agreement: Estimate
    constant: Any
    constant_agreement: Estimate
    advantage: Estimate
    kappa: Estimate
    shares: tuple[LabelShares, ...]
    n_missing: int


def judge_agreement(
    judge: npt.ArrayLike | Sequence[object],
    people: npt.ArrayLike | Sequence[object],
    *,
    annotators: npt.ArrayLike | None,
    prompts: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    categories: Sequence[Any] | None = None,
    level: float = 0.95,
) -> JudgeAgreement:
    """Share of people's labels that a judge gave too, beside the best constant answer and corrected for chance.

    Parameters
    ----------
    judge, people : array_like, shape (n_rows,)
        For each label of a person: the judge's label of the same output, and the person's. Numbers or texts; None and
        NaN are missing.
    annotators : array_like, shape (n_rows,), or None
        The person of each row. None: nobody knows them (warning `people_left_out`).
    prompts : array_like, shape (n_rows,)
        The prompt (or item) of each row. Outputs for one prompt are not independent.
    weights : array_like, shape (n_rows,), optional
        Inverse probabilities with which the outputs were drawn. Equal if None.
    categories : sequence, optional
        The labels that were offered. By default those that occur.
    level : float, default 0.95
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    JudgeAgreement
        Each estimate counts people (`n`, `unit`) or, if nobody knows them, prompts. Labels of people: `n_rows`.

    Raises
    ------
    ValueError
        If the lengths differ, a label is no category, or a weight is not positive.

    Notes
    -----
    All shares are weighted means over rows (Hajek's estimate with weights). With p_o the agreement and p_e = sum_c
    share of c among the judge's labels x share of c among people's labels: kappa = (p_o - p_e) / (1 - p_e). Means have
    the intervals of `clusters.two_way_clustered_mean`; kappa has the two-way variance of leaving out each person and
    each prompt. The constant is the label that is most frequent in these data, which is a little too good for it: the
    advantage of the judge is, if anything, too small.

    References
    ----------
    Cohen 1960, A coefficient of agreement for nominal scales; Hajek 1971 (the weights).

    Examples
    --------
    >>> people, prompts = np.repeat(np.arange(10), 12), np.tile(np.arange(12), 10)
    >>> said = np.where((people * 5 + prompts * 7) % 4 > 0, "good", "bad")
    >>> judge = np.where(prompts % 3 > 0, "good", "bad")
    >>> found = judge_agreement(judge, said, annotators=people, prompts=prompts)
    >>> round(found.agreement.estimate, 3), found.constant, round(found.constant_agreement.estimate, 3)
    (0.583, 'good', 0.75)
    >>> round(found.kappa.estimate, 3), found.advantage.estimate < 0
    (0.0, True)
    """
    validate_level(level)
    judged = JudgedRows.from_arrays(
        judge, people, annotators=annotators, prompts=prompts, weights=weights, categories=categories
    )
    n_labels, w = len(judged.names), judged.rows.weights
    by_people, by_judge = (group_sums(codes, w, n_labels) for codes in (judged.people, judged.judge))
    best = int(np.argmax(by_people)) if len(w) else -1
    of_constant = np.asarray(judged.people == best, dtype=np.float64)
    agreement = judged.rows.mean(
        judged.agrees,
        level=level,
        analysis="judges.agreement",
        estimand="share of people's labels that the judge gave too",
    )
    constant = judged.rows.mean(
        of_constant,
        level=level,
        analysis="judges.agreement.constant",
        estimand="share of people's labels that are the most frequent one",
    )
    advantage = judged.rows.mean(
        judged.agrees - of_constant,
        null=0.0,
        level=level,
        bounds=(-1.0, 1.0),
        analysis="judges.agreement.advantage",
        estimand="agreement of the judge - agreement of the most frequent label",
    )
    total = float(w.sum()) if len(w) else 1.0
    counts = np.bincount(judged.people, minlength=n_labels)
    shares = tuple(
        LabelShares(name, float(by_people[i]) / total, float(by_judge[i]) / total, int(counts[i]))
        for i, name in enumerate(judged.names)
    )
    return JudgeAgreement(
        agreement,
        judged.names[best] if len(w) else None,
        constant,
        advantage,
        _kappa(judged, level=level),
        shares,
        judged.n_missing,
    )


def _kappa(judged: JudgedRows, *, level: float) -> Estimate:
    n_labels = len(judged.names)
    columns = np.eye(n_labels)
    contributions = judged.rows.weights[:, None] * np.column_stack(
        [np.ones(len(judged.people)), judged.agrees, columns[judged.judge], columns[judged.people]]
    )

    def kappa(sums: FloatArray) -> FloatArray:
        total = sums[..., 0]
        observed = ratio(sums[..., 1], total)
        by_chance = ratio((sums[..., 2 : 2 + n_labels] * sums[..., 2 + n_labels :]).sum(axis=-1), total**2)
        return ratio(observed - by_chance, 1 - by_chance)

    jackknife = SumsJackknife.from_rows(judged.rows, contributions, kappa)
    return jackknife.estimate(
        undefined="the judge and all people gave one and the same label",
        level=level,
        null=0.0,
        bounds=(-1.0, 1.0),
        analysis="judges.agreement.kappa",
        estimand="Cohen's kappa of the judge and people",
    )
