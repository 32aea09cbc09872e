"""PostgreSQL keeps every analysis and its figures as they were printed."""

from django.db import migrations

from studies.triggers import append_only


class Migration(migrations.Migration):
    dependencies = [("analysis", "0001_analyses_are_numbered")]
    operations = [append_only("analysis_analysisrun"), append_only("analysis_figure")]
