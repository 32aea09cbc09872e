"""Permissions and rate limits of the API. See studies.access for roles and analysis.data.blinding for hidden outcomes."""

import math
import time

from django.core.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from analysis.models import ApiToken
from studies.access import check_token_scope
from studies.services.rate_limits import count_in_this_minute


class IsResearcher(BasePermission):
    """Allow authenticated users. A read token allows only safe methods."""

    def has_permission(self, request, view):
        if not request.user or not request.user.is_authenticated:
            return False
        if (token := get_api_token(request)) and token.scope != token.Scope.DRAFT:
            # What a token for drafts may change depends on the action, which the view checks with the study.
            check_token_scope(token, is_change=request.method not in SAFE_METHODS)
        return True


def get_api_token(request) -> ApiToken | None:
    """Return the token of the request, or None for a browser session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


def check_people_scope(request) -> None:
    """Refuse a token that may not read or write what names people."""
    token = get_api_token(request)
    if token is not None and token.scope != token.Scope.PEOPLE:
        raise PermissionDenied("This names people. Use a token with the scope “people”.")


def caller_of(request) -> str:
    """Return who sends the request, as limits and repeated requests are counted: a team, a token or a user."""
    if (token := get_api_token(request)) is not None:
        return f"t{token.pk}"
    return f"k{request.auth.pk}" if request.auth is not None else f"u{request.user.pk}"


class TokenThrottle(BaseThrottle):
    """Limit requests per minute for each token (or user). The count is in the shared cache."""

    def allow_request(self, request, view):
        scope, caller = self.scope_and_caller(request, view)
        limit, n = requests_per_minute(scope), count_in_this_minute(f"api:{scope}:{caller}")
        view.rate_limit_headers = {
            "RateLimit-Limit": str(limit),
            "RateLimit-Remaining": str(max(0, limit - n)),
            "RateLimit-Reset": str(math.ceil(self.wait())),
        }
        return n <= limit

    def scope_and_caller(self, request, view) -> tuple[str, str]:
        """Return the name of the limit, and whose requests are counted."""
        return getattr(view, "throttle_scope", "api"), caller_of(request)

    def wait(self):
        return 60 - time.time() % 60


def requests_per_minute(scope: str) -> int:
    return int(str(api_settings.DEFAULT_THROTTLE_RATES[scope]).partition("/")[0])
