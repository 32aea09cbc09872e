"""Queries that Django compiles once.

The ORM builds and compiles a query anew each time it is asked: for a row by its key that takes several times as long as the
database's answer. The few queries that every page asks are still written in the ORM's words, compiled at their first use,
and run by a plain cursor from then on.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model, QuerySet

# What stands for a value while a query is compiled: found again among the parameters.
STAND_INS: dict[type, Callable[[int], Any]] = {int: lambda n: 7_310_000_000 + n, str: lambda n: f"stand-in {n}"}


class Prepared:
    """``build`` takes a value of each of ``kinds`` and gives a QuerySet of ``values_list``; calling gives its rows."""

    def __init__(self, build: Callable[..., QuerySet], *kinds: type):
        self.build, self.kinds = build, kinds

    def __call__(self, *values: Any) -> list[tuple]:
        sql, parameters, converters = self._compiled
        with connection.cursor() as cursor:
            cursor.execute(sql, [values[place] if place is not None else constant for place, constant in parameters])
            rows = cursor.fetchall()
        return [self._converted(row, converters) for row in rows] if converters else rows

    @staticmethod
    def _converted(row: tuple, converters) -> tuple:
        values = list(row)
        for place, (functions, expression) in converters:
            for function in functions:
                values[place] = function(values[place], expression, connection)
        return tuple(values)

    @cached_property
    def _compiled(self):
        """The statement, where each of its parameters comes from, and what makes Python's values of the database's."""
        stand_ins = [STAND_INS[kind](n) for n, kind in enumerate(self.kinds)]
        compiler = self.build(*stand_ins).query.get_compiler(DEFAULT_DB_ALIAS)
        sql, parameters = compiler.as_sql()
        converters = compiler.get_converters([selected for selected, *_ in compiler.select])
        origins = [(stand_ins.index(one), None) if one in stand_ins else (None, one) for one in parameters]
        return sql, origins, tuple(converters.items())


def columns_of(model: type[Model], *names: str) -> tuple[str, ...]:
    """These columns, or all, in the order in which ``from_db`` takes their values."""
    found = tuple(field.attname for field in model._meta.concrete_fields if not names or field.attname in names)
    if unknown := set(names) - set(found):
        raise ValueError(f"{model.__name__} has no {', '.join(sorted(unknown))}")
    return found
