"""Studies know which answers count. What was launched before counts as it did then."""

from django.db import migrations, models

HELP = (
    "Which answers count: 1, a stopping rule counts every claim with the answers that it had; 2, a claim that the rules exclude "
    "when the stopping rule passes it does not count, and no answer about an unseen image does."
)


def count_in_drafts_in_the_new_way(apps, schema_editor):
    apps.get_model("studies", "Study").objects.filter(state="draft").update(counting_version=2)


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0020_prompts_may_belong_to_a_group"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="counting_version",
            field=models.PositiveSmallIntegerField(default=1, editable=False, help_text=HELP),
        ),
        migrations.AlterField(
            model_name="study",
            name="counting_version",
            field=models.PositiveSmallIntegerField(default=2, editable=False, help_text=HELP),
        ),
        migrations.RunPython(count_in_drafts_in_the_new_way, migrations.RunPython.noop, elidable=True),
    ]
