"""Metrics that heval computes from the texts of a study, with maintained libraries, and plug-ins of the operator."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

from analysis.models import Metric
from studies.access import Action, check_permission_or_404
from studies.models import Job, Output, Study, System
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .store import MetricDescription, store_computed_scores

KIND = "compute_metrics"
PLUG_INS = "heval.metrics"
NOT_INSTALLED = (
    "Automatic metrics need optional packages. Install them in heval's environment: "
    "pip install 'sacrebleu>=2.6,<3' 'rouge-score>=0.1.2,<0.2'"
)
# Scores of one output at a time are reported this often.
REPORT_EVERY = 200

# Returns the score of a text beside its references.
ScoreText = Callable[[str, Sequence[str]], float]
# Returns the score of several texts together, each beside its references.
ScoreTexts = Callable[[Sequence[str], Sequence[Sequence[str]]], float]


@dataclass(frozen=True, slots=True)
class ComputedMetric:
    """A metric of texts. ``make`` loads its library and returns the function that scores one text beside its references.

    ``make_of_all``: likewise for all texts of a system together, of a metric that papers report in this way. ``points``: what turns
    a score into points from 0 to 100.
    """

    name: str
    label: str
    version: Callable[[], str]
    make: Callable[[], ScoreText]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    is_lower_better: bool = False
    source: str = Metric.Source.BUILT_IN
    points: float = 1.0
    make_of_all: Callable[[], ScoreTexts] | None = None

    @property
    def is_installed(self) -> bool:
        return all(find_spec(package) is not None for package in self.packages)


def _sacrebleu(metric: str, **options: Any) -> Callable[[], ScoreText]:
    def make() -> ScoreText:
        from sacrebleu import metrics

        scorer = getattr(metrics, metric)(**options)
        return lambda text, references: float(scorer.sentence_score(text, list(references)).score)

    return make


def _sacrebleu_of_all(metric: str) -> Callable[[], ScoreTexts]:
    def make() -> ScoreTexts:
        from sacrebleu import metrics

        scorer = getattr(metrics, metric)()

        def score(texts: Sequence[str], references: Sequence[Sequence[str]]) -> float:
            # sacreBLEU takes the first references of all texts, then the second ones. A text may have fewer than others.
            streams = [list(stream) for stream in zip_longest(*references)]
            return float(scorer.corpus_score(list(texts), streams).score)

        return score

    return make


def _rouge(variant: str) -> Callable[[], ScoreText]:
    def make() -> ScoreText:
        from rouge_score.rouge_scorer import RougeScorer  # type: ignore[import-untyped]  # the package has no types

        scorer = RougeScorer([variant], use_stemmer=True)
        return lambda text, references: max(
            float(scorer.score(reference, text)[variant].fmeasure) for reference in references
        )

    return make


def normalized_tokens(text: str) -> list[str]:
    """Return the words of a text in lower case, without punctuation, as the answers of question-answering sets are compared."""
    kept = "".join(character if character.isalnum() else " " for character in text.casefold())
    return kept.split()


def exact_match(text: str, references: Sequence[str]) -> float:
    """Return 1 if the words of the text are those of a reference, otherwise 0."""
    words = normalized_tokens(text)
    return float(any(words == normalized_tokens(reference) for reference in references))


def token_f1(text: str, references: Sequence[str]) -> float:
    """Return the harmonic mean of precision and recall of the text's words, with the reference that fits best."""
    from collections import Counter

    words, best = Counter(normalized_tokens(text)), 0.0
    for reference in references:
        expected = Counter(normalized_tokens(reference))
        n_common = (words & expected).total()
        if not words or not expected:
            best = max(best, float(words == expected))
        elif n_common:
            best = max(best, 2 * n_common / (words.total() + expected.total()))
    return best


def _version_of(package: str) -> Callable[[], str]:
    return lambda: f"{package} {metadata.version(package)}"


def _own(score: ScoreText) -> Callable[[], ScoreText]:
    return lambda: score


BUILT_IN = (
    ComputedMetric(
        "bleu",
        "BLEU",
        _version_of("sacrebleu"),
        _sacrebleu("BLEU", effective_order=True),
        {"effective_order": True},
        ("sacrebleu",),
        make_of_all=_sacrebleu_of_all("BLEU"),
    ),
    ComputedMetric(
        "chrf",
        "chrF",
        _version_of("sacrebleu"),
        _sacrebleu("CHRF"),
        packages=("sacrebleu",),
        make_of_all=_sacrebleu_of_all("CHRF"),
    ),
    ComputedMetric(
        "ter",
        "TER",
        _version_of("sacrebleu"),
        _sacrebleu("TER"),
        packages=("sacrebleu",),
        is_lower_better=True,
    ),
    *(
        ComputedMetric(
            variant.lower().replace("rouge", "rouge_"),
            label,
            _version_of("rouge-score"),
            _rouge(variant),
            {"variant": variant, "use_stemmer": True},
            ("rouge_score",),
            points=100,
        )
        for variant, label in (("rouge1", "ROUGE-1"), ("rouge2", "ROUGE-2"), ("rougeL", "ROUGE-L"))
    ),
    ComputedMetric("exact_match", "exact match", lambda: "1", _own(exact_match), points=100),
    ComputedMetric("token_f1", "F1 of words", lambda: "1", _own(token_f1), points=100),
)


def available_metrics() -> dict[str, ComputedMetric]:
    """Return the built-in metrics and the plug-ins by name. A plug-in is a function of an installed package.

    A package declares it as an entry point of the group ``heval.metrics``. The function takes a text and a list of references and
    returns a number. Its attribute ``version`` is stored with each score, and ``is_lower_better`` says its direction.
    """
    found = {metric.name: metric for metric in BUILT_IN}
    for entry in metadata.entry_points(group=PLUG_INS):
        found.setdefault(entry.name, _plug_in(entry))
    return found


def _plug_in(entry: metadata.EntryPoint) -> ComputedMetric:
    package = entry.dist.name if entry.dist else "plug-in"
    packaged = entry.dist.version if entry.dist else "unknown"

    def version() -> str:
        return f"{package} {getattr(entry.load(), 'version', packaged)}"

    return ComputedMetric(
        entry.name, f"{entry.name} ({package})", version, lambda: entry.load(), source=Metric.Source.PLUG_IN
    )


def request_metrics(study: Study, by, names: Sequence[str], request_token: str | None = None) -> Job:
    """Submit the job that computes metrics. Raise ActionRefused if one is unknown or not installed, or the study has no references."""
    check_permission_or_404(by, Action.ANALYSE, study)
    if not names:
        raise ActionRefused("No metric is chosen. Choose one or more.")
    refuse_unless_computable(study, names)
    return jobs.submit(KIND, study=study, by=by, request_token=request_token, names=list(dict.fromkeys(names)))


def refuse_unless_computable(study: Study, names: Sequence[str]) -> None:
    """Raise ActionRefused if a metric is unknown or not installed, or the study has no references."""
    known = available_metrics()
    for name in names:
        if name not in known:
            raise ActionRefused(f"“{name[:60]}” is not a metric of this site. Choose one of: {', '.join(known)}.")
        if not known[name].is_installed:
            raise ActionRefused(NOT_INSTALLED)
    if not reference_texts(study):
        raise ActionRefused(
            "The study has no reference outputs. Mark the system that wrote the references as the reference."
        )


def reference_systems(study: Study) -> list[int]:
    """Return the ids of the systems whose outputs are the references: the reference, or else the human authors."""
    systems = System.objects.filter(study=study)
    marked = systems.filter(reference=System.Reference.ORDINARY).values_list("pk", flat=True)
    return list(marked) or list(systems.judged().filter(is_human=True).values_list("pk", flat=True))


def reference_texts(study: Study) -> dict[int, list[str]]:
    """Return the reference texts by prompt id."""
    rows = Output.objects.filter(system__in=reference_systems(study), media="").order_by("prompt", "system", "sample")
    found: dict[int, list[str]] = {}
    for prompt, text in rows.values_list("prompt_id", "text"):
        found.setdefault(prompt, []).append(text)
    return found


def outputs_with_references(study: Study) -> Iterator[tuple[int, str, str, str, list[str]]]:
    """Yield each output of other systems that has a reference: its id, system and prompt, its text, and the references."""
    references, sources = reference_texts(study), set(reference_systems(study))
    rows = Output.objects.filter(system__in=study.systems.judged(), media="").order_by("pk")
    values = rows.values_list("pk", "system_id", "system__name", "prompt_id", "prompt__key", "text")
    for pk, system, system_name, prompt, key, text in values.iterator(chunk_size=2000):
        if system not in sources and prompt in references:
            yield pk, system_name, key, text, references[prompt]


def compute_metrics(
    study: Study, by, names: Sequence[str], progress: Callable[..., None] = lambda done, total, doing="": None
) -> list[Metric]:
    """Compute and store the named metrics. A metric that fails on one output stores nothing, and the error names the output."""
    outputs = list(outputs_with_references(study))
    known, stored = available_metrics(), []
    total = len(outputs) * len(names)
    for number, name in enumerate(names):
        metric = known[name]
        score = metric.make()
        by_output: dict[int, float] = {}
        for position, (pk, system, prompt, text, references) in enumerate(outputs):
            if position % REPORT_EVERY == 0:
                progress(number * len(outputs) + position, total, f"Computing {metric.label}")
            by_output[pk] = _checked_score(score, name, system, prompt, text, references)
        described = MetricDescription(
            Metric.Kind.METRIC, metric.version(), metric.parameters, is_lower_better=metric.is_lower_better
        )
        stored.append(store_computed_scores(study, by, name, described, by_output, metric.source))
    progress(total, total, "Stored")
    return stored


def _checked_score(
    score: ScoreText, name: str, system: str, prompt: str, text: str, references: Sequence[str]
) -> float:
    where = f"“{name}” failed on the output of “{system[:40]}” for “{prompt[:40]}”"
    try:
        value = float(score(text, references))
    except Exception as error:  # a plug-in may raise anything, and the researcher must learn where
        raise jobs.UserFacingError(f"{where}: {type(error).__name__}: {str(error)[:200]}") from error
    if not math.isfinite(value):
        raise jobs.UserFacingError(f"{where}: its score is not a finite number. Repair the metric, then compute again.")
    return value
