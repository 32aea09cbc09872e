"""The job that runs soon after an event: a notification, an arrival, a finished visit, or a person to keep out.

It asks the service for the current state, so notifications may be late, doubled and out of order. The regular check
finds what it misses.
"""

from dataclasses import asdict, dataclass
from datetime import timedelta

from django.core.cache import cache
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from annotators.models import Assignment, PanelEvent, PanelSubmission, Recruitment
from annotators.recruitment.channels import REGISTRY
from studies.models import Job
from studies.services import jobs

from . import PanelBusy, PanelService, RequestRefused, ResultUnclear, SubmissionSnapshot, arrival_checks, credits
from .publishing import get_panel_tasks_or_create_from_arrivals
from .reconcile import import_submissions_and_release_places
from .secrets import get_panel_service
from .sync import PanelUnavailable, order_blocklist_credits_and_send_due_orders, recruitments_to_sync

KIND = "panel_notifications"
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
    return jobs.submit(KIND, study=recruitment.study, by=None, request_token=token, recruitment=recruitment.pk)


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
    recruitment_ids.update(credits.recruitment_ids_with_pending_credits(recruitments))
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
