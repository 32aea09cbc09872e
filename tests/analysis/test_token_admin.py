"""Tokens are made, shown once, and revoked on their pages."""

import pytest

from studies.models import AuditEvent
from tests import builders
from tests.admin_pages import changed, errors_of, form_of, logged_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return builders.user("olga")


@pytest.fixture
def client(owner):
    return logged_in(owner)


@pytest.fixture
def study(owner):
    return builders.spa_study(owner, with_rating=False, target_n=4)


def test_a_token_is_shown_once_and_stored_as_its_hash(client, owner):
    import hashlib
    import re

    from analysis.models import ApiToken

    data = changed(
        form_of(client.get("/admin/analysis/apitoken/add/"), "apitoken_form"), name="notebook", scope="write"
    )
    html = client.post("/admin/analysis/apitoken/add/", data).content.decode()
    token = re.search(r'value="(heval_[^"]+)"', html)[1]
    row = ApiToken.objects.get()
    assert row.hash == hashlib.sha256(token.encode()).hexdigest() and row.user == owner
    assert token not in client.get("/admin/analysis/apitoken/").content.decode()
    client.post(f"/admin/analysis/apitoken/{row.pk}/revoke/")
    row.refresh_from_db()
    assert row.revoked_at is not None
    assert list(AuditEvent.objects.order_by("pk").values_list("verb", flat=True)) == ["make token", "revoke token"]


def test_a_token_is_its_makers_alone(client, owner):
    from analysis.models import ApiToken

    row = ApiToken.objects.create(user=owner, name="mine", hash="h")
    stranger = logged_in(builders.user("stranger"))
    assert stranger.post(f"/admin/analysis/apitoken/{row.pk}/revoke/").status_code == 404
    assert "mine" not in stranger.get("/admin/analysis/apitoken/").content.decode()


@pytest.mark.parametrize(
    "changes",
    [{"name": ""}, {"name": "\u200b"}, {"expires_at": "2020-01-01T00:00"}, {"scope": "all"}, {"study": "999"}],
)
def test_a_bad_token_is_refused(client, study, changes):
    from analysis.models import ApiToken

    data = changed(form_of(client.get("/admin/analysis/apitoken/add/"), "apitoken_form"), name="x", **{})
    response = client.post("/admin/analysis/apitoken/add/", data | {k: [v] for k, v in changes.items()})
    assert response.status_code == 200 and errors_of(response).strip() and not ApiToken.objects.exists()
