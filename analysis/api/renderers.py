"""What comes in and goes out over REST: strict JSON in, JSON out, and every error as a problem (RFC 9457) that names its cause."""

import math
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.exceptions import ValidationError as DjangoValidationError
from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.http import Http404, HttpResponse
from rest_framework import exceptions, status
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer as RestJSONRenderer
from rest_framework.response import Response

from analysis.data.exports import TooManyExports
from analysis.data.snapshot import TooManySnapshots
from studies.models.guards import AppendOnlyViolation, StudyFrozen
from studies.services.lifecycle import ActionRefused, NotReady
from studies.stimuli import strict_json

PROBLEM_MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 100
INVALID_REQUEST = "The request is not as it should be: see errors."
# One answer to whatever is wrong with a token, so that it tells nothing about tokens.
INVALID_TOKEN = "Send a valid token in the header: Authorization: Token <token>."  # noqa: S105 - a message


class BodyTooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is larger than is accepted in one request; send it in parts."


class Conflict(exceptions.APIException):
    """What was asked does not fit to what is stored. ``detail`` may be a list of row errors."""

    status_code = status.HTTP_409_CONFLICT
    default_detail = "This does not fit to what is stored."


class RowErrors(exceptions.APIException):
    """A request was refused as a whole; ``errors`` name row, field and message."""

    def __init__(
        self,
        errors: list[dict[str, Any]],
        code: int = status.HTTP_400_BAD_REQUEST,
        detail: str = "Nothing was stored: see errors.",
    ):
        self.errors, self.status_code = errors, code
        super().__init__(detail)


class StrictJSONParser(BaseParser):
    """application/json and nothing else, within the site's limit of size."""

    media_type = "application/json"

    def parse(self, stream, media_type=None, parser_context=None):
        request = parser_context["request"]
        if request.META.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
            raise exceptions.UnsupportedMediaType(request.META["HTTP_CONTENT_ENCODING"], "Send the body uncompressed.")
        charset = request.content_params.get("charset", "utf-8") if hasattr(request, "content_params") else "utf-8"
        if charset.lower() not in ("utf-8", "utf8"):
            raise exceptions.ParseError("The body must be UTF-8.")
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        if int(request.META.get("CONTENT_LENGTH") or 0) > limit:
            raise BodyTooLarge
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge
        if body.startswith(b"\xef\xbb\xbf"):
            raise exceptions.ParseError("The body begins with a byte order mark: send UTF-8 without one.")
        try:
            return strict_json.loads(body)
        except strict_json.BadJson as error:
            raise exceptions.ParseError(f"The body {error}") from None


class JSONRenderer(RestJSONRenderer):
    """JSON; a number that is none, which only a damaged row can hold, becomes null instead of an error."""

    def render(self, data, accepted_media_type=None, renderer_context=None):
        try:
            return super().render(data, accepted_media_type, renderer_context)
        except ValueError:
            return super().render(_finite(data), accepted_media_type, renderer_context)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


class JSONOnlyNegotiation(BaseContentNegotiation):
    """There is one form of answer, whatever Accept says: a client that asks for another gets it with its true type."""

    def select_parser(self, request, parsers):
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


def build_problem(code: int, detail: str, errors: list[dict[str, Any]] | None = None, headers=None) -> Response:
    """An answer that says what went wrong: for the whole request, or for rows and fields of it."""
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
    """REST framework's hook: every expected exception as a problem. None where it is a fault of ours."""
    # The framework's views read the settings when they are loaded, and those name classes of this module.
    from rest_framework.views import set_rollback

    answer = _answer(error)
    if answer is not None:
        set_rollback()
    return answer


def _answer(error: Exception) -> Response | None:
    if isinstance(error, RowErrors):
        return build_problem(error.status_code, str(error.detail), error.errors)
    if isinstance(error, exceptions.ValidationError):
        return build_problem(400, INVALID_REQUEST, field_errors(error.detail))
    if isinstance(error, DjangoValidationError):
        return build_problem(400, INVALID_REQUEST, field_errors(_detail(error)))
    if isinstance(error, exceptions.AuthenticationFailed | exceptions.NotAuthenticated):
        return build_problem(error.status_code, INVALID_TOKEN, headers=_headers(error))
    if isinstance(error, exceptions.APIException):
        return build_problem(error.status_code, str(error.detail), headers=_headers(error))
    if isinstance(error, Http404):
        return build_problem(404, "There is no such thing, or you may not see it.")
    if isinstance(error, PermissionDenied):
        return build_problem(403, str(error) or "You may not do this.")
    if isinstance(error, NotReady):
        return build_problem(409, "The study is not ready.", [row_error(None, p.field, p.text) for p in error.problems])
    if isinstance(error, ActionRefused):
        return build_problem(409, str(error))
    if isinstance(error, StudyFrozen):
        return build_problem(
            409, "The design of a launched study does not change: clone it, or amend what may be amended."
        )
    if isinstance(error, AppendOnlyViolation):
        return build_problem(409, "This is part of the record: it is never changed.")
    if isinstance(error, IntegrityError):
        return build_problem(409, "Somebody else stored the same thing at the same moment. Send it again.")
    if isinstance(error, TooManyExports | TooManySnapshots):
        return build_problem(
            429, "Other exports are running. Try again in half a minute.", headers={"Retry-After": "30"}
        )
    if isinstance(error, OperationalError | InterfaceError) and not transaction.get_connection().in_atomic_block:
        return build_problem(503, "The database is not there at the moment. Try again.", headers={"Retry-After": "5"})
    return None


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = error.auth_header
    if getattr(error, "wait", None):
        headers["Retry-After"] = str(math.ceil(error.wait))
    return headers


def row_error(row: int | None, field: str | None, message: str) -> dict[str, Any]:
    return {"row": row, "field": field or None, "message": str(message)}


def _detail(error: DjangoValidationError) -> Any:
    return error.message_dict if hasattr(error, "error_dict") else {"__all__": error.messages}


def field_errors(detail: Any, row: int | None = None, field: str | None = None) -> list[dict[str, Any]]:
    """The errors of a serializer, of many of them, or of a model, as a flat list."""
    if isinstance(detail, dict) and detail and all(isinstance(name, int) for name in detail):
        # REST framework gives the rows of a list by their place.
        return [error for place, each in detail.items() for error in field_errors(each, place + 1, field)]
    if isinstance(detail, dict):
        general = ("non_field_errors", "__all__")
        return [
            error
            for name, each in detail.items()
            for error in field_errors(
                each, row, field if name in general else ".".join(filter(None, (field, str(name))))
            )
        ]
    if isinstance(detail, list | tuple):
        if any(isinstance(each, dict) for each in detail):
            return [
                error for number, each in enumerate(detail, 1) if each for error in field_errors(each, number, field)
            ]
        return [error for each in detail for error in field_errors(each, row, field)]
    return [row_error(row, field, detail)]
