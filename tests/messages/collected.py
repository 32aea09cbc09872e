"""Every message that the code can show on the checklist, on a study's pages and by its importers, collected from the source.

A message is found where it is made: as the text of a ``Problem``, of a refusal that is raised, of a notice on a page, of a finding
or a problem of an importer. It is named by its module, its function and its words, with ``…`` for each value that is put in. What only
passes on words that are made elsewhere has no words of its own, and is collected there.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests import ROOT

# The code whose messages are held to the list, by area.
AREAS = {
    "checklist": ("studies/design/**/*.py", "studies/protocols/**/*.py", "annotators/pay/promises.py"),
    "pages": (
        "studies/services/lifecycle.py", "studies/services/copying.py", "studies/services/drafts.py", "studies/admin/**/*.py", "annotators/places/draft_test_runs.py", "annotators/admin/preview.py",
        "annotators/places/exclusions.py", "annotators/admin/collecting.py", "annotators/admin/assignments.py",
    ),
    "importers": (
        "studies/imports/tables/**/*.py", "studies/stimuli/rows.py", "studies/stimuli/lines.py", "studies/stimuli/strict_json.py", "studies/stimuli/archives.py", "studies/admin/views.py",
        "annotators/imports/**/*.py", "annotators/admin/views.py",
    ),
    "bundle": ("studies/imports/bundle/**/*.py",),
    "report": ("analysis/report/notices.py", "analysis/report/no_conclusion.py"),
}  # fmt: skip

# What makes a message: the name that is called, and which of its arguments holds the words.
MAKERS = {
    "Problem": 0, "NextStep": 2, "ActionRefused": 0, "UnfillableBatch": 0, "ArmSharesRefused": 0, "StudyChanged": 0, "UnreadableFile": 1, "BadJson": 0, "_BadLine": 0,
    "CellRefused": 1, "StimulusLayout": 2, "AnswerLayout": 2,
    "_Fault": 0, "fault": 0, "ValueRefused": 1, "AnswerRefused": 1, "SettingsRefused": 0, "BundleRefused": 0, "BundleIncomplete": 0,
    "ImageRefused": 0, "MemberMissing": 0, "ZipRefused": 0, "ValidationError": 0, "ValueError": 0,
    "make_notice": 1, "_wrong": 1,
}  # fmt: skip
METHODS = {
    ("messages", "success"): 1, ("messages", "warning"): 1, ("messages", "error"): 1, ("messages", "info"): 1, ("messages", "add_message"): 2,
    ("self", "message_user"): 1, ("self", "add_problem"): 1, ("form", "add_error"): 1, ("self", "add_error"): 1, ("lifecycle", "ActionRefused"): 0,
    ("report", "add_finding"): 1, ("forms", "ValidationError"): 0, ("unmet", "append"): 0,
}  # fmt: skip
# Whatever a form says of one of its own fields stands beside that field and is tested with the forms.
FIELD_ERRORS = {"ValidationError", "add_error"}
# What nobody can see: a fault of the code itself.
INTERNAL = ("register: ", "register_importer: ", "_build_field: a question on a ")
# Functions whose words are shown as they return them; those of acts are found by their parameter ``cleaned``.
RETURNS = {"explain_no_conclusion", "describe_excluded_places"}
GAP = "…"
# Two words at least: what only passes on the words of others has none.
SENTENCE = re.compile(r"[A-Za-z]{2,}\W+[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the code. ``key`` names it in the list."""

    area: str
    module: str
    function: str
    line: int
    text: str

    @property
    def where(self) -> str:
        """The package and the function; a message stays where it is when a module of a package is split."""
        parts = self.module.split("/")
        depth = 3 if parts[1] == "protocols" or (parts[1] == "imports" and len(parts) > 3) else 2
        return f"{'/'.join(parts[:depth])}:{self.function}"

    @property
    def key(self) -> str:
        return f"{self.where}: {self.text}"

    @property
    def pattern(self) -> re.Pattern:
        """What a shown text holds that is this message."""
        parts = (r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in self.text.split(GAP))
        return re.compile(".*?".join(parts), re.DOTALL)


@cache
def collected() -> tuple[Message, ...]:
    """All messages, each once, in the order of their areas and files."""
    found: dict[str, Message] = {}
    for area, patterns in AREAS.items():
        for pattern in patterns:
            for path in sorted(ROOT.glob(pattern)):
                for message in _Module(area, path).messages():
                    if not f"{message.function}: {message.text}".startswith(INTERNAL):
                        found.setdefault(message.key, message)
    return tuple(found.values())


class _Module:
    def __init__(self, area: str, path: Path):
        self.area, self.name = area, path.relative_to(ROOT).with_suffix("").as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.functions = {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}
        self.constants = {
            target.id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def messages(self):
        yield from self._of(self.tree, "", None)

    def _of(self, node, function, scope):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                parameters = {argument.arg for argument in child.args.args}
                if child.name in RETURNS or {"study", "user", "cleaned"} <= parameters:
                    yield from self._returned(child)
                yield from self._of(child, child.name, child)
                continue
            if isinstance(child, ast.Call) and (words := self._words_of(child)) is not None:
                for text in self.texts(words, scope, set()):
                    if SENTENCE.search(text.replace(GAP, " ")):
                        yield Message(self.area, self.name, function, child.lineno, text)
            yield from self._of(child, function, scope)

    def _returned(self, function):
        for each in ast.walk(function):
            if isinstance(each, ast.Return) and each.value is not None:
                for text in self.texts(each.value, function, set()):
                    if SENTENCE.search(text.replace(GAP, " ")):
                        yield Message(self.area, self.name, function.name, each.lineno, text)

    def texts(self, node, scope, seen: set) -> list[str]:
        """The texts that an expression may come to, with a gap for each value."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else [GAP]
        if isinstance(node, ast.JoinedStr):
            return self._filled(node, scope, seen)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [self._joined(node)] if self._is_text(node) else [GAP]
        if isinstance(node, ast.IfExp):
            return [*self.texts(node.body, scope, seen), *self.texts(node.orelse, scope, seen)]
        if isinstance(node, ast.BoolOp):
            return [text for value in node.values for text in self.texts(value, scope, seen)]
        if isinstance(node, ast.List | ast.Tuple):
            return [text for value in node.elts for text in self.texts(value, scope, seen)]
        if isinstance(node, ast.Dict):
            return [text for value in node.values for text in self.texts(value, scope, seen)]
        if isinstance(node, ast.Subscript):
            return self.texts(node.value, scope, seen)
        if isinstance(node, ast.Starred):
            return self.texts(node.value, scope, seen)
        if isinstance(node, ast.Name) and node.id not in seen:
            return self._assigned(node.id, scope, seen | {node.id})
        if isinstance(node, ast.Attribute) and node.attr.isupper():  # a constant of another module
            return _constants_elsewhere().get(node.attr, [GAP])
        if isinstance(node, ast.Call):
            return self._called(node, scope, seen)
        return [GAP]

    def _filled(self, node: ast.JoinedStr, scope, seen) -> list[str]:
        """With a gap for each value; where a value is itself one of several sentences, with each of them."""
        found = [""]
        for part in node.values:
            texts = [part.value] if isinstance(part, ast.Constant) else [GAP]
            if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name | ast.Call):
                words = [
                    text for text in self.texts(part.value, scope, seen) if SENTENCE.search(text) and text[:1] != " "
                ]
                texts = list(dict.fromkeys(words)) or texts
            found = [before + text for before in found for text in texts]
        return found

    def _is_text(self, node) -> bool:
        return any(
            isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
            for each in ast.walk(node)
        )

    def _joined(self, node) -> str:
        if isinstance(node, ast.BinOp):
            return self._joined(node.left) + self._joined(node.right)
        return self.texts(node, None, set())[0] if isinstance(node, ast.Constant | ast.JoinedStr) else GAP

    def _assigned(self, name, scope, seen) -> list[str]:
        if name in self.constants:
            return self.texts(self.constants[name], None, seen)
        found = []
        for node in ast.walk(scope) if scope is not None else ():
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AugAssign | ast.NamedExpr | ast.For)
                else []
            )
            for target in targets:
                value = node.iter if isinstance(node, ast.For) else node.value
                if isinstance(target, ast.Name) and target.id == name:
                    found += self.texts(value, scope, seen)
        return found or [GAP]

    def _called(self, node, scope, seen) -> list[str]:
        if isinstance(node.func, ast.Name) and node.func.id in self.functions and node.func.id not in seen:
            inner = self.functions[node.func.id]
            seen = seen | {inner.name}
            returned = (
                each.value for each in ast.walk(inner) if isinstance(each, ast.Return) and each.value is not None
            )
            return [text for value in returned for text in self.texts(value, inner, seen)] or [GAP]
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "format", "values"):
            return [
                *self.texts(node.func.value, scope, seen),
                *(t for arg in node.args[1:] for t in self.texts(arg, scope, seen)),
            ]
        return [GAP]

    def _words_of(self, call: ast.Call):
        """The argument of a call that holds the words of a message; None where the call makes none."""
        func = call.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if self.area != "checklist" and name in FIELD_ERRORS:
            return None
        if isinstance(func, ast.Name):
            place = MAKERS.get(func.id)
        elif isinstance(func, ast.Attribute):
            owner = func.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            place = METHODS.get((name, func.attr))
            if func.attr == "add" and name.endswith("problems") and len(call.args) == 3:
                place = 2
        else:
            place = None
        return call.args[place] if place is not None and len(call.args) > place else None


@cache
def _constants_elsewhere() -> dict[str, list[str]]:
    """Texts that one module holds as a constant and others show."""
    tree = ast.parse((ROOT / "studies/services/lifecycle.py").read_text(encoding="utf-8"))
    return {
        target.id: [node.value.value]
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
