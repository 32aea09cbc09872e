"""What Prolific sends by itself: believed where it is signed, done once, and looked up before anything follows from it."""

import pytest
from django.core.cache import cache
from django.test import Client

from annotators import tasks
from annotators.models import Assignment, PanelEvent, PanelSecret, PanelSubmission, PanelTask, Recruitment
from annotators.recruitment.channels.prolific.stand_in import TOKEN, ProlificStandIn
from annotators.recruitment.panels import RequestRefused, SubmissionSnapshot, sync
from annotators.recruitment.panels.http_client import (
    WEBHOOK_SECRET,
    decrypt_panel_secret,
    has_service_secret,
    store_or_delete_secrets,
)
from studies.models import Job
from studies.services import jobs
from tests.admin_pages import logged_in
from tests.builders import spa_study, user
from tests.players import claimed

pytestmark = pytest.mark.django_db
SECRET = "whsec_test"
PERSON, OTHER = "5f1a" * 6, "6f1a" * 6
# The vector that Prolific's way of signing was measured with.
RAW = b'{"resource_id":"66f0","event_type":"submission.status.change","participant_id":"5f1a","status":"RETURNED"}'
SIGNED = {
    "X-Prolific-Request-Signature": "hk6U8Vh9RBAPZ89+N48Ou1LWglirxZ6j+1+kOsRxrU4=",
    "X-Prolific-Request-Timestamp": "1795229881",
    "X-Event-ID": "ev1",
}


@pytest.fixture
def fake(settings):
    cache.clear()
    with ProlificStandIn() as fake:
        settings.PROLIFIC_API, settings.SITE_URL = fake.url, "https://eval.example.org"
        yield fake


@pytest.fixture
def recruitment(fake):
    made = Recruitment.objects.create(
        study=spa_study(user("owner"), target_n=12),
        channel="prolific",
        pool="panel",
        settings={"code_complete": "A2K7PQ"},
    )
    store_or_delete_secrets(made, {"token": TOKEN, WEBHOOK_SECRET: SECRET}, by=None)
    PanelTask.objects.create(recruitment=made, external_id=fake.add_study())
    return made


def sent(recruitment, raw=RAW, **headers):
    told = SIGNED | headers
    return Client(enforce_csrf_checks=True).post(
        f"/e/{recruitment.key}/webhook/",
        raw,
        content_type="application/json",
        headers={k: v for k, v in told.items() if v},
    )


def run_jobs():
    for job in Job.objects.filter(state="waiting"):
        jobs.claim_and_run_job(job.pk)
    assert not Job.objects.filter(state="failed").exists(), Job.objects.filter(state="failed").values_list("error")


def came(fake, recruitment, person=PERSON) -> tuple[Assignment, str]:
    task = PanelTask.objects.get(recruitment=recruitment).external_id
    session = fake.add_submission(task, person)
    return claimed(recruitment.study, person, recruitment, external_ids={"person": person, "session": session}), session


def test_a_signed_message_is_written_down_once_and_holds_nobodys_id(recruitment):
    for _ in range(3):
        answer = sent(recruitment)
        assert (answer.status_code, answer.content) == (200, b"") and not answer.cookies
        Job.objects.update(request_token=None)  # the next would be a job of its own
    event = PanelEvent.objects.get()
    assert (event.external_id, event.kind, event.recruitment) == ("ev1", "submission.status.change", recruitment)
    assert event.body == {"submission": "66f0", "word": "RETURNED"} and event.handled_at is None
    assert Job.objects.filter(kind=sync.NOTIFICATIONS_KIND).count() == 1


@pytest.mark.parametrize(
    ("raw", "headers", "status"),
    [
        (RAW + b" ", {}, 401),
        (RAW, {"X-Prolific-Request-Timestamp": "1795229882"}, 401),
        (RAW, {"X-Prolific-Request-Signature": ""}, 401),
        (RAW, {"X-Prolific-Request-Signature": "hk6U"}, 401),
        (RAW, {"X-Event-ID": ""}, 400),
        (b"x" * (sync.MAX_BODY_BYTES + 1), {}, 413),
    ],
)
def test_what_prolific_did_not_sign_or_is_no_message_leaves_nothing(recruitment, raw, headers, status):
    assert sent(recruitment, raw, **headers).status_code == status
    assert not PanelEvent.objects.exists() and not Job.objects.exists()


def test_only_posts_are_heard_and_only_where_somebody_listens(recruitment):
    assert Client().get(f"/e/{recruitment.key}/webhook/").status_code == 405
    assert Client().post("/e/nobody/webhook/").status_code == 404
    PanelSecret.objects.filter(name=WEBHOOK_SECRET).delete()
    assert sent(recruitment).status_code == 404
    other = Recruitment.objects.create(study=recruitment.study, channel="open_link")
    store_or_delete_secrets(other, {WEBHOOK_SECRET: SECRET}, by=None)
    assert sent(other).status_code == 404 and not PanelEvent.objects.exists()


@pytest.mark.usefixtures("in_one_minute")
def test_an_event_of_another_kind_is_taken_and_asks_for_nothing(recruitment, monkeypatch):
    from annotators.recruitment.channels.prolific import client

    raw = b'{"resource_id":"60ab","event_type":"study.has_high_return_rate"}'
    signature = client.compute_signature(SECRET, "1795229881", raw)
    assert sent(recruitment, raw, **{"X-Prolific-Request-Signature": signature}).status_code == 200
    assert PanelEvent.objects.get().handled_at is not None and not Job.objects.exists()
    monkeypatch.setattr(sync, "MAX_PER_MINUTE", 2)
    assert [sent(recruitment, raw, **{"X-Prolific-Request-Signature": signature}).status_code for _ in range(2)] == [
        200,
        429,
    ]


def test_what_holds_at_the_panel_is_applied_whatever_was_said_and_in_whatever_order(fake, recruitment):
    assignment, session = came(fake, recruitment)
    # The older message comes last, and says that the person is at work.
    late = fake.signed_notification(session, "ev2", SECRET)
    fake.submissions[session]["status"] = "RETURNED"
    early = fake.signed_notification(session, "ev3", SECRET)
    for one in (early, late):
        assert Client().post(f"/e/{recruitment.key}/webhook/", **one).status_code == 200
    run_jobs()
    assignment.refresh_from_db()
    assert assignment.released_reason == "returned" and PanelSubmission.objects.get().state == "returned"
    assert not PanelEvent.objects.filter(handled_at=None).exists()
    # Told again it is once, and looked at no more.
    asked = len(fake.calls)
    Client().post(f"/e/{recruitment.key}/webhook/", **early)
    tasks.schedule_pending_panel_syncs()
    run_jobs()
    assert len(fake.calls) == asked


def test_messages_about_other_studies_of_the_workspace_change_nothing(fake, recruitment):
    elsewhere = fake.add_submission(fake.add_study(), OTHER)
    Client().post(f"/e/{recruitment.key}/webhook/", **fake.signed_notification(elsewhere, "ev4", SECRET))
    sent(recruitment)  # about a submission that Prolific does not show
    run_jobs()
    assert not PanelSubmission.objects.exists() and PanelTask.objects.count() == 1
    assert not PanelEvent.objects.filter(handled_at=None).exists()


@pytest.mark.slow
def test_a_panel_that_is_busy_is_left_alone_and_asked_again(fake, recruitment):
    _, session = came(fake, recruitment)
    Client().post(f"/e/{recruitment.key}/webhook/", **fake.signed_notification(session, "ev5", SECRET))
    fake.faults.append((f"GET /submissions/{session}/", "429"))
    run_jobs()
    assert sync.is_panel_backing_off(recruitment) and sync.unhandled_events(recruitment).count() == 1
    assert tasks.schedule_pending_panel_syncs() == 0
    cache.clear()
    Job.objects.update(request_token=None)
    assert tasks.schedule_pending_panel_syncs() == 1
    run_jobs()
    assert not sync.unhandled_events(recruitment).exists() and PanelSubmission.objects.get().external_id == session


def test_each_refusal_is_passed_by_and_three_end_the_look(fake, recruitment, monkeypatch):
    for n in range(5):
        PanelEvent.objects.create(
            source="s", external_id=str(n), recruitment=recruitment, body={"submission": f"{n:024x}"}
        )
    store_or_delete_secrets(recruitment, {"token": "another-token-0123"}, by=None)
    look = sync.schedule_incremental_sync(recruitment)
    jobs.claim_and_run_job(look.pk)
    look.refresh_from_db()
    assert look.state == "done" and look.result["asked"] == sync.MAX_REFUSALS and "401" in look.result["problem"]
    assert sync.unhandled_events(recruitment).count() == 5 and sync.is_panel_backing_off(recruitment)


def test_refusals_that_are_not_in_a_row_are_about_single_submissions(fake, recruitment):
    """A workspace tells of studies that this token may not read."""
    _, session = came(fake, recruitment)
    names = [session if n == 2 else f"{n:024x}" for n in range(5)]
    for name in names:
        PanelEvent.objects.create(source="s", external_id=name, recruitment=recruitment, body={"submission": name})

    class Partial:
        def submission(self, name):
            if name != session:
                raise RequestRefused("You may not see this.")
            return SubmissionSnapshot(PanelTask.objects.get().external_id, session, PERSON, "working")

    looked, shown = sync._read_submissions(recruitment, Partial(), names, lambda *_: None)
    assert (looked.asked, list(shown)) == (5, [session])
    assert looked.problem == "You may not see this." and not sync.is_panel_backing_off(recruitment)


def test_old_messages_are_forgotten(recruitment):
    sent(recruitment)
    assert tasks.delete_old_panel_notifications() == 0
    PanelEvent.objects.update(received_at="2026-01-01T00:00:00Z")
    assert tasks.delete_old_panel_notifications() == 1


# Subscribing


@pytest.mark.slow
def test_the_panel_is_asked_to_tell_and_asked_twice_it_is_once(fake, recruitment):
    PanelSecret.objects.filter(name=WEBHOOK_SECRET).delete()
    client = logged_in(user("owner"))
    address = f"/admin/annotators/recruitment/{recruitment.pk}/panel/"
    assert "Turn on notifications" in client.get(address).content.decode()
    for _ in range(2):
        client.post(address, {"listen": "1"})
        run_jobs()
        Job.objects.update(request_token=None)
    (subscription,) = fake.subscriptions.values()
    assert (
        subscription["is_enabled"]
        and subscription["target_url"] == f"https://eval.example.org/e/{recruitment.key}/webhook/"
    )
    (secret,) = fake.hook_secrets.values()
    assert decrypt_panel_secret(recruitment, WEBHOOK_SECRET) == secret["value"] and secret["value"] not in str(
        Job.objects.values_list("result")
    )
    page = client.get(address).content.decode()
    assert "has sent notifications to heval since" in page and secret["value"] not in page
    _, session = came(fake, recruitment)
    assert (
        Client()
        .post(f"/e/{recruitment.key}/webhook/", **fake.signed_notification(session, "ev6", secret["value"]))
        .status_code
        == 200
    )
    assert "Last notification" in client.get(address).content.decode()


def test_which_workspace_is_meant_is_never_guessed(fake, recruitment):
    fake.workspaces.append("6d0c" * 6)
    job = (
        logged_in(user("owner")).post(f"/admin/annotators/recruitment/{recruitment.pk}/panel/", {"listen": "1"})
        and Job.objects.get()
    )
    jobs.claim_and_run_job(job.pk)
    job.refresh_from_db()
    assert job.state == "failed" and "2 workspaces" in job.error and not fake.hook_secrets


def test_a_secret_for_messages_is_no_token(recruitment):
    assert has_service_secret(recruitment)
    PanelSecret.objects.exclude(name=WEBHOOK_SECRET).delete()
    assert not has_service_secret(recruitment) and decrypt_panel_secret(recruitment, WEBHOOK_SECRET) == SECRET
    page = logged_in(user("owner")).get(f"/admin/annotators/recruitment/{recruitment.pk}/panel/").content.decode()
    assert "once you store its token" in page
