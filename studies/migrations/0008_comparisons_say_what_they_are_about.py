"""Planned comparisons say what their result is about. Those of earlier designs declare nothing."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0007_studies_know_how_they_are_drawn"),
    ]

    operations = [
        migrations.AddField(
            model_name="contrast",
            name="population",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "not declared"),
                    ("people_and_prompts", "People and prompts like these"),
                    ("people", "People like these, exactly these prompts"),
                ],
                help_text="What the result is about: other people and other prompts like these, or other people with exactly these prompts.",
                max_length=18,
            ),
        ),
        migrations.AddConstraint(
            model_name="contrast",
            constraint=models.CheckConstraint(
                condition=models.Q(("population__in", ["", "people_and_prompts", "people"])),
                name="contrast_population_is_a_choice",
            ),
        ),
    ]
