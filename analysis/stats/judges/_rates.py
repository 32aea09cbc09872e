"""True-positive and true-negative rates of a judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, FloatArray, group_sums, label_codes_where, validate_level
from analysis.stats.judges._rows import ClusteredRows, label_positions
from analysis.stats.results import Estimate, Record

TARGETS = ("person", "majority")


@dataclass(frozen=True, slots=True)
class JudgeRates(Record):
    """How often a judge finds what people call positive or negative, and how often it is right.

    Attributes
    ----------
    true_positive_rate, true_negative_rate : Estimate
        Share of positive (negative) labels of people that the judge gave too.
    precision, negative_precision : Estimate
        Share of the judge's positive (negative) labels that people gave too.
    prevalence, judge_prevalence : Estimate
        Share of positive labels of people and of the judge.
    positive : Any
        The label that counts as positive.
    target : {"person", "majority"}
        With whose labels the judge is compared.
    n_tied_items : int
        Items left out because their people gave two answers equally often.
    n_missing : int
        Rows left out because a label is missing.
    """

    true_positive_rate: Estimate
    true_negative_rate: Estimate
    precision: Estimate
    negative_precision: Estimate
    prevalence: Estimate
    judge_prevalence: Estimate
    positive: Any
    target: str
    n_tied_items: int
    n_missing: int


def true_positive_and_negative_rates(
    judge: npt.ArrayLike | Sequence[object],
    people: npt.ArrayLike | Sequence[object],
    *,
    positive: Any,
    annotators: npt.ArrayLike | None,
    prompts: npt.ArrayLike,
    items: npt.ArrayLike | None = None,
    target: str = "person",
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    population: str = "",
    analysis: str = "judges.rates",
) -> JudgeRates:
    """Estimate true-positive and true-negative rates, precision and prevalence, against each person or their majority.

    A row is a label of a person, beside the judge's label of the same output; None and NaN are missing, and all labels
    but `positive` are negative. `annotators` is None if nobody knows the person of each row. With the target "person"
    each label of a person counts, and `population` is as in `clusters.annotator_prompt_clustered_mean`. With "majority"
    each output (from `items`) counts once, with the answer (positive or not) of more than half of its people; the
    intervals are then over prompts, for exactly these people. Each rate is a weighted mean over the rows that it is
    about: sum of w over rows that are positive on both sides / sum of w over rows that are positive for people, for
    example. With inverse inclusion probabilities w, which all rows of an output share, both sums are Horvitz-Thompson
    estimates of totals over all outputs (1952, A generalization of sampling without replacement from a finite
    universe), so the ratio estimates the rate among all outputs (Hajek 1971), also if uncertain or rare outputs were
    drawn more often. A rate without a label that it is about has the status `no_data`.

    >>> people, prompts = np.repeat(np.arange(8), 20), np.tile(np.arange(20), 8)
    >>> said, judge = (prompts + people // 6) % 4 == 0, prompts % 5 == 0
    >>> rates = true_positive_and_negative_rates(judge, said, positive=True, annotators=people, prompts=prompts)
    >>> round(rates.true_positive_rate.estimate, 3), round(rates.true_negative_rate.estimate, 3)
    (0.2, 0.8)
    >>> rates = true_positive_and_negative_rates(
    ...     judge, said, positive=True, annotators=people, prompts=prompts, items=prompts, target="majority"
    ... )
    >>> rates.prevalence.unit, rates.prevalence.n, rates.prevalence.estimate
    ('prompt', 20, 0.25)
    """
    validate_level(level)
    if target not in TARGETS:
        raise ValueError(f"target: {target!r} is not one of {', '.join(TARGETS)}")
    if target == "majority" and items is None:
        raise ValueError("items: the target 'majority' needs the item of each row")
    sides, names = label_positions({"judge": judge, "people": people}, None)
    is_used = (sides["judge"] >= 0) & (sides["people"] >= 0)
    code = names.index(positive) if positive in names else -1
    says, said = (np.asarray(sides[name] == code)[is_used] for name in ("judge", "people"))
    rows = ClusteredRows.from_arrays(
        is_used, annotators=annotators, prompts=prompts, weights=weights, population=population
    )
    n_tied = 0
    if target == "majority" and items is not None:
        codes, n_items = label_codes_where(items, "items", is_used)
        says, said, rows, n_tied = _majorities(says, said, rows, codes, n_items)

    def share(values: BoolArray, among: BoolArray, name: str, estimand: str) -> Estimate:
        return rows.where(among).mean(
            np.asarray(values[among], dtype=np.float64), level=level, analysis=f"{analysis}.{name}", estimand=estimand
        )

    whose = "people's labels" if target == "person" else "majorities"
    everything = np.ones(len(said), dtype=np.bool_)
    return JudgeRates(
        share(says, said, "true_positive_rate", f"share of positive {whose} that the judge calls positive"),
        share(~says, ~said, "true_negative_rate", f"share of negative {whose} that the judge calls negative"),
        share(said, says, "precision", f"share of positive {whose} where the judge says positive"),
        share(~said, ~says, "negative_precision", f"share of negative {whose} where the judge says negative"),
        share(said, everything, "prevalence", f"share of positive {whose}"),
        share(says, everything, "judge_prevalence", "share of positive labels of the judge"),
        positive,
        target,
        n_tied,
        int(np.sum(~is_used)),
    )


def _majorities(
    says: BoolArray, said: BoolArray, rows: ClusteredRows, items: npt.NDArray[np.int64], n_items: int
) -> tuple[BoolArray, BoolArray, ClusteredRows, int]:
    """Return the judge's and the majority's answers, and one row for each item that has a majority."""
    n = np.bincount(items, minlength=n_items)
    votes = group_sums(items, said.astype(np.float64), n_items)
    first: npt.NDArray[np.int64] = np.zeros(n_items, dtype=np.int64)
    first[items[::-1]] = np.arange(len(items))[::-1]
    _refuse_unequal("judge", says.astype(np.float64), items, first)
    _refuse_unequal("weights", rows.weights, items, first)
    _refuse_unequal("prompts", rows.prompts.astype(np.float64), items, first)
    has_majority = 2 * votes != n
    chosen = np.zeros(len(items), dtype=np.bool_)
    chosen[first[has_majority]] = True
    by_item = 2 * votes > n
    one = rows.where(chosen)
    # Of the people, only the majority is left: the prompts are the sample.
    alone = ClusteredRows(None, one.prompts, one.weights, one.is_weighted)
    return says[chosen], by_item[items[chosen]], alone, int(np.sum(~has_majority))


def _refuse_unequal(name: str, values: FloatArray, items: npt.NDArray[np.int64], first: npt.NDArray[np.int64]) -> None:
    differs = np.flatnonzero(values != values[first[items]])
    if len(differs):
        raise ValueError(f"{name}: row {int(differs[0])} (of those with labels) differs from another row of its item")
