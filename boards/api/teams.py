"""API views of teams: list, make, revoke, give a new key."""

from typing import Any

from django.conf import settings
from django.db.models import Count
from django.http import Http404
from rest_framework.response import Response

from analysis.api.base import document_operation, page_serializer, require_json_object
from analysis.api.query import page_parameters, page_response
from boards import access
from boards.access import BoardAction
from boards.models import Team

from . import serializers as shapes
from .base import BoardView

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
