"""Tokens: what is kept of them, and every way in which one is refused alike."""

import re
from datetime import timedelta
from hashlib import sha256

import pytest
from django.test import Client
from django.utils import timezone

from analysis.api.tokens import create_token, revoke_token
from analysis.models import ApiToken
from studies.models import AuditEvent
from tests.builders import draft_study, launched, spa_draft, user

from .rest import Api, api_of

pytestmark = pytest.mark.django_db


def test_only_the_hash_of_a_token_is_kept():
    token, raw = create_token(user(), "notebook")
    assert raw.startswith("heval_") and len(raw) == 6 + 43
    assert token.hash == sha256(raw.encode()).hexdigest()
    stored = ApiToken.objects.filter(pk=token.pk).values().get()
    assert raw not in str(stored)
    assert raw not in str(list(AuditEvent.objects.values()))


def test_tokens_do_not_repeat():
    owner = user()
    assert len({create_token(owner, "t")[1] for _ in range(200)}) == 200


BAD_HEADERS = (
    "Token", "Token ", "Token x", "Token {raw}x", "Token {short}", "Token  {raw}", "token={raw}", "Bearer {raw}", "Basic {raw}",
    "{raw}", "Token {raw}, Token {raw}", "Token {raw} {raw}", "Token {other}", "Token {raw}\u00e9", "Token {raw}\n", "Digest",
)  # fmt: skip


@pytest.mark.parametrize("header", BAD_HEADERS)
def test_a_header_that_is_no_valid_token_is_refused_alike(header):
    _, raw = create_token(user(), "t")
    sent = header.format(raw=raw, short=raw[:-1], other="heval_" + "A" * 43)
    answer = Api().get("studies/", Authorization=sent)
    expected = Api().get("studies/")
    assert (answer.status_code, answer.content, answer["WWW-Authenticate"]) == (401, expected.content, "Token")


def test_expired_revoked_unknown_and_inactive_are_refused_with_the_same_words():
    who, gone = user(), user("gone")
    revoked, raw = create_token(who, "t")
    revoke_token(revoked, who)
    inactive = api_of(gone)
    type(gone).objects.filter(pk=gone.pk).update(is_active=False)
    expired = api_of(who, expires_at=timezone.now() - timedelta(seconds=1))
    answers = {api.get("studies/").content for api in (Api(raw), inactive, expired, Api("heval_" + "B" * 43), Api())}
    assert len(answers) == 1
    assert AuditEvent.objects.filter(verb="revoke token", by=who).count() == 1


def test_a_valid_token_is_let_in_until_the_moment_it_expires():
    assert api_of(user(), expires_at=timezone.now() + timedelta(hours=1)).get("studies/").status_code == 200


@pytest.mark.parametrize("name", ["token", "access_token", "auth_token", "Authorization", "api_key"])
def test_a_token_in_the_address_is_refused(name):
    _, raw = create_token(user(), "t")
    assert Api().get(f"studies/?{name}={raw}").status_code == 401
    answer = Api(raw).get(f"studies/?{name}={raw}")
    assert answer.status_code == 400
    assert raw not in answer.content.decode()


def test_the_last_use_is_written_at_most_once_a_minute():
    token, raw = create_token(user(), "t")

    def used():
        Api(raw).get("studies/")
        return ApiToken.objects.get(pk=token.pk).used_at

    first = used()
    assert first is not None
    assert used() == first
    earlier = first - timedelta(seconds=90)
    ApiToken.objects.filter(pk=token.pk).update(used_at=earlier)
    assert used() > earlier


def test_a_token_bound_to_a_study_sees_that_study_alone():
    owner = user()
    one, other = draft_study(owner=owner), draft_study(owner=owner)
    api = api_of(owner, study=one)
    assert [row["code"] for row in api.get("studies/").json()["results"]] == [str(one.code)]
    assert api.get(f"studies/{one.code}/").status_code == 200
    assert api.get(f"studies/{other.code}/").status_code == 404


def test_a_bound_token_of_somebody_who_is_no_member_any_more_sees_nothing():
    owner = user()
    study = draft_study(owner=owner)
    api = api_of(owner, study=study)
    study.members.all().delete()
    assert api.get(f"studies/{study.code}/").status_code == 404
    assert api.get("studies/").json()["results"] == []


def test_a_bad_token_is_refused_even_beside_a_good_session():
    from django.test import Client

    client = Client()
    client.force_login(user(), backend="django.contrib.auth.backends.ModelBackend")
    assert Api(client=client).get("studies/").status_code == 200
    assert Api("heval_" + "C" * 43, client=client).get("studies/").status_code == 401


def test_the_page_that_shows_a_token_says_how_to_send_it():
    client = Client()
    client.force_login(user("tess"))
    made = client.post(
        "/admin/analysis/apitoken/add/", {"name": "script", "scope": "read"}, follow=True
    ).content.decode()
    raw = re.search(r'id="token" value="([^"]+)"', made)[1]
    header = re.search(r"Authorization: (\w+ )…", made)[1] + raw
    assert Client().get("/api/v1/studies/", headers={"Authorization": header}).status_code == 200


def made(api, **sent):
    answer = api.post("tokens/", {"name": "a program"} | sent)
    return answer, Api(answer.json()["token"]) if answer.status_code == 201 else None


def test_a_token_makes_another_with_at_most_its_own_rights_study_and_life():
    olga = user("olga")
    study, other, soon = draft_study(owner=olga), draft_study(owner=olga), timezone.now() + timedelta(days=2)
    plain = api_of(olga)
    assert made(plain)[0].status_code == 403
    maker = api_of(olga, may_make_tokens=True, scope="draft", study=study, expires_at=soon)
    code, end = str(study.code), soon.isoformat()
    answer, child = made(maker, scope="draft", study=code, expires_at=end)
    assert answer.status_code == 201 and answer.json()["made_by"] and answer.json()["may_make_tokens"] is False
    assert child.get(f"studies/{study.code}/").status_code == 200 and made(child)[0].status_code == 403
    for wrong, field in (
        ({"scope": "write", "study": code, "expires_at": end}, "scope"),
        ({"scope": "read", "expires_at": end}, "study"),
        ({"scope": "read", "study": str(other.code), "expires_at": end}, "study"),
        ({"scope": "read", "study": code}, "expires_at"),
        ({"scope": "read", "study": code, "expires_at": (soon + timedelta(seconds=1)).isoformat()}, "expires_at"),
        ({"scope": "all"}, "scope"),
        ({"study": "0" * 8}, "study"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ):
        refused = made(maker, **wrong)[0]
        assert refused.status_code == 400 and refused.json()["errors"][0]["field"] == field, (wrong, refused.content)
    assert ApiToken.objects.filter(parent__isnull=False).count() == 1


def test_revoking_a_token_revokes_those_that_it_has_made():
    olga = user("olga")
    first, raw = create_token(olga, "first", scope="write", may_make_tokens=True)
    answer, second = made(Api(raw), scope="write", may_make_tokens=True)
    _, third = made(second, scope="read")
    assert third.get("studies/").status_code == 200
    assert api_of(olga, may_make_tokens=True).post(f"tokens/{first.pk}/revoke/", None).json()["revoked_at"]
    assert {one.get("studies/").status_code for one in (Api(raw), second, third)} == {401}
    assert answer.json()["number"] in [
        one["number"] for one in api_of(olga, may_make_tokens=True).get("tokens/").json()["results"]
    ]


def test_a_token_sees_and_revokes_only_what_is_its_own():
    olga, emil = user("olga"), user("emil")
    theirs, _ = create_token(emil, "theirs")
    mine, raw = create_token(olga, "mine", scope="write")
    create_token(olga, "another of mine")
    api = Api(raw)
    assert [one["number"] for one in api.get("tokens/").json()["results"]] == [mine.pk]
    assert api.post(f"tokens/{theirs.pk}/revoke/", None).status_code == 404
    assert api.post(f"tokens/{mine.pk}/revoke/", None).json()["revoked_at"] and api.get("studies/").status_code == 401


def test_a_token_for_drafts_defines_a_study_and_a_person_launches_it():
    olga = user("olga")
    api = api_of(olga, scope="draft")
    made_draft = api.post("studies/", {"title": "A draft"})
    at = f"studies/{made_draft.json()['code']}/"
    assert made_draft.status_code == 201 and api.patch(at, {"minutes": 5}).status_code == 200
    assert api.post(f"{at}systems/", {"name": "new"}).status_code == 201
    assert api.post(f"{at}links/", {"channel": "open_link"}).status_code == 201
    assert api.get(f"{at}links/").json()["results"][0]["address"] and api.get(f"{at}checklist/").status_code == 200
    for path, body in (
        (f"{at}launch/", {}),
        (f"{at}invite/", {"account": "x", "role": "viewer"}),
    ):
        refused = api.post(path, body)
        assert refused.status_code == 403 and "only make, change and delete drafts" in refused.json()["detail"], path
    assert api.send("DELETE", at, None).status_code == 200
    launched_study = launched(spa_draft(owner=olga, with_surveys=False, with_rating=False), olga)
    there = f"studies/{launched_study.code}/"
    assert api.get(there).status_code == 200 and api.post(f"{there}clone/", {"title": "A copy"}).status_code == 201
    assert {api.post(f"{there}{act}/", {}).status_code for act in ("pause", "close", "places")} == {403}
    assert api.post(f"{there}links/", {"channel": "open_link"}).status_code == 403
    assert api.post("boards/new/", {}).status_code == 403


def test_what_a_token_made_is_deleted_with_it():
    emil = user("emil")
    _, raw = create_token(emil, "first", scope="write", may_make_tokens=True)
    assert made(Api(raw))[0].status_code == 201
    assert ApiToken.objects.filter(user=emil).count() == 2
    ApiToken.objects.filter(user=emil, parent=None).delete()
    assert not ApiToken.objects.filter(user=emil).exists()
