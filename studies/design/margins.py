"""Check the margin of a planned comparison against the scale of what it estimates."""

from collections.abc import Iterable, Sequence
from typing import Any

from studies.protocols import REGISTRY, Problem


def too_wide_margin_problem(
    margin: float | None, estimand: str, criterion: str, sections: Iterable[tuple[Any, Sequence[Any]]]
) -> Problem | None:
    """Return why a margin is too wide for one of these live sections, or None.

    ``sections``: each section that the comparison concerns, with its questions; they may be unsaved. Half of the scale is the limit:
    it is the farthest that a probability can be from 1/2, and no useful margin of a difference is so wide.
    """
    if margin is None:
        return None
    for section, questions in sections:
        protocol = REGISTRY.get(section.protocol)
        if protocol is None or (estimand and estimand not in protocol.estimands(section)):
            continue
        concerned = [question for question in questions if criterion in ("", question.criterion)] or questions
        length = protocol.estimand_scale_length(estimand, concerned)
        if length is not None and margin >= length / 2:
            return Problem(
                f"The margin must be below {length / 2:g}, half of the scale in section {section.position}. "
                "A wider one makes nearly every result equivalent. Enter a smaller margin.",
                "contrasts",
            )
    return None
