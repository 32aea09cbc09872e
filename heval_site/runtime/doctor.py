"""Check this installation, and say how to fix problems.

Each check is a function; its docstring says what must be true.
"""

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from uuid import uuid4

from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core.cache import cache
from django.db import OperationalError, connection

from studies.services import jobs

from . import broker, environment, pseudonym_key
from .startup import is_migrated

# What must be true for a page to be shown, an answer to be stored and a job to be started. Each function returns a
# problem or ''.


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
    """Where STATIC_ROOT promises collected files, this process knows them. Without them, files are sent uncompressed."""
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


OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"
FREE_BYTES_FAILED, FREE_BYTES_WARNING = 200 * 2**20, 2 * 2**30
CLOCK_TOLERANCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """``message``: the result; ``fix``: what to do if it is not well."""

    status: str
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    status: str
    message: str
    fix: str


_checks: dict[str, Callable[[], CheckFinding]] = {}
# These checks need the database.
_need_database: set[str] = set()


def register_check(
    name: str, needs_database: bool = False
) -> Callable[[Callable[[], CheckFinding]], Callable[[], CheckFinding]]:
    def registered(function):
        _checks[name] = function
        if needs_database:
            _need_database.add(name)
        return function

    return registered


def run_all_checks() -> Iterator[CheckResult]:
    """Yield the results of all checks, one after the other."""
    has_database = True
    for name, function in _checks.items():
        if name in _need_database and not has_database:
            finding = CheckFinding(SKIPPED, "the database does not answer")
        else:
            try:
                finding = function()
            except Exception as error:  # a check that fails with an error is also a problem
                message = " ".join(str(error).split())
                finding = CheckFinding(FAILED, f"{type(error).__name__}: {message}", FIXES.get(name, ""))
        if name == "database" and finding.status == FAILED:
            has_database = False
        yield CheckResult(name, finding.status, finding.message, finding.fix)


def results_as_json(results: list[CheckResult]) -> dict:
    return {"ok": not has_failed_result(results), "checks": [asdict(result) for result in results]}


def has_failed_result(results: list[CheckResult]) -> bool:
    return any(result.status == FAILED for result in results)


FIXES = {
    "database": (
        "Check that the server of DATABASE_URL runs, and that its name and password are right. Without "
        "DATABASE_URL, check that HEVAL_HOME is writable."
    ),
    "cache": "Run: heval prepare. With REDIS_URL, also check that its server runs.",
    "migrations": "Run: heval prepare",
}


@register_check("settings")
def _settings() -> CheckFinding:
    """Django's own deployment checks report nothing."""
    from django.core.checks import WARNING as LEVEL
    from django.core.checks import run_checks

    problems = [message for message in run_checks(include_deployment_checks=settings.SECURE) if message.level >= LEVEL]
    problems = [message for message in problems if message.id not in settings.SILENCED_SYSTEM_CHECKS]
    if settings.DEBUG:
        return CheckFinding(
            WARNING,
            "DEBUG is on: error pages show settings and answers",
            "Unset DEBUG before other people use this site.",
        )
    if problems:
        return CheckFinding(
            FAILED, "; ".join(f"{message.id} {message.msg}" for message in problems), "Run: heval check --deploy"
        )
    return CheckFinding(OK, "embedded: SQLite in HEVAL_HOME" if settings.EMBEDDED else "deployed")


@register_check("variables")
def _variables() -> CheckFinding:
    """No variable of the environment looks like a misspelt one of heval."""
    if misspelt := environment.find_misspelt_names():
        message = "; ".join(f"{name}: did you mean {meant}?" for name, meant in misspelt.items())
        return CheckFinding(WARNING, message, "heval does not read these variables. Rename or remove them.")
    return CheckFinding(OK, "no name looks misspelt")


@register_check("secrets")
def _secrets() -> CheckFinding:
    """Both keys are long and differ.

    Only the owner can read the embedded files and their folder. (A short key stops the start.)
    """
    if settings.EMBEDDED and os.name == "posix" and (open_paths := _open_to_others(settings.HEVAL_HOME)):
        # The operator may have given a group access to the folder on purpose, and to files without restrictive modes.
        is_grave = any(mode & (0o007 if path == settings.HEVAL_HOME else 0o077) for path, mode in open_paths.items())
        fixes = [f"chmod {'700' if path == settings.HEVAL_HOME else '600'} {quote(str(path))}" for path in open_paths]
        message = f"others on this machine can read {' and '.join(map(str, open_paths))}"
        return CheckFinding(FAILED if is_grave else WARNING, message, f"Run: {'; '.join(fixes)}")
    return CheckFinding(
        OK,
        "SECRET_KEY and PSEUDONYM_KEY are long and differ; keep copies, because PSEUDONYM_KEY links people "
        "to their answers",
    )


def _open_to_others(home: Path) -> dict[Path, int]:
    """Return the folder and the key files in it that other users can open, with their modes.

    heval does not change the permissions of an existing folder. The database in it is as readable as the folder allows.
    """
    paths = [home, *(home / name for name in ("secret_key", "pseudonym_key"))]
    modes = {path: path.stat().st_mode for path in paths if path.exists()}
    return {path: mode for path, mode in modes.items() if mode & 0o077}


@register_check("site address")
def _site_address() -> CheckFinding:
    """Annotators' links are credentials: they use HTTPS, and a host that this site accepts."""
    from urllib.parse import urlsplit

    host = urlsplit(settings.SITE_URL).hostname
    if host not in [name.strip("[]") for name in settings.ALLOWED_HOSTS]:
        return CheckFinding(FAILED, f"{settings.SITE_URL} is not among ALLOWED_HOSTS", f"Add {host} to ALLOWED_HOSTS.")
    if not settings.SECURE:
        fix = "Set SITE_URL to the https:// address of your proxy before you invite annotators."
        return CheckFinding(WARNING, f"only this machine can reach {settings.SITE_URL}", fix)
    if settings.SECURE_SSL_REDIRECT and not settings.TRUSTED_PROXY_COUNT:
        fix = (
            "Set TRUSTED_PROXY_COUNT to the number of your proxies that set X-Forwarded-Proto. Otherwise the "
            "redirect to https never ends."
        )
        return CheckFinding(WARNING, f"{settings.SITE_URL}, but no proxy is trusted", fix)
    return CheckFinding(OK, settings.SITE_URL)


@register_check("database")
def _database() -> CheckFinding:
    """The database answers, takes writes and has a supported version."""
    if connection.vendor == "postgresql":
        _connect_without_pool()
    if problem := database_problem():
        return CheckFinding(FAILED, problem, "Point DATABASE_URL to the primary server, or let it take writes again.")
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW server_version")
            version = cursor.fetchone()[0]
            if connection.pg_version < 140000:  # type: ignore[attr-defined]  # only PostgreSQL has it
                return CheckFinding(FAILED, f"PostgreSQL {version}", "Use PostgreSQL 14 or newer.")
            return CheckFinding(OK, f"PostgreSQL {version}")
        cursor.execute("SELECT sqlite_version()")
        message = f"SQLite {cursor.fetchone()[0]}, {settings.DATABASES['default']['NAME']}"
    return CheckFinding(OK, f"{message}: suitable for about ten annotators at once; use PostgreSQL for more")


def _connect_without_pool() -> None:
    """Let the server's own reason for a refusal appear. The pool only says that it got no connection in time."""
    import psycopg

    try:
        psycopg.connect(**connection.get_connection_params()).close()
    except psycopg.Error as error:
        password = settings.DATABASES["default"].get("PASSWORD")
        message = str(error).replace(password, "***") if password else str(error)
        raise OperationalError(message) from None


@register_check("durability", needs_database=True)
def _durability() -> CheckFinding:
    """An acknowledged answer survives a power cut."""
    required = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(required)])
            settings_in_use = dict(cursor.fetchall())
        stronger = {"remote_apply", "remote_write"}
        bad = [
            f"{name} = {value}"
            for name, value in sorted(settings_in_use.items())
            if value != required[name] and value not in stronger
        ]
        if bad:
            return CheckFinding(
                FAILED,
                ", ".join(bad),
                f"Set {', '.join(f'{n} = on' for n in required)} in PostgreSQL. Otherwise acknowledged answers "
                "can be lost.",
            )
        return CheckFinding(OK, ", ".join(f"{name} = {value}" for name, value in sorted(settings_in_use.items())))
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        journal = cursor.fetchone()[0]
        cursor.execute("PRAGMA synchronous")
        synchronous = cursor.fetchone()[0]
    message = f"journal_mode = {journal}, synchronous = {synchronous}"
    if journal != "wal" or synchronous < 2:
        fix = "Keep HEVAL_HOME on a local disk. SQLite's WAL mode does not work over a network."
        return CheckFinding(FAILED, message, fix)
    return CheckFinding(OK, message)


@register_check("migrations", needs_database=True)
def _migrations() -> CheckFinding:
    """All migrations are applied."""
    return (
        CheckFinding(OK, "all applied")
        if is_migrated()
        else CheckFinding(FAILED, "some are not applied", FIXES["migrations"])
    )


@register_check("pseudonym key", needs_database=True)
def _pseudonym_key() -> CheckFinding:
    """PSEUDONYM_KEY is the one with which the database was prepared."""
    if pseudonym_key.has_wrong_key():
        return CheckFinding(FAILED, "another key prepared this database", pseudonym_key.WRONG_KEY)
    return CheckFinding(OK, "the key of this database")


@register_check("cache", needs_database=True)
def _cache() -> CheckFinding:
    """The cache works and is shared by all processes, because rate limits are counted in it."""
    backend = settings.CACHES["default"]["BACKEND"].rsplit(".", 1)[1]
    if cache_problem():
        return CheckFinding(FAILED, f"{backend} forgets", FIXES["cache"])
    if backend in ("LocMemCache", "DummyCache", "FileBasedCache"):
        return CheckFinding(
            FAILED, f"{backend} is not shared by all processes", "Set REDIS_URL, or keep the cache in the database."
        )
    return CheckFinding(OK, backend)


@register_check("broker")
def _broker() -> CheckFinding:
    """The broker can be reached, if one is set. Jobs run without it, some seconds later."""
    if not settings.CELERY_BROKER_URL:
        return CheckFinding(SKIPPED, "not set; heval up or heval worker runs the jobs")
    if broker.is_broker_reachable():
        return CheckFinding(OK, "reachable")
    return CheckFinding(
        FAILED,
        "cannot be reached",
        "Check that the server of CELERY_BROKER_URL (or REDIS_URL) runs. No job is lost meanwhile.",
    )


@register_check("runner", needs_database=True)
def _runner() -> CheckFinding:
    """A worker runs jobs and releases expired places."""
    counts = jobs.unfinished_job_counts()
    message = ", ".join(f"{n} {name}" for name, n in counts.items())
    if missing := jobs.work_without_runner():
        finding = f"no process has run {' and '.join(missing)} for {jobs.HEARTBEAT_SECONDS} s ({message})"
        return CheckFinding(FAILED, finding, RUNNER_FIX)
    if counts["expired"]:
        return CheckFinding(
            WARNING, message, "Jobs without a living worker are restarted within a minute. Run this check again."
        )
    return CheckFinding(OK, message)


@register_check("panels", needs_database=True)
def _panels() -> CheckFinding:
    """No panel with a stored token needs attention, and no link keeps ids beyond the erasure date."""
    from annotators.pay import ledger
    from annotators.recruitment.panels.alerts import find_panel_alerts
    from annotators.recruitment.panels.sync import recruitments_to_sync

    synced = list(recruitments_to_sync())
    alerts = [(recruitment, alert) for recruitment in synced for alert in find_panel_alerts(recruitment)]
    others = (
        ledger.links_retaining_ids_for_pay_past_erasure()
        .exclude(pk__in=[recruitment.pk for recruitment in synced])
        .order_by("pk")
    )
    alerts += [(recruitment, alert) for recruitment in others for alert in ledger.id_retention_alerts(recruitment)]
    if alerts:
        message = "; ".join(f"{recruitment}: {alert.problem}" for recruitment, alert in alerts)
        return CheckFinding(
            WARNING, message, "Open the panel page and the pay page of these links; they say what to do."
        )
    return CheckFinding(OK, "nothing to report")


@register_check("media")
def _media() -> CheckFinding:
    """Uploaded images can be stored."""
    import tempfile

    with tempfile.TemporaryFile(dir=settings.MEDIA_ROOT) as file:
        file.write(b"heval")
    return CheckFinding(OK, str(settings.MEDIA_ROOT))


FIXES["media"] = "Create the folder MEDIA_ROOT and let this process's user write to it (heval prepare creates it)."


@register_check("disk")
def _disk() -> CheckFinding:
    """There is free disk space."""
    folder = next(path for path in (settings.MEDIA_ROOT, *settings.MEDIA_ROOT.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    message = f"{free / 2**30:.1f} GB free at {folder}"
    if free < FREE_BYTES_FAILED:
        return CheckFinding(FAILED, message, "Free some disk space: heval rejects answers when the disk is full.")
    if free < FREE_BYTES_WARNING:
        return CheckFinding(WARNING, message, "Free some disk space before you start a study with images.")
    return CheckFinding(OK, message)


@register_check("clock", needs_database=True)
def _clock() -> CheckFinding:
    """The clocks of database and host agree, because deadlines use the database's clock."""
    with connection.cursor() as cursor:
        before = time.time()
        if connection.vendor == "postgresql":
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        else:
            cursor.execute("SELECT (julianday('now') - 2440587.5) * 86400.0")
        difference = float(cursor.fetchone()[0]) - (before + time.time()) / 2
    message = (
        f"the database is {abs(difference):.2f} s {'ahead of' if difference > 0 else 'behind'} {socket.gethostname()}"
    )
    if abs(difference) > CLOCK_TOLERANCE_SECONDS:
        return CheckFinding(FAILED, message, "Synchronise both machines by NTP.")
    return CheckFinding(OK, message)


@register_check("time zone", needs_database=True)
def _time_zone() -> CheckFinding:
    """Times are stored with their time zone."""
    if not settings.USE_TZ:
        return CheckFinding(
            FAILED, "USE_TZ is off", "Turn USE_TZ on: otherwise stored times are wrong in another time zone."
        )
    return CheckFinding(OK, f"{settings.TIME_ZONE}, times stored with their zone")


@register_check("static files")
def _static() -> CheckFinding:
    """The style sheet can be found."""
    from django.contrib.staticfiles import finders

    if settings.HAS_COLLECTED_STATIC:
        if static_files_problem():
            return CheckFinding(
                FAILED, f"no files were collected in {settings.STATIC_ROOT}", "Run: heval collectstatic --noinput"
            )
        return CheckFinding(OK, f"collected in {settings.STATIC_ROOT}")
    if not finders.find("heval.css"):
        return CheckFinding(
            FAILED,
            "heval.css is not found",
            "Install heval again, or set STATIC_ROOT to the folder with the collected files.",
        )
    return CheckFinding(OK, "served from their source folders")
