"""What exclusion rules look at, read from the database."""

from typing import TYPE_CHECKING

from annotators.exclude import standing_exclusions
from annotators.models import Assignment
from studies.design import burdens
from studies.models import Exposure, Study

from .coding.report import read_samples, refused_work, reviewed
from .exclusions import Material

if TYPE_CHECKING:
    from pandas import DataFrame


def material_of(study: Study, responses: "DataFrame", assignments: "DataFrame") -> Material:
    """The frames with people's decisions beside them; words and texts are read when a rule asks for them."""
    return Material(
        responses, assignments, decisions=_decisions(study), allowed=study.batches_per_annotator,
        words=lambda: {int(burden.batch): burden.words for burden in burdens(study)},
        shown=lambda: _shown(study), reviews=lambda: _reviews(study),
    )  # fmt: skip


def _decisions(study: Study) -> dict[int, str]:
    """Exclusions entered by people and not taken back: assignment to reason."""
    standing = standing_exclusions(Assignment.objects.filter(study=study)).order_by("pk")
    return dict(standing.values_list("assignment_id", "reason"))


def _reviews(study: Study) -> dict[int, str]:
    """What reviewers decided: assignment to their reasons, '' for work that they let pass."""
    samples = read_samples(study, Assignment.Origin.values)
    return dict.fromkeys(reviewed(samples), "") | refused_work(samples)


def _shown(study: Study) -> dict[int, list[str]]:
    rows = Exposure.objects.filter(item__placements__batch__study=study).values_list(
        "item__placements__batch__number", "output__text"
    )
    shown: dict[int, list[str]] = {}
    for batch, text in rows:
        shown.setdefault(batch, []).append(text)
    return shown
