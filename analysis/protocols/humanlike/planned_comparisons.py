"""Planned comparisons of two conditions, of two machine systems, or of each against chance, on one of three estimands.

The estimands are sensitivity (d'), the criterion and accuracy. A training that only makes people say "machine" more often
changes the last two, but not the first.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block, ConclusionPhrases, build_planned_conclusions
from analysis.protocols.blocks.cells import compared_names, subject_note
from analysis.protocols.blocks.comparisons import AdjustedByBlock, ComparedByBlock, Comparison, comparison_from_contrast
from analysis.protocols.blocks.populations import SECOND_SAMPLE, about_groups
from analysis.protocols.kinds.answers import column_arrays
from studies.design.subjects import Subject, in_parentheses, words_of_section
from studies.protocols import REGISTRY

from . import layouts
from .judgements import ALL_DOMAINS, TRAINING, Cell, Judgements, PlannedCells

if TYPE_CHECKING:
    from pandas import DataFrame, Series

    from analysis.stats.results import Estimate

ESTIMANDS = ("sensitivity", "criterion", "accuracy")
ESTIMAND_LABELS = {"sensitivity": "d'", "criterion": "the criterion c", "accuracy": "accuracy"}
CHANCE = "chance"
# Gives the rows of a comparison, and the group of each row (or of all).
GroupOf = Callable[[Judgements], "tuple[DataFrame, Series[Any] | str]"]


def compared_estimates(judgements: Judgements, context: AnalysisContext) -> ComparedByBlock:
    """Return each condition against the reference, planned or not, and every other planned comparison."""
    pairs: dict[str, list[tuple[Comparison, Estimate]]] = {
        f"humanlike.{name}{judgements.suffix}": [] for name in ESTIMANDS
    }
    for estimand, compared, group_of in section_comparisons(judgements.section, judgements.design):
        rows, groups = group_of(judgements)
        rows = rows.assign(group=groups)
        rows = rows[rows["group"].isin([compared.x, compared.y])]
        estimate = about_groups(_estimate(estimand, compared, rows, context), rows, compared.population)
        pairs[f"humanlike.{estimand}{judgements.suffix}"].append(
            (compared, _tag_with_equivalence(estimate, estimand, compared))
        )
    return pairs


def planned_and_reference_comparison_blocks(
    judgements: Judgements, adjusted: AdjustedByBlock, context: AnalysisContext
) -> list[Block]:
    """Return blocks for each condition against the reference, planned or not, and for every other planned comparison."""
    estimates_by_estimand = {name: adjusted[f"humanlike.{name}{judgements.suffix}"] for name in ESTIMANDS}
    blocks = [
        Block(
            f"humanlike.{estimand}",
            f"Compared by {ESTIMAND_LABELS[estimand]}{judgements.where}",
            estimates=estimates,
            conclusions=build_planned_conclusions(estimates, phrases_of_comparison),
            note="Annotators and texts are both treated as samples. Each pair of conditions is within one machine system.",
        )
        for estimand, estimates in estimates_by_estimand.items()
    ]
    model = _condition_model_estimates(judgements, context)
    tables = [
        layouts.condition_comparisons_table(
            [estimate for estimates in estimates_by_estimand.values() for estimate in estimates], judgements.where
        ),
        layouts.training_effects_by_domain_table(model, judgements.where),
    ]
    return [
        *(replace(block, tables=tables) if n == 0 else block for n, block in enumerate(blocks)),
        Block(
            "humanlike.condition_model",
            f"Conditions in each domain{judgements.where}",
            estimates=tuple(model),
            note="Each domain has the same weight. The interaction tests whether the effect of a condition depends on the domain.",
        ),
    ]


def section_comparisons(section: Any, design: PlannedCells) -> list[tuple[str, Comparison, GroupOf]]:
    """Return (estimand, comparison, the function that gives its rows with their groups), each once, planned ones first."""
    several = len(design.models) > 1
    comparisons: dict[tuple[str, str], tuple[str, Comparison, GroupOf]] = {}

    def add(estimand: str, compared: Comparison, group_of: GroupOf) -> None:
        comparisons.setdefault((estimand, compared.key), (estimand, compared, group_of))

    circumstance = words_of_section(section).circumstance

    def build_comparison(x: str, y: str, question: str, contrast: Any, cell: Cell | None = None) -> Comparison:
        compared = comparison_from_contrast(contrast, section, "", question, names=(x, y))
        return replace(compared, subject=_subject(x, y, question, circumstance, cell))

    default = REGISTRY[section.protocol].default_estimand(section)
    for contrast in section.study.contrasts.select_related("x", "y"):
        estimand = contrast.estimand or default
        if contrast.section_id not in (None, section.pk) or estimand not in ESTIMANDS:
            continue
        if contrast.x_condition:
            for model in design.models:
                compared = build_comparison(
                    contrast.x_condition, contrast.y_condition, model if several else "", contrast
                )
                add(estimand, compared, partial(_conditions_of_model, model=model))
        elif contrast.x_id:
            if {contrast.x.name, contrast.y.name} <= set(design.models):
                add(estimand, build_comparison(contrast.x.name, contrast.y.name, "", contrast), _models_in_reference)
        else:
            for cell in design.cells:
                add(
                    estimand,
                    build_comparison(cell.key, CHANCE, "", contrast, cell),
                    partial(_everybody_of_cell, cell=cell),
                )
    for model in design.models:
        for condition in design.conditions(model)[1:]:
            for estimand in ESTIMANDS:
                reference, question = design.reference_condition(model), model if several else ""
                subject = _subject(condition, reference, question, circumstance)
                compared = Comparison(section.position, condition, reference, question=question, subject=subject)
                add(estimand, compared, partial(_conditions_of_model, model=model))
    return list(comparisons.values())


def _subject(x: str, y: str, model: str, circumstance: str, cell: Cell | None = None) -> Subject:
    """Return the words of a comparison: its machine system, if the section has several, and conditions by what they are."""
    return Subject(model, circumstance, cell.label if cell is not None else TRAINING.get(x, x), TRAINING.get(y, y))


def _conditions_of_model(judgements: Judgements, *, model: str) -> "tuple[DataFrame, Series[Any] | str]":
    rows = judgements.model_rows(model)
    return rows, rows["condition"]


def _models_in_reference(judgements: Judgements) -> "tuple[DataFrame, Series[Any] | str]":
    references = [judgements.reference_condition(model) for model in judgements.models]
    rows = judgements.kept[judgements.kept["condition"].isin(references)]
    return rows, rows["model"]


def _everybody_of_cell(judgements: Judgements, *, cell: Cell) -> "tuple[DataFrame, Series[Any] | str]":
    return judgements.cell_rows(cell), cell.key


def _estimate(estimand: str, comparison: Comparison, rows: "DataFrame", context: AnalysisContext) -> "Estimate":
    from analysis.stats import cell_contrasts, detection

    level = context.level
    is_chance = comparison.y == CHANCE
    says, truth, correct, annotators, text = column_arrays(
        rows, "says", "is_machine", "correct", "annotator", SECOND_SAMPLE
    )
    if is_chance:
        if estimand == "accuracy":
            accuracy = detection.clustered_accuracy(correct, annotators, text, level=level)
            return accuracy.labelled(analysis="humanlike.planned_accuracy")
        make = detection.marginal_d_prime if estimand == "sensitivity" else detection.marginal_criterion
        rng = context.rng("planned", estimand, comparison.key)
        return make(
            says,
            truth,
            annotators,
            text,
            level=level,
            sensitivity_resamples=context.resamples,
            rng=rng,
            analysis=f"humanlike.planned_{estimand}",
        )
    group = rows["group"].to_numpy(object)
    missing = [name for name in (comparison.x, comparison.y) if name not in set(group)]
    if estimand == "accuracy" or missing:
        # An empty group has no cell. The contrast reports this in its status.
        return cell_contrasts.cell_contrast(
            correct,
            group,
            {comparison.x: 1.0, comparison.y: -1.0},
            annotators,
            text,
            level=level,
            bounds=(0.0, 1.0) if not missing else None,
            analysis=f"humanlike.{estimand}_difference",
            estimand=f"difference of {ESTIMAND_LABELS[estimand]} x - y",
        )
    effects = detection.d_prime_and_criterion_by_condition(
        says, truth, annotators, group, text, reference=comparison.y, level=level
    )
    differences = effects.sensitivity_differences if estimand == "sensitivity" else effects.criterion_differences
    return next(difference for difference in differences if difference.settings["condition"] == comparison.x)


def _tag_with_equivalence(estimate: "Estimate", estimand: str, comparison: Comparison) -> "Estimate":
    """Return the estimate with its comparison, and with a TOST if there is a margin."""
    null = 0.5 if estimand == "accuracy" and comparison.y == CHANCE else 0.0
    tests = comparison.equivalence_tests(estimate, null=null)
    tost = [test.labelled(analysis=f"humanlike.{estimand}.equivalence") for test in tests]
    estimate = replace(estimate, sensitivity=(*estimate.sensitivity, *tost))
    return comparison.tag_estimate(estimate, estimand, null=null)


# Claims that differ only in what is compared: with guessing, in a cell x, or under two conditions x and y.
GUESSING_PHRASES = {
    "sensitivity": ConclusionPhrases(
        above_claim="Annotators distinguished machine from human texts ({x}){about}.",
        below_claim="Annotators took machine texts for human ones more than guessing would ({x}){about}.",
        same="Annotators did not distinguish machine from human texts ({x}){about}",
        open="It remains open whether annotators distinguish machine from human texts ({x}){about}.",
        before="d' is",
        symbol="d' ({x}, {y})",
    ),
    "criterion": ConclusionPhrases(
        above_claim="Annotators leaned to “human” ({x}){about}.",
        below_claim="Annotators leaned to “machine” ({x}){about}.",
        same="Annotators leaned to neither answer ({x}){about}",
        open="It remains open whether annotators lean to either answer ({x}){about}.",
        before="The criterion c is",
        symbol="c ({x}, {y})",
    ),
    "accuracy": ConclusionPhrases(
        above_claim="Annotators were right more often than by guessing ({x}){about}.",
        below_claim="Annotators were right less often than by guessing ({x}){about}.",
        same="Annotators were right as often as by guessing ({x}){about}",
        open="It remains open whether annotators are right more often than by guessing ({x}){about}.",
        before="The share of correct answers is",
        symbol="accuracy ({x}, {y})",
        kind="percent",
    ),
}
CONDITION_PHRASES = {
    "sensitivity": ConclusionPhrases(
        above_claim="Annotators distinguished machine from human texts better under {x} than under {y}{about}.",
        below_claim="Annotators distinguished machine from human texts worse under {x} than under {y}{about}.",
        same="Annotators distinguished machine from human texts equally well under {x} and {y}{about}",
        open="It remains open whether {x} or {y} lets annotators distinguish machine from human texts better{about}.",
        before="The difference of d' is",
        symbol="d'({x}) − d'({y})",
    ),
    "criterion": ConclusionPhrases(
        above_claim="Annotators leaned to “human” more under {x} than under {y}{about}.",
        below_claim="Annotators leaned to “human” less under {x} than under {y}{about}.",
        same="Annotators leaned to “human” alike under {x} and {y}{about}",
        open="It remains open whether {x} or {y} makes annotators lean to “human” more{about}.",
        before="The difference of the criterion c is",
        symbol="c({x}) − c({y})",
    ),
    "accuracy": ConclusionPhrases(
        above_claim="Annotators were right more often under {x} than under {y}{about}.",
        below_claim="Annotators were right less often under {x} than under {y}{about}.",
        same="Annotators were right equally often under {x} and {y}{about}",
        open="It remains open whether annotators are right more often under {x} or {y}{about}.",
        before="The difference of the shares of correct answers is",
        symbol="accuracy({x}) − accuracy({y})",
        kind="percent",
    ),
}


def phrases_of_comparison(estimate: "Estimate") -> ConclusionPhrases:
    by_estimand = GUESSING_PHRASES if compared_names(estimate)[1] == CHANCE else CONDITION_PHRASES
    about = in_parentheses(subject_note(estimate))
    return replace(by_estimand[estimate.settings["key"]].about_comparison(estimate, about), item="text")


def _condition_model_estimates(judgements: Any, context: AnalysisContext) -> list["Estimate"]:
    """Return the condition x domain model of accuracy, if a machine system has several of both."""
    from analysis.stats import cell_contrasts

    estimates = []
    for model in judgements.models:
        rows = judgements.model_rows(model)
        domains = {cell.domain for cell in judgements.cells if cell.model == model} - {ALL_DOMAINS}
        if len(domains) < 2 or rows["domain"].nunique() < 2 or rows["condition"].nunique() < 2:
            continue
        reference = judgements.reference_condition(model)
        if reference not in set(rows["condition"]):
            continue
        correct, condition, domain, annotators, text = column_arrays(
            rows, "correct", "condition", "domain", "annotator", SECOND_SAMPLE
        )
        fitted = cell_contrasts.condition_by_domain_model(
            correct,
            condition,
            domain,
            annotators,
            text,
            reference=reference,
            level=context.level,
        )
        model_estimates = (*fitted.effects, *fitted.by_domain, *fitted.cells, fitted.interaction)
        estimates += [replace(estimate, settings={**estimate.settings, "model": model}) for estimate in model_estimates]
    return estimates
