"""Tokens may be limited to drafts, and may make others, which end with them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0002_requests_are_done_once"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="may_make_tokens",
            field=models.BooleanField(
                default=False,
                help_text="Programs may make more tokens with it, with at most its own rights.",
                verbose_name="may make tokens",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="parent",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="children",
                to="analysis.apitoken",
            ),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="scope",
            field=models.CharField(
                choices=[("read", "read"), ("draft", "read, and write drafts"), ("write", "read and write")],
                default="read",
                max_length=5,
            ),
        ),
    ]
