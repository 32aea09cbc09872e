"""Update PostgreSQL's statistics about the size of tables."""

from django.db import connection
from django.db.models import Model


def analyze_tables(*models: type[Model]) -> None:
    """Run ANALYZE on the tables now. Call it after writing so many rows that plans for few rows would be slow.

    PostgreSQL plans queries with its last statistics, and updates them by itself within about a minute. The first people come
    earlier: a statement that was prepared for nearly empty tables would scan whole tables for each page.
    """
    if connection.vendor == "postgresql":
        names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models)
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {names}")
