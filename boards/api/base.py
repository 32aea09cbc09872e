"""Shared parts of the API views of boards: finding the board, who may see what, and idempotent requests."""

from hashlib import sha256

from django.http import Http404
from rest_framework.authentication import SessionAuthentication
from rest_framework.exceptions import NotAuthenticated
from rest_framework.response import Response
from rest_framework.views import APIView

from analysis.api.query import Parameter, read_query
from analysis.api.serializers import JobSerializer
from analysis.api.tokens import TokenAuthentication
from boards.access import BoardAction
from boards.models import Board, Submission
from studies.models import Job

from .callers import BoardPermission, Caller, CallerThrottle, TeamKeyAuthentication, get_caller


class BoardsAPIView(APIView):
    """A resource that reads without a token where the board is public."""

    authentication_classes = (TeamKeyAuthentication, TokenAuthentication, SessionAuthentication)
    permission_classes = (BoardPermission,)
    throttle_classes = (CallerThrottle,)
    parameters: tuple[Parameter, ...] = ()
    caller: Caller

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.caller = get_caller(request)
        is_read = request.method in ("GET", "HEAD")
        self.values = read_query(request, self.parameters if is_read else self.parameters_of_body(request))

    def parameters_of_body(self, request) -> tuple[Parameter, ...]:
        """Return the query parameters of a request that changes something: those of a body that cannot hold fields."""
        return ()

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
        if request.method not in ("GET", "HEAD"):
            if self.write_action is not None:
                self.caller.check(self.write_action, self.board)
        elif self.readers == "members" or (self.readers == "submitters" and not self.caller.is_team_of(self.board)):
            if self.caller.is_anonymous:
                raise NotAuthenticated
            self.caller.check(BoardAction.VIEW, self.board)

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


def hashed_idempotency_key(request, *scope: object) -> str | None:
    """Return a token from the Idempotency-Key header, or None. Requests with the same key in the same scope get the same result."""
    key = request.headers.get("Idempotency-Key", "")
    return sha256(" ".join([*map(str, scope), key]).encode("utf-8", "replace")).hexdigest() if key else None


def accepted_job_response(job: Job) -> Response:
    return Response(JobSerializer(Job.objects.get(pk=job.pk)).data, status=202)
