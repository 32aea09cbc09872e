"""Rules of the code base, one test for each: what may import what, where a protocol's name may stand, what never appears."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests import ROOT

PACKAGES = ("heval_site", "studies", "annotators", "analysis", "boards")
SOURCES = [
    path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if "migrations" not in path.parts
]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TOOLS = sorted((ROOT / "tools").rglob("*.py"))
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree. To visit them takes longer than to parse the file, and many rules look at the same files."""
    return tuple(ast.walk(tree))


def lines_with(pattern: re.Pattern, paths: Iterable[Path]) -> list[str]:
    """The places at which a pattern is found, as "file:line"."""
    texts = ((path, path.read_text()) for path in paths)
    return [
        f"{name(path)}:{text.count(chr(10), 0, match.start()) + 1}"
        for path, text in texts
        for match in pattern.finditer(text)
    ]


SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", re.MULTILINE | re.DOTALL)


def module_name(path) -> str:
    return name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def documented_parameters(docstring: str) -> list[str]:
    """Return the names in numpydoc's section of parameters."""
    section = SECTION.search(docstring)
    entries = re.findall(r"^([\w*, ]+?)(?: : .*)?$", section[1], re.MULTILINE) if section else []
    return [entry.strip().lstrip("*") for names in entries for entry in names.split(",")]
