"""Every message that the code can show on the checklist, on pages and forms, by importers, REST and commands, collected from the source.

A message is found where it is made: as the text of a ``Problem``, of a refusal that is raised, of a notice on a page, of a finding
or a problem of an importer. It is named by its module, its function and its words, with ``…`` for each value that is put in. What only
passes on words that are made elsewhere has no words of its own, and is collected there.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.utils.html import strip_tags

from tests import ROOT

# The code whose messages are held to the list, by area.
AREAS = {
    "checklist": ("studies/design/**/*.py", "studies/protocols/**/*.py", "annotators/pay/promises.py", "analysis/protocols/families.py", "analysis/planning/checklist.py"),
    "pages": (
        "studies/services/lifecycle.py", "studies/services/copying.py", "studies/services/drafts.py", "studies/admin/**/*.py", "annotators/places/batch_plan.py", "annotators/admin/preview.py",
        "annotators/places/exclusions.py", "annotators/admin/collecting.py", "annotators/admin/assignments.py",
    ),
    "importers": (
        "studies/imports/tables/**/*.py", "studies/imports/check_files.py", "studies/imports/formats/*.py", "studies/stimuli/rows.py", "studies/stimuli/lines.py",
        "studies/stimuli/containers.py", "studies/stimuli/numbers.py", "studies/stimuli/texts.py", "studies/admin/views.py",
        "annotators/imports/**/*.py", "annotators/admin/views.py", "studies/protocols/marks.py",
        "studies/stimuli/images.py", "studies/stimuli/normalising.py", "studies/imports/preparation.py",
    ),
    "bundle": ("studies/imports/bundle.py", "studies/imports/bundle_files.py"),
    "report": ("analysis/report/build.py",),
    "answers": (
        "studies/protocols/**/*.py", "annotators/pages/form_data.py", "annotators/views/appeals.py", "annotators/views/pages.py", "annotators/views/entry.py",
    ),
    "forms": (
        "studies/admin/**/*.py", "studies/access.py", "studies/models/**/*.py", "studies/services/known_answers.py", "studies/services/questions.py", "studies/stimuli/texts.py",
        "annotators/admin/**/*.py", "annotators/participation/link_actions.py", "annotators/recruitment/sample.py",
        "annotators/recruitment/channels/*.py", "annotators/recruitment/channels/external_question.py",
        "annotators/recruitment/channels/prolific/__init__.py", "annotators/recruitment/channels/prolific/files.py",
        "annotators/recruitment/channels/sona.py", "annotators/recruitment/panels/orders.py", "annotators/recruitment/panels/reconcile.py",
        "annotators/recruitment/panels/http_client.py", "annotators/pay/files.py", "annotators/pay/ledger.py", "annotators/pay/evidence.py", "annotators/pay/decisions.py", "annotators/pay/verdict_status.py", "annotators/events/*.py", "annotators/places/barrings.py", "analysis/report/screening/run.py", "analysis/metrics/calibrated/*.py",
        "analysis/coding/*.py", "analysis/admin.py", "analysis/exclusions/rules/answers.py", "analysis/exclusions/rules/checks.py", "analysis/report/views.py",
    ),
    "rest": (
        "analysis/api/**/*.py", "analysis/forms/answers.py", "analysis/data/blinding.py", "analysis/data/exports.py", "analysis/data/frames.py",
        "analysis/report/build.py", "heval_site/middleware.py",
    ),
    "metrics": ("analysis/metrics/*.py", "analysis/metrics/pages/*.py", "analysis/metrics/judge_check/*.py"),
    "boards": ("analysis/metrics/scoring.py", "analysis/protocols/humanlike/__init__.py", "analysis/protocols/relative.py", "analysis/protocols/two_choice/__init__.py", "boards/api/**/*.py", "boards/services/boards.py", "boards/services/preferences.py", "boards/services/images.py", "boards/services/labels.py", "boards/services/metric_tables.py", "boards/services/submissions.py"),
    "commands": (
        "heval_site/management/**/*.py", "heval_site/runtime/**/*.py", "heval_site/settings.py", "heval_site/rehearsal/rehearsal.py",
        "annotators/participation/simulate.py", "analysis/data/exports.py", "analysis/data/snapshot.py",
    ),
    "panels": (
        "annotators/recruitment/channels/external_question.py", "annotators/recruitment/channels/sona.py",
        *(f"annotators/recruitment/channels/prolific/{name}.py" for name in ("client", "files", "service")),
        *(f"annotators/recruitment/panels/{name}.py" for name in ("__init__", "http_client", "orders", "sync")),
    ),
}  # fmt: skip

# What makes a message: the name that is called, and which of its arguments holds the words.
MAKERS = {
    "Problem": 0, "NextStep": 2, "ActionRefused": 0, "UnfillableBatch": 0, "ArmSharesRefused": 0, "StudyChanged": 0, "UnreadableFile": 1, "SeveralSheets": 0, "BadJson": 0, "_BadLine": 0,
    "CellRefused": 1, "NumberRefused": 0, "StimulusLayout": 2, "AnswerLayout": 2,
    "_Fault": 0, "fault": 0, "ValueRefused": 1, "SettingsRefused": 0, "BundleRefused": 0, "BundleIncomplete": 0,
    "ImageRefused": 0, "MemberMissing": 0, "ZipRefused": 0, "ValidationError": 0, "ValueError": 0,
    "make_notice": 1, "_always": 0, "_wrong": 1, "CodebookRefused": 0, "RegexValidator": 1, "NoService": 0, "RequestRefused": 0, "TextRefused": 0, "PermissionDenied": 0,
}  # fmt: skip
METHODS = {
    ("messages", "success"): 1, ("messages", "warning"): 1, ("messages", "error"): 1, ("messages", "info"): 1, ("messages", "add_message"): 2,
    ("self", "message_user"): 1, ("self", "add_problem"): 1, ("form", "add_error"): 1, ("self", "add_error"): 1, ("lifecycle", "ActionRefused"): 0,
    ("report", "add_finding"): 1, ("forms", "ValidationError"): 0, ("launch_errors", "append"): 0,
}  # fmt: skip
# What makes a message only in one area, by the words of the call.
MAKERS_OF = {
    "rest": {
        "row_error": 2, "FieldError": 1, "problem_response": 1, "ParseError": 0, "exceptions.ParseError": 0, "serializers.ValidationError": 0, "PermissionDenied": 0,
        "BadQueryParameter": 0, "BadParameters": 0, "BadOrigins": 0,
    },
    "boards": {"row_error": 2, "FieldError": 1, "ParseError": 0, "PermissionDenied": 0, "TooManyToday": 0},
    "importers": {"ColumnRefused": 1},
    "commands": {
        "CommandError": 0, "ImproperlyConfigured": 0, "RehearsalRefused": 0, "TooManySnapshots": 0, "ParquetNotInstalled": 0, "Error": 0, "NotReachable": 0,
        "print_to_stderr": 0, "supervisor.print_to_stderr": 0,
    },
    "panels": {
        "RequestRefused": 0, "ResultUnclear": 0, "PanelBusy": 0, "OrderNotReady": 0, "PanelUnavailable": 0, "lost": 0, "error_class": 0,
    },
}  # fmt: skip
# Of REST: an argument that is given by its name, and constants that hold messages.
KEYWORDS = {"error_response": "detail"}
CONSTANTS = {"default_detail", "default_error_messages", "FRAMEWORK_REFUSALS"}
# Whatever a form says of one of its own fields is in the list of the forms, and a protocol's own settings in the checklist's.
FIELD_ERRORS = {"ValidationError", "add_error", "TextRefused"}
AREAS_OF_FIELD_ERRORS = {"checklist", "forms", "metrics"}
# Where the texts of form fields are messages, too.
AREAS_OF_FORMS = {"forms", "metrics"}
# What nobody can see: a fault of the code itself, or an answer to a panel's server.
INTERNAL = (
    "register: ", "_card_of: ", "register_importer: ", "_build_field: a question on a ", "approve_submissions: Somebody approves.", "bulk_form_texts: ", "add: The rule ",
    "reading_minutes: ", ": Please answer this question.", "image_path: ", "get_or_create_order: ", "_require_https: ", "_build_xml: ", "parse_notification: ", "_lock_and_reload: ",
)  # fmt: skip
# Functions whose words are shown as they return them; those of acts are found by their parameters.
RETURNS = {"explain_no_conclusion", "describe_excluded_places"}
RETURNS_OF_FORMS = {
    "find_link_errors",
    "_find_lowered_promises",
    "_describe_fault",
    "problems",
    "warnings",
    "publishing_obstacles",
}
RETURNS_OF_BOARDS = {"find_opening_problems", "_find_problems_of_kind", "find_scoring_problem", "find_problem"}
RETURNS_OF_ANSWERS = {"complete_data_and_find_errors", "_not_stored_message"}
# Names that hold a refusal until a page of the forms shows it.
KEPT_REFUSALS = {"fault", "error"}
GAP = "…"
# What translates a message for annotators, and which of its arguments holds the words: of two forms, the plural.
TRANSLATORS = {"gettext": 0, "gettext_noop": 0, "ngettext": 1}
PLACEHOLDER = re.compile(r"%\(\w+\)s")
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
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }

    def messages(self):
        yield from self._of(self.tree, "", None)

    def _of(self, node, function, scope):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Lambda) and _is_of_act(child):
                yield from self._worded(child.body, function, child, child.lineno)
            if isinstance(child, ast.FunctionDef):
                returns = {
                    "forms": RETURNS | RETURNS_OF_FORMS,
                    "answers": RETURNS_OF_ANSWERS,
                    "boards": RETURNS_OF_BOARDS,
                }.get(self.area, RETURNS)
                if child.name in returns or _is_of_act(child):
                    yield from self._returned(child)
                yield from self._of(child, child.name, child)
                continue
            if (
                self.area == "rest"
                and isinstance(child, ast.Assign)
                and getattr(child.targets[0], "id", "") in CONSTANTS
            ):
                for text in self.texts(child.value, scope, set()):
                    yield Message(self.area, self.name, function, child.lineno, re.sub(r"{\w+}", GAP, text))
            if (words := self._words_of(child)) is not None:
                yield from self._worded(words, function, scope, getattr(child, "lineno", 0) or child.value.lineno)
            yield from self._of(child, function, scope)

    def _returned(self, function):
        for each in ast.walk(function):
            if isinstance(each, ast.Return) and each.value is not None:
                yield from self._worded(each.value, function.name, function, each.lineno)

    def _worded(self, words, function: str, scope, line: int):
        for text in self.texts(words, scope, set()):
            if SENTENCE.search(text.replace(GAP, " ")):
                yield Message(self.area, self.name, function, line, text)

    def texts(self, node, scope, seen: set) -> list[str]:
        """The texts that an expression may come to, with a gap for each value."""
        if isinstance(node, ast.Constant):
            return [node.value] if isinstance(node.value, str) else [GAP]
        if isinstance(node, ast.JoinedStr):
            return self._filled(node, scope, seen)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [self._joined(node)] if self._is_text(node) else [GAP]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # a translated message and its values
            return self.texts(node.left, scope, seen)
        if isinstance(node, ast.IfExp):
            return [*self.texts(node.body, scope, seen), *self.texts(node.orelse, scope, seen)]
        if isinstance(node, ast.BoolOp):
            return [text for value in node.values for text in self.texts(value, scope, seen)]
        if isinstance(node, ast.List | ast.Tuple):
            return [text for value in node.elts for text in self.texts(value, scope, seen)]
        if isinstance(node, ast.Dict):
            return [text for value in node.values for text in self.texts(value, scope, seen)]
        if isinstance(node, ast.DictComp | ast.ListComp):
            return self.texts(node.value if isinstance(node, ast.DictComp) else node.elt, scope, seen)
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
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"{name}.append":
                found += self.texts(node.args[0], scope, seen)
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AugAssign | ast.NamedExpr | ast.For)
                else []
            )
            for target in targets:
                value = node.iter if isinstance(node, ast.For) else node.value
                target = target.value if isinstance(target, ast.Subscript) else target  # errors["name"] = words
                if isinstance(target, ast.Name) and target.id == name:
                    found += self.texts(value, scope, seen)
                elif isinstance(node, ast.For) and isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                    place = next((n for n, one in enumerate(target.elts) if getattr(one, "id", "") == name), None)
                    rows = value.elts if place is not None else ()
                    found += [text for row in rows for text in self.texts(row.elts[place], scope, seen)]
        return found or [GAP]

    def _called(self, node, scope, seen) -> list[str]:
        if getattr(node.func, "id", "") == "format_html":
            return [strip_tags(text).replace("{}", GAP) for text in self.texts(node.args[0], scope, seen)]
        if getattr(node.func, "id", "") in TRANSLATORS:
            found = self.texts(node.args[TRANSLATORS[node.func.id]], scope, seen)
            return [PLACEHOLDER.sub(GAP, text) for text in found]
        if isinstance(node.func, ast.Name) and node.func.id in self.functions and node.func.id not in seen:
            inner = self.functions[node.func.id]
            seen = seen | {inner.name}
            returned = (
                each.value for each in ast.walk(inner) if isinstance(each, ast.Return) and each.value is not None
            )
            return [text for value in returned for text in self.texts(value, inner, seen)] or [GAP]
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "format", "values", "fromkeys"):
            return [
                *self.texts(node.func.value, scope, seen),
                *(t for arg in node.args[1:] for t in self.texts(arg, scope, seen)),
            ]
        return [GAP]

    def _words_of(self, node):
        """What holds the words of a message: the argument of a call, or a value that is kept; None where no message is made."""
        if self.area == "answers":
            return self._words_for_annotators(node)
        if self.area in AREAS_OF_FORMS and isinstance(node, ast.keyword) and node.arg == "error_messages":
            return node.value
        if (
            self.area in AREAS_OF_FORMS
            and isinstance(node, ast.Assign)
            and getattr(node.targets[0], "id", "") in KEPT_REFUSALS
        ):
            return node.value
        return self._words_of_call(node) if isinstance(node, ast.Call) else None

    def _words_for_annotators(self, node):
        """What a page for annotators says of an answer."""
        if isinstance(node, ast.keyword) and node.arg in ("error", "problem"):
            return node.value
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "error":
            return node.value
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "missing":  # of a kind of field
            return node.value
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("AnswerRefused", "self._refusal", "errors.append")
        ):
            return node.args[-1]
        return None

    def _words_of_call(self, call: ast.Call):
        if (place := MAKERS_OF.get(self.area, {}).get(ast.unparse(call.func))) is not None:
            return call.args[place] if len(call.args) > place else None
        func = call.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if self.area not in AREAS_OF_FIELD_ERRORS and name in FIELD_ERRORS:
            return None
        if isinstance(func, ast.Name):
            if func.id == "FieldsRefused" and isinstance(call.args[0], ast.Dict):
                return call.args[0].values[0]
            place = MAKERS.get(func.id)
            if func.id in KEYWORDS:
                return next((word.value for word in call.keywords if word.arg == KEYWORDS[func.id]), None)
        elif isinstance(func, ast.Attribute):
            owner = func.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            place = METHODS.get((name, func.attr))
            if func.attr == "add" and name.endswith("problems") and len(call.args) == 3:
                place = 2
        else:
            place = None
        return call.args[place] if place is not None and len(call.args) > place else None


def _is_of_act(function: ast.FunctionDef | ast.Lambda) -> bool:
    """Whether a function returns what is said after an act on a study."""
    parameters = [argument.arg for argument in function.args.args]
    return parameters[:1] == ["study"] and parameters[2:] == ["values"]


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
