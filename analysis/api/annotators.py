"""API view of the annotators of a study, as the last screening describes them."""

from typing import Any

from django.http import Http404
from rest_framework import serializers
from rest_framework.response import Response

from analysis.api.permissions import get_api_token
from analysis.report.build import default_origins
from analysis.report.screening.run import AnnotatorRow, add_other_studies, get_annotator_or_404, read_screened_study
from annotators.models import Annotator, Barring
from annotators.places.barrings import bar_annotator, lift_barring
from studies.access import Action

from . import serializers as shapes
from .base import StudyView, document_operation, page_serializer, require_json_object
from .query import Parameter, choice_parser, page_parameters, page_response

ORIGINS = ("live", "imported", "robot")


class TestQuestionCountsSerializer(serializers.Serializer):
    right = serializers.IntegerField()
    counted = serializers.IntegerField()
    posterior = serializers.FloatField(
        allow_null=True, help_text="Probability of being inattentive, from this type of question. Null without answers."
    )


class OtherStudySerializer(serializers.Serializer):
    code = serializers.UUIDField()
    title = serializers.CharField()
    annotator = serializers.CharField(help_text="The person's pseudonym in that study.")
    assignments = serializers.IntegerField()
    is_flagged = serializers.BooleanField(allow_null=True)


class AnnotatorSerializer(serializers.Serializer):
    annotator = serializers.CharField(help_text="Pseudonym, which differs between studies.")
    assignments = serializers.IntegerField(help_text="Submitted assignments.")
    positive = TestQuestionCountsSerializer()
    negative = TestQuestionCountsSerializer(help_text="Negative, damaged and given test questions.")
    uncounted = serializers.IntegerField(help_text="Answers to test questions that do not count.")
    is_flagged = serializers.BooleanField(allow_null=True, help_text="By the model. Null without counted answers.")
    is_failed = serializers.BooleanField(
        allow_null=True, help_text="By the simple rule. Null with too few counted answers."
    )
    barred = serializers.BooleanField(help_text="Gets no further batch of this study or of its exclusion group.")
    agreement = serializers.FloatField(
        allow_null=True, help_text="Share of equal answers to live items. Null while outcomes are hidden."
    )
    agreement_pairs = serializers.IntegerField(help_text="The number of compared pairs of answers.")
    error_rate = serializers.FloatField(
        allow_null=True,
        help_text="Expected share of answers that differ from the estimated true answer (Dawid and Skene). Null while outcomes are hidden.",
    )
    competence = serializers.FloatField(
        allow_null=True, help_text="Probability that an answer is not a guess. Null while outcomes are hidden."
    )
    error_answers = serializers.IntegerField(help_text="The number of answers behind both.")
    severity = serializers.FloatField(
        allow_null=True,
        help_text="Own rating minus that of others about the same text, in shares of the scale. Null while outcomes are hidden.",
    )
    severity_low = serializers.FloatField(allow_null=True, help_text="Lower end of its 95 % interval.")
    severity_high = serializers.FloatField(allow_null=True, help_text="Upper end of its 95 % interval.")
    severity_ratings = serializers.IntegerField(help_text="The number of ratings behind it.")
    minutes = serializers.FloatField(allow_null=True)
    labels = serializers.IntegerField(help_text="Answers to live items.")
    share = serializers.FloatField(allow_null=True, help_text="Share of all answers to live items.")
    other_studies = OtherStudySerializer(many=True, help_text="The same person in other studies that you may see.")


class BoundarySerializer(serializers.Serializer):
    n = serializers.IntegerField(help_text="Counted answers of one type.")
    positive = serializers.IntegerField(allow_null=True, help_text="Flagged at this many right answers or fewer.")
    negative = serializers.IntegerField(allow_null=True, help_text="Flagged at this many right answers or fewer.")


class ScreeningSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    model = serializers.CharField()
    status = serializers.CharField()
    reason = serializers.CharField(allow_blank=True)
    settings = serializers.DictField(help_text="Settings of the two rules about test questions.")
    assignments = serializers.IntegerField()
    answers = serializers.IntegerField(help_text="Counted answers to test questions.")
    boundaries = BoundarySerializer(many=True)


def _row_json(row: AnnotatorRow) -> dict[str, Any]:
    types = {
        name: {"right": right, "counted": counted, "posterior": posterior}
        for name, right, counted, posterior in zip(
            ("positive", "negative"), row.right, row.counted, row.posteriors, strict=True
        )
    }
    return {
        "annotator": row.annotator,
        "assignments": row.n_assignments,
        **types,
        "uncounted": row.n_uncounted,
        "is_flagged": row.is_flagged,
        "is_failed": row.is_failed,
        "barred": row.is_barred,
        "agreement": row.agreement,
        "agreement_pairs": row.agreement_n,
        "error_rate": row.evidence.get("error_rate"),
        "competence": row.evidence.get("competence"),
        "error_answers": row.evidence.get("error_n", 0),
        "severity": row.evidence.get("severity"),
        "severity_low": row.evidence.get("severity_low"),
        "severity_high": row.evidence.get("severity_high"),
        "severity_ratings": row.evidence.get("severity_n", 0),
        "minutes": row.minutes,
        "labels": row.labels,
        "share": row.share,
        "other_studies": [
            {
                "code": other.code,
                "title": other.title,
                "annotator": other.annotator,
                "assignments": other.n_assignments,
                "is_flagged": other.is_flagged,
            }
            for other in row.others
        ],
    }


class AnnotatorsView(StudyView):
    """The annotators with submitted work, and what their answers to test questions say, as last computed."""

    parameters = (
        *page_parameters(),
        Parameter(
            "origin",
            choice_parser(*ORIGINS),
            "Origin of the answers. Default: imported if the study has only imported answers, else live.",
            None,
            str,
            ORIGINS,
        ),
    )

    @document_operation(
        "Annotators and what test questions say about them",
        page_serializer("Annotator", AnnotatorSerializer, screening=ScreeningSerializer(allow_null=True)),
        parameters=parameters,
        tag="answers",
    )
    def get(self, request, code):
        screened = read_screened_study(self.study, self.values["origin"] or default_origins(self.study)[0])
        later = sorted((row for row in screened.rows if row.pk > self.cursor_key()[0]), key=lambda row: row.pk)
        rows = later[: self.values["page_size"] + 1]
        add_other_studies(self.study, rows, request.user, token=get_api_token(request))
        stored = screened.screening
        screening = stored and {
            "at": stored.at,
            "model": stored.result["model"],
            "status": stored.result["status"],
            "reason": stored.result["reason"],
            "settings": stored.rule_settings,
            "assignments": stored.n_assignments,
            "answers": stored.n_answers,
            "boundaries": stored.result["boundaries"],
        }
        return page_response(request, self.values, [(row.pk, _row_json(row)) for row in rows], screening=screening)


class _BarringView(StudyView):
    write_action = Action.MANAGE_ASSIGNMENTS

    def _read(self, request, annotator: str) -> tuple[Annotator, str]:
        person = get_annotator_or_404(self.study, annotator)
        serializer = shapes.BarringRequestSerializer(data=require_json_object(request))
        serializer.is_valid(raise_exception=True)
        return person, serializer.validated_data["reason"]

    def _response(self, barring: Barring, status: int) -> Response:
        row = Barring.objects.select_related("by", "lifted_by").get(pk=barring.pk)
        return Response(shapes.BarringSerializer(row).data, status=status)


class BarView(_BarringView):
    """Give an annotator no further batch. A batch that they have begun can be finished, and their pay does not change."""

    @document_operation(
        "Bar an annotator from further batches",
        shapes.BarringSerializer,
        request=shapes.BarringRequestSerializer,
        status=201,
        tag="answers",
    )
    def post(self, request, code, annotator):
        person, reason = self._read(request, annotator)
        return self._response(bar_annotator(self.study, person, reason, request.user), 201)


class LiftBarringView(_BarringView):
    """Let a barred annotator take further batches again."""

    @document_operation(
        "Lift the barring of an annotator",
        shapes.BarringSerializer,
        request=shapes.BarringRequestSerializer,
        tag="answers",
    )
    def post(self, request, code, annotator):
        person, reason = self._read(request, annotator)
        barring = Barring.objects.filter(study=self.study, annotator=person).order_by("-pk").first()
        if barring is None:
            raise Http404
        lift_barring(barring, reason, request.user)
        return self._response(barring, 200)
