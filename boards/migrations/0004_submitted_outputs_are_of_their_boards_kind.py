"""PostgreSQL refuses an image on a board of texts, and a text on a board of images."""

from django.db import migrations

from studies.models.guards import only_on_postgresql

SQL = """
CREATE FUNCTION boards_submittedoutput_kind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM inserted o JOIN boards_submission s ON s.id = o.submission_id JOIN boards_board b ON b.id = s.board_id
    WHERE (o.media <> '' AND b.output_kind <> 'image') OR (o.text <> '' AND b.output_kind <> 'text')
  ) THEN
    RAISE EXCEPTION 'submitted outputs are not of the kind of their board' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER boards_submittedoutput_kind AFTER INSERT ON boards_submittedoutput
  REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT EXECUTE FUNCTION boards_submittedoutput_kind();

CREATE FUNCTION boards_board_kind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the kind of outputs of an open board does not change' USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER boards_board_kind BEFORE UPDATE ON boards_board
  FOR EACH ROW WHEN (OLD.state <> 'draft' AND NEW.output_kind <> OLD.output_kind) EXECUTE FUNCTION boards_board_kind();
"""
REVERSE = """
DROP TRIGGER boards_submittedoutput_kind ON boards_submittedoutput;
DROP FUNCTION boards_submittedoutput_kind();
DROP TRIGGER boards_board_kind ON boards_board;
DROP FUNCTION boards_board_kind();
"""


class Migration(migrations.Migration):
    dependencies = [("boards", "0003_images_of_submissions")]
    operations = [only_on_postgresql(SQL, REVERSE)]
