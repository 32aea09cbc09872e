"""One moment of the database for everything that an analysis or an export reads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connections, transaction
from django.db.utils import DEFAULT_DB_ALIAS

MAX_SNAPSHOTS = 2
WAIT_SECONDS = 60
_snapshot_slots = threading.BoundedSemaphore(MAX_SNAPSHOTS)


class TooManySnapshots(Exception):
    """Too many long reads are running in this process; try again."""


@contextmanager
def snapshot() -> Iterator[None]:
    """Within it this thread's default connection is a second one, read only, that sees one moment of the database.

    Guards, managers and functions that know nothing of it read that moment too. Nothing can be written: a job reports its
    progress outside. It is opened outside the web's pool, at most two at a time in a process (``Busy`` after a minute). Inside
    an open transaction (a test's, or another snapshot) it reads the caller's connection. Texts that are not UTF-8 are read with
    the replacement character in both cases, so that a damaged row cannot stop a report.
    """
    caller = connections[DEFAULT_DB_ALIAS]
    if caller.in_atomic_block:
        with lenient_text_decoding(caller):
            yield
        return
    if not _snapshot_slots.acquire(timeout=WAIT_SECONDS):
        raise TooManySnapshots("Other reports are being read at the moment. Please try again in a minute.")
    try:
        reader = caller.copy(DEFAULT_DB_ALIAS)
        _configure(reader)
        reader.inc_thread_sharing()  # whichever thread drops a stream that nobody closed closes it
        connections[DEFAULT_DB_ALIAS] = reader
        try:
            with transaction.atomic(), lenient_text_decoding(reader):
                _begin(reader)
                yield
        finally:
            connections[DEFAULT_DB_ALIAS] = caller
            reader.close()
    finally:
        _snapshot_slots.release()


def _configure(reader) -> None:
    options = {key: value for key, value in reader.settings_dict["OPTIONS"].items() if key != "pool"}
    if reader.vendor == "sqlite":
        # A reading transaction on an IMMEDIATE connection would hold up every writer.
        options["transaction_mode"] = "DEFERRED"
        options["init_command"] = f"{options.get('init_command', '')};PRAGMA query_only=ON".lstrip(";")
    reader.settings_dict |= {"OPTIONS": options, "CONN_MAX_AGE": 0}


def _begin(reader) -> None:
    with reader.cursor() as cursor:
        if reader.vendor == "postgresql":
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # The moment is that of the first read, not of BEGIN.
        cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
        cursor.fetchall()


@contextmanager
def lenient_text_decoding(reader) -> Iterator[None]:
    """SQLite hands over whatever bytes a text column holds; one wrong byte would else raise for the whole query."""
    if reader.vendor != "sqlite":
        yield
        return
    reader.ensure_connection()
    usual = reader.connection.text_factory
    reader.connection.text_factory = _text
    try:
        yield
    finally:
        reader.connection.text_factory = usual


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")
