"""What each exclusion rule does to the headline of each planned comparison, in every protocol."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.exclusions.screening import AppliedRule
from analysis.protocols import REGISTRY
from analysis.protocols.blocks import Block, Conclusion, cells
from analysis.protocols.blocks.cells import contrast_of, is_sequential
from analysis.protocols.blocks.layouts import Table, build_table
from analysis.protocols.blocks.sentences import printed_conclusions
from analysis.protocols.families import adjust_comparisons

if TYPE_CHECKING:
    from analysis.stats.results import Estimate

# The estimate and the verdict of each claim, by its block and its comparison.
Judged = dict[tuple[str, str], "Estimate"]
KEPT_BY_RULE = "kept:"
DECIDED_BY_RULE = "a stopping rule decided by the answers that it had counted"


def rule_effects_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Return the table of ``rule_effects``, of all protocols."""
    return build_table(
        "rule_effects",
        "What each exclusion rule changes",
        "rule|Rule|text; contrast|Comparison|text; before|With everybody|fine_number; after|With this rule|fine_number; "
        "change|Change|fine_number; n|n annotators|text; verdict|Verdict|text; reason|Undefined because|text",
        rows,
        "sure",
        "Everybody: all annotators who submitted. Each rule is applied alone, whatever its role. Verdicts are for each comparison alone, at "
        "its level, without the adjustment for its family.",
    )


def rule_effects(
    blocks: Sequence[Block], context: AnalysisContext, rules: Sequence[AppliedRule]
) -> Iterator[dict[str, Any]]:
    """Give the headline of each planned comparison with everybody, and with each rule alone that flags somebody."""
    labels = {f"{KEPT_BY_RULE}{rule.slug}": rule.label.partition(":")[0] for rule in rules}
    analysis = REGISTRY[context.protocol]
    own_blocks = analysis.planned_claims(context.sections)
    shown = [(name, one) for name, one in printed_conclusions(blocks) if name in own_blocks]
    columns = [column for column in labels if column in context.rows and not context.rows[column].all()]
    if analysis.has_own_rule_effects or not shown or not columns:
        return
    is_decided = all(is_sequential(conclusion.estimate) for _, conclusion in shown)
    everybody_first = ("", *columns)
    stages = {column: Judged() for column in everybody_first}
    if not is_decided:
        stages = dict(zip(everybody_first, _judged(context, everybody_first), strict=True))
    has_several = len({name for name, _ in shown}) > 1
    for column in columns:
        for name, conclusion in shown:
            key = (name, contrast_of(conclusion.estimate)["key"])
            label = cells.comparison_label(conclusion.estimate)
            row = {
                "rule": labels[column],
                "contrast": f"{label}, {conclusion.wording.symbol}" if has_several else label,
            }
            yield row | _effect(conclusion, stages[""].get(key), stages[column].get(key))


def _judged(context: AnalysisContext, columns: Sequence[str]) -> Iterator[Judged]:
    """Give the planned comparisons with the annotators that each column keeps, or with everybody, each judged alone."""
    alone = replace(context, is_only_planned=True, resamples=99)
    for compared_by_block in REGISTRY[context.protocol].compare_each_kept(alone, columns):
        yield {
            (name, compared.key): adjust_comparisons({name: [(compared, estimate)]}, {name: [compared]})[name][0]
            for name, pairs in compared_by_block.items()
            for compared, estimate in pairs
            if compared.is_planned
        }


def _effect(conclusion: Conclusion, before: "Estimate | None", after: "Estimate | None") -> dict[str, Any]:
    """Return the cells of one rule and one comparison."""
    if is_sequential(conclusion.estimate):
        return {"reason": DECIDED_BY_RULE}
    if before is None or after is None or before.estimate is None or after.estimate is None:
        missing = next((one for one in (before, after) if one is not None and one.estimate is None), None)
        return {"reason": missing.reason if missing is not None else "nobody is left who answered about both"}
    old, new = (cells.verdict_text(one, "open") if one.test is not None else "no test" for one in (before, after))
    return {
        "before": before.estimate,
        "after": after.estimate,
        "change": after.estimate - before.estimate,
        "n": f"{before.n} → {after.n}",
        "verdict": f"{old}, as before" if old == new else f"{old} → {new}",
        "reason": "",
    }
