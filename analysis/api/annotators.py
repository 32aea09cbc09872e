"""API view of the annotators of a study, as the last screening describes them."""

from collections.abc import Callable

from django.http import Http404
from rest_framework import serializers
from rest_framework.generics import ListAPIView

from analysis.api.permissions import get_api_token
from analysis.report.build import default_origins
from analysis.report.screening.run import add_other_studies, get_annotator_or_404, read_screened_study
from annotators.models import Barring
from annotators.places.barrings import bar_annotator, barrings_of, lift_barring
from studies.access import Action

from . import serializers as shapes
from .base import PostMixin, StudyView
from .query import Parameter, choice_parser

ORIGINS = ("live", "imported", "robot")


class TestQuestionCountsSerializer(serializers.Serializer):
    right = serializers.IntegerField()
    counted = serializers.IntegerField()
    posterior = serializers.FloatField(
        allow_null=True, help_text="Probability of being inattentive, from this type of question. Null without answers."
    )

    def get_attribute(self, row):
        place = ("positive", "negative").index(self.field_name)
        return {"right": row.right[place], "counted": row.counted[place], "posterior": row.posteriors[place]}


class OtherStudySerializer(serializers.Serializer):
    code = serializers.UUIDField()
    title = serializers.CharField()
    annotator = serializers.CharField(help_text="The person's pseudonym in that study.")
    assignments = serializers.IntegerField(source="n_assignments")
    is_flagged = serializers.BooleanField(allow_null=True)


class EvidenceCountField(serializers.IntegerField):
    """A number of the evidence, which is empty while outcomes are hidden."""

    def get_attribute(self, row):
        return row.evidence.get(self.source, 0)


class AnnotatorSerializer(serializers.Serializer):
    annotator = serializers.CharField(help_text="Pseudonym, which differs between studies.")
    assignments = serializers.IntegerField(source="n_assignments", help_text="Submitted assignments.")
    positive = TestQuestionCountsSerializer()
    negative = TestQuestionCountsSerializer(help_text="Negative, damaged and given test questions.")
    uncounted = serializers.IntegerField(source="n_uncounted", help_text="Answers to test questions that do not count.")
    is_flagged = serializers.BooleanField(allow_null=True, help_text="By the model. Null without counted answers.")
    is_failed = serializers.BooleanField(
        allow_null=True, help_text="By the simple rule. Null with too few counted answers."
    )
    barred = serializers.BooleanField(
        source="is_barred",
        help_text="Gets no further batch of this study, of its exclusion group, or of another round of its board.",
    )
    agreement = serializers.FloatField(
        allow_null=True, help_text="Share of equal answers to live items. Null while outcomes are hidden."
    )
    agreement_pairs = serializers.IntegerField(
        source="agreement_n", help_text="The number of compared pairs of answers."
    )
    error_rate = serializers.FloatField(
        source="evidence.error_rate",
        allow_null=True,
        help_text="Expected share of answers that differ from the estimated true answer (Dawid and Skene). Null while outcomes are hidden.",
    )
    competence = serializers.FloatField(
        source="evidence.competence",
        allow_null=True,
        help_text="Probability that an answer is not a guess. Null while outcomes are hidden.",
    )
    error_answers = EvidenceCountField(source="error_n", help_text="The number of answers behind both.")
    severity = serializers.FloatField(
        source="evidence.severity",
        allow_null=True,
        help_text="Own rating minus that of others about the same text, in shares of the scale. Null while outcomes are hidden.",
    )
    severity_low = serializers.FloatField(
        source="evidence.severity_low", allow_null=True, help_text="Lower end of its 95 % interval."
    )
    severity_high = serializers.FloatField(
        source="evidence.severity_high", allow_null=True, help_text="Upper end of its 95 % interval."
    )
    severity_ratings = EvidenceCountField(source="severity_n", help_text="The number of ratings behind it.")
    minutes = serializers.FloatField(allow_null=True)
    labels = serializers.IntegerField(help_text="Answers to live items.")
    share = serializers.FloatField(allow_null=True, help_text="Share of all answers to live items.")
    other_studies = OtherStudySerializer(
        source="others", many=True, help_text="The same person in other studies that you may see."
    )


class BoundarySerializer(serializers.Serializer):
    n = serializers.IntegerField(help_text="Counted answers of one type.")
    positive = serializers.IntegerField(allow_null=True, help_text="Flagged at this many right answers or fewer.")
    negative = serializers.IntegerField(allow_null=True, help_text="Flagged at this many right answers or fewer.")


class ScreeningSerializer(serializers.Serializer):
    at = serializers.DateTimeField()
    model = serializers.CharField(source="result.model")
    status = serializers.CharField(source="result.status")
    reason = serializers.CharField(source="result.reason", allow_blank=True)
    settings = serializers.DictField(
        source="rule_settings", help_text="Settings of the two rules about test questions."
    )
    assignments = serializers.IntegerField(source="n_assignments")
    answers = serializers.IntegerField(source="n_answers", help_text="Counted answers to test questions.")
    boundaries = BoundarySerializer(source="result.boundaries", many=True)


class AnnotatorsView(StudyView, ListAPIView):
    """The annotators with submitted work, and what their answers to test questions say, as last computed."""

    tag = "answers"
    summaries = {"GET": "Annotators and what test questions say about them"}
    parameters = (
        Parameter(
            "origin",
            choice_parser(*ORIGINS),
            "Origin of the answers. Default: imported if the study has only imported answers, else live.",
            enum=ORIGINS,
        ),
    )
    serializer_class = AnnotatorSerializer
    page_fields = {"screening": ScreeningSerializer(allow_null=True)}

    def list(self, request, code):
        screened = read_screened_study(self.study, self.values["origin"] or default_origins(self.study)[0])
        later = sorted((row for row in screened.rows if row.pk > self.values["cursor"][0]), key=lambda row: row.pk)
        rows = later[: self.rows_needed]
        add_other_studies(self.study, rows, request.user, token=get_api_token(request))
        response = self.page_of((row.pk, self.get_serializer(row).data) for row in rows)
        response.data["screening"] = screened.screening and ScreeningSerializer(screened.screening).data
        return response


class BarringView(PostMixin, StudyView):
    tag = "answers"
    write_action = Action.MANAGE_ASSIGNMENTS
    serializer_class = shapes.BarringSerializer
    body_serializer_class = shapes.BarringRequestSerializer
    change_barring: Callable[[str], Barring]

    def post(self, request, code, annotator):
        self.annotator = get_annotator_or_404(self.study, annotator)
        return super().post(request)

    def perform(self, reason: str) -> Barring:
        barring = self.change_barring(reason)
        return Barring.objects.select_related("by", "lifted_by").get(pk=barring.pk)


class BarView(BarringView):
    """Give an annotator no further batch. A batch that they have begun can be finished, and their pay does not change."""

    summaries = {"POST": "Bar an annotator from further batches"}
    success_status = 201

    def change_barring(self, reason: str) -> Barring:
        return bar_annotator(self.study, self.annotator, reason, self.request.user)


class LiftBarringView(BarringView):
    """Let a barred annotator take further batches again."""

    summaries = {"POST": "Lift the barring of an annotator"}

    def change_barring(self, reason: str) -> Barring:
        barring = barrings_of(self.study).filter(annotator=self.annotator).order_by("-pk").first()
        if barring is None:
            raise Http404
        lift_barring(barring, reason, self.request.user)
        return barring
