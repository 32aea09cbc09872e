"""The page of addresses: URL patterns, with descriptions from the views' docstrings and addresses.toml."""

import re
from collections.abc import Callable, Iterable, Iterator

from django.urls import URLPattern, URLResolver, get_resolver

from .markdown import APPS, as_sentence, build_page, inline_code, load_descriptions, markdown_table

URL_DESCRIPTIONS: dict[str, str] = load_descriptions("addresses")


def list_project_urls() -> list[tuple[str, str, str]]:
    """Return (path, name, description) of every address, without Django's own admin pages."""
    return sorted(_walk_urls(get_resolver(), ""), key=lambda row: (_sort_rank(row[0]), row[0]))


def _sort_rank(path: str) -> int:
    starts = ("e/", "p/", "admin/", "api/", "docs/")
    return next((number for number, start in enumerate(starts) if path.startswith(start)), len(starts))


def _walk_urls(resolver: URLResolver, before: str) -> Iterator[tuple[str, str, str]]:
    for pattern in resolver.url_patterns:
        path = before + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLResolver):
            yield from _walk_urls(pattern, path)
        elif _is_listed(pattern, path):
            yield _displayed_path(path), pattern.name or "", _view_description(pattern)


_DJANGO = re.compile(r"_(add|change|changelist|delete|history)$")


def _is_listed(pattern: URLPattern, path: str) -> bool:
    if not path.startswith("admin/"):
        return bool(pattern.name)
    own = pattern.name and pattern.name.startswith(tuple(f"{app}_" for app in APPS))
    return bool(own) and not _DJANGO.search(pattern.name or "")


def _displayed_path(path: str) -> str:
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"<\1>", path)
    return path.replace("\\Z", "").replace("$", "").replace("\\", "")


def _view_description(pattern: URLPattern) -> str:
    if pattern.name in URL_DESCRIPTIONS:
        return URL_DESCRIPTIONS[pattern.name]
    view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
    view = view or _unwrap(pattern.callback)
    words = (getattr(view, "__doc__", "") or "").strip().partition("\n\n")[0]
    return as_sentence(words)


def _unwrap(view: Callable) -> Callable:
    while hasattr(view, "__wrapped__"):
        view = view.__wrapped__
    return view


def urls_page() -> str:
    rows = list_project_urls()
    groups = (
        (
            "Annotators",
            ("e/", "p/"),
            "Annotators need no login and no cookie: the code in the address is the credential.",
        ),
        ("REST", ("api/",), "REST needs a token or a researcher's session. See [REST](rest.md)."),
        (
            "Admin",
            ("admin/",),
            "These pages need a login and a role in the study. The lists and forms of Django's admin are not listed here.",
        ),
    )
    parts, listed = [], set()
    for words, starts, note in groups:
        group_rows = [row for row in rows if row[0].startswith(starts)]
        listed |= set(group_rows)
        if group_rows:
            parts += [f"## {words}", note, _addresses_table(group_rows)]
    parts += ["## Other addresses", _addresses_table([row for row in rows if row not in listed])]
    return build_page("Addresses", *parts)


def _addresses_table(rows: Iterable[tuple[str, str, str]]) -> str:
    return markdown_table(("Address", "Description"), [(inline_code(f"/{path}"), words) for path, _, words in rows])
