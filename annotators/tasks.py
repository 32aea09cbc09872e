"""The periodic work around places and personal data."""

import logging

from studies.models import Study
from studies.services import jobs, lifecycle
from studies.services.lifecycle import NotNow

from .models import Assignment, PanelEvent, PanelIdentity, PanelSubmission, Recruitment
from .pay import keeping
from .places import assign, monitor, settle
from .recruitment.panels import news, reconcile
from .recruitment.panels import sync as panel_work

logger = logging.getLogger("heval.annotators")

jobs.register(panel_work.KIND, readable=(NotNow,), exclusive=True)(panel_work.work)
jobs.register(news.KIND, readable=(NotNow,), exclusive=True)(news.work)


@jobs.every(panel_work.OPEN_EVERY)
def ask_panels() -> int:
    """What panels show is read; what they were told is sent."""
    return panel_work.ask_all()


@jobs.every(news.EVERY)
def look_at_news() -> int:
    """What panels told of is looked at, also where a job ended before it was done."""
    return news.look_everywhere()


@jobs.every(60)
def give_back_expired_places() -> int:
    """Places whose time is over go to the next person."""
    return assign.sweep()


@jobs.every(60)
def settle_items() -> int:
    """Items whose annotators disagree are given to one more, where the labelling strategy says so."""
    return settle.settle_everywhere()


@jobs.every(60)
def end_grace_periods() -> int:
    """Studies that were closed long enough ago take no more answers: what is still sent is kept as late."""
    ended = lifecycle.finish_due()
    if ended:
        assign.sweep()
    return ended


@jobs.every(3600)
def erase_panel_ids() -> int:
    """Raw ids of people all of whose studies were closed longer ago than those studies declared, and who are owed nothing any more."""
    due, owed = keeping.over(), keeping.unpaid()
    owed_work, owed_people = owed.values("assignment"), owed.values("assignment__annotator")
    ids = Assignment.objects.filter(study__in=due).exclude(external_ids={}).exclude(pk__in=owed_work)
    ids.update(external_ids={})
    reconcile.forget(Recruitment.objects.filter(study__in=due), but=owed_work)
    PanelEvent.objects.filter(recruitment__study__in=due).delete()
    kept = Assignment.objects.exclude(study__in=due).values("annotator")
    # People whom a panel shows and who never came here may still be written to, and paid.
    shown = PanelSubmission.objects.exclude(recruitment__study__in=due).values("annotator")
    over = (
        PanelIdentity.objects.filter(ciphertext__isnull=False).exclude(annotator__in=kept).exclude(annotator__in=shown)
    )
    return over.exclude(annotator__in=owed_people).update(ciphertext=None, purge_at=None)


@jobs.every(3600)
def forget_messages() -> int:
    """Panels' messages that cannot be repeated any more."""
    return news.forget_messages()


@jobs.every(3600)
def count_places() -> int:
    """A check that what batches say is what assignments are; a difference is a fault, and is logged as one."""
    wrong = assign.miscounted_batches()
    for number, claimed, held in wrong[:20]:
        logger.error("batch %s says %s places are claimed, %s assignments hold one", number, claimed, held)
    return len(wrong)


@jobs.every(300)
def note_usual_times() -> int:
    """How long the work takes in fact, for the pages of those who still do it."""
    return sum(monitor.note_usual_time(study) for study in Study.objects.filter(state=Study.State.LAUNCHED))
