"""Every function, class and constant of the statistics is reached from the application: from a page, a job, a command or REST.

The search goes from name to name. It begins with what the modules outside ``analysis/stats`` use, and follows what each name
uses. A test or a page of the documentation does not count. What only tests need belongs in ``tests``.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import SOURCES, name, parsed, walk

STATISTICS = "analysis.stats"
Name = tuple[str, str]


def module_of(path: Path) -> str:
    return name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Modules:
    """Modules by their dotted names: what each defines at its top, and which dotted name each import means."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self.trees = trees
        self.imports = {module: dict(imported(tree)) for module, tree in trees.items()}
        self.defined = {module: definitions(tree) for module, tree in trees.items()}

    def found(self, dotted: str) -> Name | None:
        """Return the definition that a dotted name ends at, through any number of re-exports."""
        module, _, rest = dotted.rpartition(".")
        if module in self.trees:
            if rest in self.defined[module]:
                return module, rest
            behind = self.imports[module].get(rest)
            return self.found(behind) if behind not in (None, dotted) else None
        # `spa.TAU.something`: an attribute of what is found.
        return self.found(module) if module else None

    def used(self, module: str, nodes: Iterable[ast.AST]) -> Iterator[Name]:
        """Yield the definitions that these nodes of a module name."""
        own, imports = self.defined[module], self.imports[module]
        for node in (inner for outer in nodes for inner in ast.walk(outer)):
            parts: list[str] = []
            while isinstance(node, ast.Attribute):
                parts.insert(0, node.attr)
                node = node.value
            if not isinstance(node, ast.Name):
                continue
            if node.id in imports:
                # `stats.spa.TAU` as well as `spa.TAU` and `TAU`: the longest part that leads somewhere.
                dotted = [imports[node.id], *parts]
                leads = (self.found(".".join(dotted[:n])) for n in range(len(dotted), 0, -1))
                if definition := next(filter(None, leads), None):
                    yield definition
            elif node.id in own:
                yield module, node.id

    def unreached(self) -> set[Name]:
        statistics = {module for module in self.trees if f"{module}.".startswith(f"{STATISTICS}.")}
        todo = [use for module in set(self.trees) - statistics for use in self.used(module, [self.trees[module]])]
        reached: set[Name] = set()
        while todo:
            definition = todo.pop()
            if definition not in reached and definition[0] in statistics:
                reached.add(definition)
                module, defined = definition
                todo += self.used(module, self.defined[module][defined])
        return {(module, one) for module in statistics for one in self.defined[module]} - reached


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                (one.asname or one.name.partition(".")[0], one.asname and one.name or one.name.partition(".")[0])
                for one in node.names
            )


def definitions(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    found: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
        else:
            continue
        for one in names:
            found.setdefault(one, []).append(node)
    found.pop("__all__", None)
    return found


def test_no_statistic_is_out_of_reach():
    unreached = Modules({module_of(path): parsed(path) for path in SOURCES}).unreached()
    assert not unreached, "connect, delete or move to tests: " + ", ".join(map(".".join, sorted(unreached)))


def test_the_search_for_statistics_out_of_reach_finds_them():
    words = {
        "analysis.report": "from analysis.stats import a\ndef f():\n    from analysis.stats.b import two as other\n    a.one(); other",
        "analysis.stats": "",
        "analysis.stats.a": "from analysis.stats.a._deep import one, lost\n__all__ = ['lost', 'one']",
        "analysis.stats.a._deep": "LIMIT = 1\nUNUSED = 2\ndef one():\n    return _own(LIMIT)\ndef _own(x): ...\ndef lost(): ...",
        "analysis.stats.b": "class two: ...\nclass three:\n    def f(self):\n        return two()",
    }
    found = Modules({module: ast.parse(text) for module, text in words.items()}).unreached()
    assert found == {
        ("analysis.stats.a._deep", "UNUSED"),
        ("analysis.stats.a._deep", "lost"),
        ("analysis.stats.b", "three"),
    }
