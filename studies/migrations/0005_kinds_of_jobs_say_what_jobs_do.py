"""The kinds of jobs say what the jobs do. Jobs that wait for a worker during the upgrade run afterwards."""

from django.db import migrations

NEW_KINDS = {"look": "stopping_check", "panel": "panel_sync", "panel_news": "panel_notifications"}


def rename_kinds(apps, schema_editor, new_kinds=NEW_KINDS):
    for old, new in new_kinds.items():
        apps.get_model("studies", "Job").objects.filter(kind=old).update(kind=new)


def restore_kinds(apps, schema_editor):
    rename_kinds(apps, schema_editor, {new: old for old, new in NEW_KINDS.items()})


class Migration(migrations.Migration):
    dependencies = [
        ("studies", "0004_guards"),
    ]

    operations = [
        migrations.RunPython(rename_kinds, restore_kinds, elidable=True),
    ]
