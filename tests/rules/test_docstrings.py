"""Examples in docstrings run, and documented parameters exist."""

import ast
import doctest
import importlib

import pytest

from . import SOURCES, documented_parameters, module_name, name, parsed, walk

# The statistics run their examples one module at a time, in tests/analysis/stats.
WITH_EXAMPLES = [
    path for path in SOURCES if ">>> " in path.read_text(encoding="utf-8") and "analysis/stats" not in name(path)
]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=name)
def test_examples_run(path):
    result = doctest.testmod(importlib.import_module(module_name(path)))
    assert result.attempted and not result.failed


def unknown_parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    known = {argument.arg for argument in every if argument}
    return [entry for entry in documented_parameters(ast.get_docstring(function) or "") if entry not in known]


def test_documented_parameters_are_parameters():
    wrong = [
        f"{name(path)}: {node.name} documents {entry}"
        for path in SOURCES
        for node in walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
        for entry in unknown_parameters(node)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_documented_parameter_that_does_not_exist_is_found():
    source = '''
def mean(values, *, level):
    """Return the mean.

    Parameters
    ----------
    values, weights : array
        What is averaged.
    level : float
        The level.

    Returns
    -------
    float
        The mean.
    """
'''
    (function,) = ast.parse(source).body
    assert documented_parameters(ast.get_docstring(function)) == ["values", "weights", "level"]
    assert unknown_parameters(function) == ["weights"]
