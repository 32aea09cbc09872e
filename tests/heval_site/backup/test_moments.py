"""A backup is of one moment, and people who withdrew after it are erased again."""

import errno
import json

import pytest
from django.db.models import QuerySet

from annotators.models import Assignment, Response
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from heval_site import backup
from heval_site.backup import BackupRefused, write_backup
from studies.models import AuditEvent, audit
from tests.builders import spa_study
from tests.players import play

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _files_of_this_test(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.ERASURES_FILE = tmp_path / "erasures.jsonl"


def test_rows_written_meanwhile_are_not_in_it(tmp_path, monkeypatch):
    audit.record("before", by=None)
    read = backup.digest_of
    written = []

    def digest_of(table, columns, notice):
        if not written:  # another connection writes after the snapshot has begun
            written.append(write_elsewhere())
        return read(table, columns, notice)

    monkeypatch.setattr(backup, "digest_of", digest_of)
    manifest = write_backup(tmp_path / "site.zip", lambda text: None)
    assert written and AuditEvent.objects.filter(verb="meanwhile").exists()
    assert manifest["tables"]["studies.auditevent"]["rows"] == AuditEvent.objects.count() - 1


def write_elsewhere():
    from threading import Thread

    from django.db import connection

    def write():
        audit.record("meanwhile", by=None)
        connection.close()

    thread = Thread(target=write)
    thread.start()
    thread.join()
    return True


def test_a_full_disk_leaves_no_half_of_a_backup(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backup, "digest_of", full)
    with pytest.raises(BackupRefused, match="cannot be written: No space left on device"):
        write_backup(tmp_path / "site.zip", lambda text: None)
    assert not list(tmp_path.glob("*site*"))


def test_who_withdrew_after_the_backup_is_erased_again(settings):
    study = spa_study(target_n=3)
    for n in range(3):
        play(study, n)
    answers = QuerySet(Response)  # below the guards of the managers
    answers.filter(text="").update(text="what they wrote")
    gone, stays = Assignment.objects.order_by("pk")[:2]
    texts = set(Response.objects.filter(assignment__in=[gone, stays]).values_list("pk", "text"))
    withdraw_annotator_and_erase_texts(gone)
    (line,) = settings.ERASURES_FILE.read_text().splitlines()
    assert str(gone.code) not in line and json.loads(line).keys() == {"at", "assignment"}
    assert settings.ERASURES_FILE.stat().st_mode & 0o777 == 0o600
    # The rows of an older backup come back.
    Assignment.objects.filter(pk=gone.pk).update(withdrawn_at=None)
    for pk, text in texts:
        answers.filter(pk=pk).update(text=text, erased_at=None)
    assert backup._erase_again([settings.ERASURES_FILE]) == 1
    assert not Response.objects.filter(assignment=gone).exclude(text="").exists()
    assert Response.objects.filter(assignment=stays).exclude(text="").exists()
    gone.refresh_from_db()
    stays.refresh_from_db()
    assert gone.withdrawn_at and not stays.withdrawn_at
    assert backup._erase_again([settings.ERASURES_FILE]) == 0
