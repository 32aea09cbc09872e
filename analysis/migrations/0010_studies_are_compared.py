"""Comparisons of studies. PostgreSQL keeps each one as it was computed."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0009_researchers_answer_questions_of_forms"),
        ("studies", "0027_studies_name_the_template_of_their_paper"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StudiesComparison",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("parameters", models.JSONField(default=dict)),
                ("result", models.JSONField()),
                ("result_sha256", models.CharField(max_length=64)),
                ("figure_svg", models.TextField()),
                ("figure_pdf", models.BinaryField()),
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
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="studies_comparisons",
                        to="studies.study",
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("study", "number"), name="studies_comparison_number_once_per_study")
                ],
            },
        ),
        append_only_operation("analysis_studiescomparison"),
    ]
