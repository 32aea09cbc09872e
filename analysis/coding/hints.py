"""Automatic hints about explanations, for reviewers. A hint is never a decision.

Copied words are found as in the rule ``copied_text``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..exclusions.rules.answers import COPIED_SHARE, COPIED_TOKENS, longest_qualifying_copied_run, tokenize_casefolded

COPIED, SHORT, DUPLICATE, NEAR = "copied", "short", "duplicate", "near_duplicate"
HINT_LABELS = {
    COPIED: "copied from the text",
    SHORT: "very short or empty",
    DUPLICATE: "others wrote the same",
    NEAR: "another annotator wrote nearly the same",
}
MIN_TOKENS = 3
MIN_DUPLICATES = 2
# Nearly the same: more than this share of the explanation's five-word runs is in one explanation of another annotator.
GRAM_LENGTH, NEAR_SHARE = 5, 0.5
MIN_GRAMS = 4
# Only this number of writers is stored per run. A copied text shares its runs with these writers, too.
MAX_WRITERS_PER_GRAM = 50
# Answers without content.
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


def lowercase_words_text(text: str) -> str:
    """Return the lower-case words, so that texts that differ only in punctuation and spaces are equal."""
    return " ".join(tokenize_casefolded(text))


def word_five_grams(text: str) -> frozenset[tuple[str, ...]]:
    """Return all runs of five words of an explanation."""
    words = tokenize_casefolded(text[:20_000])
    return frozenset(tuple(words[n : n + GRAM_LENGTH]) for n in range(len(words) - GRAM_LENGTH + 1))


def flag_nearly_but_not_identical_texts(annotator_text_pairs: Sequence[tuple[int, str]]) -> list[bool]:
    """Return for each (annotator, text) row whether a text of another annotator has more than ``NEAR_SHARE`` of its runs.

    Explanations with fewer than ``MIN_GRAMS`` runs are never flagged, because short texts are alike by chance. Identical
    texts get another hint (``DUPLICATE``).
    """
    grams = [word_five_grams(text) for _, text in annotator_text_pairs]
    writers: dict[tuple[str, ...], list[int]] = {}
    for row, own_grams in enumerate(grams):
        for gram in own_grams:
            gram_writers = writers.setdefault(gram, [])
            if len(gram_writers) < MAX_WRITERS_PER_GRAM:
                gram_writers.append(row)
    normalised = [lowercase_words_text(text) for _, text in annotator_text_pairs]
    is_near = []
    for row, (annotator, _) in enumerate(annotator_text_pairs):
        shared: Counter[int] = Counter(other for gram in grams[row] for other in writers[gram])
        most = max(
            (
                n
                for other, n in shared.items()
                if annotator_text_pairs[other][0] != annotator and normalised[other] != normalised[row]
            ),
            default=0,
        )
        is_near.append(len(grams[row]) >= MIN_GRAMS and most > NEAR_SHARE * len(grams[row]))
    return is_near


def reviewer_hints(
    text: str, shown_texts: Iterable[str], n_other_writers_by_text: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the hints of one explanation.

    ``shown_texts``: texts that the annotator read. ``n_other_writers_by_text``: number of other annotators by normalised explanation.
    """
    words = tokenize_casefolded(text[:20_000])
    hints = []
    longest = (
        max(
            (longest_qualifying_copied_run(words, tokenize_casefolded(shown_text)) for shown_text in shown_texts),
            default=0,
        )
        if len(words) >= COPIED_TOKENS
        else 0
    )
    if longest >= COPIED_TOKENS and longest >= COPIED_SHARE * len(words):
        hints.append(COPIED)
    if len(words) < MIN_TOKENS or re.sub(r"\W+", "_", text.strip().casefold()).strip("_") in EMPTY_ANSWERS:
        hints.append(SHORT)
    if words and n_other_writers_by_text.get(" ".join(words), 0) >= MIN_DUPLICATES:
        hints.append(DUPLICATE)
    return tuple(hints)


def reviewer_hints_by_row(
    rows: Sequence[tuple[int, str, str]], shown_texts_by_key: Mapping[str, Sequence[str]]
) -> list[tuple[str, ...]]:
    """Return the hints of (annotator, key of the shown texts, text) rows, in their order."""
    writers: dict[str, set[int]] = {}
    for annotator, _, text in rows:
        writers.setdefault(lowercase_words_text(text), set()).add(annotator)
    near = flag_nearly_but_not_identical_texts([(annotator, text) for annotator, _, text in rows])
    hints = []
    for (annotator, key, text), is_near in zip(rows, near, strict=True):
        normalised = lowercase_words_text(text)
        others = {normalised: len(writers[normalised] - {annotator})}
        flags = reviewer_hints(text, shown_texts_by_key.get(key, ()), others)
        hints.append((*flags, NEAR) if is_near else flags)
    return hints
