"""Every block of the documentation is run against a site, or its fence says why not (``not run: …``). Data and other languages are checked."""

import configparser
import csv
import io
import json
import re
import shutil
import subprocess
import sys
import tomllib
import types
from collections import Counter
from textwrap import dedent

import pytest
import yaml
from django.core.cache import cache

from analysis.api.tokens import create_token
from heval_site.management.client import http
from tests.docs import world
from tests.docs.pages import FENCE, PAGES
from tests.docs.reader import Reader
from tests.in_process import the_world_goes_on

NOT_RUN = "not run: "
# Pages whose blocks another test runs in their order, and says more about.
OF_OTHER_TESTS = {
    "tutorial/evaluate-a-checkpoint": "tests/test_code_tutorial.py",
    "how-to/for-coding-agents": "tests/docs/test_agents.py",
}
# A block with another program, which might change the machine, must say why it is not run.
HARMLESS = {"heval", "curl", "python3", "python", "duckdb", "Rscript", "printf"}
# Programs with which lines of a shell begin.
PROGRAMS = r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:heval|curl|make|pip|python3?|duckdb|Rscript|printf|\S*bin/\w+|cd|export|docker|git|npm) "


def blocks_of(name: str) -> list[tuple[str, str, str]]:
    """(language, what is said behind it, code) of each block of a page."""
    return [(language, said, dedent(code)) for language, said, code in FENCE.findall(PAGES[name].text)]


BLOCKS = [(name, *block) for name in PAGES for block in blocks_of(name)]


def is_run_by_samples(name: str, language: str, said: str) -> bool:
    """Whether ``test_samples`` runs it: a module or template of heval, and what needs the inside of heval."""
    return said == "run" or (said.startswith("file=") and "/" in said)


def is_run_here(name: str, language: str, said: str) -> bool:
    ours = name not in OF_OTHER_TESTS and not is_run_by_samples(name, language, said)
    return language in ("python", "sh", "r", "sql") and ours and not said.startswith(NOT_RUN)


def other_programs(code: str) -> set[str]:
    """The programs with which lines of a shell begin, if they are not known to be harmless. Lines that go on, or are in quotes, begin none."""
    lines = re.sub(r"'[^']*'", "''", code.replace("\\\n", " ")).splitlines()
    return {line.split()[0] for line in lines if line.split()} - HARMLESS


def check_table(code: str) -> None:
    rows = list(csv.reader(io.StringIO(code), strict=True))
    assert len({len(row) for row in rows}) == 1, "rows of different lengths"


def check_settings(code: str) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    parser.optionxform = str
    parser.read_string(code if code.startswith("[") else f"[settings]\n{code}")


def check_shell(code: str) -> None:
    subprocess.run(["bash", "-n"], input=code, text=True, check=True)
    assert not re.search(r"\bcurl (?!.*--fail)", code.replace("\\\n", " ")), "curl without --fail hides a refusal"


def check_text(code: str) -> None:
    assert not re.match(PROGRAMS, code), "this is sh"


CHECKS = {
    "python": lambda code: compile(code, "a block", "exec"),
    "sh": check_shell,
    "json": json.loads,
    "csv": check_table,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "ini": check_settings,
    "text": check_text,
    # test_samples and test_deploy run them.
    "html": str,
    "nginx": str,
    "caddyfile": str,
    # Run here.
    "r": str,
    "sql": str,
}


def test_the_syntax_of_every_block_is_right():
    wrong = []
    for name, language, said, code in BLOCKS:
        try:
            CHECKS[language](code)
        except Exception as error:
            wrong.append((name, language, code[:60], f"{type(error).__name__}: {error}"))
        if language == "sh" and is_run_here(name, language, said) and (others := other_programs(code)):
            wrong.append((name, language, code[:60], f"{others} may change the machine"))
        if said.startswith(NOT_RUN) and len(said.removeprefix(NOT_RUN).split()) < 3:
            wrong.append((name, language, code[:60], "this is no reason"))
    assert not wrong
    fences = sum(text.count("```") for text in (page.text for page in PAGES.values()))
    assert fences == 2 * len(BLOCKS), "a fence has no language, or does not end"


@pytest.mark.django_db(transaction=True)
def test_every_block_runs(live_server, settings, monkeypatch, tmp_path):
    settings.SITE_URL = live_server.url
    monkeypatch.setattr(http, "sleep", the_world_goes_on)
    site = world.World(tmp_path)
    reader = Reader(tmp_path, live_server.url, create_token(site.ada, "reader", scope="write")[1], monkeypatch)
    failed, counts = [], Counter()
    for name in PAGES:
        mine = [block for block in blocks_of(name) if is_run_here(name, *block[:2])]
        variables = site.variables(name) if mine else {}
        for language, said, code in mine:
            assert language != "sh" or not other_programs(code), (name, code)
            cache.clear()  # limits of requests are another matter
            status, printed = run(reader, language, said, code, variables)
            counts[language] += status is not None
            wanted = int(said.removeprefix("exit=")) if said.startswith("exit=") else 0
            if status not in (wanted, None):
                failed.append(f"{name}, {language}, exit code {status}:\n{code}\n{printed[-2000:]}")
    assert not failed, "\n\n".join(failed)
    assert counts["sh"] > 25 and counts["python"] > 5, counts


def run(reader, language, said, code, variables) -> tuple[int | None, str]:
    """Return the exit code of a block, or None if its interpreter is not here; and what it prints."""
    if (language == "r" or "Rscript" in code) and not shutil.which("Rscript"):
        return None, ""
    if language == "sh":
        return reader.shell(code, **variables)
    if language == "r":
        (reader.folder / "block.R").write_text(reader.here(code))
        return reader.shell("Rscript block.R", **variables)
    if language == "sql":
        (reader.folder / "block.sql").write_text(code)
        return reader.shell("duckdb < block.sql", **variables)
    if said.startswith("file="):
        module = types.ModuleType(said.removeprefix("file=").removesuffix(".py"))
        exec(compile(reader.here(code), said, "exec"), module.__dict__)
        reader.monkeypatch.setitem(sys.modules, module.__name__, module)
        return 0, ""
    try:
        with reader.monkeypatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            reader.python(code)
    except Exception as error:
        return 1, f"{type(error).__name__}: {error}"
    return 0, ""
