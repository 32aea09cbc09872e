"""Markdown helpers for the reference pages, and the descriptions in the .toml files."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

APPS = ("studies", "annotators", "analysis", "boards")
PACKAGES = ("heval_site", *APPS)
ROOT = Path(__file__).resolve().parents[2]
GENERATED_NOTICE = (
    "This page is generated from the code by `python -m tools.reference`. A test fails if it is out of date."
)


def load_descriptions(name: str) -> dict[str, Any]:
    """Return the descriptions of one page from its .toml file."""
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


def markdown_table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table. Bars inside a cell are escaped, and line ends become spaces."""
    heads = list(heads)
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join('---' for _ in heads)}|"]
    lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = " ".join(str(value).split())
    return text.replace("|", "\\|") or " "


def markdown_facts_list(facts: Iterable[tuple[str, str]]) -> str:
    """Return a list of the facts that are not empty, one per line."""
    return "\n".join(f"- {name}: {value}" for name, value in facts if value)


def as_sentence(words: str) -> str:
    """Return the words with a capital letter and a full stop."""
    words = " ".join(str(words).split())
    if not words:
        return ""
    return words[0].upper() + words[1:] + ("" if words[-1] in ".!?:" else ".")


def inline_code(value: Any) -> str:
    return f"`{value}`" if str(value) else ""


def build_page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts if part), GENERATED_NOTICE]) + "\n"
