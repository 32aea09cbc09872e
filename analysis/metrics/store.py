"""Store scores: a file or a computation becomes whole versions of metrics, or nothing."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now

from analysis.models import Metric, MetricScore, PairScore
from studies.access import Action, check_permission_or_404
from studies.design.serialization import canonical_json
from studies.models import Study, audit
from studies.services.lifecycle import ActionRefused

from .files import ColumnScores, ScoresFileSettings, read_scores_file


@dataclass(frozen=True, slots=True)
class MetricDescription:
    """What a person or a program says about a metric or judge, apart from its name and scores."""

    kind: str
    version: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    is_lower_better: bool = False
    scale_low: float | None = None
    scale_high: float | None = None


def fingerprint(kind: str, name: str, version: str, parameters: Mapping[str, Any]) -> str:
    """Return the hash of everything that the scores of a metric or judge depend on."""
    content = {"kind": kind, "name": name, "version": version, "parameters": dict(parameters)}
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def upload_scores(
    study: Study, by, filename: str, data: bytes, chosen: ScoresFileSettings, described: MetricDescription
) -> list[Metric]:
    """Store the columns of a file as metrics or judges. A file that is sent again returns what the first one stored.

    Raise ScoresRefused with the problems of the file, and ValidationError with those of the description.
    """
    check_permission_or_404(by, Action.ANALYSE, study)
    read = read_scores_file(study, filename, data, chosen)
    with transaction.atomic():
        _lock(study)
        stored = [
            _store(study, by, scores.column, scores, described, source=Metric.Source.UPLOAD, file_sha256=read.sha256)
            for scores in read.columns
        ]
        new = [metric for metric, is_new in stored if is_new]
        if new:
            names = [str(metric) for metric in new]
            audit.record_study_event("upload scores", study, by=by, metrics=names, sha256=read.sha256)
    return [metric for metric, _ in stored]


def store_computed_scores(
    study: Study, by, name: str, described: MetricDescription, by_output: Mapping[int, float], source: str
) -> Metric:
    """Store what a built-in metric or a plug-in computed for the outputs of a study."""
    scores = ColumnScores(name, None, by_output={(output, 1): value for output, value in by_output.items()})
    with transaction.atomic():
        _lock(study)
        metric, is_new = _store(study, by, name, scores, described, source=source, file_sha256=_scores_sha256(scores))
        if is_new:
            audit.record_study_event("compute scores", study, by=by, metrics=[str(metric)])
    return metric


def discard(metric: Metric, by) -> bool:
    """Leave a metric out of all pages from now on. Its scores are kept. Return whether it was in use."""
    check_permission_or_404(by, Action.ANALYSE, metric.study)
    with transaction.atomic():
        if not Metric.objects.filter(pk=metric.pk, discarded_at=None).update(discarded_at=Now()):
            return False
        audit.record_study_event(
            "discard metric", metric.study, by=by, metric=str(metric), fingerprint=metric.fingerprint
        )
    return True


def metrics_in_use(study: Study):
    """Return the metrics and judges of a study that nobody discarded."""
    return Metric.objects.filter(study=study, discarded_at=None).select_related("question")


def _lock(study: Study) -> None:
    # One writer of a study's metrics at a time, so that a file that is sent twice is stored once.
    Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)


def _store(
    study: Study,
    by,
    name: str,
    scores: ColumnScores,
    described: MetricDescription,
    *,
    source: str,
    file_sha256: str,
) -> tuple[Metric, bool]:
    metric = Metric(
        study=study,
        name=name,
        question=scores.question,
        fingerprint=fingerprint(described.kind, name, described.version, described.parameters),
        source=source,
        file_sha256=file_sha256,
        n_scores=len(scores),
        by=by,
        **asdict(described),
    )
    same = metrics_in_use(study).filter(name=name, version=described.version, question=scores.question).first()
    if same is not None:
        if (same.file_sha256, same.fingerprint) == (file_sha256, metric.fingerprint):
            return same, False
        raise ActionRefused(
            f"“{name[:60]}” already has scores of version “{described.version[:60]}”. Give the new scores another version, or discard the old ones."
        )
    # The constraints in words; the unique ones were checked above under the lock.
    metric.full_clean(validate_constraints=False)
    if (metric.scale_low is None) != (metric.scale_high is None):
        raise ValidationError({"scale_low": "Enter both ends of the scale, or neither."})
    if metric.scale_low is not None and metric.scale_high is not None and metric.scale_low >= metric.scale_high:
        raise ValidationError({"scale_high": "The highest point must be above the lowest point."})
    metric.save(force_insert=True)
    MetricScore.objects.bulk_create(_output_rows(metric, scores), batch_size=2000)
    PairScore.objects.bulk_create(_pair_rows(metric, scores), batch_size=2000)
    return metric, True


def _output_rows(metric: Metric, scores: ColumnScores) -> Iterable[MetricScore]:
    for (output, run), value in scores.by_output.items():
        yield MetricScore(metric=metric, output_id=output, run=run, value=value)


def _pair_rows(metric: Metric, scores: ColumnScores) -> Iterable[PairScore]:
    for (first, second, run), value in scores.by_pair.items():
        yield PairScore(metric=metric, first_id=first, second_id=second, run=run, value=value)


def _scores_sha256(scores: ColumnScores) -> str:
    content = {"scores": [[output, run, value] for (output, run), value in sorted(scores.by_output.items())]}
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()
