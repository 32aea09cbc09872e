"""The action for GitHub: what its steps run are commands and options that heval has."""

import os
import re
import subprocess

import pytest
import yaml
from django.core.management import load_command_class

from tests import ROOT
from tests.docs.pages import FENCE, PAGES

ACTION = yaml.safe_load((ROOT / "tools" / "action" / "action.yml").read_text(encoding="utf-8"))
INSTALL, ASK = ACTION["runs"]["steps"]


def asked(folder, code=0, **inputs) -> tuple[int, list[str], dict[str, str]]:
    """The exit code of the step, the words that heval got, and the output and summary. heval ends with ``code``."""
    program = folder / "heval" / "bin" / "heval"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/bash\nprintf "%s\\0" "$@" > "{folder}/words"\necho "said"\nexit {code}\n')
    program.chmod(0o755)
    given = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
    environment = {
        name: re.sub(r"\$\{\{ inputs\.(.+) \}\}", lambda m: given[m[1]], v) for name, v in ASK["env"].items()
    }
    files = {name: str(folder / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    environment |= {"PATH": os.environ["PATH"], "RUNNER_TEMP": str(folder), "GITHUB_RUN_ID": "7"} | files
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", ASK["run"]]
    ended = subprocess.run(shell, env=environment, capture_output=True, text=True)
    words = (folder / "words").read_text().split("\0")[:-1] if (folder / "words").exists() else []
    written = {name: (folder / name.lower()).read_text() for name in files if (folder / name.lower()).exists()}
    return ended.returncode, words, written


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"command": "judge", "study": "My study; rm -rf /"}, {"study": "My study; rm -rf /"}),
        (
            {"command": "submit", "board": "tales", "name": "a b"},
            {"board": "tales", "file": "outputs.jsonl", "name": "a b", "wait": False, "request_token": "7-tales-a b"},
        ),
        (
            {"command": "submit", "board": "tales", "name": "a", "baseline": "old", "max-loss": "2", "strict": "true"},
            {"wait": True, "baseline": "old", "max_loss": 2.0, "timeout": 5.0, "strict": True},
        ),
    ],
)
def test_the_words_of_a_step_are_those_of_a_command(tmp_path, inputs, expected):
    code, words, written = asked(tmp_path, 11, site="https://eval.example.org", **inputs)
    assert (code, written) == (11, {"GITHUB_OUTPUT": "code=11\n", "GITHUB_STEP_SUMMARY": "said\n"})
    name, *rest = words
    parsed = vars(load_command_class("heval_site", name).create_parser("heval", name).parse_args(rest))
    assert parsed["site"] == "https://eval.example.org" and expected.items() <= parsed.items()


def test_an_unknown_command_is_refused_and_success_has_code_0(tmp_path):
    assert asked(tmp_path / "a", command="juge")[:2] == (2, [])
    assert asked(tmp_path / "b", command="judge", study="x")[0] == 0


def test_no_input_becomes_a_part_of_a_script_and_each_is_used():
    assert not [step for step in (INSTALL, ASK) if "${{" in step["run"]]
    used = re.findall(r"inputs\.([\w-]+)", str([INSTALL["env"], ASK["env"]]))
    assert sorted(used) == sorted(ACTION["inputs"])


def test_the_recipe_gives_inputs_that_the_action_has():
    text = PAGES["how-to/test-each-night-whether-a-system-got-worse"].text
    block = next(code for language, _, code in FENCE.findall(text) if language == "yaml")
    (step,) = (one for one in yaml.safe_load(block)["jobs"]["quality"]["steps"] if "with" in one)
    needed = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert needed <= set(step["with"]) <= set(ACTION["inputs"])
