"""Studies know how their batches and pages are drawn. What was launched before is drawn as it was then."""

from django.db import migrations, models


def draw_drafts_in_the_new_way(apps, schema_editor):
    apps.get_model("studies", "Study").objects.filter(state="draft").update(drawing_version=2)


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0006_reports_of_rehearsals_say_what_they_hold"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="drawing_version",
            field=models.PositiveSmallIntegerField(
                default=1,
                editable=False,
                help_text="How batches and the order of pages are drawn: 1, each item by itself; 2, balanced within each person.",
            ),
        ),
        migrations.AlterField(
            model_name="study",
            name="drawing_version",
            field=models.PositiveSmallIntegerField(
                default=2,
                editable=False,
                help_text="How batches and the order of pages are drawn: 1, each item by itself; 2, balanced within each person.",
            ),
        ),
        migrations.RunPython(draw_drafts_in_the_new_way, migrations.RunPython.noop, elidable=True),
    ]
