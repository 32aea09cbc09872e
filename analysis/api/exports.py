"""API views of exported tables, the codebook and the archive."""

from hashlib import sha256
from typing import Any

from django.db import models
from django.http import FileResponse, Http404, HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from analysis.data import exports
from analysis.data.blinding import check_outcomes_visible
from analysis.data.export_codebook import build_export_codebook, build_export_codebook_markdown
from analysis.data.exports import BadOrigins, build_permitted_selection, request_export
from analysis.data.flat_rows import COUNTED_ORIGINS, Selection
from analysis.models import AnalysisRun, Figure
from analysis.report.archive import archive_stream
from analysis.report.build import BadParameters
from analysis.report.runs import request_analysis
from studies.access import Action
from studies.models import Job, Study

from . import serializers as shapes
from .base import MEDIA_TYPES, StudyView, document_operation, download_response, page_serializer, require_json_object
from .query import ORIGINS, RAW, WITHDRAWN, Parameter, page_parameters
from .renderers import RowErrors, row_error

# API views of analyses and jobs.


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


class ExportView(StudyView):
    read_action = Action.EXPORT
    throttle_scope = "export"
    table = form = ""

    def selection(self) -> Selection:
        chosen = [self.values[name] for name in ("origins", "withdrawn") if name in self.values]
        return build_permitted_selection(self.table, self.study, *chosen, by=self.request.user)

    def stream_response(self) -> StreamingHttpResponse:
        blocks = exports.open_export_stream(self.table, self.form, self.selection(), raw=self.values.get("raw", False))
        if self.request.method == "HEAD":
            blocks.close()
        name = f"{self.table}-{str(self.study.code)[:8]}.{self.form}"
        return download_response(blocks, name, MEDIA_TYPES[self.form], X_Heval_Rows=blocks.n_rows)


def build_export_file_and_hash_views() -> dict[str, type[ExportView]]:
    """Return a view for each table and format, and one for its hash, each with its own parameters and description."""
    views = {}
    for table in exports.TABLES:
        for form in MEDIA_TYPES:
            about_people = (ORIGINS, WITHDRAWN) if table in exports.PERSON_TABLES else ()
            parameters = (*about_people, *((RAW,) if form == "csv" else ()))
            views[f"{table}.{form}"] = _export_view(table, form, parameters)
            views[f"{table}.{form}.sha256"] = _hash_view(table, form, parameters)
    return views


def _export_view(name: str, kind: str, allowed: tuple[Parameter, ...]) -> type[ExportView]:
    class Export(ExportView):
        """Stream one table from one snapshot of the database. The header X-Heval-Rows gives the number of rows."""

        table, form, parameters = name, kind, allowed

        @document_operation(
            f"All {name} as {kind.upper()}, from one snapshot",
            OpenApiTypes.STR,
            parameters=allowed,
            media_type=MEDIA_TYPES[kind].partition(";")[0],
            tag="exports",
        )
        def get(self, request, code):
            return self.stream_response()

    return Export


def _hash_view(name: str, kind: str, allowed: tuple[Parameter, ...]) -> type[ExportView]:
    class ExportHash(ExportView):
        """The sha256 and number of rows of an export, to check a download."""

        table, form, parameters = name, kind, allowed

        @document_operation(
            f"The current sha256 of {name} as {kind.upper()}, and its number of rows",
            shapes.ExportHashSerializer,
            parameters=allowed,
            tag="exports",
        )
        def get(self, request, code):
            digest, rows = exports.hash_and_count_export(
                self.table, self.form, self.selection(), raw=self.values.get("raw", False)
            )
            return Response({"sha256": digest, "rows": rows})

    return ExportHash


class ExportsView(StudyView):
    """Start an export job."""

    write_action = Action.ANALYSE

    @document_operation(
        "Start a Parquet export; returns the job to poll",
        shapes.JobSerializer,
        request=shapes.ExportRequestSerializer,
        status=202,
        tag="exports",
    )
    def post(self, request, code):
        serializer = shapes.ExportRequestSerializer(data=require_json_object(request))
        serializer.is_valid(raise_exception=True)
        token = idempotency_token(request, self.study, "export")
        try:
            job = request_export(self.study, by=request.user, request_token=token, **serializer.validated_data)
        except BadOrigins as bad:
            raise RowErrors([row_error(None, "origins", str(bad))]) from None
        return accepted_job_response(job)


class CodebookView(StudyView):
    """The meaning of every column, with questions, scales, systems and arms, as JSON."""

    @document_operation("The codebook", OpenApiTypes.OBJECT, tag="exports")
    def get(self, request, code):
        return Response(build_export_codebook(self.study))


class CodebookMarkdownView(StudyView):
    """The codebook in Markdown."""

    @document_operation("The codebook in Markdown", OpenApiTypes.STR, media_type="text/markdown", tag="exports")
    def get(self, request, code):
        return HttpResponse(build_export_codebook_markdown(self.study), content_type="text/markdown; charset=utf-8")


class ArchiveView(StudyView):
    """One zip with design, stimuli, answers, analyses, figures and codebook, and a hash of each file."""

    read_action = Action.EXPORT
    throttle_scope = "export"

    @document_operation(
        "Design, data, results and codebook in one zip",
        OpenApiTypes.BINARY,
        media_type="application/zip",
        tag="exports",
    )
    def get(self, request, code):
        blocks = archive_stream(self.study, by=request.user)
        if request.method == "HEAD":
            blocks.close()
        return download_response(blocks, f"heval-{str(self.study.code)[:8]}.zip", "application/zip")
