"""Who comes, by which way, and what they answer."""

import uuid

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import migrations, models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.db.models.functions import Now

import annotators.models.assignments
import annotators.models.constants
import annotators.models.recruitment
import studies.models
from studies.migrations._tables import link, moment, optional_link, table


class Migration(migrations.Migration):
    initial = True
    # Made by these before 0.1.0. Where the first of them was applied and the last was not, Django finds no way and says so.
    replaces = [
        ("annotators", "0001_annotators_answer"),
        ("annotators", "0013_images_that_were_not_seen"),
    ]
    dependencies = [("studies", "0004_guards"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        table(
            "Recruitment",
            channel=models.CharField(max_length=20, choices=annotators.models.constants.choices),
            pool=models.CharField(
                max_length=50,
                blank=True,
                help_text="Links with the same namespace identify people by the same ids, across studies. Empty: the channel's name.",
            ),
            key=models.SlugField(default=annotators.models.recruitment.new_key),
            settings=models.JSONField(default=dict, blank=True),
            reward=models.DecimalField(
                max_digits=7,
                decimal_places=2,
                null=True,
                blank=True,
                validators=[MinValueValidator(0)],
                help_text="Empty: as in the study.",
            ),
            currency=models.CharField(
                max_length=3,
                blank=True,
                validators=[
                    RegexValidator(
                        "\\A[A-Z]{3}\\Z", "This is not a currency code. Enter three letters, such as USD or EUR."
                    )
                ],
                help_text="Empty: as in the study.",
            ),
            wanted=models.PositiveIntegerField(
                null=True,
                blank=True,
                validators=[MaxValueValidator(1000000)],
                help_text="How many people the panel sends.",
            ),
            opens_at=models.DateTimeField(null=True, blank=True),
            closes_at=models.DateTimeField(null=True, blank=True),
            stopped_at=moment(),
            study=link("studies.study", "recruitments"),
            options={
                "constraints": [
                    UniqueConstraint(fields=["key"], name="recruitment_key_once"),
                    CheckConstraint(
                        condition=Q(opens_at=None) | Q(closes_at=None) | Q(closes_at__gt=F("opens_at")),
                        name="recruitment_closes_after_it_opens",
                    ),
                    CheckConstraint(
                        condition=Q(reward=None) | Q(reward__gte=0), name="recruitment_pays_nothing_below_zero"
                    ),
                ]
            },
        ),
        table(
            "RecruitmentArm",
            arm=link("studies.arm"),
            recruitment=models.ForeignKey(
                "annotators.recruitment", on_delete=models.CASCADE, related_name="recruitment_arms"
            ),
            options={"constraints": [UniqueConstraint(fields=["recruitment", "arm"], name="recruitment_arm_once")]},
        ),
        migrations.AddField(
            "recruitment",
            "arms",
            models.ManyToManyField("studies.arm", related_name="+", through="annotators.RecruitmentArm", blank=True),
        ),
        table(
            "Annotator",
            code=models.UUIDField(default=uuid.uuid4, editable=False, unique=True),
            pool=models.CharField(max_length=50),
            external_id=models.CharField(max_length=64),
            options={"constraints": [UniqueConstraint(fields=["pool", "external_id"], name="annotator_once_per_pool")]},
        ),
        table(
            "PanelIdentity",
            ciphertext=models.BinaryField(null=True),
            purge_at=models.DateTimeField(null=True, blank=True),
            annotator=models.OneToOneField("annotators.annotator", on_delete=models.PROTECT, related_name="identity"),
        ),
        table(
            "Assignment",
            code=models.CharField(
                max_length=32, default=annotators.models.assignments.new_code, editable=False, unique=True
            ),
            external_ids=models.JSONField(default=dict, blank=True),
            trust=models.CharField(
                max_length=9,
                choices=[
                    ("claimed", "claimed: the link named the person"),
                    ("keyed", "keyed: the link contained a secret"),
                    ("verified", "verified: the panel confirmed the person on arrival"),
                    ("confirmed", "confirmed: the panel lists the submission"),
                ],
                default="claimed",
            ),
            ordinal=models.PositiveSmallIntegerField(default=1),
            seed=models.PositiveBigIntegerField(default=studies.models.new_seed),
            origin=models.CharField(
                max_length=8,
                choices=[("live", "Live"), ("robot", "Robot"), ("imported", "Imported"), ("test", "Test")],
                default="live",
            ),
            queue_number=models.PositiveIntegerField(null=True, blank=True),
            consent_version=models.PositiveSmallIntegerField(null=True, blank=True),
            consented_at=moment(),
            claimed_at=models.DateTimeField(db_default=Now()),
            reserved_until=moment(),
            started_at=moment(),
            submitted_at=moment(),
            withdrawn_at=moment(),
            released_at=moment(),
            released_reason=models.CharField(
                max_length=13,
                choices=[
                    ("expired", "Expired"),
                    ("returned", "Returned"),
                    ("screened_out", "Screened Out"),
                    ("failed_checks", "Failed Checks"),
                    ("full", "Full"),
                    ("withdrawn", "Withdrawn"),
                ],
                blank=True,
            ),
            is_late=models.BooleanField(default=False),
            annotator=link("annotators.annotator", "assignments"),
            batch=optional_link("studies.batch", "assignments", db_index=False),
            design=optional_link("studies.design", "assignments"),
            source=optional_link("studies.job"),
            study=link("studies.study", "assignments", db_index=False),
            recruitment=optional_link("annotators.recruitment", "assignments"),
            replaced_at=moment(),
            options={
                "constraints": [
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
                        condition=Q(batch__isnull=False)
                        | Q(batch=None, released_at__isnull=False, released_reason="full"),
                        name="assignment_has_a_batch_unless_full",
                    ),
                    CheckConstraint(
                        condition=Q(released_at=None, released_reason="")
                        | (Q(released_at__isnull=False) & ~Q(released_reason="")),
                        name="assignment_is_released_with_a_reason",
                    ),
                    CheckConstraint(
                        condition=Q(submitted_at=None) | Q(started_at__isnull=False, submitted_at__gte=F("started_at")),
                        name="assignment_is_submitted_after_it_started",
                    ),
                    CheckConstraint(
                        condition=Q(is_late=False) | Q(released_at__isnull=False, submitted_at__isnull=False),
                        name="assignment_is_late_only_when_released_and_submitted",
                    ),
                    CheckConstraint(
                        condition=Q(withdrawn_at=None) | Q(released_at__isnull=False) | Q(submitted_at__isnull=False),
                        name="assignment_withdrawn_is_released_or_submitted",
                    ),
                    CheckConstraint(
                        condition=Q(design__isnull=False) | Q(origin="test"),
                        name="assignment_has_a_design_unless_a_test",
                    ),
                    CheckConstraint(
                        condition=~Q(external_ids__has_key="person"), name="assignment_holds_no_id_of_a_person"
                    ),
                ],
                "indexes": [Index(fields=["study", "submitted_at"], name="assignment_submitted")],
            },
        ),
        table(
            "PageVisit",
            key=models.CharField(max_length=40),
            shown=models.JSONField(default=dict),
            layout=models.CharField(max_length=10, blank=True),
            draft=models.JSONField(null=True, blank=True),
            shown_at=models.DateTimeField(db_default=Now(), null=True, blank=True),
            recorded_at=moment(),
            active_seconds=models.PositiveIntegerField(default=0),
            assignment=link("annotators.assignment", "visits", db_index=False),
            unseen=models.TextField(default="", db_default="", blank=True),
            options={
                "constraints": [
                    UniqueConstraint(fields=["assignment", "key"], name="page_visit_once_per_assignment"),
                    CheckConstraint(
                        condition=Q(recorded_at=None) | Q(draft=None), name="page_draft_is_cleared_when_recorded"
                    ),
                    CheckConstraint(
                        condition=Q(recorded_at=None) | Q(shown_at=None) | Q(recorded_at__gte=F("shown_at")),
                        name="page_is_recorded_after_it_was_shown",
                    ),
                    CheckConstraint(
                        condition=Q(unseen="") | Q(recorded_at__isnull=False),
                        name="page_names_unseen_images_only_when_recorded",
                    ),
                ]
            },
        ),
        table(
            "Response",
            slot=models.CharField(max_length=60),
            value=models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True),
            choice=models.CharField(max_length=50, blank=True),
            part=models.CharField(max_length=50, blank=True),
            text=models.TextField(blank=True),
            skip_reason=models.CharField(max_length=50, blank=True),
            label=models.CharField(max_length=8, blank=True),
            position=models.PositiveSmallIntegerField(null=True, blank=True),
            received_at=models.DateTimeField(db_default=Now()),
            erased_at=moment(),
            assignment=link("annotators.assignment", "responses", db_index=False),
            chosen=optional_link("studies.exposure", "chosen_in", db_index=False),
            exposure=optional_link("studies.exposure", "responses", db_index=False),
            item=optional_link("studies.item", "responses", db_index=False),
            question=link("studies.question", "responses"),
            options={
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["assignment", "slot"], name="response_once_per_slot"),
                    CheckConstraint(
                        condition=Q(value__isnull=False)
                        | Q(chosen__isnull=False)
                        | ~Q(choice="")
                        | ~Q(text="")
                        | ~Q(skip_reason="")
                        | Q(erased_at__isnull=False),
                        name="response_is_answered_or_erased",
                    ),
                    CheckConstraint(
                        condition=Q(exposure=None) | Q(item__isnull=False),
                        name="response_about_an_exposure_is_about_its_item",
                    ),
                ],
                "indexes": [
                    Index(fields=["item"], condition=Q(item__isnull=False), name="response_by_item"),
                    Index(fields=["exposure"], condition=Q(exposure__isnull=False), name="response_by_exposure"),
                    Index(fields=["chosen"], condition=Q(chosen__isnull=False), name="response_by_chosen"),
                ],
            },
        ),
        table(
            "Exclusion",
            reason=models.CharField(max_length=40),
            note=models.TextField(blank=True),
            at=models.DateTimeField(db_default=Now()),
            assignment=link("annotators.assignment", "exclusions"),
            by=link(settings.AUTH_USER_MODEL),
            reverses=optional_link("annotators.exclusion", "reversed_by"),
            options={
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["reverses"], name="exclusion_reversed_once"),
                    CheckConstraint(
                        condition=Q(reverses=None) | ~Q(reverses=F("id")), name="exclusion_does_not_reverse_itself"
                    ),
                    CheckConstraint(condition=~Q(reason=""), name="exclusion_has_a_reason"),
                ],
            },
        ),
        table(
            "Inquiry",
            kind=models.CharField(max_length=8, choices=[("report", "about a text"), ("question", "a question")]),
            page_key=models.CharField(max_length=40, blank=True),
            label=models.CharField(max_length=8, blank=True),
            text=models.TextField(),
            at=models.DateTimeField(db_default=Now()),
            handled_at=models.DateTimeField(null=True, blank=True),
            assignment=link("annotators.assignment", "inquiries"),
            options={
                "verbose_name_plural": "inquiries",
                "constraints": [CheckConstraint(condition=~Q(text=""), name="inquiry_says_something")],
            },
        ),
    ]
