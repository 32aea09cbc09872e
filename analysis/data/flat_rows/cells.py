"""Read rows as they are stored, without Django's converters, and format times in one way."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet

from analysis.data.snapshot import lenient_text_decoding


def compile_sql_for_default_db(queryset: QuerySet) -> tuple[str, Sequence[Any]]:
    """Return the queryset as SQL for the current default connection."""
    return queryset.query.get_compiler(connection=connections["default"]).as_sql()


def fetch_raw_rows_from_default_db(queryset: QuerySet) -> list[tuple]:
    """Return the stored values without the conversions of Django's fields."""
    try:
        sql, params = compile_sql_for_default_db(queryset)
    except EmptyResultSet:  # Django raises this for a queryset that cannot match any row
        return []
    connection = connections["default"]
    with lenient_text_decoding(connection), connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


def parse_time(stored: Any) -> datetime | None:
    """Return a stored time (text or datetime) as an aware datetime, or None if it is not a time."""
    if isinstance(stored, str):
        try:
            stored = datetime.fromisoformat(stored)
        except ValueError:
            return None
    if not isinstance(stored, datetime):
        return None
    return stored if stored.tzinfo else stored.replace(tzinfo=UTC)


def format_time(time: datetime | None) -> str | None:
    """Return the time as ISO 8601 in UTC, with the precision of the database."""
    if time is None:
        return None
    if time.utcoffset():
        time = time.astimezone(UTC)
    return f"{time.replace(tzinfo=None).isoformat()}Z"
