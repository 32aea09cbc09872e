"""Word n-gram models that write prose: counts, interpolation by absolute discounting, and one typography for all.

The order of a model is all that sets it apart from another. Which marks may follow which, where capitals stand and how
quotes are paired is decided here once for every order, so that a reader can tell writers apart by their words alone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from random import Random

SENTENCE_END = "</s>"
OPEN_QUOTE, CLOSE_QUOTE = "\u201c", "\u201d"
QUOTE = '"'  # how both are printed
STOPS = frozenset(".!?")
MARKS = frozenset(",;:") | STOPS

_TOKEN = re.compile(r"(?P<known>[A-Za-z]+(?:['-][A-Za-z]+)*'?|[.,;:!?\"])|(?P<blank>\s+)|(?P<unknown>.)")


def tokenise(text: str) -> list[str]:
    """Words, marks, opening and closing quotes, and END after each sentence; capitals as they stand in the text."""
    tokens: list[str] = []
    is_open = False
    for found in _TOKEN.finditer(text):
        if found["unknown"]:
            raise ValueError(
                f"text: {found['unknown']!r} at character {found.start() + 1} is no word and no known mark."
            )
        token = found["known"]
        if not token:
            continue
        if token == QUOTE:
            is_open = not is_open
            token = OPEN_QUOTE if is_open else CLOSE_QUOTE
        if _ends_sentence(tokens) and (token == OPEN_QUOTE or token[0].isupper()):
            tokens.append(SENTENCE_END)
        tokens.append(token)
    return [*tokens, SENTENCE_END] if _ends_sentence(tokens) else tokens


def _ends_sentence(tokens: Sequence[str]) -> bool:
    last = tokens[-2:] if tokens[-1:] == [CLOSE_QUOTE] else tokens[-1:]
    return bool(last) and last[0] in STOPS


def find_names(texts: Iterable[Sequence[str]]) -> frozenset[str]:
    """The words that keep their capital within a sentence at least as often as not."""
    within: Counter[str] = Counter()
    for tokens in texts:
        within.update(token for before, token in pairwise(tokens) if before not in (SENTENCE_END, OPEN_QUOTE))
    return frozenset(
        word for word, count in within.items() if word[0].isupper() and count >= within[word[0].lower() + word[1:]]
    )


def uncapitalise(tokens: Sequence[str], names: frozenset[str]) -> list[str]:
    """The tokens without the capitals that only a sentence's or a speech's beginning gave them."""
    before = [SENTENCE_END, *tokens]
    return [
        token[0].lower() + token[1:] if previous in (SENTENCE_END, OPEN_QUOTE) and token not in names else token
        for previous, token in zip(before, tokens, strict=False)
    ]


def detokenise(tokens: Iterable[str]) -> str:
    """The text of the tokens: spaces, straight quotes, and a capital where a sentence or a speech begins.

    A speech that goes on after "said he" begins without one.
    """
    text, before, has_spoken = "", SENTENCE_END, False
    for token in tokens:
        if token == SENTENCE_END:
            before, has_spoken = SENTENCE_END, False
            continue
        if text and before != OPEN_QUOTE and token not in MARKS and token != CLOSE_QUOTE:
            text += " "
        begins = before == SENTENCE_END or (before == OPEN_QUOTE and not has_spoken)
        text += QUOTE if token in (OPEN_QUOTE, CLOSE_QUOTE) else token[0].upper() + token[1:] if begins else token
        has_spoken = has_spoken or token == CLOSE_QUOTE
        before = token
    return text


def may_follow(last: Sequence[str], token: str, is_open: bool) -> bool:
    """Whether the token may stand after the last two by the rules of typography, whatever it says.

    `is_open` tells whether a speech is going on.
    """
    before = last[-1] if last else SENTENCE_END
    if before == CLOSE_QUOTE:
        stop = last[-2]
        return (token == SENTENCE_END and stop in STOPS) or (_is_word(token) and stop != ".")
    if before in STOPS:
        return token == SENTENCE_END or (token == CLOSE_QUOTE and is_open)
    if before in MARKS:
        return (
            _is_word(token)
            or (token == CLOSE_QUOTE and is_open and before == ",")
            or (token == OPEN_QUOTE and not is_open)
        )
    if before == SENTENCE_END:
        return _is_word(token) or (token == OPEN_QUOTE and not is_open)
    return _is_word(token) or (token in MARKS and before != OPEN_QUOTE)


def _is_word(token: str) -> bool:
    return token[0].isalpha()


class NGrams:
    """Counts of runs of up to `order` tokens, with absolute discounting towards the shorter runs."""

    def __init__(self, texts: Iterable[Sequence[str]], order: int, discount: float = 0.3) -> None:
        self.order = order
        self.discount = discount
        self.counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        self._tables: dict[tuple[str, ...], tuple[list[str], list[float]]] = {}
        for tokens in texts:
            for place, token in enumerate(tokens):
                for length in range(min(order - 1, place) + 1):
                    self.counts[tuple(tokens[place - length : place])][token] += 1

    def probability(self, token: str, before: Sequence[str]) -> float:
        """The probability of the token after these; a token never met has one part among all that were met."""
        estimate = 1 / (len(self.counts[()]) + 1)
        for length in range(min(self.order - 1, len(before)) + 1):
            followers = self.counts.get(tuple(before[len(before) - length :]))
            if followers is None:
                break
            kept = max(followers[token] - self.discount, 0.0)
            estimate = (kept + self.discount * len(followers) * estimate) / followers.total()
        return estimate

    def draw_token(self, before: Sequence[str], rng: Random) -> str:
        """A token drawn at random, by the discounted counts after the longest run that was met."""
        for length in range(min(self.order - 1, len(before)), 0, -1):
            run = tuple(before[len(before) - length :])
            followers = self.counts.get(run)
            if followers and rng.random() >= self.discount * len(followers) / followers.total():
                return self._draw(run, self.discount, rng)
        return self._draw((), 0.0, rng)

    def _draw(self, run: tuple[str, ...], discount: float, rng: Random) -> str:
        if run not in self._tables:
            followers = self.counts[run]
            self._tables[run] = list(followers), list(accumulate(count - discount for count in followers.values()))
        tokens, weights = self._tables[run]
        return rng.choices(tokens, cum_weights=weights)[0]

    def continuation(
        self,
        before: Sequence[str],
        words: range,
        has_speech: bool,
        rng: Random,
        is_welcome: Callable[[str], bool] = lambda word: True,
    ) -> list[str]:
        """Whole sentences after `before`, with a number of words within the range, with or without speech in quotes.

        What grows too long, or meets a word that is not welcome, is begun anew.
        """
        for _ in range(10_000):
            tokens = self._attempt(before, words, has_speech, rng, is_welcome)
            if tokens is not None and (OPEN_QUOTE in tokens) == has_speech:
                return tokens
        raise RuntimeError(f"words: no continuation of {words.start} to {words.stop - 1} words was found.")

    def _attempt(
        self, before: Sequence[str], words: range, has_speech: bool, rng: Random, is_welcome: Callable[[str], bool]
    ) -> list[str] | None:
        history = list(before)
        count, is_open = 0, False
        while count < words.stop:
            token = self.draw_token(history, rng)
            if (token == OPEN_QUOTE and not has_speech) or not may_follow(
                history[max(len(before), len(history) - 2) :], token, is_open
            ):
                continue
            if _is_word(token):
                if not is_welcome(token):
                    return None
                count += 1
            history.append(token)
            if token in (OPEN_QUOTE, CLOSE_QUOTE):
                is_open = token == OPEN_QUOTE
            if token == SENTENCE_END and count in words and not is_open:
                return history[len(before) :]
        return None
