"""Claims are judged when a stopping rule passes them. Claims of studies that were launched before are never judged."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotators", "0010_appeals_may_be_about_failed_checks"),
        ("studies", "0021_studies_know_which_answers_count"),
    ]

    operations = [
        migrations.AddField(
            model_name="assignment",
            name="judged_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="assignment",
            name="judged_out",
            field=models.CharField(blank=True, db_default="", default="", editable=False, max_length=50),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(("judged_out", ""), ("judged_at__isnull", False), _connector="OR"),
                name="assignment_is_judged_out_only_when_judged",
            ),
        ),
    ]
