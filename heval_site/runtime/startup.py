"""Prepare the site before it serves: tables, cache, folders. Idempotent."""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TextIO

from django.conf import settings
from django.core.checks import Error
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

ADVISORY_LOCK_ID = 0x6865766C  # heval's key among PostgreSQL's advisory locks, so that two containers that start at once migrate in turn

# Where a database has these, it has all migrations of commit be16bda. Those of commit 11713900 are what the first migrations replace: the
# first of each app replaces also the last of its app, so that a database whose upgrade ended in between has some of them and not all.
LAST_OF_BE16BDA = {
    "studies": "0009_a_level_lies_below_one_half",
    "annotators": "0013_images_that_were_not_seen",
    "analysis": "0004_codings_are_append_only",
}


def migrate_and_create_cache_and_media_folder(verbosity: int = 0, accept_new_key: bool = False) -> None:
    """Apply the migrations, create the cache table and the media folder, and compare PSEUDONYM_KEY with the database.

    Raises CommandError for a database that is too old, and ImproperlyConfigured for a wrong key.
    """
    from .pseudonym_key import store_or_compare_key

    settings.MEDIA_ROOT.mkdir(parents=True, exist_ok=True)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK_ID])
    try:
        # Django's own migrate command takes half a second even if there is nothing to do.
        if problem := explain_too_old_database(MigrationLoader(connection)):
            raise CommandError(problem)
        if verbosity or not is_migrated():
            call_command("migrate", interactive=False, verbosity=verbosity)
        call_command("createcachetable", verbosity=verbosity)
        store_or_compare_key(accept_new_key)
    finally:
        connection.close()  # this also releases the lock


def is_migrated() -> bool:
    """Return whether every migration is applied."""
    executor = MigrationExecutor(connection)
    loader = executor.loader
    return not explain_too_old_database(loader) and not executor.migration_plan(loader.graph.leaf_nodes())


def explain_too_old_database(loader: MigrationLoader) -> str:
    """Return how to upgrade a database that this version cannot upgrade, and nothing for any other."""
    applied = loader.applied_migrations.keys()
    used = {app for app, _ in applied}
    too_old = [
        one.app_label
        for one in loader.disk_migrations.values()
        if one.initial and one.replaces and one.app_label in used and not applied >= set(one.replaces)
    ]
    if not too_old:
        return ""
    is_before = any((app, LAST_OF_BE16BDA[app]) not in applied for app in too_old if app in LAST_OF_BE16BDA)
    steps = ", then ".join(f"with commit {commit}" for commit in ("be16bda", "11713900")[not is_before :])
    return (
        f"This database is from a version before 0.1.0. Run “heval prepare” {steps} of heval, then with this version."
    )


def check_schema_age(app_configs, databases, **options) -> list[Error]:
    """Check this before ``migrate``, which would fail with an unhelpful message."""
    return [Error(problem)] if databases and (problem := explain_too_old_database(MigrationLoader(connection))) else []


def lock_home_and_check_port_or_exit() -> TextIO | None:
    """Take the lock of this home, after checking that the address is free.

    Exits with a reason otherwise.
    This comes before anything is created: a generated password would be lost if the server cannot start.
    """
    from . import supervisor

    lock = supervisor.try_lock_home(settings.HEVAL_HOME) if settings.EMBEDDED else None
    if settings.EMBEDDED and lock is None:
        supervisor.print_to_stderr(
            f"Another `heval up` already serves {settings.HEVAL_HOME}. End it first, or set HEVAL_HOME and PORT "
            "to start a second one."
        )
        sys.exit(1)
    family = socket.AF_INET6 if ":" in settings.LISTEN else socket.AF_INET
    try:
        socket.create_server((settings.LISTEN, settings.PORT), family=family).close()
    except OSError as error:
        reason = str(error.strerror).partition(" (")[0]  # the address is still in use
        supervisor.print_to_stderr(
            f"Port {settings.PORT} of {settings.LISTEN} is not available: {reason}. Set another PORT, for example "
            f"PORT={settings.PORT % 65535 + 1}."
        )
        sys.exit(1)
    return lock


def close_connections_before_fork() -> None:
    """Two processes must not share open connections, and a pool's threads do not survive in a child."""
    for open_connection in connections.all():
        open_connection.close()
        if open_connection.vendor == "postgresql":
            open_connection.close_pool()  # type: ignore[attr-defined]  # only PostgreSQL has it


def in_child_process(work: Callable[[], str]) -> str:
    """Return what ``work`` returns in a process of its own. If it fails there, which it says itself, this process exits.

    Its memory is given back. Otherwise every process of the site would keep what making the tables of a new site took.
    """
    close_connections_before_fork()
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with open(writer, "w", encoding="utf-8") as pipe:
            pipe.write(work())
        sys.stdout.flush()
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        returned = pipe.read()
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(abs(status))
    return returned


def serve(home_lock, announcement: str = "") -> NoReturn:
    """Supervise the web server and the runners of jobs and batches until a signal arrives. Ends the process."""
    from studies.services import jobs

    from . import supervisor
    from .static_files import collect_changed_static_files

    if not settings.DEBUG and not settings.HAS_COLLECTED_STATIC:
        with suppress(OSError):  # a home that cannot be written: they are served from their source folders
            collect_changed_static_files()
    os.environ["HEVAL_ANNOUNCE"] = announcement or f"heval serves {settings.SITE_URL}"
    with suppress(Exception):  # a cache that is not there is a problem that /readyz names
        # Otherwise the job runner could begin a batch before the runner of batches has started.
        jobs.record_runner_heartbeat(jobs.BATCHES)
    close_connections_before_fork()
    sys.stdout.flush()
    sys.stderr.flush()

    def child(work):
        def run():
            if home_lock is not None:
                home_lock.close()  # only the supervisor holds it
            work()

        return run

    children = [
        supervisor.ChildProcess("The web server", child(_run_gunicorn)),
        supervisor.ChildProcess("The job runner", child(lambda: call_command("worker")), is_essential=False),
        supervisor.ChildProcess(
            "The runner of batches", child(lambda: call_command("worker", batches=True)), is_essential=False
        ),
    ]
    sys.exit(supervisor.supervise(children))


def _run_gunicorn() -> None:
    from gunicorn.app.wsgiapp import run

    sys.argv = ["gunicorn", "-c", "python:heval_site.server", "heval_site.wsgi:application"]
    run()
