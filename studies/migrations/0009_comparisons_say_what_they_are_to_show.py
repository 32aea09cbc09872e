"""Planned comparisons say what they are to show. Those of earlier designs ask for a difference."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0008_comparisons_say_what_they_are_about"),
    ]

    operations = [
        migrations.AddField(
            model_name="contrast",
            name="hypothesis",
            field=models.CharField(
                choices=[
                    ("difference", "x and y differ"),
                    ("noninferiority", "x not worse than y"),
                    ("superiority_by_margin", "x better by margin"),
                ],
                default="difference",
                help_text="What the comparison is to show. The last two need a margin and two systems.",
                max_length=21,
            ),
        ),
        migrations.AlterField(
            model_name="contrast",
            name="margin",
            field=models.FloatField(
                blank=True,
                help_text="Differences smaller than this do not matter, on the estimand's scale (.05 is 5 points of a probability).",
                null=True,
                validators=[django.core.validators.MinValueValidator(0)],
            ),
        ),
        migrations.AddConstraint(
            model_name="contrast",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("hypothesis", "difference"),
                    models.Q(
                        ("hypothesis__in", ["noninferiority", "superiority_by_margin"]),
                        ("margin__isnull", False),
                        ("x__isnull", False),
                        models.Q(("expected", "~"), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="contrast_hypothesis_has_what_it_needs",
            ),
        ),
    ]
