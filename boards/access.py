"""Permissions of boards: one table of actions and roles. Administrators may do everything. Teams see only their own submissions."""

import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import Http404

from studies.access import is_administrator, is_researcher
from studies.models import audit

from .models import Board, BoardMember, Team

Role = BoardMember.Role
OWNERS = frozenset({Role.OWNER})
EDITORS = OWNERS | {Role.EDITOR}
MEMBERS = EDITORS | {Role.VIEWER}

# Secret scanners recognise a leaked key by this prefix. 256 random bits follow it.
KEY_PREFIX = "heval_team_"
_KEY = re.compile(KEY_PREFIX + r"[A-Za-z0-9_-]{43}")


class BoardAction(StrEnum):
    VIEW = "see the board, its submissions, rounds and results"
    EDIT = "change the board, open it and close it"
    MANAGE_TEAMS = "make teams and revoke them"
    RUN = "open rounds, choose anchors, and take snapshots"
    SHARE = "say who has which role"


PERMISSIONS: Mapping[BoardAction, frozenset[str]] = {
    BoardAction.VIEW: MEMBERS,
    BoardAction.EDIT: OWNERS,
    BoardAction.MANAGE_TEAMS: EDITORS,
    BoardAction.RUN: EDITORS,
    BoardAction.SHARE: OWNERS,
}


def role_in_board(user, board: Board) -> str | None:
    if not is_researcher(user):
        return None
    return BoardMember.objects.filter(board=board, user=user).values_list("role", flat=True).first()


def is_allowed(user, action: BoardAction, board: Board) -> bool:
    """Return whether the user may do this on the board. ``user`` is None if the site itself acts."""
    if user is None:
        return True
    if not is_researcher(user):
        return False
    return is_administrator(user) or role_in_board(user, board) in PERMISSIONS[action]


def check_permission_or_404(user, action: BoardAction, board: Board) -> None:
    """Raise Http404 if the user may not know of the board, and PermissionDenied if they know it but may not do this."""
    if is_allowed(user, action, board):
        return
    role = role_in_board(user, board)
    if role is None:
        raise Http404("This board does not exist.")
    raise PermissionDenied(f"Your role in this board ({role}) does not allow this. Ask an owner for another role.")


def boards_of(user) -> QuerySet[Board]:
    """Return the boards that the user is a member of; all for administrators."""
    if not is_researcher(user):
        return Board.objects.none()
    if is_administrator(user):
        return Board.objects.all()
    return Board.objects.filter(pk__in=BoardMember.objects.filter(user=user).values("board"))


def get_board(user, action: BoardAction, slug: str) -> Board:
    """Return the board with this address. A missing and a hidden board raise the same Http404."""
    board = Board.objects.select_related("template", "owner").filter(slug=slug).first()
    if board is None:
        raise Http404("This board does not exist.")
    check_permission_or_404(user, action, board)
    return board


def get_visible_board(user, slug: str) -> Board:
    """Return a board whose results the user may see: a public one, or one that they are a member of."""
    board = Board.objects.select_related("template").filter(slug=slug).first()
    if board is None or not (board.is_public or is_allowed(user, BoardAction.VIEW, board)):
        raise Http404("This board does not exist.")
    return board


@transaction.atomic
def replace_members(board: Board, by, member_roles: Sequence[tuple[int, str]]) -> None:
    """Give exactly these users these roles; remove all others. Raise ValidationError without an owner or with a repeated user."""
    check_permission_or_404(by, BoardAction.SHARE, board)
    users = [user for user, _ in member_roles]
    if len(users) > len(set(users)):
        raise ValidationError("A colleague is listed twice. Delete one of the rows.")
    if not any(role in OWNERS for _, role in member_roles):
        raise ValidationError("A board needs at least one owner. Give one person this role.")
    Board.objects.select_for_update(no_key=True, of=("self",)).get(pk=board.pk)
    if dict(board.members.values_list("user_id", "role")) == {user: str(role) for user, role in member_roles}:
        return
    board.members.exclude(user__in=users).delete()
    for user, role in member_roles:
        BoardMember.objects.update_or_create(board=board, user_id=user, defaults={"role": role})
    audit.record("change roles of board", by=by, board=board.slug, roles={str(u): str(r) for u, r in member_roles})


# Teams


def hash_of_key(key: str) -> str:
    return sha256(key.encode()).hexdigest()


@transaction.atomic
def create_team(board: Board, by, name: str) -> tuple[Team, str]:
    """Create a team. Return its row and its key, which is not stored and can be shown only now. Raise ValidationError."""
    check_permission_or_404(by, BoardAction.MANAGE_TEAMS, board)
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    team = Team(board=board, name=name, key_hash=hash_of_key(key))
    team.full_clean()
    team.save(force_insert=True)
    audit.record("make team", by=by, board=board.slug, team=name)
    return team, key


@transaction.atomic
def replace_team_key(team: Team, by) -> str:
    """Give a team a new key, so that the old link and token no longer work. A revoked team may submit again. Return the key."""
    check_permission_or_404(by, BoardAction.MANAGE_TEAMS, team.board)
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    Team.objects.filter(pk=team.pk).update(key_hash=hash_of_key(key), revoked_at=None)
    audit.record("replace key of team", by=by, board=team.board.slug, team=team.name)
    return key


@transaction.atomic
def revoke_team(team: Team, by) -> bool:
    """End a team's access; its submissions stay. Return whether it was not revoked before."""
    check_permission_or_404(by, BoardAction.MANAGE_TEAMS, team.board)
    if not Team.objects.filter(pk=team.pk, revoked_at=None).update(revoked_at=Now()):
        return False
    audit.record("revoke team", by=by, board=team.board.slug, team=team.name)
    return True


def find_team(key: str) -> Team | None:
    """Return the team that a key belongs to, or None for a malformed, unknown or revoked key."""
    if not _KEY.fullmatch(key):
        return None
    hashed = hash_of_key(key)
    team = Team.objects.select_related("board__template").filter(key_hash=hashed, revoked_at=None).first()
    return team if team is not None and hmac.compare_digest(team.key_hash, hashed) else None
