"""Metrics that heval computes from the texts of a study, with maintained libraries, and plug-ins of the operator."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib import metadata
from time import monotonic
from typing import Any

from django.db.models import Avg, Count
from django.db.models.functions import Length

from analysis.models import Metric
from studies.access import Action, check_permission_or_404
from studies.models import Job, Output, Study, System
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .store import MetricDescription, store_computed_scores
from .texts.built_in import BUILT_IN, TextMetric, is_unspaced
from .texts.processes import (
    CHARACTERS_PER_WORD,
    ProcessEnded,
    ScoreFailed,
    TextsOfPrompt,
    describe_error,
    forecast,
    n_processors,
    score_chunks,
    time_left,
)

KIND = "compute_metrics"
PLUG_INS = "heval.metrics"
NOT_INSTALLED = (
    "Automatic metrics need optional packages. Install them in heval's environment: "
    "pip install 'sacrebleu>=2.6,<3' 'rouge-score>=0.1.2,<0.2'"
)
# So many outputs are scored between two reports of progress. A slow metric may need a second for one output.
REPORT_EVERY, REPORT_SLOW_EVERY = 200, 5

# Returns the score of a text beside its references.
ScoreText = Callable[[str, Sequence[str]], float]


@dataclass(frozen=True, slots=True)
class PlugIn:
    """A metric of an installed package. ``load`` returns the function that scores one text beside its references."""

    name: str
    label: str
    version: Callable[[], str]
    load: Callable[[], ScoreText]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    is_lower_better: bool = False
    is_installed: bool = True
    is_slow: bool = False
    points: float = 1.0
    make_of_all: None = None


@dataclass(frozen=True, slots=True)
class OutputToScore:
    """An output with a reference, its language if that is declared, and the names that a message about it needs."""

    pk: int
    system: str
    prompt: str
    text: str
    references: list[str]
    language: str = ""


def available_metrics() -> dict[str, TextMetric | PlugIn]:
    """Return the built-in metrics and the plug-ins by name. A plug-in is a function of an installed package.

    A package declares it as an entry point of the group ``heval.metrics``. The function takes a text and a list of references and
    returns a number. Its attribute ``version`` is stored with each score, and ``is_lower_better`` says its direction.
    """
    found: dict[str, TextMetric | PlugIn] = dict(BUILT_IN)
    for entry in metadata.entry_points(group=PLUG_INS):
        found.setdefault(entry.name, _plug_in(entry))
    return found


def _plug_in(entry: metadata.EntryPoint) -> PlugIn:
    package = entry.dist.name if entry.dist else "plug-in"
    packaged = entry.dist.version if entry.dist else "unknown"

    def version() -> str:
        return f"{package} {getattr(entry.load(), 'version', packaged)}"

    return PlugIn(entry.name, f"{entry.name} ({package})", version, entry.load)


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


def outputs_with_references(study: Study) -> Iterator[OutputToScore]:
    """Yield each output of other systems that has a reference, those of a prompt one after the other."""
    references, sources = reference_texts(study), set(reference_systems(study))
    declared = (
        Output.objects.filter(system__in=sources, media="").exclude(language="").order_by("prompt", "system", "sample")
    )
    languages = dict(declared.values_list("prompt_id", "language"))
    rows = Output.objects.filter(system__in=study.systems.judged(), media="").order_by("prompt", "pk")
    values = rows.values_list("pk", "system_id", "system__name", "prompt_id", "prompt__key", "text", "prompt__language")
    for pk, system, system_name, prompt, key, text, language in values.iterator(chunk_size=2000):
        if system not in sources and prompt in references:
            yield OutputToScore(pk, system_name, key, text, references[prompt], languages.get(prompt) or language)


def slow_forecast(study: Study) -> str:
    """Return in words how long the slow metrics of the study's outputs take on this machine, or nothing if they are soon over."""
    scored = Output.objects.filter(system__in=study.systems.judged(), media="").exclude(
        system__in=reference_systems(study)
    )
    found = scored.aggregate(n=Count("pk"), characters=Avg(Length("text")))
    # In a script without spaces, each character is a word.
    per_word = 1 if any(map(is_unspaced, scored.values_list("text", flat=True)[:20])) else CHARACTERS_PER_WORD
    return forecast(found["n"], (found["characters"] or 0) / per_word, n_processors())


Report = Callable[..., None]


def compute_metrics(
    study: Study, by, names: Sequence[str], progress: Report = lambda done, total, doing="": None
) -> list[Metric]:
    """Compute and store the named metrics, slow ones after the others. A metric is stored for all outputs or not at all.

    If a metric fails on one output, the error names both. It and the metrics after it are not stored.
    """
    outputs = list(outputs_with_references(study))
    known = available_metrics()
    stored: dict[str, Metric] = {}
    for together in _in_order(names, known):
        first = known[together[0]]
        if isinstance(first, TextMetric):
            found = _score_with_built_in(together, outputs, progress)
        else:
            found = {first.name: _score_with_plug_in(first, outputs, progress)}
        stored |= {name: _store(study, by, known[name], found[name]) for name in together}
    return [stored[name] for name in names]


def _in_order(names: Sequence[str], known: Mapping[str, TextMetric | PlugIn]) -> list[list[str]]:
    """Return what is computed together: the fast built-in metrics, then each slow one, then each plug-in."""
    built_in = [name for name in names if isinstance(known[name], TextMetric)]
    slow = [name for name in built_in if BUILT_IN[name].is_slow]
    fast = [name for name in built_in if name not in slow]
    return [*([fast] if fast else []), *([name] for name in slow), *([name] for name in names if name not in built_in)]


def _store(study: Study, by, metric: TextMetric | PlugIn, by_output: Mapping[int, float]) -> Metric:
    described = MetricDescription(
        Metric.Kind.METRIC, metric.version(), metric.parameters, is_lower_better=metric.is_lower_better
    )
    source = Metric.Source.PLUG_IN if isinstance(metric, PlugIn) else Metric.Source.BUILT_IN
    return store_computed_scores(study, by, metric.name, described, by_output, source)


def _score_with_built_in(
    names: Sequence[str], outputs: Sequence[OutputToScore], progress: Report
) -> dict[str, dict[int, float]]:
    """Return the scores by metric and output."""
    found: dict[str, dict[int, float]] = {name: {} for name in names}
    size = REPORT_SLOW_EVERY if BUILT_IN[names[0]].is_slow else REPORT_EVERY
    chunks = [outputs[start : start + size] for start in range(0, len(outputs), size)]
    doing, started = f"Computing {', '.join(BUILT_IN[name].label for name in names)}", monotonic()
    n_done = 0
    progress(n_done, len(outputs), doing)
    try:
        with closing(score_chunks(names, [_by_prompt(chunk) for chunk in chunks])) as scored:
            for number, scores in scored:
                for name in names:
                    found[name].update(zip((output.pk for output in chunks[number]), scores[name], strict=True))
                n_done += len(chunks[number])
                left = time_left(monotonic() - started, n_done, len(outputs))
                progress(n_done, len(outputs), doing + (f" ({left})" if left else ""))
    except ScoreFailed as failed:
        raise _refusal(failed.metric, chunks[failed.chunk][failed.place], failed.message) from failed
    except ProcessEnded as error:
        raise jobs.UserFacingError(
            "A process that computes metrics ended early. Ask the operator whether the machine has enough memory, then compute again."
        ) from error
    return found


def _by_prompt(chunk: Sequence[OutputToScore]) -> list[TextsOfPrompt]:
    found: dict[str, TextsOfPrompt] = {}
    for output in chunk:
        own = found.setdefault(output.prompt, TextsOfPrompt(output.references, [], output.language))
        own.texts.append(output.text)
    return list(found.values())


def _score_with_plug_in(metric: PlugIn, outputs: Sequence[OutputToScore], progress: Report) -> dict[int, float]:
    """Return the scores by output. A plug-in runs in this process: it may hold a large model or a connection."""
    score, found = metric.load(), {}
    for position, output in enumerate(outputs):
        if position % REPORT_EVERY == 0:
            progress(position, len(outputs), f"Computing {metric.label}")
        try:
            value = float(score(output.text, output.references))
        except Exception as error:  # a plug-in may raise anything, and the researcher must learn where
            raise _refusal(metric.name, output, describe_error(error)) from error
        if not math.isfinite(value):
            raise _refusal(metric.name, output)
        found[output.pk] = value
    return found


def _refusal(metric: str, output: OutputToScore, error: str = "") -> jobs.UserFacingError:
    where = f"“{metric}” failed on the output of “{output.system[:40]}” for “{output.prompt[:40]}”"
    return jobs.UserFacingError(
        f"{where}: {error or 'its score is not a finite number. Repair the metric, then compute again.'}"
    )
