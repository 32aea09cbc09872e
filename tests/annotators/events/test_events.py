"""Events of a study: recorded once, sent signed, tried for a day, and never into a private network."""

import json
import socket
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

import pytest
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from standardwebhooks import Webhook

from annotators.events import delivery, subscriptions
from annotators.events.subscriptions import find_url_error, may_reach, record_reached_counts, submit_due_deliveries
from heval_site.runtime import environment
from studies.models import EventDelivery, Job, Study, StudyEvent, StudyMember
from studies.services import events, jobs, lifecycle
from studies.services.copying import delete_or_archive_draft
from studies.services.lifecycle import ActionRefused, FieldsRefused
from tests import builders
from tests.analysis.api.rest import api_of
from tests.builders import spa_draft, user
from tests.docs.pages import FENCE, PAGES
from tests.players import submitted

pytestmark = pytest.mark.django_db


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.received.append((dict(self.headers), body))
        if self.server.hangs.wait(self.server.seconds):
            return
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *words):
        pass


@pytest.fixture
def receiver(settings):
    """A server on this machine, in a network that the operator allows."""
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.received, server.status, server.seconds, server.hangs = [], 204, 0, threading.Event()
    server.url = f"http://127.0.0.1:{server.server_port}/hook"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.hangs.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def study(owner):
    return spa_draft(owner=owner, with_surveys=False, with_rating=False, target_n=2)


@pytest.fixture
def owner():
    return user("olga", email="olga@example.org")


def heard(study, receiver, *kinds, **options):
    return subscriptions.subscribe(study, study.owner, kinds or ("closed",), url=receiver.url, **options)


def send_all():
    record_reached_counts()
    n = submit_due_deliveries()
    jobs.run_waiting_jobs()
    return n


def pass_time():
    EventDelivery.objects.filter(next_at__isnull=False).update(next_at=timezone.now() - timedelta(seconds=1))


def test_each_event_is_sent_once_and_signed(study, receiver):
    _, secret = heard(study, receiver, "launched", "answers", "target", "closed", "report", answers=1)
    builders.launched(study, study.owner)
    send_all()
    for person in ("one", "two"):
        submitted(study, person)
        send_all()
    lifecycle.start_closing(study, None)
    lifecycle.end_grace_period(study, None)
    events.record(study, "closed")  # what happened is recorded again, and is still one event
    assert send_all() == 1
    assert send_all() == 0
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 4
    said = [Webhook(secret).verify(body, headers) for headers, body in receiver.received]
    assert [one["type"] for one in said] == ["study.launched", "study.answers", "study.target", "study.closed"]
    assert [one["data"]["counted"] for one in said] == [0, 1, 2, 2]
    assert said[0]["data"] == {
        "study": str(study.code),
        "state": "launched",
        "counted": 0,
        "target_n": 2,
        "url": f"http://127.0.0.1:8000/api/v1/studies/{study.code}/",
    }
    # Nobody learns from it what is compared, and in what.
    words = [study.title, *study.systems.values_list("name", flat=True), "olga"]
    assert not [word for word in words for _, body in receiver.received if word in body]
    assert StudyEvent.objects.filter(study=study).count() == 4
    assert Job.objects.filter(kind="deliver_event").count() == 1, "jobs of earlier deliveries are deleted"


def test_a_body_is_signed_with_the_secret_of_its_webhook(study, receiver):
    heard(study, receiver)
    other, _ = heard(study, receiver)
    subscriptions.send_test(other, study.owner)
    send_all()
    ((headers, body),) = receiver.received
    with pytest.raises(Exception, match="No matching signature"):
        Webhook("whsec_" + "A" * 44).verify(body, headers)


def test_the_receiver_of_the_docs_knows_heval_and_an_event_that_comes_again(study, receiver, monkeypatch, capsys):
    hook, secret = heard(study, receiver)
    monkeypatch.setenv("WEBHOOK_SECRET", secret)
    (code,) = [code for language, _, code in FENCE.findall(PAGES["how-to/hear-of-events"].text) if language == "python"]
    sample: dict = {"__name__": "receiver"}
    exec(compile(code, "receiver.py", "exec"), sample)
    sample["Receiver"].log_message = Receiver.log_message
    receiver.RequestHandlerClass = sample["Receiver"]
    subscriptions.send_test(hook, study.owner)
    send_all()
    subscriptions.send_again(EventDelivery.objects.get(), study.owner)
    send_all()
    assert EventDelivery.objects.get().status == 204
    assert capsys.readouterr().out == f"study.test http://127.0.0.1:8000/api/v1/studies/{study.code}/\n"
    assert delivery.post(receiver.url, "whsec_MTIzNDU2Nzg=", "1", "{}") == (400, "It answered 400.")


def test_a_failing_webhook_is_tried_for_a_day_and_then_needs_attention(study, receiver, client, settings):
    settings.SENDS_MAIL = True
    subscriptions.subscribe(study, study.owner, ["attention"])
    failing, _ = heard(study, receiver, "closed", "attention")
    subscriptions.send_test(failing, study.owner)
    receiver.status, waits = 500, []
    for _ in delivery.PAUSES:
        send_all()
        row = EventDelivery.objects.get()
        assert (row.state, row.status, row.problem) == ("waiting", 500, "It answered 500.")
        waits.append(round((row.next_at - timezone.now()).total_seconds()))
        assert send_all() == 0, "a pause is waited for"
        pass_time()
    assert waits == pytest.approx(delivery.PAUSES, abs=5)
    assert 20 * 3600 < sum(waits) < 25 * 3600
    send_all()
    assert EventDelivery.objects.get(subscription=failing).state == "given up"
    send_all()
    assert [message.to for message in mail.outbox] == [["olga@example.org"]]
    assert "events cannot be sent" in mail.outbox[0].subject
    # The webhook that fails gets no event about that, which would fail too.
    assert EventDelivery.objects.filter(subscription=failing).count() == 1
    client.force_login(study.owner, backend="django.contrib.auth.backends.ModelBackend")
    assert "1 event could not be sent" in client.get("/admin/").content.decode()
    receiver.status = 200
    subscriptions.send_again(row, study.owner)
    send_all()
    assert EventDelivery.objects.get(subscription=failing).state == "delivered"


def test_a_webhook_that_hangs_holds_its_job_for_a_short_time(study, receiver, monkeypatch):
    monkeypatch.setattr(delivery, "SECONDS", 0.2)
    receiver.seconds = 30
    hook, _ = heard(study, receiver)
    subscriptions.send_test(hook, study.owner)
    began = timezone.now()
    send_all()
    assert timezone.now() - began < timedelta(seconds=10)
    assert EventDelivery.objects.get().problem == "It did not answer within 0.2 seconds."


def test_a_redirect_is_not_followed(study, receiver):
    hook, _ = heard(study, receiver)
    receiver.status = 302
    subscriptions.send_test(hook, study.owner)
    send_all()
    assert len(receiver.received) == 1
    assert EventDelivery.objects.get().problem == "It answered 302. heval follows no redirect."


PUBLIC = "93.184.215.14"


@pytest.mark.parametrize("second", ["127.0.0.1", PUBLIC])
def test_a_name_is_resolved_once_and_every_address_of_it_is_checked(second, monkeypatch):
    asked, connected = [], []

    def resolve(host, port, *_, **__):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in (PUBLIC, second)]

    def connect(self, host, *_, **__):
        connected.append(host)
        raise OSError("no way")

    monkeypatch.setattr(delivery.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(delivery.httpcore.SyncBackend, "connect_tcp", connect)
    monkeypatch.setattr(subscriptions, "_address_written_in", lambda host: "")
    _, problem = delivery.post("https://hook.example/", "whsec_MTIzNDU2Nzg=", "1", "{}")
    assert asked == ["hook.example"]
    if second == PUBLIC:
        assert (connected, problem) == ([PUBLIC], "It cannot be reached: no way.")
    else:
        assert (connected, problem) == ([], "The name leads to a private network, where heval sends nothing.")


@pytest.mark.parametrize(
    ("address", "is_reached"),
    [
        (PUBLIC, True),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        *((one, False) for one in ("127.0.0.1", "10.1.2.3", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0")),
        *((one, False) for one in ("224.0.0.1", "::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1")),
    ],
)
def test_only_public_addresses_are_reached(address, is_reached):
    assert may_reach(address) is is_reached


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.org/", "not a web address"),
        ("https://", "not a web address"),
        ("https://example.org:99999/", "not a web address"),
        ("https://exa mple.org/", "not a web address"),
        ("http://example.org/", "not encrypted"),
        ("https://ann:secret@example.org/", "a user name or a password"),
        *(
            (f"https://{host}/", "a private network")
            for host in ("localhost", "10.0.0.1", "2130706433", "0x7f.1", "[::1]")
        ),
    ],
)
def test_addresses_that_get_nothing(url, words):
    assert words in find_url_error(url)


def test_an_operator_allows_a_network(settings, monkeypatch):
    monkeypatch.setenv("WEBHOOK_NETWORKS", "10.1.0.0/16, fd00::/8")
    settings.WEBHOOK_NETWORKS = environment.networks("WEBHOOK_NETWORKS")
    assert (find_url_error("http://10.1.2.3/"), may_reach("fd00::1")) == ("", True)
    assert "a private network" in find_url_error("https://10.2.0.1/")
    monkeypatch.setenv("WEBHOOK_NETWORKS", "intranet")
    with pytest.raises(ImproperlyConfigured, match="must name networks"):
        environment.networks("WEBHOOK_NETWORKS")


@pytest.mark.parametrize(
    ("kinds", "options", "field"),
    [
        (["finished"], {}, "events"),
        ([], {}, "events"),
        (["test"], {}, "events"),
        (["answers"], {}, "answers"),
        (["closed"], {"answers": 3}, "answers"),
        (["closed"], {"url": ""}, "url"),
    ],
)
def test_a_wrong_subscription_is_refused(study, kinds, options, field):
    with pytest.raises(FieldsRefused) as refused:
        subscriptions.subscribe(study, study.owner, kinds, **{"url": "https://example.org/", **options})
    assert list(refused.value.errors) == [field]
    assert not study.event_subscriptions.exists()


def test_a_member_gets_mail_until_the_member_leaves(study, settings):
    settings.SENDS_MAIL = True
    viewer = user("vera", email="vera@example.org")
    member = StudyMember.objects.create(study=study, user=viewer, role="viewer")
    subscription, secret = subscriptions.subscribe(study, viewer, ["closed"])
    assert secret == ""
    with pytest.raises(ActionRefused, match="You get mail about this study already"):
        subscriptions.subscribe(study, viewer, ["closed"])
    subscriptions.send_test(subscription, viewer)
    send_all()
    (message,) = mail.outbox
    assert (message.to, message.subject) == (["vera@example.org"], "heval: somebody tries a subscription")
    assert study.title not in message.body
    member.delete()
    subscriptions.send_test(subscription, study.owner)
    send_all()
    assert len(mail.outbox) == 1
    assert EventDelivery.objects.last().state == "given up"


def test_what_needs_attention_is_an_event(study, receiver):
    heard(study, receiver, "attention")
    builders.launched(study, study.owner)
    job = jobs.submit("analyse", study=study, by=study.owner, parameters={"level": "wrong"})
    jobs.claim_and_run_job(job.pk)
    send_all()
    ((_, body),) = receiver.received
    said = json.loads(body)["data"]
    assert (said["reason"], said["job_kind"]) == ("a job failed", "analyse")
    assert said["url"].endswith(f"/jobs/{job.code}/")


def test_webhooks_over_rest(study, receiver):
    api, path = api_of(study.owner), f"studies/{study.code}/webhooks/"
    sent = {"url": receiver.url, "events": ["answers", "closed"], "answers": 2}
    answer = api.post(path, sent, **{"Idempotency-Key": "k"})
    made = json.loads(answer.content)
    assert answer.status_code == 201
    assert made.pop("secret").startswith("whsec_")
    assert json.loads(api.get(path).content)["results"] == [made]
    repeated = api.post(path, sent, **{"Idempotency-Key": "k"})
    assert repeated.status_code == 409
    assert f"webhook {made['number']}" in repeated.content.decode()
    wrong = api.post(path, {"url": "https://10.0.0.1/", "events": ["ended"]})
    assert [error["field"] for error in json.loads(wrong.content)["errors"]] == ["url", "events"]
    own = f"{path}{made['number']}/"
    assert api.post(f"{own}test/", None).status_code == 202
    send_all()
    (row,) = json.loads(api.get(f"{own}deliveries/").content)["results"]
    assert (row["event"], row["state"], row["status"]) == ("test", "delivered", 204)
    assert api.post(f"{own}deliveries/{row['number']}/send/", None).status_code == 202
    assert api.post(f"{own}deliveries/{row['number']}/send/", None).status_code == 409
    send_all()
    assert [headers["webhook-id"] for headers, _ in receiver.received] == [row["id"]] * 2
    assert api.send("DELETE", own).status_code == 200
    assert api.get(f"{own}deliveries/").status_code == 404


def test_the_page_of_events(study, client, settings):
    page = f"/admin/studies/study/{study.pk}/events/"
    client.force_login(study.owner, backend="django.contrib.auth.backends.ModelBackend")
    refused = client.post(page, {"url": "https://10.0.0.1/", "events": ["closed"]})
    assert refused.status_code == 422
    assert "a private network" in refused.content.decode()
    made = client.post(page, {"url": "https://example.org/hook", "events": ["closed"]}).content.decode()
    assert "whsec_" in made
    assert "whsec_" not in client.get(page).content.decode()
    number = study.event_subscriptions.get().pk
    assert client.post(page, {"test": number}).status_code == 302
    assert "waiting" in client.get(page).content.decode()
    viewer = user("vera", email="vera@example.org")
    StudyMember.objects.create(study=study, user=viewer, role="viewer")
    client.force_login(viewer, backend="django.contrib.auth.backends.ModelBackend")
    settings.SENDS_MAIL = True
    assert "example.org/hook" not in client.get(page).content.decode()
    assert client.post(page, {"delete": number}).status_code == 403
    assert client.post(page, {"events": ["closed"]}).status_code == 302
    assert client.post(page, {"delete": "x"}).status_code == 404


def test_a_draft_with_subscriptions_is_deleted(study, owner, receiver):
    hook, _ = heard(study, receiver)
    subscriptions.send_test(hook, owner)
    send_all()
    assert delete_or_archive_draft(study, owner) == "deleted"
    assert not Study.objects.filter(pk=study.pk).exists()
