"""Two judges of the demo's texts that run here without a download: a classifier of words, and a rule about length.

Both give points from 1 to 5. The classifier learns from the ratings of one half of the prompts and judges the other half, and the
other way round, so it never judges an output whose ratings it has seen. Docs: tutorial/is-my-judge-good-enough.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from annotators.counting import Use, select
from annotators.models import Response
from studies.models import Output, Study
from studies.stimuli.rows import formula_safe_csv_text

CLASSIFIER, RULE = "word classifier", "length rule"
LOWEST, HIGHEST = 1, 5
# A text with this many words or more gets the highest points of the rule.
LONG_TEXT = 80
N_STEPS, RATE, SHRINKAGE = 60, 0.5, 0.01


@dataclass(frozen=True, slots=True)
class JudgedText:
    system: str
    prompt: str
    text: str
    ratings: tuple[float, ...]


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation."""
    return "".join(character if character.isalpha() else " " for character in text.casefold()).split()


def features_of(text: str) -> dict[str, float]:
    """Return the shares of words, of pairs of words, and of what ends a sentence."""
    words = words_of(text)
    names = [*words, *(f"{one} {two}" for one, two in zip(words, words[1:], strict=False))]
    size = math.sqrt(len(names) or 1)
    found: dict[str, float] = {}
    for name in names:
        found[name] = found.get(name, 0.0) + 1 / size
    for mark in ".,;:!?":
        found[mark] = text.count(mark) / max(1, len(words))
    return found


def train(texts: Iterable[JudgedText]) -> tuple[dict[str, float], float]:
    """Fit a logistic regression of ratings, as shares of the scale, by gradient descent. Return the weights and the constant."""
    rows = [
        (features_of(one.text), (sum(one.ratings) / len(one.ratings) - LOWEST) / (HIGHEST - LOWEST))
        for one in texts
        if one.ratings
    ]
    weights: dict[str, float] = {}
    constant = 0.0
    for _ in range(N_STEPS):
        for features, target in rows:
            error = target - _share(features, weights, constant)
            constant += RATE * error
            for name, value in features.items():
                old = weights.get(name, 0.0)
                weights[name] = old + RATE * (error * value - SHRINKAGE * old)
    return weights, constant


def _share(features: Mapping[str, float], weights: Mapping[str, float], constant: float) -> float:
    total = constant + sum(value * weights.get(name, 0.0) for name, value in features.items())
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


def classifier_points(texts: list[JudgedText]) -> list[float]:
    """Return the points of each text by the classifier that did not see its prompt."""
    prompts = sorted({one.prompt for one in texts})
    half_of = {prompt: number % 2 for number, prompt in enumerate(prompts)}
    models = [train(one for one in texts if half_of[one.prompt] != half) for half in (0, 1)]
    return [_points(_share(features_of(one.text), *models[half_of[one.prompt]])) for one in texts]


def rule_points(texts: list[JudgedText]) -> list[float]:
    """Return the points of each text by its length: the longer, the better."""
    return [_points(min(1.0, len(words_of(one.text)) / LONG_TEXT)) for one in texts]


def _points(share: float) -> float:
    return round(LOWEST + (HIGHEST - LOWEST) * share, 3)


def read_texts(study: Study, question_key: str) -> list[JudgedText]:
    """Return the study's outputs with the ratings that they got."""
    ratings: dict[int, list[float]] = {}
    rows = select(Use.ROWS, Response.objects.filter(assignment__study=study, question__key=question_key))
    for output, value in rows.order_by("pk").values_list("exposure__output", "value"):
        if value is not None:
            ratings.setdefault(output, []).append(float(value))
    outputs = Output.objects.filter(system__study=study).order_by("system__name", "prompt__key")
    return [
        JudgedText(system, prompt, text, tuple(ratings.get(pk, ())))
        for pk, system, prompt, text in outputs.values_list("pk", "system__name", "prompt__key", "text")
    ]


def store_demo_judges(study: Study, by, question_key: str = "quality") -> None:
    """Store the points of both judges as a researcher would: from a file with a column for each judge."""
    from analysis.metrics.files import ScoresFileSettings
    from analysis.metrics.store import MetricDescription, upload_scores

    texts = read_texts(study, question_key)
    chosen = ScoresFileSettings(question=question_key, scale_low=LOWEST, scale_high=HIGHEST)
    for name, points, parameters in (
        (CLASSIFIER, classifier_points(texts), {"steps": N_STEPS, "rate": RATE, "shrinkage": SHRINKAGE, "halves": 2}),
        (RULE, rule_points(texts), {"words": LONG_TEXT}),
    ):
        rows = [(one.system, one.prompt, value) for one, value in zip(texts, points, strict=True)]
        file = formula_safe_csv_text([("system", "prompt", name), *rows])
        described = MetricDescription("judge", "1", parameters, scale_low=LOWEST, scale_high=HIGHEST)
        upload_scores(study, by, f"{name}.csv", file.encode(), chosen, described)
