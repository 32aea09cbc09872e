"""The periodic work around places and personal data."""

import logging

from studies.models import Study
from studies.services import jobs, lifecycle
from studies.services.lifecycle import ActionRefused

from .models import Assignment, PanelEvent, PanelIdentity, PanelSubmission, Recruitment
from .pay import id_retention
from .places import assign, monitor, top_ups
from .recruitment.panels import incremental_sync, reconcile
from .recruitment.panels import sync as panel_work

logger = logging.getLogger("heval.annotators")

jobs.register(panel_work.KIND, user_facing=(ActionRefused,), exclusive=True)(panel_work.run_sync_job)
jobs.register(incremental_sync.KIND, user_facing=(ActionRefused,), exclusive=True)(
    incremental_sync.run_incremental_sync_job
)


@jobs.every(panel_work.OPEN_EVERY)
def schedule_panel_syncs() -> int:
    """What panels show is read; what they were told is sent."""
    return panel_work.schedule_all_syncs()


@jobs.every(incremental_sync.EVERY_SECONDS)
def schedule_event_syncs() -> int:
    """What panels told of is looked at, also where a job ended before it was done."""
    return incremental_sync.schedule_pending_syncs()


@jobs.every(60)
def release_expired_places() -> int:
    """Places whose time is over go to the next person."""
    return assign.release_expired_places()


@jobs.every(60)
def settle_items() -> int:
    """Items whose annotators disagree are given to one more, where the labelling strategy says so."""
    return top_ups.settle_everywhere()


@jobs.every(60)
def end_grace_periods() -> int:
    """Studies that were closed long enough ago take no more answers: what is still sent is kept as late."""
    ended = lifecycle.finish_due()
    if ended:
        assign.release_expired_places()
    return ended


@jobs.every(3600)
def erase_person_ids() -> int:
    """Raw ids of people all of whose studies were closed longer ago than those studies declared, and who are owed nothing any more."""
    due, owed = id_retention.past_erasure_study_ids(), id_retention.unpaid_payments()
    owed_work, owed_people = owed.values("assignment"), owed.values("assignment__annotator")
    ids = Assignment.objects.filter(study__in=due).exclude(external_ids={}).exclude(pk__in=owed_work)
    ids.update(external_ids={})
    reconcile.erase_submission_ids(Recruitment.objects.filter(study__in=due), except_assignments=owed_work)
    PanelEvent.objects.filter(recruitment__study__in=due).delete()
    kept = Assignment.objects.exclude(study__in=due).values("annotator")
    # People whom a panel shows and who never came here may still be written to, and paid.
    shown = PanelSubmission.objects.exclude(recruitment__study__in=due).values("annotator")
    over = (
        PanelIdentity.objects.filter(ciphertext__isnull=False).exclude(annotator__in=kept).exclude(annotator__in=shown)
    )
    return over.exclude(annotator__in=owed_people).update(ciphertext=None, purge_at=None)


@jobs.every(3600)
def delete_old_panel_events() -> int:
    """Panels' messages that cannot be repeated any more."""
    return incremental_sync.delete_old_events()


@jobs.every(3600)
def check_place_counts() -> int:
    """A check that what batches say is what assignments are; a difference is a fault, and is logged as one."""
    wrong = assign.miscounted_batches()
    for number, claimed, held in wrong[:20]:
        logger.error("batch %s says %s places are claimed, %s assignments hold one", number, claimed, held)
    return len(wrong)


@jobs.every(300)
def update_usual_times() -> int:
    """How long the work takes in fact, for the pages of those who still do it."""
    return sum(monitor.update_usual_time(study) for study in Study.objects.filter(state=Study.State.LAUNCHED))
