import uuid

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import studies.models
import studies.protocols
import studies.rules


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="Arm",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(default="all", max_length=50)),
                (
                    "condition",
                    models.CharField(
                        choices=[
                            ("none", "None"),
                            ("instructions", "Instructions"),
                            ("examples", "Examples"),
                            ("comparison", "Comparison"),
                        ],
                        default="none",
                        max_length=12,
                    ),
                ),
                (
                    "instructions",
                    models.TextField(blank=True, help_text="Replaces the study's instructions for this arm. Markdown."),
                ),
                (
                    "domain",
                    models.CharField(blank=True, help_text="Prompts of this domain alone; empty: all.", max_length=50),
                ),
                (
                    "wanted",
                    models.PositiveIntegerField(
                        blank=True, help_text="Places; empty: an equal share of the target.", null=True
                    ),
                ),
                (
                    "reward",
                    models.DecimalField(
                        blank=True, decimal_places=2, help_text="Empty: the study's.", max_digits=7, null=True
                    ),
                ),
                ("minutes", models.PositiveSmallIntegerField(blank=True, help_text="Empty: the study's.", null=True)),
            ],
            options={
                "ordering": ["name"],
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Output",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sample", models.PositiveSmallIntegerField(default=0)),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("plain", "plain text"),
                            ("markdown", "Markdown"),
                            ("turns", "turns of a dialogue, one a line: speaker: words"),
                        ],
                        default="plain",
                        max_length=8,
                    ),
                ),
                ("text", models.TextField(blank=True)),
                ("media", models.CharField(blank=True, editable=False, max_length=80)),
                ("alt", models.CharField(blank=True, max_length=300, verbose_name="description of the image")),
                (
                    "is_empty",
                    models.BooleanField(
                        default=False,
                        help_text="The system gave nothing, and that is what is judged.",
                        verbose_name="empty",
                    ),
                ),
                ("original", models.TextField(blank=True)),
                ("language", models.CharField(blank=True, max_length=12)),
            ],
            options={
                "ordering": ["prompt__key", "system__name", "sample"],
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("is_empty", False), ("media", ""), models.Q(("text", ""), _negated=True)),
                            models.Q(("is_empty", False), ("text", ""), models.Q(("media", ""), _negated=True)),
                            models.Q(("is_empty", True), ("media", ""), ("text", "")),
                            _connector="OR",
                        ),
                        name="output_is_exactly_one_of_text_media_empty",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Prompt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=100)),
                ("text", models.TextField(blank=True)),
                ("source", models.TextField(blank=True, verbose_name="source document")),
                ("media", models.CharField(blank=True, editable=False, max_length=80)),
                ("domain", models.CharField(blank=True, max_length=50)),
                ("language", models.CharField(blank=True, max_length=12)),
                ("attributes", models.JSONField(blank=True, default=dict)),
            ],
            options={
                "ordering": ["key"],
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("key", ""), _negated=True), name="prompt_has_a_key")
                ],
            },
        ),
        migrations.CreateModel(
            name="Question",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                ("key", models.SlugField()),
                ("text", models.TextField()),
                ("help", models.TextField(blank=True, help_text="Stands under the question. Markdown.")),
                ("criterion", models.CharField(blank=True, max_length=50)),
                ("scale", models.JSONField(blank=True, default=dict)),
                ("required", models.BooleanField(default=True)),
                ("skip_reasons", models.JSONField(blank=True, default=list)),
            ],
            options={
                "ordering": ["position"],
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("wanted", models.PositiveSmallIntegerField(default=1)),
                ("claimed", models.PositiveSmallIntegerField(default=0)),
                (
                    "origin",
                    models.CharField(
                        choices=[
                            ("drawn", "Drawn"),
                            ("imported", "Imported"),
                            ("top_up", "Top Up"),
                            ("replacement", "Replacement"),
                            ("test", "Test"),
                        ],
                        default="drawn",
                        max_length=11,
                    ),
                ),
                ("key", models.CharField(blank=True, max_length=100)),
                (
                    "arm",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="batches", to="studies.arm"
                    ),
                ),
                (
                    "copy_of",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="copies",
                        to="studies.batch",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "batches",
                "ordering": ["number"],
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("claimed__lte", models.F("wanted"))), name="batch_claimed_at_most_wanted"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Design",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveSmallIntegerField()),
                ("canonical", models.TextField()),
                ("sha256", models.CharField(max_length=64)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("reason", models.TextField(blank=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["version"],
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("version", 1),
                            models.Q(("version__gt", 1), models.Q(("reason", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="design_amendment_has_a_reason",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("live", "Live"), ("test", "Test"), ("practice", "Practice")],
                        default="live",
                        max_length=8,
                    ),
                ),
                ("content", models.CharField(help_text="sha256 of prompt, sorted outputs and kind", max_length=64)),
                ("settled_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "retired_in",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="studies.design",
                    ),
                ),
                (
                    "prompt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="items", to="studies.prompt"
                    ),
                ),
            ],
            options={
                "ordering": ["section", "number"],
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Exposure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField()),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="exposures", to="studies.item"
                    ),
                ),
                (
                    "output",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="exposures", to="studies.output"
                    ),
                ),
            ],
            options={
                "ordering": ["item", "number"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("item", "output"), name="exposure_output_once_per_item"),
                    models.UniqueConstraint(fields=("item", "number"), name="exposure_number_once_per_item"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Placement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField()),
                (
                    "batch",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="placements", to="studies.batch"
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="placements", to="studies.item"
                    ),
                ),
            ],
            options={
                "ordering": ["batch", "number"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("batch", "number"), name="placement_number_once_per_batch"),
                    models.UniqueConstraint(fields=("batch", "item"), name="placement_item_once_per_batch"),
                ],
            },
        ),
        migrations.AddField(
            model_name="output",
            name="prompt",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="outputs", to="studies.prompt"
            ),
        ),
        migrations.CreateModel(
            name="Expected",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("low", models.FloatField(blank=True, null=True)),
                ("high", models.FloatField(blank=True, null=True)),
                ("explanation", models.TextField(blank=True)),
                (
                    "exposure",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="studies.exposure",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="expected", to="studies.item"
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.question"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("item", "question"), name="expected_once_per_item_and_question"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("exposure", None), ("high__gte", models.F("low")), ("low__isnull", False)),
                            models.Q(("exposure__isnull", False), ("high", None), ("low", None)),
                            _connector="OR",
                        ),
                        name="expected_is_a_range_or_an_exposure",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Section",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField()),
                ("protocol", models.CharField(choices=studies.protocols.choices, max_length=20)),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("live", "live: counts"),
                            ("training", "training: teaches, never in an estimate"),
                            ("screening", "screening: who may take part"),
                        ],
                        default="live",
                        max_length=9,
                    ),
                ),
                (
                    "m",
                    models.PositiveSmallIntegerField(
                        default=5,
                        help_text="Exposure samples: prompts shown in this section. 0 where it shows none (survey).",
                        validators=[django.core.validators.MaxValueValidator(100)],
                    ),
                ),
                ("settings", models.JSONField(blank=True, default=dict)),
                (
                    "reuses",
                    models.ForeignKey(
                        blank=True,
                        help_text="Show the first m items of that section again instead of new ones.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reused_by",
                        to="studies.section",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("reuses", None), models.Q(("reuses", models.F("id")), _negated=True), _connector="OR"
                        ),
                        name="section_does_not_reuse_itself",
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="question",
            name="section",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="questions", to="studies.section"
            ),
        ),
        migrations.AddField(
            model_name="item",
            name="section",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="items", to="studies.section"
            ),
        ),
        migrations.CreateModel(
            name="SectionArm",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "arm",
                    models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.arm"),
                ),
                (
                    "section",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="section_arms", to="studies.section"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "constraints": [models.UniqueConstraint(fields=("section", "arm"), name="section_arm_once")],
            },
        ),
        migrations.AddField(
            model_name="section",
            name="arms",
            field=models.ManyToManyField(
                blank=True,
                help_text="Only these arms see it; empty: all.",
                related_name="+",
                through="studies.SectionArm",
                to="studies.arm",
            ),
        ),
        migrations.CreateModel(
            name="Study",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("title", models.CharField(help_text="For researchers; annotators never see it.", max_length=200)),
                (
                    "public_title",
                    models.CharField(
                        blank=True,
                        help_text="What annotators read on top of each page. It should tell nothing of the hypotheses.",
                        max_length=200,
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        default="en", help_text="Language of the annotators' pages, such as en or pt-BR.", max_length=12
                    ),
                ),
                (
                    "seed",
                    models.PositiveBigIntegerField(
                        default=studies.models.new_seed,
                        help_text="Every random draw of the study follows from it.",
                        validators=[django.core.validators.MaxValueValidator(4611686018427387904)],
                    ),
                ),
                (
                    "keeps_origin_out",
                    models.BooleanField(
                        default=True,
                        help_text="Has no effect on a study that is no clone.",
                        verbose_name="keep out people of the study it was cloned from",
                    ),
                ),
                (
                    "exclusion_group",
                    models.CharField(
                        blank=True,
                        help_text="Who took part in a study of this group cannot take part in another of it.",
                        max_length=50,
                    ),
                ),
                (
                    "purpose",
                    models.TextField(
                        blank=True, help_text="One or two sentences: what the annotator will do. Markdown."
                    ),
                ),
                (
                    "instructions",
                    models.TextField(blank=True, help_text="A page of its own before the first text. Markdown."),
                ),
                ("consent", models.TextField(blank=True, help_text="What the annotator agrees to. Markdown.")),
                ("debriefing", models.TextField(blank=True, help_text="Shown after the last page. Markdown.")),
                ("institution", models.CharField(blank=True, max_length=200)),
                (
                    "approval_number",
                    models.CharField(
                        blank=True, help_text="Of the ethics board, as consent forms name it.", max_length=100
                    ),
                ),
                (
                    "contact",
                    models.CharField(
                        blank=True, help_text="Whom annotators may write to. On every page.", max_length=200
                    ),
                ),
                ("retention", models.CharField(blank=True, help_text="What is kept, and how long.", max_length=300)),
                ("content_warning", models.CharField(blank=True, max_length=300)),
                (
                    "preparation",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        editable=False,
                        help_text="How the stimuli were prepared (studies.stimuli.Preparation).",
                    ),
                ),
                (
                    "batches_per_annotator",
                    models.PositiveSmallIntegerField(
                        default=1, validators=[django.core.validators.MinValueValidator(1)]
                    ),
                ),
                (
                    "annotators_per_batch",
                    models.PositiveSmallIntegerField(
                        default=1,
                        help_text="How many annotators are given the same batch.",
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "coverage",
                    models.CharField(
                        choices=[
                            ("balanced", "balanced: every prompt shown equally often"),
                            ("independent", "independent: each batch a fresh random sample"),
                        ],
                        default="balanced",
                        max_length=12,
                    ),
                ),
                (
                    "section_order",
                    models.CharField(
                        choices=[
                            ("fixed", "as listed"),
                            ("counterbalanced", "random per annotator (a section stays after the one it reuses)"),
                        ],
                        default="fixed",
                        max_length=16,
                    ),
                ),
                (
                    "target_kind",
                    models.CharField(
                        choices=[
                            ("submitted", "n annotators who submitted"),
                            ("kept", "n annotators kept by the outcome-blind rules"),
                        ],
                        default="submitted",
                        max_length=10,
                    ),
                ),
                ("target_n", models.PositiveIntegerField(blank=True, null=True, verbose_name="target n")),
                (
                    "target_cap",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Never more places than this, whoever is excluded. Empty: 1.5 times the target.",
                        null=True,
                    ),
                ),
                ("replaces_excluded", models.BooleanField(default=False, verbose_name="excluded people are replaced")),
                ("stopping_rule", models.JSONField(blank=True, default=dict, editable=False)),
                ("currency", models.CharField(default="USD", max_length=3)),
                (
                    "reward",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        help_text="For one batch.",
                        max_digits=7,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "minutes",
                    models.PositiveSmallIntegerField(
                        blank=True, help_text="For one batch.", null=True, verbose_name="declared minutes"
                    ),
                ),
                (
                    "wage_per_hour",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        max_digits=8,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                        verbose_name="wage aimed at, per hour",
                    ),
                ),
                (
                    "words_per_minute",
                    models.PositiveSmallIntegerField(
                        default=240,
                        validators=[
                            django.core.validators.MinValueValidator(50),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                        verbose_name="reading speed, words per minute",
                    ),
                ),
                (
                    "withdrawal_blanks_ratings",
                    models.BooleanField(
                        default=False,
                        help_text="Otherwise ratings stay, without any identity.",
                        verbose_name="withdrawal deletes ratings too",
                    ),
                ),
                (
                    "withdrawal_until",
                    models.DateField(blank=True, help_text="Last day on which an annotator may withdraw.", null=True),
                ),
                (
                    "erase_after_days",
                    models.PositiveSmallIntegerField(
                        default=90,
                        help_text="Days after closing when panel ids are erased, if payment did not erase them earlier.",
                    ),
                ),
                (
                    "start_window_seconds",
                    models.PositiveIntegerField(default=600, validators=[django.core.validators.MinValueValidator(60)]),
                ),
                (
                    "idle_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="A place goes back after this long without an answer. Empty: the longer of 30 minutes and 3 times the declared minutes.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(60)],
                    ),
                ),
                (
                    "grace_seconds",
                    models.PositiveIntegerField(
                        default=7200, help_text="After closing, those inside may finish for this long."
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("launching", "Launching"),
                            ("launched", "Launched"),
                            ("paused", "Paused"),
                            ("closing", "Closing"),
                            ("closed", "Closed"),
                        ],
                        default="draft",
                        editable=False,
                        max_length=9,
                    ),
                ),
                (
                    "open_to",
                    models.PositiveIntegerField(
                        default=0, editable=False, help_text="Batches with a lower number may be claimed."
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(
                        default=0, editable=False, help_text="Counts saves; a stale form is refused."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("launched_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("closing_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("closed_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("unblinded_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "clone_of",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="clones",
                        to="studies.study",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="owned_studies",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "studies",
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("closed_at", None),
                                ("closing_at", None),
                                ("launched_at", None),
                                ("state__in", ["draft", "launching"]),
                            ),
                            models.Q(
                                ("closed_at", None),
                                ("closing_at", None),
                                ("launched_at__isnull", False),
                                ("state__in", ["launched", "paused"]),
                            ),
                            models.Q(
                                ("closed_at", None),
                                ("closing_at__gte", models.F("launched_at")),
                                ("launched_at__isnull", False),
                                ("state", "closing"),
                            ),
                            models.Q(
                                ("closed_at__gte", models.F("closing_at")),
                                ("closing_at__gte", models.F("launched_at")),
                                ("launched_at__isnull", False),
                                ("state", "closed"),
                            ),
                            _connector="OR",
                        ),
                        name="study_state_agrees_with_its_times",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("annotators_per_batch__gte", 1), ("batches_per_annotator__gte", 1)),
                        name="study_gives_at_least_one_batch",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("target_cap", None),
                            ("target_n", None),
                            ("target_cap__gte", models.F("target_n")),
                            _connector="OR",
                        ),
                        name="study_cap_is_at_least_its_target",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="section",
            name="study",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="sections", to="studies.study"
            ),
        ),
        migrations.AddField(
            model_name="prompt",
            name="study",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="prompts", to="studies.study"
            ),
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("code", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("kind", models.CharField(max_length=50)),
                ("arguments", models.JSONField(blank=True, default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("running", "Running"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="waiting",
                        max_length=9,
                    ),
                ),
                ("doing", models.CharField(blank=True, max_length=200)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("holder", models.CharField(blank=True, max_length=64)),
                ("request_token", models.CharField(blank=True, max_length=64, null=True)),
                ("result", models.JSONField(blank=True, null=True)),
                ("error", models.TextField(blank=True)),
                ("is_cancel_wanted", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("ended_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="studies.study",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [models.Index(fields=["state", "leased_until"], name="job_to_run")],
                "constraints": [
                    models.UniqueConstraint(fields=("request_token",), name="job_request_token_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("leased_until__isnull", False),
                                ("state", "running"),
                                models.Q(("holder", ""), _negated=True),
                            ),
                            models.Q(("state", "running"), _negated=True),
                            _connector="OR",
                        ),
                        name="job_runs_under_a_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("state__in", ["waiting", "running"])),
                            ("ended_at__isnull", False),
                            _connector="OR",
                        ),
                        name="job_ended_has_a_time",
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="item",
            name="study",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="items", to="studies.study"
            ),
        ),
        migrations.CreateModel(
            name="ExclusionRule",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveSmallIntegerField(default=1)),
                ("rule", models.CharField(choices=studies.rules.choices, max_length=40)),
                ("settings", models.JSONField(blank=True, default=dict)),
                (
                    "role",
                    models.CharField(
                        choices=[("primary", "applied to the headline"), ("sensitivity", "shown beside it")],
                        default="primary",
                        max_length=11,
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="exclusion_rules", to="studies.study"
                    ),
                ),
            ],
            options={
                "ordering": ["position", "rule"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("study", "rule"), name="exclusion_rule_once_per_study")
                ],
            },
        ),
        migrations.AddField(
            model_name="design",
            name="study",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="designs", to="studies.study"
            ),
        ),
        migrations.AddField(
            model_name="batch",
            name="study",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="batches", to="studies.study"
            ),
        ),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("assignment_code", models.CharField(blank=True, max_length=32)),
                ("verb", models.CharField(max_length=50)),
                ("data", models.JSONField(blank=True, default=dict)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="audit_events",
                        to="studies.study",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "base_manager_name": "objects",
            },
        ),
        migrations.AddField(
            model_name="arm",
            name="study",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="arms", to="studies.study"
            ),
        ),
        migrations.CreateModel(
            name="StudyMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("owner", "owner: everything, members too"),
                            ("editor", "editor: define, launch, analyse"),
                            ("viewer", "viewer: look"),
                            ("coder", "coder: code explanations, blind"),
                        ],
                        max_length=6,
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="members", to="studies.study"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("study", "user"), name="member_once_per_study")],
            },
        ),
        migrations.CreateModel(
            name="System",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="Annotators never see it.", max_length=100)),
                ("is_human", models.BooleanField(default=False, verbose_name="human author")),
                ("is_reference", models.BooleanField(default=False, verbose_name="reference")),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="systems", to="studies.study"
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("study", "name"), name="system_name_once_per_study"),
                    models.CheckConstraint(condition=models.Q(("name", ""), _negated=True), name="system_has_a_name"),
                ],
            },
        ),
        migrations.AddField(
            model_name="question",
            name="x",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="studies.system",
            ),
        ),
        migrations.AddField(
            model_name="question",
            name="y",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="studies.system",
            ),
        ),
        migrations.AddField(
            model_name="output",
            name="system",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="outputs", to="studies.system"
            ),
        ),
        migrations.CreateModel(
            name="Contrast",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("estimand", models.CharField(blank=True, help_text="Empty: the section's own.", max_length=40)),
                (
                    "x_condition",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("none", "None"),
                            ("instructions", "Instructions"),
                            ("examples", "Examples"),
                            ("comparison", "Comparison"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "y_condition",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("none", "None"),
                            ("instructions", "Instructions"),
                            ("examples", "Examples"),
                            ("comparison", "Comparison"),
                        ],
                        max_length=12,
                    ),
                ),
                ("criterion", models.CharField(blank=True, max_length=50)),
                (
                    "role",
                    models.CharField(
                        choices=[("primary", "Primary"), ("secondary", "Secondary"), ("exploratory", "Exploratory")],
                        default="primary",
                        max_length=11,
                    ),
                ),
                (
                    "family",
                    models.CharField(
                        blank=True, help_text="Corrected together; empty: all of its role.", max_length=50
                    ),
                ),
                (
                    "expected",
                    models.CharField(
                        blank=True,
                        choices=[("", "nothing expected"), (">", "x > y"), ("<", "x < y"), ("~", "x ~ y (equivalent)")],
                        max_length=1,
                    ),
                ),
                (
                    "margin",
                    models.FloatField(
                        blank=True,
                        help_text="Differences smaller than this are equivalent, on the estimand's scale (.05 is 5 points of a probability).",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "level",
                    models.FloatField(
                        default=0.05,
                        validators=[
                            django.core.validators.MinValueValidator(0.0001),
                            django.core.validators.MaxValueValidator(0.5),
                        ],
                    ),
                ),
                (
                    "section",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: every live section that can.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="studies.section",
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="contrasts", to="studies.study"
                    ),
                ),
                (
                    "x",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="studies.system",
                    ),
                ),
                (
                    "y",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="studies.system",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "base_manager_name": "objects",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("x__isnull", False),
                                ("x_condition", ""),
                                ("y__isnull", False),
                                ("y_condition", ""),
                                models.Q(("x", models.F("y")), _negated=True),
                            ),
                            models.Q(
                                ("x", None),
                                ("y", None),
                                models.Q(("x_condition", ""), _negated=True),
                                models.Q(("y_condition", ""), _negated=True),
                                models.Q(("x_condition", models.F("y_condition")), _negated=True),
                            ),
                            models.Q(("x", None), ("x_condition", ""), ("y", None), ("y_condition", "")),
                            _connector="OR",
                        ),
                        name="contrast_is_of_two_systems_or_two_conditions_or_none",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("expected__in", ["", "<", ">", "~"])), name="contrast_expected_is_a_sign"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("margin", None), ("margin__gt", 0), _connector="OR"),
                        name="contrast_margin_is_positive",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("level__gt", 0), ("level__lt", 1)), name="contrast_level_is_a_probability"
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.comparison.Least("x", "y"),
                        django.db.models.functions.comparison.Greatest("x", "y"),
                        models.F("study"),
                        models.F("section"),
                        models.F("estimand"),
                        models.F("criterion"),
                        condition=models.Q(("section__isnull", False), ("x__isnull", False)),
                        name="contrast_once_per_section_also_reversed",
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.comparison.Least("x", "y"),
                        django.db.models.functions.comparison.Greatest("x", "y"),
                        models.F("study"),
                        models.F("estimand"),
                        models.F("criterion"),
                        condition=models.Q(("section", None), ("x__isnull", False)),
                        name="contrast_once_per_study_also_reversed",
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.comparison.Least("x_condition", "y_condition"),
                        django.db.models.functions.comparison.Greatest("x_condition", "y_condition"),
                        models.F("study"),
                        models.F("section"),
                        models.F("estimand"),
                        models.F("criterion"),
                        condition=models.Q(("section__isnull", False), ("x", None)),
                        name="contrast_of_conditions_once_per_section",
                    ),
                    models.UniqueConstraint(
                        django.db.models.functions.comparison.Least("x_condition", "y_condition"),
                        django.db.models.functions.comparison.Greatest("x_condition", "y_condition"),
                        models.F("study"),
                        models.F("estimand"),
                        models.F("criterion"),
                        condition=models.Q(("section", None), ("x", None)),
                        name="contrast_of_conditions_once_per_study",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ArmSystem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "arm",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="arm_systems", to="studies.arm"
                    ),
                ),
                (
                    "system",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.system"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "constraints": [models.UniqueConstraint(fields=("arm", "system"), name="arm_system_once")],
            },
        ),
        migrations.AddField(
            model_name="arm",
            name="systems",
            field=models.ManyToManyField(
                blank=True, related_name="+", through="studies.ArmSystem", to="studies.system"
            ),
        ),
        migrations.AddConstraint(
            model_name="section",
            constraint=models.UniqueConstraint(fields=("study", "position"), name="section_position_once_per_study"),
        ),
        migrations.AddConstraint(
            model_name="prompt",
            constraint=models.UniqueConstraint(fields=("study", "key"), name="prompt_key_once_per_study"),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(fields=("section", "number"), name="item_number_once_per_section"),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(
                fields=("section", "content"), name="item_is_the_same_thing_judged_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="design",
            constraint=models.UniqueConstraint(fields=("study", "version"), name="design_version_once_per_study"),
        ),
        migrations.AddIndex(
            model_name="batch",
            index=models.Index(
                condition=models.Q(("claimed__lt", models.F("wanted"))),
                fields=["study", "claimed", "number"],
                name="batch_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="batch",
            constraint=models.UniqueConstraint(fields=("study", "number"), name="batch_number_once_per_study"),
        ),
        migrations.AddConstraint(
            model_name="batch",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key", ""), _negated=True), fields=("study", "key"), name="batch_key_once_per_study"
            ),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.UniqueConstraint(
                fields=("section", "position"), name="question_position_once_per_section"
            ),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.UniqueConstraint(fields=("section", "key"), name="question_key_once_per_section"),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("x", None), ("y", None)),
                    models.Q(("x__isnull", False), ("y__isnull", False), models.Q(("x", models.F("y")), _negated=True)),
                    _connector="OR",
                ),
                name="question_has_both_x_and_y_or_neither",
            ),
        ),
        migrations.AddConstraint(
            model_name="output",
            constraint=models.UniqueConstraint(
                fields=("system", "prompt", "sample"), name="output_sample_once_per_system_and_prompt"
            ),
        ),
        migrations.AddConstraint(
            model_name="arm",
            constraint=models.UniqueConstraint(fields=("study", "name"), name="arm_name_once_per_study"),
        ),
    ]
