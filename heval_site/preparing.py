"""What must be true before the site serves: tables, cache, folders. Run again, it changes nothing."""

import os
import sys

from django.conf import settings
from django.core.management import call_command
from django.db import connection

LOCK = 0x6865766C  # of our own among PostgreSQL's advisory locks: two containers that start at once migrate in turn


def prepare(verbosity: int = 0) -> None:
    """Apply the migrations and make the cache table and the media folder."""
    settings.MEDIA_ROOT.mkdir(parents=True, exist_ok=True)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        # Django's own migrate takes half a second to find that there is nothing to do.
        if verbosity or not is_prepared():
            call_command("migrate", interactive=False, verbosity=verbosity)
        call_command("createcachetable", verbosity=verbosity)
    finally:
        connection.close()  # and with it the lock


def is_prepared() -> bool:
    """Whether every migration is applied."""
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def serve(announcement: str = "") -> None:
    """Become the supervisor of the web server and the runner. Does not return."""
    host = "127.0.0.1" if settings.LISTEN in ("0.0.0.0", "::") else settings.LISTEN  # noqa: S104 - asking, not listening
    host = f"[{host}]" if ":" in host else host
    os.environ["HEVAL_ANNOUNCE_URL"] = f"http://{host}:{settings.PORT}"
    os.environ["HEVAL_ANNOUNCE"] = announcement or f"heval serves {settings.SITE_URL}"
    connection.close()
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [str(settings.HEVAL_HOME)] if settings.EMBEDDED else []
    os.execv(sys.executable, [sys.executable, "-m", "heval_site.supervisor", *arguments])  # noqa: S606 - no shell is meant
