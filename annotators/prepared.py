"""Statements that Django compiles once.

The ORM builds and compiles a query anew each time: for a row by its key that takes several times as long as the database's
answer. The few statements of every page are still written in the ORM's words; they are compiled at their first use, and run
by a plain cursor from then on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model
from django.db.models.sql import UpdateQuery

SYNCHRONOUS_NORMAL = 1
# What stands for a value while a statement is compiled: found again among the parameters.
STAND_INS: dict[type, Callable[[int], Any]] = {int: lambda n: 7_310_000_000 + n, str: lambda n: f"stand-in {n}"}


class _Prepared:
    """``build`` takes a value of each of ``kinds`` and says what is asked or changed."""

    def __init__(self, build: Callable[..., Any], *kinds: type):
        self.build, self.kinds = build, kinds

    @cached_property
    def compiled(self) -> tuple[str, list[tuple[int | None, Any]], tuple]:
        """The statement, where each of its parameters comes from, and what makes Python's values of the database's."""
        stand_ins = [STAND_INS[kind](n) for n, kind in enumerate(self.kinds)]
        compiler = self.query(self.build(*stand_ins)).get_compiler(DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        origins = [(stand_ins.index(one), None) if one in stand_ins else (None, one) for one in parameters]
        if {place for place, _ in origins if place is not None} != set(range(len(stand_ins))):
            raise ValueError(f"A value does not reach its statement as it is: {sql}")
        return sql, origins, self.converters(compiler)

    @staticmethod
    def query(built):
        return built.query

    @staticmethod
    def converters(compiler) -> tuple:
        return ()

    def run(self, cursor, values: Sequence[Any]) -> None:
        sql, origins, _ = self.compiled
        cursor.execute(sql, [constant if place is None else values[place] for place, constant in origins])


class Select(_Prepared):
    """``build`` gives a QuerySet of ``values_list``; calling gives its rows."""

    def __call__(self, *values: Any) -> list[tuple]:
        with connection.cursor() as cursor:
            self.run(cursor, values)
            rows = cursor.fetchall()
        converters = self.compiled[2]
        return [self._converted(row, converters) for row in rows] if converters else rows

    @staticmethod
    def converters(compiler) -> tuple:
        return tuple(compiler.get_converters([selected for selected, *_ in compiler.select]).items())

    @staticmethod
    def _converted(row: tuple, converters: tuple) -> tuple:
        values = list(row)
        for place, (functions, expression) in converters:
            for function in functions:
                values[place] = function(values[place], expression, connection)
        return tuple(values)


class Update(_Prepared):
    """``build`` gives a QuerySet and the columns to set; calling gives the number of rows that it found."""

    def __call__(self, *values: Any) -> int:
        with connection.cursor() as cursor:
            self.run(cursor, values)
            return cursor.rowcount

    @staticmethod
    def query(built):
        rows, columns = built
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(columns)
        return query


@lru_cache(maxsize=256)
def _insertion(model: type[Model], columns: tuple[str, ...], rows: int, statement: str) -> str:
    # Names of our own tables and columns, and nothing that came from outside.
    quoted = connection.ops.quote_name
    names = ", ".join(quoted(model._meta.get_field(name).column) for name in columns)
    row = ", ".join(["%s"] * len(columns))
    insert = f"INSERT INTO {quoted(model._meta.db_table)} ({names})"
    return statement.format(insert=insert, places=", ".join([f"({row})"] * rows), row=row)


def insert(model: type[Model], columns: tuple[str, ...], rows: Iterable[Any]) -> None:
    """Insert these columns of new rows, in one statement; the database's own defaults fill the others.

    A row is whatever has the columns' values under their names: an instance of the model, or less.
    """
    rows = list(rows)
    if rows:
        with connection.cursor() as cursor:
            cursor.execute(
                _insertion(model, columns, len(rows), "{insert} VALUES {places}"), _values(model, columns, rows)
            )


def insert_lightly(model: type[Model], columns: tuple[str, ...], row: Any) -> None:
    """Insert a row that is made again, the same, where it is missing: unless it is there, and without waiting for the disk.

    A power cut may lose it, as long as nothing that was written after it has reached the disk.
    """
    with connection.cursor() as cursor, _unawaited() as statement:
        sql = _insertion(model, columns, 1, f"{statement} ON CONFLICT DO NOTHING")
        cursor.execute(sql, _values(model, columns, [row]))


@contextmanager
def _unawaited() -> Iterator[str]:
    """Statements in here, outside a transaction, do not wait for the disk. Gives the form of an insertion."""
    if connection.vendor == "postgresql":
        yield "WITH light AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) {insert} SELECT {row} FROM light"
        return
    database = connection.connection
    kept = database.execute("PRAGMA synchronous").fetchone()[0]
    # Within a transaction SQLite refuses to change it, and there it is the transaction's own commit that waits.
    is_ours = not connection.in_atomic_block and kept > SYNCHRONOUS_NORMAL
    if is_ours:
        database.execute(f"PRAGMA synchronous={SYNCHRONOUS_NORMAL}")
    try:
        yield "{insert} VALUES {places}"
    finally:
        if is_ours:
            database.execute(f"PRAGMA synchronous={kept}")


def _values(model: type[Model], columns: tuple[str, ...], rows: Iterable[Any]) -> list[Any]:
    fields = [model._meta.get_field(name) for name in columns]
    return [field.get_db_prep_save(getattr(row, field.attname), connection) for row in rows for field in fields]


def columns_of(model: type[Model], *names: str) -> tuple[str, ...]:
    """These columns, or all, in the order in which ``from_db`` takes their values."""
    found = tuple(field.attname for field in model._meta.concrete_fields if not names or field.attname in names)
    if unknown := set(names) - set(found):
        raise ValueError(f"{model.__name__} has no {', '.join(sorted(unknown))}")
    return found
