"""Every command that the documentation names is one that heval takes."""

import re
import shlex

import pytest
from django.core.management import CommandError, get_commands, load_command_class

from heval_site.management import cli
from tests import ROOT
from tests.docs.pages import DECISIONS, FENCE, PAGES
from tools.reference import commands


def test_every_command_is_named():
    from heval_site.management.cli import COMMANDS

    text = PAGES["reference/commands"].text
    missing = [name for name in {*COMMANDS, *commands.own_commands()} if f"## heval {name}\n" not in text]
    assert not missing


COMMAND = re.compile(r"^(?:\$ )?(?:\w+=\S+ )*(?:heval|\S*python3? -m heval_site\.management\.cli) (.+)$")


def commands_in(text: str) -> list[tuple[bool, list[str]]]:
    """(whether it is a whole line to be typed, its words) of each command of heval that a text names."""
    fenced = (
        "\n".join(code for language, _, code in FENCE.findall(text) if language in ("sh", "text"))
        .replace("\\\n", " ")
        .split("\n")
    )
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    lines = [(True, line) for line in fenced] + [(False, line) for line in inline]
    return [(is_line, shlex.split(found[1])) for is_line, line in lines if (found := COMMAND.match(line.strip()))]


def wrong_command(is_line: bool, words: list[str]) -> str:
    """What heval would say of a command's name or options; "" where it takes them."""
    name, *rest = words
    if name.startswith("--") or name == "COMMAND" or name == "secret":
        return ""
    name = cli.COMMAND_MODULES.get(name, name)
    if name not in (known := get_commands()):
        return f"there is no command {name}"
    parser = load_command_class(known[name], name).create_parser("heval", name)
    if not is_line:
        if name == "study" and rest:
            parser = parser._subparsers._group_actions[0].choices[rest[0]]
        asked = {word.strip("[]…").partition("=")[0] for word in rest if word.strip("[]").startswith("--")}
        return " ".join(sorted(asked - set(parser._option_string_actions)))
    try:
        parser.parse_args(rest)
    except CommandError as refused:
        return str(refused)
    return ""


def test_every_command_line_is_one_that_heval_takes():
    texts = {name: page.text for name, page in (PAGES | DECISIONS).items()}
    texts |= {
        name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")
    }
    found = [(name, is_line, words) for name, text in texts.items() for is_line, words in commands_in(text)]
    assert len([1 for _, is_line, _ in found if is_line]) > 10 and len(found) > 40
    assert not [(name, words, wrong) for name, is_line, words in found if (wrong := wrong_command(is_line, words))]


@pytest.mark.parametrize(
    "text",
    [
        "```text\nheval exprot 1\n```",
        "```text\nheval study export 1 x.csv --outptu x\n```",
        "```text\nheval study pay --dry-run\n```",
        "run `heval import X --replaces`",
        "run `heval study plan --poeple 3`",
    ],
)
def test_the_search_for_commands_finds_a_wrong_one(text):
    ((is_line, words),) = commands_in(text)
    assert wrong_command(is_line, words)
