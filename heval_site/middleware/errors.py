"""Error pages.

If the database is down, locked or full: 503, never 500, and annotators learn whether their answer was stored.
"""

import json
import logging
import secrets
import sys

from django.conf import settings
from django.core.exceptions import BadRequest, DisallowedHost, RequestDataTooBig, TooManyFieldsSent
from django.http import HttpResponse
from django.template.loader import render_to_string

from annotators.recruitment import channels
from heval_site.runtime.request_body import IncompleteBody
from studies.services.database_errors import is_database_unavailable_error

logger = logging.getLogger("heval.site")
RETRY_SECONDS = 5
# These pages need no cookie, database or script.
ERROR_PAGE_CSP = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors "
)


class NotUtf8(BadRequest):
    """The request uses another character set."""


class DatabaseUnavailable:
    """Middleware that answers if the database is unusable during a view. It costs nothing for successful requests."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_exception(self, request, exception):
        return database_unavailable_response(request, exception) if is_database_unavailable_error(exception) else None


def database_unavailable_response(request, exception: BaseException) -> HttpResponse:
    summary = _exception_summary(exception)
    extra = {"request": request}  # lets the log show the route instead of the address
    logger.error("Database unavailable at %s %s: %s", request.method, request.path, summary, extra=extra)
    is_answer = request.method == "POST" and request.path_info.startswith(("/p/", "/e/"))
    response = error_response(request, 503, title="Not right now", is_answer=is_answer)
    response["Retry-After"] = str(RETRY_SECONDS)
    return response


def _exception_summary(exception: BaseException) -> str:
    return f"{type(exception).__name__}: {' '.join(str(exception).split())}"


def error_response(request, status: int, *, title: str, **context) -> HttpResponse:
    """Return a page for people, or JSON for programs.

    Rendered without the request, so that the error cannot occur again.
    """
    if request.path_info.startswith("/api/") or request.headers.get("accept", "").startswith("application/json"):
        body = json.dumps({"title": title, "status": status, **context})
        response = HttpResponse(body, status=status, content_type="application/problem+json")
    else:
        context |= {"title": title, "submitted_values": annotator_typed_values(request)}
        if status >= 500 and context["submitted_values"]:
            context["again"] = {"path": request.get_full_path(), "fields": posted_form_fields(request)}
        response = HttpResponse(render_to_string(f"{status}.html", context), status=status)
    response["Cache-Control"] = "no-store"
    # Otherwise an annotator in a panel's frame would see no message, not even that an answer was not stored.
    framing = channels.all_frame_ancestors() if request.path_info.startswith(("/p/", "/e/")) else ()
    response["Content-Security-Policy"] = ERROR_PAGE_CSP + (" ".join(framing) or "'none'")
    return response


def annotator_typed_values(request) -> list[str]:
    """Return what an annotator entered, because an error page must not lose it.

    The result is empty if the form was too large or unreadable.
    """
    from annotators.pages.form_data import nonempty_answer_inputs

    if request.method != "POST" or not request.path_info.startswith("/p/"):
        return []
    try:
        return [value for values in nonempty_answer_inputs(request.POST).values() for value in values]
    except Exception:  # an error page must not fail with the same error
        return []


def posted_form_fields(request) -> list[tuple[str, str]]:
    """Return a form's fields, to be sent again unchanged."""
    return [(name, value) for name, values in request.POST.lists() for value in values]


def server_error(request, *args) -> HttpResponse:
    """handler500. The page shows only an id that is also in the log."""
    exception = sys.exc_info()[1]
    if exception is not None and is_database_unavailable_error(exception):
        return database_unavailable_response(request, exception)
    error_id = secrets.token_hex(4)
    extra = {"request": request}
    logger.error("Error %s at %s %s", error_id, request.method, request.path, exc_info=exception, extra=extra)
    return error_response(request, 500, title="Something went wrong", error_id=error_id)


def not_found(request, exception=None) -> HttpResponse:
    """handler404."""
    return error_response(request, 404, title="There is nothing here")


def permission_denied(request, exception=None) -> HttpResponse:
    """handler403."""
    return error_response(request, 403, title="Not for this account")


def bad_request(request, exception=None) -> HttpResponse:
    """handler400. heval read and stored nothing from such a request."""
    if isinstance(exception, TooManyFieldsSent):
        detail = (
            f"The request had more than {settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,} fields. Send it in "
            "parts, or import a file."
        )
    elif isinstance(exception, RequestDataTooBig):
        detail = f"The request was larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE // 2**20} MB. Send it in parts."
    elif isinstance(exception, NotUtf8):
        detail = "The request did not use the character set UTF-8. Send it as UTF-8."
    elif isinstance(exception, IncompleteBody):
        detail = "The connection ended before all data had arrived. Please send it again."
    else:
        if isinstance(exception, DisallowedHost):
            host = request.META.get("HTTP_HOST", "")[:100]
            logger.warning("Refused a request for the host “%s”, which is not among ALLOWED_HOSTS", host)
        return error_response(request, 400, title="This request was not understood")
    return error_response(request, 400, title="This was not taken", detail=detail)
