"""Record events of a study. The code that writes a fact calls ``record`` in the same transaction. Nothing is sent here.

docs: how-to/hear-of-events. ``annotators.events`` finds the events that are counts, and sends what is due.
"""

from studies.models import EventDelivery, EventSubscription, Job, Study, StudyEvent
from studies.models.events import EventKind

# The jobs that send events. They are no events themselves.
DELIVERY_JOB = "deliver_event"


def record(study: Study, kind: str, key: str = "", *, spares: EventSubscription | None = None, **facts) -> None:
    """Record an event once, and that each subscription that wants it is to get it. Without one, nothing is stored."""
    wanting = [one for one in EventSubscription.objects.filter(study=study) if one.wants(kind, key) and one != spares]
    if wanting:
        event, _ = StudyEvent.objects.get_or_create(study=study, kind=kind, key=key, defaults={"facts": facts})
        deliveries = [EventDelivery(subscription=one, event=event) for one in wanting]
        EventDelivery.objects.bulk_create(deliveries, ignore_conflicts=True)


def record_attention(study: Study, reason: str, key: object, **options) -> None:
    """Record that something needs the attention of a person. ``reason``: in a few words, without names."""
    record(study, EventKind.ATTENTION, f"{reason} {key}"[:100], reason=reason, **options)


def record_failed_job(job: Job) -> None:
    # The end of an import may have deleted its new study.
    if job.study is not None and job.study.pk is not None and job.kind != DELIVERY_JOB:
        record_attention(job.study, "a job failed", job.pk, job=str(job.code), job_kind=job.kind)
