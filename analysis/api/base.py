"""The bases of the API views. A view says what it is by its attributes, and ``schema.ApiSchema`` describes it from them.

A list or a detail combines ``StudyView`` with REST framework's ``ListAPIView`` or ``RetrieveAPIView``. ``PostMixin`` and
``JobMixin`` add what a POST does.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db import models
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.generics import GenericAPIView
from rest_framework.mixins import ListModelMixin
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.api.permissions import caller_of, check_people_scope, get_api_token
from studies.access import Action, get_study, study_lookup_path
from studies.models import Job, Study

from .query import KeyPagination, Parameter, ParameterFilter, read_query, refuse_unknown_names
from .renderers import StrictJSONParser, problem_response
from .repeats import answer_once
from .schema import IF_MATCH, ApiSchema
from .serializers import JobSerializer
from .uploads import StrictMultiPartParser, read_upload, require_json_object


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


class ApiView(GenericAPIView):
    """A resource."""

    schema = ApiSchema()
    filter_backends = (ParameterFilter,)
    pagination_class: type[KeyPagination] | None = KeyPagination
    # The column by which a list is ordered and paged.
    page_key = "pk"
    # What a page has beside its rows, and its name in OpenAPI if it is not that of its rows.
    page_fields: Mapping[str, serializers.Field] = {}
    page_name = ""
    # For OpenAPI: the tag, a line for each method, and what a download is.
    tag = "studies"
    summaries: Mapping[str, str] = {}
    # Whether reading needs no credentials, and headers of requests that change something.
    is_public = False
    headers_of_changes: tuple[OpenApiParameter, ...] = ()
    media_type = "application/json"
    response_type: Any = None
    # Query parameters of requests that read, beside those of pages, and of requests that change something.
    parameters: tuple[Parameter, ...] = ()
    body_parameters: tuple[Parameter, ...] = ()
    # What a read answers.
    serializer_class: Any = None
    # What checks the body of a change. None: nothing is read of it. ``documented_body``: how OpenAPI describes a body that
    # may come in several ways.
    body_serializer_class: Any = None
    documented_body: Any = None
    # What a change answers, if it differs from what a read answers; and other answers for OpenAPI, by status.
    result_serializer_class: Any = None
    success_status = 200
    other_results: Mapping[int, Any] = {}
    # The same of a read; what DELETE answers; and other types that a download may have.
    other_results_of_read: Mapping[int, Any] = {}
    result_of_delete: Any = None
    other_media_types: tuple[str, ...] = ()
    # Names the job of a request with an Idempotency-Key.
    request_token: str | None = None
    # Set by the throttle.
    rate_limit_headers: Mapping[str, str] = {}

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        if request.method == "POST" and (handler := getattr(self, "post", None)) is not None:
            self.post: Any = answer_once(self, handler, caller_of(request))

    def finalize_response(self, request, response, *args, **kwargs):
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in self.rate_limit_headers.items():
            response.headers[name] = value
        return response

    def name_of_secret(self, data: Any) -> str:
        """Return what an answer has made, if it shows a secret that is shown only once."""
        return ""

    @property
    def read_parameters(self) -> tuple[Parameter, ...]:
        pages = self.pagination_class.parameters if isinstance(self, ListModelMixin) and self.pagination_class else ()
        return (*pages, *self.parameters)

    @property
    def is_read(self) -> bool:
        return self.request.method in ("GET", "HEAD")

    def read_query(self) -> None:
        self.values = read_query(self.request, self.query_parameters())

    def query_parameters(self) -> tuple[Parameter, ...]:
        return self.read_parameters if self.is_read else self.body_parameters

    def get_page(self) -> list[Any]:
        """Return the rows of the page that the request asks for."""
        return self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []

    @property
    def rows_needed(self) -> int:
        """Return the number of rows of a page, and one more, which says whether there is a next page."""
        return self.values["page_size"] + 1

    def page_of(self, keyed_rows: Iterable[tuple[Any, Any]]) -> Response:
        """Return the page that (key, row) pairs make, of which there are ``rows_needed`` if there is a next page."""
        paginator: Any = self.paginator
        return self.get_paginated_response(paginator.paginate_keyed_rows(list(keyed_rows), self))

    def read_body(self) -> dict[str, Any]:
        """Return the checked fields of the body, which must be one JSON object."""
        return self.check_fields(require_json_object(self.request)) if self.body_serializer_class else {}

    def check_fields(self, fields: Any, instance: Any = None) -> dict[str, Any]:
        """Return the checked fields. If they change an ``instance``, none of them is required."""
        serializer = self.body_serializer_class(instance, data=fields, partial=instance is not None)
        serializer.is_valid(raise_exception=True)
        return dict(serializer.validated_data)

    def answer(self, result: Any, status: int | None = None) -> Response:
        """Return the result of a change."""
        is_delete = self.request.method == "DELETE" and self.result_of_delete
        serializer_class = is_delete or self.result_serializer_class or self.get_serializer_class()
        serializer = serializer_class(result, context=self.get_serializer_context())
        return Response(serializer.data, status=status or self.success_status)


class PostMixin(ApiView):
    """POST hands the checked fields of the body to ``perform``, and answers what that returns."""

    perform: Callable[..., Any]

    def post(self, request, *args, **kwargs):
        return self.answer(self.perform(**self.read_body()))


class CreatedOrUnchangedMixin(PostMixin):
    """POST stores what is not stored yet. ``perform`` returns it, and whether anything was new."""

    success_status = 201

    def post(self, request, *args, **kwargs):
        result, is_new = self.perform(**self.read_body())
        return self.answer(result, 201 if is_new else 200)


class UploadMixin(ApiView):
    """The body is JSON with rows, or a form with a file of them. One reader checks both."""

    parser_classes = (StrictJSONParser, StrictMultiPartParser)
    max_file_bytes: int
    # The name of the rows in a JSON body, and what one of them is about.
    rows_field: str
    row_unit: str

    def read_body(self) -> dict[str, Any]:
        body, filename, data = read_upload(self.request, self.rows_field, self.row_unit, self.max_file_bytes)
        return {**self.check_fields(body), "filename": filename, "data": data}


class JobMixin(PostMixin):
    """POST starts a job."""

    result_serializer_class = JobSerializer
    success_status = 202
    job_kind: str
    start_job: Callable[..., Job]

    def perform(self, **sent: Any) -> Job:
        return Job.objects.get(pk=self.start_job(self.request_token, **sent).pk)


class Outdated(APIException):
    """The study was changed since the revision that the request is about."""

    status_code = 412


def etag_of(study: Study) -> str:
    return f'"{study.version}"'


class StudyView(ApiView):
    """A resource of one study. The study is loaded and permissions are checked before any method runs."""

    read_action = Action.VIEW
    write_action = Action.EDIT
    # Methods that need another permission than other changes.
    actions: Mapping[str, Action] = {}
    # Whether a token must have the scope for what names people: invitations, ids of a panel, and messages of annotators.
    needs_people_scope = False
    headers_of_changes = (IF_MATCH,)

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        action = self.read_action if self.is_read else self.actions.get(request.method, self.write_action)
        self.study: Study = get_study(request.user, action, token=get_api_token(request), code=kwargs["code"])
        if self.needs_people_scope:
            check_people_scope(request)
        self.read_query()
        refuse_unknown_names(self.study, self.query_parameters(), self.values)
        if not self.is_read and (wanted := request.headers.get("If-Match")) not in (None, "*", etag_of(self.study)):
            raise Outdated(
                f"The study is at revision {self.study.version} now, and If-Match says {wanted}. Read it again."
            )

    def finalize_response(self, request, response, *args, **kwargs):
        response = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(getattr(response, "data", None), dict) and isinstance(response.data.get("revision"), int):
            response.headers["ETag"] = f'"{response.data["revision"]}"'
        return response

    def get_queryset(self) -> models.QuerySet[Any]:
        rows = super().get_queryset()
        return rows.filter(**{study_lookup_path(rows.model): self.study})


MEDIA_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "excel.csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "table.json": "application/json",
    "tsv": "text/tab-separated-values; charset=utf-8",
    "zip": "application/zip",
}


def download_response(blocks, filename: str, media_type: str, **headers: Any) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(blocks, content_type=media_type)
    answer["Content-Disposition"] = f'attachment; filename="{filename}"'
    answer["Cache-Control"] = "private, no-store"
    for name, value in headers.items():
        answer[name.replace("_", "-")] = str(value)
    return answer
