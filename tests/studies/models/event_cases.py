"""Rows of events that the database must refuse, by constraint."""

from studies.models import EventDelivery, EventSubscription, StudyEvent
from tests.studies.models.rows import NOW, saved


def subscription(w, **columns):
    return EventSubscription(**{"study": w["study"], "by": w["researcher"], "events": ["closed"]} | columns)


def closing(w):
    return StudyEvent(study=w["study"], kind="closed")


def delivery(w, **columns):
    return EventDelivery(subscription=saved(subscription(w)), event=saved(closing(w)), **columns)


def twice(w):
    first = saved(delivery(w))
    return EventDelivery(subscription=first.subscription, event=first.event)


EVENT_CASES = {
    "event_webhook_has_a_secret": lambda w: subscription(w, url="https://example.org/"),
    "event_mail_once_per_member": lambda w: saved(subscription(w)) and subscription(w),
    "event_of_a_study_once": lambda w: saved(closing(w)) and closing(w),
    "event_delivery_once_per_subscription": twice,
    "event_delivery_that_arrived_ends": lambda w: delivery(w, delivered_at=NOW, next_at=NOW),
}
