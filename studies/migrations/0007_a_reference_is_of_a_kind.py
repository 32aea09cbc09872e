from django.db import migrations, models


def kinds(apps, schema_editor):
    """Every reference so far was the ordinary one."""
    if schema_editor.connection.vendor == "postgresql":
        # The trigger of launched studies' systems lets through what says that it amends.
        schema_editor.execute("SELECT set_config('heval.amending', 'on', true)")
    apps.get_model("studies", "System").objects.filter(is_reference=True).update(reference="reference")
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("SELECT set_config('heval.amending', '', true)")


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0006_a_stopping_rule_is_of_its_section"),
    ]

    operations = [
        migrations.AddField(
            model_name="system",
            name="reference",
            field=models.CharField(
                blank=True,
                choices=[
                    ("reference", "reference"),
                    ("maximal", "maximal reference"),
                    ("minimal", "minimal reference"),
                ],
                default="",
                help_text="What others are measured against; maximal and minimal: the best and the worst that an output can be, planted "
                "among those that are rated.",
                max_length=9,
            ),
            preserve_default=False,
        ),
        migrations.RunPython(kinds, migrations.RunPython.noop),
        migrations.RemoveField(model_name="system", name="is_reference"),
    ]
