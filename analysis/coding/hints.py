"""What a program sees in an explanation before anybody reads it: flags for reviewers, never a decision.

The run of copied words is that of the rule ``copied_text``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..exclusions.rules.copied_text import COPIED_SHARE, COPIED_TOKENS, longest_common_run, tokenize

COPIED, SHORT, DUPLICATE, NEAR = "copied", "short", "duplicate", "near_duplicate"
HINT_LABELS = {
    COPIED: "words of the text stand in it",
    SHORT: "hardly a word",
    DUPLICATE: "others wrote the same",
    NEAR: "another wrote nearly the same",
}
FEWEST_TOKENS = 3
MIN_DUPLICATES = 2
# Nearly the same: more than this share of an explanation's runs of five words stand in one explanation of somebody else.
GRAM_LENGTH, NEAR_SHARE = 5, 0.5
FEWEST_GRAMS = 4
# With so many writers of one run the first of them stand for all: whoever copied it shares as much with these.
MOST_WRITERS = 50
# Answers that fill a box and say nothing.
EMPTY_ANSWERS = frozenset(
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


def normalise_text(text: str) -> str:
    """Words alone, in small letters: what differs in punctuation and blanks is the same."""
    return " ".join(tokenize(text))


def five_grams(text: str) -> frozenset[tuple[str, ...]]:
    """The runs of five words of an explanation."""
    said = tokenize(text[:20_000])
    return frozenset(tuple(said[n : n + GRAM_LENGTH]) for n in range(len(said) - GRAM_LENGTH + 1))


def near_duplicates(rows: Sequence[tuple[int, str]]) -> list[bool]:
    """Of (annotator, text) rows: whether one of somebody else holds more than ``NEAR_SHARE`` of its runs of five words.

    Explanations with fewer than ``FEWEST_GRAMS`` runs are never: short ones are alike by chance. What is the same word for word
    is another flag's.
    """
    grams = [five_grams(text) for _, text in rows]
    writers: dict[tuple[str, ...], list[int]] = {}
    for row, mine in enumerate(grams):
        for gram in mine:
            found = writers.setdefault(gram, [])
            if len(found) < MOST_WRITERS:
                found.append(row)
    same = [normalise_text(text) for _, text in rows]
    made = []
    for row, (annotator, _) in enumerate(rows):
        shared: Counter[int] = Counter(other for gram in grams[row] for other in writers[gram])
        most = max(
            (n for other, n in shared.items() if rows[other][0] != annotator and same[other] != same[row]), default=0
        )
        made.append(len(grams[row]) >= FEWEST_GRAMS and most > NEAR_SHARE * len(grams[row]))
    return made


def hints_of(text: str, shown_texts: Iterable[str], other_writers: Mapping[str, int]) -> tuple[str, ...]:
    """The flags of one explanation. ``shown``: the texts that its annotator read; ``others``: how many other annotators wrote each
    normalised explanation."""
    said = tokenize(text[:20_000])
    found = []
    longest = (
        max((longest_common_run(said, tokenize(one)) for one in shown_texts), default=0)
        if len(said) >= COPIED_TOKENS
        else 0
    )
    if longest >= COPIED_TOKENS and longest >= COPIED_SHARE * len(said):
        found.append(COPIED)
    if len(said) < FEWEST_TOKENS or re.sub(r"\W+", "_", text.strip().casefold()).strip("_") in EMPTY_ANSWERS:
        found.append(SHORT)
    if said and other_writers.get(" ".join(said), 0) >= MIN_DUPLICATES:
        found.append(DUPLICATE)
    return tuple(found)


def hints_by_row(
    rows: Sequence[tuple[int, str, str]], shown_texts: Mapping[str, Sequence[str]]
) -> list[tuple[str, ...]]:
    """Flags of (annotator, batch or other key of what was shown, text) rows, in their order."""
    writers: dict[str, set[int]] = {}
    for annotator, _, text in rows:
        writers.setdefault(normalise_text(text), set()).add(annotator)
    near = near_duplicates([(annotator, text) for annotator, _, text in rows])
    found = []
    for (annotator, key, text), is_near in zip(rows, near, strict=True):
        same = normalise_text(text)
        others = {same: len(writers[same] - {annotator})}
        flags = hints_of(text, shown_texts.get(key, ()), others)
        found.append((*flags, NEAR) if is_near else flags)
    return found
