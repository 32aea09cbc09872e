"""``heval completion``: names of commands, verbs and options that bash completes."""

import argparse
from typing import Any

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand

from heval_site.management.cli import COMMAND_MODULES, COMMANDS

SCRIPT = """\
_heval() {
  local words
  case "${COMP_WORDS[*]:1:COMP_CWORD-1}" in
%s
  esac
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _heval heval"""


class Command(BaseCommand):
    help = 'Print the completion of this command line for bash. Put eval "$(heval completion)" into your ~/.bashrc.'
    requires_system_checks = []

    def handle(self, **options):
        known = get_commands()
        words = {"": [*COMMANDS]}
        for name in COMMANDS:
            module = COMMAND_MODULES.get(name, name)
            if module in known:
                words |= _words(name, load_command_class(known[module], module).create_parser("heval", name))
        # Verbs come before their command.
        cases = [
            f'  "{name}"|"{name} "*) words="{" ".join(one)}";;' if name else f'  "") words="{" ".join(one)}";;'
            for name, one in sorted(words.items(), reverse=True)
        ]
        self.stdout.write(SCRIPT % "\n".join(cases))


def _words(name: str, parser: Any) -> dict[str, list[str]]:
    """Return what may follow a command, and each of its verbs."""
    usual = set(BaseCommand().create_parser("heval", name)._option_string_actions) - {"--help"}
    options = [option for option in parser._option_string_actions if option.startswith("--") and option not in usual]
    verbs = [one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    found = {name: [verb for choices in verbs for verb in choices] + options}
    for choices in verbs:
        for verb, verb_parser in choices.items():
            found |= _words(f"{name} {verb}", verb_parser)
    return found
