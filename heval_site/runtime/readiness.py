"""What must be true for a page to be shown, an answer to be stored and a job to be started. Each function returns a problem or ''."""

from uuid import uuid4

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.cache import cache
from django.db import connection

from studies.services import jobs

RUNNER_FIX = "Start heval up, heval worker, or the worker and beat of compose.yaml."


def database_problem() -> str:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT current_setting('transaction_read_only')")
        else:
            cursor.execute("SELECT CASE query_only WHEN 1 THEN 'on' ELSE 'off' END FROM pragma_query_only")
        return "" if cursor.fetchone()[0] == "off" else "The database is read-only, so that no answer can be stored."


def cache_problem() -> str:
    """Each check stores under a new name: an old value proves nothing, and another check may run at the same time."""
    name = f"heval:readyz:{uuid4().hex}"
    cache.set(name, True, 30)
    is_stored = cache.get(name)
    cache.delete(name)
    return "" if is_stored else "The cache stores nothing. Is its disk full or read-only?"


def static_files_problem() -> str:
    """Every page names the style sheet, and cannot be shown if this process knows no file for it."""
    if settings.HAS_COLLECTED_STATIC:
        try:
            name = staticfiles_storage.stored_name("heval.css")  # type: ignore[attr-defined]  # the storage of collected files
        except ValueError:
            name = ""
        if not name or not staticfiles_storage.exists(name):
            return f"STATIC_ROOT {settings.STATIC_ROOT} has no collected files. Run heval collectstatic, then restart the site."
    return ""


def runner_problem() -> str:
    missing = jobs.work_without_runner()
    return f"No process has run {' and '.join(missing)} for {jobs.HEARTBEAT_SECONDS} s. {RUNNER_FIX}" if missing else ""
