"""API views of exported tables, the codebook and the archive."""

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from analysis.data import exports
from analysis.data.export_codebook import build_export_codebook, build_export_codebook_markdown
from analysis.data.exports import BadOrigins, build_permitted_selection, request_export
from analysis.data.flat_rows import Selection
from analysis.report.archive import archive_stream
from studies.access import Action

from . import serializers as shapes
from .analyses import accepted_job_response, idempotency_token
from .base import MEDIA_TYPES, StudyView, document_operation, download_response, require_json_object
from .query import ORIGINS, RAW, WITHDRAWN, Parameter
from .renderers import RowErrors, row_error


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
