"""Labelling strategies: who labels an item, the decision from its labels, and the decision from other labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from analysis.stats.arrays import FloatArray, IntArray, binary_vector, label_codes, vector
from analysis.stats.results import Record

STRATEGIES = ("one", "fixed", "majority", "max_three")
# How the labels of an item of "max_three" are counted. The released analysis of human labels counts a third label
# unless the first two both chose the system that its file names first.
COUNTINGS = ("on_disagreement", "unless_both_a", "unless_both_b")


@dataclass(frozen=True, slots=True)
class Strategy(Record):
    """A labelling strategy: which annotators label an item, and how many.

    "one": one new annotator per item. "fixed": the same annotator for all items. "majority": `workers` annotators
    (odd). "max_three": two, and a third if they disagree. `counting` is one of COUNTINGS; only the first counts the
    labels correctly.
    """

    name: str
    workers: int = 1
    counting: str = "on_disagreement"

    def __post_init__(self) -> None:
        if self.name not in STRATEGIES:
            raise ValueError(f"name: {self.name!r} is not one of {', '.join(STRATEGIES)}")
        if self.counting not in COUNTINGS:
            raise ValueError(f"counting: {self.counting!r} is not one of {', '.join(COUNTINGS)}")
        if self.name == "majority" and (self.workers < 3 or self.workers % 2 == 0):
            raise ValueError(f"workers: {self.workers} is not an odd number of at least three")
        if self.name != "majority" and self.workers != 1:
            raise ValueError(f"workers: only a majority has several, not {self.name!r}")

    @property
    def max_labels_per_item(self) -> int:
        """Return the largest number of labels that an item can need."""
        return 3 if self.name == "max_three" else self.workers


@dataclass(frozen=True, slots=True)
class ItemDecisions(Record):
    """The decision for each item, items in ascending order.

    `decisions` (n_items,) is 1 for A, 0 for B, NaN if there are too few labels. `n_labels` (n_items,) counts the
    labels that the strategy paid for. `n_unused` counts the labels beyond those it asked for.
    """

    items: tuple[object, ...]
    decisions: FloatArray
    n_labels: IntArray
    n_unused: int


@dataclass(frozen=True, slots=True)
class RequestProbabilities(Record):
    """Probabilities of the outcomes of a strategy on each request; the arrays have one shape, (n,) or (runs, n).

    `a_at_once` is A without a third label. `a_by_third` and `b_by_third` are A and B after a third label. The rest is
    B without a third label. `labels` is the number of labels without a third.
    """

    a_at_once: FloatArray
    a_by_third: FloatArray
    b_by_third: FloatArray
    labels: int


def item_decisions(values: npt.ArrayLike, items: npt.ArrayLike, strategy: Strategy) -> ItemDecisions:
    """Combine collected labels into one decision per item.

    A label is 1 for A and 0 for B; NaN is left out. The labels of an item count in the order of their rows, up to the
    number that the strategy asks for, and a majority is decided as soon as more than half of `workers` agree. For
    the strategy "fixed" the rows are those of its annotator.

    >>> labels, items = [1, 0, 1, 0, 0, 1], ["p", "p", "p", "q", "q", "q"]
    >>> result = item_decisions(labels, items, Strategy("max_three"))
    >>> result.decisions.tolist(), result.n_labels.tolist(), result.n_unused
    ([1.0, 0.0], [3, 2], 1)
    """
    labels = binary_vector(values, "values")
    positions, n_items = label_codes(np.asarray(items), "items", len(labels))
    names = np.empty(n_items, dtype=object)
    names[positions] = np.asarray(items)
    is_used = ~np.isnan(labels)
    labels, positions = labels[is_used], positions[is_used]
    order = np.argsort(positions, kind="stable")
    sizes = np.bincount(positions, minlength=n_items)
    label_number = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table = np.full((n_items, max(strategy.max_labels_per_item, 1)), np.nan)
    used = label_number < strategy.max_labels_per_item
    table[positions[order][used], label_number[used]] = labels[order][used]

    votes, against = np.nansum(table, axis=1), np.nansum(1 - table, axis=1)
    n_used = np.sum(~np.isnan(table), axis=1)
    n_paid = n_used
    need = strategy.max_labels_per_item // 2 + 1
    if strategy.name == "max_three":
        # If the first two agree, a third label was not requested.
        agree = table[:, 0] == table[:, 1]
        n_used = np.where(agree, 2, n_used)
        n_paid = np.where(agree & ~_is_counted_as_two(table[:, 0], strategy.counting), 3, n_used)
        votes, against = (
            np.where(agree, np.nansum(kind[:, :2], axis=1), kind.sum(axis=1)) for kind in (table, 1 - table)
        )
    decisions = np.full(n_items, np.nan)
    decisions[votes >= need] = 1.0
    decisions[against >= need] = 0.0
    return ItemDecisions(tuple(names.tolist()), decisions, n_paid, len(labels) - int(np.sum(n_used)))


def probabilities_from_labels(wins: npt.ArrayLike, n_labels: npt.ArrayLike, strategy: Strategy) -> RequestProbabilities:
    """Compute the probabilities of a strategy's outcomes on items with known labels, drawn without replacement.

    `wins` and `n_labels` count the labels for A and all labels of each item. It is an error if an item has fewer labels
    than the strategy asks for; so is the strategy "fixed", because no annotator labelled every item.

    >>> law = probabilities_from_labels([9, 5], [10, 10], Strategy("majority", 3))
    >>> law.a_at_once.round(4).tolist()
    [1.0, 0.5]
    """
    k, n = vector(wins, "wins"), vector(n_labels, "n_labels")
    if k.shape != n.shape:
        raise ValueError(f"n_labels: {len(n)} items where wins has {len(k)}")
    if np.any((k < 0) | (k > n) | (k != np.round(k)) | (n != np.round(n))) or np.isnan(k).any() or np.isnan(n).any():
        raise ValueError("wins: not whole numbers in 0..n_labels")
    if strategy.name == "fixed":
        raise ValueError("strategy: no annotator labelled every item, so the fixed worker cannot be replayed")
    few = np.flatnonzero(n < strategy.max_labels_per_item)
    if len(few):
        raise ValueError(
            f"n_labels: row {int(few[0])} has {n[few[0]]:g} labels, fewer than {strategy.max_labels_per_item}"
        )
    zero = np.zeros_like(k)
    if strategy.name != "max_three":
        drawn = strategy.max_labels_per_item
        votes = np.arange(drawn // 2 + 1, drawn + 1)
        ways = special.comb(k[:, None], votes) * special.comb((n - k)[:, None], drawn - votes)
        return RequestProbabilities(ways.sum(axis=1) / special.comb(n, drawn), zero, zero, drawn)
    pairs = n * (n - 1)
    split = 2 * k * (n - k) / pairs
    return RequestProbabilities(k * (k - 1) / pairs, split * (k - 1) / (n - 2), split * (n - k - 1) / (n - 2), 2)


def _is_counted_as_two(agreed_on: FloatArray, counting: str) -> npt.NDArray[np.bool_]:
    if counting == "on_disagreement":
        return np.ones(len(agreed_on), dtype=bool)
    return np.asarray(agreed_on == (1.0 if counting == "unless_both_a" else 0.0))
