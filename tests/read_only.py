"""A database that takes no writes for a while, as a standby or a file that cannot be written."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

STATEMENTS = {
    "sqlite": ("PRAGMA query_only = 1", "PRAGMA query_only = 0"),
    "postgresql": (
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    ),
}


@contextmanager
def read_only_database() -> Iterator[None]:
    begin, end = STATEMENTS[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(begin)
        try:
            yield
        finally:
            cursor.execute(end)
