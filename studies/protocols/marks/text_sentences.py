"""Split a text into sentences, numbered from 1. The result depends only on the text, so stored numbers stay valid."""

from dataclasses import dataclass
from functools import lru_cache

from studies.stimuli.lengths import get_sentence_end_rule
from studies.stimuli.texts import is_blank

WHOLE_TEXT = 0  # a mark outside all sentences: something is missing, or the whole text is wrong


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. ``gap`` is the white space before it, so that all parts together give the text."""

    number: int
    text: str
    gap: str = ""


@lru_cache(maxsize=2048)
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Split at sentence ends, in any script that marks them, and at every line break (lists, verse, headings)."""
    cuts = set(get_sentence_end_rule("whole")(text)) | {n + 1 for n, c in enumerate(text) if c == "\n"} | {len(text)}
    sentences: list[Sentence] = []
    gap, start = "", 0
    for cut in sorted(cuts):
        piece = text[start:cut]
        start = cut
        inner = piece.strip()
        if is_blank(inner):
            gap += piece
            continue
        before, _, after = piece.partition(inner)
        sentences.append(Sentence(len(sentences) + 1, inner, gap + before))
        gap = after
    return tuple(sentences)
