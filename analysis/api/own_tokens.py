"""API views of tokens: programs make them for other programs, and revoke them."""

from typing import Any

from django.http import Http404
from rest_framework.generics import ListAPIView

from analysis.models import ApiToken
from studies.access import Action, get_study

from . import act_serializers
from .base import ApiView, PostMixin
from .permissions import get_api_token
from .renderers import FieldError
from .tokens import create_token, revoke_token


class TokenView(ApiView):
    tag = "tokens"
    queryset = ApiToken.objects.select_related("study")
    serializer_class: Any = act_serializers.TokenSerializer

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.read_query()

    def get_queryset(self):
        """Return the caller's own tokens. A token that may not make tokens sees itself and those that it has made."""
        rows = super().get_queryset().filter(user=self.request.user)
        token = get_api_token(self.request)
        return rows if token is None or token.may_make_tokens else rows.filter(pk=token.pk)


class TokensView(PostMixin, TokenView, ListAPIView):
    """Your tokens. POST makes one, and alone shows its text. A token makes another only if it may, with at most its own rights."""

    summaries = {"GET": "Tokens", "POST": "Make a token; it is shown only now"}
    body_serializer_class = act_serializers.NewTokenSerializer
    result_serializer_class = act_serializers.TokenMadeSerializer
    success_status = 201

    def perform(self, name: str, scope: str, study: Any = None, **sent: Any) -> ApiToken:
        parent = get_api_token(self.request)
        if study is not None:
            try:
                study = get_study(self.request.user, Action.CREATE_TOKEN, code=study)
            except Http404:
                raise FieldError("study", "You have no study with this code. Send the code of one of yours.") from None
        token: Any
        token, raw = create_token(self.request.user, name, scope=scope, study=study, parent=parent, **sent)
        token.token = raw
        return token

    def name_of_secret(self, data: Any) -> str:
        return f"token {data['number']}"


class RevokeTokenView(PostMixin, TokenView):
    """End a token, and those that it has made."""

    summaries = {"POST": "Revoke a token"}
    lookup_url_kwarg = "number"

    def perform(self) -> ApiToken:
        token = self.get_object()
        revoke_token(token, self.request.user)
        token.refresh_from_db()
        return token
