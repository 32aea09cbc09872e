"""Decisions about pay, which are only ever added, and the appeals against them, which are answered once by somebody else."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models.fields import optional_datetime_field, optional_foreign_key
from studies.models.guards import AppendOnlyModel


class Verdict(AppendOnlyModel):
    """A person's decision about one piece of work. ``evidence``: what was measured at that moment, kept as it was then.

    ``message``: what the annotator reads. ``note``: what the decider saw, for colleagues alone. ``by``: empty where the panel shows a
    rejection that was made there; it is written down when its person objects.
    """

    AT_PANEL = "at_panel"  # the category of those

    class Kind(models.TextChoices):
        APPROVE = "approve", "approved"
        REJECT = "reject", "rejected"
        REVERSE = "reverse", "rejection taken back"

    # Whoever leaves a study that deletes ratings leaves it here too.
    erasable_fields = frozenset({"evidence"})

    submission = optional_foreign_key("annotators.PanelSubmission", "verdicts")
    assignment = optional_foreign_key("annotators.Assignment", "verdicts")
    kind = models.CharField(max_length=7, choices=Kind)
    category = models.CharField(max_length=30, blank=True)
    message = models.TextField(blank=True)
    note = models.TextField(blank=True)
    evidence = models.JSONField(default=dict, blank=True)
    by = optional_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())
    reverses = optional_foreign_key("self", "reversed_by")

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
    """What somebody whose work was rejected says to it. Who rejected stands beside who answers, so that the database can tell them apart;
    empty where it was done at the panel."""

    verdict = models.OneToOneField(Verdict, models.PROTECT, related_name="appeal")
    rejected_by = optional_foreign_key(settings.AUTH_USER_MODEL)
    text = models.TextField()
    at = models.DateTimeField(db_default=Now())
    due_at = models.DateTimeField()
    answer = models.TextField(blank=True)
    is_upheld = models.BooleanField(null=True)
    answered_by = optional_foreign_key(settings.AUTH_USER_MODEL)
    answered_at = optional_datetime_field()

    class Meta:
        constraints = [
            CheckConstraint(name="appeal_says_something", condition=~Q(text="")),
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
        return f"appeal against verdict {self.verdict_id}"
