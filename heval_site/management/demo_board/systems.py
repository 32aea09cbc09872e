"""Systems that continue a fable from its opening. Each is a pure function of the opening, of other fables, and of a seed."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

MIN_TOKENS, MAX_TOKENS = 55, 95
EXTRACTED_SENTENCES = 3
_TOKEN = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*|[.,;:!?]")
_SENTENCE = re.compile(r".+?[.!?]\"?(?=\s+\S|$)", re.DOTALL)
# Animals and people have a capital in these fables, and mostly come after an article.
_CHARACTER = re.compile(r"\b(?:[Aa]n?|[Tt]he|[Tt]wo|[Ss]ome) ([A-Z][a-z]+)")


@dataclass(frozen=True, slots=True)
class Fable:
    """A fable in two parts, both by its author."""

    key: str
    opening: str
    ending: str


Writer = Callable[[str, Sequence[Fable], Random], str]


def write_by_ngrams(opening: str, others: Sequence[Fable], rng: Random, *, order: int) -> str:
    """Draw word after word by what follows the last ``order - 1`` words in other fables; fewer words if they never occur there."""
    followers: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for fable in others:
        tokens = _TOKEN.findall(f"{fable.opening} {fable.ending}")
        for place, token in enumerate(tokens):
            for length in range(min(order - 1, place) + 1):
                followers[tuple(tokens[place - length : place])].append(token)
    history = _TOKEN.findall(opening)
    written: list[str] = []
    while len(written) < MAX_TOKENS and not (len(written) >= MIN_TOKENS and written[-1] in ".!?"):
        length = next(n for n in range(order - 1, -1, -1) if tuple(history[len(history) - n :]) in followers or not n)
        token = rng.choice(followers[tuple(history[len(history) - length :])])
        history.append(token)
        written.append(token)
    return _join(written)


def _join(words_and_marks: Iterable[str]) -> str:
    text = ""
    for piece in words_and_marks:
        if not piece[0].isalpha():
            text = text.rstrip(" .,;:!?") + piece if text else ""
        elif not text:
            text = _capitalised(piece)
        else:
            text += " " + (_capitalised(piece) if text[-1] in ".!?" else piece)
    return text if text[-1] in ".!?" else text.rstrip(" ,;:") + "."


def _capitalised(word: str) -> str:
    return word[0].upper() + word[1:]


def repeat_opening(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Say the last sentence of the opening again: a baseline that is fluent and tells nothing new."""
    return sentences_of(opening)[-1]


def extract_sentences(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Take the sentences of other endings that share the rarest words with the opening."""
    weights = word_weights(others)
    wanted = set(_words(opening))
    found = [
        (sum(weights.get(word, 0.0) for word in wanted.intersection(_words(sentence))), place, sentence)
        for place, sentence in enumerate(sentence for fable in others for sentence in sentences_of(fable.ending))
    ]
    best = sorted(found, key=lambda row: (-row[0], row[1]))[:EXTRACTED_SENTENCES]
    return " ".join(sentence for _, _, sentence in sorted(best, key=lambda row: row[1]))


def take_nearest_ending(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Take the ending of the fable whose opening is most alike by its words."""
    return nearest_fable(opening, others).ending


def rename_nearest_ending(opening: str, others: Sequence[Fable], rng: Random) -> str:
    """Take the nearest ending, with the characters of this opening in the places of the other ones."""
    nearest = nearest_fable(opening, others)
    new, old = characters_of(opening), characters_of(f"{nearest.opening} {nearest.ending}")
    if not new:
        return nearest.ending
    names = {name: new[place % len(new)] for place, name in enumerate(old)}
    return re.sub(r"\b[A-Z][a-z]+\b", lambda found: names.get(found[0], found[0]), nearest.ending)


def nearest_fable(opening: str, others: Sequence[Fable]) -> Fable:
    """Return the fable with the highest cosine between the weighted words of the openings."""
    weights = word_weights(others)

    def vector(text: str) -> dict[str, float]:
        return {word: n * weights.get(word, 0.0) for word, n in Counter(_words(text)).items()}

    mine = vector(opening)

    def likeness(fable: Fable) -> float:
        other = vector(fable.opening)
        size = math.hypot(*other.values()) * math.hypot(*mine.values())
        return sum(value * other.get(word, 0.0) for word, value in mine.items()) / size if size else 0.0

    return max(others, key=likeness)


def word_weights(fables: Sequence[Fable]) -> dict[str, float]:
    """Return the logarithm of how rare each word is: the number of fables over that of fables with the word."""
    found = Counter(word for fable in fables for word in set(_words(f"{fable.opening} {fable.ending}")))
    return {word: math.log(len(fables) / n) for word, n in found.items()}


def characters_of(text: str) -> list[str]:
    """Return the names of animals and people, each once, in the order of the text."""
    return list(dict.fromkeys(_CHARACTER.findall(text)))


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text. A quote that a sentence does not close is left out."""
    found = [sentence.strip() for sentence in _SENTENCE.findall(text)] or [text]
    return [sentence if sentence.count('"') % 2 == 0 else sentence.replace('"', "") for sentence in found]


def _words(text: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(text) if token[0].isalpha()]


WRITERS: dict[str, Writer] = {
    "one word": partial(write_by_ngrams, order=1),
    "two words": partial(write_by_ngrams, order=2),
    "three words": partial(write_by_ngrams, order=3),
    "echo": repeat_opening,
    "rare words": extract_sentences,
    "nearest fable": take_nearest_ending,
    "nearest fable, renamed": rename_nearest_ending,
}


def continue_fables(name: str, fables: Sequence[Fable], seed: int) -> dict[str, str]:
    """Return the system's ending of each fable, by key. It never sees the fable's own ending."""
    texts = {}
    for fable in fables:
        others = [other for other in fables if other.key != fable.key]
        texts[fable.key] = WRITERS[name](fable.opening, others, Random(f"{seed} {name} {fable.key}"))
    return texts
