"""Tell a database that cannot be used from a fault of heval, insert many rows, and update PostgreSQL's statistics about tables."""

import time
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connection, connections
from django.db.models import DateTimeField, DecimalField, JSONField, Model

# Tell a database that cannot be used from a fault of heval.


READ_ONLY = "25006"  # a standby after a switch of servers
# PostgreSQL's classes of errors: no connection, no resources such as disk space, an operator's act, the system.
UNAVAILABLE_CLASSES = ("08", "53", "57", "58")
LONGEST_PAUSE = 0.1


def is_database_unavailable_error(exception: BaseException | None) -> bool:
    """Return whether the database failed, is full or takes no writes, as opposed to a bug in heval."""
    while exception is not None:
        state = str(getattr(exception, "sqlstate", None) or "")
        if isinstance(exception, OperationalError | InterfaceError) or state == READ_ONLY:
            return True
        if state.startswith(UNAVAILABLE_CLASSES):
            return True
        exception = exception.__cause__
    return False


# Insert many rows. Django's bulk_create takes most of its time to write SQL, and would hold SQLite's lock meanwhile.


def prepare_rows(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return rows of these columns as the database stores them. Do this before the transaction."""
    prepared = [list(row) for row in rows]
    database = connections[DEFAULT_DB_ALIAS]  # itself: ``connection`` looks it up at each use
    for place, name in enumerate(columns):
        field = model._meta.get_field(name.removesuffix("_id"))
        if isinstance(field, DateTimeField | DecimalField | JSONField):
            for row in prepared:
                row[place] = field.get_db_prep_save(row[place], database)
    return prepared


def insert_rows(model: type[Model], columns: Sequence[str], prepared_rows: Sequence[Sequence[Any]]) -> None:
    """Insert prepared rows. Columns that are not named get the database's default. Guards of managers are not asked."""
    quote = connection.ops.quote_name
    names, places = ", ".join(map(quote, columns)), ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {quote(model._meta.db_table)} ({names}) VALUES ({places})", prepared_rows)  # noqa: S608 - only names of the model


def update_rows(model: type[Model], columns: Sequence[str], prepared_rows: Sequence[Sequence[Any]]) -> None:
    """Set these columns of rows. The last value of each prepared row is its id. Guards of managers are not asked."""
    quote = connection.ops.quote_name
    assignments = ", ".join(f"{quote(name)} = %s" for name in columns)
    with connection.cursor() as cursor:
        cursor.executemany(f"UPDATE {quote(model._meta.db_table)} SET {assignments} WHERE id = %s", prepared_rows)  # noqa: S608 - only names of the model


def let_others_write(seconds: float) -> None:
    """On SQLite, leave the lock free for as long as it was held: others look for it only now and then."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        time.sleep(min(seconds, LONGEST_PAUSE))


# Update PostgreSQL's statistics about the size of tables.


def analyze_tables(*models: type[Model]) -> None:
    """Run ANALYZE on the tables now. Call it after writing so many rows that plans for few rows would be slow.

    PostgreSQL plans queries with its last statistics, and updates them by itself within about a minute. The first people come
    earlier: a statement that was prepared for nearly empty tables would scan whole tables for each page.
    """
    if connection.vendor == "postgresql":
        names = ", ".join(connection.ops.quote_name(model._meta.db_table) for model in models)
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {names}")
