"""API views of analyses and jobs."""

from hashlib import sha256
from typing import Any

from django.db import models
from django.http import FileResponse, Http404
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from analysis.data.blinding import check_outcomes_visible
from analysis.data.flat_rows import COUNTED_ORIGINS
from analysis.models import AnalysisRun, Figure
from analysis.report.build import BadParameters
from analysis.report.runs import request_analysis
from studies.access import Action
from studies.models import Job, Study

from . import serializers as shapes
from .base import StudyView, document_operation, page_serializer, require_json_object
from .query import page_parameters
from .renderers import RowErrors, row_error


class AnalysesView(StudyView):
    """List the analyses of a study. POST starts one."""

    write_action = Action.ANALYSE
    parameters = page_parameters()

    @document_operation(
        "Analyses", page_serializer("Analysis", shapes.AnalysisSerializer), parameters=parameters, tag="analyses"
    )
    def get(self, request, code):
        rows = (
            AnalysisRun.objects.filter(study=self.study)
            .defer("result")
            .select_related("by")
            .prefetch_related(_figures_prefetch())
        )
        return self.paginated_response(rows, _analysis_serializer(shapes.AnalysisSerializer))

    @document_operation(
        "Start an analysis; returns the job to poll",
        shapes.JobSerializer,
        request=shapes.AnalysisRequestSerializer,
        status=202,
        tag="analyses",
    )
    def post(self, request, code):
        try:
            job = request_analysis(
                self.study,
                request.user,
                require_json_object(request),
                idempotency_token(request, self.study, "analyse"),
            )
        except BadParameters as bad:
            field, _, message = str(bad).partition(": ")
            raise RowErrors([row_error(None, field, message)]) from None
        return accepted_job_response(job)


def _figures_prefetch():
    return models.Prefetch("figures", Figure.objects.defer("svg", "pdf").order_by("name"))


def _analysis_serializer(shape):
    def serialize(run: AnalysisRun) -> dict[str, Any]:
        run.figure_names = [figure.name for figure in run.figures.all()]
        return shape(run).data

    return serialize


def idempotency_token(request, study: Study, kind: str) -> str | None:
    """Return a token from the Idempotency-Key header, or None. Requests with the same key get the same job."""
    key = request.headers.get("Idempotency-Key", "")
    return sha256(f"{study.pk} {request.user.pk} {kind} {key}".encode("utf-8", "replace")).hexdigest() if key else None


def accepted_job_response(job: Job) -> Response:
    return Response(shapes.JobSerializer(Job.objects.get(pk=job.pk)).data, status=202)


class AnalysisDetailView(StudyView):
    """One analysis with its result."""

    @document_operation("An analysis with its result", shapes.AnalysisResultSerializer, tag="analyses")
    def get(self, request, code, number):
        rows = (
            AnalysisRun.objects.filter(study=self.study, number=number)
            .select_related("by")
            .prefetch_related(_figures_prefetch())
        )
        run = rows.first()
        if run is None:
            raise Http404
        # A report that was made while the study was collecting has no outcomes, so it can always be shown.
        if not run.result.get("outcomes", {}).get("is_hidden"):
            check_outcomes_visible(self.study, run.parameters.get("origins") or COUNTED_ORIGINS)
        return Response(_analysis_serializer(shapes.AnalysisResultSerializer)(run))


class JobsView(StudyView):
    """The background jobs of a study."""

    parameters = page_parameters()

    @document_operation("Jobs", page_serializer("Job", shapes.JobSerializer), parameters=parameters, tag="analyses")
    def get(self, request, code):
        return self.paginated_response(Job.objects.filter(study=self.study), shapes.JobSerializer)


class JobDetailView(StudyView):
    """The progress and the result of a job."""

    @document_operation("A job with its progress and result", shapes.JobSerializer, tag="analyses")
    def get(self, request, code, job):
        stored_job = Job.objects.filter(study=self.study, code=job).first()
        if stored_job is None:
            raise Http404
        return Response(shapes.JobSerializer(stored_job).data)


class JobFileView(StudyView):
    """The file of an export job. It is deleted after a week."""

    read_action = Action.EXPORT
    throttle_scope = "export"

    @document_operation(
        "The file of an export job",
        OpenApiTypes.BINARY,
        media_type="application/vnd.apache.parquet",
        tag="exports",
    )
    def get(self, request, code, job):
        from analysis.data.exports import export_file_path

        export_job = Job.objects.filter(study=self.study, code=job, kind="export", state=Job.State.DONE).first()
        if export_job is None or (path := export_file_path(export_job)) is None:
            raise Http404
        check_outcomes_visible(self.study, export_job.arguments["origins"])
        name = f"{export_job.arguments['table']}.parquet"
        return FileResponse(
            path.open("rb"), as_attachment=True, filename=name, content_type="application/vnd.apache.parquet"
        )
