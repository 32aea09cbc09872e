"""What two choices say: which system is chosen, by what rule that was decided, what it cost, and how far people agree.

Everything comes from the labels that were planned (``Context.claims``), so that a label which was not given is seen too. The
rows say whom the rules keep. Third labels (max three) belong to items in disagreement: they count for the items' answers and
for agreement, and for no share.

Source: Thorleiksdóttir et al. 2022, sections 3 and 5; ``paper`` is its bound on the items' answers, in both readings.
"""

from typing import Any

from analysis.data.context import AnalysisContext
from analysis.data.planned_labels import PlannedLabels
from analysis.protocols.blocks import Block

from .. import ProtocolAnalysis, StoppingStatus, register
from .checks import check_blocks, ranking_blocks
from .comparison_labels import read_comparison_labels
from .effort import effort_blocks
from .preference import preference_blocks
from .stopping import stopping_statuses


@register
class TwoChoiceAnalysis(ProtocolAnalysis):
    slug = "two_choice"
    needs_planned_labels = True

    def analyse(self, context: AnalysisContext) -> list[Block]:
        """Blocks for all sections of two choices; families run over all of them."""
        claims = context.claims
        if claims is None or not len(claims.rows):
            return []
        found = [one for section in context.sections for one in read_comparison_labels(context, claims, section)]
        blocks = preference_blocks(found, context)
        for one in found:
            blocks += effort_blocks(one, context)
            blocks += check_blocks(one, context)
        for section in context.sections:
            blocks += ranking_blocks([one for one in found if one.section == section], context)
        return [block for block in blocks if block.estimates]

    def looks(self, planned_labels: PlannedLabels, section: Any, seed: str = "") -> list[StoppingStatus]:
        return stopping_statuses(planned_labels, section, seed)
