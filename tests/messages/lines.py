"""The table of messages: for each message that the code can show, a scenario that provokes it.

A module of this package holds the lines of an area in a dictionary that has the area's name, such as ``CHECKLIST``:

    "words of the message": scenario

The words are a part of the message as ``collected`` reads it from the source, with ``…`` for a value, and no other message of the area
has them. Two messages that share all their words are distinguished by their function: ``"amend: You can amend only"``.
``scenario()`` provokes the message as a user would, and returns what is shown. If a message has several causes, its line is a tuple of
scenarios. Nothing else is written down: what is shown is compared with the source, and it must say the next step.

A scenario may be wrapped. ``At`` names the place of the message, and ``only_informs`` is for a message that has no next step.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path

from django.db import transaction

from tests import ROOT
from tests.frozen import forget_frozen_designs

from .collected import GAP, Message, collected

# What the reader can do: a sentence or a clause that begins with one of these verbs, or one of the phrases below.
VERBS = (
    "add|allow|approve|ask|bring|change|check|choose|clone|close|compare|confirm|convert|copy|correct|create|"
    "decide|declare|delete|describe|do|draw|edit|empty|end|enter|exchange|exclude|export|fill|filter|"
    "generate|get|give|import|install|keep|launch|leave|look|lower|make|mark|move|name|open|order|"
    "paste|pay|place|plan|press|promise|put|raise|read|reload|remove|rename|replace|restore|round|run|"
    "save|see|send|separate|set|settle|shorten|show|split|stop|store|submit|switch|take|tick|try|"
    "unset|untick|update|upload|use|wait|withdraw|write"
)
STEP = re.compile(
    rf"(?:^|[.:;,!?)]\s+|\bor )(?:(?:or|and|then|so|first|now|please) )*(?:{VERBS})\b"
    r"|\b(?:must|needs|please|such as)\b|\bneed (?:not|to)\b|\bis needed\b|\buntil you\b|\bcan add\b|\btries again by itself\b"
    r"|\b(?:say|show|give|list)s? (?:why|how|what|them|the (?:reason|methods))\b",
    re.IGNORECASE,
)
# What no reader can use: an object or a class of the code, or a value that was not put in.
RAW = re.compile(r"\b(?:None|True|False)\b|<\w+ (?:object|at)\b|\b__\w+__\b|\b[A-Z]\w+(?:Exception|DoesNotExist)\b")
# Words with which no key ends, because they say little.
WEAK = re.compile(
    "a|an|and|are|as|at|be|but|by|can|for|from|had|has|have|in|is|it|must|no|not|of|on|or|so|that|the|this|to|was|with",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A text as it is shown, and the address to which it is linked.

    ``has_step``: what to do about it is said beside the text, for example once for all problems of a file.
    """

    text: str
    url: str = ""
    has_step: bool = False


Scenario = Callable[[], list[Shown]]
Table = dict[str, Scenario | tuple[Scenario, ...]]


@dataclass(frozen=True, slots=True)
class At:
    """A scenario, of which only what is shown at ``place`` counts.

    A place that begins with ``#`` or ``/`` is the end of the address to which the message is linked, where the reader corrects what is
    wrong. Any other place is the field, row or column that is named before the message.
    """

    place: str
    scenario: Scenario

    def __call__(self) -> list[Shown]:
        shown = self.scenario()
        if self.is_link:
            there = [replace(one, has_step=True) for one in shown if one.url.endswith(self.place)]
        else:
            there = [one for one in shown if f"{self.place}: " in one.text]
        assert there, f"Nothing is shown at {self.place}, but: {[(one.text, one.url) for one in shown]}"
        return there

    @property
    def is_link(self) -> bool:
        return self.place[:1] in ("#", "/")


def only_informs(scenario: Scenario) -> Scenario:
    """The message has no next step: nothing needs to be done, or the cause says it all."""
    return lambda: [replace(one, has_step=True) for one in scenario()]


def of_file(problems: Iterable[object]) -> list[Shown]:
    """Problems of a file: above their list, the page says once to correct the file and to upload it again."""
    return [Shown(str(problem), has_step=True) for problem in problems]


@cache
def tables(area: str) -> dict[str, Table]:
    """The tables of an area, by the paths of their files."""
    found = {}
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        name = path.relative_to(ROOT).with_suffix("")
        if not path.stem.startswith("test_") and path.stem != "__init__":
            table = getattr(import_module(".".join(name.parts)), area.upper(), None)
            if table is not None:
                found[f"{name}.py"] = table
    return found


def scenarios(table: Table) -> Iterator[tuple[str, Scenario]]:
    for words, mine in table.items():
        for scenario in mine if isinstance(mine, tuple) else (mine,):
            yield words, scenario


def faults(area: str) -> list[str]:
    """What is wrong with an area: messages without a line, lines whose message is not shown, and messages that lack the next step."""
    messages = [message for message in collected() if message.area == area]
    lines: dict[str, list[Message]] = {}  # the messages that have a line, by the file of the line
    found: list[str] = []
    for path, table in tables(area).items():
        of_words = {}
        for words in table:
            mine = [message for message in messages if words in _flat(message.key)]
            if len(mine) == 1:
                of_words[words] = mine[0]
            elif mine:
                texts = [message.key for message in mine]
                found.append(
                    f"{path}: several messages have the words “{words}”. Use more words of one of them: {texts}"
                )
            else:
                found.append(f"{path}: no message has the words “{words}”. Remove the line, or correct its words.")
        lines[path] = list(of_words.values())
        for words, scenario in scenarios(table):
            if words in of_words and (fault := _fault(of_words[words], scenario, messages)):
                found.append(f"{path}, “{words}”: {fault}")
    with_line = [message for mine in lines.values() for message in mine]
    for message in messages:
        if (n := with_line.count(message)) > 1:
            found.append(
                f"{n} lines are about the message “{message.text}”. Make one line of them, with all their scenarios."
            )
        elif not n:
            found.append(
                f"{message.module}.py, line {message.line}: no line provokes this message. Add to {area.upper()} in "
                f"{_nearest(message, lines)}:\n    {first_words(message, messages)!r}: a scenario that shows “{message.text}”,"
            )
    return found


def first_words(message: Message, messages: list[Message]) -> str:
    """As many of its words as no other message of the area has."""
    others = [_flat(other.key) for other in messages if other != message]
    words = message.text.split()
    start = next((n for n, word in enumerate(words) if re.search("[a-zA-Z]", word)), 0)
    for prefix in ("", f"{message.function}: ", f"{message.where}: "):
        for end in range(start + 3, len(words) + 1):
            last = words[end - 1].rstrip(".,:;…")
            key = prefix + " ".join([*words[start : end - 1], last])
            if last and not WEAK.fullmatch(last) and not any(key in other for other in others):
                return key
    return f"{message.where}: {' '.join(words)}"


def _fault(message: Message, scenario: Scenario, messages: list[Message]) -> str:
    try:
        shown = _undone(scenario)
    except Exception as error:  # the others are still worth knowing
        return f"its scenario failed: {type(error).__name__}: {error}"[:600]
    beside = [other for other in messages if other.where == message.where]
    mine = [one for one in shown if message.text in _best_fitting(one.text, beside)]
    if not mine:
        return f"its scenario does not show “{message.text}”. It shows: {[one.text for one in shown]}"[:1500]
    one = mine[0]
    said = one.text[message.pattern.search(one.text).start() :]
    if RAW.search(said):
        return f"“{one.text}” shows a value or a class of the code."
    if not (one.has_step or _names_step(message, said)):
        return (
            f"“{one.text}” does not say what to do. Name the next step, wrap the scenario in At if the message is linked to where it is "
            "corrected, or in only_informs if nothing needs to be done."
        )
    return ""


def _names_step(message: Message, said: str) -> bool:
    """Whether the words of the message name the next step. If it ends in a value or is a clause of another one, what is said names it."""
    is_whole = GAP not in message.text and message.text.endswith(".")
    return bool(STEP.search(message.text) or (not is_whole and STEP.search(said)))


def _best_fitting(text: str, messages: list[Message]) -> list[str]:
    """The texts of the messages that fit with the most words of their own."""
    fitting = defaultdict(list)
    for message in messages:
        if message.pattern.search(text):
            fitting[len(message.text.replace(GAP, ""))].append(message.text)
    return fitting[max(fitting)] if fitting else []


def _nearest(message: Message, lines: dict[str, list[Message]]) -> str:
    """The file with the lines of the same module, or of one close to it."""

    def closeness(path: str) -> tuple[int, int]:
        shared = [len(os.path.commonprefix([one.module, message.module])) for one in lines[path]] or [0]
        return max(shared), shared.count(max(shared))

    return max(lines, key=closeness, default=f"a new module of tests/messages, for example {message.area}.py")


def _flat(text: str) -> str:
    return " ".join(text.split())


def _undone(scenario: Scenario) -> list[Shown]:
    """What a scenario shows; of what it wrote nothing stays."""
    forget_frozen_designs()
    with transaction.atomic():
        try:
            return scenario()
        finally:
            transaction.set_rollback(True)
