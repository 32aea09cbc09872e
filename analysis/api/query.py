"""Query parameters of the API, and what they do to lists: filters and pages. Unchecked values never reach a database query."""

import base64
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework.filters import BaseFilterBackend
from rest_framework.pagination import BasePagination
from rest_framework.response import Response

from analysis.data.flat_rows import COUNTED_ORIGINS
from annotators.models import Assignment
from studies.stimuli.texts import TextRefused, advice_on_unknown_name, clean_text

from .renderers import INVALID_REQUEST, RowErrors, row_error

PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000
MAX_INTEGER = 2**31 - 1


class BadQueryParameter(ValueError):
    """A query parameter is invalid. The message says what a valid value is."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter: its name, parser, description and default. ``lookup``: the lookup by which it filters a list."""

    name: str
    read: Callable[[str], Any]
    help: str
    default: Any = None
    type: type = str
    enum: tuple[str, ...] = ()
    lookup: str = ""
    # The rows of a study that the parameter names, and what a row is called, so that a misspelt name is refused.
    named: Callable[[Any, Any], Any] | None = None

    @property
    def openapi(self) -> OpenApiParameter:
        return OpenApiParameter(self.name, self.type, description=self.help, enum=self.enum or None)


def integer_parser(minimum: int = 0, maximum: int = MAX_INTEGER) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or not minimum <= int(text) <= maximum:
            raise BadQueryParameter(
                f"This parameter must be an integer from {minimum} to {maximum}. Correct its value."
            )
        return int(text)

    return read


def number_parser(maximum: float = 1e12) -> Callable[[str], float]:
    def read(text: str) -> float:
        if (
            not re.fullmatch(r"[0-9]{0,15}(\.[0-9]{0,15})?", text, re.ASCII)
            or not text.strip(".")
            or float(text) > maximum
        ):
            raise BadQueryParameter("This parameter must be a decimal number of at least 0. Correct its value.")
        return float(text)

    return read


def parse_single_line(text: str) -> str:
    try:
        name = clean_text(text, is_required=True, max_length=200)
    except TextRefused as refused:
        raise BadQueryParameter(f"This parameter {str(refused).partition(': ')[2]}") from None
    if "\n" in name:
        raise BadQueryParameter("This parameter contains a line break. Send one line of text.")
    return name


def choice_parser(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise BadQueryParameter(f"This parameter must be one of {', '.join(allowed)}. Correct its value.")
        return text

    return read


def parse_flag(text: str) -> bool:
    return choice_parser("0", "1")(text) == "1"


def parse_origins(text: str) -> tuple[str, ...]:
    """Parse origins separated by commas. Return each once, in the order of the model."""
    given = set(text.split(","))
    if not given <= set(Assignment.Origin.values):
        raise BadQueryParameter(
            f"This parameter must be one or more of {', '.join(Assignment.Origin.values)}, separated by commas. "
            "Correct its value."
        )
    return tuple(origin for origin in Assignment.Origin.values if origin in given)


def cursor_parser(n_key_parts: int) -> Callable[[str], tuple[int, ...]]:
    def read(text: str) -> tuple[int, ...]:
        try:
            key = (
                json.loads(base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True))
                if len(text) < 100
                else None
            )
        except (ValueError, RecursionError):
            key = None
        if not (
            isinstance(key, list) and len(key) == n_key_parts and all(type(n) is int and 0 <= n < 2**63 for n in key)
        ):
            raise BadQueryParameter("This is not a cursor of this list. Use the address in “next” unchanged.")
        return tuple(key)

    return read


def encode_cursor(key: Sequence[int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(key)).encode()).decode()


def page_parameters(n_key_parts: int = 1) -> tuple[Parameter, ...]:
    return (
        Parameter(
            "cursor",
            cursor_parser(n_key_parts),
            "Start of the page. Take it from “next” of the previous page.",
            (0,) * n_key_parts,
        ),
        Parameter(
            "page_size", integer_parser(1, MAX_PAGE_SIZE), f"Rows per page, at most {MAX_PAGE_SIZE}.", PAGE_SIZE, int
        ),
    )


def text_filter(
    name: str, lookup: str, help: str, enum: tuple[str, ...] = (), named: Callable[[Any, Any], Any] | None = None
) -> Parameter:
    return Parameter(
        name, choice_parser(*enum) if enum else parse_single_line, help, enum=enum, lookup=lookup, named=named
    )


def integer_filter(
    name: str,
    lookup: str,
    help: str,
    minimum: int = 0,
    maximum: int = MAX_INTEGER,
    named: Callable[[Any, Any], Any] | None = None,
) -> Parameter:
    return Parameter(name, integer_parser(minimum, maximum), help, type=int, lookup=lookup, named=named)


def rows_of(relation: str, column: str) -> Callable[[Any, Any], Any]:
    """Return a function that finds the rows of a study by the value of a column."""
    return lambda study, value: getattr(study, relation).filter(**{column: value})


def refuse_unknown_names(study: Any, parameters: Sequence[Parameter], values: dict[str, Any]) -> None:
    """Raise RowErrors if a filter names what the study does not have. An empty list would look like an answer."""
    errors = [
        row_error(
            None,
            one.name,
            f"The study has no {one.name} “{values[one.name]}”. Correct the name, or leave the parameter out.",
        )
        for one in parameters
        if one.named and values[one.name] is not None and not one.named(study, values[one.name]).exists()
    ]
    if errors:
        raise RowErrors(errors, detail=INVALID_REQUEST)


ORIGINS = Parameter(
    "origins",
    parse_origins,
    f"Origins of the answers, separated by commas. Default: {' and '.join(COUNTED_ORIGINS)}.",
    COUNTED_ORIGINS,
)
WITHDRAWN = Parameter(
    "withdrawn", parse_flag, "1: include rows of withdrawn annotators, which no analysis uses.", False, str, ("0", "1")
)
RAW = Parameter(
    "raw",
    parse_flag,
    "1: return texts exactly as stored, including texts that a spreadsheet would run as formulas.",
    False,
    str,
    ("0", "1"),
)


def read_query(request, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the parameters of a request. Raises RowErrors, which names every unknown, repeated or invalid parameter."""
    known = {parameter.name: parameter for parameter in parameters}
    values = {parameter.name: parameter.default for parameter in parameters}
    errors = []
    for name, given in request.query_params.lists():
        try:
            if name not in known:
                raise BadQueryParameter(
                    f"This address has no such parameter. {advice_on_unknown_name(name, known)} Known parameters: {', '.join(sorted(known)) or 'none'}."
                )
            if len(given) > 1:
                raise BadQueryParameter("This parameter is given more than once. Send it once.")
            values[name] = known[name].read(given[0])
        except BadQueryParameter as bad:
            errors.append(row_error(None, name.encode("utf-8", "replace").decode()[:80], str(bad)))
    if errors:
        raise RowErrors(errors, detail=INVALID_REQUEST)
    return values


class ParameterFilter(BaseFilterBackend):
    """Filter a list by the parameters that have a ``lookup`` and were sent."""

    def filter_queryset(self, request, queryset, view):
        sent = {one.lookup: view.values[one.name] for one in view.parameters if one.lookup}
        chosen = {lookup: value for lookup, value in sent.items() if value is not None}
        return queryset.filter(**chosen) if chosen else queryset


class KeyPagination(BasePagination):
    """Pages in the order of a column with unique values, the view's ``page_key``. A cursor is the key of the last row of a page."""

    parameters = page_parameters()

    def paginate_queryset(self, queryset, request, view=None):
        key = view.page_key
        rows = queryset.filter(**{f"{key}__gt": view.values["cursor"][0]}).order_by(key)
        return self.paginate_keyed_rows([(getattr(row, key), row) for row in rows[: view.rows_needed]], view)

    def paginate_keyed_rows(self, keyed_rows: Sequence[tuple[Any, Any]], view) -> list[Any]:
        """Return the rows of (key, row) pairs, of which there is one more than a page has if there is a next page."""
        size = view.values["page_size"]
        self.next = None
        if len(keyed_rows) > size:
            key = keyed_rows[size - 1][0]
            query = {name: text for name, text in view.request.query_params.items() if name != "cursor"}
            query["cursor"] = encode_cursor(key if isinstance(key, tuple) else (key,))
            self.next = f"{settings.SITE_URL}{view.request.path}?{urlencode(query)}"
        return [row for _, row in keyed_rows[:size]]

    def get_paginated_response(self, data):
        return Response({"next": self.next, "results": data})


class PairPagination(KeyPagination):
    """Pages of rows whose key is a pair of numbers."""

    parameters = page_parameters(2)
