"""Rules for the modules of statistics.

Examples run, and public functions document each parameter. Random numbers come only from an argument. Importing loads
nothing that a web process would pay for.
"""

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import analysis.stats
from tests import ROOT
from tests.rules import SOURCES as APPLICATION
from tests.rules import documented_parameters, module_name, name, parsed
from tools.reference.statistics import PUBLIC

MODULES = sorted(module.name for module in pkgutil.walk_packages(analysis.stats.__path__, "analysis.stats."))
SOURCES = sorted((ROOT / "analysis" / "stats").rglob("*.py"))
PUBLIC_FUNCTIONS = [(f"analysis.stats.{module}", one) for module, functions in PUBLIC.items() for one in functions]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize(("module", "name"), PUBLIC_FUNCTIONS, ids=lambda part: part.removeprefix("analysis.stats."))
def test_a_public_function_documents_each_parameter_and_shows_an_example(module, name):
    function = getattr(importlib.import_module(module), name)
    text = inspect.getdoc(function)
    parameters = inspect.signature(function).parameters.values()
    assert ">>> " in text
    assert {one.name for one in parameters} == set(documented_parameters(text))
    assert all(one.annotation is not one.empty for one in parameters)


def test_only_public_functions_have_a_section_of_parameters():
    documented = {
        (module_name(path), node.name)
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and documented_parameters(ast.get_docstring(node) or "")
    }
    assert documented == set(PUBLIC_FUNCTIONS)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "analysis" / "stats")))
def test_every_function_that_others_import_says_what_it_does(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path.name} says nothing of itself"
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.name}: {node.name} says nothing of itself"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "analysis" / "stats")))
def test_chance_comes_from_an_argument(path):
    """numpy's legacy functions and a generator without a seed draw from a state that nobody wrote down."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            assert "random" not in [alias.name for alias in node.names], f"line {node.lineno}"
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np.random":
            assert node.attr in ("Generator", "SeedSequence", "default_rng"), (
                f"line {node.lineno}: np.random.{node.attr}"
            )
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "np.random.default_rng":
            assert node.args, f"line {node.lineno}: a generator without a seed"


@pytest.mark.slow
def test_private_names_are_imported_by_nobody():
    found = [
        f"{name(path)}: {ast.unparse(node)}"
        for path in APPLICATION
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("analysis.stats")
        if any(alias.name.startswith("_") for alias in node.names)
    ]
    assert not found


@pytest.mark.slow
def test_importing_the_statistics_loads_neither_statsmodels_nor_pandas():
    script = "import sys\n" + "".join(f"import {name}\n" for name in MODULES)
    script += "print([name for name in ('statsmodels', 'pandas', 'django', 'matplotlib') if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
