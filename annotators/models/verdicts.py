"""Verdicts about work, which are append-only, and appeals, which another user answers once."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models.fields import optional_noneditable_datetime_field, optional_protected_foreign_key
from studies.models.guards import AppendOnlyModel

from .barring import Barring


class Verdict(AppendOnlyModel):
    """A user's decision about one piece of work. ``evidence``: the measurements at that time, stored unchanged.

    ``message``: the text for the annotator. ``note``: a note for colleagues only. ``by``: empty for a rejection that
    was made at the panel; such a verdict is stored when the annotator objects.
    """

    AT_PANEL = "at_panel"  # the category of rejections that were made at the panel

    class Kind(models.TextChoices):
        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"
        REVERSE = "reverse", "rejection reversed"

    # If a person withdraws from a study that deletes ratings, the evidence is erased too.
    erasable_fields = frozenset({"evidence"})

    submission = optional_protected_foreign_key("annotators.PanelSubmission", "verdicts")
    assignment = optional_protected_foreign_key("annotators.Assignment", "verdicts")
    kind = models.CharField(max_length=7, choices=Kind)
    category = models.CharField(max_length=30, blank=True)
    message = models.TextField(blank=True)
    note = models.TextField(blank=True)
    evidence = models.JSONField(default=dict, blank=True)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())
    reverses = optional_protected_foreign_key("self", "reversed_by")

    class Meta:
        base_manager_name = "objects"
        constraints = [
            CheckConstraint(
                name="verdict_is_about_some_work", condition=Q(submission__isnull=False) | Q(assignment__isnull=False)
            ),
            CheckConstraint(name="verdict_is_of_a_known_kind", condition=Q(kind__in=["approve", "reject", "reverse"])),
            CheckConstraint(
                name="verdict_rejects_known_work_with_a_reason",
                condition=~Q(kind="reject") | (Q(assignment__isnull=False) & ~Q(category="") & ~Q(message="")),
            ),
            CheckConstraint(
                name="verdict_takes_back_exactly_where_it_says_so",
                condition=Q(kind="reverse", reverses__isnull=False) | (~Q(kind="reverse") & Q(reverses=None)),
            ),
            CheckConstraint(
                name="verdict_is_nobodys_exactly_where_it_was_made_at_the_panel",
                condition=Q(by=None, kind="reject", category="at_panel", submission__isnull=False)
                | (Q(by__isnull=False) & ~Q(category="at_panel")),
            ),
            UniqueConstraint(
                fields=["submission"], condition=Q(category="at_panel"), name="verdict_made_at_the_panel_once"
            ),
            UniqueConstraint(fields=["reverses"], name="verdict_reversed_once"),
            CheckConstraint(name="verdict_does_not_reverse_itself", condition=Q(reverses=None) | ~Q(reverses=F("id"))),
            UniqueConstraint(
                fields=["submission"], condition=Q(kind="approve"), name="verdict_approves_a_submission_once"
            ),
            UniqueConstraint(
                fields=["assignment"],
                condition=Q(kind="approve", submission=None),
                name="verdict_approves_work_without_a_submission_once",
            ),
        ]

    def __str__(self):
        return f"{self.kind} {self.pk}"


class Appeal(models.Model):
    """An annotator's objection to a rejection, to a barring or to failed attention checks, with its answer.

    ``rejected_by`` is who rejected or barred. It is stored so that the database can check that another user answers. It
    is empty if the panel rejected, or a rule decided. ``assignment``: from whose page a barred annotator objected, or
    the one that ended because of failed attention checks.
    """

    class Subject(models.TextChoices):
        REJECTION = "rejection"
        BARRING = "barring"
        CHECKS = "checks"

    verdict = models.OneToOneField(Verdict, models.PROTECT, related_name="appeal", null=True, blank=True)
    barring = models.OneToOneField(Barring, models.PROTECT, related_name="appeal", null=True, blank=True)
    assignment = optional_protected_foreign_key("annotators.Assignment")
    rejected_by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    text = models.TextField(blank=True)
    at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField()
    answer = models.TextField(blank=True)
    is_upheld = models.BooleanField(null=True)
    answered_by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    answered_at = optional_noneditable_datetime_field()

    class Meta:
        constraints = [
            CheckConstraint(
                name="appeal_is_about_a_rejection_or_a_barring_or_failed_checks",
                condition=Q(verdict__isnull=False, barring=None, assignment=None)
                | Q(verdict=None, barring__isnull=False, assignment__isnull=False)
                # No person decides about failed checks before the appeal.
                | Q(verdict=None, barring=None, assignment__isnull=False, rejected_by=None),
            ),
            UniqueConstraint(
                fields=["assignment"],
                condition=Q(verdict=None, barring=None),
                name="appeal_about_failed_checks_once_per_assignment",
            ),
            # After the answer, the words of a person who withdrew are erased.
            CheckConstraint(
                name="appeal_says_something_until_it_is_answered", condition=~Q(text="") | Q(answered_at__isnull=False)
            ),
            CheckConstraint(name="appeal_is_due_after_it_was_made", condition=Q(due_at__gt=F("at"))),
            CheckConstraint(
                name="appeal_is_answered_whole_or_not_at_all",
                condition=Q(answer="", is_upheld=None, answered_by=None, answered_at=None)
                | (Q(is_upheld__isnull=False, answered_by__isnull=False, answered_at__isnull=False) & ~Q(answer="")),
            ),
            CheckConstraint(
                name="appeal_is_answered_by_another_than_who_rejected",
                condition=Q(answered_by=None) | ~Q(answered_by=F("rejected_by")),
            ),
        ]

    def __str__(self):
        return f"appeal {self.pk}"

    @property
    def subject(self) -> Subject:
        if self.verdict_id is not None:
            return self.Subject.REJECTION
        return self.Subject.CHECKS if self.barring_id is None else self.Subject.BARRING

    @property
    def work(self):
        """Return the assignment that the appeal is about, or from whose page the annotator objected."""
        return self.assignment if self.verdict is None else self.verdict.assignment
