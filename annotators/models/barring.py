"""Barrings: an annotator gets no further batch of a study. What they submitted stays, with its pay."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Study
from studies.models.fields import (
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)

from .assignments import Annotator


class Barring(models.Model):
    """The decision that an annotator gets no further batch of a study and of its exclusion group, until it is lifted.

    ``screening``: the number of the screening that a barring by rule rests on. ``reason``: for colleagues only.
    """

    class Ground(models.TextChoices):
        RULE = "rule", "by the test questions"
        HAND = "hand", "by hand"

    study = protected_foreign_key(Study, "barrings")
    annotator = protected_foreign_key(Annotator, "barrings")
    ground = models.CharField(max_length=4, choices=Ground)
    reason = models.TextField(blank=True)
    screening = models.PositiveBigIntegerField(null=True, blank=True)  # no foreign key: analysis imports annotators
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())
    lifted_at = optional_noneditable_datetime_field()
    lifted_by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    lift_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["study", "annotator"], condition=Q(lifted_at=None), name="barring_once_until_it_is_lifted"
            ),
            CheckConstraint(
                name="barring_rests_on_a_screening_or_on_a_decision_with_a_reason",
                condition=Q(ground="rule", by=None, screening__isnull=False, reason="")
                | (Q(ground="hand", by__isnull=False, screening=None) & ~Q(reason="")),
            ),
            CheckConstraint(
                name="barring_is_lifted_whole_or_not_at_all",
                condition=Q(lifted_at=None, lifted_by=None, lift_reason="")
                | (Q(lifted_at__isnull=False, lifted_by__isnull=False) & ~Q(lift_reason="")),
            ),
            CheckConstraint(
                name="barring_is_lifted_after_it_was_made",
                condition=Q(lifted_at=None) | Q(lifted_at__gte=F("at")),
            ),
        ]

    def __str__(self):
        return f"barring {self.pk}"
