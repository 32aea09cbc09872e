"""Select the planned comparisons that concern a section."""

from collections.abc import Iterable
from typing import Any


def system_contrasts_for_section(
    contrasts: Iterable[Any], section: Any, estimand: str, default_estimand: str
) -> list[Any]:
    """Return the contrasts of two systems for this section and estimand.

    A contrast without a section concerns every section. A contrast without an estimand concerns the default one.
    """
    return [
        contrast
        for contrast in contrasts
        if contrast.x_id
        and contrast.section_id in (None, section.pk)
        and (contrast.estimand == estimand or (not contrast.estimand and estimand == default_estimand))
    ]
