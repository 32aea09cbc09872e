"""Tokens of the REST API. A token is shown once when it is created; only its hash is stored."""

import hmac
import re
import secrets
from datetime import datetime, timedelta
from hashlib import sha256

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed

from analysis.models import ApiToken
from studies.access import Action, check_owner_or_admin_or_404, check_permission_or_404
from studies.models import Study, audit
from studies.services.lifecycle import FieldsRefused

# Secret scanners recognise leaked tokens by this prefix. 256 random bits follow it.
PREFIX = "heval_"
_FORM = re.compile(PREFIX.encode() + rb"[A-Za-z0-9_-]{43}")
# A WSGI environment's key for the user as whom the command line on the server acts.
OPERATOR_KEY = "heval.operator"
USED_AT_INTERVAL = timedelta(minutes=1)


# Each scope has the rights of those before it.
_SCOPES = (ApiToken.Scope.READ, ApiToken.Scope.DRAFT, ApiToken.Scope.WRITE, ApiToken.Scope.PEOPLE)


@transaction.atomic
def create_token(
    user,
    name: str,
    *,
    scope: str = ApiToken.Scope.READ,
    study: Study | None = None,
    expires_at: datetime | None = None,
    may_make_tokens: bool = False,
    parent: ApiToken | None = None,
) -> tuple[ApiToken, str]:
    """Create a token. Return its row and its text, which is not stored and can be shown only now.

    ``parent``: the token that makes it. The new one has at most its rights, its study and its life. Raise FieldsRefused.
    """
    if parent is not None:
        _refuse_more_than(parent, scope, study, expires_at)
    if study is not None:
        check_permission_or_404(user, Action.CREATE_TOKEN, study)
    raw = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        hash=_hash(raw.encode()),
        scope=scope,
        study=study,
        expires_at=expires_at,
        may_make_tokens=may_make_tokens,
        parent=parent,
    )
    audit.record("make token", study=study, by=user, token=token.pk, name=name, scope=scope)
    return token, raw


def _refuse_more_than(parent: ApiToken, scope: str, study: Study | None, expires_at: datetime | None) -> None:
    """Raise PermissionDenied or FieldsRefused if a token with these rights could do more than the one that makes it, or longer."""
    if not parent.may_make_tokens:
        raise PermissionDenied(
            "This token may not make tokens. Make one on the page API tokens, or with a token that may."
        )
    errors = {}
    if _SCOPES.index(ApiToken.Scope(scope)) > _SCOPES.index(ApiToken.Scope(parent.scope)):
        errors["scope"] = f"Your own token has the scope “{parent.scope}”. Send this, or a smaller one."
    if parent.study_id is not None and (study is None or study.pk != parent.study_id):
        errors["study"] = "Your own token is bound to one study. Send its code."
    if parent.expires_at is not None and (expires_at is None or expires_at > parent.expires_at):
        errors["expires_at"] = (
            f"Your own token ends at {parent.expires_at.isoformat()}. Send this time, or an earlier one."
        )
    if errors:
        raise FieldsRefused(errors)


@transaction.atomic
def revoke_token(token: ApiToken, by) -> bool:
    """Revoke a token permanently, with those that it has made. Return whether it was not revoked before."""
    check_owner_or_admin_or_404(by, token.user_id)
    if not ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now()):
        return False
    audit.record("revoke token", study=token.study, by=by, token=token.pk, name=token.name)
    generation = [token.pk]
    while generation:
        generation = list(ApiToken.objects.filter(parent__in=generation).values_list("pk", flat=True))
        ApiToken.objects.filter(pk__in=generation, revoked_at=None).update(revoked_at=Now())
    return True


def _hash(raw: bytes) -> str:
    return sha256(raw).hexdigest()


class TokenAuthentication(BaseAuthentication):
    """Authenticate by ``Authorization: Token <token>``. Every token problem gives the same response."""

    def authenticate(self, request):
        header = get_authorization_header(request)
        if not header:
            return None
        token = _find_valid_token(header)
        if token is None:
            raise AuthenticationFailed
        _note_use(token)
        return token.user, token

    def authenticate_header(self, request):
        return "Token"


def _find_valid_token(header: bytes) -> ApiToken | None:
    scheme, _, raw = header.partition(b" ")
    if scheme.lower() != b"token" or not _FORM.fullmatch(raw):
        return None
    hashed = _hash(raw)
    token = ApiToken.objects.select_related("user").filter(hash=hashed).first()
    if token is None or not hmac.compare_digest(token.hash, hashed):
        return None
    is_over = token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= timezone.now())
    return None if is_over or not token.user.is_active else token


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.used_at is None or now - token.used_at >= USED_AT_INTERVAL:
        stale = Q(used_at=None) | Q(used_at__lte=now - USED_AT_INTERVAL)
        ApiToken.objects.filter(stale, pk=token.pk).update(used_at=Now())


class OperatorAuthentication(BaseAuthentication):
    """Authenticate the command line on the server, which calls the application in its own process.

    Headers of a request have names that begin with HTTP_, so no client can set this key.
    """

    def authenticate(self, request):
        user = request.META.get(OPERATOR_KEY)
        return (user, None) if user is not None else None


class OperatorScheme(OpenApiAuthenticationExtension):
    """It is not part of the OpenAPI description, because no client can use it."""

    target_class = OperatorAuthentication
    name: list[str] = []

    def get_security_definition(self, auto_schema):
        return []

    def get_security_requirement(self, auto_schema):
        return None


class TokenScheme(OpenApiAuthenticationExtension):
    """The OpenAPI description of the token authentication."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema):
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "“Token”, a space, and the token (49 characters, starting with heval_).",
        }
