"""What a program sees in an explanation before anybody reads it: flags for reviewers, never a decision.

The run of copied words is that of the rule ``copied_text``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from ..exclusions import COPIED_SHARE, COPIED_TOKENS, longest_common_run, tokens_of

COPIED, SHORT, DUPLICATE = "copied", "short", "duplicate"
WORDS = {
    COPIED: "words of the text stand in it",
    SHORT: "hardly a word",
    DUPLICATE: "others wrote the same",
}
FEWEST_TOKENS = 3
DUPLICATES = 2
# Answers that fill a box and say nothing.
EMPTY = frozenset(
    [
        "a",
        "bad",
        "fine",
        "good",
        "great",
        "idk",
        "interesting",
        "n",
        "na",
        "nice",
        "no",
        "none",
        "nothing",
        "ok",
        "okay",
        "perfect",
        "unsure",
        "very_good",
        "very_nice",
        "well",
        "yes",
    ]
)


def normalised(text: str) -> str:
    """Words alone, in small letters: what differs in punctuation and blanks is the same."""
    return " ".join(tokens_of(text))


def hints_of(text: str, shown: Iterable[str], others: Mapping[str, int]) -> tuple[str, ...]:
    """The flags of one explanation. ``shown``: the texts that its annotator read; ``others``: how many other annotators wrote each
    normalised explanation."""
    said = tokens_of(text[:20_000])
    found = []
    longest = (
        max((longest_common_run(said, tokens_of(one)) for one in shown), default=0) if len(said) >= COPIED_TOKENS else 0
    )
    if longest >= COPIED_TOKENS and longest >= COPIED_SHARE * len(said):
        found.append(COPIED)
    if len(said) < FEWEST_TOKENS or re.sub(r"\W+", "_", text.strip().casefold()).strip("_") in EMPTY:
        found.append(SHORT)
    if said and others.get(" ".join(said), 0) >= DUPLICATES:
        found.append(DUPLICATE)
    return tuple(found)


def hints_by_row(rows: Sequence[tuple[int, str, str]], shown: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Flags of (annotator, batch or other key of what was shown, text) rows, in their order."""
    writers: dict[str, set[int]] = {}
    for annotator, _, text in rows:
        writers.setdefault(normalised(text), set()).add(annotator)
    found = []
    for annotator, key, text in rows:
        same = normalised(text)
        others = {same: len(writers[same] - {annotator})}
        found.append(hints_of(text, shown.get(key, ()), others))
    return found
