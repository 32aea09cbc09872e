"""The job that synchronises with a panel: it sends orders, reads submissions, and sends the orders that follow from
them.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from annotators.models import Assignment, PanelEvent, PanelOrder, PanelSecret, PanelSubmission, Recruitment
from annotators.models.constants import SUBMITTED
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs
from studies.services.rate_limits import count_and_check_rate_limit

from . import (
    ForgedMessage,
    PanelBusy,
    PanelService,
    RequestRefused,
    ResultUnclear,
    SubmissionSnapshot,
    alerts,
    arrival_checks,
    orders,
)
from .http_client import WEBHOOK_SECRET, decrypt_panel_secret, get_panel_service, store_or_delete_secrets
from .orders import done_or_pending_publication_orders, get_panel_tasks_or_create_from_arrivals, send_due_orders
from .reconcile import ImportSummary, import_submissions_and_release_places

KIND = "panel_sync"
OPEN_EVERY, CLOSED_EVERY = 300, 3600  # seconds
# Panels decide by themselves after some days; later nothing changes.
WATCHED_DAYS = 14


class PanelUnavailable(jobs.UserFacingError):
    """The panel did not answer. The message gives the reason."""


def send_orders_and_sync_panel(recruitment: Recruitment, progress, dry_run: bool = False) -> ImportSummary:
    """Send orders (not in a rehearsal), read all submissions of all tasks, and store their states.

    Raises PanelUnavailable or NoService.
    """
    service = get_panel_service(recruitment)
    if not dry_run:
        order_blocklist_credits_and_send_due_orders(recruitment, service, progress)
    is_shown = REGISTRY[recruitment.channel].shows_submissions
    try:
        snapshots, tasks = _read_snapshots(recruitment, service, progress) if is_shown else ([], [])
    except (RequestRefused, ResultUnclear, PanelBusy) as error:
        raise PanelUnavailable(
            f"The panel did not show its submissions. Check the token and the link's settings. Reason: {error}"
        ) from error
    try:
        summary = import_submissions_and_release_places(recruitment, snapshots, PanelSubmission.Source.SERVICE, dry_run)
    except ValueError as error:
        raise PanelUnavailable(str(error)) from error
    if not dry_run:
        # The plan orders the next round, no matter who started this check.
        if orders.order_next_round(recruitment, by=None):
            send_due_orders(recruitment, service, progress)
        alerts.refresh_cached_funds(recruitment, service)
        alerts.refresh_cached_fees(recruitment, service, tasks)
        alerts.cache_alert_count(recruitment)
    return summary


def _read_snapshots(
    recruitment: Recruitment, service: PanelService, progress
) -> tuple[list[SubmissionSnapshot], list[str]]:
    """Return all submissions of all tasks, and the tasks.

    If the panel refuses one task but shows others, skip the task if only people's addresses have named it. Anyone can
    type an address.
    """
    tasks = list(get_panel_tasks_or_create_from_arrivals(recruitment))
    known_tasks = {
        str(result.get("task"))
        for result in done_or_pending_publication_orders(recruitment).values_list("result", flat=True)
    }
    known_tasks |= set(PanelSubmission.objects.filter(task__in=tasks).values_list("task__external_id", flat=True))
    snapshots: list[SubmissionSnapshot] = []
    read_tasks: list[str] = []
    refusals: list[RequestRefused] = []
    for n, task in enumerate(row.external_id for row in tasks):
        progress(n, len(tasks), "Reading submissions")
        try:
            for snapshot in service.submissions(task):
                # A panel may return only part of the tasks that were published together.
                snapshots.append(replace(snapshot, task=task))
                if len(snapshots) % 100 == 0:
                    progress(n, len(tasks), f"Reading submissions: {len(snapshots)}")
            read_tasks.append(task)
        except RequestRefused as refusal:
            if task in known_tasks:
                raise
            refusals.append(refusal)
    if refusals and len(refusals) == len(tasks):
        raise refusals[0]
    return snapshots, read_tasks


def order_blocklist_credits_and_send_due_orders(recruitment: Recruitment, service: PanelService, progress) -> None:
    """Order what follows from the current state, send all due orders, and store the results."""
    orders.order_blocklist_additions_if_published(recruitment)
    alerts.record_sign_ups_and_order_credits(recruitment)
    send_due_orders(recruitment, service, progress)
    alerts.record_granted_credits(recruitment)


def run_requested_steps_and_sync_panel(job: Job, progress) -> dict:
    recruitment = Recruitment.objects.select_related("study").get(pk=job.arguments["recruitment"])
    for name, step in _steps.items():
        if job.arguments.get(name):
            step(recruitment, by=job.by)
    return asdict(send_orders_and_sync_panel(recruitment, progress))


def webhook_url(recruitment: Recruitment) -> str:
    """Return the address for the panel's notifications about this link."""
    return f"{settings.SITE_URL}{reverse('webhook', args=[recruitment.key])}"


def subscribe_to_webhooks(recruitment: Recruitment, *, by) -> None:
    """Subscribe to the panel's notifications. Raises PanelUnavailable or NoService."""
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    try:
        secret = get_panel_service(recruitment).subscribe(webhook_url(recruitment))
    except (RequestRefused, ResultUnclear, PanelBusy) as error:
        raise PanelUnavailable(
            f"The panel does not send notifications. Check the token and the link's settings. Reason: {error}"
        ) from error
    store_or_delete_secrets(recruitment, {WEBHOOK_SECRET: secret}, by=by)


# Optional steps of the job before it asks the panel, by argument name.
_steps: dict[str, Callable[..., object]] = {"listens": subscribe_to_webhooks}


def register_optional_sync_step(name: str, step: Callable[..., object]) -> None:
    """Register ``step(recruitment, by=by)``, which runs before the panel is asked.

    ``schedule_sync(recruitment, **{name: True})`` requests the step. An exception in the step ends the job.
    """
    _steps[name] = step


def recruitments_to_sync() -> QuerySet[Recruitment]:
    """Return recruitments with a secret whose panel must be checked.

    These are links of running or recently ended studies. Links with a pending order or a pending decision of the panel
    stay longer.
    """
    recent = Now() - timedelta(days=WATCHED_DAYS)
    running = Q(study__state__in=[*Study.RUNNING, Study.State.CLOSING])
    ended = Q(study__state=Study.State.CLOSED, study__closed_at__gt=recent)
    same_recruitment = {"recruitment": OuterRef("pk")}
    waiting = PanelOrder.objects.filter(**same_recruitment, state__in=[PanelOrder.State.WAITING, PanelOrder.State.SENT])
    # One more day, to see the decision.
    undecided = PanelSubmission.objects.filter(
        **same_recruitment, state=SUBMITTED, decides_itself_at__gt=Now() - timedelta(days=1)
    )
    token = PanelSecret.objects.filter(**same_recruitment).exclude(name=WEBHOOK_SECRET)
    return (
        Recruitment.objects.filter(running | ended | Exists(waiting) | Exists(undecided), Exists(token))
        .select_related("study")
        .order_by("pk")
    )


def schedule_sync(recruitment: Recruitment, *, by, min_interval_seconds: int = 5, **steps: bool) -> Job:
    """Return the job that checks this panel: at most one per ``min_interval_seconds``, however often it is requested.

    ``approves=True``: first order the approval of work finished at both. ``listens=True``: subscribe to notifications.
    """
    check_permission_or_404(by, Action.PANEL, recruitment.study)
    span, options = (
        int(timezone.now().timestamp()) // min_interval_seconds,
        sorted(name for name, is_wished in steps.items() if is_wished),
    )
    return jobs.submit(
        KIND,
        study=recruitment.study,
        by=by,
        request_token=f"panel:{recruitment.pk}:{'+'.join(options)}:{span}",
        recruitment=recruitment.pk,
        **dict.fromkeys(options, True),
    )


def schedule_all_syncs() -> int:
    """Start the regular checks: frequent while people come, hourly afterwards."""
    recruitments = list(recruitments_to_sync())
    for recruitment in recruitments:
        schedule_sync(
            recruitment,
            by=None,
            min_interval_seconds=CLOSED_EVERY if recruitment.study.state == Study.State.CLOSED else OPEN_EVERY,
        )
    return len(recruitments)


# The job that runs soon after an event: a notification, an arrival, a finished visit, or a person to keep out.
#
# It asks the service for the current state, so notifications may be late, doubled and out of order. The regular check
# finds what it misses.


NOTIFICATIONS_KIND = "panel_notifications"
EVERY_SECONDS = 60  # seconds
MAX_EVENTS = 500
# This number of refusals in a row points to the token, not to one submission.
MAX_REFUSALS = 3
LONGEST_PAUSE = 3600
# Panels repeat a notification for two days at most.
EVENT_RETENTION = timedelta(days=30)


@dataclass(slots=True)
class IncrementalSyncSummary:
    """The result of a check. ``problem``: why it ended early."""

    asked: int = 0
    handled: int = 0
    changed: int = 0
    verified: int = 0
    problem: str = ""


def event_source_name(recruitment: Recruitment) -> str:
    return f"{recruitment.channel}:{recruitment.key}"[:64]


def unhandled_events(recruitment: Recruitment) -> QuerySet[PanelEvent]:
    """Return unprocessed notifications, the oldest first."""
    return PanelEvent.objects.filter(recruitment=recruitment, handled_at=None).order_by("pk")


def schedule_incremental_sync(recruitment: Recruitment, min_interval_seconds: int = 5) -> Job:
    """Return the job for this link: at most one per ``min_interval_seconds``, however many notifications arrive."""
    span = int(timezone.now().timestamp()) // min_interval_seconds
    token = f"news:{recruitment.pk}:{span}"
    return jobs.submit(
        NOTIFICATIONS_KIND, study=recruitment.study, by=None, request_token=token, recruitment=recruitment.pk
    )


def schedule_pending_syncs() -> int:
    """Return links with pending checks, unless their panel asked to wait."""
    recruitments = list(recruitments_to_sync())
    notified = set(
        PanelEvent.objects.filter(recruitment__in=recruitments, handled_at=None).values_list("recruitment", flat=True)
    )
    recruitment_ids = {
        assignment.recruitment_id for assignment in arrival_checks.recent_unchecked_arrivals(recruitments)
    }
    listing = [recruitment.pk for recruitment in recruitments if REGISTRY[recruitment.channel].has_blocklist]
    started = Assignment.objects.filter(
        recruitment__in=listing, claimed_at__gt=Now() - timedelta(seconds=2 * EVERY_SECONDS)
    ).order_by()
    recruitment_ids.update(started.values_list("recruitment", flat=True).distinct() if listing else ())
    recruitment_ids.update(alerts.recruitment_ids_with_pending_credits(recruitments))
    due = [
        recruitment
        for recruitment in recruitments
        if recruitment.pk in notified | recruitment_ids and not is_panel_backing_off(recruitment)
    ]
    for recruitment in due:
        schedule_incremental_sync(recruitment, EVERY_SECONDS)
    return len(due)


def run_incremental_sync_job(job: Job, progress) -> dict:
    recruitment = Recruitment.objects.select_related("study").get(pk=job.arguments["recruitment"])
    return (
        {}
        if is_panel_backing_off(recruitment)
        else asdict(send_orders_sync_changes_and_verify_arrivals(recruitment, get_panel_service(recruitment), progress))
    )


def send_orders_sync_changes_and_verify_arrivals(
    recruitment: Recruitment, service: PanelService, progress
) -> IncrementalSyncSummary:
    """Read each submission with a notification once, and store its state. Raises PanelUnavailable."""
    # People who started are kept out of other published tasks while notifications are processed.
    order_blocklist_credits_and_send_due_orders(recruitment, service, progress)
    events = list(unhandled_events(recruitment)[:MAX_EVENTS])
    arrivals = arrival_checks.recent_unchecked_arrivals([recruitment])
    # Check new arrivals first, because their place may belong to another person.
    names = list(
        dict.fromkeys(
            [
                *(assignment.external_ids["session"] for assignment in arrivals),
                *(event.body["submission"] for event in events),
            ]
        )
    )
    sync_summary, snapshots = _read_submissions(recruitment, service, names, progress)
    task_ids = set(get_panel_tasks_or_create_from_arrivals(recruitment).values_list("external_id", flat=True))
    sync_summary.verified = arrival_checks.record_checks_and_verify_arrivals(arrivals, snapshots)
    # A workspace's notifications cover all its studies, and addresses can name arbitrary tasks.
    own_snapshots = [snapshot for snapshot in snapshots.values() if snapshot is not None and snapshot.task in task_ids]
    try:
        summary = import_submissions_and_release_places(recruitment, own_snapshots, PanelSubmission.Source.SERVICE)
    except ValueError as error:
        raise PanelUnavailable(str(error)) from error
    sync_summary.changed = summary.new + summary.changed
    read = [event.pk for event in events if event.body["submission"] in snapshots]
    sync_summary.handled = PanelEvent.objects.filter(pk__in=read).update(handled_at=Now())
    return sync_summary


def _read_submissions(
    recruitment, service, names, progress
) -> tuple[IncrementalSyncSummary, dict[str, SubmissionSnapshot | None]]:
    summary, refused = IncrementalSyncSummary(), 0
    snapshots: dict[str, SubmissionSnapshot | None] = {}
    for n, name in enumerate(names):
        progress(n, len(names), "Checking submissions")
        summary.asked += 1
        try:
            snapshots[name], refused = service.submission(name), 0
        except RequestRefused as refusal:
            summary.problem, refused = str(refusal), refused + 1
            if refused == MAX_REFUSALS:
                break
        except (PanelBusy, ResultUnclear) as error:
            summary.problem = str(error)
            _back_off(recruitment, getattr(error, "seconds", 60.0))
            return summary, snapshots
    if snapshots:
        cache.delete_many([_pause_key(recruitment), _pauses_key(recruitment)])
    elif refused:
        _back_off(recruitment, 60.0)
    return summary, snapshots


def _pause_key(recruitment) -> str:
    return f"heval:panel:pause:{recruitment.pk}"


def _pauses_key(recruitment) -> str:
    return f"heval:panel:pauses:{recruitment.pk}"


def is_panel_backing_off(recruitment: Recruitment) -> bool:
    """Return whether the panel asked heval to wait."""
    return cache.get(_pause_key(recruitment)) is not None


def _back_off(recruitment, seconds: float) -> None:
    """Wait as long as the panel asked, and twice as long for each further request."""
    times = cache.get(_pauses_key(recruitment), 0)
    cache.set(_pauses_key(recruitment), times + 1, 2 * LONGEST_PAUSE)
    cache.set(_pause_key(recruitment), 1, max(1, min(seconds * 2**times, LONGEST_PAUSE)))


def delete_old_notifications() -> int:
    """Delete notifications once they can no longer be repeated, including those of unreadable submissions."""
    old = PanelEvent.objects.filter(received_at__lt=Now() - EVENT_RETENTION)
    return old.exclude(source=arrival_checks.SOURCE).delete()[0]


# Webhooks for panels' notifications: verify, store, and leave the work to a job.
#
# The address is among the annotators' pages, which use no cookies. Only the panel's signature counts.


MAX_BODY_BYTES = 64 * 1024
# A study of hundreds of people sends a few per minute. The panel repeats refused ones, and the regular check finds lost
# ones.
MAX_PER_MINUTE = 600


@require_POST
def receive_webhook(request, key) -> HttpResponse:
    """Store a notification. Idempotent. Its content is not trusted; the state is fetched from the panel."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        return HttpResponse(status=413)
    recruitment = Recruitment.objects.select_related("study").filter(key=key).first()
    channel = REGISTRY.get(recruitment.channel) if recruitment else None
    secret = (
        decrypt_panel_secret(recruitment, WEBHOOK_SECRET) if recruitment and channel and channel.sends_webhooks else ""
    )
    if recruitment is None or channel is None or not secret:
        raise Http404("There is no webhook at this address.")
    if count_and_check_rate_limit(f"webhook:{recruitment.pk}", MAX_PER_MINUTE):
        return HttpResponse(status=429, headers={"Retry-After": "60"})
    try:
        message = channel.read_message(secret, request.headers, request.body)
    except ForgedMessage:
        return HttpResponse(status=401)
    except ValueError as error:
        return HttpResponse(str(error), status=400, content_type="text/plain")
    with transaction.atomic():
        # A panel may notify several links of one event under one id; each link stores its own copy. The person's id is
        # not stored.
        _, is_new = PanelEvent.objects.get_or_create(
            source=event_source_name(recruitment),
            external_id=message.event_id,
            defaults={
                "recruitment": recruitment,
                "kind": message.kind,
                "body": {"submission": message.submission, "word": message.word},
                "handled_at": None if message.submission else Now(),
            },
        )
        if is_new and message.submission:
            schedule_incremental_sync(recruitment)
    return HttpResponse(status=200)
