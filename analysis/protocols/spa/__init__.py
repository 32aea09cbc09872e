"""What SPA answers say: each pair, both orders, the coherence of pairs, a ranking; ``paper`` and ``recommended`` apart.

A row is a directed answer on 0..1.

Source: Ethayarajh and Jurafsky 2022, sections 5 and 6.
"""

from analysis.data.context import Context
from analysis.protocols.blocks import Block

from .. import ProtocolAnalysis, register
from ..stated_and_rated import overview
from . import layouts
from .answers import ESTIMAND, Answers, answers_of
from .criteria import drivers_block
from .exclusions import rule_blocks
from .exposures import exposure_blocks
from .pairs import pair_blocks
from .structure import structure_blocks

TAU = "Whether leaving out by tau would move the estimate (correlation of gap and preference)"


@register
class SPAAnalysis(ProtocolAnalysis):
    slug = "spa"
    overview = staticmethod(overview)

    def analyse(self, context: Context) -> list[Block]:
        """Blocks for all SPA sections of a study; families run over all of them."""
        answers = [
            one for section in context.sections for one in [answers_of(context.rows, section)] if one.comparisons
        ]
        if not answers:
            return []
        several = len(answers) > 1
        blocks = pair_blocks(answers, context)
        for one, rules in zip(answers, rule_blocks(answers, context), strict=True):
            blocks += [*_naming_blocks(one, several, context), rules, *_criterion_blocks(one, context)]
        if (drivers := drivers_block([one.kept for one in answers], context)) is not None:
            blocks.append(drivers)
        if several:
            blocks += exposure_blocks(answers, context)
        return [block for block in blocks if block.estimates]


def _naming_blocks(one: Answers, several: bool, context: Context) -> list[Block]:
    """Order symmetry of one section, and what leaving out by tau would do."""
    from analysis.stats import spa

    kept = one.kept
    title, level = one.title, context.level
    symmetry = tuple(
        compared.named(spa.order_symmetry(kept.xy[:, column], kept.yx[:, column], level=level), ESTIMAND)
        for column, compared in enumerate(one.comparisons)
    )
    asymmetry = tuple(
        compared.named(spa.tau_asymmetry(kept.xy[:, column], kept.yx[:, column], level=level), ESTIMAND)
        for column, compared in enumerate(one.comparisons)
    )
    return [
        Block(
            "spa.order",
            f"Gap between the two orders of naming ({title})",
            "recommended",
            estimates=symmetry,
            tables=[layouts.gap(symmetry)],
            figures=[layouts.gap_figure(symmetry, several, level)],
            note="p_xy + p_yx - 1, before any rule that looks at sums. Above 0: whoever is named first gains.",
        ),
        Block(
            "spa.tau",
            f"Whether leaving out by tau would move the estimate ({title})",
            "recommended",
            estimates=asymmetry,
            tables=[layouts.plain_lines(asymmetry, "tau", TAU, "more")],
        ),
    ]


def _criterion_blocks(one: Answers, context: Context) -> list[Block]:
    """Coherence, ranking and reliability on each criterion of one section."""
    blocks = []
    for criterion in dict.fromkeys(compared.criterion for compared in one.comparisons):
        columns = [n for n, compared in enumerate(one.comparisons) if compared.criterion == criterion]
        has_others = any(compared.criterion for compared in one.comparisons)
        about = f"{one.title}, {criterion or 'overall'}" if has_others else one.title
        blocks += structure_blocks(one.kept, columns, about, context)
    return blocks
