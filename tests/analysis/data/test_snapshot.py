"""A snapshot sees one moment, writes nothing, and blocks nobody."""

import threading

import pytest
from django.db import connection, connections, transaction
from django.db.utils import DatabaseError

from analysis.data import snapshot as module
from analysis.data.snapshot import TooManySnapshots, database_snapshot
from studies.models import AuditEvent

pytestmark = pytest.mark.postgres


def write(verb):
    """From another thread, as another process would."""

    def work():
        try:
            AuditEvent.objects.create(verb=verb)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "the writer was held up"


@pytest.mark.django_db(transaction=True)
def test_it_sees_the_moment_at_which_it_began():
    AuditEvent.objects.create(verb="before")
    with database_snapshot():
        write("meanwhile")
        assert list(AuditEvent.objects.values_list("verb", flat=True)) == ["before"]
    assert AuditEvent.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_nothing_can_be_written_in_it_and_the_callers_connection_comes_back():
    before = connections["default"]
    with pytest.raises(DatabaseError), database_snapshot():
        assert connections["default"] is not before
        AuditEvent.objects.create(verb="never")
    assert connections["default"] is before
    AuditEvent.objects.create(verb="afterwards")
    assert AuditEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_in_another_is_the_same_moment():
    with database_snapshot():
        outer = connections["default"]
        with database_snapshot():
            assert connections["default"] is outer


@pytest.mark.django_db(transaction=True)
def test_a_third_at_once_is_refused_after_waiting(monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.05)
    entered, leave = threading.Barrier(3), threading.Event()

    def hold():
        try:
            with database_snapshot():
                entered.wait(10)
                leave.wait(10)
        finally:
            connections.close_all()

    holders = [threading.Thread(target=hold) for _ in range(2)]
    for holder in holders:
        holder.start()
    entered.wait(10)
    with pytest.raises(TooManySnapshots), database_snapshot():
        pass
    leave.set()
    for holder in holders:
        holder.join(10)
    with database_snapshot():
        pass


@pytest.mark.django_db
def test_in_an_open_transaction_it_reads_the_callers_connection():
    before = connections["default"]
    with transaction.atomic():
        AuditEvent.objects.create(verb="uncommitted")
        with database_snapshot():
            assert connections["default"] is before
            assert AuditEvent.objects.count() == 1
    assert connection.in_atomic_block
