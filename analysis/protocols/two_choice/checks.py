"""Check the labels: agreement, the effect of the side, and a ranking of the systems."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.data.frames import page_of_slot
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.common_tables import ranking_tables
from analysis.protocols.blocks.populations import SECOND_SAMPLE, second_sample_noun, table_population
from analysis.protocols.kinds.answers import column_arrays
from analysis.protocols.kinds.scores import judged_by_several
from analysis.protocols.kinds.strengths import fit_strengths, named_by_system, plain_fit, without_intervals_if_too_few
from studies.design.subjects import in_parentheses
from studies.protocols.two_choice import PREFERENCE

from . import layouts
from .labels import ComparisonLabels, logged_stopping_outcome
from .preference import paper_decision_estimate

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.choice import Strategy
    from analysis.stats.results import Estimate


FIRST_LABEL = "A"


def agreement_and_side_blocks(labels: ComparisonLabels, context: AnalysisContext) -> list[Block]:
    agreement, sides = (
        agreement_estimates(labels, context),
        _side_effect_estimates(labels, context),
    )
    return [
        Block(
            "choice.agreement",
            f"Agreement, by side of the screen and by system ({labels.title})",
            estimates=agreement,
            tables=[layouts.agreement_table(agreement)],
            note="The same labels coded twice. Sides are random, so each side is chosen half of the time. A much better system is chosen more "
            "often, so kappa by system falls without more disagreement. Thorleiksdóttir et al. 2022 print kappa by side.",
        ),
        Block(
            "choice.position",
            f"Whether the side mattered ({labels.title})",
            estimates=sides,
            tables=[layouts.position_effects_table(sides)],
        ),
    ]


def _x_is_first(rows: "DataFrame"):
    """Return 1 if x was on the first side, 0 on the second, and NaN if nothing was chosen."""
    import numpy as np

    value, is_first = rows["value"].to_numpy(float), (rows["label"] == FIRST_LABEL).to_numpy(bool)
    return np.where(np.isin(value, (0.0, 1.0)), np.where(value == 1, is_first, ~is_first), np.nan).astype(float)


def agreement_estimates(labels: ComparisonLabels, context: AnalysisContext) -> tuple["Estimate", ...]:
    from analysis.stats import choice

    # A third label is requested if two differ, and agrees with one of them. With it, even random answers would seem to agree.
    rows = labels.shares[labels.shares["value"].isin([0.0, 1.0])]
    rows = judged_by_several(rows, "item").drop_duplicates(["item", "annotator"])
    if not len(rows):
        return ()
    agreement = choice.choice_agreement(
        rows["value"].to_numpy(float),
        _x_is_first(rows),
        *column_arrays(rows, "item", "annotator"),
        level=context.level,
        resamples=min(999, context.resamples),
        rng=context.rng("agreement", labels.comparison.key),
    )
    shares = {
        "observed_by_side": agreement.percent_agreement_position,
        "observed_by_system": agreement.percent_agreement_system,
        "prevalence_by_side": agreement.prevalence_position,
        "prevalence_by_system": agreement.prevalence_system,
    }
    coded = (
        ("Fleiss' kappa by side of the screen", agreement.kappa_position),
        ("Fleiss' kappa by system", agreement.kappa_system),
        ("Gwet's AC1 by side of the screen", agreement.ac1_position),
        ("Gwet's AC1 by system", agreement.ac1_system),
    )
    return tuple(
        labels.comparison.tag_estimate(
            replace(estimate, estimand=label, detail={**estimate.detail, **shares}), PREFERENCE
        )
        for label, estimate in coded
    )


def _side_effect_estimates(labels: ComparisonLabels, context: AnalysisContext) -> tuple["Estimate", ...]:
    from analysis.stats import choice

    rows = labels.shares[labels.shares["value"].isin([0.0, 1.0])]
    if not len(rows):
        return ()
    effect = choice.preference_share_difference_by_position(
        rows["value"].to_numpy(float), _x_is_first(rows), *column_arrays(rows, "annotator"), level=context.level
    )
    return (labels.comparison.tag_estimate(effect, PREFERENCE),)


def ranking_blocks(comparisons: Sequence[ComparisonLabels], context: AnalysisContext) -> list[Block]:
    """Return strengths of three or more systems for each question: Davidson's model with ties, else Bradley and Terry's."""
    import pandas as pd

    from analysis.stats.cluster_variances import TOO_FEW_ITEMS

    blocks = []
    for question in dict.fromkeys(labels.comparison.question for labels in comparisons):
        own_labels = [labels for labels in comparisons if labels.comparison.question == question]
        own_comparisons = [labels.comparison for labels in own_labels]
        systems = sorted({name for compared in own_comparisons for name in (compared.x, compared.y)})
        if len(systems) < 3:
            continue
        number = {name: n for n, name in enumerate(systems)}
        pairs = [(number[compared.x], number[compared.y]) for compared in own_comparisons]
        rows = pd.concat([labels.rows_with_values for labels in own_labels])
        population = table_population(own_comparisons, rows)
        if any(labels.anytime_status is not None for labels in own_labels):
            population = "people"  # the rule counts people, so the comparisons are about exactly these prompts
        answers = [labels.values_annotators_and_prompts for labels in own_labels]
        fit = fit_strengths(
            [(*pair, *own) for pair, own in zip(pairs, answers, strict=True)],
            population,
            n_systems=len(systems),
            level=context.level,
        )
        if fit is None:
            continue
        n_prompts = TOO_FEW_ITEMS if population == "people" else rows[SECOND_SAMPLE].nunique()
        strengths = without_intervals_if_too_few(
            named_by_system(fit.strengths, systems, lambda name: f"log-odds of {name} against the mean of all"),
            n_prompts,
            second_sample_noun(rows),
        )
        fitted = fit.probabilities + fit.tie_probabilities / 2
        verdict = plain_fit(fit, systems, observed=fit.observed, probabilities=fitted)
        where = own_comparisons[0].subject.note
        note = (
            "Strengths in log-odds, their sum 0. Ties are part of the model (Davidson's). "
            "Clusters are the annotators and, if there are five or more, the prompts."
        )
        blocks.append(
            Block(
                "choice.ranking",
                f"Ranking of the systems{in_parentheses(where)}",
                estimates=tuple(strengths),
                other_results=verdict,
                tables=ranking_tables(strengths, verdict, where, note),
                note=note,
            )
        )
    return blocks


# The cost of a decision in labels, and what each labelling strategy would have cost.


REPLAYED_STRATEGIES = (("one", 1), ("max_three", 1), ("majority", 3), ("majority", 5), ("majority", 7))
REPLAY_RUNS = 1000
# The system that was named first, for each way in which the paper may have counted third labels.
COUNTED_BY_THE_PAPER = {"unless_both_a": "x", "unless_both_b": "y"}
# With fewer items a replay is meaningless, because the rule needs at least ten unanimous answers.
MIN_ITEMS = 20


def labels_paid_and_strategy_replay_blocks(labels: ComparisonLabels, context: AnalysisContext) -> list[Block]:
    spent = _labels_paid_estimates(labels)
    return [
        Block(
            "choice.effort",
            f"Labels paid ({labels.title})",
            estimates=spent,
            tables=[layouts.labels_paid_table(spent)],
            other_results={
                "section": labels.section.position,
                "decided": logged_stopping_outcome(labels),
            },
        ),
        *strategy_replay_blocks(labels, context),
    ]


def _labels_paid_estimates(labels: ComparisonLabels) -> tuple["Estimate", ...]:
    """Return the labels per item, and the labels that the paper's bound would have needed."""
    import numpy as np

    from analysis.stats.results import Estimate

    n_labels, values = labels.answers.n_labels, labels.answers.values
    if not len(n_labels):
        return ()
    decided = int(np.sum(~np.isnan(values)))
    common: dict[str, Any] = {"unit": "item", "n": len(n_labels), "n_rows": int(n_labels.sum())}
    estimates = [
        Estimate(
            analysis="choice.effort.labels",
            estimand="labels paid for an item",
            estimate=float(n_labels.mean()),
            detail={
                "labels": int(n_labels.sum()),
                "items": len(n_labels),
                "items_answered": decided,
                "items_open": int(np.sum(~labels.answers.is_complete)),
                "strategy": labels.settings["strategy"],
            },
            **common,
        )
    ]
    first = paper_decision_estimate(labels)
    for estimate in (first, *first.sensitivity):
        n = estimate.detail.get("n_decision")
        answered_items = np.flatnonzero(~np.isnan(values))
        paid = int(n_labels[: answered_items[n - 1] + 1].sum()) if n else None
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
    if labels.stopping_status is not None:
        estimates.append(
            Estimate(
                analysis="choice.effort.overrun",
                estimand="labels that came after the decision",
                estimate=float(labels.stopping_status.n_overrun),
                settings={"rule": labels.stopping_status.rule},
                detail={
                    "stopped_at": labels.stopping_status.stopped_at,
                    "of": labels.stopping_status.unit,
                },
                **common,
            )
        )
    return tuple(labels.comparison.tag_estimate(estimate, PREFERENCE) for estimate in estimates)


def work_time_blocks(comparisons: Sequence[ComparisonLabels], context: AnalysisContext) -> list[Block]:
    """Return the work time of a label: the time of its page, of each comparison and of all together."""
    import pandas as pd

    from analysis.stats import choice

    if not comparisons:
        return []
    slots = context.rows.set_index("id")["slot"]
    parts, estimates = [], []
    for labels in comparisons:
        rows = labels.kept[["id", "assignment", "annotator"]]
        keys = map(page_of_slot, rows["id"].map(slots).astype(str))
        seconds = [
            context.page_seconds.get(assignment, {}).get(key)
            for assignment, key in zip(rows["assignment"], keys, strict=True)
        ]
        on_page = len(labels.section.questions.all())
        parts.append(rows.assign(seconds=pd.Series(seconds, rows.index, dtype=float), on_page=on_page))
        found = choice.label_work_time(*column_arrays(parts[-1], "seconds", "annotator", "on_page"))
        estimates.append(labels.comparison.tag_estimate(found, PREFERENCE))
    if len(comparisons) > 1:
        estimates.append(choice.label_work_time(*column_arrays(pd.concat(parts), "seconds", "annotator", "on_page")))
    return [
        Block(
            "choice.times",
            "Work time of a label",
            estimates=tuple(estimates),
            tables=[layouts.work_times_table(estimates)],
        )
    ]


def strategy_replay_blocks(labels: ComparisonLabels, context: AnalysisContext) -> list[Block]:
    """Replay each labelling strategy by drawing from the existing labels, and return its cost.

    As in the paper, all use the same items: those with enough labels for the most demanding strategy that half of the items
    allow. With further values of delta, the cost is also that of the paper's Table 6, whose third labels were counted
    unless both first labels chose the system that its file names first; no other file says which one that is.
    """
    import numpy as np

    from analysis.stats import choice, stopping_boundaries

    # Third labels exist only for items in disagreement, so with them the draw would find disagreement too often.
    rows = labels.paper[~labels.paper["is_third"].to_numpy(bool) & labels.paper["value"].isin([0.0, 1.0])]
    numbers, item_indices = np.unique(rows["item_number"].to_numpy(np.int64), return_inverse=True)
    n_labels = np.bincount(item_indices, minlength=len(numbers))
    wins = np.bincount(item_indices, weights=rows["value"].to_numpy(float), minlength=len(numbers))
    strategies = [choice.Strategy(*settings) for settings in REPLAYED_STRATEGIES]
    # With one label per item there is nothing to draw.
    fewest = max(MIN_ITEMS, int((n_labels > 1).sum()) / 2)
    replayed = [
        strategy for strategy in strategies if (n_labels >= max(2, strategy.max_labels_per_item)).sum() >= fewest
    ]
    if not replayed:
        return []
    enough = n_labels >= max(2, *(strategy.max_labels_per_item for strategy in replayed))
    deltas = sorted({labels.settings["delta"], *context.deltas}, reverse=True)
    if len(deltas) > 1 and choice.Strategy("max_three") in replayed:
        replayed += [choice.Strategy("max_three", counting=counting) for counting in COUNTED_BY_THE_PAPER]

    def replay(strategy: choice.Strategy, delta: float, mode: str, reading: str) -> "Estimate":
        # Each delta and each count reads the same draws.
        rng = context.rng("replay", labels.comparison.key, strategy.name, strategy.workers, mode)
        rule = stopping_boundaries.hoeffding_boundaries(int(enough.sum()), delta=delta)
        effort = choice.effort_from_resampled_labels(
            wins[enough], n_labels[enough], strategy, rule=rule, reading=reading, runs=REPLAY_RUNS, rng=rng
        )
        summary = choice.estimate_mean_labels_to_decision(effort, mode=mode, rng=rng)
        settings = {
            **summary.settings,
            "system": _strategy_label(strategy, labels),
            # Paper blocks stay as they are.
            **({} if mode == "paper" else {"population": "replays, for exactly these answers"}),
            **({"delta": delta} if len(deltas) > 1 else {}),
        }
        return labels.comparison.tag_estimate(replace(summary, settings=settings), PREFERENCE)

    pairs = [
        (
            # A count that is wrong is shown only beside what the paper printed.
            replay(strategy, delta, "recommended", "first") if strategy.counting == "on_disagreement" else None,
            replay(strategy, delta, "paper", "stays"),
        )
        for delta, strategy in product(deltas, replayed)
    ]
    note = "Labels until Hoeffding's bound decides. Each strategy is replayed on the same items; the interval applies only to these items."
    blocks = {
        "paper": ([paper for _, paper in pairs], []),
        "recommended": (
            [recommended for recommended, _ in pairs if recommended],
            [layouts.labels_needed_by_strategy_table(pairs)],
        ),
    }
    return [
        Block(
            "choice.replay",
            f"Labelling effort of each strategy ({labels.title})",
            mode,
            estimates=tuple(estimates),
            tables=tables,
            note=note,
        )
        for mode, (estimates, tables) in blocks.items()
    ]


def _strategy_label(strategy: "Strategy", labels: ComparisonLabels) -> str:
    if strategy.name == "majority":
        return f"{strategy.workers} workers"
    label = {"one": "one worker", "max_three": "max three workers"}[strategy.name]
    if first := COUNTED_BY_THE_PAPER.get(strategy.counting):
        return f"{label}, a third label counted unless both chose {getattr(labels.comparison, first)}"
    return label
