"""Who is let in over REST, and how often. What a role may is in studies.access, what is hidden in analysis.data.blinding."""

import time

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from analysis.models import ApiToken
from studies.access import check_scope
from studies.services.rate_limits import is_rate_limited


class IsResearcher(BasePermission):
    """Somebody who is known; and a token for reading only reads."""

    def has_permission(self, request, view):
        if not request.user or not request.user.is_authenticated:
            return False
        if token := get_api_token(request):
            check_scope(token, changes=request.method not in SAFE_METHODS)
        return True


def get_api_token(request) -> ApiToken | None:
    """The token by which a program speaks; None in a browser's session."""
    return request.auth if isinstance(request.auth, ApiToken) else None


class TokenThrottle(BaseThrottle):
    """So many requests a minute and token (or user), counted in the shared cache."""

    def allow_request(self, request, view):
        scope = getattr(view, "throttle_scope", "api")
        who = f"t{request.auth.pk}" if isinstance(request.auth, ApiToken) else f"u{request.user.pk}"
        return not is_rate_limited(f"api:{scope}:{who}", limit_of(scope))

    def wait(self):
        return 60 - time.time() % 60


def limit_of(scope: str) -> int:
    return int(api_settings.DEFAULT_THROTTLE_RATES[scope].partition("/")[0])
