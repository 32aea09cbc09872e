"""Empty tables for the copy. Migrations take many seconds of pure computing; a site on SQLite has what they come to."""

from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder


def read_schema() -> dict[str, list]:
    """How this database's tables, indexes and triggers are made, and by which migrations; no row of any other table.

    Nothing where the site is on another database than a copy: migrations make the tables there.
    """
    if connection.vendor != "sqlite":
        return {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY rowid")
        made = [sql for (sql,) in cursor.fetchall()]
    return {"made": made, "applied": sorted(MigrationRecorder(connection).applied_migrations())}


def create_tables(schema: dict[str, list]) -> None:
    """In this process's own database, which is new."""
    with transaction.atomic(), connection.cursor() as cursor:
        for sql in schema["made"]:
            cursor.execute(sql)
        for app, name in schema["applied"]:
            MigrationRecorder(connection).record_applied(app, name)
