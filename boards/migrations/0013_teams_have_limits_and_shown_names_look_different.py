"""Limits of teams, sizes of files, and names that are equal if they look alike. Names that clash already stay as they are."""

from hashlib import sha256

import django.core.validators
from django.db import migrations, models

import boards.models
from boards.models import lookalike_key


def store_keys(apps, schema_editor):
    """Give each name its key. The later one of two shown names that look alike gets a key of its own."""
    Submission = apps.get_model("boards", "Submission")
    taken = set()
    rows = []
    for one in Submission.objects.order_by("board", "number").iterator(chunk_size=2000):
        one.name_key = lookalike_key(one.name)
        if not (one.is_anonymous or one.withdrawn_at):
            if (one.board_id, one.name_key) in taken:
                one.name_key = sha256(f"{one.name_key} {one.number}".encode()).hexdigest()
            taken.add((one.board_id, one.name_key))
        rows.append(one)
    Submission.objects.bulk_update(rows, ["name_key"], batch_size=500)


def limit(name, default, most, help_text, *, field=models.PositiveSmallIntegerField):
    validators = [django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(most)]
    return field(name, default=default, validators=validators, help_text=help_text)


class Migration(migrations.Migration):
    dependencies = [("boards", "0012_rounds_commit_to_secret_seeds")]

    operations = [
        migrations.AddField(
            "board",
            "max_waiting_per_team",
            limit(
                "waiting submissions per team",
                10,
                1000,
                "A team that has so many sends another when a round has scored one.",
            ),
        ),
        migrations.AddField(
            "board",
            "max_daily_per_team",
            limit("submissions per team and day", 10, 1000, "In any 24 hours, withdrawn ones included."),
        ),
        migrations.AddField(
            "board",
            "max_megabytes_per_team",
            limit(
                "megabytes per team",
                2000,
                1_000_000,
                "All files of a team together, withdrawn ones included.",
                field=models.PositiveIntegerField,
            ),
        ),
        migrations.AddField(
            "submission",
            "n_bytes",
            models.PositiveBigIntegerField(
                "bytes", default=0, help_text="Size of the file that was sent. 0: it came before sizes were stored."
            ),
        ),
        migrations.AddField(
            "submission",
            "name_key",
            boards.models.LookalikeKeyField(default="", help_text="Equal for names that look alike."),
            preserve_default=False,
        ),
        migrations.RunPython(store_keys, migrations.RunPython.noop, elidable=True),
        migrations.RemoveConstraint("submission", "submission_name_once_per_board"),
        migrations.AddConstraint(
            "submission",
            models.UniqueConstraint(fields=["team", "name"], name="submission_name_once_per_team"),
        ),
        migrations.AddConstraint(
            "submission",
            models.UniqueConstraint(
                condition=models.Q(("is_anonymous", False), ("withdrawn_at", None)),
                fields=["board", "name_key"],
                name="submission_shown_names_look_different",
            ),
        ),
    ]
