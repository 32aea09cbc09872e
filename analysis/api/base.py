"""Shared parts of the API views: finding the study, paging, file downloads and OpenAPI descriptions."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import models
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.response import Response
from rest_framework.views import APIView

from studies.access import Action, get_study
from studies.models import Study

from . import serializers as shapes
from .permissions import get_api_token
from .query import Parameter, page_response, read_query
from .renderers import PROBLEM_MEDIA_TYPE

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
