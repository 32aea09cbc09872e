"""Running jobs have parts that all workers may compute."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0017_pilot_files"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("arguments", models.JSONField()),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("leased_until", models.DateTimeField(blank=True, editable=False, null=True)),
                ("holder", models.CharField(blank=True, max_length=64)),
                ("is_done", models.BooleanField(default=False)),
                ("result", models.JSONField(blank=True, null=True)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="parts", to="studies.job"
                    ),
                ),
            ],
            options={
                "ordering": ["job", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("job", "number"), name="job_part_once_per_number"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("holder", ""), ("leased_until", None)),
                            models.Q(
                                models.Q(("holder", ""), _negated=True),
                                ("is_done", False),
                                ("leased_until__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="job_part_is_held_under_a_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("is_done", True), ("result__isnull", True), _connector="OR"),
                        name="job_part_has_a_result_when_it_is_done",
                    ),
                ],
            },
        ),
    ]
