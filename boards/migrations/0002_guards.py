"""PostgreSQL keeps submitted outputs and snapshots as they were stored."""

from django.db import migrations

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    dependencies = [("boards", "0001_boards_submissions_rounds_and_snapshots")]
    operations = [
        append_only_operation("boards_submittedoutput"),
        append_only_operation("boards_boardsnapshot"),
    ]
