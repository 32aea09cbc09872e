"""Send one event: to a webhook, signed as Standard Webhooks say, or by mail. Only jobs import this module.

The body says what to fetch. It has counts, and no answers, no names of systems and no personal data.
"""

import json
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpcore
from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models.functions import Now
from django.urls import reverse
from standardwebhooks import Webhook

from annotators.models.identity import Purpose, decrypt
from annotators.places.monitor import progress_by_study
from studies.access import is_allowed
from studies.models import EventDelivery, Job, Study, StudyEvent
from studies.services import events

from .subscriptions import find_url_error, is_allowed_network, may_reach, needed_action

# The pauses after each attempt, in seconds: almost a day in all.
PAUSES = (60, 300, 1800, 7200, 18_000, 57_600)
SECONDS, STEP_SECONDS = 10, 5  # for a whole request, and for one step of it
# A fact of an event > the resource of the study that it names. Other events are about the study itself.
RESOURCES = {"number": "api-analysis", "job": "api-job"}


class _Refused(Exception):
    """The name of the host leads where heval may not send."""


class _CheckedNetwork(httpcore.SyncBackend):
    """Connect to the address that was checked, and ask no name server a second time."""

    def __init__(self, is_encrypted: bool):
        super().__init__()
        self._is_encrypted = is_encrypted
        self._streams: list[httpcore.NetworkStream] = []

    def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        found = {str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
        if not all(may_reach(one) for one in found):
            raise _Refused("The name leads to a private network, where heval sends nothing.")
        if not self._is_encrypted and not all(is_allowed_network(one) for one in found):
            raise _Refused("The address is not encrypted, and its network is not in WEBHOOK_NETWORKS.")
        # IPv4 first: many machines have no way to IPv6.
        address = min(found, key=lambda one: (ip_address(one.partition("%")[0]).version, one))
        stream = super().connect_tcp(address, port, timeout, local_address, socket_options)
        self._streams.append(stream)
        return stream

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


def deliver(job: Job) -> dict[str, Any]:
    """Try a delivery once. If it fails, it is due again after a longer pause, and is given up after a day."""
    attempt = job.arguments["attempt"]
    pause = PAUSES[attempt] if attempt < len(PAUSES) else None
    row = EventDelivery.objects.filter(pk=job.arguments["delivery"], attempts=attempt, next_at__isnull=False)
    delivery = row.select_related("event", "subscription__study", "subscription__by").first()
    # A process that dies while it sends has made its attempt.
    next_at = None if pause is None else Now() + timedelta(seconds=pause)
    if delivery is None or not row.update(attempts=attempt + 1, next_at=next_at):
        return {}
    subscription, study = delivery.subscription, delivery.subscription.study
    row = EventDelivery.objects.filter(pk=delivery.pk, attempts=attempt + 1)
    status, problem = None, ""
    if not is_allowed(subscription.by, needed_action(subscription), study):
        problem, pause = "Its maker may not do this in the study any more.", None
        row.update(next_at=None)
    elif subscription.url:
        secret = decrypt(Purpose.CREDENTIAL, subscription.secret or b"")
        status, problem = post(subscription.url, secret, str(delivery.event.code), json.dumps(body_of(delivery.event)))
    else:
        problem = _mail(subscription.by.email, delivery.event)
    if problem:
        row.update(status=status, problem=problem[:200])
        if pause is None:
            events.record_attention(study, "events cannot be sent", subscription.pk, spares=subscription)
    else:
        row.update(status=status, problem="", next_at=None, delivered_at=Now())
    Job.objects.filter(kind=events.DELIVERY_JOB, study=study, state=Job.State.DONE, pk__lt=job.pk).delete()
    return {"status": status, "problem": problem}


def body_of(event: StudyEvent) -> dict[str, Any]:
    """Return what is said about an event, with the study's state and counts as they are now."""
    study: Study = event.study
    progress = progress_by_study([study.pk]).get(study.pk)
    fact = next((fact for fact in RESOURCES if fact in event.facts), "")
    path = (
        reverse(RESOURCES[fact], args=[study.code, event.facts[fact]])
        if fact
        else reverse("api-study", args=[study.code])
    )
    return {
        "type": f"study.{event.kind}",
        "timestamp": event.at.isoformat(),
        "data": {
            "study": str(study.code),
            "state": study.state,
            "counted": progress.submitted if progress else 0,
            "target_n": study.target_n,
            "url": f"{settings.SITE_URL}{path}",
            **event.facts,
        },
    }


def post(url: str, secret: str, code: str, body: str) -> tuple[int | None, str]:
    """Send a signed request. Return its status and, if it did not succeed, why. This takes ``SECONDS`` at most."""
    if error := find_url_error(url):  # the operator may have changed what is allowed
        return None, error
    network = _CheckedNetwork(is_encrypted=urlsplit(url).scheme == "https")
    outcome: list[tuple[int | None, str]] = []

    def send() -> None:
        try:
            outcome.append(_request(network, url, secret, code, body))
        except _Refused as refused:
            outcome.append((None, str(refused)))
        except httpcore.TimeoutException:
            outcome.append((None, f"It did not answer within {STEP_SECONDS} seconds."))
        except Exception as error:  # such as a broken connection, certificate or answer
            outcome.append((None, f"It cannot be reached: {error or 'no connection'}."))

    # In a thread, because a name server and a server that sends a byte at a time can take longer than each step may.
    thread = threading.Thread(target=send, name="heval-webhook", daemon=True)
    thread.start()
    thread.join(SECONDS)
    if outcome:
        return outcome[0]
    network.close()
    return None, f"It did not answer within {SECONDS} seconds."


def _request(network: _CheckedNetwork, url: str, secret: str, code: str, body: str) -> tuple[int, str]:
    now = datetime.now(UTC)
    headers: dict[bytes | str, bytes | str] = {
        "Host": urlsplit(url).netloc,
        "Content-Type": "application/json",
        "User-Agent": "heval",
        "webhook-id": code,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(code, now, body),
    }
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), STEP_SECONDS)
    with (
        httpcore.ConnectionPool(ssl_context=ssl.create_default_context(), network_backend=network) as pool,
        # The answer's body is not read, and a redirect is not followed.
        pool.stream("POST", url, headers=headers, content=body.encode(), extensions={"timeout": timeout}) as response,
    ):
        status = response.status
    if 200 <= status < 300:
        return status, ""
    return status, f"It answered {status}." + (" heval follows no redirect." if 300 <= status < 400 else "")


def _mail(address: str, event: StudyEvent) -> str:
    """Return why the mail could not be sent, or ''."""
    body, study = body_of(event), event.study
    what = f"{event.get_kind_display()}{': ' + event.facts['reason'] if 'reason' in event.facts else ''}"
    lines = [
        f"Study {study.code}: {what}.",
        f"State: {study.state}. {body['data']['counted']} people have submitted.",
        f"{settings.SITE_URL}{reverse('study_events', args=[study.pk])}",
    ]
    try:
        EmailMessage(f"heval: {what}", "\n\n".join(lines), to=[address]).send()
    except OSError as error:
        return f"The mail was not sent: {error}."
    return ""
