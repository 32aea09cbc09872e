"""Django's middlewares, made to let annotators' pages pass.

What an annotator opens needs no session, user, message or form cookie, and pays for none.
"""

from ipaddress import ip_address

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
from whitenoise.middleware import WhiteNoiseMiddleware

from .errors import NotUtf8

# Where files come in that are larger than any form: from who is logged in.
UPLOAD_PATH = "/studies/"
REST_PATH = "/api/"  # reads no file, and says in its own words what is too large
HEALTH_PATHS = ("/healthz", "/readyz")  # they ask by whatever name they know this machine
ANNOTATOR_PATHS = ("/p/", "/e/", *HEALTH_PATHS)


class ResearcherPathsMixin:
    """Steps aside on the annotators' paths, together with all that follow it and do the same."""

    def __init__(self, get_response):
        super().__init__(get_response)
        # Django wraps each middleware in a function.
        following = getattr(get_response, "__wrapped__", None)
        self.bypass = following.bypass if isinstance(following, ResearcherPathsMixin) else get_response

    def __call__(self, request):
        if request.path_info.startswith(ANNOTATOR_PATHS):
            return self.bypass(request)
        return super().__call__(request)


class Security(SecurityMiddleware):
    """On every path: the host, the address's characters, transport security, nosniff, referrer policy."""

    def process_request(self, request):
        if request.content_params.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
            raise NotUtf8
        if "\0" in request.path_info:
            raise Http404  # nothing is called so, and PostgreSQL does not even look
        if not request.path_info.startswith((UPLOAD_PATH, REST_PATH)):
            refuse_too_large(request)
        if not request.path_info.startswith(HEALTH_PATHS):
            request.get_host()  # raises on a host that is not ours; CommonMiddleware, who else asks, lets annotators pass
        return super().process_request(request)


def refuse_too_large(request) -> None:
    """Before a byte is read. Django bounds the fields of a form, and writes its files to the disk however large they are."""
    announced = request.META.get("CONTENT_LENGTH") or "0"
    if announced.isdecimal() and int(announced) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise RequestDataTooBig(f"{announced} bytes")


class StaticFiles(WhiteNoiseMiddleware):
    """On every path: a style sheet is asked for from /static/ alone."""


class Sessions(ResearcherPathsMixin, SessionMiddleware):
    pass


class Common(ResearcherPathsMixin, CommonMiddleware):
    pass


class Csrf(ResearcherPathsMixin, CsrfViewMiddleware):
    """Annotators' pages carry no cookie that a foreign page could abuse: the secret is in the address itself."""

    def process_view(self, request, callback, callback_args, callback_kwargs):
        if request.path_info.startswith(ANNOTATOR_PATHS):
            return None
        return super().process_view(request, callback, callback_args, callback_kwargs)


class Authentication(ResearcherPathsMixin, AuthenticationMiddleware):
    """Also decides whose large files are read at all; the check of a form's token, which comes later, reads them whole."""

    def process_request(self, request):
        super().process_request(request)
        if request.path_info.startswith(UPLOAD_PATH) and not request.user.is_authenticated:
            refuse_too_large(request)


class Messages(ResearcherPathsMixin, MessageMiddleware):
    pass


class Framing(ResearcherPathsMixin, XFrameOptionsMiddleware):
    """The admin is never framed. A panel may frame annotators' pages, which say by whom."""


class ContentSecurityPolicy(ResearcherPathsMixin, CSPMiddleware):
    pass


class Lockout(ResearcherPathsMixin, AxesMiddleware):
    pass


def client_address(request) -> str:
    """Who asks. X-Forwarded-For is believed as far as TRUSTED_PROXIES of our own wrote it, not a name further."""
    asker = request.META.get("REMOTE_ADDR", "")
    forwarded = [name.strip() for name in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",") if name.strip()]
    proxies = settings.TRUSTED_PROXIES
    return _client_network(forwarded[-proxies] if proxies and len(forwarded) >= proxies else asker)


def _client_network(address: str) -> str:
    """Of IPv6 the network of 64 bits that one customer is given: of the addresses in it they may take a new one each time."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped or ip_address(int(found) >> 64 << 64))
