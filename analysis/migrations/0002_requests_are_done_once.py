"""A POST with an Idempotency-Key is kept for a day, so that its repetition gets the first answer."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0001_analyses_metrics_and_codings"),
        ("studies", "0003_boards_may_join_rounds"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotentRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("caller", models.CharField(max_length=30)),
                ("path", models.CharField(max_length=300)),
                ("key", models.CharField(max_length=64)),
                ("body", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField(null=True)),
                ("answer", models.JSONField(null=True)),
                ("made", models.CharField(blank=True, max_length=200)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="studies.job"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("caller", "path", "key"), name="idempotent_request_once")
                ],
            },
        ),
    ]
