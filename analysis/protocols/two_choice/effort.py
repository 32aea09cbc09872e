"""What a decision cost in labels, and what each labelling strategy would have paid."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import Context
from analysis.protocols.blocks import Block
from studies.protocols import REGISTRY
from studies.protocols.two_choice import PREFERENCE

from . import layouts
from .compared import Compared, logged
from .preference import paper_decision

if TYPE_CHECKING:
    from analysis.stats.choice import Strategy
    from analysis.stats.results import Estimate

REPLAYED = (("one", 1), ("max_three", 1), ("majority", 3), ("majority", 5), ("majority", 7))
RUNS = 1000
# With fewer items a replay says nothing of a rule that needs at least ten unanimous answers.
FEWEST_ITEMS = 20


def effort_blocks(one: Compared, context: Context) -> list[Block]:
    spent = _spent(one)
    return [
        Block(
            "choice.effort",
            f"Labels paid ({one.title})",
            "recommended",
            estimates=spent,
            tables=[layouts.effort(spent)],
            verdict={"section": one.section.position, "decided": logged(one)},
        ),
        *_replayed(one, context),
    ]


def _spent(one: Compared) -> tuple["Estimate", ...]:
    """Labels an item, and up to which item the paper's bound would have paid."""
    import numpy as np

    from analysis.stats.results import Estimate

    labels, values = one.answers.n_labels, one.answers.values
    if not len(labels):
        return ()
    decided = int(np.sum(~np.isnan(values)))
    common: dict[str, Any] = {"unit": "item", "n": len(labels), "n_rows": int(labels.sum())}
    made = [
        Estimate(
            analysis="choice.effort.labels",
            estimand="labels paid for an item",
            estimate=float(labels.mean()),
            detail={
                "labels": int(labels.sum()),
                "items": len(labels),
                "items_answered": decided,
                "items_open": int(np.sum(~one.answers.is_complete)),
                "strategy": REGISTRY[one.section.protocol].settings_of(one.section)["strategy"],
            },
            **common,
        )
    ]
    first = paper_decision(one)
    for estimate in (first, *first.sensitivity):
        n = estimate.detail.get("n_decision")
        where = np.flatnonzero(~np.isnan(values))
        paid = int(labels[: where[n - 1] + 1].sum()) if n else None
        made.append(
            Estimate(
                analysis=f"choice.effort.{estimate.settings['reading']}",
                mode="paper",
                estimand=f"labels paid up to the decision of the paper's rule, reading “{estimate.settings['reading']}”",
                estimate=None if paid is None else float(paid),
                status="ok" if paid else "not_applicable",
                reason="" if paid else "the bound was not crossed",
                detail={"items": n, "winner": estimate.detail.get("winner")},
                warnings=estimate.warnings,
                settings=estimate.settings,
                **common,
            )
        )
    if one.look is not None:
        made.append(
            Estimate(
                analysis="choice.effort.overrun",
                estimand="labels that came after the decision",
                estimate=float(one.look.n_overrun),
                settings={"rule": one.look.rule},
                detail={"stopped_at": one.look.stopped_at, "of": one.look.unit},
                **common,
            )
        )
    return tuple(one.comparison.named(estimate, PREFERENCE) for estimate in made)


def _replayed(one: Compared, context: Context) -> list[Block]:
    """What each labelling strategy would have paid, drawing among the labels that are there.

    All on the same items, as in the paper: those with enough labels for the most demanding strategy that half of the items allow.
    """
    import numpy as np

    from analysis.stats import choice, sequential

    # Third labels are among them where they were asked for: the draw would meet disagreement too often.
    rows = one.paper[~one.paper["is_third"].to_numpy(bool) & one.paper["value"].isin([0.0, 1.0])]
    numbers, place = np.unique(rows["item_number"].to_numpy(np.int64), return_inverse=True)
    given = np.bincount(place, minlength=len(numbers))
    wins = np.bincount(place, weights=rows["value"].to_numpy(float), minlength=len(numbers))
    delta = REGISTRY[one.section.protocol].settings_of(one.section)["delta"]
    both: dict[str, list[Estimate]] = {"paper": [], "recommended": []}
    strategies: list[Strategy] = [choice.Strategy(*words) for words in REPLAYED]
    # With one label an item there is nothing to draw.
    fewest = max(FEWEST_ITEMS, int((given > 1).sum()) / 2)
    replayed = [each for each in strategies if (given >= max(2, each.most)).sum() >= fewest]
    if not replayed:
        return []
    enough = given >= max(2, *(each.most for each in replayed))
    rule = sequential.hoeffding_boundaries(int(enough.sum()), delta=delta)
    for strategy in replayed:
        name, workers = strategy.name, strategy.workers
        for mode, reading in (("paper", "stays"), ("recommended", "first")):
            rng = context.rng("replay", one.comparison.key, name, workers, mode)
            effort = choice.resampled_effort(
                wins[enough], given[enough], strategy, rule=rule, reading=reading, runs=RUNS, rng=rng
            )
            summary = choice.effort_summary(effort, mode=mode, rng=rng, analysis="choice.replay")
            words = (
                f"{workers} workers"
                if name == "majority"
                else {"one": "one worker", "max_three": "max three workers"}[name]
            )
            both[mode].append(
                one.comparison.named(replace(summary, settings={**summary.settings, "system": words}), PREFERENCE)
            )
    note = "Labels to the decision of the paper's bound, each strategy replayed on the same items; the interval is about these items."
    laid = {"recommended": [layouts.replays(both["recommended"], both["paper"])], "paper": []}
    return [
        Block(
            "choice.replay",
            f"Labelling effort of each strategy ({one.title})",
            mode,
            estimates=tuple(found),
            tables=laid[mode],
            note=note,
        )
        for mode, found in both.items()
    ]
