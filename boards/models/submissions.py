"""Submissions: the outputs of one system for all prompts of a board."""

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models.fields import optional_noneditable_datetime_field, optional_protected_foreign_key
from studies.models.guards import AppendOnlyModel

from .board import Board, Team
from .names import LookalikeKeyField


class Submission(models.Model):
    """One system on a board. Its outputs never change; a new file is a new submission.

    Systems of the template are submissions without a team and without outputs of their own: the template has them.
    ``request_token``: sent by a program, so that a repeated request finds the first one's submission.
    """

    board = models.ForeignKey(Board, models.PROTECT, related_name="submissions")
    number = models.PositiveIntegerField()
    team = optional_protected_foreign_key(Team, "submissions")
    name = models.CharField(max_length=100)
    name_key = LookalikeKeyField(help_text="Equal for names that look alike.")
    description = models.TextField(blank=True)
    url = models.URLField("web address", blank=True)
    is_anonymous = models.BooleanField("anonymous until published", default=False)
    is_anchor = models.BooleanField(default=False, help_text="Scored again in later rounds, to make rounds comparable.")
    is_human = models.BooleanField(default=False)
    filename = models.CharField(max_length=200, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    n_bytes = models.PositiveBigIntegerField(
        "bytes", default=0, help_text="Size of the file that was sent. 0: it came before sizes were stored."
    )
    n_outputs = models.PositiveIntegerField(default=0)
    request_token = models.CharField(max_length=64, null=True, blank=True)
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    withdrawn_at = optional_noneditable_datetime_field()
    published_at = optional_noneditable_datetime_field()

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["board", "number"], name="submission_number_once_per_board"),
            UniqueConstraint(fields=["team", "name"], name="submission_name_once_per_team"),
            # A hidden name has no part in it: a refusal would reveal it.
            UniqueConstraint(
                fields=["board", "name_key"],
                condition=Q(is_anonymous=False, withdrawn_at=None),
                name="submission_shown_names_look_different",
            ),
            UniqueConstraint(fields=["team", "request_token"], name="submission_request_once_per_team"),
            CheckConstraint(name="submission_has_a_name", condition=~Q(name="")),
            CheckConstraint(
                name="submission_of_a_team_has_outputs",
                condition=Q(team=None, n_outputs=0) | (Q(team__isnull=False, n_outputs__gte=1) & ~Q(sha256="")),
            ),
        ]

    def __str__(self):
        return self.name

    @property
    def public_name(self) -> str:
        """Return the name that everybody may see: none of an anonymous or withdrawn submission."""
        if self.withdrawn_at:
            return f"Submission {self.number} (withdrawn)"
        return f"Submission {self.number}" if self.is_anonymous else self.name


class SubmittedOutput(AppendOnlyModel):
    """The output of a submission for one prompt. ``media``: the name of the stored image."""

    submission = models.ForeignKey(Submission, models.PROTECT, related_name="outputs")
    prompt_key = models.CharField(max_length=100)
    text = models.TextField(blank=True)
    media = models.CharField(max_length=80, blank=True, editable=False, db_index=True)
    is_empty = models.BooleanField(default=False)

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["submission", "prompt_key"], name="submitted_output_once_per_prompt"),
            CheckConstraint(
                name="submitted_output_is_text_or_image_or_empty",
                condition=(Q(media="", is_empty=False) & ~Q(text=""))
                | (Q(text="", is_empty=False) & ~Q(media=""))
                | Q(text="", media="", is_empty=True),
            ),
        ]

    def __str__(self):
        return self.prompt_key
