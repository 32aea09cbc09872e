"""Barrings are stored, and PostgreSQL lets them be lifted once and otherwise keeps them as they were made."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from studies.models.guards import append_only_operation

# A barring is lifted once.
BARRING_IS_LIFTED = """
  IF TG_OP = 'UPDATE' AND OLD.lifted_at IS NULL AND NEW.lifted_at IS NOT NULL
     AND to_jsonb(NEW) - '{lifted_at,lifted_by_id,lift_reason}'::text[]
       = to_jsonb(OLD) - '{lifted_at,lifted_by_id,lift_reason}'::text[] THEN
    RETURN NEW;
  END IF;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotators", "0006_orders_name_the_panels_message"),
        ("studies", "0012_studies_may_bar_flagged_annotators"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="appeal",
            name="assignment",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="annotators.assignment",
            ),
        ),
        migrations.AlterField(
            model_name="appeal",
            name="verdict",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="appeal",
                to="annotators.verdict",
            ),
        ),
        migrations.CreateModel(
            name="Barring",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "ground",
                    models.CharField(choices=[("rule", "by the test questions"), ("hand", "by hand")], max_length=4),
                ),
                ("reason", models.TextField(blank=True)),
                ("screening", models.PositiveBigIntegerField(blank=True, null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lifted_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("lift_reason", models.TextField(blank=True)),
                (
                    "annotator",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="barrings", to="annotators.annotator"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "lifted_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "study",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="barrings", to="studies.study"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="appeal",
            name="barring",
            field=models.OneToOneField(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="appeal",
                to="annotators.barring",
            ),
        ),
        migrations.AddConstraint(
            model_name="appeal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("assignment", None), ("barring", None), ("verdict__isnull", False)),
                    models.Q(("assignment__isnull", False), ("barring__isnull", False), ("verdict", None)),
                    _connector="OR",
                ),
                name="appeal_is_about_a_rejection_or_a_barring",
            ),
        ),
        migrations.AddConstraint(
            model_name="barring",
            constraint=models.UniqueConstraint(
                condition=models.Q(("lifted_at", None)),
                fields=("study", "annotator"),
                name="barring_once_until_it_is_lifted",
            ),
        ),
        migrations.AddConstraint(
            model_name="barring",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("by", None), ("ground", "rule"), ("reason", ""), ("screening__isnull", False)),
                    models.Q(
                        ("by__isnull", False),
                        ("ground", "hand"),
                        ("screening", None),
                        models.Q(("reason", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="barring_rests_on_a_screening_or_on_a_decision_with_a_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="barring",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("lift_reason", ""), ("lifted_at", None), ("lifted_by", None)),
                    models.Q(
                        ("lifted_at__isnull", False),
                        ("lifted_by__isnull", False),
                        models.Q(("lift_reason", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="barring_is_lifted_whole_or_not_at_all",
            ),
        ),
        migrations.AddConstraint(
            model_name="barring",
            constraint=models.CheckConstraint(
                condition=models.Q(("lifted_at", None), ("lifted_at__gte", models.F("at")), _connector="OR"),
                name="barring_is_lifted_after_it_was_made",
            ),
        ),
        append_only_operation("annotators_barring", BARRING_IS_LIFTED),
    ]
