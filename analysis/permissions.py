"""Who may do what over REST: by role in the study, by the token's scope, and never the outcomes of a study that still collects."""

import time

from django.http import Http404
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from studies.limits import is_over
from studies.models import Study, StudyMember

from .models import ApiToken

Role = StudyMember.Role
MEMBERS = (Role.OWNER, Role.EDITOR, Role.VIEWER, Role.CODER)
READERS = (Role.OWNER, Role.EDITOR, Role.VIEWER)  # coders work blind
EDITORS = (Role.OWNER, Role.EDITOR)
COLLECTING = (Study.State.LAUNCHING, Study.State.LAUNCHED, Study.State.PAUSED, Study.State.CLOSING)
NEVER_OUTCOMES = frozenset({"test", "robot"})


class IsResearcher(BasePermission):
    """Somebody who is known; and a token for reading only reads."""

    def has_permission(self, request, view):
        if not request.user or not request.user.is_authenticated:
            return False
        if request.method in SAFE_METHODS or not isinstance(request.auth, ApiToken):
            return True
        if request.auth.scope != ApiToken.Scope.WRITE:
            raise PermissionDenied("This token may only read.")
        return True


def studies_of(request):
    """The studies that this request may know of."""
    studies = Study.objects.visible_to(request.user)
    if isinstance(request.auth, ApiToken) and request.auth.study_id:
        studies = studies.filter(pk=request.auth.study_id)
    return studies


def study_for(request, code, roles) -> Study:
    """The study, if the user's role in it is one of these. What one may not see is not there."""
    study = studies_of(request).filter(code=code).first()
    if study is None:
        raise Http404
    role = role_in(request.user, study)
    if role is not None and role not in roles:
        raise PermissionDenied(f"As {role} of this study you may not do this.")
    return study


def role_in(user, study: Study) -> str | None:
    """The user's role; None for an administrator, who may do everything."""
    if user.is_superuser:
        return None
    return StudyMember.objects.filter(study=study, user=user).values_list("role", flat=True).first() or "no member"


def coded_by(user) -> set[int]:
    """The studies that the user codes, blind."""
    if user.is_superuser:
        return set()
    return set(StudyMember.objects.filter(user=user, role=Role.CODER).values_list("study_id", flat=True))


def is_blind(study: Study) -> bool:
    """Whether answers by system are hidden: the study collects, and nobody has unblinded it, on the record."""
    return study.state in COLLECTING and not study.unblinded_at


def check_outcomes(study: Study, origins) -> None:
    """Refuse answers by system while the study is blind."""
    if not is_blind(study) or set(origins) <= NEVER_OUTCOMES:
        return
    raise PermissionDenied(
        "The study still collects: answers by system are hidden until it is closed or unblinded. "
        "Assignments and progress can be read, and answers of origin test or robot."
    )


def check_may_create(request) -> None:
    """New studies are made by researchers, with a token that is not bound to one study."""
    if isinstance(request.auth, ApiToken) and request.auth.study_id:
        raise PermissionDenied("This token is bound to one study.")
    if not (request.user.is_staff or request.user.is_superuser):
        raise PermissionDenied("Your account may not create studies.")


class TokenThrottle(BaseThrottle):
    """So many requests a minute and token (or user), counted in the shared cache."""

    def allow_request(self, request, view):
        scope = getattr(view, "throttle_scope", "api")
        who = f"t{request.auth.pk}" if isinstance(request.auth, ApiToken) else f"u{request.user.pk}"
        return not is_over(f"api:{scope}:{who}", limit_of(scope))

    def wait(self):
        return 60 - time.time() % 60


def limit_of(scope: str) -> int:
    return int(api_settings.DEFAULT_THROTTLE_RATES[scope].partition("/")[0])
