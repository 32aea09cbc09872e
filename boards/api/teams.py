"""API views of teams: list, make, revoke, give a new key."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.http import Http404
from rest_framework.response import Response

from analysis.api.base import document_operation, page_serializer, require_json_object
from analysis.api.query import Parameter, page_parameters, page_response, parse_single_line
from analysis.api.renderers import RowErrors, row_error
from boards import access
from boards.access import BoardAction
from boards.models import Board, Team
from boards.services import boards

from . import serializers as shapes
from .base import BoardsAPIView, BoardView
from .boards import board_response

TAG = "boards"


def team_json(team: Team, key: str = "") -> dict[str, Any]:
    fields = {
        "number": team.pk,
        "name": team.name,
        "created_at": team.created_at,
        "revoked_at": team.revoked_at,
        "submissions": team.n_submissions,  # type: ignore[attr-defined]  # annotated
    }
    return fields | ({"key": key, "link": team_link(team, key)} if key else {})


def team_link(team: Team, key: str) -> str:
    """Return the address of the team's page."""
    return f"{settings.SITE_URL}/boards/{team.board.slug}/team/{key}/"


def _counted(board):
    return Team.objects.filter(board=board).select_related("board").annotate(n_submissions=Count("submissions"))


class TeamsView(BoardView):
    """The teams of a board. POST makes one, and shows its key for the only time."""

    readers = "members"
    write_action = BoardAction.MANAGE_TEAMS
    parameters = page_parameters()

    @document_operation("Teams", page_serializer("Team", shapes.TeamSerializer), parameters=parameters, tag=TAG)
    def get(self, request, slug):
        page = _counted(self.board).filter(pk__gt=self.values["cursor"][0]).order_by("pk")
        rows = [(team.pk, team_json(team)) for team in page[: self.values["page_size"] + 1]]
        return page_response(request, self.values, rows)

    @document_operation(
        "Make a team; returns its key",
        shapes.TeamWithKeySerializer,
        request=shapes.TeamRequestSerializer,
        status=201,
        tag=TAG,
    )
    def post(self, request, slug):
        wanted = shapes.TeamRequestSerializer(data=require_json_object(request))
        wanted.is_valid(raise_exception=True)
        team, key = access.create_team(self.board, self.caller.user, wanted.validated_data["name"])
        return Response(team_json(_counted(self.board).get(pk=team.pk), key), status=201)


class TeamView(BoardView):
    """A resource of one team."""

    write_action = BoardAction.MANAGE_TEAMS

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        team = _counted(self.board).filter(pk=kwargs["number"]).first()
        if team is None:
            raise Http404
        self.team = team

    def team_response(self, key: str = "") -> Response:
        return Response(team_json(_counted(self.board).get(pk=self.team.pk), key))


class RevokeTeamView(TeamView):
    """End the access of a team. Its submissions stay."""

    @document_operation("Revoke a team", shapes.TeamSerializer, request={}, tag=TAG)
    def post(self, request, slug, number):
        access.revoke_team(self.team, self.caller.user)
        return self.team_response()


class NewTeamKeyView(TeamView):
    """Give a team a new key. The old one ends, and a revoked team may submit again."""

    @document_operation("Replace the key of a team", shapes.TeamWithKeySerializer, request={}, tag=TAG)
    def post(self, request, slug, number):
        return self.team_response(access.replace_team_key(self.team, self.caller.user))


# API views of a board's members, and of a board as one file.


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
        return Response(boards.serialize_board(self.board))


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
            board = boards.create_board_from_bundle(bundle, self.caller.user, slug=self.values["slug"] or "")
        except boards.BoardBundleRefused as refused:
            raise RowErrors([row_error(None, None, problem) for problem in refused.problems]) from None
        return board_response(board, status=201)
