"""Analyse pairwise choices: which system is chosen, the rule that decided, the cost in labels, and agreement.

The analysis starts from the planned labels, so that missing labels are visible too. The rows say which annotators the rules
keep. Third labels (max three) belong to items in disagreement. They count for the items' answers, but not for shares or
agreement.

Source: Thorleiksdóttir et al. 2022, sections 3 and 5; ``paper`` is its bound on the items' answers, in both readings.
"""

from typing import Any

from analysis.data.planned_labels import PlannedLabels
from analysis.protocols.kinds.pairs import PairAnalysis, keep_by_id
from studies.protocols.base.fields import TIE
from studies.protocols.two_choice import PREFERENCE

from .. import StoppingStatus, register
from ..scores import Scorer, other_system, with_other_outputs
from . import layouts
from .checks import (
    agreement_and_side_blocks,
    agreement_estimates,
    labels_paid_and_strategy_replay_blocks,
    ranking_blocks,
    work_time_blocks,
)
from .labels import planned_comparisons_then_other_pairs, primary_comparison_stopping_statuses, read_comparison_labels
from .metrics import metric_blocks
from .preference import preference_blocks, recommended_estimate


class TwoChoiceScorer(Scorer):
    """Two choices: an answer prefers one of two systems. A tie is a half for both."""

    kind = "preferences"

    def find_problem(self, section, settings):
        if settings["stopping"] != "none":
            return "The two choices have a stopping rule, but a round ends when its places are filled. Choose no rule."
        if settings["strategy"] != "any":
            return "The two choices have a labelling strategy, but a board says how many labels an output gets. Choose none."
        return ""

    def items_per_prompt(self, settings, n_systems, n_references):
        return n_systems - n_references if settings["pairs"] == "reference" else n_systems / 2

    def score_answers(self, section, question, answers, shown):
        pairs = answers["item"].map(shown)
        is_tie = answers["choice"] == TIE
        answers = answers[(is_tie | answers["chosen_system"].notna()) & pairs.notna()]
        first = answers["item"].map(shown).map(lambda pair: pair[0])
        is_tie = answers["choice"] == TIE
        is_chosen = answers["chosen_system"] == first
        # Letters follow the places on the page, so the chosen output's letter says which one was shown first.
        is_first = (answers["label"] == "A") == is_chosen
        return answers.assign(
            system=first,
            other=answers["item"].map(shown).combine(first, other_system),
            value=is_chosen.astype(float).where(~is_tie, 0.5),
            is_first=is_first.astype(object).where(~is_tie & answers["label"].fillna("").ne(""), None),
        )


@register
class TwoChoiceAnalysis(PairAnalysis):
    slug = "two_choice"
    paper = layouts.PAPER
    scorer = TwoChoiceScorer()
    headline_blocks = {"two_choice": "choice.preference"}
    weighs_people_equally = True
    needs_planned_labels = True
    needs_page_seconds = True
    needs_metric_scores = True
    reads_deltas = True

    pairs_block = "choice.preference"

    keep = keep_by_id

    def planned_comparisons(self, section):
        return planned_comparisons_then_other_pairs(section)

    def read(self, context):
        if context.claims is None or not len(context.claims.rows):
            return []
        return [
            labels
            for section in context.sections
            for labels in read_comparison_labels(context, context.claims, section)
        ]

    def estimate(self, answers, compared, context):
        return compared.tag_estimate(recommended_estimate(answers, context), PREFERENCE)

    def pair_scores(self, answers, compared):
        return answers.rows_with_values.assign(score=answers.rows_with_values["value"])

    def agreement(self, answers, context):
        return next(iter(agreement_estimates(answers, context)), None)

    def judged_outputs(self, section, question, answers, shown):
        is_tie = answers["choice"] == TIE
        is_answered = (answers["question"] == question.key) & (is_tie | answers["chosen_system"].notna())
        rows = answers[is_answered & answers["item"].isin(shown)]
        first = rows["item"].map(lambda item: shown[item][0])
        system = first.map(lambda output: output[0])
        value = (rows["chosen_system"] == system).astype(float).where(rows["choice"] != TIE, 0.5)
        rows = rows.assign(system=system, sample=first.map(lambda output: output[1]), value=value)
        return with_other_outputs(rows, shown)

    def blocks(self, records, adjusted, context):
        blocks = preference_blocks(records, adjusted["choice.preference"])
        for labels in records:
            blocks += labels_paid_and_strategy_replay_blocks(labels, context)
            blocks += agreement_and_side_blocks(labels, context)
        blocks += work_time_blocks(records, context)
        blocks += metric_blocks(records, adjusted["choice.preference"], context)
        for section in context.sections:
            blocks += ranking_blocks([labels for labels in records if labels.section == section], context)
        return blocks

    def stopping_statuses(self, planned_labels: PlannedLabels, section: Any, seed: str = "") -> list[StoppingStatus]:
        return primary_comparison_stopping_statuses(planned_labels, section, seed)
