"""Score a chunk of outputs: some prompts, each with its references and the texts beside them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .built_in import scorers


class ScoreFailed(Exception):
    """A metric raised an error, or gave no finite number (``message`` is empty then), for the text at ``place`` of a chunk."""

    def __init__(self, metric: str, place: int, message: str = "", chunk: int = 0):
        super().__init__(metric, place, message, chunk)
        self.metric, self.place, self.message, self.chunk = metric, place, message, chunk


@dataclass(frozen=True, slots=True)
class TextsOfPrompt:
    """The references of a prompt, the texts to score beside them, and their declared language."""

    references: list[str]
    texts: list[str]
    language: str = ""


def describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


class ChunkScorer:
    """Score chunks with these built-in metrics. Libraries and what they remember are kept between chunks."""

    def __init__(self, names: Sequence[str]):
        self.families = list(scorers(names))

    def score(self, chunk: Sequence[TextsOfPrompt]) -> dict[str, list[float]]:
        """Return the scores of a chunk's texts in their order, by metric. Raise ScoreFailed for the first that cannot be scored."""
        found: dict[str, list[float]] = {name: [] for names, _ in self.families for name in names}
        place = 0
        for prompt in chunk:
            for names, beside in self.families:
                self._score_prompt(prompt, names, beside, place, found)
            place += len(prompt.texts)
        return found

    @staticmethod
    def _score_prompt(prompt: TextsOfPrompt, names: list[str], beside: Any, place: int, found: dict) -> None:
        # Systems often give the same output; its score is the same.
        known: dict[str, dict[str, float]] = {}
        score = None
        for offset, text in enumerate(prompt.texts):
            if text not in known:
                try:
                    score = score or beside(prompt.references, prompt.language)
                    known[text] = dict(score(text))
                except Exception as error:  # a library may raise anything, and the researcher must learn where
                    raise ScoreFailed(names[0], place + offset, describe_error(error)) from error
            for name in names:
                if not math.isfinite(known[text][name]):
                    raise ScoreFailed(name, place + offset)
                found[name].append(known[text][name])
