"""Analyse relative points: how far answers lean to x, methods that use only their order, and the effect of the side.

A row is one answer about the system shown first. Here it is converted to points for x: 0 is "the same", and above 0
x is better. The planned labels give the pair of each item.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks.comparisons import other_comparisons, planned_comparisons_of_questions
from analysis.protocols.blocks.layouts import estimate_row, prefixed_cells
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups
from analysis.protocols.kinds.answers import column_arrays, kept_and_paper_rows, readable_scale
from analysis.protocols.kinds.pairs import PairAnalysis, keep_by_id
from analysis.protocols.kinds.scores import agreement_alpha, judged_by_several
from studies.models import System
from studies.protocols.base.pairs import unordered_pair_key
from studies.protocols.relative import SCORE, relative_scale_fault

from . import register
from .blocks import Block, ConclusionPhrases, build_planned_conclusions
from .blocks.cells import comparison_label, comparisons_note
from .blocks.comparisons import (
    Comparison,
    adjust_pvalues_and_add_verdicts_as_in_paper,
    planned_comparisons,
    read_contrasts,
)
from .blocks.layouts import Figure, Table, build_figure, build_table, figure_row
from .scores import Scorer, other_system, with_other_outputs

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate


@dataclass(frozen=True, slots=True)
class ComparisonAnswers:
    """The answers about one comparison, with ``score`` (points toward x) and ``side`` (1 if x was first, -1 if y was)."""

    comparison: Comparison
    half_range: float
    kept: "DataFrame"
    paper: "DataFrame"

    @property
    def comparisons(self) -> tuple[Comparison]:
        return (self.comparison,)

    @property
    def scores_annotators_and_prompts(self) -> list[Any]:
        return column_arrays(self.kept, "score", "annotator", SECOND_SAMPLE)


class RelativeScorer(Scorer):
    """Relative scales against the reference: 0.5 means as good as the reference."""

    gives_scores_of_one_output = False

    def find_problem(self, section, settings):
        if settings["pairs"] == "reference":
            return ""
        return "The relative scale does not show each system with the reference, which is the middle of all scores. Choose these pairs."

    def items_per_prompt(self, settings, n_systems, n_references):
        return n_systems - n_references

    def score_answers(self, section, question, answers, shown):
        systems = System.objects.filter(study=section.study_id, reference=System.Reference.ORDINARY)
        references = set(systems.values_list("name", flat=True))
        answers = answers[answers["value"].notna() & answers["system"].notna()]
        first = answers["system"]
        other = answers["item"].map(shown).combine(first, other_system)
        # The value is about the output that was shown first, and may be about the reference.
        is_first = ~first.isin(references)
        rows = answers.assign(
            system=first.where(is_first, other),
            other=other.where(is_first, first),
            value=answers["value"].where(is_first, 1 - answers["value"]),
            is_first=is_first,
        )
        return rows[rows["other"].isin(references) & ~rows["system"].isin(references)]


@register
class RelativeAnalysis(PairAnalysis):
    slug = "relative"
    scorer = RelativeScorer()
    headline_blocks = {"relative": "relative.score"}
    needs_planned_labels = True

    pairs_block = "relative.score"

    keep = keep_by_id

    def planned_comparisons(self, section):
        questions = [question for question in section.questions.all() if not relative_scale_fault(question.scale)]
        return planned_comparisons_of_questions(section, questions, SCORE)

    def read(self, context):
        if context.claims is None:
            return []
        pairs = {f"s{position}.{number}": pair for position, number, pair in context.claims.items}
        return [one for section in context.sections for one in _read_comparison_answers(context.rows, section, pairs)]

    def pair_scores(self, answers, compared):
        return answers.kept

    def judged_outputs(self, section, question, answers, shown):
        rows = answers[(answers["question"] == question.key) & answers["value"].notna() & answers["system"].notna()]
        return with_other_outputs(rows, shown)

    def points(self, answers):
        return round(2 * answers.half_range) + 1

    def compare(self, records, context):
        return {
            "relative.score": _named_estimates(records, _score_estimate, context),
            "relative.superiority": _named_estimates(records, _superiority_estimate, context),
        }

    def blocks(self, records, adjusted, context):
        scores, above = adjusted["relative.score"], adjusted["relative.superiority"]
        paper = adjust_pvalues_and_add_verdicts_as_in_paper(
            _named_estimates(records, _paper_estimate, context), "relative.paper", context
        )
        checks = [_check_estimates(answers, context) for answers in records]
        blocks = [
            Block(
                "relative.score",
                "Points toward x",
                estimates=scores,
                figures=_figures(records, scores),
                conclusions=tuple(
                    conclusion
                    for answers, score in zip(records, scores, strict=True)
                    for conclusion in build_planned_conclusions([score], phrases_of_score(answers.half_range))
                ),
                tables=_tables(records, scores, above, paper, checks),
                note="Annotators and prompts are clusters. Assumes equal distances between points.",
            ),
            Block(
                "relative.superiority",
                "Probability of being judged better",
                estimates=above,
                note="The chance that an annotator judges x better. “The same” counts half, and only the order of points matters.",
            ),
            Block(
                "relative.score",
                "Points toward x, as if answers were independent",
                "paper",
                estimates=paper,
                note="Student's t over answers, after all primary rules: too narrow where annotators differ.",
            ),
        ]
        blocks += [
            Block(
                "relative.checks",
                f"Side, agreement and ties ({comparison_label(scores[n])})",
                estimates=tuple(estimates.values()),
            )
            for n, estimates in enumerate(checks)
        ]
        return blocks


def _named_estimates(
    all_answers: Sequence[ComparisonAnswers],
    estimate: "Callable[[ComparisonAnswers, AnalysisContext], Estimate]",
    context: AnalysisContext,
) -> list[tuple[Comparison, "Estimate"]]:
    return [
        (answers.comparison, answers.comparison.tag_estimate(estimate(answers, context), SCORE))
        for answers in all_answers
    ]


def _read_comparison_answers(frame: "DataFrame", section: Any, pairs: Mapping[str, str]) -> list[ComparisonAnswers]:
    rows = frame[(frame["section"] == section.position) & frame["system"].notna() & frame["value"].notna()]
    rows = rows.assign(pair=rows["item"].map(pairs))
    all_answers = []
    contrasts = read_contrasts(section)
    for question in section.questions.all():
        scale = readable_scale(question)
        if scale is None or relative_scale_fault(question.scale):
            continue
        question_rows = rows[rows["question"] == question.key]
        half = (scale.maximum - scale.minimum) / 2
        planned = planned_comparisons(contrasts, section, question.criterion, question.key, SCORE)
        answered = (pair.split("\x1f") for pair in set(question_rows["pair"].dropna()) if pair.count("\x1f") == 1)
        others = other_comparisons(section, planned, answered, question.criterion, question.key)
        comparison_by_pair = {unordered_pair_key(compared.x, compared.y): compared for compared in [*planned, *others]}
        for pair, compared in sorted(comparison_by_pair.items(), key=lambda item: (not item[1].is_planned, item[0])):
            pair_rows = question_rows[question_rows["pair"] == pair]
            side = (pair_rows["system"] == compared.x).map({True: 1.0, False: -1.0}).astype(float)
            # Round back to the chosen point, so that equal points stay equal.
            pair_rows = pair_rows.assign(side=side, score=(side * half * (2 * pair_rows["value"] - 1)).round(6))
            all_answers.append(ComparisonAnswers(compared, half, *kept_and_paper_rows(pair_rows)))
    return all_answers


def _score_estimate(answers: ComparisonAnswers, context: AnalysisContext) -> "Estimate":
    """Return mean points toward x, with annotators and prompts as clusters."""
    from analysis.stats import ratings

    score, people, prompts = answers.scores_annotators_and_prompts
    estimate = ratings.paired_mean_difference(
        score,
        score * 0.0,
        people,
        prompts=prompts,
        population=answers.comparison.population,
        scale=(-answers.half_range, answers.half_range),
        bounds=(-answers.half_range, answers.half_range),
        level=context.level,
        analysis="relative.score",
    )
    estimate = replace(estimate, estimand="mean points toward x")
    estimate = about_groups(estimate, answers.kept, answers.comparison.population)
    estimate = answers.comparison.with_equivalence_tests(estimate, null=0.0)
    return replace(estimate, settings={**estimate.settings, "null": 0.0})


def phrases_of_score(half_range: float) -> ConclusionPhrases:
    """Return the phrases of a comparison whose scale has so many points on either side of the middle."""
    return ConclusionPhrases(
        above_claim="{x} was judged better than {y}{about}.",
        below_claim="{x} was judged worse than {y}{about}.",
        same="{x} and {y} are indistinguishable{about}",
        open="It remains open whether {x} or {y} is judged better{about}.",
        before=f"The mean of points toward {{x}} (from −{half_range:g} to {half_range:g}) is",
        symbol="points toward {x} against {y}",
    )


def _superiority_estimate(answers: ComparisonAnswers, context: AnalysisContext) -> "Estimate":
    from analysis.stats import ratings

    score, people, prompts = answers.scores_annotators_and_prompts
    zero = score * 0.0
    above = ratings.probability_of_superiority(
        score,
        zero,
        people,
        prompts=prompts,
        population=answers.comparison.population,
        level=context.level,
        analysis="relative.superiority",
    )
    above = about_groups(above, answers.kept, answers.comparison.population)
    return replace(
        above,
        estimand="probability that x is judged better, the same counting half",
        sensitivity=(*above.sensitivity, *ratings.sign_and_wilcoxon_tests(score, zero, people)),
    )


def _paper_estimate(answers: ComparisonAnswers, context: AnalysisContext) -> "Estimate":
    from analysis.stats import basic

    return basic.one_sample_t_test(
        answers.paper["score"].to_numpy(float),
        null=0.0,
        level=context.level,
        bounds=(-answers.half_range, answers.half_range),
        mode="paper",
    ).labelled(analysis="relative.score.answers", estimand="mean points toward x over answers", unit="answer")


def _check_estimates(answers: ComparisonAnswers, context: AnalysisContext) -> dict[str, "Estimate"]:
    """Return the share of "the same", the effect of being first, and agreement about the same item."""
    from analysis.stats import clusters, ratings

    score, people, prompts = answers.scores_annotators_and_prompts
    if not len(score):
        return {}
    estimates = {
        "ties": clusters.mean_of_population(
            (score == 0).astype(float),
            people,
            prompts,
            population=answers.comparison.population,
            level=context.level,
            bounds=(0.0, 1.0),
            analysis="relative.ties",
            estimand="share of answers “the same”",
        ),
        "side": ratings.rating_change_per_position(
            score,
            answers.kept["side"].to_numpy(float),
            people,
            None if answers.comparison.population == "people" else prompts,
            level=context.level,
        ).labelled(analysis="relative.side", estimand="points toward whatever stood first"),
    }
    shared = judged_by_several(answers.kept, "item")
    if len(shared):
        estimates["alpha"] = agreement_alpha(
            shared["item"],
            shared["score"],
            level=context.level,
            rng=context.rng("alpha", answers.comparison.key),
            level_of_measurement="ordinal",
        )
    return {name: answers.comparison.tag_estimate(estimate, SCORE) for name, estimate in estimates.items()}


def _tables(answers, scores, superiority, paper, checks) -> list[Table]:
    rows, check_rows = [], []
    for comparison_answers, score, chance, plain, estimates in zip(
        answers, scores, superiority, paper, checks, strict=True
    ):
        ties, side = estimates.get("ties"), estimates.get("side")
        row = estimate_row(score, ties=ties and ties.estimate, n_rows=len(comparison_answers.kept))
        rows.append(row | prefixed_cells("score", score) | prefixed_cells("above", chance))
        row = estimate_row(score, paper_n=plain.n)
        check_rows.append(row | prefixed_cells("side", side) | prefixed_cells("paper", plain))
    columns = "x|System x|text; y|System y|text; role|Role|text; about|On|text; "
    return [
        build_table(
            "relative",
            "How much better x was judged than y",
            columns
            + "score|Points toward x|number; score_interval|95% CI|wide_interval; score_p|adj. p|p; above|P(x better)|probability; "
            "above_interval|95% CI, P|interval; above_p|adj. p, P|p; ties|The same|percent; n|n annotators|integer; n_rows|Answers|integer; "
            "reason|Undefined because|text",
            rows,
            "first",
            "0 points: the same. P(x better) counts “the same” half and does not assume equal distances between points. p is "
            "adjusted within each planned family and within all unplanned pairs." + comparisons_note(scores),
        ),
        build_table(
            "relative_checks",
            "Did the side matter, and what if answers were independent?",
            columns
            + "side|Points for standing first|number; side_interval|95% CI, first|wide_interval; side_p|p, first|p; "
            "paper|Points, answers alone|number; paper_interval|95% CI, answers alone|wide_interval; paper_p|adj. p, answers alone|p; "
            "paper_n|n answers|integer",
            check_rows,
            "sure",
            "Sides are random, so being first causes no bias, but makes answers noisier. “Answers alone” treats the answers of one person as "
            "independent, which they are not.",
        ),
    ]


def _figures(answers: Sequence[ComparisonAnswers], scores: Sequence["Estimate"]) -> list[Figure]:
    if not answers:
        return []
    rows = [figure_row(score, comparison_label(score), "points (recommended)") for score in scores]
    half = max(comparison_answers.half_range for comparison_answers in answers)
    return [
        build_figure(
            "relative",
            "How much better x was judged than y",
            rows,
            description="Mean points toward x; 0 means the same.",
            axis="points toward x",
            reference=0.0,
            limits=[-half, half],
        )
    ]
