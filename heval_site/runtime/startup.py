"""What must be true before the site serves: tables, cache, folders. Run again, it changes nothing."""

import os
import socket
import sys

from django.conf import settings
from django.core.checks import Error
from django.core.management import CommandError, call_command
from django.db import connection, connections

ADVISORY_LOCK_ID = (
    0x6865766C  # of our own among PostgreSQL's advisory locks: two containers that start at once migrate in turn
)


TOO_OLD_MESSAGE = (
    "This database was made by a version before 0.1.0, and was not upgraded to the last of them. Check out the commit be16bda of heval, run "
    "“heval prepare” there, then run this version again."
)


def prepare_site(verbosity: int = 0) -> None:
    """Apply the migrations and make the cache table and the media folder. Raises CommandError for a database that is too old."""
    settings.MEDIA_ROOT.mkdir(parents=True, exist_ok=True)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK_ID])
    try:
        # Django's own migrate takes half a second to find that there is nothing to do.
        if is_database_too_old():
            raise CommandError(TOO_OLD_MESSAGE)
        if verbosity or not is_migrated():
            call_command("migrate", interactive=False, verbosity=verbosity)
        call_command("createcachetable", verbosity=verbosity)
    finally:
        connection.close()  # and with it the lock


def is_migrated() -> bool:
    """Whether every migration is applied."""
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    return not is_database_too_old() and not executor.migration_plan(executor.loader.graph.leaf_nodes())


def is_database_too_old() -> bool:
    """Whether some of the migrations were applied that a later one replaces, and some of them were not."""
    from django.db.migrations.loader import MigrationLoader

    loader = MigrationLoader(connection)
    found = [[key in loader.applied_migrations for key in one.replaces] for one in loader.disk_migrations.values()]
    return any(any(applied) and not all(applied) for applied in found)


def check_database_age(app_configs, databases, **options):
    """Asked by ``migrate``, which would fail in words for nobody."""
    return [Error(TOO_OLD_MESSAGE)] if databases and is_database_too_old() else []


def claim_home_and_port():
    """The lock of this home, once it is known that the address is free too. Ends the process with a reason otherwise.

    Before anything is made: a password that only a server tells, which then cannot start, would be lost.
    """
    from . import supervisor

    lock = supervisor.acquire_home_lock(settings.HEVAL_HOME) if settings.EMBEDDED else None
    if settings.EMBEDDED and lock is None:
        supervisor.print_to_stderr(
            f"another `heval up` serves {settings.HEVAL_HOME}. End it first, or set HEVAL_HOME and PORT to start a second one."
        )
        sys.exit(1)
    family = socket.AF_INET6 if ":" in settings.LISTEN else socket.AF_INET
    try:
        socket.create_server((settings.LISTEN, settings.PORT), family=family).close()
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]  # the address stands there again
        supervisor.print_to_stderr(
            f"port {settings.PORT} of {settings.LISTEN} cannot be had: {why}. Set PORT to another one, such as "
            f"PORT={settings.PORT % 65535 + 1}."
        )
        sys.exit(1)
    return lock


def serve(lock, announcement: str = "") -> None:
    """Supervise the web server and the runner of jobs until a signal comes. Ends the process."""
    from . import supervisor

    os.environ["HEVAL_ANNOUNCE"] = announcement or f"heval serves {settings.SITE_URL}"
    # What is open here must not be shared by two processes; a pool's threads do not live on in a child at all.
    for one in connections.all():
        one.close()
        if one.vendor == "postgresql":
            one.close_pool()
    sys.stdout.flush()
    sys.stderr.flush()

    def child(work):
        def run():
            if lock is not None:
                lock.close()  # the supervisor alone holds it
            work()

        return run

    children = [
        supervisor.Child("The web server", child(_run_gunicorn)),
        supervisor.Child("The runner of jobs", child(lambda: call_command("worker"))),
    ]
    sys.exit(supervisor.supervise(children))


def _run_gunicorn() -> None:
    from gunicorn.app.wsgiapp import run

    sys.argv = ["gunicorn", "-c", "python:heval_site.server", "heval_site.wsgi:application"]
    run()
