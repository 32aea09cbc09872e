"""Jobs: long tasks stored as database rows, and the parts of those that several workers share."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from .fields import (
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
)
from .study import Study


class Job(models.Model):
    """A long task with a lease. The holder of the lease runs the task; the lease of a dead holder expires."""

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=50)
    study = optional_protected_foreign_key(Study, "jobs")
    arguments = models.JSONField(default=dict, blank=True)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    doing = models.CharField(max_length=200, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    leased_until = optional_noneditable_datetime_field()
    holder = models.CharField(max_length=64, blank=True)
    request_token = models.CharField(max_length=64, null=True, blank=True)
    result = models.JSONField(null=True, blank=True)
    error = models.TextField(blank=True)
    is_cancel_wanted = models.BooleanField(default=False)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    created_at = models.DateTimeField(db_default=Now())
    started_at = optional_noneditable_datetime_field()
    ended_at = optional_noneditable_datetime_field()
    # When the person who started it saw that it had ended.
    seen_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            UniqueConstraint(fields=["request_token"], name="job_request_token_once"),
            CheckConstraint(
                name="job_runs_under_a_lease",
                condition=(Q(state="running", leased_until__isnull=False) & ~Q(holder="")) | ~Q(state="running"),
            ),
            CheckConstraint(
                name="job_ended_has_a_time",
                condition=Q(state__in=["waiting", "running"], ended_at=None) | Q(ended_at__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["state", "leased_until"], name="job_to_run")]

    def __str__(self):
        return f"{self.kind} {self.code}"


class JobPart(models.Model):
    """A part of a running job that any worker may compute. The holder of its lease does. Parts are deleted after their job ends."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    arguments = models.JSONField()
    attempts = models.PositiveSmallIntegerField(default=0)
    leased_until = optional_noneditable_datetime_field()
    holder = models.CharField(max_length=64, blank=True)
    is_done = models.BooleanField(default=False)
    result = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["job", "number"]
        constraints = [
            UniqueConstraint(fields=["job", "number"], name="job_part_once_per_number"),
            CheckConstraint(
                name="job_part_is_held_under_a_lease",
                condition=Q(holder="", leased_until=None)
                | (~Q(holder="") & Q(leased_until__isnull=False, is_done=False)),
            ),
            CheckConstraint(
                name="job_part_has_a_result_when_it_is_done", condition=Q(is_done=True) | Q(result__isnull=True)
            ),
        ]

    def __str__(self):
        return f"part {self.number} of {self.job}"
