"""Planned comparisons: of two conditions, of two machine systems, or of each against chance, on one of three estimands.

What is compared is sensitivity (d'), the criterion, or accuracy: a training that makes people say "machine" oftener moves the
last two and not the first.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import Context
from analysis.protocols.blocks import Block, Wording, concluded
from analysis.protocols.blocks.cells import contrast_of
from analysis.protocols.blocks.comparisons import Comparison, judged

from . import layouts
from .judgements import EVERYWHERE, columns

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.results import Estimate

ESTIMANDS = ("sensitivity", "criterion", "accuracy")
WHAT = {"sensitivity": "d'", "criterion": "the criterion c", "accuracy": "accuracy"}
CHANCE = "chance"


def planned_blocks(one: Any, context: Context, where: str, suffix: str) -> list[Block]:
    """What each condition changes against the reference, planned or not, and every other planned comparison."""
    found: dict[str, list[tuple[Comparison, Estimate]]] = {estimand: [] for estimand in ESTIMANDS}
    for estimand, compared, rows in _wanted(one):
        estimate = _estimate(estimand, compared, rows, context)
        found[estimand].append((compared, _named(estimate, estimand, compared)))
    every = {
        estimand: judged(pairs, f"humanlike.{estimand}{suffix}", context.star_scheme)
        for estimand, pairs in found.items()
    }
    blocks = [
        Block(
            f"humanlike.{estimand}",
            f"Compared by {WHAT[estimand]}{where}",
            "recommended",
            estimates=estimates,
            conclusions=concluded(estimates, _wording, lambda one: one.settings["null"]),
            note="Annotators and texts are both taken as samples; each pair of conditions within one machine system.",
        )
        for estimand, estimates in every.items()
    ]
    model = _condition_models(one, context)
    tables = [
        layouts.changes([estimate for estimates in every.values() for estimate in estimates], where),
        layouts.by_domain(model, where),
    ]
    return [
        *(replace(block, tables=tables) if n == 0 else block for n, block in enumerate(blocks)),
        Block(
            "humanlike.condition_model",
            f"Conditions in each domain{where}",
            "recommended",
            estimates=tuple(model),
            note="Each domain weighs the same; the interaction tests whether what a condition changes depends on the domain.",
        ),
    ]


def _wanted(one: Any) -> list[tuple[str, Comparison, "DataFrame"]]:
    """(estimand, comparison, the rows it is about, with a column ``group``), each once; what is planned comes first."""
    section, several = one.section, len(one.models) > 1
    found: dict[tuple[str, str], tuple[str, Comparison, DataFrame]] = {}

    def add(estimand: str, compared: Comparison, rows: "DataFrame", column: str) -> None:
        found.setdefault((estimand, compared.key), (estimand, compared, rows.assign(group=rows[column])))

    def of(x: str, y: str, question: str, contrast: Any = None) -> Comparison:
        if contrast is None:
            return Comparison(section=section.position, x=x, y=y, question=question)
        return Comparison(
            section=section.position,
            x=x,
            y=y,
            question=question,
            role=contrast.role,
            family=contrast.family or contrast.role,
            expected=contrast.expected,
            margin=contrast.margin,
            level=contrast.level,
            is_planned=True,
        )

    for contrast in section.study.contrasts.select_related("x", "y"):
        estimand = contrast.estimand or ESTIMANDS[0]
        if contrast.section_id not in (None, section.pk) or estimand not in ESTIMANDS:
            continue
        if contrast.x_condition:
            for model in one.models:
                words = model if several else ""
                add(
                    estimand,
                    of(contrast.x_condition, contrast.y_condition, words, contrast),
                    one.of_model(model),
                    "condition",
                )
        elif contrast.x_id:
            if {contrast.x.name, contrast.y.name} <= set(one.models):
                rows = one.kept[one.kept["condition"].isin([one.reference(model) for model in one.models])]
                add(estimand, of(contrast.x.name, contrast.y.name, "", contrast), rows, "model")
        else:
            for cell in one.wholes:
                rows = one.rows(cell).assign(everybody=cell.key)
                add(estimand, of(cell.key, CHANCE, "", contrast), rows, "everybody")
    for model in one.models:
        for condition in one.conditions(model)[1:]:
            for estimand in ESTIMANDS:
                compared = of(condition, one.reference(model), model if several else "")
                add(estimand, compared, one.of_model(model), "condition")
    return list(found.values())


def _estimate(estimand: str, compared: Comparison, rows: "DataFrame", context: Context) -> "Estimate":
    from analysis.stats import detection, groups

    level = context.level
    is_chance = compared.y == CHANCE
    rows = rows[rows["group"].isin([compared.x, compared.y])]
    says, truth, correct, who, text = columns(rows, "says", "is_machine", "correct", "annotator", "text")
    if is_chance:
        if estimand == "accuracy":
            return detection.accuracy(correct, who, text, level=level, analysis="humanlike.planned_accuracy")
        make = detection.sensitivity if estimand == "sensitivity" else detection.criterion
        rng = context.rng("planned", estimand, compared.key)
        return make(
            says,
            truth,
            who,
            text,
            level=level,
            resamples=context.resamples,
            rng=rng,
            analysis=f"humanlike.planned_{estimand}",
        )
    group = rows["group"].to_numpy(object)
    missing = [name for name in (compared.x, compared.y) if name not in set(group)]
    if estimand == "accuracy" or missing:
        # A group that nobody is in has no cell: the same contrast says so, with its status.
        return groups.cell_contrast(
            correct,
            group,
            {compared.x: 1.0, compared.y: -1.0},
            who,
            text,
            level=level,
            bounds=(0.0, 1.0) if not missing else None,
            analysis=f"humanlike.{estimand}_difference",
            estimand=f"difference of {WHAT[estimand]} x - y",
        )
    both = detection.sensitivity_by_condition(
        says, truth, who, group, text, reference=compared.y, level=level, analysis="humanlike.condition"
    )
    differences = both.sensitivity_differences if estimand == "sensitivity" else both.criterion_differences
    return next(one for one in differences if one.settings["condition"] == compared.x)


def _named(estimate: "Estimate", estimand: str, compared: Comparison) -> "Estimate":
    """The estimate with its comparison, and with a TOST where a margin was set."""
    null = 0.5 if estimand == "accuracy" and compared.y == CHANCE else 0.0
    tost = compared.equivalence(estimate, null=null, analysis=f"humanlike.{estimand}.equivalence")
    estimate = replace(estimate, sensitivity=(*estimate.sensitivity, *tost))
    return compared.named(estimate, estimand, null=null)


def _wording(one: "Estimate") -> Wording:
    contrast, estimand = contrast_of(one), one.settings["key"]
    x, y = contrast["x"], contrast["y"]
    about = f" ({contrast['question']})" if contrast["question"] else ""
    if y == CHANCE:
        return {
            "sensitivity": Wording(
                more=f"Annotators told machine from human texts ({x}).",
                less=f"Annotators took machine texts for human ones more than chance would have it ({x}).",
                same=f"Annotators did not tell machine from human texts ({x})",
                open=f"It remains open whether annotators tell machine from human texts ({x}).",
                before="d' is",
                symbol="d'",
            ),
            "criterion": Wording(
                more=f"Annotators leaned to “human” ({x}).",
                less=f"Annotators leaned to “machine” ({x}).",
                same=f"Annotators leaned to neither answer ({x})",
                open=f"It remains open whether annotators lean to either answer ({x}).",
                before="The criterion c is",
                symbol="c",
            ),
            "accuracy": Wording(
                more=f"Annotators were right more often than by guessing ({x}).",
                less=f"Annotators were right less often than by guessing ({x}).",
                same=f"Annotators were right as often as by guessing ({x})",
                open=f"It remains open whether annotators are right more often than by guessing ({x}).",
                before="The share of correct answers is",
                symbol="accuracy",
                kind="percent",
            ),
        }[estimand]
    return {
        "sensitivity": Wording(
            more=f"Annotators told machine from human texts better under {x} than under {y}{about}.",
            less=f"Annotators told machine from human texts worse under {x} than under {y}{about}.",
            same=f"Annotators told machine from human texts equally well under {x} and {y}{about}",
            open=f"It remains open whether {x} or {y} lets annotators tell machine from human texts better{about}.",
            before="The difference of d' is",
            symbol="Δd'",
        ),
        "criterion": Wording(
            more=f"Annotators leaned to “human” more under {x} than under {y}{about}.",
            less=f"Annotators leaned to “human” less under {x} than under {y}{about}.",
            same=f"Annotators leaned to “human” alike under {x} and {y}{about}",
            open=f"It remains open whether {x} or {y} makes annotators lean to “human” more{about}.",
            before="The difference of the criterion c is",
            symbol="Δc",
        ),
        "accuracy": Wording(
            more=f"Annotators were right more often under {x} than under {y}{about}.",
            less=f"Annotators were right less often under {x} than under {y}{about}.",
            same=f"Annotators were right equally often under {x} and {y}{about}",
            open=f"It remains open whether annotators are right more often under {x} or {y}{about}.",
            before="The difference of the shares of correct answers is",
            symbol="Δaccuracy",
            kind="percent",
        ),
    }[estimand]


def _condition_models(one: Any, context: Context) -> list["Estimate"]:
    """The condition x domain model of accuracy, where a machine system has several of both."""
    from analysis.stats import groups

    found = []
    for model in one.models:
        rows = one.of_model(model)
        domains = {cell.domain for cell in one.cells if cell.model == model} - {EVERYWHERE}
        if len(domains) < 2 or rows["domain"].nunique() < 2 or rows["condition"].nunique() < 2:
            continue
        reference = one.reference(model)
        if reference not in set(rows["condition"]):
            continue
        correct, condition, domain, who, text = columns(rows, "correct", "condition", "domain", "annotator", "text")
        fitted = groups.condition_model(
            correct,
            condition,
            domain,
            who,
            text,
            reference=reference,
            level=context.level,
            analysis="humanlike.condition_model",
        )
        every = (*fitted.effects, *fitted.by_domain, *fitted.cells, fitted.interaction)
        found += [replace(estimate, settings={**estimate.settings, "model": model}) for estimate in every]
    return found
