"""A study can declare how the comparisons of a family are adjusted, and which family must be shown before."""

from django.db import migrations, models

from studies.models.fields import protected_foreign_key
from studies.models.guards import frozen_design_operation


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0009_comparisons_say_what_they_are_to_show"),
    ]

    operations = [
        migrations.CreateModel(
            name="ComparisonFamily",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        help_text="As in the comparisons' field Family, or a role: primary, secondary or exploratory.",
                        max_length=50,
                    ),
                ),
                (
                    "adjustment",
                    models.CharField(
                        choices=[
                            ("bonferroni", "Bonferroni"),
                            ("holm", "Holm"),
                            ("hommel", "Hommel"),
                        ],
                        default="bonferroni",
                        max_length=10,
                    ),
                ),
                (
                    "after",
                    models.CharField(
                        blank=True,
                        help_text="The name of another family. This one is tested only if all comparisons of that family were shown.",
                        max_length=50,
                    ),
                ),
                ("study", protected_foreign_key("studies.study", "comparison_families")),
            ],
            options={
                "verbose_name": "family of comparisons",
                "verbose_name_plural": "families of comparisons",
                "ordering": ["pk"],
                "base_manager_name": "objects",
                "constraints": [
                    models.UniqueConstraint(fields=("study", "name"), name="comparison_family_once_per_study"),
                    models.CheckConstraint(
                        condition=models.Q(("name", ""), _negated=True), name="comparison_family_has_a_name"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("name", models.F("after")), _negated=True),
                        name="comparison_family_is_not_after_itself",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("adjustment__in", ["bonferroni", "holm", "hommel"])),
                        name="comparison_family_adjustment_is_a_choice",
                    ),
                ],
            },
        ),
        frozen_design_operation("studies_comparisonfamily"),
    ]
