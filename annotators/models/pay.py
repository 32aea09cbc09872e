"""The pay that a link promises for early ends, and the payments to people."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models.fields import (
    NONNEGATIVE_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)


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
