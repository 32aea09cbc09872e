"""The job that synchronises with a panel: it sends orders, reads submissions, and sends the orders that follow from
them.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.urls import reverse
from django.utils import timezone

from annotators.models import PanelOrder, PanelSecret, PanelSubmission, Recruitment
from annotators.models.constants import SUBMITTED
from annotators.recruitment.channels import REGISTRY
from studies.access import Action, check_permission_or_404
from studies.models import Job, Study
from studies.services import jobs

from . import (
    PanelBusy,
    PanelService,
    RequestRefused,
    ResultUnclear,
    SubmissionSnapshot,
    alerts,
    blocklists,
    credits,
    rounds,
)
from .orders import send_due_orders
from .publishing import done_or_pending_publication_orders, get_panel_tasks_or_create_from_arrivals
from .reconcile import ImportSummary, import_submissions_and_release_places
from .secrets import WEBHOOK_SECRET, get_panel_service, store_or_delete_secrets

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
        if rounds.order_next_round(recruitment, by=None):
            send_due_orders(recruitment, service, progress)
        alerts.refresh_cached_funds(recruitment, service)
        alerts.refresh_cached_fees(recruitment, service, tasks)
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
    blocklists.order_blocklist_additions_if_published(recruitment)
    credits.record_sign_ups_and_order_credits(recruitment)
    send_due_orders(recruitment, service, progress)
    credits.record_granted_credits(recruitment)


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
