"""A snapshot of the database: everything that an analysis or an export reads is from one moment."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from django.db import connections, transaction
from django.db.utils import DEFAULT_DB_ALIAS

MAX_SNAPSHOTS = 2
WAIT_SECONDS = 60
_snapshot_slots = threading.BoundedSemaphore(MAX_SNAPSHOTS)


class TooManySnapshots(Exception):
    """Too many snapshots are open in this process. Try again later."""


@contextmanager
def database_snapshot() -> Iterator[None]:
    """Replace this thread's default connection by a read-only one that sees one moment of the database.

    All code that runs inside reads that moment. Nothing can be written, so a job must report its progress outside. The
    connection is not from the web's pool. A process opens at most two at a time and raises TooManySnapshots after waiting a
    minute. Inside an open transaction (a test's, or another snapshot) the caller's connection is used. Texts that are not UTF-8
    are read with the replacement character in both cases, so that a damaged row cannot stop a report.
    """
    caller = connections[DEFAULT_DB_ALIAS]
    if caller.in_atomic_block:
        with lenient_text_decoding(caller):
            yield
        return
    if not _snapshot_slots.acquire(timeout=WAIT_SECONDS):
        raise TooManySnapshots("Other reports are being computed. Try again in a minute.")
    try:
        reader = caller.copy(DEFAULT_DB_ALIAS)
        _configure(reader)
        reader.inc_thread_sharing()  # the thread that garbage-collects an unclosed stream may close the connection
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


@contextmanager
def used_connection(connection) -> Iterator[None]:
    """Use this connection meanwhile, such as the one from before a snapshot, which can write."""
    usual = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connection
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual


def _configure(reader) -> None:
    options = {key: value for key, value in reader.settings_dict["OPTIONS"].items() if key != "pool"}
    if reader.vendor == "sqlite":
        # A read transaction on an IMMEDIATE connection would block every writer.
        options["transaction_mode"] = "DEFERRED"
        options["init_command"] = f"{options.get('init_command', '')};PRAGMA query_only=ON".lstrip(";")
    reader.settings_dict |= {"OPTIONS": options, "CONN_MAX_AGE": 0}


def _begin(reader) -> None:
    with reader.cursor() as cursor:
        if reader.vendor == "postgresql":
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        # The snapshot starts at the first read, not at BEGIN.
        cursor.execute("SELECT 1 FROM django_migrations LIMIT 1")
        cursor.fetchall()


@contextmanager
def lenient_text_decoding(connection) -> Iterator[None]:
    """Replace bytes that are not UTF-8. SQLite can store any bytes in a text column, and one would fail the whole query."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    usual = connection.connection.text_factory
    # Without a frame of Python for each of a million cells.
    connection.connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    try:
        yield
    finally:
        connection.connection.text_factory = usual
