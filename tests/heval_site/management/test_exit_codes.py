"""All commands have the exit codes of one table. Each is called with a wrong option, and with arguments that cannot be."""

import json
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command, get_commands

from heval_site.management import cli
from heval_site.management.exit_codes import FAILED, WRONG_USE
from studies.services import lifecycle
from tests import ROOT
from tests.builders import spa_study, user
from tests.study_command import connection_stays, refusal

pytestmark = pytest.mark.django_db
WRONG = {
    "token": ["nobody"],
    "import": ["new", "none.csv"],
    "import of a bad file": ["new", "{file}", "--owner", "olga"],
    "import of an archive": ["new", "{zip}", "--owner", "olga"],
    "rerun": ["none.zip"],
    "rerun of a file": ["{file}"],
    "restore": ["none.zip"],
    "restore of a file": ["{file}"],
    "backup": ["{file}"],
    "power": ["mean", "--difference", "1", "--sd", "0"],
    "study with robots": ["simulate", "{study}", "--robots", "0"],
    "study at a panel": ["reconcile", "{study}", "--link", "nothing"],
    "judge": ["nothing"],
    "submit": ["nothing", "none.jsonl"],
    "study": ["status", "nothing"],
    "study in words": ["report", "{study}", "--level", "nan"],
}


# In a process of its own: each command sets Django up and its logging, which closes what other tests write to.
WITH_A_WRONG_OPTION = """
import json
from heval_site.management import cli
found = {}
for name in [*cli.COMMANDS, "no-such-command"]:
    try:
        cli.main([name, "--no-such-option"])
    except SystemExit as end:
        found[name] = end.code
print(json.dumps(found))
"""


def test_an_unknown_option_or_command_is_wrong_use():
    ended = subprocess.run([sys.executable, "-c", WITH_A_WRONG_OPTION], capture_output=True, cwd=ROOT)
    assert json.loads(ended.stdout.splitlines()[-1]) == dict.fromkeys([*cli.COMMANDS, "no-such-command"], WRONG_USE)
    assert b"Traceback" not in ended.stderr


@pytest.mark.parametrize(("name", "code"), [("no-such-command", WRONG_USE), ("showmigrations", 0)])
def test_a_command_is_looked_for_before_the_applications_are_loaded(name, code):
    ended = subprocess.run([sys.executable, "-m", "heval_site.management.cli", name, "--help"], capture_output=True)
    assert ended.returncode == code and b"Traceback" not in ended.stderr


@pytest.mark.parametrize(("name", "words"), WRONG.items(), ids=WRONG)
def test_wrong_arguments_and_files_are_wrong_use(name, words, tmp_path):
    study = spa_study(user("olga"))
    file, archive = tmp_path / "bad.csv", tmp_path / "bad.zip"
    file.write_text("prompt,x\n1,2\n")
    archive.write_bytes(b"PK\x03\x04")
    given = [word.format(study=study.code, file=file, zip=archive) for word in words]
    command = name.partition(" ")[0]
    with connection_stays(), pytest.raises((CommandError, SystemExit)) as refused:
        call_command(cli.COMMAND_MODULES.get(command, command), *given)
    error = refused.value
    assert (error.code if isinstance(error, SystemExit) else error.returncode) == WRONG_USE, str(error)


def test_what_is_refused_in_the_present_state_has_failed():
    study = spa_study(user("olga"))
    lifecycle.start_closing(study, by=None)
    assert refusal("pause", study.code)[0] == FAILED


def test_each_command_that_takes_what_can_be_wrong_is_tried():
    takes_nothing_wrong = {"demo", "up", "worker", "prepare", "move", "doctor", "secret", "completion"}
    tried = {name.partition(" ")[0] for name in WRONG}
    assert tried | takes_nothing_wrong == set(cli.COMMANDS)
    assert {cli.COMMAND_MODULES.get(name, name) for name in cli.COMMANDS if name != "secret"} <= set(get_commands())
