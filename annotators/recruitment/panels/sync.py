"""The job that speaks to a panel: sends what is ordered, reads what is shown, and sends what follows from it."""

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
from studies.access import Action, check_permission
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
from .publishing import publication_orders, tasks_of
from .reconcile import ImportSummary, import_submissions
from .secrets import WEBHOOK_SECRET, service_of, store_secrets

KIND = "panel"
OPEN_EVERY, CLOSED_EVERY = 300, 3600  # seconds
# Panels decide by themselves after days; later there is nothing to see.
WATCHED_DAYS = 14


class PanelUnavailable(jobs.UserFacingError):
    """The panel could not be asked; the words say why."""


def sync_panel(recruitment: Recruitment, progress, dry_run: bool = False) -> ImportSummary:
    """Send orders (not in a rehearsal), read all submissions of all tasks, write down what they say. Raises Silent, NoService."""
    service = service_of(recruitment)
    if not dry_run:
        push_orders(recruitment, service, progress)
    is_shown = REGISTRY[recruitment.channel].shows_submissions
    try:
        shown, tasks = _shown(recruitment, service, progress) if is_shown else ([], [])
    except (RequestRefused, ResultUnclear, PanelBusy) as words:
        raise PanelUnavailable(f"The panel did not show its submissions: {words}") from words
    try:
        summary = import_submissions(recruitment, shown, PanelSubmission.Source.SERVICE, dry_run)
    except ValueError as words:
        raise PanelUnavailable(str(words)) from words
    if not dry_run:
        # The plan orders the next round, whoever asked for this look.
        if rounds.order_next_round(recruitment, by=None):
            send_due_orders(recruitment, service, progress)
        alerts.cache_funds(recruitment, service)
        alerts.cache_fees(recruitment, service, tasks)
    return summary


def _shown(recruitment: Recruitment, service: PanelService, progress) -> tuple[list[SubmissionSnapshot], list[str]]:
    """All submissions of all tasks, and which tasks these are. A task that the panel refuses to show is passed over where others are shown, and nothing but people's
    addresses has ever named it: anybody can type an address."""
    tasks = list(tasks_of(recruitment))
    ours = {str(result.get("task")) for result in publication_orders(recruitment).values_list("result", flat=True)}
    ours |= set(PanelSubmission.objects.filter(task__in=tasks).values_list("task__external_id", flat=True))
    shown: list[SubmissionSnapshot] = []
    read: list[str] = []
    refusals: list[RequestRefused] = []
    for n, task in enumerate(row.external_id for row in tasks):
        progress(n, len(tasks), "Reading submissions")
        try:
            for seen in service.submissions(task):
                # A panel may name a part of what was published together.
                shown.append(replace(seen, task=task))
                if len(shown) % 100 == 0:
                    progress(n, len(tasks), f"Reading submissions: {len(shown)}")
            read.append(task)
        except RequestRefused as no:
            if task in ours:
                raise
            refusals.append(no)
    if refusals and len(refusals) == len(tasks):
        raise refusals[0]
    return shown, read


def push_orders(recruitment: Recruitment, service: PanelService, progress) -> None:
    """Order what follows from how things stand here, send all that is due, and write down what came of it."""
    blocklists.update_blocklist(recruitment)
    credits.order_credits(recruitment)
    send_due_orders(recruitment, service, progress)
    credits.record_granted_credits(recruitment)


def run_sync_job(job: Job, progress) -> dict:
    recruitment = Recruitment.objects.select_related("study").get(pk=job.arguments["recruitment"])
    for name, step in _steps.items():
        if job.arguments.get(name):
            step(recruitment, by=job.by)
    return asdict(sync_panel(recruitment, progress))


def webhook_url(recruitment: Recruitment) -> str:
    """Where the panel's messages about this link go."""
    return f"{settings.SITE_URL}{reverse('hook', args=[recruitment.key])}"


def enable_webhooks(recruitment: Recruitment, *, by) -> None:
    """Let the panel tell of changes by itself. Raises Silent, NoService."""
    check_permission(by, Action.PANEL, recruitment.study)
    try:
        secret = service_of(recruitment).subscribe(webhook_url(recruitment))
    except (RequestRefused, ResultUnclear, PanelBusy) as words:
        raise PanelUnavailable(f"The panel does not send messages: {words}") from words
    store_secrets(recruitment, {WEBHOOK_SECRET: secret}, by=by)


# What a job may be asked to do before it asks the panel, by the name of its argument.
_steps: dict[str, Callable[..., object]] = {"listens": enable_webhooks}


def register_step(name: str, step: Callable[..., object]) -> None:
    """Let ``ask_soon(recruitment, **{name: True})`` call ``step(recruitment, by=by)`` before the panel is asked. What it
    raises ends the job."""
    _steps[name] = step


def recruitments_to_sync() -> QuerySet[Recruitment]:
    """Recruitments with a secret: of studies that run or ended not long ago, and later as long as an order waits or the panel has yet to
    decide by itself."""
    recent = Now() - timedelta(days=WATCHED_DAYS)
    running = Q(study__state__in=[*Study.RUNNING, Study.State.CLOSING])
    ended = Q(study__state=Study.State.CLOSED, study__closed_at__gt=recent)
    here = {"recruitment": OuterRef("pk")}
    waiting = PanelOrder.objects.filter(**here, state__in=[PanelOrder.State.WAITING, PanelOrder.State.SENT])
    # A day longer, to see it decided.
    undecided = PanelSubmission.objects.filter(**here, state=SUBMITTED, decides_itself_at__gt=Now() - timedelta(days=1))
    token = PanelSecret.objects.filter(**here).exclude(name=WEBHOOK_SECRET)
    return (
        Recruitment.objects.filter(running | ended | Exists(waiting) | Exists(undecided), Exists(token))
        .select_related("study")
        .order_by("pk")
    )


def schedule_sync(recruitment: Recruitment, *, by, seconds: int = 5, **steps: bool) -> Job:
    """The job that asks this panel: one in each span of ``seconds``, however often it is wished for.

    ``approves=True``: order the approval of what was sent to both first. ``listens=True``: let the panel tell by itself from now on.
    """
    check_permission(by, Action.PANEL, recruitment.study)
    span, wished = (
        int(timezone.now().timestamp()) // seconds,
        sorted(name for name, is_wished in steps.items() if is_wished),
    )
    return jobs.submit(
        KIND,
        study=recruitment.study,
        by=by,
        request_token=f"panel:{recruitment.pk}:{'+'.join(wished)}:{span}",
        recruitment=recruitment.pk,
        **dict.fromkeys(wished, True),
    )


def schedule_all_syncs() -> int:
    """The regular look: often while people come, hourly afterwards."""
    found = list(recruitments_to_sync())
    for recruitment in found:
        schedule_sync(
            recruitment, by=None, seconds=CLOSED_EVERY if recruitment.study.state == Study.State.CLOSED else OPEN_EVERY
        )
    return len(found)
