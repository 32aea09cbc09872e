"""PostgreSQL refuses a round with the sample of another board."""

from django.db import migrations

from studies.models.guards import only_on_postgresql

SQL = """
CREATE FUNCTION boards_boardround_sample() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM boards_boardsample s WHERE s.id = NEW.sample_id AND s.board_id = NEW.board_id) THEN
    RAISE EXCEPTION 'the sample of a round belongs to another board' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER boards_boardround_sample BEFORE INSERT OR UPDATE OF sample_id, board_id ON boards_boardround
  FOR EACH ROW EXECUTE FUNCTION boards_boardround_sample();
"""
REVERSE = """
DROP TRIGGER boards_boardround_sample ON boards_boardround;
DROP FUNCTION boards_boardround_sample();
"""


class Migration(migrations.Migration):
    dependencies = [("boards", "0008_boards_have_tables_of_metrics")]
    operations = [only_on_postgresql(SQL, REVERSE)]
