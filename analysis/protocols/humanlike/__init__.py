"""What answers to "human or machine?" say: the paper's accuracies, and beside them what accuracy mixes up.

A row is one judgement. A *cell* is a machine system in a domain under a training condition; whoever read its
machine texts read human texts of the same domain beside them. Training sections are not among the rows.

Source: Clark et al. 2021, sections 2.4 and 3.2, Tables 1 and 2, Figures 3 and 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from analysis.data.context import Context
from analysis.protocols.blocks import Block

from .. import ProtocolAnalysis, register
from . import layouts
from .judgements import EVERYWHERE, Cell, Judgements, columns, judgements_of, named
from .planned import planned_blocks

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.stats.detection import HumanLikeness
    from analysis.stats.results import Estimate

AGREEMENT_RESAMPLES = 999


@register
class HumanLikeAnalysis(ProtocolAnalysis):
    slug = "humanlike"

    def analyse(self, context: Context) -> list[Block]:
        """Blocks for every section; families run within a section."""
        several = len(context.sections) > 1
        blocks = []
        for section in context.sections:
            one = judgements_of(context.rows, section)
            if one is not None:
                where = f" (section {section.position})" if several else ""
                blocks += _of_section(one, context, where, f"_{section.position}" if several else "")
        return [block for block in blocks if block.estimates]


def _of_section(one: Judgements, context: Context, where: str, suffix: str) -> list[Block]:
    by_domain = tuple(cell for cell in one.cells if cell.domain != EVERYWHERE)
    # Of one domain alone, all domains together are that domain.
    several = by_domain if len({cell.domain for cell in by_domain}) > 1 else ()
    found = {cell: _cell(one, cell, context) for cell in (*one.wholes, *several)}
    papers = {cell: _paper_cell(one, cell, context) for cell in (*one.wholes, *by_domain)}
    tests = _paper_tests(one, papers, context, suffix)
    return [
        *planned_blocks(one, context, where, suffix),
        _detection_block(one, found, context, where, suffix),
        _table_block(one, papers, tests, where),
        _paper_comparisons(one, context, where, suffix),
        _recommended_comparisons(one, context, where, suffix),
        _checks(one, context, where),
    ]


def _cell(one: Judgements, cell: Cell, context: Context) -> "HumanLikeness":
    from analysis.stats import detection

    rows = one.rows(cell)
    return detection.human_likeness(
        *columns(rows, "rating", "is_machine", "annotator", "text"),
        threshold=one.threshold,
        ends=(one.low, one.high),
        level=context.level,
        resamples=context.resamples,
        rng=context.rng("cell", one.section.position, cell.key),
    )


@dataclass(frozen=True, slots=True)
class PaperCell:
    """The paper's numbers of one cell."""

    measures: Any
    accuracy: "Estimate"
    alpha: "Estimate"
    alpha_points: "Estimate"
    n: int


def _paper_cell(one: Judgements, cell: Cell, context: Context) -> PaperCell:
    from analysis.stats import agreement, detection

    rows = one.rows(cell, is_paper=True)
    rating, truth, correct, who, text, says = columns(
        rows, "rating", "is_machine", "correct", "annotator", "text", "says"
    )
    alphas = []
    for values, kind in ((says, "nominal"), (rating, "ordinal")):
        counts, points = agreement.count_table(text, values)
        alphas.append(
            agreement.krippendorff_alpha(
                counts,
                points,
                level_of_measurement=kind,
                level=context.level,
                mode="paper",
                unit="text",
                resamples=min(AGREEMENT_RESAMPLES, context.resamples),
                analysis=f"humanlike.alpha_{kind}",
                rng=context.rng("alpha", kind, one.section.position, cell.key),
            )
        )
    return PaperCell(
        detection.detection_measures(rating, truth, threshold=one.threshold, ends=(one.low, one.high)),
        detection.accuracy_paper(correct, who, level=context.level),
        *(named(alpha, cell) for alpha in alphas),
        len(set(who)),
    )


def _paper_tests(
    one: Judgements, papers: Mapping[Cell, PaperCell], context: Context, suffix: str
) -> dict[tuple[str, Cell], "Estimate"]:
    """The paper's tests, Bonferroni over all of them: cells without training against chance, trained ones against these.

    The paper has 6 and 9 of them; its means over domains are held to the same threshold.
    """
    from analysis.stats import basic, multiplicity

    planned, estimates = [], {}
    for cell in papers:
        is_reference = cell.condition == one.reference(cell.model)
        kind = "chance" if is_reference else "training"
        planned.append((kind, cell))
        if is_reference:
            estimates[kind, cell] = papers[cell].accuracy
        else:
            untrained = Cell(cell.model, one.reference(cell.model), cell.domain)
            groups = [_accuracies(one.rows(which, is_paper=True)) for which in (cell, untrained)]
            estimates[kind, cell] = basic.welch(
                *groups,
                level=context.level,
                mode="paper",
                analysis="humanlike.training",
                estimand=f"accuracy: {cell.condition} - {untrained.condition}",
            )
    in_domains = [key for key in planned if key[1].domain != EVERYWHERE] or planned
    results = {}
    for keys in (in_domains, [key for key in planned if key not in in_domains]):
        names = {" of ".join((kind, cell.key)): (kind, cell) for kind, cell in keys}
        # Means over domains are adjusted as if they were as many as the cells.
        missing = tuple(f"(cell {n})" for n in range(len(names), len(in_domains)))
        family = multiplicity.Family(f"humanlike.paper{suffix}", (*names, *missing), "bonferroni")
        judged = multiplicity.adjusted(
            {name: estimates[key] for name, key in names.items()}, family, star_scheme=context.star_scheme
        )
        results |= {names[name]: named(estimate, names[name][1]) for name, estimate in judged.items()}
    return results


def _accuracies(rows: "DataFrame"):
    from analysis.stats import detection

    return detection.annotator_scores(*columns(rows, "correct", "annotator")).accuracies


def _detection_block(one, found, context, where, suffix) -> Block:
    from analysis.stats import multiplicity

    parts = ("sensitivity", "criterion", "auc", "accuracy", "bias", "share_human")
    estimates = {
        (cell, part): named(getattr(likeness, part), cell) for cell, likeness in found.items() for part in parts
    }
    for part in ("sensitivity", "auc", "accuracy"):
        for keys in ([c for c in found if c.domain == EVERYWHERE], [c for c in found if c.domain != EVERYWHERE]):
            name = f"humanlike.{part}{suffix}" + ("" if keys and keys[0].domain == EVERYWHERE else ".by_domain")
            family = multiplicity.Family(name, tuple(cell.key for cell in keys))
            mine = {cell.key: estimates[cell, part] for cell in keys}
            judged = multiplicity.adjusted(mine, family, star_scheme=context.star_scheme)
            estimates |= {
                (cell, part): multiplicity.findable(judged[cell.key], family, significance=1 - context.level)
                for cell in keys
            }
    return Block(
        "humanlike.detection",
        f"Telling human from machine{where}",
        "recommended",
        estimates=tuple(estimates.values()),
        tables=[layouts.detection(estimates, found, where)],
        figures=[layouts.sensitivities(estimates, found, where)],
        note="d' and c are pooled over annotators; texts and annotators are both taken as samples.",
    )


def _table_block(one, papers, tests, where) -> Block:
    accuracies = [named(paper.accuracy, cell) for cell, paper in papers.items() if ("chance", cell) not in tests]
    figures = []
    is_one_domain = len({cell.domain for cell in papers} - {EVERYWHERE}) == 1
    drawn = [cell for cell in papers if not (is_one_domain and cell.domain != EVERYWHERE)]
    for number, cell in enumerate((cell for cell in drawn if len(one.rows(cell, is_paper=True))), 1):
        rows = one.rows(cell, is_paper=True)
        figures += layouts.histograms(cell, rows, number, where)
    return Block(
        "humanlike.paper",
        f"The paper's tables{where}",
        "paper",
        estimates=(
            *tests.values(),
            *accuracies,
            *(p.alpha for p in papers.values()),
            *(p.alpha_points for p in papers.values()),
        ),
        tables=[layouts.models(one, papers, tests, where), layouts.training(one, papers, tests, where)],
        figures=figures,
    )


def _paper_comparisons(one, context, where, suffix) -> Block:
    """Analysis of variance over domains, and every pair of conditions, of annotators' accuracies."""
    from analysis.stats import groups

    level, estimates = context.level, []
    for model in one.models:
        scores = _scores(one.of_model(model, is_paper=True))
        untrained = scores[scores["condition"] == one.reference(model)]
        if len({cell.domain for cell in one.cells if cell.model == model}) > 1:
            anova = groups.one_way_anova(
                *columns(untrained, "accuracy", "domain"), level=level, analysis="humanlike.anova"
            )
            estimates.append(named(anova, Cell(model, one.reference(model))))
        if len(one.conditions(model)) > 1:
            pairs = groups.pairwise(
                *columns(scores, "accuracy", "condition"),
                method="tukey_hsd",
                level=level,
                analysis="humanlike.tukey",
                mode="paper",
            )
            estimates += [_of_model(pair, one, model, suffix) for pair in pairs]
    return Block(
        "humanlike.groups",
        f"Groups compared, as in the paper{where}",
        "paper",
        estimates=tuple(estimates),
        tables=[layouts.groups(estimates, "groups_paper", f"Groups compared, as in the paper{where}")],
    )


def _recommended_comparisons(one, context, where, suffix) -> Block:
    from analysis.stats import groups

    level, estimates = context.level, []
    for model in one.models:
        scores = _scores(one.of_model(model))
        untrained = scores[scores["condition"] == one.reference(model)]
        if len({cell.domain for cell in one.cells if cell.model == model}) > 1:
            anova = groups.welch_anova(
                *columns(untrained, "accuracy", "domain"), level=level, analysis="humanlike.welch_anova"
            )
            estimates.append(named(anova, Cell(model, one.reference(model))))
        if len(one.conditions(model)) > 1:
            pairs = groups.pairwise(
                *columns(scores, "accuracy", "condition"),
                method="games_howell",
                level=level,
                analysis="humanlike.games_howell",
            )
            estimates += [_of_model(pair, one, model, suffix) for pair in pairs]
    return Block(
        "humanlike.groups",
        f"Groups compared{where}",
        "recommended",
        estimates=tuple(estimates),
        tables=[layouts.groups(estimates, "groups", f"Groups compared, whatever their variances{where}")],
    )


def _of_model(pair: "Estimate", one: Judgements, model: str, suffix: str) -> "Estimate":
    """A pair of conditions with the model in whose arms they were; each model's pairs are a family."""
    test = pair.test
    if test is not None:
        test = replace(test, family=f"{test.family}{suffix}" + (f" ({model})" if len(one.models) > 1 else ""))
    return replace(pair, settings={**pair.settings, "model": model}, test=test)


def _scores(rows: "DataFrame") -> "DataFrame":
    """One row an annotator: accuracy, condition, domain."""
    grouped = rows.groupby("annotator", sort=True)
    scores = grouped.agg(accuracy=("correct", "mean"), condition=("condition", "first"), domain=("domain", "first"))
    return scores.reset_index()


def _checks(one, context, where) -> Block:
    """Whether confident answers are righter, and whether accuracy moves within a session."""
    from analysis.stats import detection

    rows, level = one.kept, context.level
    gain = detection.confidence_gain(
        *columns(rows, "correct", "rating", "annotator", "text"), ends=(one.low, one.high), level=level
    )
    drift = detection.session_drift(*columns(rows, "correct", "position", "annotator"), level=level)
    return Block(
        "humanlike.checks",
        f"Confidence, and the session{where}",
        "recommended",
        estimates=(gain, drift),
        tables=[layouts.checks((gain, drift), where)],
    )
