"""Appeals may be about failed attention checks. Open objections that came as messages become appeals, with a promised date."""

from datetime import timedelta

from django.conf import settings
from django.db import migrations, models
from django.utils import timezone

ANSWER_DEADLINE = timedelta(days=14)


def turn_objections_into_appeals(apps, schema_editor):
    """Turn the first open objection of each assignment into an appeal. All objections stay as questions."""
    Inquiry, Appeal = apps.get_model("annotators", "Inquiry"), apps.get_model("annotators", "Appeal")
    objections = Inquiry.objects.filter(kind="objection")
    now = timezone.now()
    waiting = objections.filter(handled_at=None).exclude(assignment__origin="test").order_by("-pk")
    first = {objection.assignment_id: objection for objection in waiting}
    # No date was promised when they objected, so the time for an answer begins now.
    Appeal.objects.bulk_create(
        Appeal(assignment_id=pk, text=objection.text, at=objection.at, due_at=now + ANSWER_DEADLINE)
        for pk, objection in first.items()
    )
    Inquiry.objects.filter(pk__in=[objection.pk for objection in first.values()]).update(handled_at=now)
    objections.update(kind="question")


class Migration(migrations.Migration):
    dependencies = [
        ("annotators", "0009_attempts_at_tests_are_stored"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="appeal",
            name="appeal_is_about_a_rejection_or_a_barring",
        ),
        migrations.AlterField(
            model_name="assignment",
            name="released_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("expired", "Expired"),
                    ("returned", "Returned"),
                    ("screened_out", "Screened Out"),
                    ("failed_checks", "Failed Checks"),
                    ("fault", "Fault"),
                    ("full", "Full"),
                    ("withdrawn", "Withdrawn"),
                ],
                max_length=13,
            ),
        ),
        migrations.AlterField(
            model_name="inquiry",
            name="kind",
            field=models.CharField(choices=[("report", "about a text"), ("question", "a question")], max_length=9),
        ),
        migrations.AddConstraint(
            model_name="appeal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("assignment", None), ("barring", None), ("verdict__isnull", False)),
                    models.Q(("assignment__isnull", False), ("barring__isnull", False), ("verdict", None)),
                    models.Q(
                        ("assignment__isnull", False), ("barring", None), ("rejected_by", None), ("verdict", None)
                    ),
                    _connector="OR",
                ),
                name="appeal_is_about_a_rejection_or_a_barring_or_failed_checks",
            ),
        ),
        migrations.AddConstraint(
            model_name="appeal",
            constraint=models.UniqueConstraint(
                condition=models.Q(("barring", None), ("verdict", None)),
                fields=("assignment",),
                name="appeal_about_failed_checks_once_per_assignment",
            ),
        ),
        migrations.RunPython(turn_objections_into_appeals, migrations.RunPython.noop),
    ]
