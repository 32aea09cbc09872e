"""The house's rules, on every module: what is public is documented by an example that runs, nothing is drawn but from
an argument, nothing is loaded that a web process would pay for, and each thing has one address."""

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

MODULES = sorted(module.name for module in pkgutil.walk_packages(analysis.stats.__path__, "analysis.stats."))
PUBLIC = [name for name in MODULES if "._" not in name]
SOURCES = sorted((ROOT / "analysis" / "stats").rglob("*.py"))


def names_of(module):
    """What a module offers: its list of names where it is a package, else what it defines."""
    if hasattr(module, "__all__"):
        return module.__all__
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    # An example speaks as a reader does, who has the whole package before him.
    package = importlib.import_module(name.partition("._")[0])
    found = doctest.testmod(module, extraglobs=vars(package) | vars(module))
    assert found.failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_says_what_it_does_and_shows_it(name):
    module = importlib.import_module(name)
    for one in names_of(module):
        value = getattr(module, one)
        if inspect.isfunction(value):
            assert ">>> " in (inspect.getdoc(value) or ""), f"{name}.{one} shows no example"
            assert all(
                parameter.annotation is not parameter.empty
                for parameter in inspect.signature(value).parameters.values()
            )
        elif inspect.isclass(value):
            assert inspect.getdoc(value), f"{name}.{one} says nothing of itself"


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


def test_a_private_module_is_imported_by_its_own_package_alone():
    for base in ("analysis", "annotators", "heval_site", "studies"):
        for path in (ROOT / base).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("analysis.stats."):
                    package, is_private, _ = f"{node.module}.".partition("._")
                    names = [alias.name for alias in node.names]
                    if is_private or any(name.startswith("_") for name in names):
                        home = ROOT.joinpath(*package.rstrip(".").split("."))
                        assert is_private and home in path.parents, f"{path}: {ast.unparse(node)}"


def test_importing_the_statistics_loads_neither_statsmodels_nor_pandas():
    script = "import sys\n" + "".join(f"import {name}\n" for name in MODULES)
    script += "print([name for name in ('statsmodels', 'pandas', 'django', 'matplotlib') if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
