"""API views of teams (list, make, revoke, give a new key), of a board's members, and of a board as one file."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Count
from rest_framework.generics import ListAPIView, RetrieveAPIView

from analysis.api.base import PostMixin
from analysis.api.query import Parameter, parse_single_line
from analysis.api.renderers import RowErrors, row_error
from analysis.api.uploads import require_json_object
from boards import access
from boards.access import BoardAction
from boards.models import Board, Team
from boards.services import boards

from . import serializers as shapes
from .base import BoardView
from .boards import CreateBoardView


class TeamsView(PostMixin, BoardView, ListAPIView):
    """The teams of a board. POST makes one, and shows its key for the only time."""

    readers = "members"
    write_action = BoardAction.MANAGE_TEAMS
    summaries = {"GET": "Teams", "POST": "Make a team; returns its key"}
    queryset = Team.objects.select_related("board").annotate(n_submissions=Count("submissions"))
    serializer_class = shapes.TeamSerializer
    body_serializer_class = shapes.TeamRequestSerializer
    result_serializer_class = shapes.TeamWithKeySerializer
    success_status = 201

    def perform(self, name: str) -> Team:
        team, key = access.create_team(self.board, self.caller.user, name)
        return with_key(self.get_queryset().get(pk=team.pk), key)

    def name_of_secret(self, data: Any) -> str:
        return f"the team {data['name']}"


def with_key(team: Any, key: str) -> Team:
    """Return the team with its key and the address of its page, which only this response shows."""
    team.key = key
    team.link = f"{settings.SITE_URL}/boards/{team.board.slug}/team/{key}/"
    return team


class TeamView(PostMixin, BoardView):
    """An action on one team."""

    write_action = BoardAction.MANAGE_TEAMS
    queryset = TeamsView.queryset
    lookup_url_kwarg = "number"
    serializer_class = shapes.TeamSerializer

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.team = self.get_object()


class RevokeTeamView(TeamView):
    """End the access of a team. Its submissions stay."""

    summaries = {"POST": "Revoke a team"}

    def perform(self) -> Team:
        access.revoke_team(self.team, self.caller.user)
        return self.get_object()


class NewTeamKeyView(TeamView):
    """Give a team a new key. The old one ends, and a revoked team may submit again."""

    summaries = {"POST": "Replace the key of a team"}
    serializer_class = shapes.TeamWithKeySerializer

    def perform(self) -> Team:
        key = access.replace_team_key(self.team, self.caller.user)
        return with_key(self.get_object(), key)

    def name_of_secret(self, data: Any) -> str:
        return f"a key of the team {data['name']}"


class MembersView(BoardView, RetrieveAPIView):
    """The members of a board. PUT gives exactly these people these roles."""

    readers = "members"
    write_action = BoardAction.SHARE
    summaries = {"GET": "Members", "PUT": "Replace the members"}
    serializer_class = body_serializer_class = shapes.MembersSerializer

    def get_object(self) -> dict[str, Any]:
        rows = self.board.members.order_by("user__username").values_list("user__username", "role")
        return {"members": [{"user": user, "role": role} for user, role in rows]}

    def put(self, request, slug):
        sent = self.read_body()["members"]
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
        return self.answer(self.get_object())


class BoardBundleView(BoardView, RetrieveAPIView):
    """A board as one file: its settings and its template. Submissions, rounds, teams and members are not in it."""

    readers = "members"
    summaries = {"GET": "A board as one file"}
    serializer_class = shapes.BoardBundleSerializer

    def get_object(self) -> dict[str, Any]:
        return boards.serialize_board(self.board)


class NewBoardView(CreateBoardView):
    """Create a board and its template from one file, which ``bundle/`` of another board returns."""

    summaries = {"POST": "Create a board from one file"}
    body_parameters = (Parameter("slug", parse_single_line, "The board's address. Default: as in the file."),)
    documented_body = shapes.BoardBundleSerializer

    def create_board(self) -> Board:
        bundle = require_json_object(self.request)
        try:
            return boards.create_board_from_bundle(bundle, self.caller.user, slug=self.values["slug"] or "")
        except boards.BoardBundleRefused as refused:
            raise RowErrors([row_error(None, None, problem) for problem in refused.problems]) from None
