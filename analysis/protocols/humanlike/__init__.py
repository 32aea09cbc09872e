"""Analyse "human or machine?": the paper's accuracies, and separately the sensitivity and leaning that accuracy mixes.

A row is one judgement. A *cell* is a machine system in a domain under a training condition. Annotators who read its
machine texts also read human texts of the same domain. Training sections are not among the rows.

Source: Clark et al. 2021, sections 2.4 and 3.2, Tables 1 and 2, Figures 3 and 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.comparisons import AdjustedByBlock, Comparison
from analysis.protocols.blocks.populations import SECOND_SAMPLE
from analysis.protocols.kinds.answers import column_arrays, read_rewrites
from analysis.protocols.kinds.pairs import PairAnalysis, keep_by_id
from analysis.protocols.kinds.scores import agreement_alpha
from studies.design.subjects import Subject
from studies.protocols.humanlike import SOURCE

from .. import HeadlineAnswers, register
from ..scores import Scorer
from . import layouts
from .judgements import ALL_DOMAINS, Cell, Judgements, read_judgements, read_planned_cells, tag_with_cell
from .planned_comparisons import (
    CHANCE,
    compared_estimates,
    planned_and_reference_comparison_blocks,
    section_comparisons,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.detection import HumanLikeness
    from analysis.stats.results import Estimate

AGREEMENT_RESAMPLES = 999


class HumanLikeScorer(Scorer):
    """Human or machine: an output scores 1 if the annotator said that a human wrote it, and 0 otherwise."""

    def is_scored(self, question):
        return question.key == SOURCE

    def describe_scores(self, section, question):
        return "An answer gives the highest score if it says that a human wrote the output, and the lowest otherwise, for texts of machines too."

    def find_problem(self, section, settings):
        if section.study.systems.judged().filter(is_human=True).exists():
            return ""
        return "Annotators compare human with machine texts, but the template has no human system. Add one with its outputs."

    def items_per_prompt(self, settings, n_systems, n_references):
        # Half of the texts are by machines. With several human systems this is more than needed, never less.
        return 2 * max(1, n_systems - 1)

    def score_answers(self, section, question, answers, shown):
        from analysis.stats.signal_detection import ratings_to_machine_answers

        rows = answers[answers["value"].notna() & answers["system"].notna()]
        says_machine = ratings_to_machine_answers(rows["value"].to_numpy(float), threshold=0.5)
        return rows.assign(value=1 - says_machine, other=None, is_first=None)


@register
class HumanLikeAnalysis(PairAnalysis):
    slug = "humanlike"
    paper = layouts.PAPER
    scorer = HumanLikeScorer()
    gives_preferences = False
    headline_blocks = {
        "humanlike": "humanlike.accuracy",
        "accuracy_between_conditions": "humanlike.accuracy",
        "sensitivity_between_conditions": "humanlike.sensitivity",
    }

    keep = keep_by_id

    def planned_claims(self, sections: Sequence[Any]) -> dict[str, list[Comparison]]:
        claims: dict[str, list[Comparison]] = {}
        for section in sections:
            design = read_planned_cells(section)
            suffix = _suffix(sections, section)
            for estimand, compared, _ in section_comparisons(section, design) if design is not None else ():
                if compared.is_planned:
                    claims.setdefault(f"humanlike.{estimand}{suffix}", []).append(compared)
        return claims

    def read(self, context):
        found = [
            read_judgements(context.rows, section, _suffix(context.sections, section)) for section in context.sections
        ]
        return [judgements for judgements in found if judgements is not None]

    def compare(self, records, context):
        return {
            name: pairs for judgements in records for name, pairs in compared_estimates(judgements, context).items()
        }

    def blocks(self, records, adjusted, context):
        return [block for judgements in records for block in _section_blocks(judgements, adjusted, context)]

    def headline_answers(self, context: AnalysisContext) -> list[HeadlineAnswers]:
        """Return whether each judgement of a cell is right, compared with guessing. Each text is a prompt of its own."""
        from pandas import Categorical

        def answers(judgements: Judgements, cell: Cell) -> HeadlineAnswers:
            rows = judgements.cell_rows(cell)
            people, texts = (Categorical(rows[name]) for name in ("annotator", SECOND_SAMPLE))
            return HeadlineAnswers(
                Comparison(judgements.section.position, cell.key, CHANCE),
                rows["correct"].to_numpy(float),
                people,
                texts,
                agreement=partial(_agreement, judgements, cell, context),
                by_domain={one.domain: answers(judgements, one) for one in judgements.domains_of(cell)},
            )

        return [
            answers(judgements, cell) for judgements in self.records(context) for cell in judgements.cells_over_domains
        ]

    def guesses(self, context):
        return [
            (
                Comparison(judgements.section.position, cell.key, CHANCE, subject=Subject(x=cell.label)),
                judgements.cell_rows(cell),
            )
            for judgements in self.records(context)
            for cell in judgements.cells_over_domains
        ]


def _suffix(sections: Sequence[Any], section: Any) -> str:
    """Return what distinguishes the blocks and families of one of several sections."""
    return f"_{section.position}" if len(sections) > 1 else ""


def _section_blocks(judgements: Judgements, adjusted: AdjustedByBlock, context: AnalysisContext) -> list[Block]:
    by_domain = tuple(cell for cell in judgements.cells if cell.domain != ALL_DOMAINS)
    # With a single domain, "all domains" would repeat it.
    several = by_domain if len({cell.domain for cell in by_domain}) > 1 else ()
    likeness_by_cell = {
        cell: _human_likeness(judgements, cell, context) for cell in (*judgements.cells_over_domains, *several)
    }
    papers = {
        cell: _paper_cell_results(judgements, cell, context) for cell in (*judgements.cells_over_domains, *by_domain)
    }
    tests = _paper_tests(judgements, papers, context)
    rewrites = read_rewrites(context.rows, judgements.section)
    return [
        *planned_and_reference_comparison_blocks(judgements, adjusted, context),
        _detection_block(judgements, likeness_by_cell, context),
        _paper_tables_block(judgements, papers, tests),
        _groups_block(judgements, context, is_paper=True),
        _groups_block(judgements, context, is_paper=False),
        _checks_block(judgements, context),
        *([] if rewrites is None else [_rewrites_block(judgements, rewrites, context)]),
    ]


def _human_likeness(judgements: Judgements, cell: Cell, context: AnalysisContext) -> "HumanLikeness":
    from analysis.stats import detection

    rows = judgements.cell_rows(cell)
    return detection.human_likeness(
        *column_arrays(rows, "rating", "is_machine", "annotator", SECOND_SAMPLE),
        threshold=judgements.threshold,
        confident_ratings=(judgements.low, judgements.high),
        level=context.level,
        sensitivity_resamples=context.resamples,
        rng=context.rng("cell", judgements.section.position, cell.key),
    )


@dataclass(frozen=True, slots=True)
class PaperCellResults:
    """The paper's numbers for one cell."""

    measures: Any
    accuracy: "Estimate"
    alpha: "Estimate"
    alpha_points: "Estimate"
    n: int


def _paper_cell_results(judgements: Judgements, cell: Cell, context: AnalysisContext) -> PaperCellResults:
    from analysis.stats import detection, signal_detection

    rows = judgements.cell_rows(cell, is_paper=True)
    rating, truth, correct, annotators = column_arrays(rows, "rating", "is_machine", "correct", "annotator")
    alpha, alpha_points = (
        _agreement(judgements, cell, context, *coded) for coded in (("says", "nominal"), ("rating", "ordinal"))
    )
    return PaperCellResults(
        signal_detection.detection_measures(
            rating, truth, threshold=judgements.threshold, confident_ratings=(judgements.low, judgements.high)
        ),
        detection.mean_annotator_accuracy(correct, annotators, level=context.level),
        alpha,
        alpha_points,
        len(set(annotators)),
    )


def _agreement(
    judgements: Judgements, cell: Cell, context: AnalysisContext, column: str = "says", kind: str = "nominal"
) -> "Estimate":
    rows = judgements.cell_rows(cell, is_paper=True)
    alpha = agreement_alpha(
        rows["text"],
        rows[column],
        level_of_measurement=kind,
        level=context.level,
        resamples=min(AGREEMENT_RESAMPLES, context.resamples),
        rng=context.rng("alpha", kind, judgements.section.position, cell.key),
    )
    return tag_with_cell(alpha.labelled(analysis=f"humanlike.alpha_{kind}", unit="text", mode="paper"), cell)


def _paper_tests(
    judgements: Judgements,
    results_by_cell: Mapping[Cell, PaperCellResults],
    context: AnalysisContext,
) -> dict[tuple[str, Cell], "Estimate"]:
    """Run the paper's tests with Bonferroni over all of them: untrained cells against chance, trained cells against untrained.

    The paper has 6 and 9 of them; its means over domains are held to the same threshold.
    """
    from analysis.stats import basic, multiplicity

    planned, estimates = [], {}
    for cell in results_by_cell:
        is_reference = cell.condition == judgements.reference_condition(cell.model)
        kind = "chance" if is_reference else "training"
        planned.append((kind, cell))
        if is_reference:
            estimates[kind, cell] = results_by_cell[cell].accuracy
        else:
            untrained = Cell(cell.model, judgements.reference_condition(cell.model), cell.domain)
            groups = [_annotator_accuracies(judgements.cell_rows(which, is_paper=True)) for which in (cell, untrained)]
            estimates[kind, cell] = basic.welch_t_test(*groups, level=context.level).labelled(
                analysis="humanlike.training",
                estimand=f"accuracy: {cell.condition} - {untrained.condition}",
                mode="paper",
            )
    in_domains = [key for key in planned if key[1].domain != ALL_DOMAINS] or planned
    results: dict[tuple[str, Cell], Estimate] = {}
    for keys in (in_domains, [key for key in planned if key not in in_domains]):
        names = {" of ".join((kind, cell.key)): (kind, cell) for kind, cell in keys}
        # Means over domains are adjusted as if there were as many of them as cells.
        missing = tuple(f"(cell {n})" for n in range(len(names), len(in_domains)))
        family = multiplicity.Family(f"humanlike.paper{judgements.suffix}", (*names, *missing), "bonferroni")
        judged = multiplicity.adjust_pvalues_and_intervals_of_family(
            {name: estimates[key] for name, key in names.items()}, family, star_scheme=context.star_scheme
        )
        results |= {names[name]: tag_with_cell(estimate, names[name][1]) for name, estimate in judged.items()}
    return results


def _annotator_accuracies(rows: "DataFrame"):
    from analysis.stats import signal_detection

    return signal_detection.accuracy_by_annotator(*column_arrays(rows, "correct", "annotator")).accuracies


def _detection_block(judgements, likeness_by_cell, context) -> Block:
    from analysis.stats import multiplicity

    parts = ("sensitivity", "criterion", "auc", "accuracy", "bias", "share_human")
    estimates = {
        (cell, part): tag_with_cell(getattr(likeness, part), cell)
        for cell, likeness in likeness_by_cell.items()
        for part in parts
    }
    for part in ("sensitivity", "auc", "accuracy"):
        for is_by_domain in (False, True):
            keys = [cell for cell in likeness_by_cell if (cell.domain != ALL_DOMAINS) == is_by_domain]
            name = f"humanlike.{part}{judgements.suffix}{'.by_domain' if is_by_domain else ''}"
            family = multiplicity.Family(name, tuple(cell.key for cell in keys))
            cell_estimates = {cell.key: estimates[cell, part] for cell in keys}
            judged = multiplicity.adjust_pvalues_and_intervals_of_family(
                cell_estimates, family, star_scheme=context.star_scheme
            )
            estimates |= {
                (cell, part): multiplicity.adjust_detectable_difference(
                    judged[cell.key], family, significance=1 - context.level
                )
                for cell in keys
            }
    return Block(
        "humanlike.detection",
        f"Telling human from machine{judgements.where}",
        estimates=tuple(estimates.values()),
        tables=[layouts.detection_table(estimates, likeness_by_cell, judgements.where)],
        figures=[layouts.sensitivity_and_criterion_figure(estimates, likeness_by_cell, judgements.where)],
        note="d' and c are pooled over annotators. Texts and annotators are both treated as samples.",
    )


def _paper_tables_block(judgements, results_by_cell, tests) -> Block:
    accuracies = [
        tag_with_cell(paper.accuracy, cell) for cell, paper in results_by_cell.items() if ("chance", cell) not in tests
    ]
    figures = []
    is_one_domain = len({cell.domain for cell in results_by_cell} - {ALL_DOMAINS}) == 1
    figure_cells = [cell for cell in results_by_cell if not (is_one_domain and cell.domain != ALL_DOMAINS)]
    for number, cell in enumerate((cell for cell in figure_cells if len(judgements.cell_rows(cell, is_paper=True))), 1):
        rows = judgements.cell_rows(cell, is_paper=True)
        figures += layouts.correct_count_histograms(cell, rows, number, judgements.where)
    return Block(
        "humanlike.paper",
        f"The tables of {layouts.PAPER}{judgements.where}",
        "paper",
        estimates=(
            *tests.values(),
            *accuracies,
            *(p.alpha for p in results_by_cell.values()),
            *(p.alpha_points for p in results_by_cell.values()),
        ),
        tables=[
            layouts.paper_untrained_annotators_table(judgements, results_by_cell, tests),
            layouts.paper_conditions_table(judgements, results_by_cell, tests),
        ],
        figures=figures,
    )


def _groups_block(judgements, context, *, is_paper: bool) -> Block:
    """Compare annotators' accuracies: analysis of variance over domains, and every pair of conditions."""
    from analysis.stats import groups

    level, estimates = context.level, []
    mode, anova, anova_name = "recommended", groups.welch_anova, "welch_anova"
    method, pairs_name = "games_howell", "games_howell"
    title, table_name, table_title = "Groups compared", "groups", "Groups compared, whatever their variances"
    if is_paper:
        mode, anova, anova_name = "paper", groups.one_way_anova, "anova"
        method, pairs_name = "tukey_hsd", "tukey"
        title = table_title = f"Groups compared, as in {layouts.PAPER}"
        table_name = "groups_paper"
    for model in judgements.models:
        scores = _annotator_scores(judgements.model_rows(model, is_paper=is_paper))
        reference = judgements.reference_condition(model)
        untrained = scores[scores["condition"] == reference]
        if len({cell.domain for cell in judgements.cells if cell.model == model}) > 1:
            domains = anova(*column_arrays(untrained, "accuracy", "domain"), level=level)
            estimates.append(
                tag_with_cell(domains.labelled(analysis=f"humanlike.{anova_name}"), Cell(model, reference))
            )
        if len(judgements.conditions(model)) > 1:
            pairs = groups.pairwise_comparisons(
                *column_arrays(scores, "accuracy", "condition"),
                method=method,
                level=level,
                analysis=f"humanlike.{pairs_name}",
                mode_label=mode,
            )
            estimates += [_tag_with_model(pair, judgements, model) for pair in pairs]
    return Block(
        "humanlike.groups",
        f"{title}{judgements.where}",
        mode,
        estimates=tuple(estimates),
        tables=[layouts.accuracy_group_tests_table(estimates, table_name, f"{table_title}{judgements.where}")],
    )


def _tag_with_model(estimate: "Estimate", judgements: Judgements, model: str) -> "Estimate":
    """Return a pair of conditions with its machine system. The pairs of each machine system are a family."""
    test = estimate.test
    if test is not None:
        test = replace(
            test, family=f"{test.family}{judgements.suffix}" + (f" ({model})" if len(judgements.models) > 1 else "")
        )
    return replace(estimate, settings={**estimate.settings, "model": model}, test=test)


def _annotator_scores(rows: "DataFrame") -> "DataFrame":
    """Return one row per annotator: accuracy, condition, domain."""
    grouped = rows.groupby("annotator", sort=True)
    scores = grouped.agg(accuracy=("correct", "mean"), condition=("condition", "first"), domain=("domain", "first"))
    return scores.reset_index()


def _checks_block(judgements, context) -> Block:
    """Check whether confident answers are more often correct, and whether accuracy changes within a session."""
    from analysis.stats import detection

    rows, level = judgements.kept, context.level
    gain = detection.confident_accuracy_gain(
        *column_arrays(rows, "correct", "rating", "annotator", SECOND_SAMPLE),
        confident_ratings=(judgements.low, judgements.high),
        level=level,
    )
    drift = detection.change_per_session_position(*column_arrays(rows, "correct", "position", "annotator"), level=level)
    return Block(
        "humanlike.checks",
        f"Confidence, and the session{judgements.where}",
        estimates=(gain, drift),
        tables=[layouts.confidence_and_session_table((gain, drift), judgements.where)],
    )


def _rewrites_block(judgements: Judgements, rewrites: "DataFrame", context: AnalysisContext) -> Block:
    """Say how much of the texts people kept who rewrote them: the mean share of a text's words, by machine and training."""
    from analysis.stats import clusters

    estimates, rows = [], []
    for cell in judgements.cells_over_domains:
        own = rewrites[rewrites["annotator"].isin(set(judgements.cell_rows(cell)["annotator"]))]
        for author in sorted(set(own["system"])):
            written = own[own["system"] == author]
            mean = clusters.annotator_prompt_clustered_mean(
                *column_arrays(written, "kept", "annotator", SECOND_SAMPLE),
                null=None,
                level=context.level,
                bounds=(0.0, 1.0),
                analysis="humanlike.words_kept",
                estimand="mean share of a text's words that its rewrite keeps",
                unit="annotator",
            )
            estimates.append(tag_with_cell(replace(mean, settings={**mean.settings, "author": author}), cell))
            n_texts = len(written[["prompt", "sample"]].drop_duplicates())
            rows.append((cell, author, estimates[-1], len(written), n_texts))
    return Block(
        "humanlike.rewrites",
        f"Texts rewritten to seem human{judgements.where}",
        estimates=tuple(estimates),
        tables=[layouts.rewrites_table(rows, judgements.where)],
        note="People rewrite texts of which they say what they would change. The texts are under “What the numbers are about”.",
    )
