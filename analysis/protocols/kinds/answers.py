"""Prepare rows of answers for the statistics."""

from typing import TYPE_CHECKING, Any

from analysis.data.frames import SECOND_SAMPLE, rows_where
from studies.protocols import REGISTRY
from studies.protocols.base.fields import ScaleSpec, parse_scale

if TYPE_CHECKING:
    from pandas import DataFrame

# The columns that name something. All others are numbers for the statistics.
NAMES = frozenset(
    {"annotator", "item", "prompt", "system", "text", "group", "condition", "domain", "label", SECOND_SAMPLE}
)


def column_arrays(rows: "DataFrame", *names: str) -> list[Any]:
    """Return columns as arrays: names as objects, and everything else as numbers."""
    return [rows[name].to_numpy(object if name in NAMES else float) for name in names]


def kept_and_paper_rows(rows: "DataFrame") -> tuple["DataFrame", "DataFrame"]:
    """Return the rows that the outcome-blind rules keep, and those that all primary rules keep."""
    return rows_where(rows, rows["is_kept"].astype(bool)), rows_where(rows, rows["is_kept_paper"].astype(bool))


def settings_of(section: Any) -> dict[str, Any]:
    return REGISTRY[section.protocol].cleaned_settings(section)


def readable_scale(question: Any) -> ScaleSpec | None:
    """Return the scale of a question, or None if it cannot be read, which the frame reports as a problem."""
    try:
        return parse_scale(question.scale)
    except (AttributeError, ValueError, TypeError, KeyError):
        return None


def join_columns(rows: "DataFrame", *names: str) -> Any:
    """Return one column that names what several columns name together."""
    first, *others = (rows[name].astype(str) for name in names)
    for other in others:
        first = first + "\x1f" + other
    return first
