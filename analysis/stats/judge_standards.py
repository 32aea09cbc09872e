"""Standards for a judge: how well people agree with each other, and how much agreement is possible at all."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import BoolArray, FloatArray, IntArray, matrix, validate_share, vector
from analysis.stats.judges import ClusteredRows, SumsJackknife, label_positions, ratio
from analysis.stats.results import Estimate, Record

# The alternative annotator test: does a judge agree with people at least as well as another person does?


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
        level=level,
    )
    found = rows.mean(
        judge_wins[row, column].astype(np.float64),
        analysis="judges.alternative_annotator_test.advantage",
        estimand="mean over people of the share of items on which the judge agrees with the others at least as well",
    )
    return replace(found, settings={**found.settings, **settings})


# How much agreement with people is possible at all where people disagree with one another.


# More ways to share out the labels of a panel than this take too long.
MAX_WAYS = 20_000


@dataclass(frozen=True, slots=True)
class PanelAgreement(Record):
    """Agreement with the majority of `size` people: of the best possible judge, and of this one (None without a judge)."""

    size: int
    best: Estimate
    judge: Estimate | None


@dataclass(frozen=True, slots=True)
class PossibleAgreement(Record):
    """How much people agree with one another, and a judge beside that.

    Attributes
    ----------
    pair_agreement : Estimate
        Agreement of a person with another person.
    with_majority_of_others : Estimate
        Agreement of a person with the majority of the item's other people. Some judge reaches it: the true best is at
        least as high.
    best_possible : Estimate
        Agreement with a person of a judge that knew the most frequent label of each item. It is too high with few
        labels of an item, so the true best lies between the last two.
    panels : tuple[PanelAgreement, ...]
        Agreement with the majorities of several people.
    judge_agreement, judge_minus_pair, judge_share_of_best, judge_share_of_others : Estimate or None
        Of the judge: agreement with a person, that minus `pair_agreement` with the test that it is 0, and its shares of
        `best_possible` and of `with_majority_of_others`. None without a judge.
    n_items, n_single : int
        Items used, and items left out because fewer than two people (or not the judge) labelled them.
    """

    pair_agreement: Estimate
    with_majority_of_others: Estimate
    best_possible: Estimate
    panels: tuple[PanelAgreement, ...]
    judge_agreement: Estimate | None
    judge_minus_pair: Estimate | None
    judge_share_of_best: Estimate | None
    judge_share_of_others: Estimate | None
    n_items: int
    n_single: int


def possible_agreement(
    labels: npt.ArrayLike | Sequence[Sequence[object]],
    *,
    judge: npt.ArrayLike | Sequence[object] | None = None,
    prompts: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    are_people_known: bool = True,
    panel_sizes: Sequence[int] = (3, 5),
    level: float = 0.95,
) -> PossibleAgreement:
    """Estimate the agreement among people, the best that a judge can reach, and a judge's agreement as a share of it.

    `labels`, of shape (n_items, n_people), are numbers or texts, None or NaN if missing; items without a label of the
    judge are left out, each item is by default its own prompt, and `weights` are inverse probabilities with which the
    items were drawn. If people are not known, a column is only a place, so prompts are the only sample. Each label of a
    person is a row. Its value is the share of the item's other labels that are equal (pair); or 1 if it is the most
    frequent of the item's other labels (majority of others), or of all labels of the item (best possible), divided by
    the number of labels that are equally frequent. Means over rows have intervals over people and prompts, which take
    the most frequent labels as known. For a panel, of as many people as `panel_sizes` says, the labels of an item are
    drawn with replacement in the shares in which its people gave them, equally frequent labels share the majority, and
    the best judge gives the most probable majority. Both numbers are means over items, with intervals over prompts;
    with few labels of an item the best is too high. Without an item that two people labelled, all agreements have the
    status `no_data`; a panel that is empty or too large for so many labels is an error.

    >>> labels = np.array([["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["a", "b", "b"]] * 5)
    >>> found = possible_agreement(labels, judge=["a", "b", "b", "b"] * 5)
    >>> round(found.pair_agreement.estimate, 3), round(found.best_possible.estimate, 3)
    (0.667, 0.833)
    >>> round(found.judge_agreement.estimate, 3), round(found.judge_share_of_best.estimate, 3)
    (0.583, 0.7)
    """
    given = np.asarray(labels, dtype=object)
    if given.ndim != 2:
        raise ValueError(f"labels: expected two dimensions, got {given.ndim}")
    n_items, n_people = given.shape
    sides: dict[str, npt.ArrayLike | Sequence[object]] = {"labels": given.ravel()}
    if judge is not None:
        own = np.asarray(judge, dtype=object)
        if own.shape != (n_items,):
            raise ValueError(f"judge: shape {own.shape} for {n_items} items")
        sides["judge"] = np.repeat(own, n_people)
    positions, names = label_positions(sides, None)
    codes = positions["labels"].reshape(n_items, n_people)
    of_judge = positions["judge"].reshape(n_items, n_people)[:, 0] if judge is not None else None
    is_used = np.sum(codes >= 0, axis=1) >= 2
    if of_judge is not None:
        is_used &= of_judge >= 0
    item_rows = ClusteredRows.from_arrays(
        is_used,
        annotators=None,
        prompts=np.arange(n_items) if prompts is None else prompts,
        weights=weights,
        level=level,
    )
    codes = codes[is_used]
    counts = np.stack([np.sum(codes == number, axis=1) for number in range(len(names))], axis=1, dtype=np.float64)
    item, column = np.nonzero(codes >= 0)
    label = codes[item, column]
    rows = ClusteredRows.from_arrays(
        np.ones(len(item), dtype=np.bool_),
        annotators=column if are_people_known else None,
        prompts=item_rows.prompts[item],
        weights=None if weights is None else item_rows.weights[item],
        level=level,
    )
    others = counts[item]
    others[np.arange(len(item)), label] -= 1
    same = others[np.arange(len(item)), label] / others.sum(axis=1)
    of_others, of_best = _share_of_mode(others, label), _share_of_mode(counts[item], label)

    def mean(values: FloatArray, name: str, estimand: str) -> Estimate:
        return rows.mean(values, analysis=f"judges.possible_agreement.{name}", estimand=estimand)

    agreement = minus_pair = share_of_best = share_of_others = None
    own_codes: IntArray | None = None
    if of_judge is not None:
        own_codes = of_judge[is_used]
        agrees = np.asarray(label == own_codes[item], dtype=np.float64)
        agreement = mean(agrees, "judge", "share of people's labels that the judge gave too")
        minus_pair = rows.mean(
            agrees - same,
            null=0.0,
            bounds=(-1.0, 1.0),
            analysis="judges.possible_agreement.judge_minus_pair",
            estimand="agreement of the judge with a person - agreement of another person with a person",
        )
        share_of_best, share_of_others = (
            _ratio(rows, agrees, part, name, estimand)
            for part, name, estimand in (
                (of_best, "share_of_best", "agreement of the judge / best possible agreement"),
                (of_others, "share_of_others", "agreement of the judge / agreement with the majority of others"),
            )
        )
    return PossibleAgreement(
        mean(same, "pair", "agreement of a person with another person"),
        mean(of_others, "majority_of_others", "agreement of a person with the majority of the item's other people"),
        mean(of_best, "best", "agreement with a person of a judge that knew each item's most frequent label"),
        tuple(_panel(size, counts, own_codes, item_rows) for size in panel_sizes),
        agreement,
        minus_pair,
        share_of_best,
        share_of_others,
        int(is_used.sum()),
        int(np.sum(~is_used)),
    )


def _share_of_mode(counts: FloatArray, label: IntArray) -> FloatArray:
    """Return 1 / (number of most frequent labels) where the label is one of them, else 0."""
    is_mode = counts == counts.max(axis=1, keepdims=True, initial=0.0)
    return np.asarray(is_mode[np.arange(len(label)), label] / np.maximum(1, is_mode.sum(axis=1)))


def _ratio(rows: ClusteredRows, numerator: FloatArray, denominator: FloatArray, name: str, estimand: str) -> Estimate:
    contributions = rows.weights[:, None] * np.column_stack([numerator, denominator])
    jackknife = SumsJackknife.from_rows(rows, contributions, lambda sums: ratio(sums[..., 0], sums[..., 1])[..., None])
    return jackknife.estimate(
        undefined="no person agrees with others",
        analysis=f"judges.possible_agreement.{name}",
        estimand=estimand,
    )


def _panel(size: int, counts: FloatArray, own: IntArray | None, rows: ClusteredRows) -> PanelAgreement:
    if size < 1:
        raise ValueError(f"panel_sizes: {size!r} is not a number of people")
    patterns, pattern = np.unique(counts, axis=0, return_inverse=True)
    chances = _majority_chances(patterns, size)[pattern.ravel()] if len(counts) else counts
    best = rows.mean(
        np.minimum(1.0, chances.max(axis=1, initial=0.0)),
        analysis=f"judges.possible_agreement.panel.{size}.best",
        estimand=f"agreement with the majority of {size} people of a judge that knew its most probable label",
    )
    judge = None
    if own is not None:
        judge = rows.mean(
            np.minimum(1.0, chances[np.arange(len(own)), own]),
            analysis=f"judges.possible_agreement.panel.{size}.judge",
            estimand=f"agreement of the judge with the majority of {size} people",
        )
    return PanelAgreement(size, best, judge)


def _majority_chances(counts: FloatArray, size: int) -> FloatArray:
    """Return the chance of each label to be the majority of `size` draws; labels that are equally frequent share it."""
    n_labels = counts.shape[1]
    if math.comb(size + n_labels - 1, size) > MAX_WAYS:
        raise ValueError(f"panel_sizes: {size} people are too many for {n_labels} labels")
    ways = np.array(list(_compositions(size, n_labels)), dtype=np.float64)
    shares = counts / counts.sum(axis=1, keepdims=True)
    is_mode = ways == ways.max(axis=1, keepdims=True)
    won = is_mode / is_mode.sum(axis=1, keepdims=True)
    coefficient = np.exp(special.gammaln(size + 1) - special.gammaln(ways + 1).sum(axis=1))
    found: FloatArray = np.zeros(shares.shape)
    for way, number, winners in zip(ways, coefficient, won, strict=True):
        found += (number * np.prod(shares**way, axis=1))[:, None] * winners
    return found


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
