"""API views of a board's members, and of a board as one file."""

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from rest_framework.response import Response

from analysis.api.base import document_operation, require_json_object
from analysis.api.query import Parameter, parse_single_line
from analysis.api.renderers import RowErrors, row_error
from boards import access
from boards.access import BoardAction
from boards.models import Board
from boards.services import bundles

from . import serializers as shapes
from .base import BoardsAPIView, BoardView
from .boards import board_response

TAG = "boards"


class MembersView(BoardView):
    """The members of a board. PUT gives exactly these people these roles."""

    readers = "members"
    write_action = BoardAction.SHARE

    @document_operation("Members", shapes.MembersSerializer, tag=TAG)
    def get(self, request, slug):
        return _members_response(self.board)

    @document_operation("Replace the members", shapes.MembersSerializer, request=shapes.MembersSerializer, tag=TAG)
    def put(self, request, slug):
        form = shapes.MembersSerializer(data=require_json_object(request))
        form.is_valid(raise_exception=True)
        sent = form.validated_data["members"]
        people = get_user_model().objects.filter(is_active=True, is_staff=True)
        ids = dict(people.filter(username__in=[row["user"] for row in sent]).values_list("username", "pk"))
        errors = [
            row_error(number, "user", "This is not a researcher of this site. Send the name that they log in with.")
            for number, row in enumerate(sent, 1)
            if row["user"] not in ids
        ]
        if errors:
            raise RowErrors(errors)
        access.replace_members(self.board, self.caller.user, [(ids[row["user"]], row["role"]) for row in sent])
        return _members_response(self.board)


def _members_response(board: Board) -> Response:
    rows = board.members.order_by("user__username").values_list("user__username", "role")
    return Response({"members": [{"user": user, "role": role} for user, role in rows]})


class BoardBundleView(BoardView):
    """A board as one file: its settings and its template. Submissions, rounds, teams and members are not in it."""

    readers = "members"

    @document_operation("A board as one file", shapes.BoardBundleSerializer, tag=TAG)
    def get(self, request, slug):
        return Response(bundles.serialize_board(self.board))


class NewBoardView(BoardsAPIView):
    """Create a board and its template from one file, which ``bundle/`` of another board returns."""

    slug_parameter = (Parameter("slug", parse_single_line, "The board's address. Default: as in the file."),)

    def parameters_of_body(self, request):
        return self.slug_parameter

    @document_operation(
        "Create a board from one file",
        shapes.BoardSerializer,
        request=shapes.BoardBundleSerializer,
        parameters=slug_parameter,
        status=201,
        tag=TAG,
    )
    def post(self, request):
        if self.caller.user is None:
            raise PermissionDenied("Only a researcher can create a board. Send the token of a researcher.")
        bundle = require_json_object(request)
        try:
            board = bundles.create_board_from_bundle(bundle, self.caller.user, slug=self.values["slug"] or "")
        except bundles.BoardBundleRefused as refused:
            raise RowErrors([row_error(None, None, problem) for problem in refused.problems]) from None
        return board_response(board, status=201)
