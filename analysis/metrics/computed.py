"""Metrics that heval computes from the texts of a study, with maintained libraries, and plug-ins of the operator."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib import metadata
from time import monotonic
from typing import Any

from django.db.models import Avg, Count
from django.db.models.functions import Length

from analysis.models import Metric
from studies.access import Action, check_permission_or_404
from studies.design.serialization import canonical_json, sha256_of
from studies.models import Job, Output, Study, System
from studies.services import jobs
from studies.services.lifecycle import ActionRefused

from .store import MetricDescription, fingerprint, store_computed_scores
from .texts.built_in import BUILT_IN, TextMetric, is_unspaced
from .texts.processes import (
    CHARACTERS_PER_WORD,
    HIGH,
    ProcessEnded,
    ScoreFailed,
    TextsOfPrompt,
    describe_error,
    forecast,
    n_processors,
    score_chunks,
    seconds_per_output,
    time_left,
)

KIND = "compute_metrics"
# The script that people run on the file of texts, where metrics need models or a dictionary.
OTHER_METRICS = "other_metrics.py"
PLUG_INS = "heval.metrics"
NOT_INSTALLED = (
    "Automatic metrics need optional packages. Install them in heval's environment: "
    "pip install 'sacrebleu>=2.6,<2.7' 'rouge-score>=0.1.2,<0.2' 'rapidfuzz>=3.14,<4'"
)
# So many outputs are a part of the job: at most, with a slow metric until they take so many seconds, and with a plug-in, which may be slow.
OUTPUTS_OF_A_PART, SECONDS_OF_A_PART, PLUG_IN_OUTPUTS_OF_A_PART = 200, 2.0, 20

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
    references, sources, languages = reference_texts(study), set(reference_systems(study)), _reference_languages(study)
    rows = Output.objects.filter(system__in=study.systems.judged(), media="").order_by("prompt", "pk")
    values = rows.values_list("pk", "system_id", "system__name", "prompt_id", "prompt__key", "text", "prompt__language")
    for pk, system, system_name, prompt, key, text, language in values.iterator(chunk_size=2000):
        if system not in sources and prompt in references:
            yield OutputToScore(pk, system_name, key, text, references[prompt], languages.get(prompt) or language)


def _reference_languages(study: Study) -> dict[int, str]:
    """Return the language that references declare, by prompt id."""
    declared = Output.objects.filter(system__in=reference_systems(study), media="").exclude(language="")
    return dict(declared.order_by("prompt", "system", "sample").values_list("prompt_id", "language"))


def texts_beside_references(study: Study, system: str, texts: Mapping[str, tuple[int, str]]) -> list[OutputToScore]:
    """Return texts of a system that is not in the study, beside the study's references. ``texts``: an id and a text by the prompt's key."""
    references, languages = reference_texts(study), _reference_languages(study)
    prompts = study.prompts.filter(key__in=texts, pk__in=references).order_by("key")
    return [
        OutputToScore(texts[key][0], system, key, texts[key][1], references[pk], languages.get(pk) or language)
        for pk, key, language in prompts.values_list("pk", "key", "language")
    ]


def score_together(
    names: Sequence[str], outputs: Sequence[OutputToScore], progress: "Report", parts_of: jobs.PartsOf
) -> list[dict[str, Any]]:
    """Return what each metric says about all these outputs: of all together, as papers report it, or else the mean."""
    known, by_metric = available_metrics(), dict[str, dict[int, float]]()
    for together in _in_order(names, known):
        by_metric |= _score([known[name] for name in together], outputs, progress, parts_of)
    found = []
    for name in names:
        own = known[name]
        scores = [by_metric[name][output.pk] for output in outputs]
        if own.make_of_all is not None:
            score = own.make_of_all()([one.text for one in outputs], [one.references for one in outputs])
        else:
            score = own.points * math.fsum(scores) / len(scores)
        facts = {"name": name, "label": own.label, "version": own.version(), "is_lower_better": own.is_lower_better}
        found.append(facts | {"score": score, "n": len(scores)})
    return found


def texts_for_other_metrics(study: Study) -> Iterator[bytes]:
    """Yield each text of another system than the references as a JSON line, with what metrics outside of heval need."""
    references, languages = reference_texts(study), _reference_languages(study)
    rows = Output.objects.filter(system__in=study.systems.judged(), media="").exclude(
        system__in=reference_systems(study)
    )
    columns = ("system__name", "prompt__key", "sample", "text", "prompt", "prompt__text", "prompt__source")
    ordered = rows.order_by("system__name", "prompt__key", "sample").values_list(*columns, "prompt__language")
    for system, key, sample, text, prompt, asked, source, language in ordered.iterator(chunk_size=2000):
        line = {
            "system": system,
            "prompt": key,
            "sample": sample,
            "text": text,
            "source": source or asked,
            "language": languages.get(prompt) or language,
            "references": references.get(prompt, []),
        }
        yield (canonical_json(line) + "\n").encode()


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
AnyMetric = TextMetric | PlugIn


def compute_metrics(
    study: Study,
    by,
    names: Sequence[str],
    progress: Report = lambda done, total, doing="": None,
    parts_of: jobs.PartsOf = jobs.UnstoredParts,
    record_stored: Callable[[str], None] = lambda label: None,
) -> list[Metric]:
    """Compute and store the named metrics, slow ones after the others. A metric is stored for all outputs or not at all.

    If a metric fails on one output, the error names both. It and the metrics after it are not stored. ``parts_of`` may keep the scores
    of some outputs at a time, so that a repetition goes on after them. ``record_stored`` gets the label of each metric that is stored.
    """
    outputs = list(outputs_with_references(study))
    known = available_metrics()
    stored: dict[str, Metric] = {}
    for together in _in_order(names, known):
        found = _score([known[name] for name in together], outputs, progress, parts_of)
        for name in together:
            stored[name] = _store(study, by, known[name], found[name])
            record_stored(known[name].label)
    return [stored[name] for name in names]


def _in_order(names: Sequence[str], known: Mapping[str, AnyMetric]) -> list[list[str]]:
    """Return what is computed together: the fast built-in metrics, then each slow one, then each plug-in."""
    built_in = [name for name in names if isinstance(known[name], TextMetric)]
    slow = [name for name in built_in if BUILT_IN[name].is_slow]
    fast = [name for name in built_in if name not in slow]
    return [*([fast] if fast else []), *([name] for name in slow), *([name] for name in names if name not in built_in)]


def _store(study: Study, by, metric: AnyMetric, by_output: Mapping[int, float]) -> Metric:
    source = Metric.Source.PLUG_IN if isinstance(metric, PlugIn) else Metric.Source.BUILT_IN
    return store_computed_scores(study, by, metric.name, _describe(metric), by_output, source)


def _describe(metric: AnyMetric) -> MetricDescription:
    return MetricDescription(
        Metric.Kind.METRIC, metric.version(), metric.parameters, is_lower_better=metric.is_lower_better
    )


def _score(
    metrics: Sequence[AnyMetric], outputs: Sequence[OutputToScore], progress: Report, parts_of: jobs.PartsOf
) -> dict[str, dict[int, float]]:
    """Return the scores by metric and output. What is computed together is either built-in or one plug-in."""
    chunks = list(_chunks(metrics, outputs))
    identity = [fingerprint(Metric.Kind.METRIC, one.name, one.version(), one.parameters) for one in metrics]
    parts = parts_of([{"metrics": identity, "texts": _texts_sha256(chunk)} for chunk in chunks])
    missing = [position for position in range(len(chunks)) if position not in parts.results]
    n_missing = sum(len(chunks[position]) for position in missing)
    doing, started, n_new = f"Computing {', '.join(metric.label for metric in metrics)}", monotonic(), 0
    progress(len(outputs) - n_missing, len(outputs), doing)
    if missing:
        first, chunks_to_score = metrics[0], [chunks[position] for position in missing]
        scored = (
            _score_with_plug_in(first, chunks_to_score)
            if isinstance(first, PlugIn)
            else _score_with_built_in([metric.name for metric in metrics], chunks_to_score)
        )
        with closing(scored):
            for number, scores in scored:
                parts.store(missing[number], scores)
                n_new += len(chunks[missing[number]])
                left = time_left(monotonic() - started, n_new, n_missing)
                text = doing + (f" ({left})" if left else "")
                progress(len(outputs) - n_missing + n_new, len(outputs), text)
    found: dict[str, dict[int, float]] = {metric.name: {} for metric in metrics}
    for position, chunk in enumerate(chunks):
        for name, by_output in found.items():
            by_output.update(zip((output.pk for output in chunk), parts.results[position][name], strict=True))
    return found


def _chunks(metrics: Sequence[AnyMetric], outputs: Iterable[OutputToScore]) -> Iterator[list[OutputToScore]]:
    """Yield the outputs in groups that take some seconds at most. They depend on the texts only, not on the machine."""
    is_slow, is_plug_in = metrics[0].is_slow, isinstance(metrics[0], PlugIn)
    most = PLUG_IN_OUTPUTS_OF_A_PART if is_plug_in else OUTPUTS_OF_A_PART
    chunk: list[OutputToScore] = []
    seconds = 0.0
    for output in outputs:
        chunk.append(output)
        if is_slow:
            n_words = len(output.text) / (1 if is_unspaced(output.text) else CHARACTERS_PER_WORD)
            seconds += seconds_per_output(n_words, HIGH)
        if len(chunk) == most or seconds >= SECONDS_OF_A_PART:
            yield chunk
            chunk, seconds = [], 0.0
    if chunk:
        yield chunk


def _texts_sha256(chunk: Sequence[OutputToScore]) -> str:
    """Return the hash of what the scores of these outputs depend on. Texts of a draft may change before a job runs again."""
    texts = [[one.prompt, one.text, one.references, one.language] for one in chunk]
    return sha256_of(canonical_json({"outputs": texts}))


Scores = Generator[tuple[int, dict[str, list[float]]], None, None]


def _score_with_built_in(names: Sequence[str], chunks: Sequence[Sequence[OutputToScore]]) -> Scores:
    """Yield the number of each chunk with its scores by metric, in the order in which they are ready."""
    try:
        yield from score_chunks(names, [_by_prompt(chunk) for chunk in chunks])
    except ScoreFailed as failed:
        raise _refusal(failed.metric, chunks[failed.chunk][failed.place], failed.message) from failed
    except ProcessEnded as error:
        raise jobs.UserFacingError(
            "A process that computes metrics ended early. Ask the operator whether the machine has enough memory, then compute again."
        ) from error


def _by_prompt(chunk: Sequence[OutputToScore]) -> list[TextsOfPrompt]:
    found: dict[str, TextsOfPrompt] = {}
    for output in chunk:
        own = found.setdefault(output.prompt, TextsOfPrompt(output.references, [], output.language))
        own.texts.append(output.text)
    return list(found.values())


def _score_with_plug_in(metric: PlugIn, chunks: Sequence[Sequence[OutputToScore]]) -> Scores:
    """Yield the number of each chunk with its scores. A plug-in runs in this process: it may hold a large model or a connection."""
    score = metric.load()
    for number, chunk in enumerate(chunks):
        yield number, {metric.name: [_score_of_plug_in(metric.name, score, output) for output in chunk]}


def _score_of_plug_in(name: str, score: ScoreText, output: OutputToScore) -> float:
    try:
        value = float(score(output.text, output.references))
    except Exception as error:  # a plug-in may raise anything, and the researcher must learn where
        raise _refusal(name, output, describe_error(error)) from error
    if not math.isfinite(value):
        raise _refusal(name, output)
    return value


def _refusal(metric: str, output: OutputToScore, error: str = "") -> jobs.UserFacingError:
    where = f"“{metric}” failed on the output of “{output.system[:40]}” for “{output.prompt[:40]}”"
    return jobs.UserFacingError(
        f"{where}: {error or 'its score is not a finite number. Repair the metric, then compute again.'}"
    )
