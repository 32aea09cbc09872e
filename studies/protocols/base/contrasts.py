"""Which of a study's planned comparisons a section is asked about."""

from collections.abc import Iterable
from typing import Any


def system_contrasts_for_section(
    contrasts: Iterable[Any], section: Any, estimand: str, default_estimand: str
) -> list[Any]:
    """The contrasts of two systems that name this section (or none) and this estimand (or none, and it is the default)."""
    return [
        contrast
        for contrast in contrasts
        if contrast.x_id
        and contrast.section_id in (None, section.pk)
        and (contrast.estimand == estimand or (not contrast.estimand and estimand == default_estimand))
    ]
