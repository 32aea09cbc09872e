"""Plan test questions from the texts of a study: which outputs each shows, and which answer is right. Pure functions of records."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

# A text of another prompt is a random one of this many of the most similar length, so that its length does not reveal it.
N_SIMILAR_LENGTHS = 5
MIN_WORDS_TO_DAMAGE = 8
DAMAGES = ("shuffled", "truncated", "other")


@dataclass(frozen=True, slots=True)
class KnownText:
    """An output, with what the choice of texts depends on. ``n_words`` is 0 for an image."""

    pk: int
    prompt: int
    system: int
    text: str
    n_words: int


@dataclass(frozen=True, slots=True)
class PlannedTestQuestion:
    """A future test question. ``shown``: ids of outputs, or the text of an output that must still be stored.

    ``planted``: the place of the output that the known answer is about. ``better``: in a pair, the place of the better one. ``low_and_high``:
    the range of right ratings, if a file gives it.
    """

    prompt: int
    test_type: str
    shown: tuple[int | str, ...]
    planted: int
    better: int | None = None
    low_and_high: tuple[float | None, float | None] | None = None


class KnownAnswerTexts:
    """The texts from which test questions are made. ``reference``: the system whose texts are right answers, or None."""

    def __init__(self, texts: Sequence[KnownText], reference: int | None, domains: Mapping[int, str]):
        self.by_key: dict[tuple[int, int], KnownText] = {}
        for text in texts:
            self.by_key.setdefault((text.prompt, text.system), text)
        self.reference, self.domains = reference, domains
        counts = sorted(text.n_words for text in texts if text.n_words)
        # The middle 90 % of all lengths.
        self.usual_lengths = (counts[len(counts) // 20], counts[-1 - len(counts) // 20]) if counts else (0, 0)

    def plan(
        self,
        test_type: str,
        prompts: Sequence[int],
        systems: Sequence[int],
        *,
        is_pair: bool,
        shows_one: bool = False,
        damages: Sequence[str],
        rng: Random,
    ) -> Iterator[PlannedTestQuestion]:
        """Yield a test question for each prompt that allows one, in random order. ``shows_one``: a page shows one output only."""
        for number, prompt in enumerate(rng.sample(list(prompts), len(prompts))):
            own = [self.by_key[prompt, system] for system in systems if (prompt, system) in self.by_key]
            if not own or (len(own) < len(systems) and not shows_one):
                continue
            good = self.by_key.get((prompt, self.reference)) if self.reference is not None else None
            replaced = good if good in own else rng.choice(own)
            planted: int | str | None = None
            if test_type == "positive":
                planted = good.pk if good is not None else None
            elif test_type == "negative":
                planted = self._text_of_another_prompt(prompt, self.reference, good or replaced, rng)
            else:
                planted = self._damaged(replaced, damages, number, rng)
            if planted is None:
                continue
            if is_pair:
                # The planted text is the better one of a positive pair, and the worse one of all others.
                other: int | str | None = replaced.pk
                if test_type == "positive":
                    other = self._text_of_another_prompt(prompt, rng.choice(own).system, replaced, rng)
                if other is None or other == planted:
                    continue
                shown: tuple[int | str, ...] = (planted, other) if rng.random() < 0.5 else (other, planted)
                better = planted if test_type == "positive" else other
                yield PlannedTestQuestion(prompt, test_type, shown, shown.index(planted), shown.index(better))
                continue
            if shows_one:
                yield PlannedTestQuestion(prompt, test_type, (planted,), 0)
                continue
            place = own.index(replaced)
            shown = tuple(planted if number == place else text.pk for number, text in enumerate(own))
            if len(set(shown)) == len(shown):
                yield PlannedTestQuestion(prompt, test_type, shown, place)

    def _text_of_another_prompt(self, prompt: int, system: int | None, like: KnownText, rng: Random) -> int | None:
        """Return a text that this system wrote for another prompt of the same domain, as long as ``like``."""
        others = [
            text
            for (other, own_system), text in self.by_key.items()
            if own_system == system
            and other != prompt
            and self.domains.get(other) == self.domains.get(prompt)
            and text.text != like.text
        ]
        others.sort(key=lambda text: (abs(text.n_words - like.n_words), text.prompt))
        return rng.choice(others[:N_SIMILAR_LENGTHS]).pk if others else None

    def _damaged(self, text: KnownText, damages: Sequence[str], number: int, rng: Random) -> int | str | None:
        """Return the text damaged in one of these ways, which take turns, or None if it can be damaged in none."""
        for turn in range(len(damages)):
            damage = damages[(number + turn) % len(damages)]
            if damage == "other":
                damaged: int | str | None = self._text_of_another_prompt(text.prompt, text.system, text, rng)
            elif text.n_words < MIN_WORDS_TO_DAMAGE:
                damaged = None
            elif damage == "shuffled":
                damaged = shuffle_words(text.text, rng)
            else:
                damaged = truncate(text.text, rng)
                low, high = self.usual_lengths
                if not low <= len(damaged.split()) <= high:
                    damaged = None
            if damaged is not None:
                return damaged
        return None


def shuffle_words(text: str, rng: Random) -> str:
    """Return the words of a text in random order. Each line keeps its number of words, so the text looks as before."""
    lines = [line.split() for line in text.splitlines()]
    words = [word for line in lines for word in line]
    shuffled = iter(rng.sample(words, len(words)))
    return "\n".join(" ".join(next(shuffled) for _ in line) for line in lines)


def truncate(text: str, rng: Random) -> str:
    """Return the beginning of a text, 40 to 60 % of its words."""
    words = text.split(" ")
    return " ".join(words[: max(1, round(len(words) * rng.uniform(0.4, 0.6)))]).rstrip()
