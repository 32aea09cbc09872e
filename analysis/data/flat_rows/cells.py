"""Rows are read as the database holds them, past the converters of Django, and times are written in one way."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet

from analysis.data.snapshot import lenient_text_decoding


def compile_sql(queryset: QuerySet) -> tuple[str, Sequence[Any]]:
    """The queryset as SQL of the connection now in use."""
    return queryset.query.get_compiler(connection=connections["default"]).as_sql()


def raw_rows(queryset: QuerySet) -> list[tuple]:
    """What the database holds, past the converters of Django's fields."""
    try:
        sql, params = compile_sql(queryset)
    except EmptyResultSet:  # what can match nothing is not sent to the database
        return []
    connection = connections["default"]
    with lenient_text_decoding(connection), connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def parse_time(stored: Any) -> datetime | None:
    """A stored time, whatever the driver makes of it; None where it is none."""
    if isinstance(stored, str):
        try:
            stored = datetime.fromisoformat(stored)
        except ValueError:
            return None
    if not isinstance(stored, datetime):
        return None
    return stored if stored.tzinfo else stored.replace(tzinfo=UTC)


def format_time(time: datetime | None) -> str | None:
    """ISO 8601 in UTC, with as many digits as the database keeps."""
    if time is None:
        return None
    if time.utcoffset():
        time = time.astimezone(UTC)
    return f"{time.replace(tzinfo=None).isoformat()}Z"
