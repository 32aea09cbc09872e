"""PostgreSQL keeps analyses and their figures, samples, their coders and every coding as they were given."""

from django.db import migrations

from studies.models.guards import append_only_operation


class Migration(migrations.Migration):
    replaces = [("analysis", "0002_analyses_are_append_only"), ("analysis", "0003_explanations_are_coded")]
    dependencies = [("analysis", "0001_analyses_and_codings")]
    operations = [
        append_only_operation("analysis_analysisrun"),
        append_only_operation("analysis_figure"),
        append_only_operation("analysis_codingsample"),
        append_only_operation("analysis_codingseat"),
        append_only_operation("analysis_codingitem"),
        append_only_operation("analysis_coding"),
    ]
