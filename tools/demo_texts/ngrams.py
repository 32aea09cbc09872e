"""Word n-gram models that write prose, with absolute discounting and the same typography for all models.

Models differ only in their order. The rules of punctuation, capitals and quotes are the same for every order, so that readers
can distinguish the models only by their words.
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
    """Split a text into words, marks and quotes, with ``SENTENCE_END`` after each sentence. Capitals stay as in the text."""
    tokens: list[str] = []
    is_open = False
    for match in _TOKEN.finditer(text):
        if match["unknown"]:
            raise ValueError(
                f"text: {match['unknown']!r} at character {match.start() + 1} is not a word or a known mark."
            )
        token = match["known"]
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


def find_proper_names(texts: Iterable[Sequence[str]]) -> frozenset[str]:
    """Return the words that have a capital inside sentences in at least half of their occurrences."""
    within: Counter[str] = Counter()
    for tokens in texts:
        within.update(token for before, token in pairwise(tokens) if before not in (SENTENCE_END, OPEN_QUOTE))
    return frozenset(
        word for word, count in within.items() if word[0].isupper() and count >= within[word[0].lower() + word[1:]]
    )


def lower_sentence_starts(tokens: Sequence[str], names: frozenset[str]) -> list[str]:
    """Return the tokens without capitals that come only from the start of a sentence or a speech."""
    before = [SENTENCE_END, *tokens]
    return [
        token[0].lower() + token[1:] if previous in (SENTENCE_END, OPEN_QUOTE) and token not in names else token
        for previous, token in zip(before, tokens, strict=False)
    ]


def detokenise(tokens: Iterable[str]) -> str:
    """Join tokens to a text with spaces, straight quotes, and a capital at the start of a sentence or a speech.

    A speech that continues after "said he" starts without a capital.
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


def may_follow(previous_tokens: Sequence[str], token: str, is_quote_open: bool) -> bool:
    """Return whether the rules of typography allow the token after the last two tokens.

    `is_quote_open`: whether a speech is open.
    """
    before = previous_tokens[-1] if previous_tokens else SENTENCE_END
    if before == CLOSE_QUOTE:
        stop = previous_tokens[-2]
        return (token == SENTENCE_END and stop in STOPS) or (_is_word(token) and stop != ".")
    if before in STOPS:
        return token == SENTENCE_END or (token == CLOSE_QUOTE and is_quote_open)
    if before in MARKS:
        return (
            _is_word(token)
            or (token == CLOSE_QUOTE and is_quote_open and before == ",")
            or (token == OPEN_QUOTE and not is_quote_open)
        )
    if before == SENTENCE_END:
        return _is_word(token) or (token == OPEN_QUOTE and not is_quote_open)
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
        """Return the probability of the token after ``before``. All unknown tokens together count as one more token."""
        estimate = 1 / (len(self.counts[()]) + 1)
        for length in range(min(self.order - 1, len(before)) + 1):
            followers = self.counts.get(tuple(before[len(before) - length :]))
            if followers is None:
                break
            kept = max(followers[token] - self.discount, 0.0)
            estimate = (kept + self.discount * len(followers) * estimate) / followers.total()
        return estimate

    def draw_token(self, before: Sequence[str], rng: Random) -> str:
        """Draw a random token by the discounted counts after the longest known run."""
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
        """Return whole sentences after `before`, with a number of words in the range, with or without quoted speech.

        An attempt that gets too long, or has a word that is not welcome, is discarded.
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
