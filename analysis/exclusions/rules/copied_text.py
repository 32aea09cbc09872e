"""Explanations that repeat the texts they are about."""

import re

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, Flags, Material

COPIED_TOKENS, COPIED_SHARE = 8, 0.8


@register(
    "copied_text", "copied text: words of the explanation are words of the texts shown", source="Clark et al. 2021"
)
def copied_text(material: Material) -> Flags:
    """Finds explanations of which at least 8 words in a row, and 80 % of all, stand in a text that the person was shown."""
    flags = Flags(dict.fromkeys(material.submitted, UNKNOWN))
    rows = material.responses
    rows = rows[(rows["text"] != "") & ~rows["is_erased"]]
    if not len(rows):
        return flags
    shown = material.shown()
    tokens: dict[int, list[list[str]]] = {}
    for assignment, batch, text in zip(rows["assignment"], rows["batch"], rows["text"], strict=True):
        if assignment not in flags.states:
            continue
        if flags.states[assignment] == UNKNOWN:
            flags.states[assignment] = PASS
        said = tokens_of(text[:20_000])
        if len(said) < COPIED_TOKENS:
            continue
        if batch not in tokens:
            tokens[batch] = [tokens_of(output) for output in shown.get(batch, [])]
        longest = max((longest_common_run(said, output) for output in tokens[batch]), default=0)
        if longest >= COPIED_TOKENS and longest >= COPIED_SHARE * len(said):
            flags.add(assignment, FAIL, f"{longest} of {len(said)} words in a row are copied")
    return flags


def tokens_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def longest_common_run(said: list[str], shown: list[str]) -> int:
    """The length of the longest run of tokens that stands in both; 0 below ``COPIED_TOKENS``."""
    size = COPIED_TOKENS
    starts: dict[tuple, list[int]] = {}
    for place in range(len(shown) - size + 1):
        starts.setdefault(tuple(shown[place : place + size]), []).append(place)
    longest = 0
    for place in range(len(said) - size + 1):
        if len(said) - place <= longest:
            break
        for start in starts.get(tuple(said[place : place + size]), ())[:50]:
            length = size
            while (
                place + length < len(said)
                and start + length < len(shown)
                and said[place + length] == shown[start + length]
            ):
                length += 1
            longest = max(longest, length)
    return longest
