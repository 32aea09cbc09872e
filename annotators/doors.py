"""Closing one link and opening it again. The only writer of ``Recruitment.stopped_at``."""

from django.db import transaction
from django.db.models.functions import Now

from studies import audit

from .models import Recruitment


def stop(recruitment: Recruitment, by=None) -> bool:
    """Nobody new comes by this link; who is at work finishes. False where it was stopped before."""
    return _set(recruitment, "stop link", by, was_stopped=False)


def reopen(recruitment: Recruitment, by=None) -> bool:
    """People may come by this link again. False where it was not stopped."""
    return _set(recruitment, "open link again", by, was_stopped=True)


def _set(recruitment: Recruitment, verb: str, by, was_stopped: bool) -> bool:
    with transaction.atomic():
        row = Recruitment.objects.filter(pk=recruitment.pk, stopped_at__isnull=not was_stopped)
        is_set = bool(row.update(stopped_at=None if was_stopped else Now()))
        if is_set:
            audit.record(verb, study=recruitment.study, by=by, recruitment=recruitment.key)
    return is_set
