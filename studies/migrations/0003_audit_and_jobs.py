"""Who did what, and long work."""

import uuid

from django.conf import settings
from django.db import migrations, models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.migrations._tables import moment, optional_link, table


class Migration(migrations.Migration):
    replaces = [
        ("studies", "0003_replacing_is_explained"),
        ("studies", "0004_usual_time"),
        ("studies", "0005_amounts_have_limits"),
        ("studies", "0006_a_stopping_rule_is_of_its_section"),
    ]
    dependencies = [("studies", "0002_stimuli_and_batches"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        table(
            "AuditEvent",
            at=models.DateTimeField(db_default=Now()),
            assignment_code=models.CharField(max_length=32, blank=True),
            verb=models.CharField(max_length=50),
            data=models.JSONField(default=dict, blank=True),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=optional_link("studies.study", "audit_events"),
            options={"base_manager_name": "objects", "ordering": ["-pk"]},
        ),
        table(
            "Job",
            code=models.UUIDField(default=uuid.uuid4, editable=False, unique=True),
            kind=models.CharField(max_length=50),
            arguments=models.JSONField(default=dict, blank=True),
            state=models.CharField(
                max_length=9,
                choices=[
                    ("waiting", "Waiting"),
                    ("running", "Running"),
                    ("done", "Done"),
                    ("failed", "Failed"),
                    ("cancelled", "Cancelled"),
                ],
                default="waiting",
            ),
            doing=models.CharField(max_length=200, blank=True),
            done=models.PositiveIntegerField(default=0),
            total=models.PositiveIntegerField(default=0),
            attempts=models.PositiveSmallIntegerField(default=0),
            leased_until=moment(),
            holder=models.CharField(max_length=64, blank=True),
            request_token=models.CharField(max_length=64, null=True, blank=True),
            result=models.JSONField(null=True, blank=True),
            error=models.TextField(blank=True),
            is_cancel_wanted=models.BooleanField(default=False),
            created_at=models.DateTimeField(db_default=Now()),
            started_at=moment(),
            ended_at=moment(),
            by=optional_link(settings.AUTH_USER_MODEL),
            study=optional_link("studies.study", "jobs"),
            options={
                "ordering": ["-pk"],
                "constraints": [
                    UniqueConstraint(fields=["request_token"], name="job_request_token_once"),
                    CheckConstraint(
                        condition=(Q(leased_until__isnull=False, state="running") & ~Q(holder=""))
                        | ~Q(state="running"),
                        name="job_runs_under_a_lease",
                    ),
                    CheckConstraint(
                        condition=Q(ended_at=None, state__in=["waiting", "running"]) | Q(ended_at__isnull=False),
                        name="job_ended_has_a_time",
                    ),
                ],
                "indexes": [Index(fields=["state", "leased_until"], name="job_to_run")],
            },
        ),
    ]
