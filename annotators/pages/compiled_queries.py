"""Statements that Django compiles once.

The ORM builds and compiles a query anew each time: for a row by its key that takes several times as long as the database's
answer. The few statements of every page are still written in the ORM's words; they are compiled at their first use, and run
by a plain cursor from then on.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from types import NoneType
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import BigAutoField, CharField, Field, Model, TextField
from django.db.models.base import ModelState
from django.db.models.sql import UpdateQuery

SYNCHRONOUS_NORMAL = 1
INSERT_SQL = "{insert} VALUES {places}"
INSERT_OR_IGNORE_SQL = "{insert} VALUES {places} ON CONFLICT DO NOTHING"
# The same on PostgreSQL, without waiting for its disk.
INSERT_WITHOUT_FSYNC_SQL = (
    "WITH light AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) "
    "{insert} SELECT {row} FROM light ON CONFLICT DO NOTHING"
)
# The parts of a statement on PostgreSQL of which each waits for the one before it.
AFTER_UPDATE_SQL = " AND EXISTS (SELECT 1 FROM done{})"
INSERT_AFTER_UPDATE_SQL = "{{insert}} SELECT new.* FROM (VALUES {{places}}) AS new, done{}"
COUNT_UPDATED_SQL = "(SELECT count(*) FROM done{})"
# What stands for a value while a statement is compiled: found again among the parameters.
PLACEHOLDER_VALUES: dict[type, Callable[[int], Any]] = {
    int: lambda n: 7_310_000_000 + n,
    str: lambda n: f"stand-in {n}",
}
# Asking the field what to do with each value took longer than writing them.
UNCONVERTED_FIELDS: dict[type[Field], type] = {BigAutoField: int, CharField: str, TextField: str}


class _CompiledStatement:
    """``build`` takes a value of each of ``kinds`` and says what is asked or changed."""

    def __init__(self, build: Callable[..., Any], *kinds: type):
        self.build, self.kinds = build, kinds

    @cached_property
    def compiled(self) -> tuple[str, list[tuple[int | None, Any]], tuple]:
        """The statement, where each of its parameters comes from, and what makes Python's values of the database's."""
        stand_ins = [PLACEHOLDER_VALUES[kind](n) for n, kind in enumerate(self.kinds)]
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

    def parameters(self, values: Sequence[Any]) -> list[Any]:
        return [constant if place is None else values[place] for place, constant in self.compiled[1]]

    def run(self, cursor, values: Sequence[Any]) -> None:
        cursor.execute(self.compiled[0], self.parameters(values))


class CompiledSelect(_CompiledStatement):
    """``build`` gives a QuerySet of ``values_list``; calling gives its rows."""

    def __call__(self, *values: Any) -> list[tuple]:
        connection = connections[DEFAULT_DB_ALIAS]
        with connection.cursor() as cursor:
            self.run(cursor, values)
            rows = cursor.fetchall()
        converters = self.compiled[2]
        return [self._converted(row, converters, connection) for row in rows] if converters else rows

    @staticmethod
    def converters(compiler) -> tuple:
        return tuple(compiler.get_converters([selected for selected, *_ in compiler.select]).items())

    @staticmethod
    def _converted(row: tuple, converters: tuple, connection) -> tuple:
        values = list(row)
        for place, (functions, expression) in converters:
            for function in functions:
                values[place] = function(values[place], expression, connection)
        return tuple(values)


class CompiledUpdate(_CompiledStatement):
    """``build`` gives a QuerySet and the columns to set; calling gives the number of rows that it found."""

    def __call__(self, *values: Any) -> int:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            self.run(cursor, values)
            return cursor.rowcount

    @staticmethod
    def query(built):
        rows, columns = built
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(columns)
        return query


@lru_cache(maxsize=256)
def _insertion(model: type[Model], columns: tuple[str, ...], rows: int, statement: str, is_typed: bool = False) -> str:
    # Names of our own tables and columns, and nothing that came from outside.
    connection = connections[DEFAULT_DB_ALIAS]
    quoted = connection.ops.quote_name
    fields = [model._meta.get_field(name) for name in columns]
    names = ", ".join(quoted(field.column) for field in fields)
    # Kinds without their lengths: a cast to a length cuts words short and says nothing.
    row = ", ".join(f"%s::{field.db_type(connection).partition('(')[0]}" if is_typed else "%s" for field in fields)
    insert = f"INSERT INTO {quoted(model._meta.db_table)} ({names})"
    return statement.format(insert=insert, places=", ".join([f"({row})"] * rows), row=row)


def insert_missing_without_fsync(model: type[Model], columns: tuple[str, ...], row: Any) -> None:
    """Insert a row that is made again, the same, where it is missing: unless it is there, and without waiting for the disk.

    A power cut may lose it, as long as nothing that was written after it has reached the disk.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statement = _insertion(model, columns, 1, INSERT_WITHOUT_FSYNC_SQL)
            cursor.execute(statement, _values(model, columns, [row], connection))
            return
        statement = _insertion(model, columns, 1, INSERT_OR_IGNORE_SQL)
        values = _values(model, columns, [row], connection)
        database = connection.connection
        kept = database.execute("PRAGMA synchronous").fetchone()[0]
        # Within a transaction SQLite refuses to change it, and there it is the transaction's own commit that waits.
        if connection.in_atomic_block or kept <= SYNCHRONOUS_NORMAL:
            cursor.execute(statement, values)
            return
        database.execute(f"PRAGMA synchronous={SYNCHRONOUS_NORMAL}")
        try:
            cursor.execute(statement, values)
        finally:
            database.execute(f"PRAGMA synchronous={kept}")


def update_then_insert(
    updates: Sequence[tuple[CompiledUpdate, tuple]], model: type[Model], columns: tuple[str, ...], rows: Iterable[Any]
) -> int:
    """Change one row after the other, each with its values, then insert rows: as far as each update finds its row. Says how many did.

    Whoever comes second waits at the first row. What was changed before an update that found nothing stays, unless a
    transaction around is rolled back. One statement on PostgreSQL, where sending one costs as much as what it does.
    ``columns`` of the new rows are written, the database's own defaults fill the others; a row is whatever has the columns'
    values under their names: an instance of the model, or less.
    """
    rows = list(rows)
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == "postgresql":
        statement = _chain(tuple(update for update, _ in updates), model, columns, len(rows))
        parameters = [one for update, values in updates for one in update.parameters(values)]
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters + _values(model, columns, rows, connection))
            return sum(cursor.fetchone())
    with transaction.atomic(savepoint=False):
        for done, (update, values) in enumerate(updates):
            if not update(*values):
                return done
        if rows:
            with connection.cursor() as cursor:
                statement = _insertion(model, columns, len(rows), INSERT_SQL)
                cursor.execute(statement, _values(model, columns, rows, connection))
    return len(updates)


@lru_cache(maxsize=256)
def _chain(updates: tuple[CompiledUpdate, ...], model: type[Model], columns: tuple[str, ...], rows: int) -> str:
    parts = []
    for number, update in enumerate(updates):
        after = AFTER_UPDATE_SQL.format(number - 1) if number else ""
        parts.append(f"done{number} AS ({update.compiled[0]}{after} RETURNING 1)")
    if rows:
        # In a list of values that is chosen from, nothing else says of what kind an empty one is.
        insertion = _insertion(model, columns, rows, INSERT_AFTER_UPDATE_SQL.format(len(updates) - 1), is_typed=True)
        parts.append(f"written AS ({insertion})")
    return f"WITH {', '.join(parts)} SELECT {', '.join(COUNT_UPDATED_SQL.format(number) for number in range(len(updates)))}"


@lru_cache(maxsize=64)
def _fields(model: type[Model], columns: tuple[str, ...]) -> tuple[tuple[str, Field, type], ...]:
    """Under what name a row has each value, the field that knows how the database takes it (of a link, what it leads to), and
    of what type a value is taken as it is."""
    fields = [model._meta.get_field(name) for name in columns]
    known = [(field.attname, field.target_field if field.is_relation else field) for field in fields]
    return tuple((name, field, UNCONVERTED_FIELDS.get(type(field), NoneType)) for name, field in known)


def _values(model: type[Model], columns: tuple[str, ...], rows: Iterable[Any], connection) -> list[Any]:
    fields = _fields(model, columns)
    return [
        value if value is None or type(value) is plain else field.get_db_prep_save(value, connection)
        for row in rows
        for name, field, plain in fields
        for value in (getattr(row, name),)
    ]


def instance_from_row(model: type[Model], columns: Sequence[str], row: Iterable[Any]) -> Any:
    """An instance with these columns, as ``from_db`` makes it: any other column is read when it is asked for.

    ``from_db`` goes through all fields of the model and sends two signals, which took longer than the query.
    """
    made = model.__new__(model)
    made.__dict__.update(zip(columns, row, strict=True))
    made._state = ModelState()
    made._state.adding, made._state.db = False, DEFAULT_DB_ALIAS
    return made


def columns_of(model: type[Model], *names: str) -> tuple[str, ...]:
    """These columns, or all, in the order of the model."""
    found = tuple(field.attname for field in model._meta.concrete_fields if not names or field.attname in names)
    if unknown := set(names) - set(found):
        raise ValueError(f"{model.__name__} has no {', '.join(sorted(unknown))}")
    return found
