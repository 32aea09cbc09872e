"""Prepare labels of pairwise choices for the statistics: 1 for x, 0 for y, 1/2 for a tie, else missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.planned_labels import PlannedLabels
from analysis.protocols import StoppingStatus
from analysis.protocols.blocks.comparisons import Comparison, other_comparisons, planned_comparisons, read_contrasts
from analysis.protocols.blocks.populations import SECOND_SAMPLE
from analysis.protocols.kinds.answers import column_arrays, settings_of
from studies.design.subjects import join_words
from studies.protocols.base.fields import TIE
from studies.protocols.base.pairs import unordered_pair_key
from studies.protocols.two_choice import PREFERENCE

from ..families import declared_family_sizes

if TYPE_CHECKING:
    import numpy as np
    from pandas import DataFrame

    from analysis.stats.choice import ItemDecisions, Strategy


STRATEGIES = ("one", "fixed", "majority", "max_three")


def planned_comparisons_then_other_pairs(
    section: Any, *, other_pairs: Sequence[Sequence[str]] = ()
) -> list[Comparison]:
    """Return the planned comparisons of the section, one for each question that they concern, then unplanned pairs."""
    comparisons: list[Comparison] = []
    contrasts, pairs = read_contrasts(section), [(min(pair), max(pair)) for pair in other_pairs]
    for question in section.questions.all():
        planned = planned_comparisons(contrasts, section, question.criterion, question.key, PREFERENCE)
        comparisons += [*planned, *other_comparisons(section, planned, pairs, question.criterion, question.key)]
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

    settings = settings_of(section)
    name = settings["strategy"]
    return Strategy(name, settings["workers"] if name == "majority" else 1) if name in STRATEGIES else None


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

    if settings_of(section)["strategy"] != "max_three":
        return np.zeros(len(given_rows), dtype=bool)
    order = given_rows.sort_values(["item", "question", "received_at", "id"], kind="stable")
    label_rank = order.groupby(["item", "question"], sort=False).cumcount()
    is_late = (label_rank.reindex(given_rows.index) >= 2).to_numpy(bool)
    return np.where(given_rows["is_imported"].to_numpy(bool), is_late, given_rows["is_top_up"].to_numpy(bool))


# Stopping rules: an anytime-valid rule over annotators, or the paper's bound over items.
#
# The anytime-valid rule takes annotators in the order of their claims, each with the mean of their planned labels.
# Third labels count only for the final answers, because only items in disagreement get one. Each comparison is tested
# at its level divided by the number of claims in its declared family, or without one by the number of the section's
# primary comparisons.
#
# Source: Thorleiksdóttir et al. 2022, section 3.2, for the paper's bound; ``analysis.stats.sequential`` for the
# other.


N_SIMULATIONS = 200


def primary_comparison_stopping_statuses(planned_labels: Any, section: Any, seed: str = "") -> list[StoppingStatus]:
    """Return the status of the section's rule for each primary comparison, from ``analysis.data.planned_labels``."""
    settings = settings_of(section)
    primary = [
        comparison for comparison in planned_comparisons_then_other_pairs(section) if comparison.role == "primary"
    ]
    if settings["stopping"] == "first":
        return [paper_stopping_status(planned_labels, section, comparison) for comparison in primary]
    if settings["stopping"] == "anytime":
        sizes = declared_family_sizes(section.study)
        return [
            anytime_stopping_status(
                planned_labels,
                section,
                comparison,
                level=1 - comparison.level / sizes.get(comparison.family, len(primary)),
                seed=seed,
            )
            for comparison in primary
        ]
    return []


def anytime_stopping_status(
    planned_labels: Any, section: Any, comparison: Comparison, *, level: float, seed: str = ""
) -> StoppingStatus:
    """Return the e-process of a comparison and its status. ``level`` is the confidence for all checks together."""
    import math

    import numpy as np

    from analysis.stats import sequential
    from analysis.stats.seeds import seeded_generator

    planned = planned_labels.rows[
        (planned_labels.rows["section"] == section.position) & ~planned_labels.rows["is_top_up"]
    ]
    rows = comparison_rows_with_values(planned, comparison)
    first_open = rows.loc[~rows["is_settled"], "claim"].min()
    passed = rows.loc[rows["is_settled"] & ~(rows["claim"] >= first_open), "assignment"]
    # An open claim holds the queue. Whether it counts is decided when it is settled.
    rows = rows[rows["is_counted"] | ~rows["is_settled"]]
    units = sequential.annotator_means_in_claim_order(
        rows["value"].where(rows["is_known"]).to_numpy(float),
        rows["annotator"].to_numpy(object),
        rows["claim"].to_numpy(np.int64),
        is_settled=rows["is_settled"].to_numpy(bool),
    )
    test = sequential.sequential_test(
        units.values,
        level=level,
        margin=comparison.margin,
        annotators=units.annotators,  # type: ignore[arg-type]  # NumPy takes a tuple of any objects
    )
    is_decided = test.stopped_at is not None
    labels_per_annotator = float(np.mean(units.n_labels)) if len(units.n_labels) else float(section.m)
    # If batches hold only some of the pairs, assume that the same share of future annotators will see this pair.
    share_with_pair = rows["annotator"].nunique() / max(1, planned["annotator"].nunique())
    target = round((section.study.target_n or 0) * share_with_pair)
    remaining: dict[str, Any] | None = None
    if not is_decided and len(units.values) > 1 and target > len(units.values):
        forecast = sequential.predict_remaining_units(
            units.values,
            level=level,
            margin=comparison.margin,
            budget=target,
            runs=N_SIMULATIONS,
            rng=seeded_generator(seed or "0", "remaining", comparison.key, len(units.values)),
        )
        remaining = {
            "median": None if forecast.median is None else round(forecast.median * labels_per_annotator),
            "high": None if forecast.high is None else round(forecast.high * labels_per_annotator),
            "share_stopping": forecast.share_stopping,
            "labels_left": round(forecast.horizon * labels_per_annotator),
        }
    return StoppingStatus(
        name=comparison.key,
        label=comparison.label,
        rule="anytime",
        unit="annotator",
        evidence=tuple((np.maximum.accumulate(test.log_e) / math.log(10)).tolist()) if len(test.log_e) else (),
        threshold=math.log10(1 / (1 - level)),
        is_decided=is_decided,
        verdict=test.verdict,
        stopped_at=test.stopped_at,
        n_overrun=int(np.sum(units.n_labels[test.stopped_at :])) if is_decided else 0,
        remaining=remaining,
        estimate=test.estimate,
        passed=frozenset(passed.tolist()),
        running=sequential.RunningShare(sequential.running_mean(units.values), test.sequence.low, test.sequence.high),
    )


def paper_stopping_status(planned_labels: Any, section: Any, comparison: Comparison) -> StoppingStatus:
    """Return the paper's bound at its first crossing, over the longest run of complete items, in item order."""
    import numpy as np

    from analysis.stats import sequential, stopping_boundaries

    delta = settings_of(section)["delta"]
    rows = planned_labels.rows
    settled = comparison_rows_with_values(rows[rows["is_given"] & rows["is_settled"] & rows["is_known"]], comparison)
    rows = settled[settled["is_counted"]]
    answers = final_item_answers(rows, section)
    pair = comparison_pair_key(comparison)
    planned = [
        number for position, number, names in planned_labels.items if (position, names) == (section.position, pair)
    ]
    complete = dict(zip(answers.items, answers.is_complete, strict=True))
    n = next((n for n, item in enumerate(planned) if not complete.get(item, False)), len(planned))
    item_values = dict(zip(answers.items, answers.values, strict=True))
    item_labels = dict(zip(answers.items, answers.n_labels, strict=True))
    run = [item for item in planned[:n] if item_values[item] == item_values[item]]
    values = np.asarray([item_values[item] for item in run], dtype=float)
    estimate = sequential.hoeffding_decision(values, delta=delta, reading="first")
    decided = estimate.detail.get("n_decision")
    counts = np.arange(1, len(values) + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.abs(np.cumsum(values) / counts - 0.5) / stopping_boundaries.hoeffding_radius(counts, delta)
    verdict = {"a": "a_better", "b": "b_better"}.get(str(estimate.detail.get("winner")), "inconclusive")
    return StoppingStatus(
        name=comparison.key,
        label=comparison.label,
        rule="first",
        unit="item",
        evidence=tuple(evidence.tolist()),
        threshold=1.0,
        is_decided=decided is not None,
        verdict=verdict if len(values) else None,
        stopped_at=decided,
        n_overrun=int(sum(item_labels[item] for item in run[decided:])) if decided else 0,
        passed=frozenset(settled.loc[settled["item_number"].isin(planned[:n]), "assignment"].tolist()),
        estimate=estimate,
        running=sequential.hoeffding_running_share(values, delta=delta),
    )


# The labels of one comparison: those given in time, those that rules keep, the final answers and the stopping status.


@dataclass(frozen=True, slots=True)
class ComparisonLabels:
    """The labels of one comparison: all labels given in time, those that the rules keep, and the final answers.

    ``is_third`` marks third labels in each of them. ``n_submitted``: the number of annotators who
    finished a batch of the section, with any pairs.
    """

    section: Any
    comparison: Comparison
    given: "DataFrame"
    kept: "DataFrame"
    paper: "DataFrame"
    answers: FinalAnswers
    stopping_status: StoppingStatus | None
    n_submitted: int

    @property
    def comparisons(self) -> tuple[Comparison]:
        return (self.comparison,)

    @property
    def settings(self) -> dict[str, Any]:
        return settings_of(self.section)

    @property
    def title(self) -> str:
        return join_words(f"{self.comparison.x} and {self.comparison.y}", self.comparison.subject.note)

    @property
    def anytime_status(self) -> StoppingStatus | None:
        """Return the status of the anytime-valid rule if its estimate is the headline, which is then about people only."""
        status = self.stopping_status
        return status if status is not None and status.rule == "anytime" and status.estimate is not None else None

    @property
    def shares(self) -> "DataFrame":
        """Return the labels that count for shares: all except third labels."""
        return self.kept[~self.kept["is_third"].to_numpy(bool)]

    @property
    def rows_with_values(self) -> "DataFrame":
        """Return the labels of the share of choices. A tie counts half; "cannot judge" is left out."""
        return self.shares[self.shares["value"].notna()]

    @property
    def values_annotators_and_prompts(self) -> list[Any]:
        """Return the labels of the share of choices, with their annotators and their second sample."""
        return column_arrays(self.rows_with_values, "value", "annotator", SECOND_SAMPLE)


def read_comparison_labels(
    context: AnalysisContext, planned_labels: PlannedLabels, section: Any
) -> list[ComparisonLabels]:
    rows = context.rows
    kept_ids, paper_ids = (set(rows.loc[rows[column].astype(bool), "id"]) for column in ("is_kept", "is_kept_paper"))
    statuses = {
        status.name: status for status in primary_comparison_stopping_statuses(planned_labels, section, context.seed)
    }
    section_rows = planned_labels.rows[planned_labels.rows["section"] == section.position]
    n_submitted = section_rows.loc[section_rows["is_submitted"] & ~section_rows["is_top_up"], "assignment"].nunique()
    pairs = [pair.split("\x1f") for pair in sorted(set(section_rows["pair"])) if pair.count("\x1f") == 1]
    labels_by_comparison = []
    for compared in planned_comparisons_then_other_pairs(section, other_pairs=pairs):
        rows = comparison_rows_with_values(section_rows, compared)
        given_rows = rows[rows["is_given"] & rows["is_submitted"]]
        given_rows = given_rows.assign(is_third=third_label_mask(given_rows, section))
        paper_rows = given_rows[given_rows["id"].isin(paper_ids)]
        labels_by_comparison.append(
            ComparisonLabels(
                section,
                compared,
                given_rows,
                given_rows[given_rows["id"].isin(kept_ids)],
                paper_rows,
                final_item_answers(paper_rows, section),
                statuses.get(compared.key),
                n_submitted,
            )
        )
    return labels_by_comparison


def logged_stopping_outcome(labels: ComparisonLabels) -> dict[str, Any] | None:
    """Return the logged outcome of this comparison, if the study closed itself."""
    event = labels.section.study.audit_events.filter(verb="decide").order_by("pk").last()
    outcomes = event.data.get("outcomes", []) if event else []
    return next((outcome for outcome in outcomes if outcome.get("comparison") == labels.comparison.key), None)
