"""A prompt may belong to a group: a document, a dialogue or a topic that it shares with other prompts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("studies", "0019_answers_of_studies_as_pilots")]

    operations = [
        migrations.AddField(
            model_name="prompt",
            name="group",
            field=models.CharField(
                blank=True,
                help_text="The document, dialogue or topic of the prompt. Prompts with the same group belong together. Empty: the prompt is alone.",
                max_length=100,
            ),
        ),
    ]
