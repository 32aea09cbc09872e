"""Rule about explanations that copy the shown texts."""

import re

from studies.models.rules import register

from .. import FAIL, PASS, UNKNOWN, AssignmentFlags, RuleInput

COPIED_TOKENS, COPIED_SHARE = 8, 0.8


@register(
    "copied_text", "copied text: the explanation is copied from a text that was shown", source="Clark et al. 2021"
)
def flag_copied_texts(rule_input: RuleInput) -> AssignmentFlags:
    """Flag explanations with at least 8 consecutive words, and 80 % of all words, copied from a text that was shown."""
    flags = AssignmentFlags(dict.fromkeys(rule_input.submitted, UNKNOWN))
    rows = rule_input.responses
    rows = rows[(rows["text"] != "") & ~rows["is_erased"]]
    if not len(rows):
        return flags
    shown_texts = rule_input.texts_by_batch()
    tokens: dict[int, list[list[str]]] = {}
    for assignment, batch, text in zip(rows["assignment"], rows["batch"], rows["text"], strict=True):
        if assignment not in flags.states:
            continue
        if flags.states[assignment] == UNKNOWN:
            flags.states[assignment] = PASS
        words = tokenize_casefolded(text[:20_000])
        if len(words) < COPIED_TOKENS:
            continue
        if batch not in tokens:
            tokens[batch] = [tokenize_casefolded(output) for output in shown_texts.get(batch, [])]
        longest = max((longest_qualifying_copied_run(words, output) for output in tokens[batch]), default=0)
        if longest >= COPIED_TOKENS and longest >= COPIED_SHARE * len(words):
            flags.add(assignment, FAIL, f"{longest} of {len(words)} words in a row are copied")
    return flags


def tokenize_casefolded(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def longest_qualifying_copied_run(tokens: list[str], source_tokens: list[str]) -> int:
    """Return the length of the longest run of tokens that is in both, or 0 if it is below ``COPIED_TOKENS``."""
    size = COPIED_TOKENS
    starts: dict[tuple, list[int]] = {}
    for position in range(len(source_tokens) - size + 1):
        starts.setdefault(tuple(source_tokens[position : position + size]), []).append(position)
    longest = 0
    for position in range(len(tokens) - size + 1):
        if len(tokens) - position <= longest:
            break
        for start in starts.get(tuple(tokens[position : position + size]), ())[:50]:
            length = size
            while (
                position + length < len(tokens)
                and start + length < len(source_tokens)
                and tokens[position + length] == source_tokens[start + length]
            ):
                length += 1
            longest = max(longest, length)
    return longest
