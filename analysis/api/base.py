"""Shared parts of the API views: finding the study, paging, file downloads and OpenAPI descriptions."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.db import models
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import OpenApiResponse, extend_schema, inline_serializer
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.api.permissions import get_api_token
from studies.access import Action, get_study
from studies.models import Study
from studies.stimuli import texts
from studies.stimuli.rows import TableProblems

from . import serializers as shapes
from .query import Parameter, page_response, read_query
from .renderers import (
    MAX_ERRORS,
    PROBLEM_MEDIA_TYPE,
    BodyCompressed,
    BodyTooLarge,
    RowErrors,
    problem_response,
    row_error,
)

# Parse the form with which a program uploads a file.


class StrictMultiPartParser(MultiPartParser):
    """Parse multipart/form-data within a size limit."""

    def max_bytes(self, view: Any) -> int:
        """Return the size of the largest form that the view accepts."""
        return int(view.max_form_bytes)

    def parse(self, stream, media_type=None, parser_context=None):
        meta = parser_context["request"].META
        if meta.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise BodyCompressed
        if int(meta.get("CONTENT_LENGTH") or 0) > self.max_bytes(parser_context["view"]):
            raise BodyTooLarge
        try:
            return super().parse(stream, media_type, parser_context)
        except RequestDataTooBig:
            megabytes = settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20
            raise ParseError(f"The fields beside the file have more than {megabytes} MB. Shorten them.") from None
        except TooManyFieldsSent:
            raise ParseError("The form has too many fields. Send only the fields of this resource.") from None
        except (ParseError, UnicodeError):
            raise ParseError("The form is damaged or is not UTF-8. Send multipart/form-data as UTF-8.") from None


# The OpenAPI description, its HTML page, and the response to unknown addresses.


@cache
def describe_api() -> dict[str, Any]:
    """Return the OpenAPI description. It is the same for all callers, and a process makes it once, in a third of a second."""
    return SchemaGenerator().get_schema(request=None, public=True)


class SchemaView(SpectacularJSONAPIView):
    """The OpenAPI description as JSON."""

    class generator_class(SchemaGenerator):
        def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
            return describe_api()

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()


class DocsView(APIView):
    """An HTML page that lists all resources."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def get(self, request):
        rows = [
            (method.upper(), path, operation.get("summary", ""))
            for path, operations in sorted(describe_api()["paths"].items())
            for method, operation in operations.items()
        ]
        return HttpResponse(_docs_page(format_html_join("\n", "<tr><td>{}<td><code>{}</code><td>{}", rows)))


def _docs_page(rows: SafeString) -> str:
    return format_html(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>REST interface of heval</title><main><h1>REST interface</h1>"
        '<p>Send a token: <code>Authorization: Token …</code>. Full description: <a href="../schema/">OpenAPI</a>.</p>'
        "<table><caption>Resources</caption><thead><tr><th>Method<th>Path<th>Description</thead><tbody>{}</tbody></table>"
        "</main></html>",
        rows,
    )


class NotFoundView(APIView):
    """Answer every unknown API address with a JSON problem instead of an HTML page."""

    permission_classes = ()
    authentication_classes = ()
    throttle_classes = ()
    schema = None

    def dispatch(self, request, *args, **kwargs):
        self.headers = {}
        request = self.initialize_request(request, *args, **kwargs)
        answer = problem_response(
            404, "This address does not exist. Addresses end in a slash or a file name. /api/v1/docs/ lists them."
        )
        return self.finalize_response(request, answer, *args, **kwargs)


ERRORS = {
    400: "A parameter, a field or the body is invalid.",
    401: "The token is missing or invalid.",
    403: "The role or the token does not allow this, or outcomes are hidden while the study is collecting.",
    404: "The resource does not exist, or you do not have access to it.",
    405: "The resource does not support this method.",
    409: "The request conflicts with stored data or with the state of the study.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    429: "Too many requests, or other exports are running. Retry-After gives the seconds to wait.",
    503: "The database is not available now.",
}
READ_ERROR_CODES = (400, 401, 403, 404, 405, 429, 503)
WRITE_ERROR_CODES = tuple(ERRORS)


def document_operation(
    summary: str,
    response,
    *,
    request=None,
    parameters=(),
    status=200,
    media_type="application/json",
    tag="studies",
    other_responses: Mapping[int, Any] | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator that describes a method in OpenAPI, with all its responses.

    ``other_responses``: by status, what a method answers beside ``response`` if it succeeds in another way.
    """
    codes = READ_ERROR_CODES if request is None and status == 200 else WRITE_ERROR_CODES
    responses: dict[Any, Any] = {
        (code, PROBLEM_MEDIA_TYPE): OpenApiResponse(shapes.ProblemSerializer, description=ERRORS[code])
        for code in codes
    }
    responses[status, media_type] = response
    if status == 201:
        responses[200, media_type] = response  # a repeated request stores nothing new
    for other, found in (other_responses or {}).items():
        responses[other, media_type] = found
    list_name = type(response).__name__.partition("Page")
    return extend_schema(
        operation_id=f"list_{list_name[0].lower()}" if list_name[1] else None,
        summary=summary,
        tags=[tag],
        request=request,
        responses=responses,
        parameters=[p.openapi for p in parameters],
    )


def page_serializer(name: str, row_serializer, **extra_fields) -> serializers.Serializer:
    """Return the serializer of a page of a list."""
    fields = {"next": serializers.URLField(allow_null=True), "results": row_serializer(many=True)}
    return inline_serializer(f"{name}Page", {**fields, **extra_fields})


class StudyView(APIView):
    """A resource of one study. The study is loaded and permissions are checked before any method runs."""

    read_action = Action.VIEW
    write_action = Action.EDIT
    parameters: tuple[Parameter, ...] = ()

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        action = self.read_action if request.method in ("GET", "HEAD") else self.write_action
        self.study: Study = get_study(request.user, action, token=get_api_token(request), code=kwargs["code"])
        self.values = read_query(request, self.parameters if request.method in ("GET", "HEAD") else ())

    def cursor_key(self) -> tuple:
        return self.values["cursor"]

    def paginated_response(self, queryset: models.QuerySet, serializer) -> Response:
        """Return a page of rows, ordered by primary key."""
        rows = queryset.filter(pk__gt=self.cursor_key()[0]).order_by("pk")[: self.values["page_size"] + 1]
        return page_response(self.request, self.values, [(row.pk, _serialize(serializer, row)) for row in rows])


def _serialize(shape, row) -> Any:
    return shape(row).data if isinstance(shape, type) else shape(row)


def require_json_object(request) -> dict:
    if not isinstance(request.data, dict):
        raise ParseError("The body is not one JSON object. Send one object with the fields of this resource.")
    return request.data


MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson; charset=utf-8"}


def download_response(blocks, filename: str, media_type: str, **headers: Any) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(blocks, content_type=media_type)
    answer["Content-Disposition"] = f'attachment; filename="{filename}"'
    answer["Cache-Control"] = "private, no-store"
    for name, value in headers.items():
        answer[name.replace("_", "-")] = str(value)
    return answer


# Rows that a program sends as JSON or as a form with a file. One reader checks both.


def read_upload(request, rows_field: str, row_unit: str, max_bytes: int) -> tuple[dict[str, Any], str, bytes]:
    """Return the other fields of a request, and its file. Rows of a JSON body become the lines of a file."""
    if not isinstance(request.data, QueryDict):
        body = dict(require_json_object(request))
        rows = body.pop(rows_field, None)
        if not isinstance(rows, list):
            problem = f"There are no {rows_field}. Send a list with one object per {row_unit}."
            raise RowErrors([row_error(None, rows_field, problem)])
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return body, f"{rows_field}.jsonl", lines.encode()
    file = request.FILES.get("file")
    if file is None:
        problem = f"The form has no file. Send the {rows_field} as a file named “file”."
        raise RowErrors([row_error(None, "file", problem)])
    return read_settings(request), file.name, file.read(max_bytes + 1)


def read_settings(request) -> dict[str, Any]:
    """Return the other fields of a form with a file: one JSON object in its field ``settings``."""
    try:
        settings: Any = texts.loads(str(request.data.get("settings", "{}")))
    except texts.BadJson:
        settings = None
    if not isinstance(settings, dict):
        raise RowErrors(
            [row_error(None, "settings", "This is not a JSON object. Send the other fields as one object.")]
        )
    return settings


def row_errors(problems: TableProblems) -> list[dict[str, Any]]:
    """Return the problems of a file, as many as a response lists. The first place says if there are more."""
    listed = problems.first
    if problems.count > MAX_ERRORS:
        listed = listed[: MAX_ERRORS - 1]
    errors = [row_error(problem.row, problem.column, problem.text) for problem in listed]
    if more := problems.count - len(errors):
        errors.insert(0, row_error(None, None, f"There are {more:,} more errors. Correct these first."))
    return errors
