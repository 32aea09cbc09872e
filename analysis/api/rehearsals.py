"""API views of what is tried before people come: the pages, a report with invented answers, and a rehearsal of a link."""

from typing import Any

from django.conf import settings as site_settings
from django.urls import reverse
from rest_framework import serializers
from rest_framework.generics import RetrieveAPIView

from analysis.report.runs import INVENTED, request_invented_report
from annotators.recruitment.panels import stand_in
from studies.access import Action
from studies.models import Job

from . import serializers as shapes
from .base import JobMixin, StudyView
from .links import LinkView


class PreviewSerializer(serializers.Serializer):
    pages = serializers.URLField(help_text="Where members look at the pages as annotators will see them.")
    report = serializers.URLField(help_text="Where members of a draft read its newest report with invented answers.")


class InventedReportSerializer(shapes.StrictMixin, serializers.Serializer):
    are_systems_equal = shapes.StrictBooleanField(
        default=False,
        help_text="true: all systems are equally good for the robots. false: the one whose name comes first is the worst.",
    )


class PreviewView(JobMixin, StudyView, RetrieveAPIView):
    """Where the pages of a study can be looked at. POST lets robots answer a copy of a draft; the job's result has the report."""

    read_action = Action.VIEW
    write_action = Action.EDIT
    summaries = {
        "GET": "Where the pages of a study can be looked at",
        "POST": "Make a report with invented answers; returns the job to poll",
    }
    serializer_class = PreviewSerializer
    body_serializer_class = InventedReportSerializer
    job_kind = INVENTED

    def get_object(self) -> dict[str, str]:
        names = {"pages": "admin:annotators_preview", "report": "new_study_invented"}
        return {key: f"{site_settings.SITE_URL}{reverse(name, args=[self.study.pk])}" for key, name in names.items()}

    def start_job(self, token: str | None, are_systems_equal: bool) -> Job:
        return request_invented_report(
            self.study, self.request.user, are_systems_equal=are_systems_equal, request_token=token
        )


class RehearsalRequestSerializer(shapes.StrictMixin, serializers.Serializer):
    people = shapes.StrictIntegerField(
        min_value=stand_in.MIN_PEOPLE,
        max_value=stand_in.MAX_PEOPLE,
        default=stand_in.DEFAULT_PEOPLE,
        help_text="How many robots come.",
    )
    seed = shapes.StrictIntegerField(
        min_value=0, max_value=2**31 - 1, default=0, help_text="Seed of the robots' answers."
    )


class RehearsalView(JobMixin, LinkView):
    """Rehearse a link with robots, in a copy that is deleted. The job's result says what was expected and found. Nobody is paid."""

    write_action = Action.PANEL
    summaries = {"POST": "Rehearse a link with robots; returns the job to poll"}
    body_serializer_class = RehearsalRequestSerializer
    job_kind = stand_in.KIND

    def start_job(self, token: str | None, **sent: Any) -> Job:
        return stand_in.get_or_create_rehearsal_job(
            self.get_object(), sent["people"], by=self.request.user, seed=sent["seed"]
        )
