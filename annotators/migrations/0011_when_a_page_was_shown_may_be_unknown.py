"""A visit that a crash of the database has lost is made again without the moment at which its page was shown."""

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotators", "0010_answers_write_no_more_than_they_must")]

    operations = [
        migrations.RemoveConstraint(model_name="pagevisit", name="page_is_recorded_after_it_was_shown"),
        migrations.AlterField(
            model_name="pagevisit",
            name="shown_at",
            field=models.DateTimeField(blank=True, db_default=django.db.models.functions.datetime.Now(), null=True),
        ),
        migrations.AddConstraint(
            model_name="pagevisit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("recorded_at", None),
                    ("shown_at", None),
                    ("recorded_at__gte", models.F("shown_at")),
                    _connector="OR",
                ),
                name="page_is_recorded_after_it_was_shown",
            ),
        ),
    ]
