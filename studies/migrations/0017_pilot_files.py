"""Files of answers as pilots of plans. PostgreSQL refuses to change them, and deletes them only with their draft."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation

OF_DRAFTS = """
  IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM studies_study s WHERE s.id = OLD.study_id AND s.state = 'draft') THEN
    RETURN OLD;
  END IF;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0016_plans_belong_to_their_study"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="PilotFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sha256", models.CharField(max_length=64)),
                ("name", models.CharField(max_length=200)),
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
                        on_delete=django.db.models.deletion.PROTECT, related_name="pilot_files", to="studies.study"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("study", "sha256"), name="pilot_file_once_per_study"),
                    models.CheckConstraint(
                        condition=models.Q(("sha256", ""), _negated=True), name="pilot_file_has_a_hash"
                    ),
                ],
            },
        ),
        append_only_operation("studies_pilotfile", OF_DRAFTS),
    ]
