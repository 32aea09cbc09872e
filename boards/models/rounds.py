"""Rounds: studies that score submissions."""

from hashlib import sha256
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Study, System
from studies.models.fields import (
    NONNEGATIVE_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
)

from .board import Board
from .samples import BoardSample
from .submissions import Submission


class BoardRound(models.Model):
    """A round of a board. Its study is a clone of the template with the outputs of new submissions and of anchors.

    ``sample``: the prompts that it scores. The first round of a renewed sample also scores those of the sample before.
    ``nonce``: random hexadecimal digits. At the launch everybody may read the hash of it and of the study's seed, and both when the round
    is closed. Empty for rounds from before there was a hash: their seeds follow from the board's.
    ``problem``: why the round could not be launched. ``expected_cost``: the cost by the plan, without panels' fees.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="rounds")
    number = models.PositiveIntegerField()
    study = models.OneToOneField(Study, models.PROTECT, related_name="board_round")
    sample = models.ForeignKey(BoardSample, models.PROTECT, related_name="rounds")
    expected_cost = models.DecimalField(max_digits=11, decimal_places=2, validators=NONNEGATIVE_VALIDATORS)
    nonce = models.CharField(max_length=64, blank=True, default="", editable=False)
    problem = models.TextField(blank=True)
    planned_at = models.DateTimeField(db_default=Now(), editable=False)
    launched_at = optional_noneditable_datetime_field()
    cancelled_at = optional_noneditable_datetime_field()
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["board", "number"], name="round_number_once_per_board"),
            CheckConstraint(name="round_costs_nothing_below_zero", condition=Q(expected_cost__gte=0)),
            CheckConstraint(
                name="round_is_launched_or_cancelled", condition=Q(launched_at=None) | Q(cancelled_at=None)
            ),
        ]

    def __str__(self):
        return f"round {self.number}"

    @property
    def commitment(self) -> str:
        """Return the hash by which the seed is fixed before anybody may know it, or ''."""
        return sha256(f"{self.nonce}:{self.study.seed}".encode()).hexdigest() if self.nonce else ""

    @property
    def is_closed(self) -> bool:
        return self.study.state == Study.State.CLOSED

    @property
    def public_draw(self) -> dict[str, Any]:
        """Return what everybody may know of the draw of a launched round: nonce and seed only when it is closed."""
        return {
            "commitment": self.commitment,
            "nonce": self.nonce if self.is_closed else None,
            "seed": str(self.study.seed) if self.is_closed else None,
        }

    def clean(self):
        # PostgreSQL has a trigger in addition.
        if self.sample_id and self.board_id and self.sample.board_id != self.board_id:
            raise ValidationError({"sample": "The sample belongs to another board. Choose one of this board."})


class RoundEntry(models.Model):
    """A submission in a round, and the system that it is in the round's study."""

    round = models.ForeignKey(BoardRound, models.PROTECT, related_name="entries")
    submission = models.ForeignKey(Submission, models.PROTECT, related_name="entries")
    system = models.ForeignKey(System, models.PROTECT, related_name="+")
    is_new = models.BooleanField(help_text="Scored for the first time. An anchor is scored again.")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["round", "submission"], name="round_entry_once"),
            UniqueConstraint(fields=["round", "system"], name="round_entry_has_its_own_system"),
        ]

    def __str__(self):
        return f"{self.submission} in {self.round}"
