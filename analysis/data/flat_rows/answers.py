"""Build the answer cells of response rows in the database. SQLite and PostgreSQL must give the same cells."""

from collections.abc import Sequence

from django.db import connections
from django.db.models import Case, Count, Exists, F, Func, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast

from studies.stimuli.spreadsheet import FORMULA_STARTS

from .assignment_rows import AssignmentRow
from .cells import fetch_raw_rows_from_default_db
from .columns import ANSWER_COLUMNS, Column
from .selection import Selection, assignment_pseudonym

MAX_PROBLEMS = 100
APOSTROPHE = "''''"  # an SQL literal
# Texts that heval itself writes. They are never empty and need no guard.
TRUSTED_TEXT_COLUMNS = frozenset({"protocol", "purpose", "item_kind", "slot"})
MAX_STORED_VALUE = 10**10  # a stored value has ten digits before the point


class _Value(Func):
    """A stored value as a number, or NULL if the cell is not a number."""

    def as_postgresql(self, compiler, connection, **context):
        return self.as_sql(compiler, connection, template="trim_scale(NULLIF(%(expressions)s, 'NaN'))", **context)

    def as_sqlite(self, compiler, connection, **context):
        template = (
            "CASE WHEN typeof(%(expressions)s) IN ('integer', 'real') AND abs(%(expressions)s) < "
            f"{MAX_STORED_VALUE} THEN %(expressions)s END"
        )
        return self.as_sql(compiler, connection, template=template, **context)


class _Text(Func):
    """A text, or NULL if it is empty."""

    template = "NULLIF(%(expressions)s, '')"


class _GuardedText(Func):
    """A text that a spreadsheet does not run as a formula, or NULL if it is empty."""

    # Compare the code of the first character: comparing texts a dozen times per row costs more than the rest of the row.
    cases = "".join(f" WHEN {ord(start)} THEN {APOSTROPHE} || %(expressions)s" for start in FORMULA_STARTS)
    template = f"CASE %(function)s(%(expressions)s){cases} WHEN 0 THEN NULL ELSE %(expressions)s END"
    function = "ascii"

    def as_sqlite(self, compiler, connection, **context):
        return self.as_sql(compiler, connection, function="unicode", **context)


class _Joined(Func):
    """Concatenate the parts. NULL if one is missing."""

    template = "(%(expressions)s)"
    arg_joiner = " || "


_ANSWER_PATHS = {
    "section": "question__section__position",
    "protocol": "question__section__protocol",
    "purpose": "question__section__purpose",
    "question": "question__key",
    "criterion": "question__criterion",
    "x": "question__x__name",
    "y": "question__y__name",
    "item_kind": "item__kind",
    "prompt": "item__prompt__key",
    "domain": "item__prompt__domain",
    "system": "exposure__output__system__name",
    "sample": "exposure__output__sample",
    "chosen_system": "chosen__output__system__name",
}


def _expression(column: Column, *, guarded: bool, as_numbers: bool):
    if column.name == "value":
        return _Value(F("value"))
    if column.name == "item":
        number = Cast("item__number", TextField())
        section = Cast("item__section__position", TextField())
        return _Joined(Value("s"), section, Value("."), number, output_field=TextField())
    if column.name == "is_erased":
        yes, no = (Value(1), Value(0)) if as_numbers else (Value(True), Value(False))
        return Case(When(erased_at__isnull=False, then=yes), default=no)
    path = F(_ANSWER_PATHS.get(column.name, column.name))
    if column.type != "text" or column.name in TRUSTED_TEXT_COLUMNS:
        return path
    return (_GuardedText if guarded else _Text)(path, output_field=TextField())


def answer_cells(responses: QuerySet, *, escape_formulas: bool, booleans_as_numbers: bool = True) -> QuerySet:
    """Return the cells that the database builds: assignment, time, then ``ANSWER_COLUMNS``, in stable order."""
    cells = {
        f"c_{c.name}": _expression(c, guarded=escape_formulas, as_numbers=booleans_as_numbers) for c in ANSWER_COLUMNS
    }
    rows = responses.order_by("assignment_id", "pk").annotate(**cells)
    return rows.values_list("assignment_id", "received_at", *cells)


def responses_of_assignment_chunk(selection: Selection, assignment_rows: Sequence[AssignmentRow]) -> QuerySet:
    """Return the answers of consecutive assignments. A range uses the index; a long list of keys does not."""
    return selection.responses.filter(
        assignment_id__gte=assignment_rows[0].pk, assignment_id__lte=assignment_rows[-1].pk
    )


def _unreadable() -> Q | Exists:
    if connections["default"].vendor == "postgresql":
        return Q(value=Value("NaN"))
    return Q(value__isnull=False, readable=None)


def find_damaged_cells(selection: Selection) -> tuple[int, list[dict[str, str]]]:
    """Return the number of answer cells that no page could have stored, and the first of them."""
    damaged = selection.responses.annotate(readable=_Value(F("value"))).filter(_unreadable())
    n = damaged.aggregate(n=Count("pk"))["n"]
    if not n:
        return 0, []
    first = damaged.order_by("assignment_id", "pk").values_list("assignment__code", "slot")[:MAX_PROBLEMS]
    return n, [
        {
            "assignment": assignment_pseudonym(code),
            "slot": slot,
            "column": "value",
            "message": "not a number; exported as empty",
        }
        for code, slot in fetch_raw_rows_from_default_db(first)
    ]
