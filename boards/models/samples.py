"""Samples: the prompts that a board's rounds score, in versions."""

from django.conf import settings
from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models.fields import optional_protected_foreign_key
from studies.models.guards import AppendOnlyModel

from .board import Board


class BoardSample(AppendOnlyModel):
    """A version of a board's subsample. The first is drawn when the board opens; each later one renews a share of the one before it.

    ``keys``: all prompts of the version, in the order of their keys. ``share``: how much of the version before it was renewed.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="samples")
    number = models.PositiveIntegerField()
    keys = models.JSONField()
    seed = models.PositiveBigIntegerField(validators=[MaxValueValidator(2**62)])
    share = models.DecimalField(max_digits=3, decimal_places=2, null=True)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["number"]
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["board", "number"], name="sample_number_once_per_board"),
            UniqueConstraint(fields=["board", "seed"], name="sample_seed_once_per_board"),
            CheckConstraint(
                name="sample_renews_a_share_of_an_earlier_one",
                condition=Q(number=1, share=None) | Q(number__gte=2, share__gt=0, share__lt=1),
            ),
        ]

    def __str__(self):
        return f"sample {self.number}"
