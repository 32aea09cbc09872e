"""Permissions: one table of actions and roles, and the functions that read it. No other module checks roles.

Administrators (superusers) may do everything in every study. A user who may no longer log in has no roles, even if a session or
token of theirs still exists. A token never allows more than its user may do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import Http404

from .models import Study, StudyMember, audit

Role = StudyMember.Role
OWNERS = frozenset({Role.OWNER})
EDITORS = OWNERS | {Role.EDITOR}
VIEWERS = EDITORS | {Role.VIEWER}
CODERS = EDITORS | {Role.CODER}
MEMBERS = frozenset(Role)


class Action(StrEnum):
    CREATE = "create"
    VIEW_BASICS = "know"
    VIEW = "look"
    CLONE = "clone"
    EDIT = "edit"
    LAUNCH = "launch"
    RUN = "run"
    UNBLIND = "unblind"
    ARCHIVE = "archive"
    SHARE = "share"
    RECRUIT = "recruit"
    PANEL = "panel"
    PAY = "pay"
    MANAGE_ASSIGNMENTS = "decide"
    REJECT = "reject"
    EXPORT = "export"
    ANALYSE = "analyse"
    CANCEL = "cancel"
    SAMPLE = "sample"
    CODE = "code"
    CREATE_TOKEN = "bind"  # noqa: S105 - the name of an action


@dataclass(frozen=True, slots=True)
class Permission:
    """``about``: the object of the action. ``roles``: who may do it; None means every researcher. ``changes``: read-only tokens may not."""

    about: str
    description: str
    roles: frozenset[str] | None
    changes: bool = True


PERMISSIONS: Mapping[Action, Permission] = {
    Action.CREATE: Permission("site", "Make a study: an empty draft, from a template or from a bundle.", None),
    Action.VIEW_BASICS: Permission(
        "study", "Know that it exists, and read what its annotators read.", MEMBERS, changes=False
    ),
    Action.VIEW: Permission(
        "study",
        "See its design, stimuli, progress, log, pay and analyses; take it as a bundle. Until it is closed, only owners and editors read seeds, drawn batches, items, the frozen design, the bundle and the archive.",
        VIEWERS,
        changes=False,
    ),
    Action.CLONE: Permission("study", "Make a draft of one's own with the same design.", VIEWERS),
    Action.EDIT: Permission(
        "study", "Define a draft: words, design, stimuli, answers from a file; try it out.", EDITORS
    ),
    Action.LAUNCH: Permission("study", "Launch it.", EDITORS),
    Action.RUN: Permission(
        "study", "Pause, resume, open more places, amend, close; send its events to webhooks.", EDITORS
    ),
    Action.UNBLIND: Permission("study", "Show outcomes while it collects.", OWNERS),
    Action.ARCHIVE: Permission("study", "Archive it, bring it back, delete a draft.", OWNERS),
    Action.SHARE: Permission(
        "study", "Say who has which role in it; make, list and revoke read-only links to its reports.", OWNERS
    ),
    Action.RECRUIT: Permission("links", "Make, change, stop and delete links; see their addresses.", EDITORS),
    Action.PANEL: Permission(
        "panels", "Keep a panel's token, publish, ask the panel, read its files, rehearse.", EDITORS
    ),
    Action.PAY: Permission("pay", "Write down what is due, order it, mark what was paid, add bonuses.", EDITORS),
    Action.MANAGE_ASSIGNMENTS: Permission(
        "answers",
        "Exclude, take an exclusion back, bar an annotator from further batches, release a place, mark a question as handled.",
        EDITORS,
    ),
    Action.REJECT: Permission("answers", "Approve or reject work at a panel; answer an appeal.", EDITORS),
    Action.EXPORT: Permission(
        "answers", "Read answers and take them as files, unless they are hidden.", VIEWERS, changes=False
    ),
    Action.ANALYSE: Permission(
        "analyses", "Start an analysis, or the making of a file; answer questions of forms.", EDITORS
    ),
    Action.CANCEL: Permission("jobs", "Cancel long work of the study.", EDITORS),
    Action.SAMPLE: Permission("codings", "Draw a sample to code, and name its coders.", EDITORS),
    Action.CODE: Permission("codings", "Have a seat in a sample, and code.", CODERS),
    Action.CREATE_TOKEN: Permission("tokens", "Make a token of one's own that is bound to the study.", VIEWERS),
}


def is_researcher(user) -> bool:
    """Return whether the user may log in to the researchers' pages."""
    return user.is_active and user.is_staff


def is_administrator(user) -> bool:
    """Return whether the user may do everything on the site."""
    return is_researcher(user) and user.is_superuser


def roles_by_study_id(user) -> dict[int, str]:
    """Return the user's role by study id."""
    if not is_researcher(user):
        return {}
    return dict(StudyMember.objects.filter(user=user).values_list("study_id", "role"))


def is_allowed(
    user, action: Action, study: Study | int | None = None, roles_by_study: Mapping[int, str] | None = None
) -> bool:
    """Return whether the user may do this in the study or, without a study, in any. ``roles_by_study``: the user's roles, if already read."""
    if not is_researcher(user):
        return False
    permitted = PERMISSIONS[action].roles
    if user.is_superuser or permitted is None:
        return True
    own_roles = roles_by_study_id(user) if roles_by_study is None else roles_by_study
    if study is None:
        return any(role in permitted for role in own_roles.values())
    return own_roles.get(_pk(study)) in permitted


def may_read_draw(user, study: Study) -> bool:
    """Return whether the user may read what determines the batches of a study that they see. Before it is closed, only editors may."""
    return user is None or study.state == Study.State.CLOSED or is_allowed(user, Action.EDIT, study)


def check_draw_is_readable(user, study: Study) -> None:
    """Raise PermissionDenied if what is asked for would let the user compute the batches of a study that is not closed."""
    if not may_read_draw(user, study):
        raise PermissionDenied(
            "This shows how batches are drawn. Until the study is closed, only its owners and editors read it. "
            "Ask one of them, or wait."
        )


def filter_allowed(user, queryset: QuerySet, action: Action = Action.VIEW, *, token=None) -> QuerySet:
    """Return the rows of the studies in which the user may do this."""
    if not is_researcher(user):
        return queryset.none()
    if token is not None and token.study_id is not None:
        queryset = queryset.filter(**{study_lookup_path(queryset.model): token.study_id})
    if user.is_superuser:
        return queryset
    memberships = StudyMember.objects.filter(user=user, role__in=PERMISSIONS[action].roles or ())
    return queryset.filter(**{f"{study_lookup_path(queryset.model)}__in": memberships.values("study")})


def check_permission_or_404(user, action: Action, study: Study | int | None = None, token=None) -> None:
    """Raise Http404 if the user may not know of the study, and PermissionDenied if they know it but may not do this.

    ``user`` is None if the site itself or its operator's command acts. ``token`` is the API token of the request.
    """
    if user is None:
        return
    if token is not None:
        _check_token(token, action, study)
    roles = roles_by_study_id(user)
    if is_allowed(user, action, study, roles):
        return
    if study is None:
        raise PermissionDenied("Your account does not have this permission. Ask an administrator for it.")
    role = roles.get(_pk(study))
    if role is None:
        raise Http404("This study does not exist.")
    raise PermissionDenied(f"Your role in this study ({role}) does not allow this. Ask an owner for another role.")


def _check_token(token, action: Action, study: Study | int | None) -> None:
    if token.scope != token.Scope.DRAFT:
        check_token_scope(token, PERMISSIONS[action].changes)
    elif PERMISSIONS[action].changes and not (action in _MAKE_DRAFTS or (action in _WRITE_DRAFTS and _is_draft(study))):
        raise PermissionDenied(
            "This token may only make, change and delete drafts. A person does this on the study's page, which the checklist names."
        )
    if token.study_id is None:
        return
    if study is None:
        raise PermissionDenied("This token is bound to one study. Use a token for all your studies.")
    if token.study_id != _pk(study):
        raise Http404("This study does not exist.")


# What a token that is limited to drafts may do. Consent, pay and launch are for a person to decide.
_MAKE_DRAFTS = frozenset({Action.CREATE, Action.CLONE})
_WRITE_DRAFTS = frozenset({Action.EDIT, Action.RECRUIT, Action.CANCEL, Action.ARCHIVE})


def _is_draft(study: Study | int | None) -> bool:
    return study is not None and Study.objects.filter(pk=_pk(study), state=Study.State.DRAFT).exists()


def check_token_scope(token, is_change: bool) -> None:
    """Refuse a change with a token that may not write everything."""
    if is_change and token.scope not in (token.Scope.WRITE, token.Scope.PEOPLE):
        raise PermissionDenied("This token may only read. Use a token that may also write.")


def _pk(study: Study | int) -> int:
    return study.pk if isinstance(study, Study) else study


def get_study(user, action: Action, *, token=None, **lookup: Any) -> Study:
    """Return the study that ``lookup`` finds. Raise Http404 or PermissionDenied like ``check_permission_or_404``."""
    return get_row(user, action, Study.objects.all(), token=token, **lookup)


def get_row(user, action: Action, queryset: QuerySet, *, token=None, **lookup: Any) -> Any:
    """Return one row of a study. A missing row and a row of a hidden study raise the same Http404."""
    row = queryset.filter(**lookup).first()
    if row is None:
        raise Http404("This object does not exist.")
    check_permission_or_404(user, action, study_of(row), token)
    return row


def study_lookup_path(model) -> str:
    """Return the lookup from a row to its study."""
    return getattr(model, "study_path", "study")


def study_of(row) -> Study | None:
    for name in study_lookup_path(type(row)).split("__"):
        if name != "pk" and row is not None:
            row = getattr(row, name)
    return row


def is_owner_or_admin(user, owner_id: int | None) -> bool:
    """Return whether the user may see and end a row without a study, such as a token or a job for the whole site."""
    return is_researcher(user) and (user.is_superuser or owner_id == user.pk)


def check_owner_or_admin_or_404(user, owner_id: int | None) -> None:
    """Raise Http404 if the row is not the user's. ``user`` is None if the site itself acts."""
    if user is not None and not is_owner_or_admin(user, owner_id):
        raise Http404("This object does not exist.")


def filter_own_unless_admin(user, queryset: QuerySet, owner_column: str) -> QuerySet:
    """Return the rows whose ``owner_column`` is the user. Administrators get all rows."""
    if not is_researcher(user):
        return queryset.none()
    return queryset if user.is_superuser else queryset.filter(**{owner_column: user})


# Who has which role


def add_owner(study: Study, user) -> None:
    """Make the user the owner of a new study. A study that a command makes without a user has no owner."""
    if user is not None:
        StudyMember.objects.create(study=study, user=user, role=Role.OWNER)


def add_archived_coder(study: Study, user) -> None:
    """Give an account that nobody can use the role of a coder who could also view the study."""
    StudyMember.objects.create(study=study, user=user, role=Role.EDITOR)


def require_owner_and_distinct_members(member_roles: Sequence[tuple[int, str]]) -> None:
    """Check the roles of a study's people: pairs of (user id, role). Raise ValidationError."""
    people = [user for user, _ in member_roles]
    if len(people) > len(set(people)):
        raise ValidationError("A colleague is listed twice. Delete one of the rows.")
    if not any(role in OWNERS for _, role in member_roles):
        raise ValidationError("A study needs at least one owner. Give one person this role.")


@transaction.atomic
def replace_member_roles(study: Study, by, member_roles: Sequence[tuple[int, str]]) -> None:
    """Give exactly these people these roles; remove all others. Raise ValidationError like ``require_owner_and_distinct_members``."""
    check_permission_or_404(by, Action.SHARE, study)
    require_owner_and_distinct_members(member_roles)
    Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    members = {member.user_id: member for member in study.members.all()}
    new_roles = dict(member_roles)
    study.members.exclude(user__in=new_roles).delete()
    for user, role in new_roles.items():
        member = members.get(user) or StudyMember(study=study, user_id=user)
        if member.role != role or member.pk is None:
            member.role = role
            member.save()
    audit.record_study_event(
        "change roles", study, by=by, roles={member.user.get_username(): member.role for member in members_of(study)}
    )


@transaction.atomic
def invite_colleague(study: Study, by, name: str, role: str) -> tuple[Any, bool]:
    """Give a colleague a role in the study. Return the account, and whether it was made for this.

    A new account has no password: its owner chooses one. Raise ValidationError if the name is not allowed, if the account may not
    log in, or if the study would have no owner left.
    """
    check_permission_or_404(by, Action.SHARE, study)
    accounts = get_user_model()
    account = accounts.objects.filter(username=name).first()
    is_new = account is None
    if account is None:
        account = accounts(username=name, email=name if "@" in name else "", is_staff=True)
        account.set_unusable_password()
        account.full_clean(exclude=["password"])
        account.save()
    elif not is_researcher(account):
        raise ValidationError("This account may not open the researchers' pages. Ask an administrator to allow it.")
    Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
    others = [(member.user_id, member.role) for member in study.members.all() if member.user_id != account.pk]
    require_owner_and_distinct_members([*others, (account.pk, role)])
    StudyMember.objects.update_or_create(study=study, user=account, defaults={"role": role})
    audit.record_study_event("invite", study, by=by, account=name, role=role, is_new_account=is_new)
    return account, is_new


def members_of(study: Study) -> QuerySet[StudyMember]:
    return study.members.select_related("user").order_by("user__username")


def allowed_member_ids(action: Action, study: Study) -> set[int]:
    """Return the ids of members whose role allows this, even if they may no longer log in. Administrators are not included."""
    return set(study.members.filter(role__in=PERMISSIONS[action].roles or ()).values_list("user", flat=True))


def allowed_active_member_users(action: Action, study: Study) -> QuerySet:
    """Return the members whose role allows this and who may still log in, ordered by name."""
    people = get_user_model().objects.filter(pk__in=allowed_member_ids(action, study), is_active=True)
    return people.order_by("username")


def filter_by_role(queryset: QuerySet[Study], user, role: str) -> QuerySet[Study]:
    """Return the studies in which the user has exactly this role."""
    return queryset.filter(pk__in=StudyMember.objects.filter(user=user, role=role).values("study"))


def has_role(user) -> Exists:
    """Return the expression that says of each study of a query whether the user has a role in it."""
    return Exists(StudyMember.objects.filter(user=user, study=OuterRef("pk")))


def owner_names_by_study_id(study_ids) -> dict[int, list[str]]:
    """Return the user names of the owners by study id."""
    owners: dict[int, list[str]] = {}
    rows = StudyMember.objects.filter(study__in=study_ids, role=Role.OWNER).select_related("user").order_by("pk")
    for member in rows:
        owners.setdefault(member.study_id, []).append(member.user.get_username())
    return owners
