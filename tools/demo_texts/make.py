"""Generate the stimuli of the demo study.

`python -m tools.demo_texts.make` writes heval_site/management/demo_texts/demo.jsonl, with the same bytes each time.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from .ngrams import SENTENCE_END, NGrams, detokenise, find_proper_names, lower_sentence_starts, tokenise

HERE = Path(__file__).parent
STIMULI_PATH = HERE.parents[1] / "heval_site" / "management" / "demo_texts" / "demo.jsonl"
SEED = 1867  # the year of the translation
HUMAN = "human"
ORDERS = {"order-1": 1, "order-2": 2, "order-3": 3, "order-5": 5}
MIN_WORDS, MAX_WORDS = 50, 110
LENGTH_SLACK = 0.15

# Title, and number of sentences of the prompt. The rest is the human continuation. No model learns from these fables.
HELD_OUT = {
    "The Bat and the Weasels": 2,
    "The Lion and the Mouse": 2,
    "The Kingdom of the Lion": 2,
    "The Fisherman Piping": 1,
    "The Hare and the Tortoise": 1,
    "The Boasting Traveler": 1,
    "The Boy and the Filberts": 1,
    "The Mischievous Dog": 2,
    "The Father and His Two Daughters": 2,
    "The Huntsman and the Fisherman": 1,
    "The Fox and the Crow": 1,
    "The Two Dogs": 1,
    "The Shepherd and the Sea": 1,
    "The Oak and the Reeds": 1,
    "The Fisherman and the Little Fish": 1,
    "The Swollen Fox": 1,
    "The Two Frogs": 2,
    "The Peasant and the Eagle": 1,
    "The Image of Mercury and the Carpenter": 1,
    "The Crow and the Raven": 1,
    "The Trees and the Axe": 2,
    "The Crow and the Pitcher": 1,
    "The Jackdaw and the Doves": 1,
    "The Seller of Images": 1,
}

# Violent words, and words that are now unintentionally funny. The held-out continuations do not have them either.
UNWELCOME = re.compile(
    r"kill(s|ed|ing)?|slain|slay|slaughter\w*|blood|dead|death|die[ds]?|devour\w*|lacerated|strangle\w*|poison|"
    r"wound\w*|maimed|mortal|drowned|victim|enslaved|eaten|tear|body|cocks?|butt",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class HeldOutFable:
    """A fable that no model learns from, split into the prompt and the human continuation."""

    key: str
    title: str
    prompt: str
    continuation: str


def load_fables() -> dict[str, str]:
    """Return the corpus: the text of each fable by title."""
    blocks = (HERE / "corpus.txt").read_text(encoding="ascii").split("\n\n")
    return dict(block.strip().split("\n", 1) for block in blocks)


def held_out_fables(corpus: dict[str, str]) -> list[HeldOutFable]:
    """Return the fables of ``HELD_OUT``, numbered in its order."""
    return [
        HeldOutFable(f"fable-{number:02}", title, *_split_fable(corpus[title], sentences))
        for number, (title, sentences) in enumerate(HELD_OUT.items(), 1)
    ]


def _split_fable(text: str, sentences: int) -> tuple[str, str]:
    tokens = tokenise(text)
    ends = [place for place, token in enumerate(tokens, 1) if token == SENTENCE_END]
    prompt = detokenise(tokens[: ends[sentences - 1]])
    if not text.startswith(prompt + " "):
        raise ValueError(f"prompt: {prompt!r} is not how its fable begins.")
    return prompt, text[len(prompt) + 1 :]


def training_tokens(corpus: dict[str, str]) -> list[list[str]]:
    """Return the tokens of every fable that is not held out, with the capitals of the text."""
    return [tokenise(text) for title, text in corpus.items() if title not in HELD_OUT]


def is_suitable_word(word: str) -> bool:
    """Return whether the word may be shown to annotators."""
    return not UNWELCOME.fullmatch(word)


def demo_records() -> Iterator[dict[str, object]]:
    """Yield one record per prompt: key, source, prompt and the outputs by system."""
    corpus = load_fables()
    texts = training_tokens(corpus)
    names = find_proper_names(texts)
    learned = [lower_sentence_starts(tokens, names) for tokens in texts]
    writers = {system: NGrams(learned, order) for system, order in ORDERS.items()}
    for fable in held_out_fables(corpus):
        before = lower_sentence_starts(tokenise(fable.prompt), names)
        words = _word_range(len(fable.continuation.split()))
        # Readers see length and quotes at once, so the models' texts match the human text in both.
        has_speech = '"' in fable.continuation
        outputs = {}
        for system, writer in writers.items():
            # One random generator per text, so that changing one model does not change the texts of others.
            rng = Random(f"{SEED}/{fable.key}/{system}")
            outputs[system] = detokenise(writer.continuation(before, words, has_speech, rng, is_suitable_word))
        yield {
            "key": fable.key,
            "source": fable.title,
            "prompt": fable.prompt,
            "outputs": {**outputs, HUMAN: fable.continuation},
        }


def _word_range(words: int) -> range:
    return range(
        max(MIN_WORDS, round(words * (1 - LENGTH_SLACK))), min(MAX_WORDS, round(words * (1 + LENGTH_SLACK))) + 1
    )


def stimuli_file_bytes() -> bytes:
    """Return the content of the stimuli file."""
    return "".join(json.dumps(line, ensure_ascii=True) + "\n" for line in demo_records()).encode()


if __name__ == "__main__":
    STIMULI_PATH.write_bytes(stimuli_file_bytes())
