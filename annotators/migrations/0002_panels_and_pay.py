"""What panels are asked to do and what they show, what is promised and paid, and what was decided about work."""

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.migrations._tables import link, moment, optional_link, table
from studies.models.guards import append_only_operation, only_on_postgresql

# PostgreSQL refuses to change what an annotator said and what was decided, but for what is named here.
# Erasures and the deletion of tries pass only inside a transaction that ``studies.models.guards.erasing`` opened.
# An answer is blanked and nothing else of it is changed; those of tries are deleted.
ANSWER_IS_ERASED = """
  IF current_setting('heval.erasing', true) = 'on' THEN
    IF TG_OP = 'UPDATE' AND OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND NEW.text = ''
       AND (NEW.value IS NULL OR NEW.value = OLD.value)
       AND (NEW.chosen_id IS NULL OR NEW.chosen_id = OLD.chosen_id)
       AND NEW.choice IN ('', OLD.choice) AND NEW.part IN ('', OLD.part) AND NEW.skip_reason IN ('', OLD.skip_reason)
       AND to_jsonb(NEW) - '{text,value,chosen_id,choice,part,skip_reason,erased_at}'::text[]
         = to_jsonb(OLD) - '{text,value,chosen_id,choice,part,skip_reason,erased_at}'::text[]
    THEN
      RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM annotators_assignment WHERE id = OLD.assignment_id AND origin = 'test') THEN
      RETURN OLD;
    END IF;
  END IF;
"""
# Somebody's answers are deleted from what was measured of them; the decision stays.
EVIDENCE_IS_ERASED = """
  IF TG_OP = 'UPDATE' AND current_setting('heval.erasing', true) = 'on'
     AND to_jsonb(NEW) - 'evidence' = to_jsonb(OLD) - 'evidence' THEN
    RETURN NEW;
  END IF;
"""
# An appeal is answered once.
APPEAL_IS_ANSWERED = """
  IF TG_OP = 'UPDATE' AND OLD.answered_at IS NULL AND NEW.answered_at IS NOT NULL
     AND to_jsonb(NEW) - '{answer,is_upheld,answered_by_id,answered_at}'::text[]
       = to_jsonb(OLD) - '{answer,is_upheld,answered_by_id,answered_at}'::text[] THEN
    RETURN NEW;
  END IF;
"""
# Of a person who withdrew, the words of an answered appeal are erased, and one that needs no answer any more is deleted.
APPEAL_IS_ERASED = """
  IF current_setting('heval.erasing', true) = 'on' AND TG_OP = 'UPDATE' AND OLD.answered_at IS NOT NULL
     AND NEW.text = '' AND to_jsonb(NEW) - 'text' = to_jsonb(OLD) - 'text' THEN
    RETURN NEW;
  END IF;
  IF current_setting('heval.erasing', true) = 'on' AND TG_OP = 'DELETE' AND OLD.answered_at IS NULL THEN
    RETURN OLD;
  END IF;
"""
# A barring is lifted once.
BARRING_IS_LIFTED = """
  IF TG_OP = 'UPDATE' AND OLD.lifted_at IS NULL AND NEW.lifted_at IS NOT NULL
     AND to_jsonb(NEW) - '{lifted_at,lifted_by_id,lift_reason}'::text[]
       = to_jsonb(OLD) - '{lifted_at,lifted_by_id,lift_reason}'::text[] THEN
    RETURN NEW;
  END IF;
"""
# What pages change of a row stays on the row's own page of the table: there is room, and no index holds it.
ROOM = """
ALTER TABLE annotators_assignment SET (fillfactor = 80);
ALTER TABLE annotators_pagevisit SET (fillfactor = 80);
"""


class Migration(migrations.Migration):
    replaces = [("annotators", "0002_panels"), ("annotators", "0003_pay_and_verdicts"), ("annotators", "0004_guards")]
    dependencies = [("annotators", "0001_people_and_answers")]
    operations = [
        table(
            "PanelSecret",
            {
                "constraints": [
                    UniqueConstraint(fields=["recruitment", "name"], name="panel_secret_once_per_recruitment")
                ]
            },
            name=models.SlugField(max_length=30),
            ciphertext=models.BinaryField(),
            written_at=models.DateTimeField(db_default=Now()),
            recruitment=link("annotators.recruitment", "panel_secrets"),
        ),
        table(
            "PanelTask",
            {
                "constraints": [
                    UniqueConstraint(fields=["recruitment", "external_id"], name="panel_task_once_per_recruitment"),
                    CheckConstraint(condition=~Q(external_id=""), name="panel_task_has_an_id"),
                ]
            },
            external_id=models.CharField(max_length=64),
            places=models.PositiveIntegerField(blank=True, null=True),
            closed_at=moment(),
            made_at=models.DateTimeField(db_default=Now()),
            recruitment=link("annotators.recruitment", "panel_tasks"),
        ),
        table(
            "PanelPlan",
            {
                "constraints": [
                    CheckConstraint(
                        condition=Q(lost_percent__gte=0, lost_percent__lte=50, people__gte=1, round_places__gte=1),
                        name="panel_plan_is_of_people",
                    )
                ]
            },
            people=models.PositiveIntegerField(),
            round_places=models.PositiveIntegerField(),
            lost_percent=models.PositiveSmallIntegerField(default=0),
            recruitment=models.OneToOneField("annotators.recruitment", models.PROTECT, related_name="panel_plan"),
        ),
        table(
            "PanelSubmission",
            {
                "constraints": [
                    UniqueConstraint(
                        fields=["recruitment", "external_id", "annotator"], name="panel_submission_once_per_person"
                    ),
                    CheckConstraint(condition=~Q(external_id=""), name="panel_submission_has_an_id"),
                    CheckConstraint(
                        condition=Q(
                            state__in=(
                                "working",
                                "submitted",
                                "approved",
                                "rejected",
                                "returned",
                                "expired",
                                "screened_out",
                                "unknown",
                            )
                        ),
                        name="panel_submission_state_is_known",
                    ),
                ],
                "indexes": [Index(fields=["recruitment", "state"], name="panel_submission_by_state")],
            },
            external_id=models.CharField(max_length=64),
            state=models.CharField(
                max_length=12,
                choices=[
                    ("working", "working"),
                    ("submitted", "submitted"),
                    ("approved", "approved"),
                    ("rejected", "rejected"),
                    ("returned", "returned"),
                    ("expired", "expired"),
                    ("screened_out", "screened_out"),
                    ("unknown", "unknown"),
                ],
            ),
            word=models.CharField(max_length=40, blank=True),
            receipt=models.CharField(max_length=64, blank=True),
            started_at=moment(),
            submitted_at=moment(),
            decided_at=moment(),
            decides_itself_at=moment(),
            source=models.CharField(
                max_length=7, choices=[("service", "the panel's service"), ("file", "a file that the panel exports")]
            ),
            first_seen_at=models.DateTimeField(db_default=Now()),
            seen_at=models.DateTimeField(db_default=Now()),
            annotator=link("annotators.annotator", "panel_submissions"),
            assignment=optional_link("annotators.assignment", "panel_submissions"),
            recruitment=link("annotators.recruitment", "panel_submissions"),
            task=optional_link("annotators.paneltask", "submissions"),
        ),
        table(
            "PanelOrder",
            {
                "constraints": [
                    UniqueConstraint(fields=["token"], name="panel_order_token_once"),
                    CheckConstraint(
                        condition=Q(
                            operation__in=[
                                "publish",
                                "stop",
                                "extend",
                                "approve",
                                "reject",
                                "reverse",
                                "bonus",
                                "screen_out",
                                "request_return",
                                "bar",
                            ]
                        ),
                        name="panel_order_operation_is_known",
                    ),
                    CheckConstraint(
                        condition=Q(state__in=["waiting", "cancelled"]) | Q(sent_at__isnull=False),
                        name="panel_order_that_left_has_a_time",
                    ),
                    CheckConstraint(
                        condition=Q(ended_at=None, state__in=["waiting", "sent", "unclear"])
                        | Q(ended_at__isnull=False, state__in=["done", "refused", "cancelled"]),
                        name="panel_order_that_ended_has_a_time",
                    ),
                ],
                "indexes": [
                    Index(
                        fields=["recruitment", "not_before"],
                        condition=Q(state__in=["waiting", "sent"]),
                        name="panel_order_to_send",
                    )
                ],
            },
            operation=models.CharField(
                max_length=20,
                choices=[
                    ("publish", "publish"),
                    ("stop", "stop"),
                    ("extend", "extend"),
                    ("approve", "approve"),
                    ("reject", "reject"),
                    ("reverse", "reverse"),
                    ("bonus", "bonus"),
                    ("screen_out", "screen_out"),
                    ("request_return", "request_return"),
                    ("bar", "bar"),
                ],
            ),
            token=models.CharField(max_length=64),
            values=models.JSONField(default=dict),
            state=models.CharField(
                max_length=9,
                default="waiting",
                choices=[
                    ("waiting", "to be sent"),
                    ("sent", "sent, no answer yet"),
                    ("done", "carried out"),
                    ("refused", "refused by the panel"),
                    ("unclear", "unclear whether it was carried out"),
                    ("cancelled", "taken back before it was sent"),
                ],
            ),
            tries=models.PositiveSmallIntegerField(default=0),
            not_before=moment(),
            panel_message=models.TextField(blank=True),
            result=models.JSONField(blank=True, default=dict),
            made_at=models.DateTimeField(db_default=Now()),
            sent_at=moment(),
            ended_at=moment(),
            by=optional_link(settings.AUTH_USER_MODEL),
            recruitment=link("annotators.recruitment", "panel_orders"),
            submission=optional_link("annotators.panelsubmission", "orders"),
        ),
        table(
            "PanelBar",
            {"constraints": [UniqueConstraint(fields=["order", "annotator"], name="panel_bar_once_per_order")]},
            annotator=link("annotators.annotator", "panel_bars"),
            order=link("annotators.panelorder", "bars"),
        ),
        table(
            "PanelEvent",
            {
                "constraints": [UniqueConstraint(fields=["source", "external_id"], name="panel_event_once_per_source")],
                "indexes": [Index(fields=["recruitment"], condition=Q(handled_at=None), name="panel_event_to_handle")],
            },
            source=models.CharField(max_length=64),
            external_id=models.CharField(max_length=200),
            kind=models.CharField(max_length=64, blank=True),
            body=models.JSONField(blank=True, default=dict),
            received_at=models.DateTimeField(db_default=Now()),
            handled_at=moment(),
            recruitment=optional_link("annotators.recruitment", "panel_events"),
        ),
        table(
            "OutcomePay",
            {
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
                blank=True, null=True, validators=[MinValueValidator(0)], max_digits=7, decimal_places=2
            ),
            recruitment=link("annotators.recruitment", "outcome_pays"),
        ),
        table(
            "Payment",
            {
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
                default="due",
                choices=[
                    ("due", "due"),
                    ("ordered", "ordered at the panel"),
                    ("paid", "paid"),
                    ("failed", "refused by the panel"),
                    ("cancelled", "taken back"),
                ],
            ),
            reason=models.CharField(max_length=300, blank=True),
            made_at=models.DateTimeField(db_default=Now()),
            ended_at=moment(),
            assignment=link("annotators.assignment", "payments"),
            by=optional_link(settings.AUTH_USER_MODEL),
            order=optional_link("annotators.panelorder", "payments"),
        ),
        table(
            "Verdict",
            {
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
            kind=models.CharField(
                max_length=7,
                choices=[("approve", "approved"), ("reject", "rejected"), ("reverse", "rejection reversed")],
            ),
            category=models.CharField(max_length=30, blank=True),
            message=models.TextField(blank=True),
            note=models.TextField(blank=True),
            evidence=models.JSONField(blank=True, default=dict),
            at=models.DateTimeField(db_default=Now()),
            assignment=optional_link("annotators.assignment", "verdicts"),
            by=optional_link(settings.AUTH_USER_MODEL),
            reverses=optional_link("annotators.verdict", "reversed_by"),
            submission=optional_link("annotators.panelsubmission", "verdicts"),
        ),
        table(
            "Appeal",
            {
                "constraints": [
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
                    CheckConstraint(
                        condition=Q(assignment=None, barring=None, verdict__isnull=False)
                        | Q(assignment__isnull=False, barring__isnull=False, verdict=None)
                        | Q(assignment__isnull=False, barring=None, rejected_by=None, verdict=None),
                        name="appeal_is_about_a_rejection_or_a_barring_or_failed_checks",
                    ),
                    UniqueConstraint(
                        fields=["assignment"],
                        condition=Q(barring=None, verdict=None),
                        name="appeal_about_failed_checks_once_per_assignment",
                    ),
                    CheckConstraint(
                        condition=~Q(text="") | Q(answered_at__isnull=False),
                        name="appeal_says_something_until_it_is_answered",
                    ),
                ]
            },
            text=models.TextField(blank=True),
            at=models.DateTimeField(db_default=Now()),
            due_at=models.DateTimeField(),
            answer=models.TextField(blank=True),
            is_upheld=models.BooleanField(null=True),
            answered_at=moment(),
            answered_by=optional_link(settings.AUTH_USER_MODEL),
            rejected_by=optional_link(settings.AUTH_USER_MODEL),
            verdict=models.OneToOneField(
                "annotators.verdict", models.PROTECT, blank=True, null=True, related_name="appeal"
            ),
            assignment=optional_link("annotators.assignment"),
            barring=models.OneToOneField(
                "annotators.barring", models.PROTECT, blank=True, null=True, related_name="appeal"
            ),
        ),
        append_only_operation("annotators_response", ANSWER_IS_ERASED),
        append_only_operation("annotators_exclusion"),
        append_only_operation("annotators_verdict", EVIDENCE_IS_ERASED),
        append_only_operation("annotators_appeal", APPEAL_IS_ANSWERED + APPEAL_IS_ERASED),
        append_only_operation("annotators_barring", BARRING_IS_LIFTED),
        append_only_operation("annotators_qualificationattempt"),
        only_on_postgresql(ROOM, migrations.RunSQL.noop),
    ]
