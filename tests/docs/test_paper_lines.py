"""The lines of the four papers: each that works names a page, a REST resource and a test that exist."""

import ast
import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import get_resolver

from tests import ROOT
from tests.addresses import addresses
from tests.docs.pages import PAGES
from tools.reference.papers import CANNOT, PAPERS, PARTLY, STATES, WORKS, PaperLine, read_paper_lines


def expected_ids() -> list[str]:
    return [f"{paper}-{number:02}" for paper, (_, n) in PAPERS.items() for number in range(1, n + 1)]


def known_pages() -> set[str]:
    return {"/" + re.sub(r"<(?:\w+:)?(\w+)>", r"<\1>", route) for route in addresses(get_resolver())}


def known_resources() -> set[str]:
    paths = json.loads(Client().get("/api/v1/schema/").content)["paths"]
    return {re.sub(r"\{(\w+)\}", r"<\1>", path).partition("/api/v1/")[2] for path in paths}


def names_a_test(test: str) -> bool:
    """Return whether pytest would collect this function of this file."""
    path, _, name = test.partition("::")
    file = ROOT / path
    if not re.fullmatch(r"tests/(?:\w+/)*test_\w+\.py", path) or not file.is_file():
        return False
    functions = [
        node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
    ]
    return name.startswith("test_") and name in functions


def find_faults(lines: list[PaperLine], pages: set[str], resources: set[str]) -> list[str]:
    counted = Counter(line.id for line in lines)
    faults = [f"{one} is missing" for one in expected_ids() if one not in counted]
    faults += [f"{one} occurs {n} times" for one, n in counted.items() if n > 1]
    faults += [f"{one} is no id" for one in counted if one not in expected_ids()]
    for line in lines:
        checks = {
            "has no place or no words": bool(line.place and line.does),
            f"has the state {line.state!r}": line.state in STATES,
            "works and names no page, REST resource or test": line.state != WORKS
            or all((line.page, line.rest, line.test)),
            "says what is missing if, and only if, it does not work": bool(line.missing) == (line.state != WORKS),
            f"names the page {line.page}, which has no address": not line.page or line.page in pages,
            f"names {line.rest}, which is not in the schema": not line.rest or line.rest in resources,
            f"names {line.test}, which is no test": not line.test or names_a_test(line.test),
            f"names {line.how}, which is no page of the documentation": line.how in PAGES,
        }
        faults += [f"{line.id} {fault}" for fault, is_right in checks.items() if not is_right]
    return faults


@pytest.mark.django_db
def test_every_line_that_works_has_its_page_resource_and_test():
    assert find_faults(read_paper_lines(), known_pages(), known_resources()) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"page": ""}, "spa-01 works and names no page, REST resource or test"),
        ({"rest": ""}, "spa-01 works and names no page, REST resource or test"),
        ({"test": ""}, "spa-01 works and names no page, REST resource or test"),
        (
            {"page": "/admin/studies/study/<pk>/tau/"},
            "spa-01 names the page /admin/studies/study/<pk>/tau/, which has no address",
        ),
        ({"rest": "studies/<code>/tau/"}, "spa-01 names studies/<code>/tau/, which is not in the schema"),
        (
            {"test": "tests/docs/test_tau.py::test_tau"},
            "spa-01 names tests/docs/test_tau.py::test_tau, which is no test",
        ),
        (
            {"test": "tests/docs/test_paper_lines.py::find_faults"},
            "spa-01 names tests/docs/test_paper_lines.py::find_faults, which is no test",
        ),
        (
            {"test": "tests/docs/test_paper_lines.py::test_tau"},
            "spa-01 names tests/docs/test_paper_lines.py::test_tau, which is no test",
        ),
        ({"how": "how-to/tau"}, "spa-01 names how-to/tau, which is no page of the documentation"),
        ({"state": PARTLY}, "spa-01 says what is missing if, and only if, it does not work"),
        ({"state": CANNOT}, "spa-01 says what is missing if, and only if, it does not work"),
        ({"missing": "the rest"}, "spa-01 says what is missing if, and only if, it does not work"),
        ({"state": "soon"}, "spa-01 has the state 'soon'"),
        ({"does": ""}, "spa-01 has no place or no words"),
        ({"id": "spa-02"}, "spa-01 is missing"),
        ({"id": "spa-02"}, "spa-02 occurs 2 times"),
        ({"id": "spa-41"}, "spa-41 is no id"),
    ],
)
def test_a_wrong_line_is_found(changed, fault):
    first, *others = read_paper_lines()
    assert fault in find_faults([replace(first, **changed), *others], known_pages(), known_resources())
