"""``heval study reconcile``."""

import pytest
from django.core.management import CommandError, call_command

from annotators.models import PanelSubmission, PanelTask
from annotators.recruitment.panels import SubmissionSnapshot
from annotators.recruitment.panels.http_client import store_or_delete_secrets
from tests.annotators.recruitment.pretend import Pretend, recruitment_of, speaks
from tests.builders import spa_study, user
from tests.players import submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def panel(monkeypatch):
    made = Pretend()
    speaks(monkeypatch, made)
    return made


@pytest.fixture
def recruitment(panel):
    made = recruitment_of(spa_study(user("owner")))
    submitted(made.study, "W", recruitment=made, external_ids={"session": "S1"})
    return made


def said(capsys, *arguments) -> str:
    call_command("study", "reconcile", *arguments)
    return capsys.readouterr().out


def test_a_file_is_rehearsed_and_read(recruitment, tmp_path, capsys):
    file = tmp_path / "export.csv"
    file.write_text("S1,W,submitted\nS2,X,submitted\n")
    printed = said(capsys, recruitment.study.code, "--file", str(file), "--dry-run")
    assert (
        "2 submissions: 2 new, 0 changed, 1 matched to assignments, 1 confirmed" in printed
        and "Nothing was changed." in printed
    )
    assert not PanelSubmission.objects.exists()
    assert "     1 submitted at the panel, unknown in heval" in said(
        capsys, recruitment.study.code, "--file", str(file)
    )
    assert PanelSubmission.objects.count() == 2


def test_the_service_is_asked(recruitment, panel, capsys):
    with pytest.raises(CommandError, match="has no panel token"):
        call_command("study", "reconcile", recruitment.study.code)
    store_or_delete_secrets(recruitment, {"token": "t"}, by=None)
    PanelTask.objects.create(recruitment=recruitment, external_id="T")
    panel.shown["T"] = [SubmissionSnapshot("T", "S1", "W", "approved")]
    assert "     1 approved or rejected" in said(capsys, recruitment.study.code)


def test_the_command_names_what_is_wrong(recruitment, tmp_path):
    odd = tmp_path / "odd.csv"
    odd.write_text("S1,W\n")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    for arguments, words in (
        ([recruitment.study.code, "--link", "nothing"], f"one of: {recruitment.key}"),
        ([recruitment.study.code, "--file", str(odd)], "Row 1 has not three columns"),
        ([recruitment.study.code, "--file", str(binary)], "byte 0x00 is not UTF-16"),
        ([recruitment.study.code, "--file", str(tmp_path / "none.csv")], "cannot be read"),
    ):
        with pytest.raises(CommandError, match=words):
            call_command("study", "reconcile", *arguments)
