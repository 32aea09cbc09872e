"""Create empty tables for the copy. Migrations take many seconds; a site on SQLite can copy its schema instead."""

from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder


def read_schema_if_sqlite() -> dict[str, list]:
    """Return the definitions of this database's tables, indexes and triggers, and the rows of applied migrations.

    Return nothing if the site does not use SQLite; migrations then create the tables.
    """
    if connection.vendor != "sqlite":
        return {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY rowid")
        statements = [sql for (sql,) in cursor.fetchall()]
    return {"made": statements, "applied": sorted(MigrationRecorder(connection).applied_migrations())}


def create_sqlite_schema_and_record_migrations(schema: dict[str, list]) -> None:
    """Create the schema in this process's own, new database."""
    with transaction.atomic(), connection.cursor() as cursor:
        for sql in schema["made"]:
            cursor.execute(sql)
        for app, name in schema["applied"]:
            MigrationRecorder(connection).record_applied(app, name)
