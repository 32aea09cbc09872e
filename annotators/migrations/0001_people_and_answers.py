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
import studies.models.fields
from studies.migrations._tables import link, moment, optional_link, table


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("annotators", "0001_annotators_and_answers"),
        ("annotators", "0005_mechanical_turk_is_told_nothing_more"),
        ("annotators", "0006_orders_name_the_panels_message"),
        ("annotators", "0007_barred_annotators_get_no_further_batch"),
        ("annotators", "0008_annotators_may_object_to_failed_checks"),
        ("annotators", "0009_attempts_at_tests_are_stored"),
        ("annotators", "0010_appeals_may_be_about_failed_checks"),
        ("annotators", "0011_claims_are_judged_when_a_stopping_rule_passes_them"),
        ("annotators", "0012_messages_of_withdrawn_are_erased_and_open_links_name_nobody"),
        ("annotators", "0013_annotators_may_agree_that_preferences_are_given_away"),
    ]
    dependencies = [("studies", "0002_comparisons_stimuli_and_jobs")]
    operations = [
        table(
            "QualificationAttempt",
            {"base_manager_name": "objects"},
            number=models.PositiveSmallIntegerField(),
            n_right=models.PositiveSmallIntegerField(),
            n_asked=models.PositiveSmallIntegerField(),
            is_passed=models.BooleanField(),
            at=models.DateTimeField(db_default=Now()),
        ),
        table(
            "Recruitment",
            {
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
            channel=models.CharField(max_length=20, choices=annotators.models.constants.choices),
            pool=models.CharField(
                max_length=50,
                blank=True,
                help_text="Links with the same namespace identify people by the same ids, across studies. Empty: the channel's name.",
            ),
            key=models.SlugField(default=annotators.models.recruitment.new_key),
            settings=models.JSONField(blank=True, default=dict),
            reward=models.DecimalField(
                blank=True,
                null=True,
                help_text="Empty: as in the study.",
                validators=[MinValueValidator(0)],
                max_digits=7,
                decimal_places=2,
            ),
            currency=models.CharField(
                max_length=3,
                blank=True,
                help_text="Empty: as in the study.",
                validators=[
                    RegexValidator(
                        "\\A[A-Z]{3}\\Z", "This is not a currency code. Enter three letters, such as USD or EUR."
                    )
                ],
            ),
            wanted=models.PositiveIntegerField(
                blank=True,
                null=True,
                help_text="How many people the panel sends.",
                validators=[MaxValueValidator(1000000)],
            ),
            opens_at=models.DateTimeField(blank=True, null=True),
            closes_at=models.DateTimeField(blank=True, null=True),
            stopped_at=moment(),
            study=link("studies.study", "recruitments"),
        ),
        table(
            "RecruitmentArm",
            {"constraints": [UniqueConstraint(fields=["recruitment", "arm"], name="recruitment_arm_once")]},
            arm=link("studies.arm"),
            recruitment=models.ForeignKey("annotators.recruitment", models.CASCADE, related_name="recruitment_arms"),
        ),
        migrations.AddField(
            "recruitment",
            "arms",
            models.ManyToManyField("studies.arm", blank=True, related_name="+", through="annotators.RecruitmentArm"),
        ),
        table(
            "Annotator",
            {"constraints": [UniqueConstraint(fields=["pool", "external_id"], name="annotator_once_per_pool")]},
            code=models.UUIDField(unique=True, default=uuid.uuid4, editable=False),
            pool=models.CharField(max_length=50),
            external_id=models.CharField(max_length=64),
        ),
        table(
            "PanelIdentity",
            ciphertext=models.BinaryField(null=True),
            purge_at=models.DateTimeField(blank=True, null=True),
            annotator=models.OneToOneField("annotators.annotator", models.PROTECT, related_name="identity"),
        ),
        table(
            "Assignment",
            {
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
                    CheckConstraint(
                        condition=Q(judged_out="") | Q(judged_at__isnull=False),
                        name="assignment_is_judged_out_only_when_judged",
                    ),
                    CheckConstraint(
                        condition=Q(shares_preferences=False) | Q(consented_at__isnull=False),
                        name="assignment_shares_preferences_only_with_a_consent",
                    ),
                ],
                "indexes": [Index(fields=["study", "submitted_at"], name="assignment_submitted")],
            },
            code=models.CharField(
                max_length=32, unique=True, default=annotators.models.assignments.new_code, editable=False
            ),
            external_ids=models.JSONField(blank=True, default=dict),
            trust=models.CharField(
                max_length=9,
                default="claimed",
                choices=[
                    ("none", "none: the link names nobody"),
                    ("claimed", "claimed: the link named the person"),
                    ("keyed", "keyed: the link contained a secret"),
                    ("verified", "verified: the panel confirmed the person on arrival"),
                    ("confirmed", "confirmed: the panel lists the submission"),
                ],
            ),
            ordinal=models.PositiveSmallIntegerField(default=1),
            seed=models.PositiveBigIntegerField(default=studies.models.fields.new_seed),
            origin=models.CharField(
                max_length=8,
                default="live",
                choices=[("live", "Live"), ("robot", "Robot"), ("imported", "Imported"), ("test", "Test")],
            ),
            queue_number=models.PositiveIntegerField(blank=True, null=True),
            consent_version=models.PositiveSmallIntegerField(blank=True, null=True),
            consented_at=moment(),
            claimed_at=models.DateTimeField(db_default=Now()),
            reserved_until=moment(),
            started_at=moment(),
            submitted_at=moment(),
            withdrawn_at=moment(),
            released_at=moment(),
            released_reason=models.CharField(
                max_length=13,
                blank=True,
                choices=[
                    ("expired", "Expired"),
                    ("returned", "Returned"),
                    ("screened_out", "Screened Out"),
                    ("failed_checks", "Failed Checks"),
                    ("fault", "Fault"),
                    ("full", "Full"),
                    ("withdrawn", "Withdrawn"),
                ],
            ),
            is_late=models.BooleanField(default=False),
            annotator=link("annotators.annotator", "assignments"),
            batch=optional_link("studies.batch", "assignments", db_index=False),
            design=optional_link("studies.design", "assignments"),
            source=optional_link("studies.job"),
            study=link("studies.study", "assignments", db_index=False),
            recruitment=optional_link("annotators.recruitment", "assignments"),
            replaced_at=moment(),
            qualified_by=optional_link(
                "annotators.qualificationattempt", "qualified_assignments", editable=False, db_index=False
            ),
            judged_at=moment(),
            judged_out=models.CharField(max_length=50, blank=True, default="", db_default="", editable=False),
            shares_preferences=models.BooleanField(default=False, db_default=False, editable=False),
        ),
        migrations.AddField(
            "qualificationattempt",
            "assignment",
            link("annotators.assignment", "qualification_attempts", db_index=False),
        ),
        migrations.AddField("qualificationattempt", "section", link("studies.section", "qualification_attempts")),
        migrations.AddConstraint(
            "qualificationattempt",
            UniqueConstraint(fields=["assignment", "number"], name="qualification_attempt_once_per_number"),
        ),
        migrations.AddConstraint(
            "qualificationattempt",
            CheckConstraint(condition=Q(number__in=[1, 2]), name="qualification_attempt_is_the_first_or_second"),
        ),
        migrations.AddConstraint(
            "qualificationattempt",
            CheckConstraint(
                condition=Q(n_right__lte=F("n_asked")), name="qualification_attempt_has_no_more_right_than_asked"
            ),
        ),
        table(
            "PageVisit",
            {
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
            key=models.CharField(max_length=40),
            shown=models.JSONField(default=dict),
            layout=models.CharField(max_length=10, blank=True),
            draft=models.JSONField(blank=True, null=True),
            shown_at=models.DateTimeField(blank=True, null=True, db_default=Now()),
            recorded_at=moment(),
            active_seconds=models.PositiveIntegerField(default=0),
            assignment=link("annotators.assignment", "visits", db_index=False),
            unseen=models.TextField(blank=True, default="", db_default=""),
        ),
        table(
            "Response",
            {
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
            slot=models.CharField(max_length=60),
            value=models.DecimalField(blank=True, null=True, max_digits=14, decimal_places=4),
            choice=models.CharField(max_length=50, blank=True),
            part=models.CharField(max_length=50, blank=True),
            text=models.TextField(blank=True),
            skip_reason=models.CharField(max_length=50, blank=True),
            label=models.CharField(max_length=8, blank=True),
            position=models.PositiveSmallIntegerField(blank=True, null=True),
            received_at=models.DateTimeField(db_default=Now()),
            erased_at=moment(),
            assignment=link("annotators.assignment", "responses", db_index=False),
            chosen=optional_link("studies.exposure", "chosen_in", db_index=False),
            exposure=optional_link("studies.exposure", "responses", db_index=False),
            item=optional_link("studies.item", "responses", db_index=False),
            question=link("studies.question", "responses"),
        ),
        table(
            "Exclusion",
            {
                "base_manager_name": "objects",
                "constraints": [
                    UniqueConstraint(fields=["reverses"], name="exclusion_reversed_once"),
                    CheckConstraint(
                        condition=Q(reverses=None) | ~Q(reverses=F("id")), name="exclusion_does_not_reverse_itself"
                    ),
                    CheckConstraint(condition=~Q(reason=""), name="exclusion_has_a_reason"),
                ],
            },
            reason=models.CharField(max_length=40),
            note=models.TextField(blank=True),
            at=models.DateTimeField(db_default=Now()),
            assignment=link("annotators.assignment", "exclusions"),
            by=link(settings.AUTH_USER_MODEL),
            reverses=optional_link("annotators.exclusion", "reversed_by"),
        ),
        table(
            "Inquiry",
            {
                "verbose_name_plural": "inquiries",
                "constraints": [CheckConstraint(condition=~Q(text=""), name="inquiry_says_something")],
            },
            kind=models.CharField(max_length=9, choices=[("report", "about a text"), ("question", "a question")]),
            page_key=models.CharField(max_length=40, blank=True),
            label=models.CharField(max_length=8, blank=True),
            text=models.TextField(),
            at=models.DateTimeField(db_default=Now()),
            handled_at=models.DateTimeField(blank=True, null=True),
            assignment=link("annotators.assignment", "inquiries"),
        ),
        table(
            "SampleColumn",
            {"constraints": [UniqueConstraint(fields=["study", "name"], name="sample_column_once_per_study")]},
            name=models.CharField(max_length=100),
            kind=models.CharField(max_length=8, choices=[("category", "Category"), ("number", "Number")]),
            shows_small=models.BooleanField(default=False),
            declared_at=models.DateTimeField(db_default=Now()),
            study=link("studies.study", "sample_columns"),
        ),
        table(
            "SampleValue",
            {
                "constraints": [
                    UniqueConstraint(fields=["column", "annotator"], name="sample_value_once_per_person"),
                    CheckConstraint(condition=~Q(value=""), name="sample_value_says_something"),
                ]
            },
            value=models.CharField(max_length=100),
            annotator=link("annotators.annotator", "sample_values"),
            column=link("annotators.samplecolumn", "values"),
        ),
        table(
            "Barring",
            {
                "constraints": [
                    UniqueConstraint(
                        fields=["study", "annotator"],
                        condition=Q(lifted_at=None),
                        name="barring_once_until_it_is_lifted",
                    ),
                    CheckConstraint(
                        condition=Q(by=None, ground="rule", reason="", screening__isnull=False)
                        | (Q(by__isnull=False, ground="hand", screening=None) & ~Q(reason="")),
                        name="barring_rests_on_a_screening_or_on_a_decision_with_a_reason",
                    ),
                    CheckConstraint(
                        condition=Q(lift_reason="", lifted_at=None, lifted_by=None)
                        | (Q(lifted_at__isnull=False, lifted_by__isnull=False) & ~Q(lift_reason="")),
                        name="barring_is_lifted_whole_or_not_at_all",
                    ),
                    CheckConstraint(
                        condition=Q(lifted_at=None) | Q(lifted_at__gte=F("at")),
                        name="barring_is_lifted_after_it_was_made",
                    ),
                ]
            },
            ground=models.CharField(max_length=4, choices=[("rule", "by the test questions"), ("hand", "by hand")]),
            reason=models.TextField(blank=True),
            screening=models.PositiveBigIntegerField(blank=True, null=True),
            at=models.DateTimeField(db_default=Now()),
            lifted_at=moment(),
            lift_reason=models.TextField(blank=True),
            annotator=link("annotators.annotator", "barrings"),
            by=optional_link(settings.AUTH_USER_MODEL),
            lifted_by=optional_link(settings.AUTH_USER_MODEL),
            study=link("studies.study", "barrings"),
        ),
    ]
