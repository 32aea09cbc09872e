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

from analysis.data.flat.selection import COUNTED
from annotators.models import Assignment
from studies.stimuli.texts import TextRefused, clean_text

from .renderers import UNFIT, RowErrors, row_error

PAGE_SIZE = 100
MAX_PAGE_SIZE = 1000
LARGEST = 2**31 - 1


class BadParameter(ValueError):
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
    def described(self) -> OpenApiParameter:
        return OpenApiParameter(self.name, self.type, description=self.help, enum=self.enum or None)


def whole(minimum: int = 0, maximum: int = LARGEST) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or not minimum <= int(text) <= maximum:
            raise BadParameter(f"must be a whole number from {minimum} to {maximum}.")
        return int(text)

    return read


def words(text: str) -> str:
    try:
        name = clean_text(text, is_required=True, max_length=200)
    except TextRefused as refused:
        raise BadParameter(str(refused).partition(": ")[2]) from None
    if "\n" in name:
        raise BadParameter("must be one line.")
    return name


def one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise BadParameter(f"must be one of {', '.join(allowed)}.")
        return text

    return read


def yes(text: str) -> bool:
    return one_of("0", "1")(text) == "1"


def origins(text: str) -> tuple[str, ...]:
    """Origins by commas, in the order of the model, each once."""
    given = set(text.split(","))
    if not given <= set(Assignment.Origin.values):
        raise BadParameter(f"must be some of {', '.join(Assignment.Origin.values)}, by commas.")
    return tuple(origin for origin in Assignment.Origin.values if origin in given)


def cursor(parts: int) -> Callable[[str], tuple[int, ...]]:
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
            raise BadParameter("is none that this list gave: follow “next” as it is.")
        return tuple(key)

    return read


def cursor_of(key: Sequence[int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(list(key)).encode()).decode()


def paged(parts: int = 1) -> tuple[Parameter, ...]:
    return (
        Parameter("cursor", cursor(parts), "Where the page begins: from “next” of the page before.", (0,) * parts),
        Parameter("page_size", whole(1, MAX_PAGE_SIZE), f"Rows a page, at most {MAX_PAGE_SIZE}.", PAGE_SIZE, int),
    )


ORIGIN = Parameter(
    "origin",
    origins,
    f"Origins of the answers, by commas; {' and '.join(COUNTED)} when absent.",
    COUNTED,
)
WITHDRAWN = Parameter(
    "withdrawn", yes, "1: with the rows of people who withdrew, which no analysis uses.", False, str, ("0", "1")
)
RAW = Parameter(
    "raw", yes, "1: texts exactly as stored, also those that a spreadsheet runs as formulas.", False, str, ("0", "1")
)


def read_query(request, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The parameters of a request. What is unknown, given twice or not readable is refused, all of it at once."""
    known = {parameter.name: parameter for parameter in parameters}
    values = {parameter.name: parameter.default for parameter in parameters}
    errors = []
    for name, given in request.query_params.lists():
        try:
            if name not in known:
                raise BadParameter(f"There is no such parameter; there are: {', '.join(sorted(known)) or 'none'}.")
            if len(given) > 1:
                raise BadParameter("is given more than once.")
            values[name] = known[name].read(given[0])
        except BadParameter as bad:
            errors.append(row_error(None, name.encode("utf-8", "replace").decode()[:80], str(bad)))
    if errors:
        raise RowErrors(errors, words=UNFIT)
    return values


def page(request, values: Mapping[str, Any], rows: Sequence[tuple[Any, Any]], **more: Any) -> Response:
    """A page of a list: at most ``page_size`` of the (key, row) pairs, and the address of the next one, if there is any.

    ``rows`` must hold one more than the page where there is one.
    """
    size = values["page_size"]
    following = None
    if len(rows) > size:
        key = rows[size - 1][0]
        query = {name: text for name, text in request.query_params.items() if name != "cursor"}
        query["cursor"] = cursor_of(key if isinstance(key, tuple) else (key,))
        following = f"{settings.SITE_URL}{request.path}?{urlencode(query)}"
    return Response({"next": following, "results": [row for _, row in rows[:size]], **more})
