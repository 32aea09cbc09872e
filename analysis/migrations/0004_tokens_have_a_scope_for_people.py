"""Tokens may have a scope for what names people."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("analysis", "0003_tokens_make_tokens"),
    ]

    operations = [
        migrations.AlterField(
            model_name="apitoken",
            name="scope",
            field=models.CharField(
                choices=[
                    ("read", "read"),
                    ("draft", "read, and write drafts"),
                    ("write", "read and write"),
                    ("people", "read and write, invite, and read messages and ids of people"),
                ],
                default="read",
                max_length=6,
            ),
        ),
    ]
