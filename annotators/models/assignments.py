"""Annotators, their assignments and their answers. Answers are append-only."""

import secrets
import uuid
from typing import TYPE_CHECKING, TypedDict

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from studies.models import Batch, Design, Exposure, Item, Job, Question, Section, Study
from studies.models.fields import (
    new_seed,
    optional_noneditable_datetime_field,
    optional_protected_foreign_key,
    protected_foreign_key,
)
from studies.models.guards import AppendOnlyModel

from .recruitment import Recruitment

PROTECT = models.PROTECT


def new_code() -> str:
    """Return 128 random bits as text. The code is the annotator's credential."""
    return secrets.token_urlsafe(16)


class Annotator(models.Model):
    """A person in one pool, identified only by a keyed hash."""

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    pool = models.CharField(max_length=50)
    external_id = models.CharField(max_length=64)

    class Meta:
        constraints = [UniqueConstraint(fields=["pool", "external_id"], name="annotator_once_per_pool")]

    def __str__(self):
        return str(self.code)[:8]


class PanelIdentity(models.Model):
    """The panel's id of an annotator: encrypted, in its own table, and kept only until the annotator is paid."""

    annotator = models.OneToOneField(Annotator, PROTECT, related_name="identity")
    ciphertext = models.BinaryField(null=True)
    purge_at = models.DateTimeField(null=True, blank=True)


class Assignment(models.Model):
    """An annotator with a batch. ``Batch.claimed`` counts the batch's assignments that are not released."""

    class Trust(models.TextChoices):
        NONE = "none", "none: the link names nobody"
        CLAIMED = "claimed", "claimed: the link named the person"
        KEYED = "keyed", "keyed: the link contained a secret"
        VERIFIED = "verified", "verified: the panel confirmed the person on arrival"
        CONFIRMED = "confirmed", "confirmed: the panel lists the submission"

    class Origin(models.TextChoices):
        LIVE = "live"
        ROBOT = "robot"
        IMPORTED = "imported"
        TEST = "test"

    class Released(models.TextChoices):
        EXPIRED = "expired"
        RETURNED = "returned"
        SCREENED_OUT = "screened_out"
        FAILED_CHECKS = "failed_checks"
        FAULT = "fault"
        FULL = "full"
        WITHDRAWN = "withdrawn"

    class Device(models.TextChoices):
        PHONE = "phone"
        TABLET = "tablet"
        COMPUTER = "computer"

    code = models.CharField(max_length=32, unique=True, default=new_code, editable=False)
    # No own indexes: the constraints below begin with these columns. Each further index costs a page write per answer.
    study = protected_foreign_key(Study, "assignments", db_index=False)
    batch = optional_protected_foreign_key(Batch, "assignments", db_index=False)
    annotator = protected_foreign_key(Annotator, "assignments")
    recruitment = optional_protected_foreign_key(Recruitment, "assignments")
    external_ids = models.JSONField(default=dict, blank=True)
    trust = models.CharField(max_length=9, choices=Trust, default=Trust.CLAIMED)
    ordinal = models.PositiveSmallIntegerField(default=1)
    seed = models.PositiveBigIntegerField(default=new_seed)
    design = optional_protected_foreign_key(Design, "assignments")
    origin = models.CharField(max_length=8, choices=Origin, default=Origin.LIVE)
    source = optional_protected_foreign_key(Job)
    queue_number = models.PositiveIntegerField(null=True, blank=True)
    # When a stopping rule passed this claim, and why it did not count then: the slug of a rule or a reason of release.
    judged_at = optional_noneditable_datetime_field()
    judged_out = models.CharField(max_length=50, blank=True, default="", db_default="", editable=False)
    consent_version = models.PositiveSmallIntegerField(null=True, blank=True)
    consented_at = optional_noneditable_datetime_field()
    # The answer to a question of its own: whether others may train models with this person's preferences.
    shares_preferences = models.BooleanField(default=False, db_default=False, editable=False)
    # The coarse class of the device on which the place was taken. Empty: unknown, or not an annotator's.
    device = models.CharField(max_length=8, blank=True, default="", db_default="", choices=Device, editable=False)
    claimed_at = models.DateTimeField(db_default=Now())
    reserved_until = optional_noneditable_datetime_field()
    started_at = optional_noneditable_datetime_field()
    submitted_at = optional_noneditable_datetime_field()
    withdrawn_at = optional_noneditable_datetime_field()
    released_at = optional_noneditable_datetime_field()
    released_reason = models.CharField(max_length=13, blank=True, choices=Released)
    is_late = models.BooleanField(default=False)
    replaced_at = optional_noneditable_datetime_field()
    # The passed attempt, in this study or another, because of which this assignment has no test.
    qualified_by = optional_protected_foreign_key(
        "annotators.QualificationAttempt", "qualified_assignments", editable=False, db_index=False
    )

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["study", "annotator", "ordinal"],
                condition=Q(released_at=None),
                name="assignment_ordinal_once_among_unreleased",
            ),
            UniqueConstraint(
                fields=["study", "annotator"],
                condition=Q(released_at=None, submitted_at=None),
                name="assignment_one_at_a_time_per_annotator",
            ),
            UniqueConstraint(fields=["batch", "annotator"], name="assignment_once_per_batch_and_annotator"),
            UniqueConstraint(fields=["study", "queue_number"], name="assignment_queue_number_once_per_study"),
            CheckConstraint(
                name="assignment_has_a_batch_unless_full",
                condition=Q(batch__isnull=False) | Q(batch=None, released_at__isnull=False, released_reason="full"),
            ),
            CheckConstraint(
                name="assignment_is_released_with_a_reason",
                condition=Q(released_at=None, released_reason="")
                | (Q(released_at__isnull=False) & ~Q(released_reason="")),
            ),
            CheckConstraint(
                name="assignment_is_submitted_after_it_started",
                condition=Q(submitted_at=None) | Q(started_at__isnull=False, submitted_at__gte=F("started_at")),
            ),
            CheckConstraint(
                name="assignment_is_late_only_when_released_and_submitted",
                condition=Q(is_late=False) | Q(released_at__isnull=False, submitted_at__isnull=False),
            ),
            CheckConstraint(
                name="assignment_withdrawn_is_released_or_submitted",
                condition=Q(withdrawn_at=None) | Q(released_at__isnull=False) | Q(submitted_at__isnull=False),
            ),
            CheckConstraint(
                name="assignment_is_judged_out_only_when_judged",
                condition=Q(judged_out="") | Q(judged_at__isnull=False),
            ),
            CheckConstraint(
                name="assignment_has_a_design_unless_a_test", condition=Q(design__isnull=False) | Q(origin="test")
            ),
            CheckConstraint(
                name="assignment_shares_preferences_only_with_a_consent",
                condition=Q(shares_preferences=False) | Q(consented_at__isnull=False),
            ),
            CheckConstraint(name="assignment_holds_no_id_of_a_person", condition=~Q(external_ids__has_key="person")),
        ]
        # No index contains ``reserved_until``, which every page changes. So PostgreSQL writes only the row.
        indexes = [models.Index(fields=["study", "submitted_at"], name="assignment_submitted")]

    # The address by which this request came, if it shows no stored answers. It is no column.
    limited_address = ""

    def __str__(self):
        return self.code[:8]

    @property
    def path(self) -> str:
        """Return the path of the pages, as this request opened them."""
        return f"/p/{self.limited_address or self.code}/"


class PageVisit(models.Model):
    """A page that an annotator was shown. ``shown`` is written once; ``draft`` is kept until the page is recorded.

    The row is written without a wait for the disk, so a crash of the database may lose it. Then it is made again from
    the assignment's seed when answers or a draft arrive. In this case the time of showing is unknown and ``shown_at``
    is null.
    """

    assignment = protected_foreign_key(Assignment, "visits", db_index=False)
    key = models.CharField(max_length=40)
    shown = models.JSONField(default=dict)
    layout = models.CharField(max_length=10, blank=True)
    draft = models.JSONField(null=True, blank=True)
    shown_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    recorded_at = optional_noneditable_datetime_field()
    active_seconds = models.PositiveIntegerField(default=0)
    # New rows are inserted without this column, so the database itself needs the default.
    unseen = models.TextField(blank=True, default="", db_default="")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["assignment", "key"], name="page_visit_once_per_assignment"),
            CheckConstraint(
                name="page_names_unseen_images_only_when_recorded",
                condition=Q(unseen="") | Q(recorded_at__isnull=False),
            ),
            CheckConstraint(name="page_draft_is_cleared_when_recorded", condition=Q(recorded_at=None) | Q(draft=None)),
            CheckConstraint(
                name="page_is_recorded_after_it_was_shown",
                condition=Q(recorded_at=None) | Q(shown_at=None) | Q(recorded_at__gte=F("shown_at")),
            ),
        ]

    def __str__(self):
        return self.key


class Response(AppendOnlyModel):
    """One stored answer: the value of one slot, with its question, item and exposure."""

    erasable_fields = frozenset({"text", "value", "chosen", "choice", "part", "skip_reason", "erased_at"})

    assignment = protected_foreign_key(Assignment, "responses", db_index=False)
    question = protected_foreign_key(Question, "responses")
    item = optional_protected_foreign_key(Item, "responses", db_index=False)
    exposure = optional_protected_foreign_key(Exposure, "responses", db_index=False)
    slot = models.CharField(max_length=60)
    value = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    chosen = optional_protected_foreign_key(Exposure, "chosen_in", db_index=False)
    choice = models.CharField(max_length=50, blank=True)
    part = models.CharField(max_length=50, blank=True)
    text = models.TextField(blank=True)
    skip_reason = models.CharField(max_length=50, blank=True)
    label = models.CharField(max_length=8, blank=True)
    position = models.PositiveSmallIntegerField(null=True, blank=True)
    received_at = models.DateTimeField(db_default=Now())
    erased_at = optional_noneditable_datetime_field()

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["assignment", "slot"], name="response_once_per_slot"),
            CheckConstraint(
                name="response_is_answered_or_erased",
                condition=Q(value__isnull=False)
                | Q(chosen__isnull=False)
                | ~Q(choice="")
                | ~Q(text="")
                | ~Q(skip_reason="")
                | Q(erased_at__isnull=False),
            ),
            CheckConstraint(
                name="response_about_an_exposure_is_about_its_item",
                condition=Q(exposure=None) | Q(item__isnull=False),
            ),
        ]
        # Partial indexes: most answers leave some of these columns empty.
        indexes = [
            models.Index(fields=[name], condition=Q(**{f"{name}__isnull": False}), name=f"response_by_{name}")
            for name in ("item", "exposure", "chosen")
        ]

    def __str__(self):
        return self.slot


class Exclusion(AppendOnlyModel):
    """A user's decision to leave an assignment out of the analysis, or to undo such a decision (``reverses``)."""

    study_path = "assignment__study"

    assignment = protected_foreign_key(Assignment, "exclusions")
    reason = models.CharField(max_length=40)
    note = models.TextField(blank=True)
    by = protected_foreign_key(settings.AUTH_USER_MODEL)
    at = models.DateTimeField(db_default=Now())
    reverses = optional_protected_foreign_key("self", "reversed_by")

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["reverses"], name="exclusion_reversed_once"),
            CheckConstraint(
                name="exclusion_does_not_reverse_itself", condition=Q(reverses=None) | ~Q(reverses=F("id"))
            ),
            CheckConstraint(name="exclusion_has_a_reason", condition=~Q(reason="")),
        ]


class Inquiry(models.Model):
    """An annotator's message to the researchers: a report about a text, or a question. It shows no system.

    ``answer``: what the annotator reads at the address where they wrote.
    """

    class Kind(models.TextChoices):
        REPORT = "report", "about a text"
        QUESTION = "question", "a question"

    study_path = "assignment__study"

    assignment = protected_foreign_key(Assignment, "inquiries")
    kind = models.CharField(max_length=9, choices=Kind)
    page_key = models.CharField(max_length=40, blank=True)
    label = models.CharField(max_length=8, blank=True)
    text = models.TextField()
    at = models.DateTimeField(db_default=Now())
    handled_at = models.DateTimeField(null=True, blank=True)
    answer = models.TextField(blank=True)
    answered_by = optional_protected_foreign_key(settings.AUTH_USER_MODEL)
    answered_at = optional_noneditable_datetime_field()

    class Meta:
        verbose_name_plural = "inquiries"
        constraints = [
            CheckConstraint(name="inquiry_says_something", condition=~Q(text="")),
            CheckConstraint(
                name="inquiry_is_answered_whole_or_not_at_all",
                condition=Q(answer="", answered_by=None, answered_at=None)
                | (Q(answered_by__isnull=False, answered_at__isnull=False) & ~Q(answer="")),
            ),
        ]


# The attempts at tests before the work.


class QualificationAttempt(AppendOnlyModel):
    """An attempt at the test of a study. A passed one is valid in other studies with the section's qualification."""

    assignment = protected_foreign_key(Assignment, "qualification_attempts", db_index=False)
    section = protected_foreign_key(Section, "qualification_attempts")
    number = models.PositiveSmallIntegerField()
    n_right = models.PositiveSmallIntegerField()
    n_asked = models.PositiveSmallIntegerField()
    is_passed = models.BooleanField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        base_manager_name = "objects"
        constraints = [
            UniqueConstraint(fields=["assignment", "number"], name="qualification_attempt_once_per_number"),
            CheckConstraint(name="qualification_attempt_is_the_first_or_second", condition=Q(number__in=[1, 2])),
            CheckConstraint(
                name="qualification_attempt_has_no_more_right_than_asked", condition=Q(n_right__lte=F("n_asked"))
            ),
        ]

    def __str__(self):
        return f"attempt {self.number}: {self.n_right} of {self.n_asked} right"


# Rows with the columns that a query adds, for checks of types alone.
if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    from .recruitment import PanelSubmission

    class _WithStatus(TypedDict):
        standing: str

    class _Judged(TypedDict):
        is_excluded: bool

    class _SignedUp(TypedDict):
        sign_up: str

    class _Payable(TypedDict):
        sent: int

    SubmissionWithStatus = WithAnnotations[PanelSubmission, _WithStatus]
    JudgedAssignment = WithAnnotations[Assignment, _Judged]
    SignedUpAssignment = WithAnnotations[Assignment, _SignedUp]
    PayableAssignment = WithAnnotations[Assignment, _Payable]
