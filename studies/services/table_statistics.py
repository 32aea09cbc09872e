"""What PostgreSQL believes of the size of our tables."""

from django.db import connection
from django.db.models import Model


def analyze_tables(*models: type[Model]) -> None:
    """Have the tables counted now, where so much was just written that plans made for few rows would be wrong.

    PostgreSQL plans by what it counted last. It counts by itself within a minute or so; the first people come earlier, and a
    statement that was prepared while the tables were nearly empty would look through all of them for each page.
    """
    if connection.vendor == "postgresql":
        names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models)
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {names}")
