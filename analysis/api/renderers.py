"""Parsing and rendering of the API: strict JSON in, JSON out, and every error as a problem (RFC 9457) that names its cause."""

import math
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import IntegrityError, transaction
from django.http import Http404, HttpResponse
from rest_framework import exceptions, status
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer as RestJSONRenderer
from rest_framework.response import Response

from analysis.data.exports import TooManyExports
from analysis.data.snapshot import TooManySnapshots
from studies.imports.bundle import BundleRefused
from studies.models.guards import AppendOnlyViolation, StudyFrozen
from studies.services.databases import is_database_unavailable_error
from studies.services.lifecycle import ActionRefused, FieldsRefused, FileRefused, NotReady
from studies.stimuli import texts
from studies.stimuli.rows import TableProblems

PROBLEM_MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 100
INVALID_REQUEST = "The request is not valid. Correct what “errors” lists, then send it again."
# The same answer to every token problem, so that it reveals nothing about tokens.
INVALID_TOKEN = "The token is missing or not valid. Send a valid token in the header: Authorization: Token <token>."  # noqa: S105 - a message


class BodyTooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is too large for one request. Split it into several requests."


class BodyCompressed(exceptions.APIException):
    status_code = status.HTTP_415_UNSUPPORTED_MEDIA_TYPE
    default_detail = "The body is compressed. Send it without compression and without the header Content-Encoding."


class RowErrors(exceptions.APIException):
    """A whole request was refused. ``errors`` has the row, field and message of each error."""

    default_detail = "Nothing was stored. Correct what “errors” lists, then send the request again."

    def __init__(
        self,
        errors: list[dict[str, Any]],
        code: int = status.HTTP_400_BAD_REQUEST,
        detail: str | None = None,
    ):
        self.errors, self.status_code = errors, code
        super().__init__(detail)


class FieldError(RowErrors):
    """A whole request was refused, because of one field or, without ``field``, as a whole."""

    def __init__(self, field: str | None, message: str):
        super().__init__([row_error(None, field, message)])


# What the framework refuses by itself. Its own texts do not say what to do.
FRAMEWORK_REFUSALS = {
    exceptions.MethodNotAllowed: "This resource does not accept this method. /api/v1/docs/ lists the methods.",
    exceptions.UnsupportedMediaType: "The body is not JSON. Send JSON with the header Content-Type: application/json.",
    exceptions.Throttled: "There were too many requests in this minute. Send the request again after the seconds in Retry-After.",
    exceptions.PermissionDenied: "A browser session needs a CSRF token for this. Send the header Authorization: Token <token> instead.",
}


def refuse_compressed_or_too_large(request, max_bytes: int) -> None:
    """Raise BodyCompressed or BodyTooLarge by what the headers say, before anything is read."""
    if request.META.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
        raise BodyCompressed
    if int(request.META.get("CONTENT_LENGTH") or 0) > max_bytes:
        raise BodyTooLarge


class StrictJSONParser(BaseParser):
    """Parse application/json within the site's size limit. Other media types are refused."""

    media_type = "application/json"

    def parse(self, stream, media_type=None, parser_context=None):
        request = parser_context["request"]
        if request.META.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise BodyCompressed
        charset = request.content_params.get("charset", "utf-8") if hasattr(request, "content_params") else "utf-8"
        if charset.lower() not in ("utf-8", "utf8"):
            raise exceptions.ParseError("The body's charset is not UTF-8. Send the body as UTF-8.")
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if int(request.META.get("CONTENT_LENGTH") or 0) > limit:
            raise BodyTooLarge
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge
        if body.startswith(b"\xef\xbb\xbf"):
            raise exceptions.ParseError("The body begins with a byte order mark. Send UTF-8 without it.")
        try:
            return texts.loads(body)
        except texts.BadJson as error:
            raise exceptions.ParseError(f"The body {error} Correct it, then send the request again.") from None


class JSONRenderer(RestJSONRenderer):
    """Render JSON. NaN and infinity, which only damaged rows have, become null instead of an error."""

    def render(self, data, accepted_media_type=None, renderer_context=None):
        try:
            return super().render(data, accepted_media_type, renderer_context)
        except ValueError:
            return super().render(_finite(data), accepted_media_type, renderer_context)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(element) for key, element in value.items()}
    return [_finite(element) for element in value] if isinstance(value, list | tuple) else value


class JSONOnlyNegotiation(BaseContentNegotiation):
    """Ignore the Accept header: each resource has one format, and its response declares the true media type."""

    def select_parser(self, request, parsers):
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


def problem_response(code: int, detail: str, errors: list[dict[str, Any]] | None = None, headers=None) -> Response:
    """Return a problem response for the whole request, with optional errors of rows and fields."""
    title = {413: "Body too large", 429: "Too many requests"}.get(code) or HttpResponse(status=code).reason_phrase
    body = {
        "type": "about:blank",
        "title": title,
        "status": code,
        "detail": detail,
        "errors": (errors or [])[:MAX_ERRORS],
    }
    return Response(body, status=code, content_type=PROBLEM_MEDIA_TYPE, headers=headers)


def exception_handler(error: Exception, context) -> Response | None:
    """Turn every expected exception into a problem. Return None for an unexpected one, which becomes a server error."""
    # Imported here: the framework's views read the settings on import, and the settings name classes of this module.
    from rest_framework.views import set_rollback

    answer = _answer(error, getattr(context.get("request"), "method", "") in ("GET", "HEAD"))
    if answer is not None:
        set_rollback()
    return answer


def _answer(error: Exception, is_read: bool) -> Response | None:
    if isinstance(error, RowErrors):
        return problem_response(error.status_code, str(error.detail), error.errors)
    if isinstance(error, exceptions.ValidationError):
        return problem_response(400, INVALID_REQUEST, flatten_field_errors(error.detail))
    if isinstance(error, DjangoValidationError):
        return problem_response(400, INVALID_REQUEST, flatten_field_errors(_detail(error)))
    if isinstance(error, exceptions.AuthenticationFailed | exceptions.NotAuthenticated):
        return problem_response(error.status_code, INVALID_TOKEN, headers=_headers(error))
    if isinstance(error, exceptions.APIException):
        if text := next((text for kind, text in FRAMEWORK_REFUSALS.items() if isinstance(error, kind)), ""):
            return problem_response(error.status_code, text, headers=_headers(error))
        return problem_response(error.status_code, str(error.detail), headers=_headers(error))
    if isinstance(error, Http404):
        return problem_response(
            404,
            "This resource does not exist, or you do not have access to it. Check the address, or ask its owner for access.",
        )
    if isinstance(error, PermissionDenied):
        return problem_response(403, str(error) or "You do not have permission to do this. Ask an owner of the study.")
    if isinstance(error, NotReady):
        return problem_response(
            409,
            "The study is not ready. Correct what “errors” lists, or acknowledge the key of a warning.",
            [row_error(None, p.field, p.text) | ({} if p.is_blocking else {"key": p.key}) for p in error.problems],
        )
    if isinstance(error, FileRefused):
        return problem_response(400, RowErrors.default_detail, row_errors(error.problems))
    if isinstance(error, BundleRefused):
        return problem_response(
            400,
            RowErrors.default_detail,
            [row_error(None, *one.split(": ", 1)) for one in error.problems],
        )
    if isinstance(error, FieldsRefused):
        detail = INVALID_REQUEST if is_read else RowErrors.default_detail
        return problem_response(400, detail, [row_error(None, name, text) for name, text in error.errors.items()])
    if isinstance(error, ActionRefused):
        # Boards refuse a submission like this if only time decides when the same request succeeds.
        if wait := getattr(error, "retry_after", None):
            return problem_response(429, str(error), headers={"Retry-After": str(wait)})
        return problem_response(409, str(error))
    if isinstance(error, StudyFrozen):
        return problem_response(
            409, "The design of a launched study cannot be changed. Clone the study, or amend what an amendment allows."
        )
    if isinstance(error, AppendOnlyViolation):
        return problem_response(409, "This is a permanent record and cannot be changed. Add a new record instead.")
    if isinstance(error, IntegrityError):
        return problem_response(409, "Another request stored the same data at the same time. Send the request again.")
    if isinstance(error, TooManyExports | TooManySnapshots):
        return problem_response(
            429, "Other exports are running. Try again in 30 seconds.", headers={"Retry-After": "30"}
        )
    if is_database_unavailable_error(error) and not transaction.get_connection().in_atomic_block:
        return problem_response(
            503, "The database is not available now. Try again in a few seconds.", headers={"Retry-After": "5"}
        )
    return None


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(math.ceil(wait))
    return headers


def row_error(row: int | None, field: str | None, message: str) -> dict[str, Any]:
    return {"row": row, "field": field or None, "message": str(message)}


def row_errors(problems: TableProblems) -> list[dict[str, Any]]:
    """Return the problems of a file, as many as a response lists. The first place says if there are more."""
    listed = problems.first
    if problems.count > MAX_ERRORS:
        listed = listed[: MAX_ERRORS - 1]
    errors = [row_error(problem.row, problem.column, problem.text) for problem in listed]
    if more := problems.count - len(errors):
        errors.insert(0, row_error(None, None, f"There are {more:,} more errors. Correct these first."))
    return errors


def _detail(error: DjangoValidationError) -> Any:
    return error.message_dict if hasattr(error, "error_dict") else {"__all__": error.messages}


def flatten_field_errors(detail: Any, row: int | None = None, field: str | None = None) -> list[dict[str, Any]]:
    """Return the errors of a serializer, of a list of serializers, or of a model as a flat list."""
    if isinstance(detail, dict) and detail and all(isinstance(name, int) for name in detail):
        # REST framework numbers the rows of a list from 0.
        return [
            error for index, messages in detail.items() for error in flatten_field_errors(messages, index + 1, field)
        ]
    if isinstance(detail, dict):
        general = ("non_field_errors", "__all__")
        return [
            error
            for name, messages in detail.items()
            for error in flatten_field_errors(
                messages, row, field if name in general else ".".join(filter(None, (field, str(name))))
            )
        ]
    if isinstance(detail, list | tuple):
        if any(isinstance(element, dict) for element in detail):
            return [
                error
                for number, element in enumerate(detail, 1)
                if element
                for error in flatten_field_errors(element, number, field)
            ]
        return [error for element in detail for error in flatten_field_errors(element, row, field)]
    return [row_error(row, field, detail)]
