"""What answers to test questions say about annotators is stored, and PostgreSQL keeps it as it was computed."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models.functions import Now

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0002_guards"),
        ("studies", "0011_test_questions_have_known_answers"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            name="AnnotatorScreening",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "origin",
                    models.CharField(
                        choices=[("live", "Live"), ("robot", "Robot"), ("imported", "Imported"), ("test", "Test")],
                        max_length=8,
                    ),
                ),
                ("n_assignments", models.PositiveIntegerField()),
                ("n_answers", models.PositiveIntegerField()),
                ("has_agreement", models.BooleanField()),
                ("rule_settings", models.JSONField()),
                ("result", models.JSONField()),
                ("at", models.DateTimeField(db_default=Now())),
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
                        on_delete=django.db.models.deletion.PROTECT, related_name="screenings", to="studies.study"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "indexes": [models.Index(fields=["study", "origin", "-id"], name="screening_latest_of_study")],
            },
        ),
        append_only_operation("analysis_annotatorscreening"),
    ]
