"""The cost of a decision in labels, and what each labelling strategy would have cost."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from studies.protocols import REGISTRY
from studies.protocols.two_choice import PREFERENCE

from . import layouts
from .comparison_labels import ComparisonLabels, logged_stopping_outcome
from .preference import paper_decision_estimate

if TYPE_CHECKING:
    from analysis.stats.choice import Strategy
    from analysis.stats.results import Estimate

REPLAYED_STRATEGIES = (("one", 1), ("max_three", 1), ("majority", 3), ("majority", 5), ("majority", 7))
REPLAY_RUNS = 1000
# With fewer items a replay is meaningless, because the rule needs at least ten unanimous answers.
MIN_ITEMS = 20


def labels_paid_and_strategy_replay_blocks(
    comparison_labels: ComparisonLabels, context: AnalysisContext
) -> list[Block]:
    spent = _labels_paid_estimates(comparison_labels)
    return [
        Block(
            "choice.effort",
            f"Labels paid ({comparison_labels.title})",
            "recommended",
            estimates=spent,
            tables=[layouts.labels_paid_table(spent)],
            other_results={
                "section": comparison_labels.section.position,
                "decided": logged_stopping_outcome(comparison_labels),
            },
        ),
        *_replay_blocks(comparison_labels, context),
    ]


def _labels_paid_estimates(comparison_labels: ComparisonLabels) -> tuple["Estimate", ...]:
    """Return the labels per item, and the labels that the paper's bound would have needed."""
    import numpy as np

    from analysis.stats.results import Estimate

    labels, values = comparison_labels.answers.n_labels, comparison_labels.answers.values
    if not len(labels):
        return ()
    decided = int(np.sum(~np.isnan(values)))
    common: dict[str, Any] = {"unit": "item", "n": len(labels), "n_rows": int(labels.sum())}
    estimates = [
        Estimate(
            analysis="choice.effort.labels",
            estimand="labels paid for an item",
            estimate=float(labels.mean()),
            detail={
                "labels": int(labels.sum()),
                "items": len(labels),
                "items_answered": decided,
                "items_open": int(np.sum(~comparison_labels.answers.is_complete)),
                "strategy": REGISTRY[comparison_labels.section.protocol].cleaned_settings(comparison_labels.section)[
                    "strategy"
                ],
            },
            **common,
        )
    ]
    first = paper_decision_estimate(comparison_labels)
    for estimate in (first, *first.sensitivity):
        n = estimate.detail.get("n_decision")
        answered_items = np.flatnonzero(~np.isnan(values))
        paid = int(labels[: answered_items[n - 1] + 1].sum()) if n else None
        estimates.append(
            Estimate(
                analysis=f"choice.effort.{estimate.settings['reading']}",
                mode="paper",
                estimand=f"labels paid up to the decision of Hoeffding's rule, reading “{estimate.settings['reading']}”",
                estimate=None if paid is None else float(paid),
                status="ok" if paid else "not_applicable",
                reason="" if paid else "the bound was not crossed",
                detail={"items": n, "winner": estimate.detail.get("winner")},
                warnings=estimate.warnings,
                settings=estimate.settings,
                **common,
            )
        )
    if comparison_labels.stopping_status is not None:
        estimates.append(
            Estimate(
                analysis="choice.effort.overrun",
                estimand="labels that came after the decision",
                estimate=float(comparison_labels.stopping_status.n_overrun),
                settings={"rule": comparison_labels.stopping_status.rule},
                detail={
                    "stopped_at": comparison_labels.stopping_status.stopped_at,
                    "of": comparison_labels.stopping_status.unit,
                },
                **common,
            )
        )
    return tuple(comparison_labels.comparison.tag_estimate(estimate, PREFERENCE) for estimate in estimates)


def _replay_blocks(comparison_labels: ComparisonLabels, context: AnalysisContext) -> list[Block]:
    """Replay each labelling strategy by drawing from the existing labels, and return its cost.

    As in the paper, all use the same items: those with enough labels for the most demanding strategy that half of the items allow.
    """
    import numpy as np

    from analysis.stats import choice, stopping_boundaries

    # Third labels exist only for items in disagreement, so with them the draw would find disagreement too often.
    rows = comparison_labels.paper[
        ~comparison_labels.paper["is_third"].to_numpy(bool) & comparison_labels.paper["value"].isin([0.0, 1.0])
    ]
    numbers, item_indices = np.unique(rows["item_number"].to_numpy(np.int64), return_inverse=True)
    n_labels = np.bincount(item_indices, minlength=len(numbers))
    wins = np.bincount(item_indices, weights=rows["value"].to_numpy(float), minlength=len(numbers))
    delta = REGISTRY[comparison_labels.section.protocol].cleaned_settings(comparison_labels.section)["delta"]
    replays: dict[str, list[Estimate]] = {"paper": [], "recommended": []}
    strategies: list[Strategy] = [choice.Strategy(*settings) for settings in REPLAYED_STRATEGIES]
    # With one label per item there is nothing to draw.
    fewest = max(MIN_ITEMS, int((n_labels > 1).sum()) / 2)
    replayed = [
        strategy for strategy in strategies if (n_labels >= max(2, strategy.max_labels_per_item)).sum() >= fewest
    ]
    if not replayed:
        return []
    enough = n_labels >= max(2, *(strategy.max_labels_per_item for strategy in replayed))
    rule = stopping_boundaries.hoeffding_boundaries(int(enough.sum()), delta=delta)
    for strategy in replayed:
        name, workers = strategy.name, strategy.workers
        for mode, reading in (("paper", "stays"), ("recommended", "first")):
            rng = context.rng("replay", comparison_labels.comparison.key, name, workers, mode)
            effort = choice.effort_from_resampled_labels(
                wins[enough], n_labels[enough], strategy, rule=rule, reading=reading, runs=REPLAY_RUNS, rng=rng
            )
            summary = choice.estimate_mean_labels_to_decision(effort, mode=mode, rng=rng)
            strategy_label = (
                f"{workers} workers"
                if name == "majority"
                else {"one": "one worker", "max_three": "max three workers"}[name]
            )
            replays[mode].append(
                comparison_labels.comparison.tag_estimate(
                    replace(
                        summary,
                        settings={
                            **summary.settings,
                            "system": strategy_label,
                            # Paper blocks stay as they are.
                            **({} if mode == "paper" else {"population": "replays, for exactly these answers"}),
                        },
                    ),
                    PREFERENCE,
                )
            )
    note = "Labels until Hoeffding's bound decides. Each strategy is replayed on the same items; the interval applies only to these items."
    tables = {
        "recommended": [layouts.labels_needed_by_strategy_table(replays["recommended"], replays["paper"])],
        "paper": [],
    }
    return [
        Block(
            "choice.replay",
            f"Labelling effort of each strategy ({comparison_labels.title})",
            mode,
            estimates=tuple(estimates),
            tables=tables[mode],
            note=note,
        )
        for mode, estimates in replays.items()
    ]
