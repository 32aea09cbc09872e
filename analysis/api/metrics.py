"""API views of a study's metrics and judges, and of how they agree with people."""

from dataclasses import fields
from typing import Any

from django.conf import settings
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.generics import ListAPIView, RetrieveAPIView

from analysis.data.blinding import check_outcomes_visible
from analysis.metrics import comparison, computed
from analysis.metrics.calibrated.options import CHOSEN, RANDOM, UNKNOWN, CalibrationForm
from analysis.metrics.calibrated.run import latest_results, request_calibration
from analysis.metrics.dataset import script
from analysis.metrics.files import MAX_FILE_BYTES, ScoresFileSettings
from analysis.metrics.judge_check.measuring import CheckState, draw_check, find_state, newest_check, request_result
from analysis.metrics.judge_check.views import DrawForm, criterion_sentences, headline, sample_sentence
from analysis.metrics.scoring import describe_scores
from analysis.metrics.store import MetricDescription, discard, upload_scores
from analysis.models import Metric
from annotators.counting import counted_origins
from studies.access import Action, may_read_draw
from studies.models import Job

from .base import MEDIA_TYPES, JobMixin, PostMixin, StudyView, UploadMixin, download_response
from .renderers import RowErrors, row_error
from .serializers import (
    CleanTextField,
    FiniteField,
    ListedField,
    ListField,
    NameField,
    ObjectField,
    StrictBooleanField,
    StrictMixin,
)
from .uploads import require_json_object


class TextsForMetricsView(StudyView):
    """Each text with its prompt and references, for metrics that need a model or a dictionary."""

    tag = "metrics"
    summaries = {"GET": "The texts beside their references as JSON lines"}
    media_type, response_type = "application/x-ndjson", OpenApiTypes.STR
    throttle_scope = "export"

    def get(self, request, code):
        return download_response(computed.texts_for_other_metrics(self.study), "texts.jsonl", MEDIA_TYPES["jsonl"])


class OtherMetricsScriptView(StudyView):
    """A script that scores these texts by METEOR, BERTScore, BLEURT or COMET, on another machine than heval's."""

    tag = "metrics"
    summaries = {"GET": "The script for metrics that need a model or a dictionary"}
    media_type, response_type = "text/plain", OpenApiTypes.STR

    def get(self, request, code):
        return download_response([script(computed.OTHER_METRICS)], computed.OTHER_METRICS, "text/plain; charset=utf-8")


class MetricSerializer(serializers.ModelSerializer):
    question = serializers.CharField(source="question.key", allow_null=True, default=None)
    id = serializers.IntegerField(help_text="Number of the metric, for “discard”.")

    class Meta:
        model = Metric
        fields = (
            "id", "kind", "name", "version", "question", "parameters", "family", "fingerprint", "is_lower_better", "scale_low", "scale_high",
            "source", "file_sha256", "n_scores", "at", "discarded_at",
        )  # fmt: skip


class ScoresFieldsSerializer(StrictMixin, serializers.Serializer):
    """What a file of scores says about its metrics or judges."""

    kind = ListedField(Metric.Kind.choices, default=Metric.Kind.METRIC)
    version = NameField(max_length=200)
    question = CleanTextField(
        required=False, default="", allow_blank=True, help_text="Key of the question that all scores are about."
    )
    columns = ListField(
        child=CleanTextField(),
        required=False,
        default=list,
        help_text="What columns with other names than heval's are, such as “prompt_key=id”; and the columns with scores, such as “value=bleu”. "
        "Default: every column that is not one of the names has scores.",
    )
    proposes_columns = StrictBooleanField(
        default=False, help_text="true: read columns that only their contents show as heval proposes."
    )
    parameters = ObjectField(required=False, default=dict, help_text="Prompt, model and other settings.")
    family = CleanTextField(required=False, default="", allow_blank=True, max_length=100)
    is_lower_better = StrictBooleanField(default=False)
    scale_low = FiniteField(required=False, allow_null=True, default=None)
    scale_high = FiniteField(required=False, allow_null=True, default=None)
    is_partial = StrictBooleanField(default=False, help_text="true: the file leaves out outputs.")


class ScoresRequestSerializer(ScoresFieldsSerializer):
    """Scores as JSON."""

    scores = ListField(
        child=ObjectField(),
        help_text="A row for each output: system, prompt, optionally sample, question and run, and a field for each metric.",
    )


class ScoresFormSerializer(serializers.Serializer):
    """Scores as a form with a file."""

    file = serializers.FileField(help_text="CSV or JSON lines.")
    settings = serializers.CharField(help_text="The other fields of the request, as one JSON object.")


class StoredMetricsSerializer(serializers.Serializer):
    metrics = MetricSerializer(many=True)


class ComputeRequestSerializer(StrictMixin, serializers.Serializer):
    names = ListField(child=CleanTextField(), help_text="Names of built-in metrics or plug-ins.")


class MetricsComparisonSerializer(serializers.Serializer):
    question = serializers.CharField(source="question.key")
    at = serializers.DateTimeField()
    n_answers = serializers.IntegerField()
    result = serializers.DictField()


class MetricsComparisonsSerializer(serializers.Serializer):
    is_stale = serializers.BooleanField(help_text="true: answers or metrics changed after these were computed.")
    results = MetricsComparisonSerializer(many=True)


class MetricView(StudyView):
    tag = "metrics"
    write_action = Action.ANALYSE
    queryset = Metric.objects.select_related("question")
    lookup_url_kwarg = "metric"
    serializer_class = MetricSerializer


class MetricsView(UploadMixin, PostMixin, MetricView, ListAPIView):
    """The metrics and judges of a study, discarded ones too. POST stores a file of scores, all or nothing."""

    summaries = {
        "GET": "Metrics and judges",
        "POST": "Store scores; a repeated request returns the stored metrics",
    }
    body_serializer_class = ScoresFieldsSerializer
    documented_body = {"application/json": ScoresRequestSerializer, "multipart/form-data": ScoresFormSerializer}
    result_serializer_class = StoredMetricsSerializer
    success_status = 201
    rows_field, row_unit, max_file_bytes = "scores", "output", MAX_FILE_BYTES

    def perform(self, filename: str, data: bytes, **sent: Any) -> dict[str, Any]:
        sent["columns"] = tuple(sent["columns"])
        settings, description = _part(ScoresFileSettings, sent), _part(MetricDescription, sent)
        return {"metrics": upload_scores(self.study, self.request.user, filename, data, settings, description)}


def _part(shape: type[Any], sent: dict[str, Any]) -> Any:
    return shape(**{field.name: sent[field.name] for field in fields(shape)})


class ComputeMetricsView(JobMixin, StudyView):
    """Compute built-in metrics and plug-ins of the study's outputs."""

    tag = "metrics"
    write_action = Action.ANALYSE
    summaries = {"POST": "Compute metrics; returns the job to poll"}
    body_serializer_class = ComputeRequestSerializer
    job_kind = computed.KIND

    def start_job(self, token: str | None, names: list[str]) -> Job:
        return computed.request_metrics(self.study, self.request.user, names, token)


class DiscardMetricView(PostMixin, MetricView):
    """Leave a metric out of all pages and comparisons from now on. Its scores are kept."""

    summaries = {"POST": "Discard a metric"}

    def perform(self) -> Metric:
        discard(self.get_object(), self.request.user)
        return self.get_object()


class MetricsComparisonView(JobMixin, StudyView, RetrieveAPIView):
    """How metrics and judges agree with people, as last computed. POST computes it again."""

    tag = "metrics"
    write_action = Action.ANALYSE
    summaries = {
        "GET": "Agreement of metrics with people",
        "POST": "Compare metrics with people; returns the job to poll",
    }
    serializer_class = MetricsComparisonsSerializer
    job_kind = comparison.KIND

    def get_object(self) -> dict[str, Any]:
        check_outcomes_visible(self.study, counted_origins(self.study))
        stored = comparison.latest_comparisons(self.study)
        return {"is_stale": comparison.is_stale(self.study, stored), "results": stored}

    def start_job(self, token: str | None) -> Job:
        return comparison.request_comparison(self.study, self.request.user, token)


# API view of combined numbers of people and judges.


class MeaningField(serializers.CharField):
    def to_representation(self, question):
        return describe_scores(question)


class CalibratedResultSerializer(serializers.Serializer):
    question = serializers.CharField(source="question.key", help_text="Key of the question.")
    section = serializers.IntegerField(source="question.section.position", help_text="Position of its section.")
    meaning = MeaningField(source="question", help_text="What a score means. Empty: it is the answer as given.")
    at = serializers.DateTimeField(source="stored.at", help_text="When it was computed.")
    is_stale = serializers.BooleanField(help_text="Answers or scores changed since.")
    judges = serializers.ListField(
        source="stored.judges",
        child=serializers.CharField(),
        help_text="Fingerprints of the combined metrics and judges.",
    )
    options = serializers.DictField(
        source="stored.options", help_text="What the request said about the sample and the plan."
    )
    result = serializers.DictField(
        source="stored.result",
        help_text="`systems` and `pairs` have the number of people (`human`), the combined one, and what judges save. "
        "Values are from 0 to 1. An undefined number is null, with a `reason`.",
    )


class CalibratedResultsSerializer(serializers.Serializer):
    results = CalibratedResultSerializer(many=True)


class CalibrationRequestSerializer(serializers.Serializer):
    sample = serializers.ChoiceField(
        choices=(RANDOM, CHOSEN, UNKNOWN), help_text="How the outputs that people judged were selected."
    )
    are_people_known = serializers.BooleanField(default=True, help_text="Whether the answers say who gave them.")
    metrics = serializers.ListField(
        child=serializers.IntegerField(),
        default=list,
        help_text="Ids of the metrics and judges to combine. Empty: all judges, or all metrics if there is no judge.",
    )
    widths = serializers.ListField(
        child=serializers.FloatField(), default=list, help_text="Wanted widths of an interval, in points of 100."
    )
    n_outputs = serializers.IntegerField(
        required=False, allow_null=True, help_text="Outputs of each system that judges will score."
    )


class CalibratedView(JobMixin, StudyView, RetrieveAPIView):
    """The newest combined numbers of each question. POST computes them again with all answers and scores stored now."""

    tag = "analyses"
    write_action = Action.ANALYSE
    summaries = {
        "GET": "Numbers of people and judges",
        "POST": "Combine people and judges, and plan answers; returns the job to poll",
    }
    serializer_class = CalibratedResultsSerializer
    body_serializer_class = CalibrationRequestSerializer
    job_kind = "calibrate"

    def get_object(self) -> dict[str, Any]:
        return {"results": [row for row in latest_results(self.study) if row.stored]}

    def start_job(self, token: str | None, **sent: Any) -> Job:
        sent["widths"] = " ".join(f"{width:g}" for width in sent["widths"])
        form = CalibrationForm(self.study, sent)
        if not form.is_valid():
            raise RowErrors(
                [row_error(None, field, str(error)) for field, errors in form.errors.items() for error in errors]
            )
        return request_calibration(self.study, self.request.user, form.options(), token)


# API views of the check of a judge: its state and result, its sample, and the job that computes.


STATES = ("good", "not_good", "stale", "open")


class CriterionSerializer(serializers.Serializer):
    name = serializers.CharField()
    minimum = serializers.FloatField(help_text="Declared before the launch.")
    estimate = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True, help_text="Lower end of the 95 % interval.")
    high = serializers.FloatField(allow_null=True)
    is_met = serializers.BooleanField(allow_null=True, help_text="Null if it is undefined; then reason says why.")
    reason = serializers.CharField(allow_blank=True)


class JudgeCheckSerializer(serializers.Serializer):
    state = serializers.ChoiceField(
        choices=STATES, help_text="Whether the judge is good enough. Stale: something changed."
    )
    reason = serializers.CharField(allow_blank=True, help_text="Why the state is stale or open.")
    headline = serializers.CharField()
    judge = serializers.CharField(allow_null=True)
    version = serializers.CharField(allow_null=True, help_text="The newest version in use.")
    fingerprint = serializers.CharField(allow_null=True, help_text="Of the version that the result is about.")
    guideline_sha256 = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)
    n_verdicts = serializers.IntegerField(help_text="Verdicts of people about the test part.")
    n_outputs = serializers.IntegerField()
    n_people = serializers.IntegerField()
    sample = serializers.CharField(allow_blank=True, help_text="Which outputs were drawn, when, and from which.")
    seed = serializers.IntegerField(allow_null=True, help_text="Of the draw. Null for those who may not read it yet.")
    criteria = CriterionSerializer(many=True)
    sentences = serializers.ListField(child=serializers.CharField())
    badge = serializers.URLField(allow_null=True)
    result = serializers.JSONField(allow_null=True, help_text="All numbers, with units and reasons.")


class JudgeSampleRequestSerializer(serializers.Serializer):
    judge = serializers.IntegerField(help_text="The id of the judge.")
    question = serializers.CharField(help_text="The key of the question that people answer with no or yes.")
    threshold = serializers.FloatField(required=False)
    n_test = serializers.IntegerField(help_text="Outputs that decide.")
    n_development = serializers.IntegerField(required=False, default=0, help_text="Outputs for changing the judge.")
    people_per_output = serializers.IntegerField(
        required=False,
        default=3,
        help_text="In a draft: how many people judge each output. In a launched study: how many have at least judged it.",
    )
    certainty_ratio = serializers.FloatField(required=False, default=1, help_text="1: equal probabilities.")
    min_agreement = serializers.FloatField(required=False)
    min_true_positive_rate = serializers.FloatField(required=False)
    min_true_negative_rate = serializers.FloatField(required=False)
    needs_alternative_test = serializers.BooleanField(required=False, default=False)
    epsilon = serializers.FloatField(required=False, default=0.1)
    seed = serializers.IntegerField(required=False)


DEFAULTS = {"n_development": 0, "people_per_output": 3, "certainty_ratio": 1, "epsilon": 0.1}


def _state_json(found: CheckState, user) -> dict[str, Any]:
    result = found.result.result if found.result else {}
    check = found.check
    return {
        "state": found.state,
        "reason": found.reason,
        "headline": headline(found),
        "judge": check.judge.name if check else None,
        "version": found.judge.version if found.judge else None,
        "fingerprint": found.result.fingerprint if found.result else None,
        "guideline_sha256": found.result.guideline_sha256 if found.result else None,
        "at": found.at,
        "n_verdicts": found.result.n_labels if found.result else 0,
        "n_outputs": result.get("n_outputs", 0),
        "n_people": result.get("n_people", 0),
        "sample": sample_sentence(found),
        "seed": check.seed if check and may_read_draw(user, check.study) else None,
        "criteria": result.get("criteria", []),
        "sentences": criterion_sentences(result) if result else [],
        "badge": settings.SITE_URL + reverse("judge_badge", args=[check.badge_key]) if check else None,
        "result": result or None,
    }


class JudgeCheckView(JobMixin, StudyView, RetrieveAPIView):
    """Whether the study's judge is good enough. POST compares people with the newest version of the judge."""

    tag = "metrics"
    write_action = Action.ANALYSE
    summaries = {
        "GET": "Whether the judge is good enough",
        "POST": "Compare people and the judge; returns the job to poll",
    }
    serializer_class = JudgeCheckSerializer
    job_kind = "judge"

    def get_object(self) -> dict[str, Any]:
        return _state_json(find_state(newest_check(self.study)), self.request.user)

    def start_job(self, token: str | None) -> Job:
        return request_result(self.study, self.request.user, token)


class JudgeSampleView(StudyView):
    """Draw the sample of outputs: in a draft those that people will judge, in a launched study some of those that they have judged."""

    tag = "metrics"
    summaries = {"POST": "Draw the sample of a check"}
    serializer_class = JudgeCheckSerializer
    documented_body = JudgeSampleRequestSerializer
    success_status = 201

    def post(self, request, code):
        sent = require_json_object(request)
        if unknown := sorted(set(sent) - set(DrawForm.base_fields)):
            raise RowErrors([row_error(None, name, "There is no such field. Leave it out.") for name in unknown])
        form = DrawForm(self.study, DEFAULTS | sent)
        if not form.is_valid():
            raise RowErrors([row_error(None, name, str(texts[0])) for name, texts in form.errors.items()])
        check = draw_check(self.study, request.user, form.settings())
        return self.answer(_state_json(find_state(check), request.user))
