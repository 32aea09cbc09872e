"""The SQL statements of annotators' pages, which Django compiles only once.

The ORM builds and compiles each query again. For one row by its key, this takes several times as long as the database's
answer. The few statements of every page are still written with the ORM. They are compiled at their first use, and run by
a plain cursor from then on.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import NOT_PROVIDED, Field, Model
from django.db.models.base import ModelState
from django.db.models.expressions import DatabaseDefault
from django.db.models.sql import InsertQuery, UpdateQuery

SYNCHRONOUS_NORMAL = 1
INSERT_SQL = "{insert} VALUES {places}"
INSERT_RETURNING_SQL = "INSERT INTO {} ({}) VALUES ({}) RETURNING {}"
INSERT_OR_IGNORE_SQL = "{insert} VALUES {places} ON CONFLICT DO NOTHING"
INSERT_OR_IGNORE_RETURNING_SQL = INSERT_OR_IGNORE_SQL + " RETURNING id"
# The same on PostgreSQL, without a wait for its disk.
INSERT_WITHOUT_FSYNC_SQL = (
    "WITH light AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) "
    "{insert} SELECT {row} FROM light ON CONFLICT DO NOTHING"
)
# Parts of a PostgreSQL statement. Each part runs only if the part before it changed a row.
AFTER_UPDATE_SQL = " AND EXISTS (SELECT 1 FROM done{})"
INSERT_AFTER_UPDATE_SQL = "{{insert}} SELECT new.* FROM (VALUES {{places}}) AS new, done{}"
COUNT_UPDATED_SQL = "(SELECT count(*) FROM done{})"
# Stand-ins for values while a statement is compiled. They are recognised among the compiled parameters.
PLACEHOLDER_VALUES: dict[type, Callable[[int], Any]] = {
    int: lambda n: 7_310_000_000 + n,
    str: lambda n: f"stand-in {n}",
}


class _CompiledStatement:
    """A statement that is compiled once.

    ``build`` takes one value of each type in ``kinds`` and returns the ORM's query.
    """

    def __init__(self, build: Callable[..., Any], *kinds: type):
        self.build, self.kinds = build, kinds

    @cached_property
    def compiled(self) -> tuple[str, list[tuple[int | None, Any]], tuple]:
        """Return the SQL, the origin of each parameter, and the converters from database values to Python values."""
        stand_ins = [PLACEHOLDER_VALUES[kind](n) for n, kind in enumerate(self.kinds)]
        compiler = self.query(self.build(*stand_ins)).get_compiler(DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        origins: list[tuple[int | None, Any]] = [
            (stand_ins.index(value), None) if value in stand_ins else (None, value) for value in parameters
        ]
        if {index for index, _ in origins if index is not None} != set(range(len(stand_ins))):
            raise ValueError(f"The ORM converts a value of this statement, so it cannot be compiled once: {sql}")
        return sql, origins, self.converters(compiler)

    @staticmethod
    def query(built):
        return built.query

    @staticmethod
    def converters(compiler) -> tuple:
        return ()

    def parameters(self, values: Sequence[Any]) -> list[Any]:
        return [constant if index is None else values[index] for index, constant in self.compiled[1]]

    def run(self, cursor, values: Sequence[Any]) -> None:
        cursor.execute(self.compiled[0], self.parameters(values))


class CompiledSelect(_CompiledStatement):
    """A SELECT. ``build`` returns a QuerySet with ``values_list``; a call returns its rows."""

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
        for index, (functions, expression) in converters:
            for function in functions:
                values[index] = function(values[index], expression, connection)
        return tuple(values)


class CompiledUpdate(_CompiledStatement):
    """An UPDATE. ``build`` returns a QuerySet and the columns to set; a call returns the number of matching rows."""

    def __call__(self, *values: Any) -> int:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            self.run(cursor, values)
            return cursor.rowcount

    def key_of_changed_row(self, *values: Any) -> int | None:
        """Change at most one row, and return its primary key, or None if no row matched."""
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute(f"{self.compiled[0]} RETURNING id", self.parameters(values))
            changed = cursor.fetchone()
        return changed and changed[0]

    @staticmethod
    def query(built):
        rows, columns = built
        query = rows.query.chain(UpdateQuery)
        query.add_update_values(columns)
        return query


def _column(model: type[Model], name: str) -> Field:
    field = model._meta.get_field(name)
    if not isinstance(field, Field):
        raise TypeError(f"{model.__name__}.{name} is not a column.")
    return field


@lru_cache(maxsize=256)
def _insert_sql(model: type[Model], columns: tuple[str, ...], rows: int, statement: str, is_typed: bool = False) -> str:
    # The SQL contains only names of our own tables and columns, never input from outside.
    connection = connections[DEFAULT_DB_ALIAS]
    quoted = connection.ops.quote_name
    fields = [_column(model, name) for name in columns]
    names = ", ".join(quoted(str(field.column)) for field in fields)
    # Types without their lengths, because a cast to a type with a length silently truncates texts.
    row = ", ".join(f"%s::{str(field.db_type(connection)).partition('(')[0]}" if is_typed else "%s" for field in fields)
    insert = f"INSERT INTO {quoted(model._meta.db_table)} ({names})"
    return statement.format(insert=insert, places=", ".join([f"({row})"] * rows), row=row)


def insert_and_read_back(row: Model, *names: str) -> None:
    """Insert an instance with one statement, and set its key and these columns to the values that the database gave them.

    ``save`` sends signals and leaves expressions in the instance, so that their values need a query of their own. The
    database fills the columns without a value. Only expressions are compiled each time.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    compiler = InsertQuery(type(row)).get_compiler(DEFAULT_DB_ALIAS)
    columns, parameters = [], list[Any]()
    for field in row._meta.concrete_fields:
        value = getattr(row, field.attname)
        if isinstance(value, DatabaseDefault) or (value is None and field.db_default is NOT_PROVIDED):
            continue
        if hasattr(value, "resolve_expression"):
            sql, expressed = compiler.compile(value.resolve_expression(compiler.query))
            parameters += expressed
        else:
            sql = "%s"
            parameters.append(field.get_db_prep_save(value, connection))
        columns.append((field.column, sql))
    with connection.cursor() as cursor:
        cursor.execute(_insert_returning_sql(type(row), tuple(columns), names), parameters)
        returned = cursor.fetchone()
    values = CompiledSelect._converted(returned, _converters(type(row), names), connection)
    row.__dict__.update(zip(("id", *names), values, strict=True))
    row._state.adding, row._state.db = False, DEFAULT_DB_ALIAS


@lru_cache(maxsize=256)
def _insert_returning_sql(model: type[Model], columns: tuple[tuple[str, str], ...], names: tuple[str, ...]) -> str:
    quoted = connections[DEFAULT_DB_ALIAS].ops.quote_name
    into = ", ".join(quoted(column) for column, _ in columns)
    returned = ", ".join(quoted(str(_column(model, name).column)) for name in ("id", *names))
    values = ", ".join(sql for _, sql in columns)
    return INSERT_RETURNING_SQL.format(quoted(model._meta.db_table), into, values, returned)


@lru_cache(maxsize=256)
def _converters(model: type[Model], names: tuple[str, ...]) -> tuple:
    columns = [_column(model, name).get_col(model._meta.db_table) for name in ("id", *names)]
    return tuple(InsertQuery(model).get_compiler(DEFAULT_DB_ALIAS).get_converters(columns).items())


def insert_missing(model: type[Model], columns: tuple[str, ...], row: Any) -> int | None:
    """Insert a row and return its primary key, or None if a unique constraint has it already.

    The ORM returns no key of a row that it may have ignored. A second request waits for the first one's transaction.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        statement = _insert_sql(model, columns, 1, INSERT_OR_IGNORE_RETURNING_SQL)
        cursor.execute(statement, _values(model, columns, [row], connection))
        inserted = cursor.fetchone()
    return inserted and inserted[0]


def insert_missing_without_fsync(model: type[Model], columns: tuple[str, ...], row: Any) -> None:
    """Insert a row if it is missing, without a wait for the disk. Use it only for rows that can be made again.

    A power cut may lose the row until something that was written later has reached the disk.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            statement = _insert_sql(model, columns, 1, INSERT_WITHOUT_FSYNC_SQL)
            cursor.execute(statement, _values(model, columns, [row], connection))
            return
        statement = _insert_sql(model, columns, 1, INSERT_OR_IGNORE_SQL)
        values = _values(model, columns, [row], connection)
        database = connection.connection
        previous = database.execute("PRAGMA synchronous").fetchone()[0]
        # SQLite does not change this within a transaction. There, the transaction's commit waits for the disk anyway.
        if connection.in_atomic_block or previous <= SYNCHRONOUS_NORMAL:
            cursor.execute(statement, values)
            return
        database.execute(f"PRAGMA synchronous={SYNCHRONOUS_NORMAL}")
        try:
            cursor.execute(statement, values)
        finally:
            database.execute(f"PRAGMA synchronous={previous}")


def update_then_insert_if_all_matched(
    updates: Sequence[tuple[CompiledUpdate, tuple]], model: type[Model], columns: tuple[str, ...], rows: Iterable[Any]
) -> int:
    """Run the updates one after the other, then insert the rows; stop at the first update that finds no row.

    Return the number of updates that found their row. A second request waits at the first row. Changes before an update
    that found nothing stay, unless the caller rolls back. On PostgreSQL this is one statement, because sending a
    statement costs as much as running it. Only ``columns`` of the new rows are written; the database's defaults fill
    the others. A row is any object with these columns as attributes, such as an instance of the model.
    """
    rows = list(rows)
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor == "postgresql":
        statement = _chained_sql(tuple(update for update, _ in updates), model, columns, len(rows))
        parameters = [parameter for update, values in updates for parameter in update.parameters(values)]
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters + _values(model, columns, rows, connection))
            return sum(cursor.fetchone())
    with transaction.atomic(savepoint=False):
        for n_done, (update, values) in enumerate(updates):
            if not update(*values):
                return n_done
        if rows:
            with connection.cursor() as cursor:
                statement = _insert_sql(model, columns, len(rows), INSERT_SQL)
                cursor.execute(statement, _values(model, columns, rows, connection))
    return len(updates)


@lru_cache(maxsize=256)
def _chained_sql(updates: tuple[CompiledUpdate, ...], model: type[Model], columns: tuple[str, ...], rows: int) -> str:
    parts = []
    for number, update in enumerate(updates):
        after = AFTER_UPDATE_SQL.format(number - 1) if number else ""
        parts.append(f"done{number} AS ({update.compiled[0]}{after} RETURNING 1)")
    if rows:
        # In a SELECT from VALUES, PostgreSQL cannot infer the type of NULL, so each value is cast.
        insertion = _insert_sql(model, columns, rows, INSERT_AFTER_UPDATE_SQL.format(len(updates) - 1), is_typed=True)
        parts.append(f"written AS ({insertion})")
    return f"WITH {', '.join(parts)} SELECT {', '.join(COUNT_UPDATED_SQL.format(number) for number in range(len(updates)))}"


def _values(model: type[Model], columns: tuple[str, ...], rows: Iterable[Any], connection) -> list[Any]:
    fields = [_column(model, name) for name in columns]
    return [field.get_db_prep_save(getattr(row, field.attname), connection) for row in rows for field in fields]


def instance_from_row(model: type[Model], columns: Sequence[str], row: Iterable[Any]) -> Any:
    """Return an instance with these columns, as ``from_db`` does. Other columns are loaded on access.

    ``from_db`` goes through all fields of the model and sends two signals, which took longer than the query.
    """
    instance = model.__new__(model)
    instance.__dict__.update(zip(columns, row, strict=True))
    instance._state = ModelState()
    instance._state.adding, instance._state.db = False, DEFAULT_DB_ALIAS
    return instance


def columns_in_model_order(model: type[Model], *names: str) -> tuple[str, ...]:
    """Return these columns, or all columns, in the order of the model. Raises ValueError for an unknown name."""
    columns = tuple(field.attname for field in model._meta.concrete_fields if not names or field.attname in names)
    if unknown := set(names) - set(columns):
        raise ValueError(f"{model.__name__} has no {', '.join(sorted(unknown))}")
    return columns
