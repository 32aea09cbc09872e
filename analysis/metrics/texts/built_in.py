"""The built-in metrics of texts, from maintained libraries. What several of them or several texts share is computed once."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

# Returns the scores of one text, by the names of metrics.
ScoreOne = Callable[[str], Mapping[str, float]]
# Prepares the references of a prompt, and returns the function that scores its texts.
ScoreBeside = Callable[[Sequence[str]], ScoreOne]


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
    classes = {"bleu": metrics.BLEU, "chrf": metrics.CHRF, "ter": metrics.TER}

    def beside(references: Sequence[str]) -> ScoreOne:
        # The library splits references into words or n-grams when it makes a scorer, and keeps them for all texts of the prompt.
        scorer = classes[metric.name](references=[[reference] for reference in references], **metric.parameters)
        return lambda text: {metric.name: float(scorer.corpus_score([text], None).score)}

    return beside


def _sacrebleu_of_all(metric: str) -> Callable[[], ScoreTogether]:
    def make() -> ScoreTogether:
        from sacrebleu import metrics

        scorer = getattr(metrics, metric)()

        def score(texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
            # sacreBLEU takes the first references of all texts, then the second ones. A text may have fewer than others.
            streams = [list(stream) for stream in zip_longest(*references)]
            return float(scorer.corpus_score(list(texts), streams).score)

        return score

    return make


class _Stemmer:
    """The stemmer of rouge-score, which meets the same words in all texts."""

    def __init__(self) -> None:
        from nltk.stem.porter import PorterStemmer  # type: ignore[import-untyped]  # the package has no types

        self.stem = lru_cache(maxsize=100_000)(PorterStemmer().stem)


class _Tokenizer:
    """The tokenizer of rouge-score. ``keep`` splits the references of a prompt once for all of its texts."""

    def __init__(self) -> None:
        from rouge_score.tokenize import tokenize  # type: ignore[import-untyped]  # the package has no types

        self._split, self._stemmer = tokenize, _Stemmer()
        self._kept: dict[str, list[str]] = {}

    def keep(self, texts: Sequence[str]) -> None:
        self._kept = {text: self._split(text, self._stemmer) for text in texts}

    def tokenize(self, text: str) -> list[str]:
        return self._kept[text] if text in self._kept else self._split(text, self._stemmer)


def _rouge(chosen: Sequence[TextMetric]) -> ScoreBeside:
    from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # the package has no types

    tokenizer = _Tokenizer()
    scorer = RougeScorer([metric.parameters["variant"] for metric in chosen], tokenizer=tokenizer)

    def beside(references: Sequence[str]) -> ScoreOne:
        tokenizer.keep(references)

        def score(text: str) -> dict[str, float]:
            found = [scorer.score(reference, text) for reference in references]
            return {
                metric.name: max(float(one[metric.parameters["variant"]].fmeasure) for one in found)
                for metric in chosen
            }

        return score

    return beside


def normalized_tokens(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation, as the answers of question-answering sets are compared."""
    kept = "".join(character if character.isalnum() else " " for character in text.casefold())
    return kept.split()


def exact_match(words: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return 1 if the words of the text are those of a reference, otherwise 0."""
    return float(any(words == reference for reference in references))


def token_f1(words: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the harmonic mean of precision and recall of the text's words, with the reference that fits best."""
    counted, best = Counter(words), 0.0
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

    def beside(references: Sequence[str]) -> ScoreOne:
        expected = [normalized_tokens(reference) for reference in references]

        def score(text: str) -> dict[str, float]:
            words = normalized_tokens(text)
            return {metric.name: functions[metric.name](words, expected) for metric in chosen}

        return score

    return beside


def _version_of(package: str) -> Callable[[], str]:
    return lambda: f"{package} {metadata.version(package)}"


def _own_version() -> str:
    return "1"


_FAMILIES: dict[str, Callable[[Sequence[TextMetric]], ScoreBeside]] = {
    "bleu": _sacrebleu,
    "chrf": _sacrebleu,
    "ter": _sacrebleu,
    "rouge": _rouge,
    "words": _of_words,
}
_OF_SACREBLEU: dict[str, Any] = {"version": _version_of("sacrebleu"), "packages": ("sacrebleu",)}
BUILT_IN = {
    metric.name: metric
    for metric in (
        TextMetric(
            "bleu",
            "BLEU",
            "bleu",
            parameters={"effective_order": True},
            make_of_all=_sacrebleu_of_all("BLEU"),
            **_OF_SACREBLEU,
        ),
        TextMetric("chrf", "chrF", "chrf", make_of_all=_sacrebleu_of_all("CHRF"), **_OF_SACREBLEU),
        TextMetric("ter", "TER", "ter", is_lower_better=True, is_slow=True, **_OF_SACREBLEU),
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
