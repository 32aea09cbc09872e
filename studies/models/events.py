"""Events of a study that programs and members hear of: where they are sent, what happened, and each delivery."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from .fields import HEADCOUNT_VALIDATORS, optional_noneditable_datetime_field, protected_foreign_key
from .study import Study


class EventKind(models.TextChoices):
    LAUNCHED = "launched", "the study is launched"
    ANSWERS = "answers", "so many people have submitted"
    TARGET = "target", "the target is reached"
    CLOSED = "closed", "the study is closed"
    REPORT = "report", "a report is ready"
    ATTENTION = "attention", "something needs attention"
    TEST = "test", "somebody tries a subscription"


# What a subscription may ask for.
OFFERED_EVENTS = tuple(kind for kind in EventKind if kind != EventKind.TEST)


class EventSubscription(models.Model):
    """Where events of a study are sent: a webhook, which has an address and a secret. Without an address: mail to who made it.

    ``answers``: after how many submitted assignments the event ``answers`` happens.
    """

    study = models.ForeignKey(Study, models.CASCADE, related_name="event_subscriptions")
    url = models.CharField(max_length=500, blank=True)
    secret = models.BinaryField(null=True)
    events = models.JSONField(default=list)
    answers = models.PositiveIntegerField(null=True, blank=True, validators=HEADCOUNT_VALIDATORS)
    by = protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            CheckConstraint(
                name="event_webhook_has_a_secret",
                condition=Q(url="", secret=None) | (~Q(url="") & Q(secret__isnull=False)),
            ),
            UniqueConstraint(fields=["study", "by"], condition=Q(url=""), name="event_mail_once_per_member"),
        ]

    def __str__(self):
        return self.url or f"mail to {self.by}"

    def wants(self, kind: str, key: str) -> bool:
        return kind in self.events and (kind != EventKind.ANSWERS or key == str(self.answers))


class StudyEvent(models.Model):
    """Something that happened to a study, recorded once. ``key`` tells events of one kind apart. ``facts`` has no names and no answers."""

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    study = models.ForeignKey(Study, models.CASCADE, related_name="events")
    kind = models.CharField(max_length=9, choices=EventKind)
    key = models.CharField(max_length=100, blank=True)
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [UniqueConstraint(fields=["study", "kind", "key"], name="event_of_a_study_once")]

    def __str__(self):
        return f"{self.kind} {self.key}".strip()


class EventDelivery(models.Model):
    """An event on its way to a subscription. ``next_at``: when it is tried next; empty after it arrived or was given up.

    ``status`` and ``problem``: of the last attempt.
    """

    subscription = models.ForeignKey(EventSubscription, models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(StudyEvent, models.CASCADE, related_name="deliveries")
    attempts = models.PositiveSmallIntegerField(default=0)
    status = models.PositiveSmallIntegerField(null=True)
    problem = models.CharField(max_length=200, blank=True)
    next_at = models.DateTimeField(null=True, db_default=Now())
    delivered_at = optional_noneditable_datetime_field()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["subscription", "event"], name="event_delivery_once_per_subscription"),
            CheckConstraint(name="event_delivery_that_arrived_ends", condition=Q(delivered_at=None) | Q(next_at=None)),
        ]
        indexes = [models.Index(fields=["next_at"], condition=Q(next_at__isnull=False), name="event_delivery_due")]

    def __str__(self):
        return f"{self.event} to {self.subscription}"

    @property
    def state(self) -> str:
        if self.delivered_at:
            return "delivered"
        return "given up" if self.next_at is None else "waiting"
