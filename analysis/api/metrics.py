"""API views of a study's metrics and judges, and of how they agree with people."""

from dataclasses import fields
from typing import Any

from django.http import Http404
from rest_framework import serializers
from rest_framework.response import Response

from analysis.data.blinding import check_outcomes_visible
from analysis.metrics import comparison, computed
from analysis.metrics.files import MAX_FILE_BYTES, ScoresFileSettings, ScoresRefused
from analysis.metrics.store import MetricDescription, discard, upload_scores
from analysis.models import Metric
from annotators.counting import counted_origins
from studies.access import Action

from . import serializers as shapes
from .analyses import accepted_job_response, idempotency_token
from .base import StudyView, document_operation, page_serializer, require_json_object
from .fields import (
    CleanTextField,
    FiniteField,
    ListedField,
    ListField,
    NameField,
    ObjectField,
    StrictBooleanField,
    StrictMixin,
)
from .parsers import StrictMultiPartParser
from .query import page_parameters
from .renderers import RowErrors, StrictJSONParser
from .uploads import read_upload, row_errors

TAG = "metrics"


class MetricSerializer(serializers.ModelSerializer):
    question = serializers.CharField(source="question.key", allow_null=True, default=None)
    id = serializers.IntegerField(help_text="Number of the metric, for “discard”.")

    class Meta:
        model = Metric
        fields = (
            "id",
            "kind",
            "name",
            "version",
            "question",
            "parameters",
            "family",
            "fingerprint",
            "is_lower_better",
            "scale_low",
            "scale_high",
            "source",
            "file_sha256",
            "n_scores",
            "at",
            "discarded_at",
        )  # fmt: skip - one list of names


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
        help_text="The columns with scores. Default: every column that is not one of the names.",
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
    question = serializers.CharField()
    at = serializers.DateTimeField()
    n_answers = serializers.IntegerField()
    result = serializers.DictField()


class MetricsComparisonsSerializer(serializers.Serializer):
    is_stale = serializers.BooleanField(help_text="true: answers or metrics changed after these were computed.")
    results = MetricsComparisonSerializer(many=True)


class MetricsView(StudyView):
    """The metrics and judges of a study, discarded ones too. POST stores a file of scores, all or nothing."""

    write_action = Action.ANALYSE
    parser_classes = (StrictJSONParser, StrictMultiPartParser)
    # A form has a few short fields beside its file.
    max_form_bytes = MAX_FILE_BYTES + 2**20
    parameters = page_parameters()

    @document_operation(
        "Metrics and judges", page_serializer("Metric", MetricSerializer), parameters=parameters, tag=TAG
    )
    def get(self, request, code):
        return self.paginated_response(
            Metric.objects.filter(study=self.study).select_related("question"), MetricSerializer
        )

    @document_operation(
        "Store scores; a repeated request returns the stored metrics",
        StoredMetricsSerializer,
        request={"application/json": ScoresRequestSerializer, "multipart/form-data": ScoresFormSerializer},
        status=201,
        tag=TAG,
    )
    def post(self, request, code):
        body, filename, data = read_upload(request, "scores", "output", MAX_FILE_BYTES)
        serializer = ScoresFieldsSerializer(data=body)
        serializer.is_valid(raise_exception=True)
        sent = {**serializer.validated_data, "columns": tuple(serializer.validated_data["columns"])}
        try:
            stored = upload_scores(
                self.study,
                request.user,
                filename,
                data,
                _part(ScoresFileSettings, sent),
                _part(MetricDescription, sent),
            )
        except ScoresRefused as refused:
            raise RowErrors(row_errors(refused.problems)) from None
        return Response({"metrics": MetricSerializer(stored, many=True).data}, status=201)


def _part(shape: type[Any], sent: dict[str, Any]) -> Any:
    return shape(**{field.name: sent[field.name] for field in fields(shape)})


class ComputeMetricsView(StudyView):
    """Compute built-in metrics and plug-ins of the study's outputs."""

    write_action = Action.ANALYSE

    @document_operation(
        "Compute metrics; returns the job to poll",
        shapes.JobSerializer,
        request=ComputeRequestSerializer,
        status=202,
        tag=TAG,
    )
    def post(self, request, code):
        serializer = ComputeRequestSerializer(data=require_json_object(request))
        serializer.is_valid(raise_exception=True)
        token = idempotency_token(request, self.study, computed.KIND)
        return accepted_job_response(
            computed.request_metrics(self.study, request.user, serializer.validated_data["names"], token)
        )


class DiscardMetricView(StudyView):
    """Leave a metric out of all pages and comparisons from now on. Its scores are kept."""

    write_action = Action.ANALYSE

    @document_operation("Discard a metric", MetricSerializer, request={}, tag=TAG)
    def post(self, request, code, metric):
        found = Metric.objects.filter(study=self.study, pk=metric).first()
        if found is None:
            raise Http404
        discard(found, request.user)
        return Response(MetricSerializer(Metric.objects.select_related("question").get(pk=metric)).data)


class MetricsComparisonView(StudyView):
    """How metrics and judges agree with people, as last computed. POST computes it again."""

    write_action = Action.ANALYSE

    @document_operation("Agreement of metrics with people", MetricsComparisonsSerializer, tag=TAG)
    def get(self, request, code):
        check_outcomes_visible(self.study, counted_origins(self.study))
        stored = comparison.latest_comparisons(self.study)
        results = [
            {"question": row.question.key, "at": row.at, "n_answers": row.n_answers, "result": row.result}
            for row in stored
        ]
        return Response({"is_stale": comparison.is_stale(self.study, stored), "results": results})

    @document_operation(
        "Compare metrics with people; returns the job to poll",
        shapes.JobSerializer,
        request={},
        status=202,
        tag=TAG,
    )
    def post(self, request, code):
        token = idempotency_token(request, self.study, comparison.KIND)
        return accepted_job_response(comparison.request_comparison(self.study, request.user, token))
