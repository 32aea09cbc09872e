"""Withdrawals erase messages and closed appeals, also of people who withdrew before. The trust of open links is *none*."""

from django.db import migrations, models
from django.db.models import Q

from studies.models.guards import append_only_operation, only_on_postgresql

TABLE = "annotators_appeal"
# An appeal is answered once.
IS_ANSWERED = """
  IF TG_OP = 'UPDATE' AND OLD.answered_at IS NULL AND NEW.answered_at IS NOT NULL
     AND to_jsonb(NEW) - '{answer,is_upheld,answered_by_id,answered_at}'::text[]
       = to_jsonb(OLD) - '{answer,is_upheld,answered_by_id,answered_at}'::text[] THEN
    RETURN NEW;
  END IF;
"""
# Of a person who withdrew, the words of an answered appeal are erased, and one that needs no answer any more is deleted.
IS_ERASED = """
  IF current_setting('heval.erasing', true) = 'on' AND TG_OP = 'UPDATE' AND OLD.answered_at IS NOT NULL
     AND NEW.text = '' AND to_jsonb(NEW) - 'text' = to_jsonb(OLD) - 'text' THEN
    RETURN NEW;
  END IF;
  IF current_setting('heval.erasing', true) = 'on' AND TG_OP = 'DELETE' AND OLD.answered_at IS NULL THEN
    RETURN OLD;
  END IF;
"""


def replace_trigger() -> migrations.RunSQL:
    old, new = append_only_operation(TABLE, IS_ANSWERED), append_only_operation(TABLE, IS_ANSWERED + IS_ERASED)
    return only_on_postgresql(f"{old.reverse_sql}\n{new.sql}", f"{new.reverse_sql}\n{old.sql}")


def correct_rows(apps, schema_editor):
    """Erase the messages of people who read that everything was deleted, and say that an open link names nobody."""
    Assignment, Inquiry = apps.get_model("annotators", "Assignment"), apps.get_model("annotators", "Inquiry")
    left = Assignment.objects.filter(withdrawn_at__isnull=False)
    same_study = left.filter(
        study=models.OuterRef("assignment__study"), annotator=models.OuterRef("assignment__annotator")
    )
    Inquiry.objects.filter(models.Exists(same_study)).delete()
    Assignment.objects.filter(recruitment__channel="open_link", trust="claimed").update(trust="none")


def name_the_person(apps, schema_editor):
    apps.get_model("annotators", "Assignment").objects.filter(trust="none").update(trust="claimed")


class Migration(migrations.Migration):
    dependencies = [("annotators", "0011_claims_are_judged_when_a_stopping_rule_passes_them")]

    operations = [
        migrations.RunPython(correct_rows, name_the_person),
        migrations.AlterField(
            model_name="assignment",
            name="trust",
            field=models.CharField(
                choices=[
                    ("none", "none: the link names nobody"),
                    ("claimed", "claimed: the link named the person"),
                    ("keyed", "keyed: the link contained a secret"),
                    ("verified", "verified: the panel confirmed the person on arrival"),
                    ("confirmed", "confirmed: the panel lists the submission"),
                ],
                default="claimed",
                max_length=9,
            ),
        ),
        migrations.AlterField(model_name="appeal", name="text", field=models.TextField(blank=True)),
        migrations.RemoveConstraint(model_name="appeal", name="appeal_says_something"),
        migrations.AddConstraint(
            model_name="appeal",
            constraint=models.CheckConstraint(
                condition=~Q(text="") | Q(answered_at__isnull=False),
                name="appeal_says_something_until_it_is_answered",
            ),
        ),
        replace_trigger(),
    ]
