"""The rows of all tables as lines of JSON, written and read without the managers that guard a launched study."""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from hashlib import sha256
from itertools import islice
from typing import Any
from uuid import UUID

from django.apps.registry import Apps
from django.core.management.color import no_style
from django.db import connection, models

# Who is logged in, and who tried to log in.
LEFT_OUT = ("sessions", "axes")
ROWS_AT_ONCE = 500
Table = type[models.Model]


def tables_of(registry: Apps) -> dict[str, Table]:
    """Return the models whose rows belong to a backup, by label."""
    found = registry.get_models(include_auto_created=True)
    return {
        model._meta.label_lower: model
        for model in found
        if model._meta.managed and not model._meta.proxy and model._meta.app_label not in LEFT_OUT
    }


def columns_of(table: Table) -> list[str]:
    return [field.attname for field in table._meta.local_concrete_fields]


def _lines(table: Table, columns: list[str]) -> Iterator[tuple[bytes, bytes]]:
    """Yield each row as a line of JSON, in the order of the primary key, and the same with sorted keys.

    PostgreSQL stores the keys of a JSON value in an order of its own. What both databases give equally are the sorted ones.
    """
    rows = table._base_manager.order_by("pk").values_list(*columns)
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        values = [_plain(value) for value in row]
        line = _line(values)
        yield line, _line(values, sort_keys=True) if any(isinstance(one, dict | list) for one in values) else line


def _line(values: list[Any], sort_keys: bool = False) -> bytes:
    return json.dumps(values, separators=(",", ":"), sort_keys=sort_keys).encode() + b"\n"


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes() | memoryview():
            return base64.b64encode(bytes(value)).decode("ascii")
        case _:
            return value


def load(table: Table, columns: list[str], lines: Iterable[bytes]) -> None:
    """Insert rows. Their columns are named, because a migration may have added them in another order."""
    fields = {field.attname: field for field in table._meta.local_concrete_fields}
    for field in fields.values():
        if isinstance(field, models.DateField):
            field.auto_now = field.auto_now_add = False  # the moment is stored already
    read = (json.loads(line) for line in lines)
    while rows := list(islice(read, ROWS_AT_ONCE)):
        table._base_manager.bulk_create(
            table(**{name: fields[name].to_python(value) for name, value in zip(columns, row, strict=True)})
            for row in rows
        )


def digest_of(
    table: Table, columns: list[str], notice: Callable[[bytes], object] = lambda line: None
) -> tuple[int, str]:
    """Return the number of rows and a SHA-256 that is the same on both databases, and pass each line on."""
    n, digest = 0, sha256()
    for line, sorted_line in _lines(table, columns):
        digest.update(sorted_line)
        notice(line)
        n += 1
    return n, digest.hexdigest()


@contextmanager
def emptied(tables: Iterable[Table]) -> Iterator[None]:
    """Empty these tables, and lift the triggers of PostgreSQL while they are filled. Use it inside a transaction."""
    tables = list(tables)
    names = [connection.ops.quote_name(table._meta.db_table) for table in tables]
    is_postgresql = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        for name in names if is_postgresql else ():
            cursor.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        for name in names:
            cursor.execute(f"DELETE FROM {name}")  # noqa: S608 - a quoted name of our own
        yield
        if is_postgresql:
            # A table whose foreign keys are still to be checked cannot be altered.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for name in names:
                cursor.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")
        for statement in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)
