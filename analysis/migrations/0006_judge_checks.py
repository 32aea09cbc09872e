"""Checks of judges: their drawn samples and results. PostgreSQL keeps all three tables as they were stored."""

import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import analysis.models
from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0005_metrics_are_compared_with_people"),
        ("studies", "0014_sections_may_be_tests_before_the_work"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="JudgeCheck",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("threshold", models.FloatField()),
                ("certainty_ratio", models.FloatField()),
                ("n_development", models.PositiveIntegerField()),
                ("n_test", models.PositiveIntegerField()),
                ("n_outputs", models.PositiveIntegerField()),
                (
                    "people_per_output",
                    models.PositiveSmallIntegerField(validators=[django.core.validators.MaxValueValidator(32767)]),
                ),
                ("seed", models.BigIntegerField()),
                (
                    "min_agreement",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                        verbose_name="lowest agreement",
                    ),
                ),
                (
                    "min_true_positive_rate",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                        verbose_name="lowest true-positive rate",
                    ),
                ),
                (
                    "min_true_negative_rate",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1),
                        ],
                        verbose_name="lowest true-negative rate",
                    ),
                ),
                (
                    "needs_alternative_test",
                    models.BooleanField(verbose_name="must pass the alternative annotator test"),
                ),
                ("epsilon", models.FloatField()),
                ("badge_key", models.CharField(default=analysis.models.new_badge_key, max_length=40)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="checks", to="analysis.metric"
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.question"
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="judge_checks", to="studies.study"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="JudgeCheckOutput",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "part",
                    models.CharField(
                        choices=[
                            ("development", "development: it may be used for changing the judge"),
                            ("test", "test: it decides"),
                        ],
                        max_length=11,
                    ),
                ),
                ("probability", models.FloatField()),
                (
                    "judge_check",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="outputs", to="analysis.judgecheck"
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
            name="JudgeCheckResult",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("fingerprint", models.CharField(max_length=64)),
                ("guideline_sha256", models.CharField(max_length=64)),
                (
                    "verdict",
                    models.CharField(
                        choices=[("good", "good enough"), ("not_good", "not good enough"), ("open", "open")],
                        max_length=8,
                    ),
                ),
                ("n_labels", models.PositiveIntegerField()),
                ("result", models.JSONField()),
                ("code_version", models.CharField(max_length=80)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
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
                    "judge",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="analysis.metric"
                    ),
                ),
                (
                    "judge_check",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="results", to="analysis.judgecheck"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
            },
        ),
        migrations.AddConstraint(
            model_name="judgecheck",
            constraint=models.UniqueConstraint(fields=("badge_key",), name="judge_check_has_its_own_badge"),
        ),
        migrations.AddConstraint(
            model_name="judgecheck",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "n_outputs__gte",
                        django.db.models.expressions.CombinedExpression(
                            models.F("n_test"), "+", models.F("n_development")
                        ),
                    ),
                    ("n_test__gte", 1),
                ),
                name="judge_check_sample_fits_its_outputs",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheck",
            constraint=models.CheckConstraint(
                condition=models.Q(("certainty_ratio__gte", 1)), name="judge_check_prefers_unsure_outputs"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheck",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("min_agreement", None),
                        models.Q(("min_agreement__gte", 0), ("min_agreement__lt", 1)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("min_true_positive_rate", None),
                        models.Q(("min_true_positive_rate__gte", 0), ("min_true_positive_rate__lt", 1)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("min_true_negative_rate", None),
                        models.Q(("min_true_negative_rate__gte", 0), ("min_true_negative_rate__lt", 1)),
                        _connector="OR",
                    ),
                    ("epsilon__gte", 0),
                    ("epsilon__lte", 1),
                ),
                name="judge_check_minimums_are_shares",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheck",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("needs_alternative_test", True),
                    ("min_agreement__isnull", False),
                    ("min_true_positive_rate__isnull", False),
                    ("min_true_negative_rate__isnull", False),
                    _connector="OR",
                ),
                name="judge_check_declares_what_is_enough",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheckoutput",
            constraint=models.UniqueConstraint(
                fields=("judge_check", "output"), name="judge_check_draws_an_output_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheckoutput",
            constraint=models.CheckConstraint(
                condition=models.Q(("part__in", ["development", "test"])), name="judge_check_part_is_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheckoutput",
            constraint=models.CheckConstraint(
                condition=models.Q(("probability__gt", 0), ("probability__lte", 1)),
                name="judge_check_probability_is_one",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheckresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["good", "not_good", "open"])), name="judge_check_verdict_is_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgecheckresult",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("fingerprint", ""), _negated=True), models.Q(("guideline_sha256", ""), _negated=True)
                ),
                name="judge_check_result_says_what_it_is_about",
            ),
        ),
        append_only_operation("analysis_judgecheck"),
        append_only_operation("analysis_judgecheckoutput"),
        append_only_operation("analysis_judgecheckresult"),
    ]
