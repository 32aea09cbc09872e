"""The list of messages: for each, who provokes it, which words name its cause, and what the reader can do next.

``LINES[where]`` holds the lines of the messages that are made at ``where`` (package:function). Each line is a tuple

    (cause, following, scenario)

``scenario()`` provokes the message as a researcher would, and gives what is shown: a list of ``Shown``. ``cause`` is a part of the shown
text, with the values that were put in. ``following`` is what the reader can do: words of the shown text, the end of the address to
which it is linked (it begins with ``#`` or ``/``), ``FILE`` where the page says once for all of a file's problems to correct the file,
or ``NOTHING`` where the message is pure information.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction

from tests.frozen import forget_frozen_designs

from .collected import Message, collected

FILE = "<correct the file>"
NOTHING = "<nothing needs to be done>"
Line = tuple[str, str, Callable[[], list["Shown"]]]


@dataclass(frozen=True, slots=True)
class Shown:
    """A text as it is shown, and the address to which it is linked, if it is."""

    text: str
    url: str = ""


def together(*parts: dict[str, list[Line]]) -> dict[str, list[Line]]:
    """The lines of several modules, which may speak of the same place."""
    found: dict[str, list[Line]] = {}
    for part in parts:
        for where, lines in part.items():
            found.setdefault(where, []).extend(lines)
    return found


def faults(area: str, lines: dict[str, list[Line]]) -> list[str]:
    """What is wrong with an area: messages without a line, lines whose message is not shown, and texts that lack cause or next step."""
    found: list[str] = []
    messages = [message for message in collected() if message.area == area]
    covered: set[str] = set()
    for where, mine in lines.items():
        there = [message for message in messages if message.where == where]
        if not there:
            found.append(f"{where}: no message is made there any more. Remove its lines.")
            continue
        for cause, following, scenario in mine:
            try:
                shown = _undone(scenario)
            except Exception as error:  # the others are still worth knowing
                found.append(f"{where}: the scenario of “{cause}” failed: {type(error).__name__}: {error}"[:400])
                continue
            if fault := _fault(there, cause, following, shown, covered):
                found.append(f"{where}: {fault}")
    for message in messages:
        if message.key not in covered:
            found.append(
                f"{message.module}.py, line {message.line}: no line of the list shows this message. Add to {area}.py, under "
                f"{message.where!r}: (cause, next step, scenario)  # {message.text}"
            )
    return found


def _fault(there: list[Message], cause: str, following: str, shown: list[Shown], covered: set[str]) -> str:
    mine = [one for one in shown if cause in one.text]
    if not mine:
        return f"its scenario does not show “{cause}”. It shows: {[one.text for one in shown]}"[:1500]
    for one in mine:
        fitting = [message for message in there if message.pattern.search(one.text)]
        if not fitting:
            continue
        covered.add(max(fitting, key=lambda message: len(message.text.replace("…", ""))).key)
        if following in (FILE, NOTHING):
            return ""
        if following[:1] in ("#", "/"):
            return "" if one.url.endswith(following) else f"“{one.text}” leads to {one.url!r}, not to {following!r}."
        return "" if following in one.text else f"“{one.text}” does not say the next step “{following}”."
    return f"“{mine[0].text}” is no message that is made there: {[message.text for message in there]}"[:1500]


def _undone(scenario) -> list[Shown]:
    """What a scenario shows; of what it wrote nothing stays."""
    forget_frozen_designs()
    with transaction.atomic():
        try:
            return scenario()
        finally:
            transaction.set_rollback(True)
