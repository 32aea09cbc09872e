"""Recruitment links, orders to panels, and the state that panels show.

Panel data is stored next to heval's own data and never replaces it.
"""

import secrets

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Arm, Study
from studies.models.fields import (
    CURRENCY_VALIDATORS,
    HEADCOUNT_VALIDATORS,
    NONNEGATIVE_VALIDATORS,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)

from .constants import OPERATIONS, SUBMISSION_STATES, choices


def new_key() -> str:
    """Return a new key for a recruitment's address: short enough to read aloud, too long to guess."""
    return secrets.token_hex(6)


class Recruitment(models.Model):
    """A way for annotators to come to a study: one link on one panel, with its pay and its ways back."""

    study = protected_foreign_key(Study, "recruitments")
    channel = models.CharField(max_length=20, choices=choices)
    pool = models.CharField(
        max_length=50,
        blank=True,
        help_text="Links with the same namespace identify people by the same ids, across studies. Empty: the channel's name.",
    )
    key = models.SlugField(max_length=50, default=new_key)
    settings = models.JSONField(default=dict, blank=True)
    reward = models.DecimalField(
        max_digits=7,
        decimal_places=2,
        null=True,
        blank=True,
        validators=NONNEGATIVE_VALIDATORS,
        help_text="Empty: as in the study.",
    )
    currency = models.CharField(
        max_length=3, blank=True, validators=CURRENCY_VALIDATORS, help_text="Empty: as in the study."
    )
    wanted = models.PositiveIntegerField(
        null=True, blank=True, validators=HEADCOUNT_VALIDATORS, help_text="How many people the panel sends."
    )
    is_for_experts = models.BooleanField(
        "for experts",
        default=False,
        help_text="Only experts come by this link. A board shows their scores as a line beside those of the others, and counts them in none.",
    )
    arms = models.ManyToManyField(Arm, through="RecruitmentArm", blank=True, related_name="+")
    opens_at = models.DateTimeField(null=True, blank=True)
    closes_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["key"], name="recruitment_key_once"),
            CheckConstraint(
                name="recruitment_closes_after_it_opens",
                condition=Q(opens_at=None) | Q(closes_at=None) | Q(closes_at__gt=F("opens_at")),
            ),
            CheckConstraint(name="recruitment_pays_nothing_below_zero", condition=Q(reward=None) | Q(reward__gte=0)),
        ]

    def __str__(self):
        return f"{self.get_channel_display()} {self.key}"

    def save(self, *args, **kwargs):
        self.pool = self.pool or self.channel
        super().save(*args, **kwargs)


class RecruitmentArm(models.Model):
    recruitment = models.ForeignKey(Recruitment, models.CASCADE, related_name="recruitment_arms")
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="+")

    class Meta:
        constraints = [UniqueConstraint(fields=["recruitment", "arm"], name="recruitment_arm_once")]


class PanelSecret(models.Model):
    """A credential for a panel's API in a researcher's name. It is encrypted and never shown."""

    recruitment = protected_foreign_key("annotators.Recruitment", "panel_secrets")
    name = models.SlugField(max_length=30)
    ciphertext = models.BinaryField()
    written_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [UniqueConstraint(fields=["recruitment", "name"], name="panel_secret_once_per_recruitment")]

    def __str__(self):
        return self.name


class PanelTask(models.Model):
    """A panel's offer to its people, such as a Prolific study: published by heval, or by hand and entered here."""

    recruitment = protected_foreign_key("annotators.Recruitment", "panel_tasks")
    external_id = models.CharField(max_length=64)
    places = models.PositiveIntegerField(null=True, blank=True)
    closed_at = optional_noneditable_datetime_field()
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(fields=["recruitment", "external_id"], name="panel_task_once_per_recruitment"),
            CheckConstraint(name="panel_task_has_an_id", condition=~Q(external_id="")),
        ]

    def __str__(self):
        return self.external_id


class PanelPlan(models.Model):
    """How a link's places are published: the total number of people, and the places per round."""

    recruitment = models.OneToOneField("annotators.Recruitment", models.PROTECT, related_name="panel_plan")
    people = models.PositiveIntegerField()
    round_places = models.PositiveIntegerField()
    lost_percent = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [
            CheckConstraint(
                name="panel_plan_is_of_people",
                condition=Q(people__gte=1, round_places__gte=1, lost_percent__gte=0, lost_percent__lte=50),
            )
        ]

    def __str__(self):
        return f"{self.people} in rounds of {self.round_places}"


class PanelSubmission(models.Model):
    """One person's work as the panel shows it.

    If the panel gives the same id to another person after a return, both rows stay.
    """

    class Source(models.TextChoices):
        SERVICE = "service", "the panel's service"
        FILE = "file", "a file that the panel exports"

    recruitment = protected_foreign_key("annotators.Recruitment", "panel_submissions")
    task = optional_protected_foreign_key(PanelTask, "submissions")
    external_id = models.CharField(max_length=64)
    annotator = protected_foreign_key("annotators.Annotator", "panel_submissions")
    assignment = optional_protected_foreign_key("annotators.Assignment", "panel_submissions")
    state = models.CharField(max_length=12, choices=[(state, state) for state in SUBMISSION_STATES])
    word = models.CharField(max_length=40, blank=True)
    receipt = models.CharField(max_length=64, blank=True)
    started_at = optional_noneditable_datetime_field()
    submitted_at = optional_noneditable_datetime_field()
    decided_at = optional_noneditable_datetime_field()
    decides_itself_at = optional_noneditable_datetime_field()
    source = models.CharField(max_length=7, choices=Source)
    first_seen_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())
    named: str  # set by ``set_display_ids``

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["recruitment", "external_id", "annotator"], name="panel_submission_once_per_person"
            ),
            CheckConstraint(name="panel_submission_has_an_id", condition=~Q(external_id="")),
            CheckConstraint(name="panel_submission_state_is_known", condition=Q(state__in=SUBMISSION_STATES)),
        ]
        indexes = [models.Index(fields=["recruitment", "state"], name="panel_submission_by_state")]

    def __str__(self):
        return self.external_id


class PanelBar(models.Model):
    """A person whom an order keeps out. The order itself contains no person."""

    order = protected_foreign_key("annotators.PanelOrder", "bars")
    annotator = protected_foreign_key("annotators.Annotator", "panel_bars")

    class Meta:
        constraints = [UniqueConstraint(fields=["order", "annotator"], name="panel_bar_once_per_order")]

    def __str__(self):
        return f"{self.order_id}: {self.annotator_id}"


class PanelEvent(models.Model):
    """An event at a panel or at its link that heval must handle. Idempotent: one row per source and id."""

    source = models.CharField(max_length=64)
    external_id = models.CharField(max_length=200)
    recruitment = optional_protected_foreign_key("annotators.Recruitment", "panel_events")
    kind = models.CharField(max_length=64, blank=True)
    body = models.JSONField(default=dict, blank=True)
    received_at = models.DateTimeField(db_default=Now())
    handled_at = optional_noneditable_datetime_field()

    class Meta:
        constraints = [UniqueConstraint(fields=["source", "external_id"], name="panel_event_once_per_source")]
        indexes = [
            models.Index(fields=["recruitment"], condition=Q(handled_at=None), name="panel_event_to_handle"),
        ]

    def __str__(self):
        return f"{self.kind} {self.external_id}"


class SampleColumn(models.Model):
    """A declared column of a panel's demographic file. heval stores only declared columns."""

    class Kind(models.TextChoices):
        CATEGORY = "category"
        NUMBER = "number"

    study = protected_foreign_key("studies.Study", "sample_columns")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=8, choices=Kind)
    shows_small = models.BooleanField(default=False)
    declared_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [UniqueConstraint(fields=["study", "name"], name="sample_column_once_per_study")]

    def __str__(self):
        return self.name


class SampleValue(models.Model):
    """A person's value in a demographic column. Missing values have no row."""

    column = protected_foreign_key(SampleColumn, "values")
    annotator = protected_foreign_key("annotators.Annotator", "sample_values")
    value = models.CharField(max_length=100)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["column", "annotator"], name="sample_value_once_per_person"),
            CheckConstraint(name="sample_value_says_something", condition=~Q(value="")),
        ]

    def __str__(self):
        return self.value


class PanelOrder(models.Model):
    """An order to a panel, stored before it is sent and carried out once. Its token identifies it at the panel too."""

    class State(models.TextChoices):
        WAITING = "waiting", "to be sent"
        SENT = "sent", "sent, no answer yet"
        DONE = "done", "carried out"
        REFUSED = "refused", "refused by the panel"
        UNCLEAR = "unclear", "unclear whether it was carried out"
        CANCELLED = "cancelled", "taken back before it was sent"

    recruitment = protected_foreign_key("annotators.Recruitment", "panel_orders")
    submission = optional_protected_foreign_key(PanelSubmission, "orders")
    operation = models.CharField(max_length=20, choices=[(name, name) for name in OPERATIONS])
    token = models.CharField(max_length=64)
    values = models.JSONField(default=dict)
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    not_before = optional_noneditable_datetime_field()  # empty: at once
    panel_message = models.TextField(blank=True)
    result = models.JSONField(default=dict, blank=True)
    by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    made_at = models.DateTimeField(db_default=Now())
    sent_at = optional_noneditable_datetime_field()
    ended_at = optional_noneditable_datetime_field()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["token"], name="panel_order_token_once"),
            CheckConstraint(name="panel_order_operation_is_known", condition=Q(operation__in=list(OPERATIONS))),
            CheckConstraint(
                name="panel_order_that_left_has_a_time",
                condition=Q(state__in=["waiting", "cancelled"]) | Q(sent_at__isnull=False),
            ),
            CheckConstraint(
                name="panel_order_that_ended_has_a_time",
                condition=Q(state__in=["waiting", "sent", "unclear"], ended_at=None)
                | Q(state__in=["done", "refused", "cancelled"], ended_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                fields=["recruitment", "not_before"],
                condition=Q(state__in=["waiting", "sent"]),
                name="panel_order_to_send",
            )
        ]

    def __str__(self):
        return f"{self.operation} {self.token}"
