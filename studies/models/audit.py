"""The audit log. Each act writes one row, in the act's own transaction."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from .fields import optional_protected_foreign_key
from .guards import AppendOnlyModel
from .study import Study


class AuditEvent(AppendOnlyModel):
    """An act: who did what, and when. ``data`` holds no personal data of annotators."""

    at = models.DateTimeField(db_default=Now())
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    study = optional_protected_foreign_key(Study, "audit_events")
    assignment_code = models.CharField(
        max_length=32, blank=True
    )  # not a foreign key: studies does not import annotators
    verb = models.CharField(max_length=50)
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-pk"]
        base_manager_name = "objects"

    def __str__(self):
        return self.verb


def record(verb: str, *, by, study=None, assignment_code: str = "", **data) -> AuditEvent:
    """Record that ``by`` did ``verb``. ``by`` is a user, or None if an annotator or the site itself acts.

    ``data`` holds no personal data of annotators.
    """
    return AuditEvent.objects.create(verb=verb, study=study, by=by, assignment_code=assignment_code, data=data)


def record_study_event(verb: str, study, *, by, **data) -> AuditEvent:
    """Record an act that must not prevent the deletion of a draft: the row names a draft only by its number."""
    if study.is_draft:
        return record(verb, by=by, draft=study.pk, **data)
    return record(verb, study=study, by=by, **data)


def events_of(study) -> QuerySet[AuditEvent]:
    """Return all events of a study, from its first draft."""
    return AuditEvent.objects.filter(Q(study=study) | Q(study=None, data__draft=study.pk))


def bulk_record(verb: str, events: Iterable[dict[str, Any]], *, by, study=None) -> None:
    """Record the same act about many objects, one row each. ``events`` gives each row's ``assignment_code`` and data."""
    AuditEvent.objects.bulk_create(
        [
            AuditEvent(verb=verb, study=study, by=by, assignment_code=act.pop("assignment_code", ""), data=act)
            for act in map(dict, events)
        ],
        batch_size=500,
    )
