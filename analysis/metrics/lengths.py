"""Groups of outputs by the length of their texts, split at the output in the middle."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import Series

LONG, SHORT, NO_TEXT = "long texts", "short texts", "outputs without text"


def by_length(lengths: "Series") -> "Series":
    """Return for each output whether its text is longer than that of the output in the middle. Media have no length."""
    is_long = lengths > lengths[lengths > 0].median()
    return is_long.map({True: LONG, False: SHORT}).where(lengths > 0, NO_TEXT)
