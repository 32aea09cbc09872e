"""Analyse SPA answers: each pair, both orders, the coherence of pairs, and a ranking; ``paper`` and ``recommended`` separately.

A row is a directed answer on 0..1.

Source: Ethayarajh and Jurafsky 2022, sections 5 and 6.
"""

from collections.abc import Hashable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.kinds.pairs import PairAnalysis
from analysis.protocols.spa_and_rating import build_overview
from studies.design.subjects import in_parentheses, words_of_section
from studies.protocols.spa import asks_for_size
from studies.services.questions import add_missing_questions, select_system_pairs

from .. import HeadlineAnswers, register
from ..scores import Scorer
from . import layouts
from .answers import (
    ESTIMAND,
    SectionAnswers,
    exclusion_effect_blocks,
    planned_then_unplanned_comparisons,
    prompts_by_batch,
    read_section_answers_by_annotator,
)
from .comparisons import (
    coherence_ranking_and_reliability_blocks,
    overall_answer_drivers_blocks,
    pair_preference_blocks,
    recommended_estimates,
    stated_chance_by_exposure_blocks,
)
from .sizes import preference_size_blocks
from .tau import values_of_tau_blocks

if TYPE_CHECKING:
    from pandas import DataFrame

TAU_TITLE = "Whether leaving out by tau would move the estimate (correlation of gap and preference)"


class SPAScorer(Scorer):
    """SPA: an answer is the chance that one system is better than another, stated after reading outputs of both."""

    kind = "preferences"
    gives_scores_of_one_output = False
    is_about_outputs = False

    def find_problem(self, section, settings):
        if any(question.x_id and asks_for_size(question.scale) for question in section.questions.all()):
            return "A board scores stated chances alone. Delete the questions about how much better a system is."
        if settings["prompts"] == "own":
            return "A board shows all systems with the same prompts. Choose these in the section's settings."
        return ""

    def items_per_prompt(self, settings, n_systems, n_references):
        return 1.0  # an item shows the outputs of all systems

    def ask_about_all_systems(self, section):
        # The first question of each criterion says how to ask. The template cannot name systems that are not submitted yet.
        by_criterion = sorted(section.questions.all(), key=lambda question: question.criterion)
        patterns = [next(same) for _, same in groupby(by_criterion, key=lambda question: question.criterion)]
        patterns.sort(key=lambda question: question.position)
        section.questions.all().delete()
        pairs = select_system_pairs(section, "all")
        for pattern in patterns:
            add_missing_questions(section, pairs, pattern.text, by=None, criterion=pattern.criterion)
            section.questions.filter(criterion=pattern.criterion).update(
                help=pattern.help, required=pattern.required, skip_reasons=pattern.skip_reasons
            )

    def score_answers(self, section, question, answers, shown):
        answers = answers[answers["x"].notna() & answers["y"].notna() & answers["value"].notna()]
        # Each direction is an answer of its own. The system that is named first takes the place of the one shown first.
        return answers.assign(system=answers["x"], other=answers["y"], is_first=True)


@register
class SPAAnalysis(PairAnalysis):
    slug = "spa"
    paper = layouts.PAPER
    scorer = SPAScorer()
    headline_blocks = {"spa": "spa.pairs"}
    weighs_people_equally = True
    has_own_rule_effects = True
    build_overview = staticmethod(build_overview)

    pairs_block = "spa.pairs"

    def planned_comparisons(self, section):
        return [compared for compared in planned_then_unplanned_comparisons(section) if compared.is_planned]

    def read(self, context):
        answers = [read_section_answers_by_annotator(context.rows, section) for section in context.sections]
        return [section_answers for section_answers in answers if section_answers.comparisons]

    def compare(self, records, context):
        return {"spa.pairs": [pair for answers in records for pair in recommended_estimates(answers, context)]}

    def blocks(self, records, adjusted, context):
        if not records:
            return []
        blocks = pair_preference_blocks(records, adjusted["spa.pairs"], context)
        blocks += preference_size_blocks(records, adjusted["spa.pairs"], context)
        for answers, rules in zip(records, exclusion_effect_blocks(records, context), strict=True):
            blocks += [*_naming_blocks(answers, context), rules, *_criterion_blocks(answers, context)]
        blocks += values_of_tau_blocks(records, context)
        blocks += overall_answer_drivers_blocks([answers.kept for answers in records], context)
        if len(records) > 1:
            blocks += stated_chance_by_exposure_blocks(records, context)
        return blocks

    def headline_answers(self, context: AnalysisContext) -> list[HeadlineAnswers]:
        """Return one row for each person and prompt that the person read. The value is the chance that the person stated."""
        return [found for section in context.sections for found in _stated_chances(context.rows, section)]


def _stated_chances(frame: "DataFrame", section: Any) -> list[HeadlineAnswers]:
    import numpy as np
    from pandas import Categorical

    from analysis.stats.spa import combine_orders

    kept = read_section_answers_by_annotator(frame, section).kept
    rows = frame[(frame["section"] == section.position) & frame["annotator"].isin(kept.people["annotator"])]
    batches = rows[["annotator", "batch"]].drop_duplicates()
    prompts = prompts_by_batch(section, batches["batch"].tolist())
    read: dict[Any, set[Hashable]] = {}
    for annotator, batch in zip(batches["annotator"], batches["batch"], strict=True):
        read.setdefault(annotator, set()).update(prompts[batch])
    chances = combine_orders(kept.xy, kept.yx)
    people = kept.people["annotator"].tolist()
    found = []
    for column, compared in enumerate(kept.comparisons):
        readings = [
            (chance, annotator, prompt)
            for chance, annotator in zip(chances[:, column], people, strict=True)
            if not np.isnan(chance)
            # Prompts by their numbers, then groups by their names.
            for prompt in sorted(read[annotator], key=lambda one: (isinstance(one, str), one))
        ]
        values, annotators, shown = zip(*readings, strict=True) if readings else ((), (), ())
        found.append(
            HeadlineAnswers(
                compared,
                np.array(values, dtype=float),
                Categorical(annotators),
                Categorical(shown),
            )
        )
    return found


def _naming_blocks(answers: SectionAnswers, context: AnalysisContext) -> list[Block]:
    """Return the order symmetry of one section, and the effect of exclusion by tau."""
    from analysis.stats import spa

    kept_answers = answers.kept
    title, level = answers.title, context.level
    symmetry = tuple(
        compared.tag_estimate(
            spa.naming_order_effect(kept_answers.xy[:, column], kept_answers.yx[:, column], level=level), ESTIMAND
        )
        for column, compared in enumerate(answers.comparisons)
    )
    asymmetry = tuple(
        compared.tag_estimate(
            spa.gap_preference_correlation(kept_answers.xy[:, column], kept_answers.yx[:, column], level=level),
            ESTIMAND,
        )
        for column, compared in enumerate(answers.comparisons)
    )
    return [
        Block(
            "spa.order",
            f"Gap between the two orders of naming{in_parentheses(title)}",
            estimates=symmetry,
            tables=[layouts.naming_order_gap_table(symmetry)],
            figures=[layouts.naming_order_gap_figure(symmetry)],
            note="p_xy + p_yx - 1, before any rule that uses sums. Above 0: the system named first has an advantage.",
        ),
        Block(
            "spa.tau",
            f"Whether leaving out by tau would move the estimate{in_parentheses(title)}",
            estimates=asymmetry,
            tables=[layouts.estimates_table(asymmetry, "tau", TAU_TITLE, "more")],
        ),
    ]


def _criterion_blocks(answers: SectionAnswers, context: AnalysisContext) -> list[Block]:
    """Return coherence, ranking and reliability on each criterion of one section."""
    blocks = []
    for criterion in dict.fromkeys(compared.criterion for compared in answers.comparisons):
        columns = [n for n, compared in enumerate(answers.comparisons) if compared.criterion == criterion]
        about = words_of_section(answers.section).subject(criterion).note
        blocks += coherence_ranking_and_reliability_blocks(answers.kept, columns, about, context)
    return blocks
