"""Prepare labels of pairwise choices for the statistics: 1 for x, 0 for y, 1/2 for a tie, else missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.protocols.blocks.comparisons import (
    Comparison,
    planned_comparisons,
    read_contrasts,
    unplanned_comparison,
)
from studies.protocols import REGISTRY
from studies.protocols.base.fields import TIE
from studies.protocols.base.pairs import unordered_pair_key
from studies.protocols.two_choice import PREFERENCE

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.choice import ItemDecisions, Strategy

STRATEGY_NAMES = {"one": "one", "fixed": "fixed", "majority": "majority", "max_three": "max_three"}


def planned_comparisons_then_other_pairs(
    section: Any, *, other_pairs: Sequence[frozenset[str]] = ()
) -> list[Comparison]:
    """Return the planned comparisons of the section, one for each question that they concern, then unplanned pairs."""
    comparisons: list[Comparison] = []
    contrasts = read_contrasts(section)
    for question in section.questions.all():
        planned = planned_comparisons(contrasts, section, question.criterion, question.key, PREFERENCE)
        planned_pairs = {frozenset((comparison.x, comparison.y)) for comparison in planned}
        comparisons += planned
        for pair in other_pairs:
            if pair not in planned_pairs:
                x, y = sorted(pair)
                comparisons.append(unplanned_comparison(section, x, y, question.criterion, question.key))
    return comparisons


def comparison_pair_key(comparison: Comparison) -> str:
    """Return the key of a pair, made from both names, as in the planned labels."""
    return unordered_pair_key(comparison.x, comparison.y)


def comparison_rows_with_values(rows: "DataFrame", comparison: Comparison) -> "DataFrame":
    """Return the rows of one comparison, with ``value`` for x."""
    import numpy as np

    own_rows = rows[
        (rows["section"] == comparison.section)
        & (rows["question"] == comparison.question)
        & (rows["pair"] == comparison_pair_key(comparison))
    ].copy()
    chosen, choice = own_rows["chosen_system"], own_rows["choice"]
    own_rows["value"] = np.select(
        [chosen == comparison.x, chosen == comparison.y, choice == TIE], [1.0, 0.0, 0.5], default=np.nan
    )
    return own_rows


def labelling_strategy_of(section: Any) -> "Strategy | None":
    """Return the section's labelling strategy, or None."""
    from analysis.stats.choice import Strategy

    settings = REGISTRY[section.protocol].cleaned_settings(section)
    name = STRATEGY_NAMES.get(settings["strategy"])
    return Strategy(name, settings["workers"] if name == "majority" else 1) if name else None


@dataclass(frozen=True, slots=True)
class FinalAnswers:
    """The final answers of a comparison's items, in item order: 1 for x, 0 for y, and NaN without a majority.

    An answer needs all labels that the strategy requires. ``n_labels``: the paid labels of each item. ``is_complete``:
    whether the item needs no more labels, by the strategy or because it was retired.
    """

    items: tuple[Any, ...]
    values: "np.ndarray"
    n_labels: "np.ndarray"
    is_complete: "np.ndarray"


def final_item_answers(rows: "DataFrame", section: Any) -> FinalAnswers:
    """Return one answer per item. Ties and "cannot judge" are paid labels that count for neither system.

    ``rows``: the given labels of one comparison (see ``comparison_rows_with_values``), with ``item_number`` and ``received_at``.
    """
    import numpy as np

    from analysis.stats.choice import item_decisions

    rows = rows.sort_values(["item_number", "received_at", "id"], kind="stable")
    numbers = rows["item_number"].to_numpy(np.int64)
    strategy = labelling_strategy_of(section)
    items, counts = np.unique(numbers, return_counts=True)
    votes = rows["value"].where(rows["value"] != 0.5).to_numpy(float)
    if strategy is None:
        sums = np.zeros(len(items))
        n_votes = np.zeros(len(items))
        item_indices = np.searchsorted(items, numbers)
        is_vote = ~np.isnan(votes)
        np.add.at(sums, item_indices[is_vote], votes[is_vote])
        np.add.at(n_votes, item_indices[is_vote], 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = sums / n_votes
        values = np.where(share > 0.5, 1.0, np.where(share < 0.5, 0.0, np.nan))
        return FinalAnswers(tuple(items.tolist()), values, counts, np.ones(len(items), dtype=bool))
    is_retired = np.isin(items, numbers[rows["is_retired"].to_numpy(bool)])
    n_needed = {"majority": strategy.max_labels_per_item, "max_three": 3}.get(strategy.name, 1)
    # Use as many labels as the strategy needs, in order of arrival. An extra label from a replacement is not used.
    item_indices = np.arange(len(numbers)) - np.searchsorted(numbers, numbers)
    used = item_indices < n_needed
    item_answers: ItemDecisions = item_decisions(votes[used], numbers[used], strategy)
    labels: dict[int, list] = {}
    for number, value, skipped in zip(numbers, rows["value"], rows["skip_reason"], strict=True):
        labels.setdefault(int(number), []).append(skipped or value)
    if strategy.name == "max_three":
        complete = [
            len(item_labels) > 2 or (len(item_labels) == 2 and item_labels[0] == item_labels[1])
            for item_labels in labels.values()
        ]
    else:
        complete = [len(item_labels) >= n_needed for item_labels in labels.values()]
    has_all = np.asarray(complete, dtype=bool)
    # An item that lacks labels has no answer. Otherwise incomplete items would look unanimous.
    values = np.where(has_all, item_answers.decisions, np.nan)
    return FinalAnswers(tuple(items.tolist()), values, np.minimum(counts, n_needed), has_all | is_retired)


def third_label_mask(given_rows: "DataFrame", section: Any) -> "np.ndarray":
    """Return which rows are third labels. Only items in disagreement get them, so they do not count for shares.

    ``given_rows``: all given labels, also those of excluded people, because earlier labels decide which label is the
    third. The batches of imported answers are unknown, so an imported label is a third one if two others came before
    it.
    """
    import numpy as np

    if REGISTRY[section.protocol].cleaned_settings(section)["strategy"] != "max_three":
        return np.zeros(len(given_rows), dtype=bool)
    order = given_rows.sort_values(["item", "question", "received_at", "id"], kind="stable")
    label_rank = order.groupby(["item", "question"], sort=False).cumcount()
    is_late = (label_rank.reindex(given_rows.index) >= 2).to_numpy(bool)
    return np.where(given_rows["is_imported"].to_numpy(bool), is_late, given_rows["is_top_up"].to_numpy(bool))
