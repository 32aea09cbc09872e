"""Snapshots: the results of a board at one time."""

from django.conf import settings
from django.db import models
from django.db.models import UniqueConstraint
from django.db.models.functions import Now

from studies.models.fields import optional_protected_foreign_key
from studies.models.guards import AppendOnlyModel

from .board import Board


class BoardSnapshot(AppendOnlyModel):
    """The results of a board over its closed rounds, computed once. Its address is permanent.

    ``result`` names submissions by their numbers, so that it never reveals the name of an anonymous or withdrawn one.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="snapshots")
    number = models.PositiveIntegerField()
    result = models.JSONField()
    result_sha256 = models.CharField(max_length=64)
    n_labels = models.PositiveIntegerField()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-number"]
        base_manager_name = "objects"
        constraints = [UniqueConstraint(fields=["board", "number"], name="snapshot_number_once_per_board")]

    def __str__(self):
        return f"snapshot {self.number}"
