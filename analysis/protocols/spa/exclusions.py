"""What each exclusion rule does to each comparison."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.data.context import Context
from analysis.protocols.blocks import Block

from . import layouts
from .answers import ESTIMAND, Answers

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

RULE = "kept:"


def rule_blocks(answers: Sequence[Answers], context: Context) -> list[Block]:
    """A block a section; their table and figure hold all of them."""
    found = [_changes(one, context) for one in answers]
    every = [change for changes in found for change in changes]
    laid = {"tables": [layouts.before_after(every)], "figures": [layouts.rules(every, len(answers) > 1, context.level)]}
    return [
        Block(
            "spa.before_after",
            f"Effect of each rule ({one.title})",
            "recommended",
            estimates=changes,
            **(laid if n == 0 else {}),
            note="Mean after the rule less mean before it; the same people stand on both sides, so the interval resamples them.",
        )
        for n, (one, changes) in enumerate(zip(answers, found, strict=True))
    ]


def _changes(one: Answers, context: Context) -> tuple["Estimate", ...]:
    """Each rule alone, and all primary ones together: the mean after less the mean before, the annotators resampled."""
    from analysis.stats import basic, spa

    masks = {
        name.removeprefix(RULE): one.people[name].to_numpy(bool) for name in one.people.columns if name.startswith(RULE)
    }
    masks["all rules of the recommended estimate"] = one.people["is_kept"].to_numpy(bool)
    masks["all primary rules"] = one.people["is_kept_paper"].to_numpy(bool)
    values = spa.combined(one.xy, one.yx)
    changes = spa.before_after(
        values,
        masks,
        names=one.names,
        level=context.level,
        resamples=context.resamples,
        rng=context.rng("before_after", one.section.position),
    )
    estimates = []
    for rule, mask in masks.items():
        for column, compared in enumerate(one.comparisons):
            change = compared.named(changes[rule][compared.key], ESTIMAND)
            if 0 < mask.sum() < len(mask):
                # Different people, so an ordinary comparison of two groups is right here.
                against = basic.welch(
                    values[~mask, column],
                    values[mask, column],
                    analysis="spa.excluded_against_kept",
                    level=context.level,
                    estimand="mean of those left out - mean of those kept",
                )
                change = replace(change, sensitivity=(against,))
            estimates.append(change)
    return tuple(estimates)
