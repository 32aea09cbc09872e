"""Permissions and rate limits of the API. See studies.access for roles and analysis.data.blinding for hidden outcomes."""

import time

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from analysis.models import ApiToken
from studies.access import check_token_scope
from studies.services.rate_limits import count_and_check_rate_limit


class IsResearcher(BasePermission):
    """Allow authenticated users. A read token allows only safe methods."""

    def has_permission(self, request, view):
        if not request.user or not request.user.is_authenticated:
            return False
        if token := get_api_token(request):
            check_token_scope(token, is_change=request.method not in SAFE_METHODS)
        return True


def get_api_token(request) -> ApiToken | None:
    """Return the token of the request, or None for a browser session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


class TokenThrottle(BaseThrottle):
    """Limit requests per minute for each token (or user). The count is in the shared cache."""

    def allow_request(self, request, view):
        scope, caller = self.scope_and_caller(request, view)
        return not count_and_check_rate_limit(f"api:{scope}:{caller}", requests_per_minute(scope))

    def scope_and_caller(self, request, view) -> tuple[str, str]:
        """Return the name of the limit, and whose requests are counted."""
        token = get_api_token(request)
        return getattr(view, "throttle_scope", "api"), f"t{token.pk}" if token else f"u{request.user.pk}"

    def wait(self):
        return 60 - time.time() % 60


def requests_per_minute(scope: str) -> int:
    return int(str(api_settings.DEFAULT_THROTTLE_RATES[scope]).partition("/")[0])
