import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "__first__"),
        ("studies", "0001_a_study_has_a_design"),
    ]

    operations = [
        migrations.CreateModel(
            name="AnalysisRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("parameters", models.JSONField(default=dict)),
                ("responses_n", models.PositiveIntegerField()),
                ("responses_sha256", models.CharField(max_length=64)),
                ("design_sha256s", models.JSONField(default=list)),
                ("code_version", models.CharField(max_length=80)),
                ("seed", models.CharField(max_length=64)),
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
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="analyses", to="studies.study"
                    ),
                ),
            ],
            options={
                "ordering": ["-number"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("study", "number"), name="analysis_number_once_per_study")
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(help_text="What uses it.", max_length=100)),
                ("hash", models.CharField(editable=False, max_length=64)),
                (
                    "scope",
                    models.CharField(
                        choices=[("read", "read"), ("write", "read and write")], default="read", max_length=5
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "study",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only this study; empty: all of the user's.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to="studies.study",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("hash",), name="api_token_hash_once"),
                    models.CheckConstraint(condition=models.Q(("hash", ""), _negated=True), name="api_token_is_hashed"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Figure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                ("svg", models.TextField()),
                ("pdf", models.BinaryField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="figures", to="analysis.analysisrun"
                    ),
                ),
            ],
            options={
                "base_manager_name": "objects",
                "constraints": [models.UniqueConstraint(fields=("run", "name"), name="figure_name_once_per_analysis")],
            },
        ),
    ]
