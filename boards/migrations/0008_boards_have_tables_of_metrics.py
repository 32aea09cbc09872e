"""Tables of metrics beside people. PostgreSQL keeps them as they were computed."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("boards", "0007_samples_are_the_only_source"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BoardMetricTable",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("names", models.JSONField(default=list)),
                ("result", models.JSONField()),
                ("result_sha256", models.CharField(max_length=64)),
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
                    "snapshot",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="metric_tables",
                        to="boards.boardsnapshot",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "base_manager_name": "objects",
            },
        ),
        append_only_operation("boards_boardmetrictable"),
    ]
