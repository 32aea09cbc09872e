import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import annotators.models
import annotators.registry
import studies.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "__first__"),
        ("studies", "0001_a_study_has_a_design"),
    ]

    operations = [
        migrations.CreateModel(
            name="Annotator",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("pool", models.CharField(max_length=50)),
                ("external_id", models.CharField(max_length=64)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("pool", "external_id"), name="annotator_once_per_pool")
                ],
            },
        ),
        migrations.CreateModel(
            name="PanelIdentity",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ciphertext", models.BinaryField(null=True)),
                ("purge_at", models.DateTimeField(blank=True, null=True)),
                (
                    "annotator",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="identity", to="annotators.annotator"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Recruitment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("channel", models.CharField(choices=annotators.registry.choices, max_length=20)),
                (
                    "pool",
                    models.CharField(
                        blank=True,
                        help_text="Where people are known by the same ids, across studies. Empty: the channel's name.",
                        max_length=50,
                    ),
                ),
                ("key", models.SlugField(default=annotators.models.new_key)),
                ("settings", models.JSONField(blank=True, default=dict)),
                (
                    "reward",
                    models.DecimalField(
                        blank=True, decimal_places=2, help_text="Empty: the study's.", max_digits=7, null=True
                    ),
                ),
                ("currency", models.CharField(blank=True, help_text="Empty: the study's.", max_length=3)),
                (
                    "wanted",
                    models.PositiveIntegerField(
                        blank=True, help_text="How many people the panel is told to send.", null=True
                    ),
                ),
                ("opens_at", models.DateTimeField(blank=True, null=True)),
                ("closes_at", models.DateTimeField(blank=True, null=True)),
                ("stopped_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="recruitments", to="studies.study"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("key",), name="recruitment_key_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("opens_at", None),
                            ("closes_at", None),
                            ("closes_at__gt", models.F("opens_at")),
                            _connector="OR",
                        ),
                        name="recruitment_closes_after_it_opens",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "code",
                    models.CharField(default=annotators.models.new_code, editable=False, max_length=32, unique=True),
                ),
                ("external_ids", models.JSONField(blank=True, default=dict)),
                (
                    "trust",
                    models.CharField(
                        choices=[
                            ("claimed", "claimed: the address said so"),
                            ("keyed", "keyed: the address carried a secret"),
                            ("verified", "verified: the panel confirmed the person at arrival"),
                            ("confirmed", "confirmed: the panel shows the submission"),
                        ],
                        default="claimed",
                        max_length=9,
                    ),
                ),
                ("ordinal", models.PositiveSmallIntegerField(default=1)),
                ("seed", models.PositiveBigIntegerField(default=studies.models.new_seed)),
                (
                    "origin",
                    models.CharField(
                        choices=[("live", "Live"), ("robot", "Robot"), ("imported", "Imported"), ("test", "Test")],
                        default="live",
                        max_length=8,
                    ),
                ),
                ("queue_number", models.PositiveIntegerField(blank=True, null=True)),
                ("consent_version", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("consented_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("claimed_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("reserved_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("started_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("submitted_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("withdrawn_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("released_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "released_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("expired", "Expired"),
                            ("returned", "Returned"),
                            ("screened_out", "Screened Out"),
                            ("failed_checks", "Failed Checks"),
                            ("full", "Full"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        max_length=13,
                    ),
                ),
                ("is_late", models.BooleanField(default=False)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="annotators.annotator",
                    ),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="studies.batch",
                    ),
                ),
                (
                    "design",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="studies.design",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="studies.job",
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="assignments", to="studies.study"
                    ),
                ),
                (
                    "recruitment",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to="annotators.recruitment",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("released_at", None), ("submitted_at", None)),
                        fields=["study", "reserved_until"],
                        name="assignment_live",
                    ),
                    models.Index(fields=["study", "submitted_at"], name="assignment_submitted"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("released_at", None)),
                        fields=("study", "annotator", "ordinal"),
                        name="assignment_ordinal_once_among_unreleased",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("released_at", None), ("submitted_at", None)),
                        fields=("study", "annotator"),
                        name="assignment_one_at_a_time_per_annotator",
                    ),
                    models.UniqueConstraint(
                        fields=("batch", "annotator"), name="assignment_once_per_batch_and_annotator"
                    ),
                    models.UniqueConstraint(
                        fields=("study", "queue_number"), name="assignment_queue_number_once_per_study"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("batch__isnull", False),
                            models.Q(("batch", None), ("released_at__isnull", False), ("released_reason", "full")),
                            _connector="OR",
                        ),
                        name="assignment_has_a_batch_unless_full",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("released_at", None), ("released_reason", "")),
                            models.Q(("released_at__isnull", False), models.Q(("released_reason", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="assignment_is_released_with_a_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("submitted_at", None),
                            models.Q(("started_at__isnull", False), ("submitted_at__gte", models.F("started_at"))),
                            _connector="OR",
                        ),
                        name="assignment_is_submitted_after_it_started",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("is_late", False),
                            models.Q(("released_at__isnull", False), ("submitted_at__isnull", False)),
                            _connector="OR",
                        ),
                        name="assignment_is_late_only_when_released_and_submitted",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("withdrawn_at", None),
                            ("released_at__isnull", False),
                            ("submitted_at__isnull", False),
                            _connector="OR",
                        ),
                        name="assignment_withdrawn_is_released_or_submitted",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("design__isnull", False), ("origin", "test"), _connector="OR"),
                        name="assignment_has_a_design_unless_a_test",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RecruitmentArm",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "arm",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.arm"),
                ),
                (
                    "recruitment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recruitment_arms",
                        to="annotators.recruitment",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("recruitment", "arm"), name="recruitment_arm_once")],
            },
        ),
        migrations.AddField(
            model_name="recruitment",
            name="arms",
            field=models.ManyToManyField(
                blank=True, related_name="+", through="annotators.RecruitmentArm", to="studies.arm"
            ),
        ),
        migrations.CreateModel(
            name="Response",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slot", models.CharField(max_length=60)),
                ("value", models.DecimalField(blank=True, decimal_places=4, max_digits=14, null=True)),
                ("choice", models.CharField(blank=True, max_length=50)),
                ("part", models.CharField(blank=True, max_length=50)),
                ("text", models.TextField(blank=True)),
                ("skip_reason", models.CharField(blank=True, max_length=50)),
                ("label", models.CharField(blank=True, max_length=8)),
                ("position", models.PositiveSmallIntegerField(blank=True, null=True)),
                ("received_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("erased_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "assignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="annotators.assignment",
                    ),
                ),
                (
                    "chosen",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="chosen_in",
                        to="studies.exposure",
                    ),
                ),
                (
                    "exposure",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="studies.exposure",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="responses",
                        to="studies.item",
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="responses", to="studies.question"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("assignment", "slot"), name="response_once_per_slot"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("value__isnull", False),
                            ("chosen__isnull", False),
                            models.Q(("choice", ""), _negated=True),
                            models.Q(("text", ""), _negated=True),
                            models.Q(("skip_reason", ""), _negated=True),
                            ("erased_at__isnull", False),
                            _connector="OR",
                        ),
                        name="response_is_answered_or_erased",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("exposure", None), ("item__isnull", False), _connector="OR"),
                        name="response_about_an_exposure_is_about_its_item",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Exclusion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.CharField(max_length=40)),
                ("note", models.TextField(blank=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "assignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="exclusions",
                        to="annotators.assignment",
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "reverses",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reversed_by",
                        to="annotators.exclusion",
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("reverses",), name="exclusion_reversed_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("reverses", None), models.Q(("reverses", models.F("id")), _negated=True), _connector="OR"
                        ),
                        name="exclusion_does_not_reverse_itself",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("reason", ""), _negated=True), name="exclusion_has_a_reason"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Inquiry",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(choices=[("report", "about a text"), ("question", "a question")], max_length=8),
                ),
                ("page_key", models.CharField(blank=True, max_length=40)),
                ("label", models.CharField(blank=True, max_length=8)),
                ("text", models.TextField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("handled_at", models.DateTimeField(blank=True, null=True)),
                (
                    "assignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="inquiries",
                        to="annotators.assignment",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "inquiries",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("text", ""), _negated=True), name="inquiry_says_something"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PageVisit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=40)),
                ("shown", models.JSONField(default=dict)),
                ("layout", models.CharField(blank=True, max_length=10)),
                ("draft", models.JSONField(blank=True, null=True)),
                ("shown_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("recorded_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("active_seconds", models.PositiveIntegerField(default=0)),
                (
                    "assignment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="visits", to="annotators.assignment"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("assignment", "key"), name="page_visit_once_per_assignment"),
                    models.CheckConstraint(
                        condition=models.Q(("recorded_at", None), ("draft", None), _connector="OR"),
                        name="page_draft_is_cleared_when_recorded",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("recorded_at", None), ("recorded_at__gte", models.F("shown_at")), _connector="OR"
                        ),
                        name="page_is_recorded_after_it_was_shown",
                    ),
                ],
            },
        ),
    ]
