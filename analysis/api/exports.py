"""Tables as files, the codebook and the archive."""

from django.http import HttpResponse, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from analysis.data import exports
from analysis.data.data_dictionary import codebook_markdown, codebook_of
from analysis.data.export_requests import BadOrigins, request_export, selection_for
from analysis.data.flat.selection import Selection
from analysis.report.archive import archive_stream
from studies.access import Action

from . import serializers as shapes
from .base import MEDIA_TYPES, StudyView, documented, download, json_object
from .query import ORIGIN, RAW, WITHDRAWN, Parameter
from .renderers import RowErrors, row_error
from .runs import started, token_for


class ExportView(StudyView):
    reads = Action.EXPORT
    throttle_scope = "export"
    table = form = ""

    def selection(self) -> Selection:
        chosen = [self.values[name] for name in ("origin", "withdrawn") if name in self.values]
        return selection_for(self.table, self.study, *chosen, by=self.request.user)

    def streamed(self) -> StreamingHttpResponse:
        blocks = exports.stream(self.table, self.form, self.selection(), raw=self.values.get("raw", False))
        if self.request.method == "HEAD":
            blocks.close()
        name = f"{self.table}-{str(self.study.code)[:8]}.{self.form}"
        return download(blocks, name, MEDIA_TYPES[self.form], X_Heval_Rows=blocks.prepared)


def export_views() -> dict[str, type[ExportView]]:
    """A view for each table and form, and one for its hash: each has its own parameters and description."""
    views = {}
    for table in exports.TABLES:
        for form in MEDIA_TYPES:
            about_people = (ORIGIN, WITHDRAWN) if table in exports.OF_PEOPLE else ()
            parameters = (*about_people, *((RAW,) if form == "csv" else ()))
            views[f"{table}.{form}"] = _export_view(table, form, parameters)
            views[f"{table}.{form}.sha256"] = _hash_view(table, form, parameters)
    return views


def _export_view(name: str, kind: str, allowed: tuple[Parameter, ...]) -> type[ExportView]:
    class Export(ExportView):
        """One table of one moment of the database, streamed. X-Heval-Rows says how many rows follow."""

        table, form, parameters = name, kind, allowed

        @documented(
            f"All {name} as {kind.upper()}, one moment of the database",
            OpenApiTypes.STR,
            parameters=allowed,
            media_type=MEDIA_TYPES[kind].partition(";")[0],
            tag="exports",
        )
        def get(self, request, code):
            return self.streamed()

    return Export


def _hash_view(name: str, kind: str, allowed: tuple[Parameter, ...]) -> type[ExportView]:
    class ExportHash(ExportView):
        """The sha256 of that export and its rows, to check a download against."""

        table, form, parameters = name, kind, allowed

        @documented(
            f"The hash of that {kind.upper()} as of now, and its rows",
            shapes.ExportHashSerializer,
            parameters=allowed,
            tag="exports",
        )
        def get(self, request, code):
            found, rows = exports.sha256_of(self.table, self.form, self.selection(), raw=self.values.get("raw", False))
            return Response({"sha256": found, "rows": rows})

    return ExportHash


class Exports(StudyView):
    """Exports that are made by a job."""

    writes = Action.ANALYSE

    @documented(
        "Make a Parquet file; gives the job to be watched",
        shapes.JobSerializer,
        request=shapes.ExportRequestSerializer,
        status=202,
        tag="exports",
    )
    def post(self, request, code):
        serializer = shapes.ExportRequestSerializer(data=json_object(request))
        serializer.is_valid(raise_exception=True)
        token = token_for(request, self.study, "export")
        try:
            job = request_export(self.study, by=request.user, token=token, **serializer.validated_data)
        except BadOrigins as bad:
            raise RowErrors([row_error(None, "origins", str(bad))]) from None
        return started(job)


class Codebook(StudyView):
    """What every column means, with the questions, scales, systems and arms, as JSON."""

    @documented("The codebook", OpenApiTypes.OBJECT, tag="exports")
    def get(self, request, code):
        return Response(codebook_of(self.study))


class CodebookPage(StudyView):
    """The codebook in Markdown."""

    @documented("The codebook in Markdown", OpenApiTypes.STR, media_type="text/markdown", tag="exports")
    def get(self, request, code):
        return HttpResponse(codebook_markdown(self.study), content_type="text/markdown; charset=utf-8")


class Archive(StudyView):
    """Design, stimuli, answers, analyses, figures and codebook in one zip, with a hash of each file."""

    reads = Action.EXPORT
    throttle_scope = "export"

    @documented(
        "Design, data, results and codebook in one zip",
        OpenApiTypes.BINARY,
        media_type="application/zip",
        tag="exports",
    )
    def get(self, request, code):
        blocks = archive_stream(self.study, by=request.user)
        if request.method == "HEAD":
            blocks.close()
        return download(blocks, f"heval-{str(self.study.code)[:8]}.zip", "application/zip")
