"""Which module may import which, and where the names of protocols may stand."""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from analysis.protocols import REGISTRY as ANALYSES
from annotators.recruitment.channels import REGISTRY as CHANNELS
from studies.protocols import REGISTRY as PROTOCOLS
from tests import ROOT

from . import PACKAGES, SOURCES, TEMPLATES, TESTS, TOOLS, lines_with, name, parsed, walk

MOST_LINES = 800


def test_no_file_is_too_long_to_read():
    paths = [*SOURCES, *TOOLS, *TESTS]
    lines = {name(path): len(path.read_text().splitlines()) for path in paths}
    too_long = [f"{file}: {n}" for file, n in lines.items() if n > MOST_LINES]
    assert not too_long, "split them by their subjects: " + ", ".join(too_long)


def test_the_contracts_of_imports_hold():
    run = subprocess.run([Path(sys.executable).parent / "lint-imports"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:]


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_imports_itself_by_way_of_others():
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    imports = {one: graph.find_modules_directly_imported_by(one) & (graph.modules - {one}) for one in graph.modules}
    assert circle_in(imports) == []


def test_the_search_for_circles_finds_one():
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle_in({"a": {"b", "c"}, "b": {"c"}}) == []


def imports_of_tests(tree: ast.AST):
    """Lines that import a module of tests, or a test out of one."""
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "tests"):
            names = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "tests"]
        else:
            continue
        if any(part.startswith("test_") for name in names for part in name.split(".")):
            yield node.lineno


def test_no_module_imports_a_module_of_tests():
    """What several tests share is in a module of its own, or in a conftest."""
    found = {name(path) for path in [*TESTS, *TOOLS] if list(imports_of_tests(parsed(path)))}
    assert not found, found


@pytest.mark.parametrize(
    "words",
    [
        "from tests.test_urls import filled",
        "from .test_urls import filled",
        "from tests import test_urls",
        "import tests.test_urls",
    ],
)
def test_the_search_for_imported_tests_finds_them(words):
    assert list(imports_of_tests(ast.parse(f"def f():\n    {words}"))) == [2]
    assert not list(imports_of_tests(ast.parse("from tests.urls import filled\nfrom django.test import test_urls")))


def branches_on(tree: ast.AST, slugs: set[str]):
    """Where code asks for a protocol or channel by its name: (line, slug).

    Comparisons and match cases with one; a collection that holds two or more; a registry's subscript; an argument that is named
    after the protocol, as in ``filter(section__protocol="spa")``.
    """
    for node in walk(tree):
        constants: list[ast.AST] = []
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                constants += side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]
        elif isinstance(node, ast.MatchValue):
            constants = [node.value]
        elif isinstance(node, ast.Dict | ast.Set | ast.Tuple | ast.List):
            elements = node.keys if isinstance(node, ast.Dict) else node.elts
            found = [one for one in elements if isinstance(one, ast.Constant) and one.value in slugs]
            constants = list(found) if len({one.value for one in found}) > 1 else []
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id.isupper():
            constants = [node.slice]
        elif isinstance(node, ast.keyword) and (node.arg or "").rpartition("__")[2] in ("protocol", "channel"):
            constants = [node.value]
        for constant in constants:
            if isinstance(constant, ast.Constant) and constant.value in slugs:
                yield constant.lineno, constant.value


# What writes a study of one protocol: the demo, and the section of attention checks, which is a survey.
MAKES_ONE_STUDY = (
    "heval_site/management/demo.py",
    "heval_site/management/demo_board.py",
    "studies/imports/check_files.py",
)


def is_of(path: Path, slug: str) -> bool:
    of_one = (
        "studies/protocols/",
        "analysis/protocols/",
        "annotators/recruitment/channels/",
    )
    return name(path).startswith(of_one) and slug in path.with_suffix("").parts


def test_no_branch_on_the_name_of_a_protocol_or_channel():
    found = [
        f"{name(path)}:{line} {slug}"
        for path in SOURCES
        if name(path) not in MAKES_ONE_STUDY
        for line, slug in branches_on(parsed(path), set(PROTOCOLS) | set(CHANNELS))
        if not is_of(path, slug)
    ]
    assert not found


def test_the_search_for_branches_finds_one():
    assert list(branches_on(ast.parse("if section.protocol in ('spa', 'x'): pass"), {"spa"})) == [(1, "spa")]
    assert list(branches_on(ast.parse("match p:\n case 'spa': pass"), {"spa"})) == [(2, "spa")]
    for words in ("{'spa': 1, 'marks': 2}", "frozenset({'marks', 'spa'})", "('spa', 'marks', 'other')"):
        assert {slug for _, slug in branches_on(ast.parse(words), {"spa", "marks"})} == {"spa", "marks"}
    for words in ("REGISTRY['spa']", "rows.filter(section__protocol='spa')", "Size(protocol='spa')"):
        assert list(branches_on(ast.parse(words), {"spa", "marks"})) == [(1, "spa")]
    for words in ("{'marks': 2, 'words': 3}", "rows['spa']", "Column('spa')"):
        assert not list(branches_on(ast.parse(words), {"spa", "marks"}))


def test_every_protocol_has_an_analysis():
    lacking = [
        f"Write analysis/protocols/{slug}.py: a ProtocolAnalysis with slug = {slug!r}, which says what the answers mean."
        for slug in sorted(set(PROTOCOLS) - set(ANALYSES))
    ]
    assert not lacking, "\n".join(lacking)
    assert not set(ANALYSES) - set(PROTOCOLS), "an analysis of a protocol that is none"


@pytest.mark.parametrize("registry", [PROTOCOLS, ANALYSES])
def test_the_order_of_protocols_does_not_depend_on_who_imports_one_first(registry):
    assert list(registry) == sorted(registry)


def names_of_blocks() -> set[str]:
    """What the blocks of protocols' analyses are called, as far as it is written down where they are made."""
    found = set()
    for path in sorted((ROOT / "analysis" / "protocols").rglob("*.py")):
        for node in walk(parsed(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Block" and node.args:
                first = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
                if isinstance(first, ast.Constant):
                    found.add(first.value)
    return found


def literals_of_protocols(tree: ast.AST, blocks: set[str]):
    """Strings that begin like a block of a protocol, or like its slug with a dot."""
    starts = tuple({f"{one.partition('.')[0]}." for one in blocks} | {f"{slug}." for slug in PROTOCOLS})
    for node in walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(starts):
            yield node.lineno, node.value


def test_what_makes_reports_knows_no_block_of_a_protocol():
    blocks = names_of_blocks()
    assert len(blocks) > 20
    found = [
        f"{name(path)}:{line}: {text[:60]}"
        for path in sorted((ROOT / "analysis").rglob("*.py"))
        if not {"protocols", "stats", "migrations"} & set(path.parts) or "blocks" in path.parts
        if path.name != "method_tables.py"  # says of each block which method made it
        for line, text in literals_of_protocols(parsed(path), blocks)
    ]
    assert not found, "say it in analysis/protocols instead: " + "; ".join(found)
    assert list(literals_of_protocols(ast.parse("a = 'choice.effort'\nb = f'spa.{x}'"), blocks)) == [
        (1, "choice.effort"),
        (2, "spa."),
    ]


BRANCH_IN_TEMPLATE = re.compile(rf"{{%\s*(el)?if[^%]*['\"]({'|'.join(PROTOCOLS)})['\"]")


def test_no_template_branches_on_a_protocol():
    assert BRANCH_IN_TEMPLATE.search('{% if page.protocol == "spa" %}')
    assert not lines_with(BRANCH_IN_TEMPLATE, TEMPLATES)
