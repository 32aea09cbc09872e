"""Who calls the REST interface of boards: a researcher, a team with its key, or nobody in particular, within rate limits."""

import time
from dataclasses import dataclass
from typing import Any

from axes.helpers import get_client_ip_address
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.throttling import BaseThrottle

from analysis.api.permissions import get_api_token, requests_per_minute
from boards.access import KEY_PREFIX, BoardAction, find_team, is_allowed, role_in_board
from boards.models import Board, Team
from studies.access import check_token_scope, is_researcher
from studies.services.rate_limits import count_and_check_rate_limit


@dataclass(frozen=True, slots=True)
class Caller:
    """A researcher (``user``), a team, or anybody (neither). A token for one study gives no role in any board.

    ``is_anonymous``: the request has no credentials, so that a token may help.
    """

    user: Any = None
    team: Team | None = None
    is_anonymous: bool = False

    def is_member(self, board: Board) -> bool:
        return self.user is not None and is_allowed(self.user, BoardAction.VIEW, board)

    def is_team_of(self, board: Board) -> bool:
        return self.team is not None and self.team.board_id == board.pk

    def sees(self, board: Board) -> bool:
        return board.is_public or self.is_member(board) or self.is_team_of(board)

    def check(self, action: BoardAction, board: Board) -> None:
        """Raise PermissionDenied, unless the caller may do this on a board that they see."""
        if self.user is not None and is_allowed(self.user, action, board):
            return
        role = role_in_board(self.user, board) if self.user is not None else None
        if role is None:
            raise PermissionDenied("Only members of the board may do this. Ask its owner for a role.")
        raise PermissionDenied(f"Your role in this board ({role}) does not allow this. Ask an owner for another role.")


def get_caller(request) -> Caller:
    if isinstance(request.auth, Team):
        return Caller(team=request.auth)
    token = get_api_token(request)
    is_bound = token is not None and token.study_id is not None
    if not request.user.is_authenticated or not is_researcher(request.user) or is_bound:
        return Caller(is_anonymous=not request.user.is_authenticated)
    return Caller(user=request.user)


class TeamKeyAuthentication(BaseAuthentication):
    """Authenticate a team by ``Authorization: Token heval_team_…``. Other tokens are left to the next class."""

    def authenticate(self, request):
        scheme, _, key = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"token" or not key.startswith(KEY_PREFIX.encode()):
            return None
        team = find_team(key.decode("latin-1"))
        # The next class refuses a key that belongs to no team, like any other token.
        return None if team is None else (AnonymousUser(), team)

    def authenticate_header(self, request):
        return "Token"


class TeamKeyScheme(OpenApiAuthenticationExtension):
    """The OpenAPI description of teams' keys."""

    target_class = TeamKeyAuthentication
    name = "team"

    def get_security_definition(self, auto_schema):
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "“Token”, a space, and the key of a team (it starts with heval_team_).",
        }


class BoardPermission(BasePermission):
    """Everybody may ask to read; the view says what they see. Writing needs a key, a token that writes, or a session."""

    def has_permission(self, request, view):
        if isinstance(request.auth, Team):
            return True
        if token := get_api_token(request):
            check_token_scope(token, is_change=request.method not in SAFE_METHODS)
        return request.method in SAFE_METHODS or bool(request.user and request.user.is_authenticated)


class CallerThrottle(BaseThrottle):
    """Limit requests per minute for each team, token, user, or (without any of them) address."""

    def allow_request(self, request, view):
        scope = getattr(view, "write_throttle_scope", "api") if request.method not in SAFE_METHODS else "api"
        if isinstance(request.auth, Team):
            caller = f"k{request.auth.pk}"
        elif token := get_api_token(request):
            caller = f"t{token.pk}"
        elif request.user.is_authenticated:
            caller = f"u{request.user.pk}"
        else:
            scope, caller = "public", f"a{get_client_ip_address(request)}"
        return not count_and_check_rate_limit(f"api:{scope}:{caller}", requests_per_minute(scope))

    def wait(self):
        return 60 - time.time() % 60
