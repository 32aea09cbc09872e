"""Spans of annotation tools are error marks."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from studies.protocols.marks import ERRORS
from studies.stimuli.columns import OUTPUT, first_named
from studies.stimuli.lines import RowRefused
from studies.stimuli.numbers import is_number

from .published import Mqm, part_of


def mark_rows(
    key: str, data: Mapping[str, Any], marks: list[tuple[int, int, Any, list[str]]], state: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield error marks: start, end, perhaps the marked text, and words for the severity and the category. No mark says that there is no error."""
    if ERRORS not in state["questions"]:
        if marks:
            raise RowRefused(
                None, "has spans, and the study has no section of error marks. Add one, or remove them from the file."
            )
        return
    base = {"prompt_key": key, "question": ERRORS, "system": data.get("system") or data.get("model") or ""}
    if not marks:
        yield base | {"value": 0}
    text = data.get(first_named(OUTPUT, data)) or data.get("text")
    for start, end, marked, words in marks:
        parts = [part.strip().lower().replace(" ", "-") for word in words for part in re.split("[/:|]", word)]
        weights = [Mqm.WEIGHTS.get(part, part) for part in parts if part in Mqm.WEIGHTS or is_number(part)]
        categories = [part for part in parts if part not in Mqm.WEIGHTS and not is_number(part)]
        if len(weights) != 1 or len(categories) > 1:
            raise RowRefused(
                None,
                f"has a span with “{' / '.join(words)[:60]}”, which is not one severity (minor, major, critical or a weight) and one category.",
            )
        first, last = _in_characters(str(text), start, end, marked)
        yield base | {
            "value": weights[0],
            "choice": categories[0] if categories else "",
            "part": part_of(str(text), first, last - first),
        }


def _in_characters(text: str, start: int, end: int, marked: Any) -> tuple[int, int]:
    """Return a span in characters. Browsers count characters beyond the first plane twice; the marked text, if there is one, shows it."""
    if marked in (None, text[start:end]) and 0 <= start < end <= len(text):
        return start, end
    units = text.encode("utf-16-le")
    before, inside = (units[2 * a : 2 * b].decode("utf-16-le", "replace") for a, b in ((0, start), (start, end)))
    if not inside or (marked is not None and inside != marked):
        raise RowRefused(None, f"has a span from {start} to {end} that is not in the output. Export the file again.")
    return len(before), len(before) + len(inside)
