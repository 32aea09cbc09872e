"""The message of the panel about an order has a column that says so."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("annotators", "0005_mechanical_turk_is_told_nothing_more"),
    ]

    operations = [
        migrations.RenameField("panelorder", "words", "panel_message"),
    ]
