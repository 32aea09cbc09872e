"""The database is down, locked or full: 503, never 500, and an annotator is told the truth about the answer just sent."""

import json
import logging
import secrets
import sys

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse
from django.template.loader import render_to_string

from annotators.recruitment import channels
from heval_site.runtime.request_body import IncompleteBody

logger = logging.getLogger("heval.site")
RETRY_SECONDS = 5
# These pages need no cookie, no database and no script.
ERROR_PAGE_CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors "
)


class NotUtf8(BadRequest):
    """The request names another character set."""


class DatabaseUnavailable:
    """Answers when a view met a database that cannot be used. It adds nothing to a request that goes well."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_exception(self, request, exception):
        return unavailable_response(request, exception) if is_database_error(exception) else None


def is_database_error(exception: BaseException | None) -> bool:
    """Whether the database refused to work, rather than our code to be right."""
    while exception is not None:
        if isinstance(exception, OperationalError | InterfaceError):
            return True
        exception = exception.__cause__
    return False


def unavailable_response(request, exception: BaseException) -> HttpResponse:
    logger.error("Database unavailable at %s %s: %s", request.method, request.path, _exception_summary(exception))
    is_answer = request.method == "POST" and request.path_info.startswith(("/p/", "/e/"))
    response = error_response(request, 503, title="Not right now", is_answer=is_answer)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _exception_summary(exception: BaseException) -> str:
    return f"{type(exception).__name__}: {' '.join(str(exception).split())}"


def error_response(request, status: int, *, title: str, **context) -> HttpResponse:
    """A page for people, JSON for programs. Rendered without the request: a page about a fault must not meet the fault."""
    if request.path_info.startswith("/api/") or request.headers.get("accept", "").startswith("application/json"):
        body = json.dumps({"title": title, "status": status, **context})
        response = HttpResponse(body, status=status, content_type="application/problem+json")
    else:
        context |= {"title": title, "typed": typed_by_annotator(request)}
        if status >= 500 and context["typed"]:
            context["again"] = {"path": request.get_full_path(), "fields": form_fields(request)}
        response = HttpResponse(render_to_string(f"{status}.html", context), status=status)
    response["Cache-Control"] = "no-store"
    # Within a panel's frame an annotator would be told nothing at all, also that an answer was not stored.
    framing = channels.all_frame_ancestors() if request.path_info.startswith(("/p/", "/e/")) else ()
    response["Content-Security-Policy"] = ERROR_PAGE_CSP + (" ".join(framing) or "'none'")
    return response


def typed_by_annotator(request) -> list[str]:
    """What an annotator typed or chose on a page: no page about a fault may drop it. Empty where the form was not read, because
    it is too large or cannot be read at all."""
    from annotators.pages.form_data import nonempty_inputs

    if request.method != "POST" or not request.path_info.startswith("/p/"):
        return []
    try:
        return [value for values in nonempty_inputs(request.POST).values() for value in values]
    except Exception:  # a page about a fault must not meet the fault
        return []


def form_fields(request) -> list[tuple[str, str]]:
    """A form's fields, to be sent again as they are."""
    return [(name, value) for name, values in request.POST.lists() for value in values]


def server_error(request, *args):
    """handler500. The page shows an id that the log knows, and nothing else."""
    exception = sys.exc_info()[1]
    if is_database_error(exception):
        return unavailable_response(request, exception)
    error_id = secrets.token_hex(4)
    logger.error("Error %s at %s %s", error_id, request.method, request.path, exc_info=exception)
    return error_response(request, 500, title="Something went wrong", error_id=error_id)


def not_found(request, exception=None):
    """handler404."""
    return error_response(request, 404, title="There is nothing here")


def permission_denied(request, exception=None):
    """handler403."""
    return error_response(request, 403, title="Not for this account")


def bad_request(request, exception=None):
    """handler400. Nothing of such a request was read, so nothing of it is stored."""
    if isinstance(exception, TooManyFieldsSent):
        detail = f"More than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} fields were sent at once. Send it in parts, or import a file."
    elif isinstance(exception, RequestDataTooBig):
        detail = f"More than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20} MB were sent at once. Send it in parts."
    elif isinstance(exception, NotUtf8):
        detail = "It was sent in another character set than UTF-8."
    elif isinstance(exception, IncompleteBody):
        detail = "The connection ended before all of it had come."
    else:
        return error_response(request, 400, title="This request was not understood")
    return error_response(request, 400, title="This was not taken", detail=detail)
