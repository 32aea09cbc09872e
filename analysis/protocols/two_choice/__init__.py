"""Analyse pairwise choices: which system is chosen, the rule that decided, the cost in labels, and agreement.

The analysis starts from the planned labels, so that missing labels are visible too. The rows say which annotators the rules
keep. Third labels (max three) belong to items in disagreement. They count for the items' answers, but not for shares or
agreement.

Source: Thorleiksdóttir et al. 2022, sections 3 and 5; ``paper`` is its bound on the items' answers, in both readings.
"""

from collections.abc import Sequence
from typing import Any

from analysis.data.context import AnalysisContext
from analysis.data.planned_labels import PlannedLabels

from .. import ComparingAnalysis, HeadlineAnswers, ProtocolAnalysis, StoppingStatus, register
from ..blocks.comparisons import Comparison
from .checks import agreement_and_side_blocks, labels_paid_and_strategy_replay_blocks, ranking_blocks
from .labels import planned_comparisons_then_other_pairs, primary_comparison_stopping_statuses, read_comparison_labels
from .preference import preference_blocks


@register
class TwoChoiceAnalysis(ProtocolAnalysis):
    slug = "two_choice"
    headline_block = "choice.preference"
    needs_planned_labels = True

    def planned_claims(self, sections: Sequence[Any]) -> dict[str, list[Comparison]]:
        return {
            "choice.preference": [
                compared for section in sections for compared in planned_comparisons_then_other_pairs(section)
            ]
        }

    def analyse(self, context: AnalysisContext) -> ComparingAnalysis:
        """Return blocks for all sections of pairwise choices. Families span all sections."""
        claims = context.claims
        if claims is None or not len(claims.rows):
            return []
        labels_by_comparison = [
            comparison_labels
            for section in context.sections
            for comparison_labels in read_comparison_labels(context, claims, section)
        ]
        blocks = yield from preference_blocks(labels_by_comparison, context)
        for comparison_labels in labels_by_comparison:
            blocks += labels_paid_and_strategy_replay_blocks(comparison_labels, context)
            blocks += agreement_and_side_blocks(comparison_labels, context)
        for section in context.sections:
            blocks += ranking_blocks(
                [
                    comparison_labels
                    for comparison_labels in labels_by_comparison
                    if comparison_labels.section == section
                ],
                context,
            )
        return [block for block in blocks if block.estimates]

    def headline_answers(self, context: AnalysisContext) -> list[HeadlineAnswers]:
        if context.claims is None or not len(context.claims.rows):
            return []
        return [
            HeadlineAnswers(labels.comparison, *labels.values_annotators_and_prompts)
            for section in context.sections
            for labels in read_comparison_labels(context, context.claims, section)
        ]

    def stopping_statuses(self, planned_labels: PlannedLabels, section: Any, seed: str = "") -> list[StoppingStatus]:
        return primary_comparison_stopping_statuses(planned_labels, section, seed)
