"""A study chooses one of its own plans, and the plans of a draft are deleted with it. PostgreSQL refuses anything else."""

from django.db import migrations

from studies.models.guards import append_only_operation, only_on_postgresql

TABLE = "studies_sizeplan"
OF_DRAFTS = """
  IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM studies_study s WHERE s.id = OLD.study_id AND s.state = 'draft') THEN
    RETURN OLD;
  END IF;
"""
OWN_PLAN = """
ALTER TABLE studies_sizeplan ADD CONSTRAINT size_plan_with_its_study UNIQUE (id, study_id);
ALTER TABLE studies_study ADD CONSTRAINT study_chose_a_plan_of_its_own
  FOREIGN KEY (size_plan_id, id) REFERENCES studies_sizeplan (id, study_id) DEFERRABLE INITIALLY DEFERRED;
"""
ANY_PLAN = """
ALTER TABLE studies_study DROP CONSTRAINT study_chose_a_plan_of_its_own;
ALTER TABLE studies_sizeplan DROP CONSTRAINT size_plan_with_its_study;
"""


def _replaced(operation: migrations.RunSQL, before: migrations.RunSQL) -> migrations.RunSQL:
    """Return the operation that creates one trigger in the place of another of the same name."""
    return only_on_postgresql(f"{before.reverse_sql}{operation.sql}", f"{operation.reverse_sql}{before.sql}")


class Migration(migrations.Migration):
    dependencies = [("studies", "0015_plans_of_size")]

    operations = [
        _replaced(append_only_operation(TABLE, OF_DRAFTS), append_only_operation(TABLE)),
        only_on_postgresql(OWN_PLAN, ANY_PLAN),
    ]
