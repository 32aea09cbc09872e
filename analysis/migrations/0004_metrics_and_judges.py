"""Metrics and judges, and their scores for outputs and pairs. PostgreSQL keeps scores as they were given."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0003_annotators_are_screened"),
        ("studies", "0014_sections_may_be_tests_before_the_work"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Metric",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("metric", "automatic metric"), ("judge", "model as judge")], max_length=6
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "version",
                    models.CharField(
                        help_text="The version of the metric's program, or of the judge's model.", max_length=200
                    ),
                ),
                ("parameters", models.JSONField(blank=True, default=dict)),
                (
                    "family",
                    models.CharField(
                        blank=True,
                        help_text="For a judge: who made its model, so that heval can warn where a judged system has the same maker.",
                        max_length=100,
                        verbose_name="family of models",
                    ),
                ),
                ("fingerprint", models.CharField(editable=False, max_length=64)),
                ("is_lower_better", models.BooleanField(default=False, verbose_name="lower is better")),
                ("scale_low", models.FloatField(blank=True, null=True, verbose_name="lowest point of the scale")),
                ("scale_high", models.FloatField(blank=True, null=True, verbose_name="highest point of the scale")),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("built_in", "computed by heval"),
                            ("plug_in", "computed by an installed plug-in"),
                            ("upload", "uploaded file"),
                        ],
                        max_length=8,
                    ),
                ),
                ("file_sha256", models.CharField(blank=True, editable=False, max_length=64)),
                ("n_scores", models.PositiveIntegerField(default=0, editable=False)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("discarded_at", models.DateTimeField(blank=True, editable=False, null=True)),
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
                    "question",
                    models.ForeignKey(
                        blank=True,
                        help_text="The question that the scores are about. Empty: the output as a whole.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="studies.question",
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="metrics", to="studies.study"
                    ),
                ),
            ],
            options={
                "ordering": ["name", "version", "pk"],
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="MetricScore",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "run",
                    models.PositiveSmallIntegerField(
                        default=1, validators=[django.core.validators.MaxValueValidator(32767)]
                    ),
                ),
                ("value", models.FloatField()),
                (
                    "metric",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="scores", to="analysis.metric"
                    ),
                ),
                (
                    "output",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.output"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="PairScore",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "run",
                    models.PositiveSmallIntegerField(
                        default=1, validators=[django.core.validators.MaxValueValidator(32767)]
                    ),
                ),
                ("value", models.FloatField()),
                (
                    "first",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.output"
                    ),
                ),
                (
                    "metric",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="pair_scores", to="analysis.metric"
                    ),
                ),
                (
                    "second",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.output"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
            },
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.UniqueConstraint(
                condition=models.Q(("discarded_at", None)),
                fields=("study", "name", "version", "question"),
                name="metric_version_once_per_question",
            ),
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.UniqueConstraint(
                condition=models.Q(("discarded_at", None), ("question", None)),
                fields=("study", "name", "version"),
                name="metric_version_once_for_whole_outputs",
            ),
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.CheckConstraint(
                condition=models.Q(models.Q(("name", ""), _negated=True), models.Q(("version", ""), _negated=True)),
                name="metric_has_a_name_and_a_version",
            ),
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["metric", "judge"])), name="metric_is_of_a_known_kind"
            ),
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["built_in", "plug_in", "upload"])),
                name="metric_comes_from_a_known_source",
            ),
        ),
        migrations.AddConstraint(
            model_name="metric",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("scale_high", None), ("scale_low", None)),
                    models.Q(
                        ("scale_high__isnull", False),
                        ("scale_low__isnull", False),
                        ("scale_low__lt", models.F("scale_high")),
                    ),
                    _connector="OR",
                ),
                name="metric_scale_has_two_ends_or_none",
            ),
        ),
        migrations.AddConstraint(
            model_name="metricscore",
            constraint=models.UniqueConstraint(
                fields=("metric", "output", "run"), name="metric_scores_an_output_once_per_run"
            ),
        ),
        migrations.AddConstraint(
            model_name="metricscore",
            constraint=models.CheckConstraint(
                condition=models.Q(("value__gte", -1000000000000.0), ("value__lte", 1000000000000.0)),
                name="metric_score_is_finite",
            ),
        ),
        migrations.AddConstraint(
            model_name="metricscore",
            constraint=models.CheckConstraint(
                condition=models.Q(("run__gte", 1)), name="metric_run_is_numbered_from_1"
            ),
        ),
        migrations.AddConstraint(
            model_name="pairscore",
            constraint=models.UniqueConstraint(
                fields=("metric", "first", "second", "run"), name="judge_scores_a_pair_once_per_order_and_run"
            ),
        ),
        migrations.AddConstraint(
            model_name="pairscore",
            constraint=models.CheckConstraint(
                condition=models.Q(("value__gte", 0), ("value__lte", 1)), name="pair_score_is_a_share"
            ),
        ),
        migrations.AddConstraint(
            model_name="pairscore",
            constraint=models.CheckConstraint(
                condition=models.Q(("first", models.F("second")), _negated=True), name="pair_score_is_about_two_outputs"
            ),
        ),
        migrations.AddConstraint(
            model_name="pairscore",
            constraint=models.CheckConstraint(condition=models.Q(("run__gte", 1)), name="pair_run_is_numbered_from_1"),
        ),
        append_only_operation("analysis_metricscore"),
        append_only_operation("analysis_pairscore"),
    ]
