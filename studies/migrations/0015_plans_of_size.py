"""Plans of the size of a study. PostgreSQL keeps them as they were stored."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0014_sections_may_be_tests_before_the_work"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SizePlan",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("inputs", models.JSONField()),
                ("fingerprint", models.CharField(max_length=64)),
                ("seed", models.BigIntegerField()),
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
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="size_plans", to="studies.study"
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "base_manager_name": "objects",
            },
        ),
        migrations.AddField(
            model_name="study",
            name="size_plan",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="studies.sizeplan",
            ),
        ),
        migrations.AddConstraint(
            model_name="sizeplan",
            constraint=models.UniqueConstraint(
                fields=("study", "fingerprint"), name="size_plan_once_per_study_and_inputs"
            ),
        ),
        migrations.AddConstraint(
            model_name="sizeplan",
            constraint=models.CheckConstraint(
                condition=models.Q(("fingerprint", ""), _negated=True), name="size_plan_has_a_fingerprint"
            ),
        ),
        append_only_operation("studies_sizeplan"),
    ]
