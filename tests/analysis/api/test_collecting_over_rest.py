"""What researchers do while a study collects, over REST: test runs, pay, the panel, and messages of annotators."""

import pytest

from analysis.data.flat_rows import assignment_pseudonym
from annotators.models import Inquiry, Payment
from annotators.models.identity import store_person_id
from studies.models import AuditEvent
from tests.builders import panel, recruitment, spa_draft, spa_study, user
from tests.players import submitted

from .rest import api_of

pytestmark = pytest.mark.django_db


def done(answer, status=200):
    assert answer.status_code == status, answer.body.decode()
    return answer.json()


def errors_of(answer, status=400) -> dict:
    return {error["field"]: error["message"] for error in done(answer, status)["errors"]}


@pytest.fixture
def olga():
    return user("olga")


@pytest.fixture
def api(olga):
    return api_of(olga)


@pytest.fixture
def link(olga):
    """A link of a panel, by which one person came."""
    made = panel(spa_study(olga, target_n=12))
    store_person_id(submitted(made.study, "a", recruitment=made).annotator, "RAW-PERSON")
    return made


@pytest.fixture
def at_prolific(olga):
    """A link of a panel that heval can ask."""
    made = recruitment(spa_study(olga, target_n=12), "prolific", settings={"code_complete": "A2K7PQ"})
    return f"studies/{made.study.code}/links/{made.key}/"


@pytest.fixture
def at(link):
    return f"studies/{link.study.code}/links/{link.key}/"


def test_a_test_run_is_started_and_deleted(api, olga, client):
    study = spa_draft(owner=olga)
    at = f"studies/{study.code}/test-runs/"
    assert "no arm “b”" in errors_of(api.post(at, {"arm": "b"}))["arm"]
    run = done(api.post(at, {"arm": "all"}), 201)
    assert client.get(run["address"].partition("/p/")[1] + run["address"].partition("/p/")[2]).status_code in (200, 302)
    assert done(api.get(at))["results"] == [run]
    assert done(api.send("DELETE", at)) == {"removed": {"test_runs": 1}}
    assert done(api.get(at))["results"] == []


def test_what_is_due_is_recorded_once_and_marked_as_paid(api, at, link):
    expected = {"due": 1, "amount": "2.50", "currency": "USD", "paid": 0, "failed": 0, "cancelled": 0}
    assert done(api.post(f"{at}payments/settle/", {"is_dry_run": True})) == expected
    assert not Payment.objects.exists()
    assert done(api.post(f"{at}payments/settle/", {})) == expected
    assert done(api.post(f"{at}payments/settle/", {}))["due"] == 0
    (payment,) = done(api.get(f"studies/{link.study.code}/payments/"))["results"]
    assert "RAW-PERSON" in api.get(f"{at}payments.csv").body.decode()
    paid = f"{at}payments/paid/"
    assert done(api.post(paid, {"payments": [payment["number"]]})) == {"changed": 1, "total": None}
    assert done(api.post(paid, {"payments": [payment["number"]]}))["changed"] == 0
    assert Payment.objects.get().state == "paid"


def test_a_bonus_is_recorded_once_and_taken_back(api, at, link):
    name = assignment_pseudonym(link.study.assignments.get().code)
    sent = {"bonuses": [{"assignment": name, "amount": "1.20", "reason": "A good, long answer."}]}
    assert done(api.post(f"{at}bonuses/", {**sent, "is_dry_run": True})) == {"changed": 1, "total": "1.20"}
    assert not Payment.objects.exists()
    assert done(api.post(f"{at}bonuses/", sent)) == {"changed": 1, "total": "1.20"}
    bonus = Payment.objects.get(kind="bonus")
    assert (bonus.amount, bonus.reason) == (bonus.amount, "A good, long answer.")
    assert "already recorded" in errors_of(api.post(f"{at}bonuses/", sent))["bonuses"]
    assert (
        "no assignment"
        in errors_of(api.post(f"{at}bonuses/", {"bonuses": [sent["bonuses"][0] | {"assignment": "x"}]}))["assignments"]
    )
    numbers = list(Payment.objects.values_list("pk", flat=True))
    assert done(api.post(f"{at}payments/cancel/", {"payments": numbers}))["changed"] == 1
    bonus.refresh_from_db()
    assert bonus.state == "cancelled"


def test_a_panel_shows_when_a_secret_was_stored_and_never_the_secret(api, at_prolific):
    assert done(api.get(f"{at_prolific}panel/"))["secrets"] == {"token": None}
    shown = done(api.patch(f"{at_prolific}panel/", {"secrets": {"token": "SECRET-TOKEN"}}))
    assert shown["secrets"]["token"] and "SECRET-TOKEN" not in str(shown)
    assert "no such secret" in errors_of(api.patch(f"{at_prolific}panel/", {"secrets": {"key": "x"}}))["secrets.key"]
    assert done(api.patch(f"{at_prolific}panel/", {"secrets": {"token": None}}))["secrets"] == {"token": None}
    assert "token" in done(api.post(f"{at_prolific}panel/ask/", {}), 409)["detail"]


def test_publishing_needs_the_confirmed_cost(api, at_prolific, settings):
    settings.SITE_URL = "https://eval.example.org"
    task = {"title": "Stories", "description": "Read.", "places": 4, "minutes": 10, "reward": "2.50"}
    planned = done(api.post(f"{at_prolific}panel/publish/", {**task, "is_dry_run": True}))
    assert (planned["order"], planned["total"]) == (None, "10.00")
    assert "10.00" in errors_of(api.post(f"{at_prolific}panel/publish/", task))["total"]
    done(api.patch(f"{at_prolific}panel/", {"secrets": {"token": "T" * 40}}))
    ordered = done(api.post(f"{at_prolific}panel/publish/", {**task, "total": "10"}))
    (order,) = (one for one in done(api.get(f"{at_prolific}panel/"))["orders"] if one["operation"] == "publish")
    assert (order["number"], order["state"]) == (ordered["order"], "waiting")
    shown = done(api.post(f"{at_prolific}panel/orders/{order['number']}/cancel/", None))
    assert shown["orders"][0]["state"] == "cancelled"
    done(api.post(f"{at_prolific}panel/orders/{order['number']}/cancel/", None), 409)


def test_rounds_are_planned_within_the_target(api, at_prolific):
    sent = {"people": 12, "round_places": 4}
    assert done(api.post(f"{at_prolific}panel/rounds/", sent))["plan"] == sent | {"lost_percent": 0}
    assert "needs only 12" in errors_of(api.post(f"{at_prolific}panel/rounds/", sent | {"people": 13}))["people"]
    done(api.post(f"{at_prolific}panel/rounds/repeat/", None), 409)


def test_what_names_people_needs_a_token_for_it_and_is_logged(api, olga, at, link):
    study = link.study
    inquiry = Inquiry.objects.create(assignment=study.assignments.get(), kind="question", text="Is this right?")
    base, writes = f"studies/{study.code}/", api_of(olga, scope="write")
    for method, path, body in (
        ("GET", f"{base}inquiries/", None),
        ("POST", f"{base}inquiries/{inquiry.pk}/handle/", {}),
        ("GET", f"{at}payments.csv", None),
        ("POST", f"{base}invite/", {"account": "otto", "role": "viewer"}),
        ("POST", f"{at}panel/file/", {}),
    ):
        assert "scope “people”" in done(writes.send(method, path, body), 403)["detail"], path
    assert not AuditEvent.objects.filter(verb="read messages by a program").exists()
    (shown,) = done(api.get(f"{base}inquiries/"))["results"]
    assert (shown["text"], shown["assignment"]) == (inquiry.text, assignment_pseudonym(inquiry.assignment.code))
    assert done(api.post(f"{base}inquiries/{inquiry.pk}/handle/", {}))["handled_at"]
    api.get(f"{at}payments.csv")
    verbs = set(AuditEvent.objects.filter(study=study, by=olga).values_list("verb", flat=True))
    assert {"read messages by a program", "take payment file", "handle inquiry"} <= verbs
