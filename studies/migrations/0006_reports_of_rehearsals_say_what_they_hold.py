"""The rows of a rehearsal's report have keys that say what they hold. Stored reports are renamed."""

from django.db import migrations

NEW_KEYS = {
    "who": "label",
    "told": "last_page",
    "there": "at_panel",
    "here": "in_heval",
    "standing": "match_status",
    "wrong": "faults",
}


def rename_keys(apps, schema_editor, new_keys=NEW_KEYS):
    for job in apps.get_model("studies", "Job").objects.filter(kind="rehearsal", result__has_key="roles"):
        job.result["roles"] = [
            {new_keys.get(key, key): value for key, value in row.items()} for row in job.result["roles"]
        ]
        job.save(update_fields=["result"])


def restore_keys(apps, schema_editor):
    rename_keys(apps, schema_editor, {new: old for old, new in NEW_KEYS.items()})


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0005_kinds_of_jobs_say_what_jobs_do"),
    ]

    operations = [
        migrations.RunPython(rename_keys, restore_keys, elidable=True),
    ]
