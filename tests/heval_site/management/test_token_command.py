"""``heval token`` makes a token on the server."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from analysis.models import ApiToken
from tests.analysis.api.rest import Api
from tests.builders import draft_study, user

pytestmark = pytest.mark.django_db


def made(*words) -> str:
    out = StringIO()
    call_command("token", *words, stdout=out)
    return out.getvalue().strip()


def test_the_token_works_and_says_what_it_is():
    study = draft_study(owner=user("olga"))
    raw = made(
        "olga",
        "--scope",
        "draft",
        "--study",
        str(study.code)[:8],
        "--days",
        "7",
        "--may-make-tokens",
        "--name",
        "nightly",
    )
    assert Api(raw).get(f"studies/{study.code}/").status_code == 200
    token = ApiToken.objects.get()
    assert (token.name, token.scope, token.study, token.may_make_tokens) == ("nightly", "draft", study, True)
    assert timedelta(days=6) < token.expires_at - timezone.now() < timedelta(days=8)
    assert made("olga") != raw and ApiToken.objects.latest("pk").scope == "read"


def test_what_is_wrong_is_said_and_makes_no_token():
    draft_study(owner=user("olga"), title="Hers")
    user("emil")
    for words, said in (
        (("nobody",), "no active researcher “nobody”"),
        (("olga", "--days", "0"), "--days"),
        (("olga", "--study", "none"), "no study none"),
        (("emil", "--study", "Hers"), "no role"),
    ):
        with pytest.raises(CommandError, match=said):
            made(*words)
    assert not ApiToken.objects.exists()
