"""Shared parts of the API views of boards: finding the board, who may see what, and idempotent requests."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from axes.helpers import get_client_ip_address
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, SessionAuthentication, get_authorization_header
from rest_framework.exceptions import NotAuthenticated
from rest_framework.parsers import BaseParser
from rest_framework.permissions import SAFE_METHODS, BasePermission

from analysis.api.base import ApiView
from analysis.api.permissions import TokenThrottle, get_api_token
from analysis.api.renderers import BodyTooLarge, refuse_compressed_or_too_large
from analysis.api.tokens import OperatorAuthentication, TokenAuthentication
from analysis.api.uploads import MAX_FIELDS_BYTES, StrictMultiPartParser
from boards.access import KEY_PREFIX, BoardAction, find_team, is_allowed, role_in_board
from boards.models import Board, Submission, Team
from boards.services.submissions import MAX_FILE_BYTES
from studies.access import check_token_scope, is_researcher
from studies.imports.tables.run import MAX_BYTES as MAX_ARCHIVE_BYTES

# Who calls the REST interface of boards: a researcher, a team with its key, or nobody in particular, within rate
# limits.


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


class CallerThrottle(TokenThrottle):
    """Limit requests per minute for each team, token, user, or (without any of them) address."""

    def scope_and_caller(self, request, view):
        scope = "api" if request.method in SAFE_METHODS else getattr(view, "write_throttle_scope", "api")
        if request.auth is None and not request.user.is_authenticated:
            return "public", f"a{get_client_ip_address(request)}"
        return scope, super().scope_and_caller(request, view)[1]


# Parse the form, or the ZIP alone, with which a program uploads a file of outputs.


ZIP = "application/zip"
CHUNK_BYTES = 2**16
MAX_FORM_BYTES = MAX_FILE_BYTES + MAX_FIELDS_BYTES
MAX_IMAGES_FORM_BYTES = MAX_ARCHIVE_BYTES + MAX_FIELDS_BYTES


class SubmissionFormParser(StrictMultiPartParser):
    """Parse multipart/form-data within the size limit of a submission."""

    def max_bytes(self, view):
        board = getattr(view, "board", None)
        return MAX_IMAGES_FORM_BYTES if board is not None and board.takes_images else MAX_FORM_BYTES


@dataclass(frozen=True, slots=True)
class ZipBody:
    """A request whose body is a ZIP. Its fields are in the query."""

    stream: IO[bytes]

    def chunks(self) -> Iterator[bytes]:
        """Return the body in parts, as an uploaded file does. Raise BodyTooLarge behind the size limit."""
        n = 0
        while chunk := self.stream.read(CHUNK_BYTES):
            n += len(chunk)
            if n > MAX_ARCHIVE_BYTES:
                raise BodyTooLarge
            yield chunk


class ZipBodyParser(BaseParser):
    """Parse application/zip within the size limit. Nothing is read here, because an archive is too large for the memory."""

    media_type = ZIP

    def parse(self, stream, media_type=None, parser_context: Any = None):
        refuse_compressed_or_too_large(parser_context["request"], MAX_ARCHIVE_BYTES)
        return ZipBody(stream)


class BoardsAPIView(ApiView):
    """A resource that reads without a token where the board is public."""

    tag = "boards"
    is_public = True
    authentication_classes = (
        TeamKeyAuthentication,
        OperatorAuthentication,
        TokenAuthentication,
        SessionAuthentication,
    )
    permission_classes = (BoardPermission,)
    throttle_classes = (CallerThrottle,)
    caller: Caller

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.caller = get_caller(request)
        self.read_query()

    def shows_settings(self, board: Board) -> bool:
        """Return whether the caller sees the settings. Only members change a board."""
        return not self.is_read or self.caller.is_member(board)

    def finalize_response(self, request, response, *args, **kwargs):
        response = super().finalize_response(request, response, *args, **kwargs)
        # Public pages have their own rules; what REST sends depends on the caller.
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class BoardView(BoardsAPIView):
    """A resource of one board. Who does not see the board gets 404 before any method runs."""

    # Who may read: "everybody" who sees the board, its "submitters" (teams and members), or its "members".
    readers = "everybody"
    write_action: BoardAction | None = None

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.board = find_board(self.caller, kwargs["slug"])
        if not self.is_read:
            if self.write_action is not None:
                self.caller.check(self.write_action, self.board)
        elif self.readers == "members" or (self.readers == "submitters" and not self.caller.is_team_of(self.board)):
            if self.caller.is_anonymous:
                raise NotAuthenticated
            self.caller.check(BoardAction.VIEW, self.board)

    def get_queryset(self) -> QuerySet[Any]:
        return super().get_queryset().filter(board=self.board)

    @property
    def is_member(self) -> bool:
        return self.caller.is_member(self.board)


def find_board(caller: Caller, slug: str) -> Board:
    """Return a board that the caller sees. A missing and a hidden one raise the same error."""
    board = Board.objects.select_related("template", "owner").filter(slug=slug).first()
    if board is not None and caller.sees(board):
        return board
    if caller.is_anonymous:
        raise NotAuthenticated
    raise Http404


def own_submissions(caller: Caller, board: Board):
    """Return the submissions of which the caller may know everything."""
    if caller.is_member(board):
        return board.submissions.all()
    return (
        Submission.objects.filter(board=board, team=caller.team)
        if caller.is_team_of(board)
        else Submission.objects.none()
    )
