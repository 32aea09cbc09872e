"""Who gets the events of a study: webhooks, and members by mail. And which deliveries are due."""

import base64
import secrets
import socket
import uuid
from collections.abc import Collection
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import Prefetch
from django.db.models.functions import Now

from annotators.models.identity import Purpose, encrypt
from annotators.places.monitor import progress_by_study
from studies.access import Action, check_permission_or_404, is_allowed
from studies.models import EventDelivery, EventSubscription, Study, StudyEvent, audit
from studies.models.events import OFFERED_EVENTS, EventKind
from studies.services import events, jobs
from studies.services.lifecycle import ActionRefused, FieldsRefused

MAX_SUBSCRIPTIONS = 50
MAX_DUE = 200
_COPIED = ("url", "secret", "events", "answers", "by")
# Addresses of IPv4 written as IPv6, which a gateway may lead back into a private network.
_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"), ip_network("2002::/16"))


def is_allowed_network(address: str) -> bool:
    """Return whether the operator allows webhooks in the network of this IP address."""
    ip = ip_address(address)
    return any(ip in network for network in settings.WEBHOOK_NETWORKS if network.version == ip.version)


def may_reach(address: str) -> bool:
    """Return whether webhooks may reach this IP address: a public one, or one that the operator allows."""
    ip = ip_address(address.partition("%")[0])
    ip = getattr(ip, "ipv4_mapped", None) or ip
    if is_allowed_network(str(ip)):
        return True
    is_translated = ip.version == 6 and any(ip in network for network in _TRANSLATED)
    return ip.is_global and not ip.is_multicast and not is_translated


def _address_written_in(host: str) -> str:
    """Return the IP address that a host name writes out, in whatever notation, without a question to a name server. '' for a name."""
    if host == "localhost" or host.endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)[0][4][0])
    except OSError:
        return ""


def find_url_error(url: str) -> str:
    """Return why heval sends nothing to this address, or ''. The address of a name is checked each time that something is sent."""
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port != 0
    except ValueError:
        return "This is not a web address. Enter one such as https://example.org/heval."
    is_plain = url.isascii() and url.isprintable() and " " not in url and "\\" not in url
    if parts.scheme not in ("https", "http") or not parts.hostname or not is_plain or not port_is_valid:
        return "This is not a web address. Enter one such as https://example.org/heval."
    if parts.username is not None or parts.password is not None:
        return "The address has a user name or a password. Remove it: the receiver knows heval by the signature."
    written = _address_written_in(parts.hostname)
    if written and not may_reach(written):
        return (
            "This is an address of a private network. Enter a public one, or ask the operator to set WEBHOOK_NETWORKS."
        )
    if parts.scheme == "http" and not settings.WEBHOOK_NETWORKS:
        return "The address is not encrypted. Enter one that begins with https://."
    return ""


def subscribe(
    study: Study, by, kinds: Collection[str], *, url: str = "", answers: int | None = None
) -> tuple[EventSubscription, str]:
    """Send these events to a webhook or, without ``url``, by mail to ``by``. Return the subscription and the webhook's secret.

    The secret is encrypted and can be shown only now. Raise FieldsRefused or ActionRefused.
    """
    check_permission_or_404(by, Action.RUN if url else Action.VIEW, study)
    errors = {}
    if url and (error := find_url_error(url)):
        errors["url"] = error
    if not url and not settings.SENDS_MAIL:
        errors["url"] = "This site sends no mail. Enter the address of a webhook, or ask the operator to set EMAIL_URL."
    elif not url and not by.email:
        errors["url"] = "Your account has no e-mail address. Ask an administrator to add it."
    if unknown := [kind for kind in kinds if kind not in OFFERED_EVENTS]:
        errors["events"] = f"There is no event “{unknown[0]}”. The events are: {', '.join(OFFERED_EVENTS)}."
    elif not kinds:
        errors["events"] = f"No event is chosen. Choose at least one of: {', '.join(OFFERED_EVENTS)}."
    if (EventKind.ANSWERS in kinds) != (answers is not None):
        errors["answers"] = "Only the event “answers” has a number of people, and it needs one."
    if errors:
        raise FieldsRefused(errors)
    secret = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}" if url else ""
    with transaction.atomic():
        Study.objects.select_for_update(no_key=True, of=("self",)).get(pk=study.pk)
        known = EventSubscription.objects.filter(study=study)
        if known.count() >= MAX_SUBSCRIPTIONS:
            raise ActionRefused(f"A study has at most {MAX_SUBSCRIPTIONS} subscriptions to events. Delete one first.")
        if not url and known.filter(url="", by=by).exists():
            raise ActionRefused("You get mail about this study already. Delete that subscription first.")
        subscription = EventSubscription.objects.create(
            study=study,
            url=url,
            secret=encrypt(Purpose.CREDENTIAL, secret) if secret else None,
            events=[kind.value for kind in OFFERED_EVENTS if kind in kinds],
            answers=answers,
            by=by,
        )
        # The rest of the address may be a secret of the receiver.
        to = urlsplit(url).hostname if url else "mail"
        facts = {"subscription": subscription.pk, "to": to, "events": subscription.events}
        audit.record_study_event("subscribe to events", study, by=by, **facts)
    subscription.refresh_from_db(fields=["at"])
    return subscription, secret


def copy_subscriptions(study: Study, clone: Study) -> None:
    """Send the events of a clone to where those of the study go, with the same secrets, if who made that may do it in the clone.

    Call it in a transaction, after the clone has its members.
    """
    roles = dict(clone.members.values_list("user", "role"))
    copies = [
        EventSubscription(study=clone, **{name: getattr(one, name) for name in _COPIED})
        for one in EventSubscription.objects.filter(study=study).select_related("by")
        if is_allowed(one.by, needed_action(one), clone, {clone.pk: roles.get(one.by_id, "")})
    ]
    EventSubscription.objects.bulk_create(copies)


def needed_action(subscription: EventSubscription) -> Action:
    """Return what a person must be allowed to do in the study to get its events there."""
    return Action.RUN if subscription.url else Action.VIEW


def _check_may_change(subscription: EventSubscription, by) -> None:
    """A mail is its reader's own. A webhook is of the study."""
    is_own = not subscription.url and by is not None and subscription.by_id == by.pk
    check_permission_or_404(by, Action.VIEW if is_own else Action.RUN, subscription.study)


def unsubscribe(subscription: EventSubscription, by) -> None:
    """Send nothing more to a subscription, and delete it with the list of its deliveries."""
    _check_may_change(subscription, by)
    with transaction.atomic():
        if not EventSubscription.objects.filter(pk=subscription.pk).delete()[0]:
            raise ActionRefused("This subscription is deleted already. You need not do anything.")
        audit.record_study_event("unsubscribe from events", subscription.study, by=by, subscription=subscription.pk)


def send_test(subscription: EventSubscription, by) -> EventDelivery:
    """Send an event that says only that somebody tries this."""
    _check_may_change(subscription, by)
    with transaction.atomic():
        study = subscription.study
        audit.record_study_event("test event subscription", study, by=by, subscription=subscription.pk)
        event = StudyEvent.objects.create(study=study, kind=EventKind.TEST, key=uuid.uuid4().hex)
        return EventDelivery.objects.create(subscription=subscription, event=event)


def send_again(delivery: EventDelivery, by) -> None:
    """Send an event that has arrived or was given up once more."""
    _check_may_change(delivery.subscription, by)
    with transaction.atomic():
        ended = EventDelivery.objects.filter(pk=delivery.pk, next_at=None)
        if not ended.update(next_at=Now(), delivered_at=None):
            raise ActionRefused("This event is still being sent. You need not do anything.")
        study = delivery.subscription.study
        audit.record_study_event("send event again", study, by=by, delivery=delivery.pk)


def record_reached_counts() -> int:
    """Record the events of studies that have as many submitted assignments as a subscription waits for. Return their number.

    Annotators who submit at the same moment do not see each other, so none of them can know that they are the n-th.
    """
    counted = EventDelivery.objects.filter(event__kind__in=[EventKind.ANSWERS, EventKind.TARGET])
    subscriptions = EventSubscription.objects.filter(study__state__in=[*Study.RUNNING, Study.State.CLOSING])
    deliveries = Prefetch("deliveries", counted.select_related("event"), to_attr="counted")
    awaited: dict[tuple[Study, EventKind, str], int] = {}
    for one in subscriptions.select_related("study").prefetch_related(deliveries):
        known = {(delivery.event.kind, delivery.event.key) for delivery in one.counted}
        wanted = [(EventKind.ANSWERS, str(one.answers), one.answers), (EventKind.TARGET, "", one.study.target_n)]
        for kind, key, number in wanted:
            if number and one.wants(kind, key) and (kind, key) not in known:
                awaited[one.study, kind, key] = number
    progress = progress_by_study({study.pk for study, _, _ in awaited}) if awaited else {}
    reached = [key for key, n in awaited.items() if key[0].pk in progress and progress[key[0].pk].submitted >= n]
    for study, kind, key in reached:
        events.record(study, kind, key, people=awaited[study, kind, key])
    return len(reached)


def submit_due_deliveries() -> int:
    """Submit a job for each event that is to be sent now. Return their number."""
    due = EventDelivery.objects.filter(next_at__lte=Now()).select_related("subscription__study").order_by("next_at")
    rows = list(due[:MAX_DUE])
    for row in rows:
        token = f"event-{row.pk}-{row.attempts}"
        named = {"delivery": row.pk, "attempt": row.attempts}
        jobs.submit(events.DELIVERY_JOB, study=row.subscription.study, by=None, request_token=token, **named)
    return len(rows)
