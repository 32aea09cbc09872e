"""What is promised and paid, and what was decided about work."""

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.migrations._tables import link, moment, optional_link, table


class Migration(migrations.Migration):
    replaces = [
        ("annotators", "0003_a_place_is_replaced_once"),
        ("annotators", "0004_amounts_have_limits"),
        ("annotators", "0006_pay_is_promised_and_paid_once"),
    ]
    dependencies = [("annotators", "0002_panels"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        table(
            "OutcomePay",
            outcome=models.CharField(
                max_length=13,
                choices=[
                    ("screened_out", "screened out"),
                    ("failed_checks", "failed the checks"),
                    ("full", "no place left"),
                    ("fault", "ended because of a fault of the study"),
                    ("withdrawn", "withdrew before the end"),
                ],
            ),
            rule=models.CharField(
                max_length=7,
                choices=[
                    ("all", "the whole reward"),
                    ("amount", "a fixed amount"),
                    ("share", "a share of the reward, by submitted pages"),
                    ("nothing", "nothing"),
                ],
            ),
            amount=models.DecimalField(
                max_digits=7, decimal_places=2, null=True, blank=True, validators=[MinValueValidator(0)]
            ),
            recruitment=link("annotators.recruitment", "outcome_pays"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["recruitment", "outcome"], name="outcome_pay_once_per_recruitment"),
                    CheckConstraint(
                        condition=Q(
                            outcome__in=["screened_out", "failed_checks", "full", "fault", "withdrawn"],
                            rule__in=["all", "amount", "share", "nothing"],
                        ),
                        name="outcome_pay_is_of_a_known_outcome_and_rule",
                    ),
                    CheckConstraint(
                        condition=Q(amount__gte=0, rule="amount") | (~Q(rule="amount") & Q(amount=None)),
                        name="outcome_pay_has_an_amount_exactly_where_its_rule_is_one",
                    ),
                ]
            },
        ),
        table(
            "Payment",
            kind=models.CharField(
                max_length=12,
                choices=[
                    ("base", "the reward"),
                    ("outcome", "the amount promised for this outcome"),
                    ("difference", "the difference to the present promise"),
                    ("bonus", "a bonus"),
                    ("compensation", "compensation"),
                ],
            ),
            number=models.PositiveSmallIntegerField(default=1),
            amount=models.DecimalField(max_digits=9, decimal_places=2),
            currency=models.CharField(max_length=3),
            way=models.CharField(
                max_length=10,
                choices=[
                    ("approval", "paid by the panel on approval"),
                    ("bonus", "paid as a bonus by the panel"),
                    ("screen_out", "paid by the panel as a screen-out"),
                    ("hand", "paid by hand, from the payment file"),
                ],
            ),
            state=models.CharField(
                max_length=9,
                choices=[
                    ("due", "due"),
                    ("ordered", "ordered at the panel"),
                    ("paid", "paid"),
                    ("failed", "refused by the panel"),
                    ("cancelled", "taken back"),
                ],
                default="due",
            ),
            reason=models.CharField(max_length=300, blank=True),
            made_at=models.DateTimeField(db_default=Now()),
            ended_at=moment(),
            assignment=link("annotators.assignment", "payments"),
            by=optional_link(settings.AUTH_USER_MODEL),
            order=optional_link("annotators.panelorder", "payments"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["assignment", "kind", "number"], name="payment_number_once_per_kind"),
                    UniqueConstraint(fields=["order"], name="payment_is_the_only_one_of_its_order"),
                    CheckConstraint(condition=Q(amount__gt=0), name="payment_is_above_zero"),
                    CheckConstraint(condition=~Q(currency=""), name="payment_has_a_currency"),
                    CheckConstraint(
                        condition=Q(
                            kind__in=["base", "outcome", "difference", "bonus", "compensation"],
                            way__in=["approval", "bonus", "screen_out", "hand"],
                        ),
                        name="payment_is_of_a_known_kind_and_way",
                    ),
                    CheckConstraint(condition=~Q(way="hand") | Q(order=None), name="payment_by_hand_has_no_order"),
                    CheckConstraint(
                        condition=~Q(state="ordered") | Q(order__isnull=False), name="payment_ordered_has_an_order"
                    ),
                    CheckConstraint(
                        condition=Q(ended_at=None, state__in=["due", "ordered"])
                        | Q(ended_at__isnull=False, state__in=["paid", "failed", "cancelled"]),
                        name="payment_that_ended_has_a_time",
                    ),
                    CheckConstraint(
                        condition=~Q(kind__in=["bonus", "compensation"]) | ~Q(reason=""),
                        name="payment_that_nothing_promised_has_a_reason",
                    ),
                ],
                "indexes": [Index(fields=["assignment", "state"], name="payment_by_state")],
            },
        ),
        table(
            "Verdict",
            kind=models.CharField(
                max_length=7,
                choices=[("approve", "approved"), ("reject", "rejected"), ("reverse", "rejection reversed")],
            ),
            category=models.CharField(max_length=30, blank=True),
            message=models.TextField(blank=True),
            note=models.TextField(blank=True),
            evidence=models.JSONField(default=dict, blank=True),
            at=models.DateTimeField(db_default=Now()),
            assignment=optional_link("annotators.assignment", "verdicts"),
            by=optional_link(settings.AUTH_USER_MODEL),
            reverses=optional_link("annotators.verdict", "reversed_by"),
            submission=optional_link("annotators.panelsubmission", "verdicts"),
            options={
                "base_manager_name": "objects",
                "constraints": [
                    CheckConstraint(
                        condition=Q(submission__isnull=False) | Q(assignment__isnull=False),
                        name="verdict_is_about_some_work",
                    ),
                    CheckConstraint(
                        condition=Q(kind__in=["approve", "reject", "reverse"]), name="verdict_is_of_a_known_kind"
                    ),
                    CheckConstraint(
                        condition=~Q(kind="reject") | (Q(assignment__isnull=False) & ~Q(category="") & ~Q(message="")),
                        name="verdict_rejects_known_work_with_a_reason",
                    ),
                    CheckConstraint(
                        condition=Q(kind="reverse", reverses__isnull=False) | (~Q(kind="reverse") & Q(reverses=None)),
                        name="verdict_takes_back_exactly_where_it_says_so",
                    ),
                    UniqueConstraint(fields=["reverses"], name="verdict_reversed_once"),
                    CheckConstraint(
                        condition=Q(reverses=None) | ~Q(reverses=F("id")), name="verdict_does_not_reverse_itself"
                    ),
                    UniqueConstraint(
                        fields=["submission"], condition=Q(kind="approve"), name="verdict_approves_a_submission_once"
                    ),
                    UniqueConstraint(
                        fields=["assignment"],
                        condition=Q(kind="approve", submission=None),
                        name="verdict_approves_work_without_a_submission_once",
                    ),
                    CheckConstraint(
                        condition=Q(by=None, category="at_panel", kind="reject", submission__isnull=False)
                        | (Q(by__isnull=False) & ~Q(category="at_panel")),
                        name="verdict_is_nobodys_exactly_where_it_was_made_at_the_panel",
                    ),
                    UniqueConstraint(
                        fields=["submission"], condition=Q(category="at_panel"), name="verdict_made_at_the_panel_once"
                    ),
                ],
            },
        ),
        table(
            "Appeal",
            text=models.TextField(),
            at=models.DateTimeField(db_default=Now()),
            due_at=models.DateTimeField(),
            answer=models.TextField(blank=True),
            is_upheld=models.BooleanField(null=True),
            answered_at=moment(),
            answered_by=optional_link(settings.AUTH_USER_MODEL),
            rejected_by=optional_link(settings.AUTH_USER_MODEL),
            verdict=models.OneToOneField("annotators.verdict", on_delete=models.PROTECT, related_name="appeal"),
            options={
                "constraints": [
                    CheckConstraint(condition=~Q(text=""), name="appeal_says_something"),
                    CheckConstraint(condition=Q(due_at__gt=F("at")), name="appeal_is_due_after_it_was_made"),
                    CheckConstraint(
                        condition=Q(answer="", answered_at=None, answered_by=None, is_upheld=None)
                        | (
                            Q(answered_at__isnull=False, answered_by__isnull=False, is_upheld__isnull=False)
                            & ~Q(answer="")
                        ),
                        name="appeal_is_answered_whole_or_not_at_all",
                    ),
                    CheckConstraint(
                        condition=Q(answered_by=None) | ~Q(answered_by=F("rejected_by")),
                        name="appeal_is_answered_by_another_than_who_rejected",
                    ),
                ]
            },
        ),
    ]
