"""An answer writes its row and few indexes: those that another begins with go, and an empty link stands in none.

On PostgreSQL, what pages change of a row stays on the row's own page of the table: there is room, and no index holds it.
"""

import django.db.models.deletion
from django.db import migrations, models

ROOM = {"annotators_assignment": 80, "annotators_pagevisit": 80}


def leave_room(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for table, percent in ROOM.items():
            schema_editor.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")


class Migration(migrations.Migration):
    dependencies = [
        ("annotators", "0009_what_a_panel_rejected_may_be_appealed"),
        ("studies", "0009_a_level_lies_below_one_half"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="assignment",
            name="assignment_live",
        ),
        migrations.AlterField(
            model_name="assignment",
            name="batch",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="assignments",
                to="studies.batch",
            ),
        ),
        migrations.AlterField(
            model_name="assignment",
            name="study",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="assignments",
                to="studies.study",
            ),
        ),
        migrations.AlterField(
            model_name="pagevisit",
            name="assignment",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="visits",
                to="annotators.assignment",
            ),
        ),
        migrations.AlterField(
            model_name="response",
            name="assignment",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="responses",
                to="annotators.assignment",
            ),
        ),
        migrations.AlterField(
            model_name="response",
            name="chosen",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="chosen_in",
                to="studies.exposure",
            ),
        ),
        migrations.AlterField(
            model_name="response",
            name="exposure",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="responses",
                to="studies.exposure",
            ),
        ),
        migrations.AlterField(
            model_name="response",
            name="item",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="responses",
                to="studies.item",
            ),
        ),
        migrations.AddIndex(
            model_name="response",
            index=models.Index(condition=models.Q(("item__isnull", False)), fields=["item"], name="response_by_item"),
        ),
        migrations.AddIndex(
            model_name="response",
            index=models.Index(
                condition=models.Q(("exposure__isnull", False)), fields=["exposure"], name="response_by_exposure"
            ),
        ),
        migrations.AddIndex(
            model_name="response",
            index=models.Index(
                condition=models.Q(("chosen__isnull", False)), fields=["chosen"], name="response_by_chosen"
            ),
        ),
        migrations.RunPython(leave_room, migrations.RunPython.noop),
    ]
