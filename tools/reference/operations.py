"""The page of operations: what a program does over REST instead of each page of the admin and of boards."""

import re
import tomllib
from pathlib import Path

from django.contrib import admin
from django.urls import URLPattern, URLResolver, get_resolver

from studies.acts import ACTS

from .markdown import build_page, inline_code, markdown_table

TABLE = tomllib.loads(Path(__file__).with_name("operations.toml").read_text(encoding="utf-8"))
BASES = {
    "{study}": "studies/{code}/",
    "{link}": "studies/{code}/links/{key}/",
    "{board}": "boards/{slug}/",
}
OF_A_MODEL = re.compile(r"_(add|change|changelist|delete|history)$")
# An act is a page of one address, and the table has the addresses before it.
OF_ACTS = {"studies_act"}


def operations_by_page() -> dict[str, list[str]]:
    """Return the operations of each page and model, as methods with addresses below /api/v1/."""
    return {name: [_full(one) for one in operations] for name, operations in TABLE["operations"].items()}


def reasons_by_page() -> dict[str, str]:
    return {name: reason for reason, names in TABLE["without"].items() for name in names}


def operations_of_acts() -> dict[str, str]:
    return {name: _full("DELETE {study}" if name == "delete" else f"POST {{study}}{name}/") for name in ACTS}


def _full(operation: str) -> str:
    for name, base in BASES.items():
        # A link of a report has a number of this name.
        operation = re.sub(rf"^([A-Z]+ ){re.escape(name)}", rf"\1{base}", operation)
    return operation


def pages_of_people() -> set[str]:
    """Return the names of the addresses below /admin/, /boards/ and /r/, and the models with forms in the admin."""
    names = {
        name
        for path, name in _walk(get_resolver(), "")
        if name and path.startswith(("admin/", "boards/", "r/")) and not _is_of_a_model(name)
    }
    models = {
        model._meta.label
        for model, pages in admin.site._registry.items()
        for model in (model, *(inline.model for inline in pages.inlines))
    }
    return (names - OF_ACTS) | models


def _is_of_a_model(name: str) -> bool:
    names = {f"{model._meta.app_label}_{model._meta.model_name}" for model in admin.site._registry}
    return bool(OF_A_MODEL.search(name)) and OF_A_MODEL.sub("", name) in names


def _walk(resolver: URLResolver, before: str):
    for pattern in resolver.url_patterns:
        path = before + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLPattern):
            yield path, pattern.name
        else:
            yield from _walk(pattern, path)


def operations_page() -> str:
    rows = [
        (inline_code(name), " ".join(map(inline_code, operations)))
        for name, operations in sorted(operations_by_page().items())
    ]
    acts = [(inline_code(name), inline_code(operation)) for name, operation in operations_of_acts().items()]
    without = [(", ".join(map(inline_code, names)), reason) for reason, names in TABLE["without"].items()]
    return build_page(
        "Pages and operations",
        "What a program does over [REST](rest.md) instead of each page of the admin and of boards, by the name of the page's "
        "address or of the model. Addresses begin with `/api/v1/`. A test fails if a page has neither an operation nor a reason.",
        "## Acts on a study",
        markdown_table(("Act", "Operation"), acts),
        "## Pages",
        markdown_table(("Page", "Operations"), rows),
        "## Pages without an operation",
        markdown_table(("Page", "Reason"), without),
    )
