"""True-positive and true-negative rates of a judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.stats.arrays import BoolArray, validate_level
from analysis.stats.judges._rows import ClusteredRows, label_positions
from analysis.stats.results import Estimate, Record


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
    target : str
        With whose labels the judge is compared: always "person".
    n_tied_items : int
        Always 0.
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
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> JudgeRates:
    """Estimate true-positive and true-negative rates, precision and prevalence, against each label of a person.

    A row is a label of a person, beside the judge's label of the same output; None and NaN are missing, and all labels
    but `positive` are negative. `annotators` is None if nobody knows the person of each row. Each rate is a weighted
    mean over the rows that it is about: sum of w over rows that are positive on both sides / sum of w over rows that
    are positive for people, for example. With inverse inclusion probabilities w, which all rows of an output share,
    both sums are Horvitz-Thompson estimates of totals over all outputs (1952, A generalization of sampling without
    replacement from a finite universe), so the ratio estimates the rate among all outputs (Hajek 1971), also if
    uncertain or rare outputs were drawn more often. A rate without a label that it is about has the status `no_data`.

    >>> people, prompts = np.repeat(np.arange(8), 20), np.tile(np.arange(20), 8)
    >>> said, judge = (prompts + people // 6) % 4 == 0, prompts % 5 == 0
    >>> rates = true_positive_and_negative_rates(judge, said, positive=True, annotators=people, prompts=prompts)
    >>> round(rates.true_positive_rate.estimate, 3), round(rates.true_negative_rate.estimate, 3)
    (0.2, 0.8)
    """
    validate_level(level)
    sides, names = label_positions({"judge": judge, "people": people}, None)
    is_used = (sides["judge"] >= 0) & (sides["people"] >= 0)
    code = names.index(positive) if positive in names else -1
    says, said = (np.asarray(sides[name] == code)[is_used] for name in ("judge", "people"))
    rows = ClusteredRows.from_arrays(is_used, annotators=annotators, prompts=prompts, weights=weights)

    def share(values: BoolArray, among: BoolArray, name: str, estimand: str) -> Estimate:
        return rows.where(among).mean(
            np.asarray(values[among], dtype=np.float64),
            level=level,
            analysis=f"judges.rates.{name}",
            estimand=estimand,
        )

    everything = np.ones(len(said), dtype=np.bool_)
    return JudgeRates(
        share(says, said, "true_positive_rate", "share of positive people's labels that the judge calls positive"),
        share(~says, ~said, "true_negative_rate", "share of negative people's labels that the judge calls negative"),
        share(said, says, "precision", "share of positive people's labels where the judge says positive"),
        share(~said, ~says, "negative_precision", "share of negative people's labels where the judge says negative"),
        share(said, everything, "prevalence", "share of positive people's labels"),
        share(says, everything, "judge_prevalence", "share of positive labels of the judge"),
        positive,
        "person",
        0,
        int(np.sum(~is_used)),
    )
