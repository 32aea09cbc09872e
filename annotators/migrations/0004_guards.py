"""PostgreSQL refuses to change what an annotator said and what was decided, but for what is named here; and leaves room in two tables.

Erasures and the deletion of tries pass only inside a transaction that ``studies.models.guards.erasing`` opened.
"""

from django.db import migrations

from studies.models.guards import append_only_operation

# An answer is blanked and nothing else of it is changed; those of tries are deleted.
ANSWER_IS_ERASED = """
  IF current_setting('heval.erasing', true) = 'on' THEN
    IF TG_OP = 'UPDATE' AND OLD.erased_at IS NULL AND NEW.erased_at IS NOT NULL AND NEW.text = ''
       AND (NEW.value IS NULL OR NEW.value = OLD.value)
       AND (NEW.chosen_id IS NULL OR NEW.chosen_id = OLD.chosen_id)
       AND NEW.choice IN ('', OLD.choice) AND NEW.part IN ('', OLD.part) AND NEW.skip_reason IN ('', OLD.skip_reason)
       AND to_jsonb(NEW) - '{text,value,chosen_id,choice,part,skip_reason,erased_at}'::text[]
         = to_jsonb(OLD) - '{text,value,chosen_id,choice,part,skip_reason,erased_at}'::text[]
    THEN
      RETURN NEW;
    END IF;
    IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM annotators_assignment WHERE id = OLD.assignment_id AND origin = 'test') THEN
      RETURN OLD;
    END IF;
  END IF;
"""
# Somebody's answers are deleted from what was measured of them; the decision stays.
EVIDENCE_IS_ERASED = """
  IF TG_OP = 'UPDATE' AND current_setting('heval.erasing', true) = 'on'
     AND to_jsonb(NEW) - 'evidence' = to_jsonb(OLD) - 'evidence' THEN
    RETURN NEW;
  END IF;
"""
# An appeal is answered once.
APPEAL_IS_ANSWERED = """
  IF TG_OP = 'UPDATE' AND OLD.answered_at IS NULL AND NEW.answered_at IS NOT NULL
     AND to_jsonb(NEW) - '{answer,is_upheld,answered_by_id,answered_at}'::text[]
       = to_jsonb(OLD) - '{answer,is_upheld,answered_by_id,answered_at}'::text[] THEN
    RETURN NEW;
  END IF;
"""
# What pages change of a row stays on the row's own page of the table: there is room, and no index holds it.
ROOM = {"annotators_assignment": 80, "annotators_pagevisit": 80}


def leave_room(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for table, percent in ROOM.items():
            schema_editor.execute(f"ALTER TABLE {table} SET (fillfactor = {percent})")


class Migration(migrations.Migration):
    replaces = [
        ("annotators", "0002_responses_are_append_only"),
        ("annotators", "0007_verdicts_are_append_only_and_may_be_appealed"),
        ("annotators", "0010_answers_write_no_more_than_they_must"),
        ("annotators", "0011_when_a_page_was_shown_may_be_unknown"),
        ("annotators", "0012_the_id_of_a_person_is_kept_enciphered_alone"),
    ]
    dependencies = [("annotators", "0003_pay_and_verdicts")]
    operations = [
        append_only_operation("annotators_response", ANSWER_IS_ERASED),
        append_only_operation("annotators_exclusion"),
        append_only_operation("annotators_verdict", EVIDENCE_IS_ERASED),
        append_only_operation("annotators_appeal", APPEAL_IS_ANSWERED),
        migrations.RunPython(leave_room, migrations.RunPython.noop),
    ]
