"""API views of a study's metrics and judges, and of how they agree with people."""

from dataclasses import fields
from typing import Any

from django.conf import settings
from django.http import Http404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.response import Response

from analysis.data.blinding import check_outcomes_visible
from analysis.metrics import comparison, computed
from analysis.metrics.calibrated.options import CHOSEN, RANDOM, UNKNOWN, CalibrationForm
from analysis.metrics.calibrated.run import LatestResult, latest_results, request_calibration
from analysis.metrics.files import MAX_FILE_BYTES, ScoresFileSettings, ScoresRefused
from analysis.metrics.judge_check.measuring import CheckState, draw_check, find_state, newest_check, request_result
from analysis.metrics.judge_check.views import DrawForm, criterion_sentences, headline
from analysis.metrics.scoring import describe_scores
from analysis.metrics.store import MetricDescription, discard, upload_scores
from analysis.models import Metric
from annotators.counting import counted_origins
from studies.access import Action

from . import serializers as shapes
from .base import (
    StrictMultiPartParser,
    StudyView,
    document_operation,
    page_serializer,
    read_upload,
    require_json_object,
    row_errors,
)
from .exports import accepted_job_response, idempotency_token
from .query import page_parameters
from .renderers import RowErrors, StrictJSONParser, row_error
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


# API view of combined numbers of people and judges.


class CalibratedResultSerializer(serializers.Serializer):
    question = serializers.CharField(help_text="Key of the question.")
    section = serializers.IntegerField(help_text="Position of its section.")
    meaning = serializers.CharField(help_text="What a score means. Empty: it is the answer as given.")
    at = serializers.DateTimeField(help_text="When it was computed.")
    is_stale = serializers.BooleanField(help_text="Answers or scores changed since.")
    judges = serializers.ListField(
        child=serializers.CharField(), help_text="Fingerprints of the combined metrics and judges."
    )
    options = serializers.DictField(help_text="What the request said about the sample and the plan.")
    result = serializers.DictField(
        help_text="`systems` and `pairs` have the number of people (`human`), the combined one, and what judges save. "
        "Values are from 0 to 1. An undefined number is null, with a `reason`."
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


class CalibratedView(StudyView):
    """The newest combined numbers of each question. POST computes them again with all answers and scores stored now."""

    write_action = Action.ANALYSE

    @document_operation("Numbers of people and judges", CalibratedResultsSerializer, tag="analyses")
    def get(self, request, code):
        return Response({"results": [_shown(row) for row in latest_results(self.study) if row.stored]})

    @document_operation(
        "Combine people and judges, and plan answers; returns the job to poll",
        shapes.JobSerializer,
        request=CalibrationRequestSerializer,
        status=202,
        tag="analyses",
    )
    def post(self, request, code):
        sent = CalibrationRequestSerializer(data=require_json_object(request))
        sent.is_valid(raise_exception=True)
        values = sent.validated_data
        form = CalibrationForm(self.study, values | {"widths": " ".join(f"{width:g}" for width in values["widths"])})
        if not form.is_valid():
            raise RowErrors(
                [row_error(None, field, str(error)) for field, errors in form.errors.items() for error in errors]
            )
        token = idempotency_token(request, self.study, "calibrate")
        return accepted_job_response(request_calibration(self.study, request.user, form.options(), token))


def _shown(latest: LatestResult) -> dict[str, Any]:
    question, stored = latest.question, latest.stored
    return CalibratedResultSerializer(
        {
            "question": question.key,
            "section": question.section.position,
            "meaning": describe_scores(question),
            "is_stale": latest.is_stale,
            **{name: getattr(stored, name) for name in ("at", "judges", "options", "result")},
        }
    ).data


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
    people_per_output = serializers.IntegerField(required=False, default=3)
    certainty_ratio = serializers.FloatField(required=False, default=1, help_text="1: equal probabilities.")
    min_agreement = serializers.FloatField(required=False)
    min_true_positive_rate = serializers.FloatField(required=False)
    min_true_negative_rate = serializers.FloatField(required=False)
    needs_alternative_test = serializers.BooleanField(required=False, default=False)
    epsilon = serializers.FloatField(required=False, default=0.1)
    seed = serializers.IntegerField(required=False)


DEFAULTS = {"n_development": 0, "people_per_output": 3, "certainty_ratio": 1, "epsilon": 0.1}


def _state_json(found: CheckState) -> dict[str, Any]:
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
        "criteria": result.get("criteria", []),
        "sentences": criterion_sentences(result) if result else [],
        "badge": settings.SITE_URL + reverse("judge_badge", args=[check.badge_key]) if check else None,
        "result": result or None,
    }


class JudgeCheckView(StudyView):
    """Whether the study's judge is good enough. POST compares people with the newest version of the judge."""

    write_action = Action.ANALYSE

    @document_operation("Whether the judge is good enough", JudgeCheckSerializer, tag="metrics")
    def get(self, request, code):
        return Response(JudgeCheckSerializer(_state_json(find_state(newest_check(self.study)))).data)

    @document_operation(
        "Compare people and the judge; returns the job to poll",
        shapes.JobSerializer,
        request=serializers.Serializer,
        status=202,
        tag="metrics",
    )
    def post(self, request, code):
        return accepted_job_response(
            request_result(self.study, request.user, idempotency_token(request, self.study, "judge"))
        )


class JudgeSampleView(StudyView):
    """Draw the sample of outputs that people judge, while the study is a draft."""

    http_method_names = ["post", "options"]

    @document_operation(
        "Draw the sample of a check",
        JudgeCheckSerializer,
        request=JudgeSampleRequestSerializer,
        status=201,
        tag="metrics",
    )
    def post(self, request, code):
        sent = require_json_object(request)
        if unknown := sorted(set(sent) - set(DrawForm.base_fields)):
            raise RowErrors([row_error(None, name, "There is no such field. Leave it out.") for name in unknown])
        form = DrawForm(self.study, DEFAULTS | sent)
        if not form.is_valid():
            raise RowErrors([row_error(None, name, str(texts[0])) for name, texts in form.errors.items()])
        check = draw_check(self.study, request.user, form.settings())
        return Response(JudgeCheckSerializer(_state_json(find_state(check))).data, status=201)
