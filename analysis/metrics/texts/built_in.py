"""The built-in metrics of texts, from maintained libraries. What several of them or several texts share is computed once."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any, Protocol

from studies.stimuli.words import UNSPACED_CHARACTER, words

# The words of a text in any script. No dictionary and no model is loaded.


# A text with a larger share of such letters is split into characters. English that quotes a name in Chinese is not.
UNSPACED_SHARE = 0.1
# English with some names and loanwords has a larger share of letters without accents; other languages that have accents do not.
ENGLISH_SHARE = 0.99
# The same where the language is declared as English: a declaration for a text in another script is about its prompt.
DECLARED_ENGLISH_SHARE = 0.5


def is_unspaced(text: str) -> bool:
    """Return whether a text is written without spaces between words, as Chinese, Japanese and Thai are."""
    if text.isascii():
        return False
    n_letters = sum(map(str.isalpha, text))
    return n_letters > 0 and len(UNSPACED_CHARACTER.findall(text)) >= UNSPACED_SHARE * n_letters


def spaced(text: str) -> str:
    """Return the text with spaces around each character of a script that has none between words."""
    return UNSPACED_CHARACTER.sub(r" \g<0> ", text)


def is_english(text: str, language: str = "") -> bool:
    """Return whether the words of a text are those of English, by its declared language or else by its letters."""
    declared = language.lower().partition("-")[0]
    if declared not in ("", "en"):
        return False
    if text.isascii():
        return True
    letters = [character for character in text if character.isalpha()]
    least = DECLARED_ENGLISH_SHARE if declared else ENGLISH_SHARE
    return sum(map(str.isascii, letters)) >= least * len(letters)


# Returns the scores of one text, by the names of metrics.
ScoreOne = Callable[[str], Mapping[str, float]]


class ScoreBeside(Protocol):
    """Prepares the references of a prompt, and returns the function that scores its texts. An unknown language is empty."""

    def __call__(self, references: Sequence[str], language: str = "") -> ScoreOne: ...


# Returns the score of all texts of a system together, each with its references.
ScoreTogether = Callable[[Sequence[str], Sequence[Sequence[str]]], float]


@dataclass(frozen=True, slots=True)
class TextMetric:
    """A built-in metric. Metrics of one ``family`` are computed together.

    ``is_slow``: its time grows much faster than the texts, so it is computed after the others. ``make_of_all``: loads the library and returns what scores all texts of a system together, of a metric that papers report in this way.
    ``points``: what turns a score into points from 0 to 100.
    """

    name: str
    label: str
    family: str
    version: Callable[[], str]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    is_lower_better: bool = False
    is_slow: bool = False
    points: float = 1.0
    make_of_all: Callable[[], ScoreTogether] | None = None

    @property
    def is_installed(self) -> bool:
        return all(find_spec(package) is not None for package in self.packages)


def scorers(names: Sequence[str]) -> Iterator[tuple[list[str], ScoreBeside]]:
    """Yield, for each family with one of these metrics, their names and the function that computes them together."""
    by_family: dict[str, list[TextMetric]] = {}
    for name in names:
        by_family.setdefault(BUILT_IN[name].family, []).append(BUILT_IN[name])
    for family, metrics in by_family.items():
        yield [metric.name for metric in metrics], _FAMILIES[family](metrics)


def _sacrebleu(chosen: Sequence[TextMetric]) -> ScoreBeside:
    from sacrebleu import metrics

    (metric,) = chosen
    if metric.name == "ter":
        from .edit_distance import use_fast_edit_distance

        use_fast_edit_distance()
    classes = {"bleu": metrics.BLEU, "chrf": metrics.CHRF, "ter": metrics.TER}
    # The scores of chrF are about characters in every script.
    split = None if metric.name == "chrf" else _splitter()

    def beside(references: Sequence[str], language: str = "") -> ScoreOne:
        is_split = split is not None and any(map(is_unspaced, references))
        options = {**metric.parameters, **({"tokenize": "none"} if is_split and metric.name == "bleu" else {})}
        prepare = split if split and is_split else str
        # The library splits references into words or n-grams when it makes a scorer, and keeps them for all texts of the prompt.
        scorer = classes[metric.name](references=[[prepare(reference)] for reference in references], **options)
        return lambda text: {metric.name: float(scorer.corpus_score([prepare(text)], None).score)}

    return beside


def _splitter() -> Callable[[str], str]:
    """Return the function that puts spaces between the words of Chinese, Japanese, Thai and the like.

    It is sacreBLEU's tokenizer of Chinese, for which the other scripts are spaced first.
    """
    from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

    split = TokenizerZh()
    return lambda text: str(split(spaced(text)))


def _bleu_of_all() -> ScoreTogether:
    from sacrebleu.metrics import BLEU
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    # The texts of a system may be in several scripts, so each is split before the library sees it.
    scorer, usual, split = BLEU(tokenize="none", force=True), Tokenizer13a(), _splitter()

    def score(texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
        split_texts, split_references = [], []
        for text, own in zip(texts, references, strict=True):
            one = split if any(map(is_unspaced, own)) else usual
            split_texts.append(one(text.rstrip()))
            split_references.append([one(reference.rstrip()) for reference in own])
        return _corpus_score(scorer, split_texts, split_references)

    return score


def _chrf_of_all() -> ScoreTogether:
    from sacrebleu.metrics import CHRF

    scorer = CHRF()
    return lambda texts, references: _corpus_score(scorer, texts, references)


def _corpus_score(scorer: Any, texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    # sacreBLEU takes the first references of all texts, then the second ones. A text may have fewer than others.
    streams = [list(stream) for stream in zip_longest(*references)]
    return float(scorer.corpus_score(list(texts), streams).score)


class _Stemmer:
    """The stemmer of rouge-score, which meets the same words in all texts."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]  # the package has no types

        self.stem = lru_cache(maxsize=100_000)(PorterStemmer().stem)


class _Tokenizer:
    """The tokenizer of rouge-score for English, and the words of all scripts for other texts. It splits the references of a prompt once."""

    def __init__(self) -> None:
        from rouge_score.tokenize import tokenize  # type: ignore[import-untyped]  # the package has no types

        self._split, self._stemmer = tokenize, _Stemmer()
        self._kept: dict[tuple[bool, str], list[str]] = {}
        self._references: Sequence[str] = ()
        self.is_english = True

    def keep(self, references: Sequence[str]) -> None:
        self._references, self._kept = references, {}

    def tokenize(self, text: str) -> list[str]:
        if text not in self._references:
            return self._words(text)
        if (self.is_english, text) not in self._kept:
            self._kept[self.is_english, text] = self._words(text)
        return self._kept[self.is_english, text]

    def _words(self, text: str) -> list[str]:
        return self._split(text, self._stemmer) if self.is_english else words(text)


def _rouge(chosen: Sequence[TextMetric]) -> ScoreBeside:
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # the package has no types

    tokenizer = _Tokenizer()
    scorer = RougeScorer([metric.parameters["variant"] for metric in chosen], tokenizer=tokenizer)

    def beside(references: Sequence[str], language: str = "") -> ScoreOne:
        tokenizer.keep(references)
        are_english = all(is_english(reference, language) for reference in references)

        def score(text: str) -> dict[str, float]:
            tokenizer.is_english = are_english and is_english(text, language)
            found = [scorer.score(reference, text) for reference in references]
            return {
                metric.name: max(float(one[metric.parameters["variant"]].fmeasure) for one in found)
                for metric in chosen
            }

        return score

    return beside


def exact_match(found: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return 1 if the words of the text are those of a reference, otherwise 0."""
    return float(any(found == reference for reference in references))


def token_f1(found: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the harmonic mean of precision and recall of the text's words, with the reference that fits best."""
    counted, best = Counter(found), 0.0
    for reference in references:
        expected = Counter(reference)
        n_common = (counted & expected).total()
        if not counted or not expected:
            best = max(best, float(counted == expected))
        elif n_common:
            best = max(best, 2 * n_common / (counted.total() + expected.total()))
    return best


def _of_words(chosen: Sequence[TextMetric]) -> ScoreBeside:
    functions = {"exact_match": exact_match, "token_f1": token_f1}

    def beside(references: Sequence[str], language: str = "") -> ScoreOne:
        expected = [words(reference) for reference in references]

        def score(text: str) -> dict[str, float]:
            found = words(text)
            return {metric.name: functions[metric.name](found, expected) for metric in chosen}

        return score

    return beside


# 2: words of all scripts. In 1, they were those of English, and texts in other scripts had none.
WORDS_VERSION = "2"


def _version_of(package: str, has_words: bool = True) -> Callable[[], str]:
    return lambda: f"{package} {metadata.version(package)}" + (f", words {WORDS_VERSION}" if has_words else "")


def _own_version() -> str:
    return WORDS_VERSION


_FAMILIES: dict[str, Callable[[Sequence[TextMetric]], ScoreBeside]] = {
    "bleu": _sacrebleu,
    "chrf": _sacrebleu,
    "ter": _sacrebleu,
    "rouge": _rouge,
    "words": _of_words,
}
_OF_SACREBLEU: dict[str, Any] = {"version": _version_of("sacrebleu"), "packages": ("sacrebleu",)}
_OF_CHARACTERS = _OF_SACREBLEU | {"version": _version_of("sacrebleu", has_words=False)}
BUILT_IN = {
    metric.name: metric
    for metric in (
        TextMetric(
            "bleu",
            "BLEU",
            "bleu",
            parameters={"effective_order": True},
            make_of_all=_bleu_of_all,
            **_OF_SACREBLEU,
        ),
        TextMetric("chrf", "chrF", "chrf", make_of_all=_chrf_of_all, **_OF_CHARACTERS),
        TextMetric(
            "ter",
            "TER",
            "ter",
            _version_of("sacrebleu"),
            packages=("sacrebleu", "rapidfuzz"),
            is_lower_better=True,
            is_slow=True,
        ),
        *(
            TextMetric(
                name,
                label,
                "rouge",
                _version_of("rouge-score"),
                {"variant": variant, "use_stemmer": True},
                ("rouge_score",),
                points=100,
            )
            for name, label, variant in (
                ("rouge_1", "ROUGE-1", "rouge1"),
                ("rouge_2", "ROUGE-2", "rouge2"),
                ("rouge_l", "ROUGE-L", "rougeL"),
            )
        ),
        TextMetric("exact_match", "exact match", "words", _own_version, points=100),
        TextMetric("token_f1", "F1 of words", "words", _own_version, points=100),
    )
}
