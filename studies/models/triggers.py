"""PostgreSQL triggers, for migrations. SQLite has only the managers' guards, because Django's flush must delete rows there."""

from django.db import migrations

APPEND_ONLY_SQL = """
CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  {passes}
  RAISE EXCEPTION '{table} is append-only' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION {table}_append_only();
"""

# {old}, {new}: the expression that finds the study of the old or new row.
FROZEN_DESIGN_SQL = """
CREATE FUNCTION {table}_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  state text;
BEGIN
  IF TG_OP <> 'INSERT' THEN
    SELECT s.state INTO state FROM studies_study s WHERE s.id = ({old});
    IF state IS NOT NULL AND state <> 'draft' AND current_setting('heval.amending', true) IS DISTINCT FROM 'on' {changes} THEN
      RAISE EXCEPTION 'a launched study''s {table} does not change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    SELECT s.state INTO state FROM studies_study s WHERE s.id = ({new});
    IF state IS NOT NULL AND state <> 'draft' AND current_setting('heval.amending', true) IS DISTINCT FROM 'on' {changes} {grows} THEN
      RAISE EXCEPTION 'a launched study''s {table} does not change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER {table}_frozen BEFORE INSERT OR UPDATE OR DELETE ON {table}
  FOR EACH ROW EXECUTE FUNCTION {table}_frozen();
"""


class _OnPostgreSQL(migrations.RunSQL):
    """SQL that PostgreSQL alone runs. RunPython would first build all models of the site for it, on every database."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":
            super().database_backwards(app_label, schema_editor, from_state, to_state)


def only_on_postgresql(sql: str, reverse_sql: str) -> migrations.RunSQL:
    """Return a migration operation that SQLite skips."""
    return _OnPostgreSQL(sql, reverse_sql)


def append_only_operation(table, exception_sql="") -> migrations.RunSQL:
    """Return a migration operation that forbids UPDATE and DELETE on ``table``. The PL/pgSQL ``exception_sql`` may allow some."""
    return _OnPostgreSQL(
        APPEND_ONLY_SQL.format(table=table, passes=exception_sql),
        f"DROP TRIGGER {table}_append_only ON {table}; DROP FUNCTION {table}_append_only();",
    )


def frozen_design_operation(
    table, study_sql="{row}.study_id", mutable_columns=(), allows_inserts=False
) -> migrations.RunSQL:
    """Return a migration operation that freezes the rows of a study that is not a draft.

    ``mutable_columns``: columns that may still change. ``allows_inserts``: rows may still be added.
    """
    free = ""
    if mutable_columns:
        columns = "{" + ",".join(mutable_columns) + "}"
        free = (
            f"AND NOT (TG_OP = 'UPDATE' AND to_jsonb(NEW) - '{columns}'::text[] = to_jsonb(OLD) - '{columns}'::text[])"
        )
    sql = FROZEN_DESIGN_SQL.format(
        table=table,
        old=study_sql.format(row="OLD"),
        new=study_sql.format(row="NEW"),
        changes=free,
        grows="AND TG_OP <> 'INSERT'" if allows_inserts else "",
    )
    return _OnPostgreSQL(sql, f"DROP TRIGGER {table}_frozen ON {table}; DROP FUNCTION {table}_frozen();")
