"""The alternative annotator test: does a judge agree with people at least as well as another person does?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import BoolArray, FloatArray, matrix, validate_share, vector
from analysis.stats.judges._rows import ClusteredRows
from analysis.stats.results import Estimate, Record

MIN_PEOPLE = 3
MIN_ITEMS = 30


@dataclass(frozen=True, slots=True)
class ComparedPerson(Record):
    """The judge beside one person, on the items that this person and at least one other labelled.

    Attributes
    ----------
    column : int
        The person's column of the table.
    n_items : int
        Number of items.
    judge_advantage, person_advantage : float or None
        Share of the items on which the judge (the person) agrees with the others at least as well as the person (the
        judge). A tie counts for both.
    statistic, pvalue, pvalue_adjusted : float or None
        The t statistic and the one-sided p-value that the person is at least `epsilon` better, and the p-value adjusted
        by Benjamini and Yekutieli.
    is_won : bool or None
        Whether the judge wins against this person. None: not tested.
    reason : str
        Why the person was not tested, or "".
    """

    column: int
    n_items: int
    judge_advantage: float | None
    person_advantage: float | None
    statistic: float | None
    pvalue: float | None
    pvalue_adjusted: float | None
    is_won: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class AlternativeAnnotatorTest(Record):
    """Result of the alternative annotator test.

    Attributes
    ----------
    winning_rate : Estimate
        Share of the people against whom the judge wins; `n` counts people.
    advantage : Estimate
        Mean over people of the share of items on which the judge agrees with the others at least as well as the person.
    is_passed : bool or None
        Whether the winning rate is at least .5. None if it is undefined.
    people : tuple[ComparedPerson, ...]
        The judge beside each person.
    """

    winning_rate: Estimate
    advantage: Estimate
    is_passed: bool | None
    people: tuple[ComparedPerson, ...]


def alternative_annotator_test(
    judge: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    epsilon: float = 0.1,
    significance: float = 0.05,
    prompts: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> AlternativeAnnotatorTest:
    """Test whether a judge may take the place of a person, by comparing it with each person in turn.

    Labels without an order are given as numbers (positions in a list), and NaN is missing. For item i and person j,
    S(f, i, j) and S(h, i, j) are the alignments of the judge and of the person with the other people of the item: the
    share of them with the same label. W_f = 1 if S(f) >= S(h), W_h = 1 if S(h) >= S(f), and d = W_h - W_f. For each
    person with at least 30 items, a one-sided paired t test with n - 1 degrees of freedom has H0: mean(d) >= epsilon;
    if d is the same on all items, p is 0 for d < epsilon and otherwise 1. `epsilon` is how much better a person may be
    and still lose, because the judge costs less: the authors advise .2 for experts, .15 for trained people and .1 for
    crowd workers. Declare it before the labels are there. The judge wins against the people whose H0 is rejected by
    Benjamini's and Yekutieli's procedure (2001, The control of the false discovery rate in multiple testing under
    dependency), which allows any dependence. The winning rate is their share of all tested people, and the advantage is
    the mean over people of mean(W_f). The test takes items as independent, as its authors do (Calderon, Reichart and
    Dror 2025, The alternative annotator test for LLM-as-a-judge). Items of one prompt make it too eager; the interval
    of the advantage is over people and prompts, where each item is its own prompt if `prompts` is None. With fewer than
    three people, or fewer than three who have 30 items, the status is `not_applicable`.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 80)
    >>> labels = np.where(rng.random((80, 4)) < 0.8, truth[:, None], 1 - truth[:, None])
    >>> found = alternative_annotator_test(truth, labels, epsilon=0.1)
    >>> found.winning_rate.estimate, found.is_passed, found.winning_rate.n
    (1.0, True, 4)
    """
    validate_share(epsilon, "epsilon")
    if not 0 < significance < 1:
        raise ValueError(f"significance: {significance!r} is not strictly between 0 and 1")
    table, own = matrix(labels, "labels"), vector(judge, "judge")
    if len(own) != len(table):
        raise ValueError(f"judge: {len(own)} labels for {len(table)} items")
    n_items, n_people = table.shape
    prompt_labels: Any = np.arange(n_items) if prompts is None else prompts
    is_given = ~np.isnan(table)
    # An item counts if the judge and at least two people labelled it.
    is_given &= (~np.isnan(own) & (is_given.sum(axis=1) >= 2))[:, None]
    of_judge, of_person = _alignments(table, own, is_given)
    slack = 1e-9
    judge_wins, person_wins = of_judge >= of_person - slack, of_person >= of_judge - slack
    compared = [
        _compare(column, judge_wins[:, column], person_wins[:, column], is_given[:, column], epsilon)
        for column in range(n_people)
    ]
    tested = [one for one in compared if one["pvalue"] is not None]
    adjusted = iter(_benjamini_yekutieli([one["pvalue"] for one in tested]))
    people = []
    for one in compared:
        pvalue = None if one["pvalue"] is None else next(adjusted)
        people.append(
            ComparedPerson(**one, pvalue_adjusted=pvalue, is_won=None if pvalue is None else pvalue <= significance)
        )
    settings = {
        "epsilon": epsilon,
        "significance": significance,
        "alignment": "accuracy",
        "min_items": MIN_ITEMS,
        "adjust": "benjamini_yekutieli",
    }
    common: dict[str, Any] = {
        "analysis": "judges.alternative_annotator_test",
        "estimand": "share of people against whom the judge wins",
        "unit": "annotator",
        "n": len(tested),
        "n_rows": int(sum(one["n_items"] for one in tested)),
        "settings": settings,
        "detail": {"n_people": n_people, "n_untested": n_people - len(tested)},
    }
    columns = [one["column"] for one in tested]
    advantage = _advantage(judge_wins, is_given, columns, prompt_labels, level=level, settings=settings)
    if len(tested) < MIN_PEOPLE:
        reason = (
            f"{len(tested)} people have labels of at least {MIN_ITEMS} items beside another person; "
            f"the test needs {MIN_PEOPLE}"
        )
        return AlternativeAnnotatorTest(
            Estimate(status="not_applicable", reason=reason, **common), advantage, None, tuple(people)
        )
    rate = sum(bool(one.is_won) for one in people) / len(tested)
    return AlternativeAnnotatorTest(Estimate(estimate=rate, **common), advantage, rate >= 0.5, tuple(people))


def _alignments(table: FloatArray, own: FloatArray, is_given: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the alignment of the judge and of each person with the item's other people; shapes (n_items, n_people)."""
    of_judge, of_person = np.full(table.shape, np.nan), np.full(table.shape, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        for column in range(table.shape[1]):
            others = is_given.copy()
            others[:, column] = False
            n = others.sum(axis=1)
            for target, label in ((of_judge, own), (of_person, table[:, column])):
                target[:, column] = np.sum(others & (table == label[:, None]), axis=1) / n
    return of_judge, of_person


def _compare(
    column: int, judge_wins: BoolArray, person_wins: BoolArray, is_given: BoolArray, epsilon: float
) -> dict[str, Any]:
    n = int(is_given.sum())
    found: dict[str, Any] = {
        "column": column,
        "n_items": n,
        "judge_advantage": float(judge_wins[is_given].mean()) if n else None,
        "person_advantage": float(person_wins[is_given].mean()) if n else None,
        "statistic": None,
        "pvalue": None,
        "reason": "",
    }
    if n < MIN_ITEMS:
        return found | {"reason": f"{n} items are fewer than {MIN_ITEMS}"}
    apart = person_wins[is_given].astype(np.float64) - judge_wins[is_given]
    mean, se = float(apart.mean()), float(apart.std(ddof=1)) / math.sqrt(n)
    if se == 0:
        return found | {"pvalue": 0.0 if mean < epsilon else 1.0}
    statistic = (mean - epsilon) / se
    return found | {"statistic": statistic, "pvalue": float(special.stdtr(n - 1, statistic))}


def _benjamini_yekutieli(pvalues: Sequence[float]) -> list[float]:
    """Return the adjusted p-values, in the same order."""
    m = len(pvalues)
    if m == 0:
        return []
    order = np.argsort(pvalues)
    scaled = np.array(pvalues)[order] * m * np.sum(1 / np.arange(1, m + 1)) / np.arange(1, m + 1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return [float(value) for value in adjusted]


def _advantage(
    judge_wins: BoolArray,
    is_given: BoolArray,
    columns: list[int],
    prompts: npt.ArrayLike,
    *,
    level: float,
    settings: dict[str, Any],
) -> Estimate:
    """Return the mean over people of the share of items on which the judge is at least as good, with its interval."""
    is_used = np.zeros_like(is_given)
    is_used[:, columns] = is_given[:, columns]
    row, column = np.nonzero(is_used)
    # Each person counts equally.
    weights = 1 / is_used.sum(axis=0)[column] if len(column) else np.ones(0)
    rows = ClusteredRows.from_arrays(
        np.ones(len(row), dtype=np.bool_),
        annotators=column,
        prompts=np.asarray(prompts)[row],
        weights=weights,
    )
    found = rows.mean(
        judge_wins[row, column].astype(np.float64),
        level=level,
        analysis="judges.alternative_annotator_test.advantage",
        estimand="mean over people of the share of items on which the judge agrees with the others at least as well",
    )
    return replace(found, settings={**found.settings, **settings})
