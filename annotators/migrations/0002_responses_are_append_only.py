"""PostgreSQL refuses to change what an annotator said, but for an erasure that blanks and changes nothing else, and for tries.

Both pass only inside a transaction that ``studies.guards.erasing`` opened.
"""

from django.db import migrations

from studies.triggers import append_only

ERASURE = """
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


class Migration(migrations.Migration):
    dependencies = [("annotators", "0001_annotators_answer")]
    operations = [append_only("annotators_response", ERASURE), append_only("annotators_exclusion")]
