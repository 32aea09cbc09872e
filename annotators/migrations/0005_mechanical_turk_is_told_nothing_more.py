"""Nothing is said to Mechanical Turk any more, whose service has ended.

The keys of requesters' accounts are deleted: no page could do so after this version. Orders that were never sent are cancelled. Orders
whose answer has not come are unclear: a person says on the panel's page what became of each, and the payments follow. Everything else
stays as it is: links with their settings (also keywords, countries and the share approved before, which say what was asked of workers),
tasks, submissions, verdicts, payments and the record of events.
"""

from django.db import migrations
from django.db.models.functions import Now

ENDED = {"recruitment__channel__in": ["mturk", "mturk_sandbox"]}


def end(apps, schema_editor):
    apps.get_model("annotators", "PanelSecret").objects.filter(**ENDED).delete()
    orders = apps.get_model("annotators", "PanelOrder").objects.filter(**ENDED)
    orders.filter(state="waiting", sent_at=None).update(state="cancelled", ended_at=Now())
    orders.filter(state__in=["waiting", "sent"]).update(state="unclear")


class Migration(migrations.Migration):
    dependencies = [
        ("annotators", "0004_guards"),
    ]

    operations = [
        migrations.RunPython(end, migrations.RunPython.noop, elidable=True),
    ]
