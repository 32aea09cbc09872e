"""What may stand behind the question mark: fixed names, each with its own check. No parameter reaches a query by itself."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from analysis.data.flat_rows.selection import COUNTED_ORIGINS
from annotators.models import Assignment
from studies.stimuli.texts import TextRefused, clean_text

from .renderers import INVALID_REQUEST, RowErrors, row_error

PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000
MAX_INTEGER = 2**31 - 1


class BadQueryParameter(ValueError):
    """The message says what would be right."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter: its name, how it is read, what it is when absent."""

    name: str
    read: Callable[[str], Any]
    help: str
    default: Any = None
    type: type = str
    enum: tuple[str, ...] = ()

    @property
    def openapi(self) -> OpenApiParameter:
        return OpenApiParameter(self.name, self.type, description=self.help, enum=self.enum or None)


def integer_parser(minimum: int = 0, maximum: int = MAX_INTEGER) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or not minimum <= int(text) <= maximum:
            raise BadQueryParameter(f"must be a whole number from {minimum} to {maximum}.")
        return int(text)

    return read


def parse_line(text: str) -> str:
    try:
        name = clean_text(text, is_required=True, max_length=200)
    except TextRefused as refused:
        raise BadQueryParameter(str(refused).partition(": ")[2]) from None
    if "\n" in name:
        raise BadQueryParameter("must be one line.")
    return name


def choice_parser(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise BadQueryParameter(f"must be one of {', '.join(allowed)}.")
        return text

    return read


def parse_flag(text: str) -> bool:
    return choice_parser("0", "1")(text) == "1"


def parse_origins(text: str) -> tuple[str, ...]:
    """Origins by commas, in the order of the model, each once."""
    given = set(text.split(","))
    if not given <= set(Assignment.Origin.values):
        raise BadQueryParameter(f"must be some of {', '.join(Assignment.Origin.values)}, by commas.")
    return tuple(origin for origin in Assignment.Origin.values if origin in given)


def cursor_parser(parts: int) -> Callable[[str], tuple[int, ...]]:
    def read(text: str) -> tuple[int, ...]:
        try:
            key = (
                json.loads(base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True))
                if len(text) < 100
                else None
            )
        except (ValueError, RecursionError):
            key = None
        if not (isinstance(key, list) and len(key) == parts and all(type(n) is int and 0 <= n < 2**63 for n in key)):
            raise BadQueryParameter("is none that this list gave: follow “next” as it is.")
        return tuple(key)

    return read


def encode_cursor(key: Sequence[int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(key)).encode()).decode()


def page_parameters(parts: int = 1) -> tuple[Parameter, ...]:
    return (
        Parameter(
            "cursor", cursor_parser(parts), "Where the page begins: from “next” of the page before.", (0,) * parts
        ),
        Parameter(
            "page_size", integer_parser(1, MAX_PAGE_SIZE), f"Rows a page, at most {MAX_PAGE_SIZE}.", PAGE_SIZE, int
        ),
    )


ORIGIN = Parameter(
    "origin",
    parse_origins,
    f"Origins of the answers, by commas; {' and '.join(COUNTED_ORIGINS)} when absent.",
    COUNTED_ORIGINS,
)
WITHDRAWN = Parameter(
    "withdrawn", parse_flag, "1: with the rows of people who withdrew, which no analysis uses.", False, str, ("0", "1")
)
RAW = Parameter(
    "raw",
    parse_flag,
    "1: texts exactly as stored, also those that a spreadsheet runs as formulas.",
    False,
    str,
    ("0", "1"),
)


def read_query(request, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The parameters of a request. What is unknown, given twice or not readable is refused, all of it at once."""
    known = {parameter.name: parameter for parameter in parameters}
    values = {parameter.name: parameter.default for parameter in parameters}
    errors = []
    for name, given in request.query_params.lists():
        try:
            if name not in known:
                raise BadQueryParameter(f"There is no such parameter; there are: {', '.join(sorted(known)) or 'none'}.")
            if len(given) > 1:
                raise BadQueryParameter("is given more than once.")
            values[name] = known[name].read(given[0])
        except BadQueryParameter as bad:
            errors.append(row_error(None, name.encode("utf-8", "replace").decode()[:80], str(bad)))
    if errors:
        raise RowErrors(errors, detail=INVALID_REQUEST)
    return values


def page_response(request, values: Mapping[str, Any], rows: Sequence[tuple[Any, Any]], **more: Any) -> Response:
    """A page of a list: at most ``page_size`` of the (key, row) pairs, and the address of the next one, if there is any.

    ``rows`` must hold one more than the page where there is one.
    """
    size = values["page_size"]
    following = None
    if len(rows) > size:
        key = rows[size - 1][0]
        query = {name: text for name, text in request.query_params.items() if name != "cursor"}
        query["cursor"] = encode_cursor(key if isinstance(key, tuple) else (key,))
        following = f"{settings.SITE_URL}{request.path}?{urlencode(query)}"
    return Response({"next": following, "results": [row for _, row in rows[:size]], **more})
