"""How metrics and judges agree with people is stored, and PostgreSQL keeps it as it was computed."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0004_metrics_and_judges"),
        ("studies", "0014_sections_may_be_tests_before_the_work"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="MetricsComparison",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("metrics", models.JSONField(default=list)),
                ("answers_state", models.JSONField(default=dict)),
                ("n_answers", models.PositiveIntegerField()),
                ("result", models.JSONField()),
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
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="studies.question"
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="metrics_comparisons",
                        to="studies.study",
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "indexes": [models.Index(fields=["study", "question", "-id"], name="comparison_latest_of_question")],
            },
        ),
        append_only_operation("analysis_metricscomparison"),
    ]
