"""The page of commands: arguments and help, as `--help` prints them."""

import argparse
from collections.abc import Iterator
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from heval_site.management.cli import COMMAND_MODULES, COMMANDS
from heval_site.management.exit_codes import MEANINGS

from .markdown import PACKAGES, as_sentence, build_page, inline_code, markdown_table


def own_commands() -> dict[str, Any]:
    """Return the management commands of this project by their names in ``heval``."""
    shown_names = {module: name for name, module in COMMAND_MODULES.items()}
    own = {name: app for name, app in get_commands().items() if app in PACKAGES}
    return {shown_names.get(name, name): load_command_class(app, name) for name, app in sorted(own.items())}


def commands_page() -> str:
    commands = own_commands()
    order = [name for name in COMMANDS if name in commands or name == "secret"]
    order += [name for name in commands if name not in COMMANDS]
    parts = []
    for name in order:
        parts.append(f"## heval {name}")
        if name == "secret":
            parts.append("Print a new random secret, for SECRET_KEY or PSEUDONYM_KEY. It needs no settings.")
            continue
        parts += _command(name, commands[name])
    return build_page(
        "Commands",
        "`heval COMMAND` and, in a checkout, `python manage.py COMMAND` do the same. `heval COMMAND --help` prints the text of this page. "
        "All of Django's commands are available too, such as `createsuperuser`, `changepassword` and `shell`.",
        "## Exit codes",
        "All commands have these. A shell adds 130 for Ctrl-C and 141 for a pipe that was closed.",
        markdown_table(("Code", "Meaning"), [(str(code), text) for code, text in MEANINGS.items()]),
        *parts,
    )


def _command(name: str, command: Any) -> Iterator[str]:
    yield as_sentence(command.help)
    yield from _arguments(name, command.create_parser("heval", name))


def _arguments(name: str, parser: Any) -> Iterator[str]:
    """Yield the table of the arguments, or for a command with verbs a section for each verb."""
    usual = {action.dest for action in BaseCommand().create_parser("heval", name)._actions}
    rows = []
    for action in parser._actions:
        if action.dest in usual or action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            for verb, verb_parser in action.choices.items():
                yield f"### heval {name} {verb}"
                yield as_sentence(verb_parser.description or "")
                yield from _arguments(name, verb_parser)
            continue
        what = ", ".join(action.option_strings) or action.metavar or action.dest
        if action.option_strings and action.nargs != 0:
            choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
            what += f" {action.metavar or choices}"
        default = action.default
        has_default = default not in (None, False, argparse.SUPPRESS, []) and action.option_strings
        rows.append((inline_code(what), inline_code(default) if has_default else "", as_sentence(action.help or "")))
    if rows:
        yield markdown_table(("Argument", "Default", "Meaning"), rows)
