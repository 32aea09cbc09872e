"""Compute the effect of each exclusion rule on each comparison."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.subjects import in_parentheses

from . import layouts
from .answers import ESTIMAND, SectionAnswers

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

KEPT_COLUMN_PREFIX = "kept:"


def exclusion_effect_blocks(answers: Sequence[SectionAnswers], context: AnalysisContext) -> list[Block]:
    """Return one block per section. Their tables and figures are merged."""
    changes_by_section = [_rule_changes(section_answers, context) for section_answers in answers]
    all_changes = [change for changes in changes_by_section for change in changes]
    layout: dict[str, Any] = {
        "tables": [layouts.rule_effects_table(all_changes)],
        "figures": [layouts.rule_effects_figure(all_changes)],
    }
    return [
        Block(
            "spa.before_after",
            f"Effect of each rule{in_parentheses(section_answers.title)}",
            "recommended",
            estimates=changes,
            **(layout if n == 0 else {}),
            note="Mean after the rule minus mean before it. The same people are on both sides, so the interval resamples them.",
        )
        for n, (section_answers, changes) in enumerate(zip(answers, changes_by_section, strict=True))
    ]


def _rule_changes(answers: SectionAnswers, context: AnalysisContext) -> tuple["Estimate", ...]:
    """Return the mean after minus the mean before each rule, and all primary rules together, resampling annotators."""
    from analysis.stats import basic, spa

    masks = {
        name.removeprefix(KEPT_COLUMN_PREFIX): answers.people[name].to_numpy(bool)
        for name in answers.people.columns
        if name.startswith(KEPT_COLUMN_PREFIX)
    }
    masks["all rules of the recommended estimate"] = answers.people["is_kept"].to_numpy(bool)
    masks["all primary rules"] = answers.people["is_kept_paper"].to_numpy(bool)
    values = spa.combine_orders(answers.xy, answers.yx)
    changes = spa.exclusion_effects_by_rule(
        values,
        masks,
        names=answers.names,
        level=context.level,
        resamples=context.resamples,
        rng=context.rng("before_after", answers.section.position),
    )
    estimates = []
    for rule, mask in masks.items():
        for column, compared in enumerate(answers.comparisons):
            change = compared.tag_estimate(changes[rule][compared.key], ESTIMAND)
            if 0 < mask.sum() < len(mask):
                # The two groups have different people, so an ordinary two-group comparison is correct here.
                against = basic.welch_t_test(values[~mask, column], values[mask, column], level=context.level).labelled(
                    analysis="spa.excluded_against_kept", estimand="mean of those left out - mean of those kept"
                )
                change = replace(change, sensitivity=(against,))
            estimates.append(change)
    return tuple(estimates)
