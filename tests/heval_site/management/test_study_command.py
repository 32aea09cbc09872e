"""``heval study VERB``: the same verbs on another site and on the server, and their exit codes."""

import io
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from time import sleep
from types import SimpleNamespace

import httpx
import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from analysis.api.tokens import OPERATOR_KEY
from heval_site.management import operator
from heval_site.management.client import Site
from heval_site.management.client.http import Connection
from heval_site.management.commands import study as study_command
from studies.acts import ACTS
from studies.language.catalogues import message_count
from studies.models import Job, Study
from studies.services import jobs, lifecycle
from tests import ROOT
from tests.builders import recruitment, spa_draft, spa_study, user
from tests.in_process import FACTS, person_choosing, run_jobs, site_of
from tests.pseudo_language import pseudo_file
from tests.study_command import refusal, run

CLI = [sys.executable, "-m", "heval_site.management.cli"]


@pytest.fixture
def olga(db):
    return user("olga")


@pytest.fixture(params=["remote", "server"])
def where(request, olga, monkeypatch):
    """The options by which a command reaches the site as olga."""
    if request.param == "server":
        return ["--user", "olga"]
    monkeypatch.setenv("HEVAL_TOKEN", "any")
    monkeypatch.setattr(study_command.Command, "make_site", lambda self, address, token: site_of(olga))
    return ["--site", "http://localhost"]


@pytest.fixture
def files(tmp_path):
    for name in ("new", "old"):
        lines = [{"prompt": f"Question {n}?", "output": f"The {name} answer {n}."} for n in range(20)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "facts.json").write_text(json.dumps(FACTS))
    return tmp_path


def create(files, where, *more):
    outputs = [f"--outputs={name}={files / name}.jsonl" for name in ("new", "old")]
    options = [
        "--ask",
        "two_choice",
        "--criterion",
        "overall",
        "--people",
        "20",
        "--pages",
        "4",
        "--minutes",
        "5",
        "--reward",
        "1.00",
    ]
    return run(
        "create",
        "A checkpoint",
        *outputs,
        *options,
        "--public-title",
        "Comparing answers",
        "--facts",
        files / "facts.json",
        *more,
        *where,
    )


@pytest.mark.slow
def test_from_files_to_a_verdict(files, where, tmp_path):
    code, printed = create(files, where)
    name = printed.strip()
    assert code == 0 and len(name) == 36
    code, printed = run("check", name[:8], *where)
    assert code == 0 and printed.startswith("Nothing is missing.\n") and printed.endswith("/launch/\n")
    assert run("launch", "A checkpoint", *where) == (0, "The study is launched.\n")
    code, address = run("link", name, *where)
    assert code == 0 and "/e/" in address
    assert run("verdict", name, "new beats old", *where)[0] == 11
    study = Study.objects.get()
    for n in range(20):
        person_choosing(study, n, "new")
    assert run("status", name, *where) == (0, "A checkpoint: launched\n20 of 20 people, 0 places free\n")
    assert run("wait", name, "--until", "target", *where)[0] == 0
    assert run("close", name, *where) == (0, "closing\n")
    assert refusal("wait", name, "--timeout", "0.000001", *where)[0] == 12
    lifecycle.end_grace_period(Study.objects.get(), by=None)
    assert run("wait", name, *where) == (0, "The study is closed, with 20 people.\n")
    code, printed = run("report", name, "--resamples", "199", *where)
    assert code == 0 and "Analysis 1, result SHA-256" in printed
    code, printed = run("verdict", name, "new beats old", *where)
    assert code == 0 and printed.startswith("yes: ")
    assert run("verdict", name, "old beats new", *where)[0] == 10
    assert run("verdict", name, "--json", *where)[0] == 0
    target = tmp_path / "answers.csv"
    assert run("export", name, "responses.csv", "--output", target, *where)[0] == 0
    assert target.read_text().count("\n") > 80
    assert "close" in run("log", name, *where)[1]


def test_a_claim_that_the_design_does_not_have_is_refused_before_there_is_a_report(files, where):
    name = create(files, where)[1].strip()
    code, said = refusal("verdict", name, "New beats olt", *where)
    assert (
        code == 2 and "Write “new beats old” instead" in said and said.endswith(": “new beats old on overall quality”.")
    )
    assert run("verdict", name, "old beats new", *where)[0] == 11


def test_each_act_is_a_verb_with_its_options(files, where):
    name = create(files, where)[1].strip()
    code, printed = run("check", name, "--json", *where)
    assert code == 0 and json.loads(printed) == []
    code, copy = run("clone", name, "--title", "Again", *where)
    assert code == 0 and Study.objects.get(code=copy.strip()).title == "Again"
    assert run("archive", copy.strip(), *where)[0] == 0
    assert run("restore", copy.strip(), *where)[0] == 0
    code, printed = run("delete", copy.strip(), *where)
    assert code == 0 and printed.strip() in ("deleted", "archived")
    assert run("keep-template", name, "--title", "Ours", *where)[0] == 0
    assert refusal("pause", name, *where)[0] == 1
    assert "required" in refusal("outcomes", name, *where)[1]
    help_text = study_command.Command().create_parser("heval", "study").format_help()
    assert all(act in help_text for act in ACTS)


def test_a_draft_that_lacks_something_says_what(where):
    name = run("create", "A checkpoint", *where)[1].strip()
    code, printed = run("check", name, *where)
    assert code == 10 and "Missing: " in printed
    code, text = refusal("launch", name, *where)
    assert code == 1 and "409" in text


def test_a_draft_is_previewed_and_a_launched_study_amended(olga, where, tmp_path):
    draft = spa_draft(owner=olga, title="A draft")
    code, printed = run("preview", draft.code, *where)
    assert code == 0 and printed.endswith(f"/admin/studies/study/{draft.pk}/preview/\n")
    study = spa_study(olga)
    changes = tmp_path / "changes.json"
    changes.write_text('{"study": {"contact": "new@example.org"}}')
    assert run("amend", study.code, changes, "--reason", "It was wrong.", *where) == (0, "The design has version 2.\n")
    study.refresh_from_db()
    assert study.contact == "new@example.org"
    changes.write_text("[]")
    assert refusal("amend", study.code, changes, "--reason", "x", *where)[0] == 2
    changes.write_text('{"study": {"seed": 3}}')
    assert refusal("amend", study.code, changes, "--reason", "x", *where)[0] == 1


def test_pay_is_printed_for_each_arm_and_link(olga, where, tmp_path):
    study = spa_study(olga)
    link = recruitment(study, reward="2.00", currency="GBP", wanted=3)
    code, printed = run("pay", study.code, *where)
    assert code == 0 and "all: n = 0" in printed and f"link {link.key}: 0.00 paid" in printed
    assert json.loads(run("pay", study.code, "--json", *where)[1])["payments"] == []
    assert run("export", study.code, "payments.csv", "--output", tmp_path / "payments.csv", *where)[0] == 0
    assert "amount" in (tmp_path / "payments.csv").read_text()


def test_wrong_use_has_exit_code_2(files, where, monkeypatch):
    for arguments in (
        ("status", "nothing"),
        ("create", "A", "--outputs", "new"),
        ("create", "A", "--outputs", "new=nothing.jsonl"),
        ("create", "A", "--facts", str(files / "new.jsonl")),
    ):
        code, text = refusal(*arguments, *where)
        assert code == 2 and text.endswith("."), (arguments, text)
    assert not Study.objects.exists()


def test_a_file_may_come_from_the_standard_input(files, where, monkeypatch):
    content = (files / "new.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, printed = run("create", "A", "--outputs", "new=-", "--outputs", f"old={files / 'old.jsonl'}", *where)
    assert code == 0 and Study.objects.get(code=printed.strip()).systems.count() == 2


def test_on_the_server_the_owner_acts_by_default(olga):
    study = site_of(olga).create("A checkpoint")
    assert run("status", "A checkpoint")[0] == 0
    assert run("log", study.code)[0] == 0
    code, text = refusal("create", "Another")
    assert code == 2 and "--user NAME" in text
    assert refusal("status", study.code, "--user", "nobody") == (2, "There is no user nobody. Correct --user.")
    user("eve")
    code, text = refusal("status", study.code, "--user", "eve")
    assert code == 1 and "404" in text


def test_nobody_becomes_the_operator_over_the_network(olga):
    site_of(olga).create("A checkpoint")
    for name in (OPERATOR_KEY, "heval-operator", "heval_operator"):
        assert Client().get("/api/v1/studies/", headers={name: "olga"}).status_code == 401
    assert "heval.operator" not in Client().get("/api/v1/schema/").content.decode()


@pytest.mark.parametrize("is_alive", [True, False])
def test_jobs_that_nobody_runs_run_in_this_process(olga, files, is_alive, monkeypatch):
    name = create(files, ["--user", "olga"])[1].strip()
    monkeypatch.setattr(jobs, "is_runner_alive", lambda: is_alive)
    slept = []
    # Not the sleep of all threads: one that an earlier test left would be counted.
    monkeypatch.setattr(operator, "time", SimpleNamespace(sleep=lambda s: slept.append(s) or run_jobs(s)))
    assert run("launch", name)[0] == 0
    assert bool(slept) == is_alive


def test_a_job_whose_process_died_does_not_hold_up_the_command(olga, monkeypatch):
    away = SimpleNamespace(sleep=lambda seconds: pytest.fail("it waits for a process that is gone"))
    monkeypatch.setattr(operator, "time", away)
    study = spa_study(olga)
    lost = jobs.submit("analyse", study=study, by=olga, parameters={"resamples": 99})
    Job.objects.filter(pk=lost.pk).update(
        state="running", holder="gone", attempts=jobs.MAX_ATTEMPTS, leased_until=timezone.now() - timedelta(minutes=5)
    )
    assert run("report", study.code, "--resamples", "99")[0] in (0, 10, 11)
    lost.refresh_from_db()
    assert lost.state == "failed"


def away(request):
    raise httpx.ConnectError("Connection refused", request=request)


def test_a_dead_network_is_named_without_a_class(monkeypatch):
    monkeypatch.setenv("HEVAL_TOKEN", "any")
    connection = Connection("http://localhost", "any", transport=httpx.MockTransport(away), sleep=lambda seconds: None)
    monkeypatch.setattr(
        study_command.Command, "make_site", lambda self, address, token: Site("", connection=connection)
    )
    code, text = refusal("status", "00000000-0000-0000-0000-000000000000", "--site", "http://localhost")
    assert code == 1 and "cannot be reached" in text and "Error" not in text


def started(*arguments, **options):
    environment = {"PATH": os.environ["PATH"], "HEVAL_TOKEN": "any"}
    return subprocess.Popen(
        [*CLI, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_command_for_another_site_starts_without_settings_or_applications():
    program = (
        "import sys; from heval_site.management import cli\n"
        "try: cli.main(['study', 'status', 'x', '--site', 'eval'])\n"
        "except SystemExit as end: print(end.code, sorted({'studies.models', 'rest_framework', 'numpy', 'pandas', 'heval_site.settings'} & set(sys.modules)))"
    )
    environment = {"PATH": os.environ["PATH"], "HEVAL_TOKEN": "any"}
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert ended.stdout == "2 []\n" and ended.stderr == (
        "heval: eval is not a web address. Enter one, such as https://eval.example.org.\n"
    )


def test_ctrl_c_ends_without_a_traceback():
    # Nobody answers on this port, so the command waits to try again.
    process = started("study", "status", "x", "--site", "http://127.0.0.1:9")
    assert "cannot be reached" in process.stderr.readline()
    sleep(0.4)  # Between the line and the pause, a destructor could swallow the interrupt.
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(30, "Read-only file system", "/data/up.lock"), "heval: /data/up.lock cannot be written: Read-only"),
        (KeyboardInterrupt(), "130"),
    ],
)
def test_what_stops_a_command_is_a_line(error, said, monkeypatch):
    from heval_site.management import cli

    def fail(arguments):
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    with pytest.raises(SystemExit) as end:
        cli.main(["up"])
    assert str(end.value.code).startswith(said)


def test_a_pipe_that_closes_ends_without_a_traceback():
    process = started("--help")
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(20) in (0, 141) and said == ""


def test_a_database_that_cannot_be_used_is_a_line(monkeypatch):
    from heval_site.management import cli

    def fail(arguments):
        raise OperationalError("unable to open database file")

    monkeypatch.setattr("django.core.management.execute_from_command_line", fail)
    with pytest.raises(SystemExit) as end:
        cli.main(["token", "x"])
    assert str(end.value.code).startswith("heval: The database cannot be used: unable to open database file. ")


def test_bash_completes_commands_verbs_and_options(tmp_path):
    printed = io.StringIO()
    call_command("completion", stdout=printed)

    def completed(*words) -> list[str]:
        asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _heval; echo ${{COMPREPLY[@]}}"
        shell = ["bash", "--norc", "-c", f"{printed.getvalue()}\n{asked}"]
        return subprocess.run(shell, capture_output=True, text=True, check=True).stdout.split()

    assert completed("heval", "up") == ["up"]
    assert completed("heval", "study", "ver") == ["verdict"]
    assert completed("heval", "study", "launch", "x", "--ack") == ["--acknowledge"]
    assert completed("heval", "up", "--no") == ["--no-migrate"]
    assert completed("heval", "import", "new", "--own") == ["--owner"]


def test_the_words_of_the_pages_are_shown_brought_and_removed(where, olga, tmp_path, capfdbinary):
    study, file = spa_draft(owner=olga, language="el"), tmp_path / "el.po"
    n = message_count()
    assert run("translation", study.code, *where) == (0, f"en, those of heval: {n} of {n} messages\n")
    assert run("translation", study.code, "--get", *where)[0] == 0
    sys.stdout.flush()
    empty = capfdbinary.readouterr().out
    assert b'"Language: el\\n"' in empty and empty.count(b"\nmsgid ") == n + 1
    file.write_bytes(empty)
    code, said = refusal("translation", study.code, "--file", file, *where)
    assert code == 2 and "translates none of the messages" in said
    file.write_text(pseudo_file())
    assert run("translation", study.code, "--file", file, *where) == (0, f"el, from a file: {n} of {n} messages\n")
    assert json.loads(run("translation", study.code, "--json", *where)[1])["translated_by"] == "olga"
    assert run("translation", study.code, "--remove", *where)[1].startswith("en, those of heval")
    file.write_bytes(b"\xff")
    assert refusal("translation", study.code, "--file", file, *where) == (
        2,
        "The file of words is not UTF-8 text. Save it as UTF-8.",
    )
