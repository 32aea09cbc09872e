"""Django's middlewares, adapted to skip annotators' pages.

Annotators' pages need no session, user, message or form cookie, and do not pay for them.
"""

import re
from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from axes.middleware import AxesMiddleware
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.exceptions import RequestDataTooBig
from django.http import Http404
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.deprecation import MiddlewareMixin
from whitenoise.middleware import WhiteNoiseMiddleware

from .errors import NotUtf8

# Logged-in users upload files here that are larger than any form.
UPLOAD_PATH = "/studies/"
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
        if not request.path_info.startswith((UPLOAD_PATH, REST_PATH)) and not TEAM_PATH.match(request.path_info):
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
        if request.path_info.startswith(UPLOAD_PATH) and not request.user.is_authenticated:
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
