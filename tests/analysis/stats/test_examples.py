"""Every example in a docstring runs, every module has some, and the house's rules on imports hold."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest

import analysis.stats

MODULES = sorted(module.name for module in pkgutil.iter_modules(analysis.stats.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(f"analysis.stats.{name}")
    found = doctest.testmod(module)
    assert found.failed == 0
    if any(inspect.isfunction(value) and value.__module__ == module.__name__ for value in vars(module).values()):
        assert found.attempted > 0


@pytest.mark.parametrize("name", MODULES)
def test_public_functions_are_documented(name):
    module = importlib.import_module(f"analysis.stats.{name}")
    for attribute, value in vars(module).items():
        is_ours = getattr(value, "__module__", None) == module.__name__
        if is_ours and not attribute.startswith("_") and (inspect.isfunction(value) or inspect.isclass(value)):
            assert inspect.getdoc(value), f"{name}.{attribute} says nothing of itself"


def test_importing_the_statistics_loads_neither_statsmodels_nor_pandas():
    script = "import sys\n" + "".join(f"import analysis.stats.{name}\n" for name in MODULES)
    script += "print([name for name in ('statsmodels', 'pandas', 'django', 'matplotlib') if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
