"""Periodic jobs for places, panels and personal data."""

import logging

from studies.models import Job, Study
from studies.services import events, jobs, lifecycle
from studies.services.lifecycle import ActionRefused

from .events import subscriptions
from .imports import writing
from .models import Assignment, PanelEvent, PanelIdentity, PanelSubmission, Recruitment
from .pay import decisions, ledger
from .places import assign, monitor
from .places.places import can_places_become_free_or_be_added
from .recruitment.panels import reconcile, sync

logger = logging.getLogger("heval.annotators")

jobs.register(sync.KIND, user_facing_errors=(ActionRefused,), is_one_per_study=True, is_short=True, keeps_steps=True)(
    sync.run_requested_steps_and_sync_panel
)
jobs.register(
    sync.NOTIFICATIONS_KIND, user_facing_errors=(ActionRefused,), is_one_per_study=True, is_short=True, keeps_steps=True
)(sync.run_incremental_sync_job)


@jobs.register_periodic(15)
def record_reached_counts_and_send_events() -> int:
    """Record that a study has as many answers as somebody waits for, and start a job for each event that is to be sent."""
    subscriptions.record_reached_counts()
    return subscriptions.submit_due_deliveries()


@jobs.register(events.DELIVERY_JOB)
def deliver_event_job(job: Job, progress: jobs.ProgressReporter) -> dict:
    """Send an event of a study once. A failed attempt is repeated by another job, after a pause."""
    from .events.delivery import deliver

    return deliver(job)


@jobs.register_periodic(sync.OPEN_EVERY)
def schedule_panel_syncs() -> int:
    """Start jobs that read the state of panels and send orders to them."""
    return sync.schedule_all_syncs()


@jobs.register_periodic(sync.EVERY_SECONDS)
def schedule_pending_panel_syncs() -> int:
    """Start jobs for the panels' notifications, also if an earlier job stopped before its end."""
    return sync.schedule_pending_syncs()


@jobs.register_periodic(60)
def release_expired_places() -> int:
    """Release places whose time is over, so that other people can take them."""
    return assign.release_expired_places()


@jobs.register_periodic(60)
def remove_unfinished_imports() -> int:
    """Remove the answers of imports that ended early."""
    return writing.remove_unfinished_imports()


@jobs.register_periodic(60)
def settle_or_top_up_disputed_items() -> int:
    """Give items with disagreeing labels to one more annotator, if the labelling strategy says so."""
    return monitor.settle_or_top_up_items()


@jobs.register_periodic(60)
def end_due_grace_periods_and_release_places() -> int:
    """Close closing studies after their grace period, or earlier if nobody is answering and no item waits for a third label.

    Answers that arrive later are stored as late.
    """
    ended = lifecycle.end_due_grace_periods(can_places_become_free_or_be_added)
    if ended:
        assign.release_expired_places()
    return ended


@jobs.register_periodic(3600)
def erase_due_person_and_panel_ids() -> int:
    """Erase the raw ids of people who are owed nothing, the declared number of days after all their studies closed."""
    due, owed = ledger.study_ids_past_erasure_time(), ledger.unpaid_payments()
    owed_work, owed_people = owed.values("assignment"), owed.values("assignment__annotator")
    ids = Assignment.objects.filter(study__in=due).exclude(external_ids={}).exclude(pk__in=owed_work)
    ids.update(external_ids={})
    reconcile.erase_submission_ids(Recruitment.objects.filter(study__in=due), except_assignments=owed_work)
    PanelEvent.objects.filter(recruitment__study__in=due).delete()
    retained = Assignment.objects.exclude(study__in=due).values("annotator")
    # Keep the ids of people whom a panel lists but who never came here: they may still get messages and pay.
    shown_annotators = PanelSubmission.objects.exclude(recruitment__study__in=due).values("annotator")
    erasable = (
        PanelIdentity.objects.filter(ciphertext__isnull=False)
        .exclude(annotator__in=retained)
        .exclude(annotator__in=shown_annotators)
    )
    return erasable.exclude(annotator__in=owed_people).update(ciphertext=None, purge_at=None)


@jobs.register_periodic(3600)
def erase_closed_appeals_of_withdrawn() -> int:
    """Erase the objections of people who left, if a lifted barring or the panel has closed them."""
    return decisions.erase_closed_appeals_of_withdrawn()


@jobs.register_periodic(3600)
def delete_old_panel_notifications() -> int:
    """Delete panels' notifications that are too old to be repeated."""
    return sync.delete_old_notifications()


@jobs.register_periodic(3600)
def log_miscounted_batches() -> int:
    """Check that each batch's count of claimed places equals its assignments. Log every difference as an error."""
    miscounted = assign.find_miscounted_batches()
    for number, claimed, n_held in miscounted[:20]:
        logger.error("batch %s counts %s claimed places, but %s assignments hold a place", number, claimed, n_held)
    return len(miscounted)


@jobs.register_periodic(300)
def update_median_working_times() -> int:
    """Update the median working time, which annotators' pages use to estimate the minutes left."""
    return sum(monitor.update_median_working_time(study) for study in Study.objects.filter(state=Study.State.LAUNCHED))
