"""API views of the check of a judge: its state and result, its sample, and the job that computes."""

from typing import Any

from django.conf import settings
from django.urls import reverse
from rest_framework import serializers
from rest_framework.response import Response

from analysis.metrics.judge_check.binding import CheckState, find_state
from analysis.metrics.judge_check.drawing import draw_check, newest_check
from analysis.metrics.judge_check.forms import DrawForm
from analysis.metrics.judge_check.measuring import request_result
from analysis.metrics.judge_check.sentences import criterion_sentences, headline
from studies.access import Action

from . import serializers as shapes
from .analyses import accepted_job_response, idempotency_token
from .base import StudyView, document_operation, require_json_object
from .renderers import RowErrors, row_error

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
