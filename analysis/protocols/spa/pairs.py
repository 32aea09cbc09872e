"""The stated chance that x is better than y: both orders of naming combined, and one order as in the paper."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from analysis.data.context import AnalysisContext
from analysis.protocols import ComparingAnalysis
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import comparison_x_y_and_criterion_phrase
from analysis.protocols.blocks.comparisons import adjust_pvalues_and_add_verdicts_as_in_paper

from . import layouts
from .answers import ESTIMAND, SectionAnswers
from .prompt_groups import read_prompt_groups

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


def pair_preference_blocks(answers: Sequence[SectionAnswers], context: AnalysisContext) -> ComparingAnalysis:
    """Return the recommended and the paper's blocks of all sections. Families span all sections."""
    estimates_by_section = [_pair_estimates(section_answers, context) for section_answers in answers]
    compared = [comparison for section in answers for comparison in section.comparisons]
    recommended_pairs = [estimate for pairs, _ in estimates_by_section for estimate in pairs]
    recommended = (yield {"spa.pairs": list(zip(compared, recommended_pairs, strict=True))})["spa.pairs"]
    paper = adjust_pvalues_and_add_verdicts_as_in_paper(
        list(zip(compared, [estimate for _, pairs in estimates_by_section for estimate in pairs], strict=True)),
        "spa.paper",
        context,
    )
    return [
        Block(
            "spa.pairs",
            "Stated chance that x is better than y",
            "recommended",
            estimates=recommended,
            conclusions=build_planned_conclusions(recommended, _phrases, include_estimand_in_name=False),
            figures=[layouts.forest_figure(recommended, paper)],
            note="Both orders of naming combined, all annotators kept by the outcome-blind rules; tested against 50 %. Batches that share prompts "
            "are one group. With five groups or more, annotators and groups are both clusters.",
        ),
        Block(
            "spa.pairs",
            f"Stated chance that x is better than y, as in {layouts.PAPER}",
            "paper",
            estimates=paper,
            note="Only the order of the comparison, after all primary rules; t test against 50 %.",
        ),
    ]


def _phrases(estimate: "Estimate") -> ConclusionPhrases:
    x, y, about = comparison_x_y_and_criterion_phrase(estimate)
    return ConclusionPhrases(
        above_claim=f"{x} was preferred to {y}{about}.",
        below_claim=f"{x} was less preferred than {y}{about}.",
        same=f"{x} and {y} are indistinguishable{about}",
        open=f"It remains open whether {x} or {y} is preferred{about}.",
        before=f"On average annotators put the chance that {x} is better than {y} at",
        symbol=f"P[{x} > {y}]",
        kind="percent",
        subject=f"{x} and {y}{about}",
        expected=(f"{x} is better.", f"{y} is better.", "the two are equivalent."),
    )


def _pair_estimates(answers: SectionAnswers, context: AnalysisContext) -> tuple[list["Estimate"], list["Estimate"]]:
    """Return the recommended and the paper's estimate of each comparison, not yet adjusted."""
    import numpy as np

    from analysis.stats import spa
    from analysis.stats.results import ResultWarning

    kept_answers = answers.kept
    level = context.level
    groups, n_unknown = read_prompt_groups(kept_answers)
    unknown: tuple[ResultWarning, ...] = ()
    if n_unknown:
        to_import = "also import answers about the texts that each annotator read"
        unknown = (ResultWarning("prompts_unknown", "warn", {"n_annotators": n_unknown, "to_know_them": to_import}),)
    shared = spa.pair_preferences_recommended(
        kept_answers.xy,
        kept_answers.yx,
        pair_names=kept_answers.names,
        batches=groups,
        populations={compared.key: compared.population for compared in answers.comparisons},
        sensitivity_tau=context.tau,
        level=level,
        sensitivity_resamples=context.resamples,
        rng=context.rng("pairs", answers.section.position),
    )
    recommended = []
    for compared in answers.comparisons:
        estimate = shared[compared.key]
        # Each comparison has its own margin and level.
        tost = compared.equivalence_tests(estimate, null=0.5)
        warnings = (*estimate.warnings, *unknown)
        estimate = replace(estimate, sensitivity=(*estimate.sensitivity, *tost), warnings=warnings)
        recommended.append(compared.tag_estimate(estimate, ESTIMAND))
    kept_answers = answers.select_annotators(answers.people["is_kept_paper"].to_numpy(bool))
    paper = []
    for column, compared in enumerate(answers.comparisons):
        stated, estimand = kept_answers.xy[:, column], None
        if np.isnan(answers.xy[:, column]).all() and not np.isnan(answers.yx[:, column]).all():
            stated, estimand = (
                100 - kept_answers.yx[:, column],
                "1 - mean over annotators of P[y > x], asked with y named first",
            )
        estimate = spa.pair_preference_paper(stated, is_after_tau=context.is_after_tau, level=level)
        paper.append(compared.tag_estimate(replace(estimate, estimand=estimand) if estimand else estimate, ESTIMAND))
    return recommended, paper
