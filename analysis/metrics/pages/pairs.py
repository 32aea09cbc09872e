"""The table that compares each two metrics, as pages of studies and boards show it."""

from collections.abc import Iterable, Mapping
from typing import Any

UNDEFINED = "–"


def pair_rows(comparisons: Iterable[Mapping[str, Any]], measures: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the stored comparisons with the name of the measure and with their numbers as text."""
    return [
        {
            **row,
            "label": measures[row["statistic"]],
            "p": p_value_text(row["pvalue_adjusted"]),
            "difference": UNDEFINED if row["estimate"] is None else number_text(row["estimate"]),
        }
        for row in comparisons
    ]


def number_text(value: float) -> str:
    # A value that rounds to 0 has no sign.
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def p_value_text(value: float | None) -> str:
    if value is None:
        return UNDEFINED
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"
