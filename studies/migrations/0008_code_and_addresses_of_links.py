from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0007_events_are_recorded_once"),
    ]

    operations = [
        migrations.AddField(
            model_name="study",
            name="shows_link_addresses",
            field=models.BooleanField(
                default=False,
                help_text="Links in outputs in Markdown are text. Their addresses, which may name the system, are shown only with this setting.",
                verbose_name="show the addresses of links",
            ),
        ),
        migrations.AlterField(
            model_name="output",
            name="format",
            field=models.CharField(
                choices=[
                    ("plain", "plain text"),
                    ("markdown", "Markdown"),
                    ("code", "code, in letters of one width, with its line breaks"),
                    ("turns", "turns of a dialogue, one per line, as “speaker: text”"),
                ],
                default="plain",
                max_length=8,
            ),
        ),
    ]
