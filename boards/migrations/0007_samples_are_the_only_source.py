"""Samples replace the list of prompts of a board. PostgreSQL keeps them as they were drawn."""

import django.db.models.deletion
from django.db import migrations, models

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [("boards", "0006_first_samples")]
    operations = [
        migrations.RemoveField("board", "sample_keys"),
        migrations.AlterField(
            "boardround",
            "sample",
            models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="rounds", to="boards.boardsample"
            ),
        ),
        append_only_operation("boards_boardsample"),
    ]
