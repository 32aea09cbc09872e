"""The pay that a link promises for early ends, and the payments to people."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Study
from studies.models.fields import (
    NONNEGATIVE_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from studies.models.guards import AppendOnlyModel

from .assignments import Annotator

# Barrings: an annotator gets no further batch of a study. What they submitted stays, with its pay.


class Barring(models.Model):
    """The decision that an annotator gets no further batch of a study and of its exclusion group, until it is lifted.

    ``scope``: whether it also holds for all other rounds of the study's board. ``screening``: the number of the screening that a barring by rule rests on. ``reason``: for colleagues only.
    """

    class Ground(models.TextChoices):
        RULE = "rule", "by the test questions"
        HAND = "hand", "by hand"

    class Scope(models.TextChoices):
        STUDY = "study", "this study and its exclusion group"
        BOARD = "board", "all rounds of the board"

    study = protected_foreign_key(Study, "barrings")
    annotator = protected_foreign_key(Annotator, "barrings")
    ground = models.CharField(max_length=4, choices=Ground)
    scope = models.CharField(max_length=5, choices=Scope, default=Scope.STUDY)
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
            CheckConstraint(name="barring_has_a_known_scope", condition=Q(scope__in=["study", "board"])),
            CheckConstraint(
                name="barring_is_lifted_after_it_was_made",
                condition=Q(lifted_at=None) | Q(lifted_at__gte=F("at")),
            ),
        ]

    def __str__(self):
        return f"barring {self.pk}"


class OutcomePay(models.Model):
    """The pay that a link promises for one early end. People who reach the last page get the link's reward instead."""

    class Outcome(models.TextChoices):
        SCREENED_OUT = "screened_out", "screened out"
        FAILED_CHECKS = "failed_checks", "failed the checks"
        FULL = "full", "no place left"
        FAULT = "fault", "ended because of a fault of the study"
        WITHDRAWN = "withdrawn", "withdrew before the end"

    class Rule(models.TextChoices):
        ALL = "all", "the whole reward"
        AMOUNT = "amount", "a fixed amount"
        SHARE = "share", "a share of the reward, by submitted pages"
        NOTHING = "nothing", "nothing"

    recruitment = protected_foreign_key("annotators.Recruitment", "outcome_pays")
    outcome = models.CharField(max_length=13, choices=Outcome)
    rule = models.CharField(max_length=7, choices=Rule)
    amount = models.DecimalField(
        max_digits=7, decimal_places=2, null=True, blank=True, validators=NONNEGATIVE_VALIDATORS
    )

    class Meta:
        constraints = [
            UniqueConstraint(fields=["recruitment", "outcome"], name="outcome_pay_once_per_recruitment"),
            CheckConstraint(
                name="outcome_pay_is_of_a_known_outcome_and_rule",
                condition=Q(outcome__in=["screened_out", "failed_checks", "full", "fault", "withdrawn"])
                & Q(rule__in=["all", "amount", "share", "nothing"]),
            ),
            CheckConstraint(
                name="outcome_pay_has_an_amount_exactly_where_its_rule_is_one",
                condition=Q(rule="amount", amount__gte=0) | (~Q(rule="amount") & Q(amount=None)),
            ),
        ]

    def __str__(self):
        return f"{self.outcome}: {self.rule}"


class Payment(models.Model):
    """An amount that one person gets for one assignment.

    If more is owed later, a new row is added; rows do not change.
    """

    study_path = "assignment__study"

    class Kind(models.TextChoices):
        BASE = "base", "the reward"
        OUTCOME = "outcome", "the amount promised for this outcome"
        DIFFERENCE = "difference", "the difference to the present promise"
        BONUS = "bonus", "a bonus"
        COMPENSATION = "compensation", "compensation"

    class Way(models.TextChoices):
        APPROVAL = "approval", "paid by the panel on approval"
        BONUS = "bonus", "paid as a bonus by the panel"
        SCREEN_OUT = "screen_out", "paid by the panel as a screen-out"
        HAND = "hand", "paid by hand, from the payment file"

    class State(models.TextChoices):
        DUE = "due", "due"
        ORDERED = "ordered", "ordered at the panel"
        PAID = "paid", "paid"
        FAILED = "failed", "refused by the panel"
        CANCELLED = "cancelled", "taken back"

    # The kinds that cover the promised pay. A bonus is additional.
    COVERING = (Kind.BASE, Kind.OUTCOME, Kind.DIFFERENCE, Kind.COMPENSATION)

    assignment = protected_foreign_key("annotators.Assignment", "payments")
    kind = models.CharField(max_length=12, choices=Kind)
    number = models.PositiveSmallIntegerField(default=1)
    amount = models.DecimalField(max_digits=9, decimal_places=2)
    currency = models.CharField(max_length=3)
    way = models.CharField(max_length=10, choices=Way)
    state = models.CharField(max_length=9, choices=State, default=State.DUE)
    order = optional_protected_foreign_key("annotators.PanelOrder", "payments")
    reason = models.CharField(max_length=300, blank=True)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    made_at = models.DateTimeField(db_default=Now())
    ended_at = optional_noneditable_datetime_field()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["assignment", "kind", "number"], name="payment_number_once_per_kind"),
            UniqueConstraint(fields=["order"], name="payment_is_the_only_one_of_its_order"),
            CheckConstraint(name="payment_is_above_zero", condition=Q(amount__gt=0)),
            CheckConstraint(name="payment_has_a_currency", condition=~Q(currency="")),
            CheckConstraint(
                name="payment_is_of_a_known_kind_and_way",
                condition=Q(kind__in=["base", "outcome", "difference", "bonus", "compensation"])
                & Q(way__in=["approval", "bonus", "screen_out", "hand"]),
            ),
            CheckConstraint(
                name="payment_by_hand_has_no_order",
                condition=~Q(way="hand") | Q(order=None),
            ),
            CheckConstraint(
                name="payment_ordered_has_an_order",
                condition=~Q(state="ordered") | Q(order__isnull=False),
            ),
            CheckConstraint(
                name="payment_that_ended_has_a_time",
                condition=Q(state__in=["due", "ordered"], ended_at=None)
                | Q(state__in=["paid", "failed", "cancelled"], ended_at__isnull=False),
            ),
            CheckConstraint(
                name="payment_that_nothing_promised_has_a_reason",
                condition=~Q(kind__in=["bonus", "compensation"]) | ~Q(reason=""),
            ),
        ]
        indexes = [models.Index(fields=["assignment", "state"], name="payment_by_state")]

    def __str__(self):
        return f"{self.kind} {self.number}: {self.amount} {self.currency}"


# Verdicts about work, which are append-only, and appeals, which another user answers once.


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
