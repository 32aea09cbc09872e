"""Django's middlewares, adapted to skip annotators' pages.

Annotators' pages need no session, user, message or form cookie, and do not pay for them.
"""

import json
import logging
import os
import re
import secrets
import sys
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from axes.middleware import AxesMiddleware
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import BadRequest, DisallowedHost, RequestDataTooBig, TooManyFieldsSent
from django.http import Http404, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin
from whitenoise.middleware import WhiteNoiseMiddleware

from annotators.recruitment import channels
from heval_site.runtime.requests import IncompleteBody
from studies.services.databases import is_database_unavailable_error

# Error pages.
#
# If the database is down, locked or full: 503, never 500, and annotators learn whether their answer was stored.


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


# Logged-in users upload files here that are larger than any form.
UPLOAD_PATH = re.compile(r"/admin/studies/study/(?:new/|\d+/(?:new|import|metrics)/)")
# Pages of teams check the key in the address before they read a file, and report files that are too large themselves.
TEAM_PATH = re.compile(r"/boards/[-\w]+/team/[^/]+/\Z")
REST_PATH = "/api/"  # reads no file, and reports files that are too large itself
HEALTH_PATHS = ("/healthz", "/readyz")  # health checks use any host name of this machine
ANNOTATOR_PATHS = ("/p/", "/e/", *HEALTH_PATHS)


# The base of the mixin below, while types are checked.
if TYPE_CHECKING:
    _Middleware = MiddlewareMixin
else:
    _Middleware = object


class ResearcherPathsMixin(_Middleware):
    """A middleware that skips annotators' paths, together with all following ones that do the same."""

    def __init__(self, get_response):
        super().__init__(get_response)
        # Django wraps each middleware in a function.
        following = getattr(get_response, "__wrapped__", None)
        self.bypass: Callable[..., Any] = (
            following.bypass if isinstance(following, ResearcherPathsMixin) else get_response
        )

    def __call__(self, request):
        if request.path_info.startswith(ANNOTATOR_PATHS):
            return self.bypass(request)
        return super().__call__(request)


class Security(SecurityMiddleware):
    """For every path: host, valid characters, transport security, nosniff, referrer policy."""

    def process_request(self, request):
        if request.content_params.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
            raise NotUtf8
        if "\0" in request.path_info:
            raise Http404  # no path contains this character, and PostgreSQL does not accept it
        path = request.path_info
        if not path.startswith(REST_PATH) and not UPLOAD_PATH.match(path) and not TEAM_PATH.match(path):
            refuse_too_large_body(request)
        if not request.path_info.startswith(HEALTH_PATHS):
            request.get_host()  # raises for a foreign host; CommonMiddleware, which also checks, skips annotators' paths
        return super().process_request(request)


def refuse_too_large_body(request) -> None:
    """Limit the body before anything is read. Django limits form fields, but writes files of any size to the disk."""
    announced = request.META.get("CONTENT_LENGTH") or "0"
    if announced.isdecimal() and int(announced) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise RequestDataTooBig(f"{announced} bytes")


class StaticFiles(WhiteNoiseMiddleware):
    """For every path except /static/, which serves style sheets."""

    def add_files(self, root, prefix=None):
        if os.path.isdir(root):  # otherwise nothing was collected
            super().add_files(root, prefix)


class Sessions(ResearcherPathsMixin, SessionMiddleware):
    pass


class Common(ResearcherPathsMixin, CommonMiddleware):
    pass


class Csrf(ResearcherPathsMixin, CsrfViewMiddleware):
    """Annotators' pages have no cookie that another site could abuse: the secret is in the address itself."""

    def process_view(self, request, callback, callback_args, callback_kwargs):
        if request.path_info.startswith(ANNOTATOR_PATHS):
            return None
        return super().process_view(request, callback, callback_args, callback_kwargs)


class Authentication(ResearcherPathsMixin, AuthenticationMiddleware):
    """Also decides who may send large files, because the later check of the form's token reads them completely."""

    def process_request(self, request):
        super().process_request(request)
        if UPLOAD_PATH.match(request.path_info) and not request.user.is_authenticated:
            refuse_too_large_body(request)


class Messages(ResearcherPathsMixin, MessageMiddleware):
    pass


class Framing(ResearcherPathsMixin, XFrameOptionsMiddleware):
    """Never frame the admin. A panel may frame annotators' pages, which name the allowed origins."""


class ContentSecurityPolicy(ResearcherPathsMixin, CSPMiddleware):
    pass


class Lockout(ResearcherPathsMixin, AxesMiddleware):
    pass


def client_ip_or_ipv6_network(request) -> str:
    """Return the client address. Trust only the last TRUSTED_PROXY_COUNT entries of X-Forwarded-For."""
    asker = request.META.get("REMOTE_ADDR", "")
    forwarded = [name.strip() for name in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if name.strip()]
    proxies = settings.TRUSTED_PROXY_COUNT
    return _client_network(forwarded[-proxies] if proxies and len(forwarded) >= proxies else asker)


def _client_network(address: str) -> str:
    """Return the 64-bit network of an IPv6 address.

    A customer has the whole network and can change addresses freely.
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ip_address(int(ip) >> 64 << 64))
