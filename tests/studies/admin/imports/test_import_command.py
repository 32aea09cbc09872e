"""The command imports files and bundles into studies."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from studies.imports.bundle_files import bundle_text
from studies.models import Study
from tests.builders import add_spa, spa_draft, user
from tests.studies.admin.imports.uploaded import GOOD, outputs
from tests.studies.imports.tools import FILES


def run(*arguments) -> str:
    out = io.StringIO()
    call_command("import_study", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def table(tmp_path) -> Path:
    file = tmp_path / "fables.csv"
    file.write_bytes(GOOD)
    return file


def test_the_command_looks_and_writes(study, table):
    assert "Nothing was stored." in run(str(study.code), str(table), "--dry-run") and outputs(study) == 0
    assert "Imported into" in run(str(study.code), str(table)) and outputs(study) == 2
    assert "nothing was stored" in run(str(study.code), str(table))


def test_the_command_makes_a_new_study_only_if_something_is_in_it(db, table):
    with pytest.raises(SystemExit):
        run("new", str(table), "--owner", user("bob").username)
    assert "Nothing was stored" in run("new", str(table), "--create-systems", "--dry-run")
    assert not Study.objects.exists()
    user("ada")
    result = json.loads(run("new", str(table), "--create-systems", "--json", "--owner", "ada"))
    study = Study.objects.get()
    assert (result["study"], result["is_written"], study.title) == (str(study.code), True, "fables")
    assert study.owner.username == "ada" and study.arms.get().name == "all"


def test_the_command_reads_ready_made_batches(study, tmp_path):
    add_spa(study, m=1)
    file = tmp_path / "b.jsonl"
    file.write_text(
        json.dumps({"batch": "r1", "prompt_key": "p9", "prompt_text": "P", "outputs": {"alpha": "x", "beta": ""}})
    )
    with pytest.raises(SystemExit):
        run(str(study.code), str(file), "--batches")
    run(str(study.code), str(file), "--batches", "--allow-empty")
    assert study.batches.get().key == "r1"


def test_the_command_reads_a_bundle(db, tmp_path):
    file = tmp_path / "study.json"
    file.write_text(bundle_text(spa_draft(prompts=6)))
    assert "Nothing was stored" in run("new", str(file), "--dry-run") and Study.objects.count() == 1
    user("ada")
    assert "is a new draft" in run("new", str(file), "--owner", "ada") and Study.objects.count() == 2
    file.write_text('{\n "schema": "heval.bundle/2"}')
    with pytest.raises(CommandError, match="schema: must be"):
        run("new", str(file), "--owner", "ada")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x", "{table}"], "no study x"),
        (["new", "nowhere.csv"], "no file"),
        (["new", "{table}", "--owner", "nobody"], "no user"),
        (["new", "{table}"], "needs an owner"),
    ],
)
def test_the_command_says_what_it_cannot_find(db, table, arguments, said):
    with pytest.raises(CommandError, match=said):
        run(*(each.format(table=table) for each in arguments))


def test_a_log_of_a_tool_is_no_bundle(db, tmp_path):
    """Its file is one object of several lines, like a bundle."""
    log = tmp_path / "log.json"
    log.write_bytes(FILES["a log of Inspect"][1])
    assert "Imported into" in run("new", str(log), "--create-systems", "--owner", user("ada").username)
    assert Study.objects.get().systems.get().name == "openai/small"
