"""API views of what happens before and while a study collects: test runs, places, and messages of annotators."""

from typing import Any

from django.conf import settings as site_settings
from rest_framework import serializers
from rest_framework.generics import ListAPIView

from analysis.data.flat_rows import assignment_pseudonym
from analysis.report.screening.run import request_screening
from annotators.models import Assignment, Inquiry
from annotators.participation.withdrawal import answer_inquiry, mark_inquiry_handled
from annotators.places.batch_plan import delete_test_runs, start_test_run, test_runs
from annotators.places.exclusions import release_place
from studies.access import Action
from studies.models import Job, audit
from studies.services.lifecycle import ActionRefused, FieldsRefused

from . import serializers as shapes
from .act_serializers import RemovedSerializer
from .annotators import ORIGINS
from .answers import assignments_by_name
from .base import JobMixin, PostMixin, StudyView


class TestRunSerializer(serializers.Serializer):
    """A test run: the pages as annotators see them. Its answers count nowhere."""

    address = serializers.SerializerMethodField(help_text="The address of its pages. It needs no account.")
    arm = serializers.CharField(source="batch.arm.name", help_text="The arm that it shows.")
    started_at = serializers.DateTimeField(source="claimed_at", help_text="When it was made.")
    submitted_at = serializers.DateTimeField(allow_null=True, help_text="When it was finished, or null.")

    def get_address(self, run: Assignment) -> str:
        return f"{site_settings.SITE_URL}/p/{run.code}/"


class NewTestRunSerializer(shapes.StrictMixin, serializers.Serializer):
    arm = shapes.NameField(required=False, help_text="The name of an arm. Default: any.")


class TestRunsView(PostMixin, StudyView, ListAPIView):
    """Test runs, on the pages as annotators see them. POST starts one; DELETE deletes those of a draft with their answers."""

    read_action = Action.EDIT
    summaries = {"GET": "Test runs", "POST": "Start a test run", "DELETE": "Delete the test runs of a draft"}
    queryset = test_runs()
    serializer_class = TestRunSerializer
    body_serializer_class = NewTestRunSerializer
    result_of_delete = RemovedSerializer
    success_status = 201

    def perform(self, arm: str = "") -> Assignment:
        arms = {one.name: one for one in self.study.arms.all()}
        if arm and arm not in arms:
            raise FieldsRefused({"arm": f"The study has no arm “{arm}”. Send one of: {', '.join(arms)}."})
        try:
            run = start_test_run(self.study, self.request.user, arms.get(arm))
        except (ValueError, TypeError) as refused:
            raise ActionRefused(f"A test run is not possible yet. {refused}") from None
        return self.get_queryset().get(pk=run.pk)

    def delete(self, request, code):
        """Delete the test runs of a draft with their answers."""
        return self.answer({"removed": {"test_runs": delete_test_runs(self.study, request.user)}}, 200)


class InquirySerializer(serializers.Serializer):
    number = serializers.IntegerField(source="pk", help_text="Number of the message.")
    assignment = serializers.SerializerMethodField(help_text="Pseudonym of the assignment.")
    kind = serializers.ChoiceField(Inquiry.Kind.choices, help_text="A report about a text, or a question.")
    page = serializers.CharField(source="page_key", allow_blank=True, help_text="The page that it was sent from.")
    label = serializers.CharField(allow_blank=True, help_text="The letter of the text that it is about, or empty.")
    text = serializers.CharField(help_text="What the annotator wrote.")
    at = serializers.DateTimeField(help_text="When it was sent.")
    handled_at = serializers.DateTimeField(allow_null=True, help_text="When somebody marked it as handled, or null.")

    answer = serializers.CharField(allow_blank=True, help_text="What the annotator reads as the answer, or empty.")
    answered_at = serializers.DateTimeField(allow_null=True, help_text="When it was answered, or null.")

    def get_assignment(self, inquiry: Inquiry) -> str:
        return assignment_pseudonym(inquiry.assignment.code)


class HandleInquirySerializer(shapes.StrictMixin, serializers.Serializer):
    is_handled = shapes.StrictBooleanField(default=True, help_text="false: it waits for somebody again.")


class InquiryView(StudyView):
    tag = "answers"
    write_action = Action.MANAGE_ASSIGNMENTS
    needs_people_scope = True
    queryset = Inquiry.objects.select_related("assignment__study")
    lookup_url_kwarg = "number"
    serializer_class = InquirySerializer


class InquiriesView(InquiryView, ListAPIView):
    """What annotators wrote to the researchers. Reading it by a program is logged."""

    summaries = {"GET": "Messages of annotators"}

    def list(self, request, code):
        audit.record("read messages by a program", study=self.study, by=request.user)
        return super().list(request, code)


class HandleInquiryView(PostMixin, InquiryView):
    """Mark a message as handled, or as not handled."""

    summaries = {"POST": "Mark a message as handled"}
    body_serializer_class = HandleInquirySerializer

    def perform(self, is_handled: bool) -> Inquiry:
        inquiry = self.get_object()
        mark_inquiry_handled(inquiry, self.request.user, is_handled)
        return self.get_object()


class AnswerInquirySerializer(shapes.StrictMixin, serializers.Serializer):
    answer = serializers.CharField(help_text="What the annotator reads at the address where they wrote.")


class AnswerInquiryView(PostMixin, InquiryView):
    """Answer a message, once."""

    summaries = {"POST": "Answer a message"}
    body_serializer_class = AnswerInquirySerializer

    def perform(self, answer: str) -> Inquiry:
        answer_inquiry(self.get_object(), answer, self.request.user)
        return self.get_object()


class ReleasedSerializer(serializers.Serializer):
    assignment = serializers.CharField(help_text="Pseudonym of the assignment.")
    released_at = serializers.DateTimeField(help_text="Since when its place is free.")


class ReleasePlaceView(PostMixin, StudyView):
    """Free the place of an assignment that is not finished, as if the annotator had returned it."""

    tag = "answers"
    write_action = Action.MANAGE_ASSIGNMENTS
    summaries = {"POST": "Free the place of an assignment"}
    serializer_class = ReleasedSerializer

    def perform(self) -> dict[str, Any]:
        name = self.kwargs["assignment"]
        assignment = assignments_by_name(self.study, [name])[name]
        assignment.study = self.study
        release_place(assignment, self.request.user)
        assignment.refresh_from_db()
        return {"assignment": name, "released_at": assignment.released_at}


class ScreenSerializer(shapes.StrictMixin, serializers.Serializer):
    origin = shapes.ListedField(choices=ORIGINS, default="live", help_text="Whose answers.")


class ScreenView(JobMixin, StudyView):
    """Compute again what answers to test questions say about the annotators. The list of annotators has the result."""

    tag = "answers"
    write_action = Action.ANALYSE
    summaries = {"POST": "Screen the annotators; returns the job to poll"}
    body_serializer_class = ScreenSerializer

    def start_job(self, token: str | None, origin: str) -> Job:
        if not self.study.launched_at:
            raise ActionRefused("The study is not launched, so it has no annotators.")
        return request_screening(self.study, self.request.user, origin, token)
