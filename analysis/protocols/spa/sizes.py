"""How large a preference is, beside the chance that there is one, if a section asks for both.

Source: limitation 1 of Ethayarajh and Jurafsky 2022: a probability of a preference does not say how large it is.
"""

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from analysis.data.context import AnalysisContext
from analysis.protocols.blocks import Block
from analysis.protocols.blocks.cells import interval_bounds
from analysis.protocols.blocks.layouts import build_table, estimate_row
from analysis.protocols.kinds.answers import readable_scale
from studies.design.subjects import in_parentheses
from studies.protocols.spa import asks_for_size

from .answers import ESTIMAND, SectionAnswers, read_prompt_groups, tabulate_directions

if TYPE_CHECKING:
    from analysis.stats.results import Estimate


def preference_size_blocks(
    answers: Sequence[SectionAnswers], chances: Sequence["Estimate"], context: AnalysisContext
) -> list[Block]:
    """Return one block per section that asks for sizes. ``chances``: the estimates of all comparisons of all sections."""
    from analysis.stats import spa

    blocks, stated = [], iter(chances)
    for one in (section_answers.kept for section_answers in answers):
        shown = list(zip(one.comparisons, islice(stated, len(one.comparisons)), strict=True))
        scales = {
            question: scale
            for question in one.section.questions.select_related("x", "y")
            if question.x_id and asks_for_size(question.scale) and (scale := readable_scale(question))
        }
        if not scales:
            continue
        half_range = float(next(iter(scales.values())).maximum)
        points = half_range * (2 * spa.combine_orders(*_tabulate_sizes(one, list(scales), context)) - 1)
        values = spa.combine_orders(one.xy, one.yx)
        groups, _ = read_prompt_groups(one)
        asked = {(frozenset((question.x.name, question.y.name)), question.criterion) for question in scales}
        estimates, rows = [], []
        for column, (compared, chance) in enumerate(shown):
            if (frozenset((compared.x, compared.y)), compared.criterion) not in asked:
                continue
            sizes = points[:, column].round(6)
            size = spa.preference_size(
                sizes, groups, half_range=half_range, population=compared.population, level=context.level
            )
            agreement = spa.size_and_chance_agreement(sizes, values[:, column], level=context.level)
            size, agreement = (compared.tag_estimate(estimate, ESTIMAND) for estimate in (size, agreement))
            estimates += [size, agreement]
            rows.append(
                estimate_row(
                    size,
                    chance=chance.estimate,
                    chance_interval=interval_bounds(chance),
                    same=agreement.estimate,
                    same_interval=interval_bounds(agreement),
                    n_both=agreement.n,
                    correlation=agreement.detail.get("correlation"),
                )
            )
        blocks.append(
            Block(
                "spa.sizes",
                f"How large the preference is{in_parentheses(one.title)}",
                estimates=tuple(estimates),
                tables=[_sizes_table(rows, half_range)],
                note="Asked on the page of the chances; all annotators kept by the outcome-blind rules. Described, not tested.",
            )
        )
    return blocks


def _tabulate_sizes(answers: SectionAnswers, questions: Sequence[Any], context: AnalysisContext) -> Any:
    """Return the sizes of these people in both directions, as percent of the scale."""
    rows = context.rows
    rows = rows[(rows["section"] == answers.section.position) & rows["question"].isin([one.key for one in questions])]
    named = {side: {one.key: getattr(one, side).name for one in questions} for side in ("x", "y")}
    rows = rows.assign(**{side: rows["question"].astype(object).map(names) for side, names in named.items()})
    return tabulate_directions(rows, answers.people, answers.comparisons)


def _sizes_table(rows: Sequence[dict[str, Any]], half_range: float) -> Any:
    return build_table(
        "sizes",
        "How likely and how large the preference is",
        "contrast|Comparison|text; chance|P[x > y]|probability; chance_interval|95% CI of the chance|interval; estimate|Size|points; "
        "interval|95% CI of the size|wide_interval; same|Same side|percent; n|n annotators|integer; same_interval|95% CI of the same side|interval; "
        "n_both|n with both answers|integer; correlation|Rank correlation|number; reason|Undefined because|text",
        rows,
        "first",
        f"Size: mean over annotators of how much better x is, from −{half_range:g} to {half_range:g}; 0 is no difference. Both directions are combined. Same side: the "
        "annotators whose chance and size favour the same system, or neither. The rank correlation (Spearman) is over these annotators. A sure "
        "preference may be small: points of a scale mean what annotators take them to mean, so the chance alone is tested.",
    )
