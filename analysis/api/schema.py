"""The OpenAPI description of the API. What it says of a view are the attributes of the view (see ``base.ApiView``)."""

from functools import cache
from typing import Any

from django.http import HttpResponse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_doc
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_serializer, inline_serializer
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.views import APIView

from .renderers import PROBLEM_MEDIA_TYPE
from .serializers import ProblemSerializer

ERRORS = {
    400: "A parameter, a field or the body is invalid.",
    401: "The token is missing or invalid.",
    403: "The role or the token does not allow this, or outcomes are hidden while the study is collecting.",
    404: "The resource does not exist, or you do not have access to it.",
    405: "The resource does not support this method.",
    409: "The request conflicts with stored data or with the state of the study.",
    412: "The study was changed since the revision that If-Match names.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "The Idempotency-Key was sent with another body before.",
    429: "Too many requests, or other exports are running. Retry-After gives the seconds to wait.",
    503: "The database is not available now.",
}
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Names this request for a day. A repeated request with the same key and body gets the first answer, and does nothing.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description="The ETag of the study. If the study was changed since, this request is refused.",
)
READ_ERROR_CODES = (400, 401, 403, 404, 405, 429, 503)


class ApiSchema(AutoSchema):
    """Describe the methods of an ``ApiView``, with all their responses."""

    view: Any

    @property
    def is_read(self) -> bool:
        return self.method == "GET"

    @property
    def is_list(self) -> bool:
        return self.is_read and not self.view.response_type and isinstance(self.view, ListModelMixin)

    def get_description(self) -> str:  # type: ignore[override]  # as in drf-spectacular itself
        return get_doc(type(self.view))

    def get_summary(self) -> str:
        return self.view.summaries[self.method]

    def get_tags(self) -> list[str]:
        return [self.view.tag]

    def get_operation_id(self) -> str:
        if self.is_list and self.view.pagination_class:
            return f"list_{page_name(type(self.view)).lower()}"
        return super().get_operation_id()

    def get_override_parameters(self) -> list[Any]:
        view = self.view
        listed = [one.openapi for one in (view.read_parameters if self.is_read else view.body_parameters)]
        headers = () if self.is_read else view.headers_of_changes
        return [*listed, *headers, IDEMPOTENCY_KEY] if self.method == "POST" else [*listed, *headers]

    def get_auth(self) -> list[dict[str, list[str]]]:
        """Return how a request proves who sends it. Public boards are read without it."""
        return [*super().get_auth(), *([{}] if self.is_read and self.view.is_public else [])]

    def get_request_serializer(self) -> Any:
        return self.view.documented_body or self.view.body_serializer_class or {}

    def get_response_serializers(self) -> Any:
        responses: dict[Any, Any] = {
            (code, PROBLEM_MEDIA_TYPE): OpenApiResponse(ProblemSerializer, description=ERRORS[code])
            for code in (READ_ERROR_CODES if self.is_read else ERRORS)
            if code != 412 or self.view.headers_of_changes
        }
        if self.is_read:
            types = (self.view.media_type, *self.view.other_media_types)
            responses |= {(200, media_type): self._answer_of_read() for media_type in types}
            others = self.view.other_results_of_read.items()
            return responses | {(code, "application/json"): other for code, other in others}
        if self.method == "DELETE" and self.view.result_of_delete:
            return responses | {(200, "application/json"): self.view.result_of_delete}
        answer = self.view.result_serializer_class or self.view.serializer_class
        responses[self.view.success_status, "application/json"] = answer
        if self.view.success_status == 201:
            responses[200, "application/json"] = answer  # a repeated request stores nothing new
        return responses | {(code, "application/json"): other for code, other in self.view.other_results.items()}

    def _answer_of_read(self) -> Any:
        view: Any = type(self.view)
        if self.is_list:
            return page_serializer(view) if view.pagination_class else view.serializer_class(many=True)
        return view.response_type or view.serializer_class


def page_name(view: Any) -> str:
    return view.page_name or view.serializer_class.__name__.removesuffix("Serializer")


@cache
def page_serializer(view: Any) -> serializers.Serializer:
    """Return the serializer of a page of a list view."""
    fields = {"next": serializers.URLField(allow_null=True), "results": view.serializer_class(many=True)}
    page: Any = inline_serializer(f"{page_name(view)}Page", {**fields, **view.page_fields})
    # It describes the whole page, and not one of several rows.
    return extend_schema_serializer(many=False)(page)


# The description itself, and its HTML page.


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
