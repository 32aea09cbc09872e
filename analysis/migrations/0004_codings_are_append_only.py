"""PostgreSQL keeps samples, their coders and every coding as they were given."""

from django.db import migrations

from studies.triggers import append_only


class Migration(migrations.Migration):
    dependencies = [("analysis", "0003_explanations_are_coded")]
    operations = [
        append_only("analysis_codingsample"),
        append_only("analysis_codingseat"),
        append_only("analysis_codingitem"),
        append_only("analysis_coding"),
    ]
