"""The page of addresses: the patterns of the URLs; what is there from the views' docstrings and addresses.toml."""

import re
from collections.abc import Callable, Iterable, Iterator

from django.urls import URLPattern, URLResolver, get_resolver

from .markdown import APPS, code, page_of, sentence, table, words_of

ADDRESSES: dict[str, str] = words_of("addresses")


def addresses() -> list[tuple[str, str, str]]:
    """(path, name, first line of the view's words) of every address, without Django's own pages of the admin."""
    return sorted(_walked(get_resolver(), ""), key=lambda row: (_rank(row[0]), row[0]))


def _rank(path: str) -> int:
    starts = ("e/", "p/", "admin/", "api/", "docs/")
    return next((number for number, start in enumerate(starts) if path.startswith(start)), len(starts))


def _walked(resolver: URLResolver, before: str) -> Iterator[tuple[str, str, str]]:
    for pattern in resolver.url_patterns:
        path = before + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLResolver):
            yield from _walked(pattern, path)
        elif _is_listed(pattern, path):
            yield _tidy(path), pattern.name or "", _view_words(pattern)


_DJANGO = re.compile(r"_(add|change|changelist|delete|history)$")


def _is_listed(pattern: URLPattern, path: str) -> bool:
    if not path.startswith("admin/"):
        return bool(pattern.name)
    own = pattern.name and pattern.name.startswith(tuple(f"{app}_" for app in APPS))
    return bool(own) and not _DJANGO.search(pattern.name)


def _tidy(path: str) -> str:
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"<\1>", path)
    return path.replace("\\Z", "").replace("$", "").replace("\\", "")


def _view_words(pattern: URLPattern) -> str:
    if pattern.name in ADDRESSES:
        return ADDRESSES[pattern.name]
    view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
    view = view or _unwrapped(pattern.callback)
    words = (getattr(view, "__doc__", "") or "").strip().partition("\n\n")[0]
    return sentence(words)


def _unwrapped(view: Callable) -> Callable:
    while hasattr(view, "__wrapped__"):
        view = view.__wrapped__
    return view


def urls_page() -> str:
    rows = addresses()
    groups = (
        ("Annotators", ("e/", "p/"), "No login, no cookie: the code in the address is the credential."),
        ("REST", ("api/",), "A token, or a researcher's session. See [REST](rest.md)."),
        (
            "Admin",
            ("admin/",),
            "A login, and a role in the study. The lists and forms of Django's admin are not listed here.",
        ),
    )
    parts, listed = [], set()
    for words, starts, note in groups:
        mine = [row for row in rows if row[0].startswith(starts)]
        listed |= set(mine)
        if mine:
            parts += [f"## {words}", note, _addresses_table(mine)]
    parts += ["## The rest", _addresses_table([row for row in rows if row not in listed])]
    return page_of("Addresses", *parts)


def _addresses_table(rows: Iterable[tuple[str, str, str]]) -> str:
    return table(("Address", "What is there"), [(code(f"/{path}"), words) for path, _, words in rows])
