"""A text in sentences, numbered from 1: a pure function of the text, so that a stored number finds its sentence for ever."""

from dataclasses import dataclass
from functools import lru_cache

from studies.stimuli.lengths import get_sentence_end_rule
from studies.stimuli.texts import is_blank

WHOLE_TEXT = 0  # a mark that no sentence holds: something is missing, or the whole is wrong


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. ``gap``: the blanks and line breaks before it, so that the parts together are the text."""

    number: int
    text: str
    gap: str = ""


@lru_cache(maxsize=2048)
def split_sentences(text: str) -> tuple[Sentence, ...]:
    """Cut where a sentence ends, in any script that marks it, and at every line break (lists, verse, headings)."""
    cuts = set(get_sentence_end_rule("whole")(text)) | {n + 1 for n, c in enumerate(text) if c == "\n"} | {len(text)}
    found: list[Sentence] = []
    gap, start = "", 0
    for cut in sorted(cuts):
        piece = text[start:cut]
        start = cut
        inner = piece.strip()
        if is_blank(inner):
            gap += piece
            continue
        before, _, after = piece.partition(inner)
        found.append(Sentence(len(found) + 1, inner, gap + before))
        gap = after
    return tuple(found)
