"""What heval reads from studies as pilots of plans is stored. PostgreSQL refuses to change it."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0018_parts_of_jobs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="StudyPilot",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(max_length=64)),
                ("comparison", models.CharField(max_length=500)),
                ("estimate", models.JSONField()),
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
                        on_delete=django.db.models.deletion.PROTECT, related_name="pilot_estimates", to="studies.study"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("study", "sha256"), name="study_pilot_once_per_study_and_answers"),
                    models.CheckConstraint(
                        condition=models.Q(("sha256", ""), _negated=True), name="study_pilot_has_a_hash"
                    ),
                ],
            },
        ),
        append_only_operation("studies_studypilot"),
    ]
