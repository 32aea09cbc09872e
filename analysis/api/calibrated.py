"""API view of combined numbers of people and judges."""

from typing import Any

from rest_framework import serializers
from rest_framework.response import Response

from analysis.metrics.calibrated.options import CHOSEN, RANDOM, UNKNOWN, CalibrationForm
from analysis.metrics.calibrated.run import LatestResult, latest_results, request_calibration
from analysis.metrics.scoring.rows import describe_scores
from studies.access import Action

from . import serializers as shapes
from .analyses import accepted_job_response, idempotency_token
from .base import StudyView, document_operation, require_json_object
from .renderers import RowErrors, row_error


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
