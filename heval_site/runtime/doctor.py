"""What is wrong with this installation, and what to do about it. Each check is a function; its docstring says what holds."""

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

from django.conf import settings
from django.core.cache import cache
from django.db import connection

from studies.services import jobs

from . import broker
from .startup import is_migrated

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"
FREE_BYTES_FAILED, FREE_BYTES_WARNING = 200 * 2**20, 2 * 2**30
CLOCK_TOLERANCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Finding:
    """``words`` say what was found, ``fix`` what to do where it is not well."""

    status: str
    words: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    status: str
    words: str
    fix: str


_checks: dict[str, Callable[[], Finding]] = {}
# Without a database these have nothing to look at.
_need_database: set[str] = set()


def register_check(name: str, needs_database: bool = False):
    def registered(function):
        _checks[name] = function
        if needs_database:
            _need_database.add(name)
        return function

    return registered


def run_all_checks() -> Iterator[Result]:
    """Every check's result, one after the other."""
    has_database = True
    for name, function in _checks.items():
        if name in _need_database and not has_database:
            finding = Finding(SKIPPED, "the database cannot be asked")
        else:
            try:
                finding = function()
            except Exception as error:  # a check that breaks is a finding too
                words = " ".join(str(error).split())
                finding = Finding(FAILED, f"{type(error).__name__}: {words}", FIXES.get(name, ""))
        if name == "database" and finding.status == FAILED:
            has_database = False
        yield Result(name, finding.status, finding.words, finding.fix)


def as_json(results: list[Result]) -> dict:
    return {"ok": not has_failed(results), "checks": [asdict(result) for result in results]}


def has_failed(results: list[Result]) -> bool:
    return any(result.status == FAILED for result in results)


FIXES = {
    "database": "Is the server of DATABASE_URL up, and do name and password hold? Without DATABASE_URL: is HEVAL_HOME writable?",
    "cache": "Run: heval prepare. With REDIS_URL: is that server up?",
    "migrations": "Run: heval prepare",
}


@register_check("settings")
def _settings() -> Finding:
    """Django's own deployment checks are silent."""
    from django.core.checks import WARNING as LEVEL
    from django.core.checks import run_checks

    found = [message for message in run_checks(include_deployment_checks=settings.SECURE) if message.level >= LEVEL]
    found = [message for message in found if message.id not in settings.SILENCED_SYSTEM_CHECKS]
    if settings.DEBUG:
        return Finding(
            WARNING,
            "DEBUG is on: error pages show settings and answers",
            "Unset DEBUG before anybody else uses this site.",
        )
    if found:
        return Finding(
            FAILED, "; ".join(f"{message.id} {message.msg}" for message in found), "Run: heval check --deploy"
        )
    return Finding(OK, "embedded: SQLite in HEVAL_HOME" if settings.EMBEDDED else "deployed")


@register_check("secrets")
def _secrets() -> Finding:
    """Both keys are long and differ; the embedded files, and their folder, are the owner's alone. (A key that is not stops the start.)"""
    if settings.EMBEDDED and os.name == "posix" and (found := _open_to_others(settings.HEVAL_HOME)):
        # Members of a group may have been let in on purpose, to the folder and what no mode of its own keeps from them.
        is_grave = any(mode & (0o007 if path == settings.HEVAL_HOME else 0o077) for path, mode in found.items())
        fixes = [f"chmod {'700' if path == settings.HEVAL_HOME else '600'} {quote(str(path))}" for path in found]
        words = f"others on this machine can read {' and '.join(map(str, found))}"
        return Finding(FAILED if is_grave else WARNING, words, f"Run: {'; '.join(fixes)}")
    return Finding(
        OK, "SECRET_KEY and PSEUDONYM_KEY are long and differ; keep copies, the second links people to their answers"
    )


def _open_to_others(home: Path) -> dict[Path, int]:
    """The folder, and the files of keys in it, that somebody beside their owner may open: with their modes. A folder that was there before
    heval keeps the mode it had, and the database in it is as readable as the folder lets it be."""
    paths = [home, *(home / name for name in ("secret_key", "pseudonym_key"))]
    modes = {path: path.stat().st_mode for path in paths if path.exists()}
    return {path: mode for path, mode in modes.items() if mode & 0o077}


@register_check("site address")
def _site_address() -> Finding:
    """Annotators' links are credentials: they go over HTTPS, to a host that is answered for."""
    from urllib.parse import urlsplit

    host = urlsplit(settings.SITE_URL).hostname
    if host not in [name.strip("[]") for name in settings.ALLOWED_HOSTS]:
        return Finding(FAILED, f"{settings.SITE_URL} is not among ALLOWED_HOSTS", f"Add {host} to ALLOWED_HOSTS.")
    if not settings.SECURE:
        fix = "Set SITE_URL to the https:// address of the proxy in front before you invite annotators."
        return Finding(WARNING, f"{settings.SITE_URL} reaches this machine alone", fix)
    if settings.SECURE_SSL_REDIRECT and not settings.TRUSTED_PROXIES:
        fix = "Set TRUSTED_PROXIES to the number of proxies in front that set X-Forwarded-Proto; otherwise the redirect to https never ends."
        return Finding(WARNING, f"{settings.SITE_URL}, and no proxy is trusted", fix)
    return Finding(OK, settings.SITE_URL)


@register_check("database")
def _database() -> Finding:
    """It answers, and is of a version that is supported."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SHOW server_version")
            version = cursor.fetchone()[0]
            if connection.pg_version < 140000:
                return Finding(FAILED, f"PostgreSQL {version}", "Use PostgreSQL 14 or newer.")
            return Finding(OK, f"PostgreSQL {version}")
        cursor.execute("SELECT sqlite_version()")
        words = f"SQLite {cursor.fetchone()[0]}, {settings.DATABASES['default']['NAME']}"
    return Finding(OK, f"{words}: good for about ten annotators at once; PostgreSQL for more")


@register_check("durability", needs_database=True)
def _durability() -> Finding:
    """An answer that was acknowledged survives a power cut."""
    wanted = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", [list(wanted)])
            found = dict(cursor.fetchall())
        stronger = {"remote_apply", "remote_write"}
        bad = [
            f"{name} = {value}"
            for name, value in sorted(found.items())
            if value != wanted[name] and value not in stronger
        ]
        if bad:
            return Finding(
                FAILED,
                ", ".join(bad),
                f"Set {', '.join(f'{n} = on' for n in wanted)} in PostgreSQL: acknowledged answers can be lost.",
            )
        return Finding(OK, ", ".join(f"{name} = {value}" for name, value in sorted(found.items())))
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        journal = cursor.fetchone()[0]
        cursor.execute("PRAGMA synchronous")
        synchronous = cursor.fetchone()[0]
    words = f"journal_mode = {journal}, synchronous = {synchronous}"
    if journal != "wal" or synchronous < 2:
        fix = "Keep HEVAL_HOME on a local disk: SQLite's WAL does not work over a network."
        return Finding(FAILED, words, fix)
    return Finding(OK, words)


@register_check("migrations", needs_database=True)
def _migrations() -> Finding:
    """All are applied."""
    return Finding(OK, "all applied") if is_migrated() else Finding(FAILED, "some are not applied", FIXES["migrations"])


@register_check("cache", needs_database=True)
def _cache() -> Finding:
    """It keeps what it is told, for all processes: limits are counted in it."""
    key, value = "heval:doctor", time.time_ns()
    cache.set(key, value, 30)
    backend = settings.CACHES["default"]["BACKEND"].rsplit(".", 1)[1]
    if cache.get(key) != value:
        return Finding(FAILED, f"{backend} forgets", FIXES["cache"])
    if backend in ("LocMemCache", "DummyCache", "FileBasedCache"):
        return Finding(
            FAILED, f"{backend} is not shared by all processes", "Set REDIS_URL, or leave the cache in the database."
        )
    return Finding(OK, backend)


@register_check("broker")
def _broker() -> Finding:
    """It can be reached, where one is set. Jobs run without it, some seconds later."""
    if not settings.CELERY_BROKER_URL:
        return Finding(SKIPPED, "none is set; heval up or heval worker runs the jobs")
    if broker.is_reachable():
        return Finding(OK, "reachable")
    return Finding(
        FAILED, "cannot be reached", "Is the server of CELERY_BROKER_URL (or REDIS_URL) up? No job is lost meanwhile."
    )


@register_check("runner", needs_database=True)
def _runner() -> Finding:
    """Somebody runs jobs and sweeps expired places."""
    standing = jobs.job_counts()
    words = ", ".join(f"{n} {name}" for name, n in standing.items())
    if not jobs.is_runner_alive():
        fix = "Start heval up, heval worker, or the worker and beat of compose.yaml."
        return Finding(FAILED, f"nobody has run jobs for {jobs.HEARTBEAT_SECONDS} s ({words})", fix)
    if standing["expired"]:
        return Finding(WARNING, words, "Jobs without a living runner are taken up within a minute; look again.")
    return Finding(OK, words)


@register_check("panels", needs_database=True)
def _panels() -> Finding:
    """Nothing at the panels whose tokens are kept asks for a person, and no link keeps ids beyond their day."""
    from annotators.pay import id_retention
    from annotators.recruitment.panels.alerts import find_alerts
    from annotators.recruitment.panels.sync import recruitments_to_sync

    asked = list(recruitments_to_sync())
    found = [(one, alert) for one in asked for alert in find_alerts(one)]
    others = id_retention.links_retaining_ids().exclude(pk__in=[one.pk for one in asked]).order_by("pk")
    found += [(one, alert) for one in others for alert in id_retention.retention_alerts(one)]
    if found:
        words = "; ".join(f"{one}: {alert.words}" for one, alert in found)
        return Finding(WARNING, words, "Open the pages of the panel and of pay: they say what to do.")
    return Finding(OK, "nothing stands out")


@register_check("media")
def _media() -> Finding:
    """Uploaded images can be stored."""
    import tempfile

    with tempfile.TemporaryFile(dir=settings.MEDIA_ROOT) as file:
        file.write(b"heval")
    return Finding(OK, str(settings.MEDIA_ROOT))


FIXES["media"] = "Make the folder MEDIA_ROOT and let the user of this process write there (heval prepare makes it)."


@register_check("disk")
def _disk() -> Finding:
    """There is room."""
    folder = next(path for path in (settings.MEDIA_ROOT, *settings.MEDIA_ROOT.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    words = f"{free / 2**30:.1f} GB free at {folder}"
    if free < FREE_BYTES_FAILED:
        return Finding(FAILED, words, "Make room: answers are refused when the disk is full.")
    if free < FREE_BYTES_WARNING:
        return Finding(WARNING, words, "Make room before a study with images.")
    return Finding(OK, words)


@register_check("clock", needs_database=True)
def _clock() -> Finding:
    """The clocks of database and host agree. Deadlines follow the database's."""
    with connection.cursor() as cursor:
        before = time.time()
        if connection.vendor == "postgresql":
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        else:
            cursor.execute("SELECT (julianday('now') - 2440587.5) * 86400.0")
        difference = float(cursor.fetchone()[0]) - (before + time.time()) / 2
    words = (
        f"the database is {abs(difference):.2f} s {'ahead of' if difference > 0 else 'behind'} {socket.gethostname()}"
    )
    if abs(difference) > CLOCK_TOLERANCE_SECONDS:
        return Finding(FAILED, words, "Let both machines keep time by NTP.")
    return Finding(OK, words)


@register_check("time zone", needs_database=True)
def _time_zone() -> Finding:
    """Times are stored with their zone."""
    if not settings.USE_TZ:
        return Finding(
            FAILED, "USE_TZ is off", "Leave USE_TZ on: stored times would mean something else in another zone."
        )
    return Finding(OK, f"{settings.TIME_ZONE}, stored with their zone")


@register_check("static files")
def _static() -> Finding:
    """The style sheet is found."""
    from django.contrib.staticfiles import finders

    if settings.HAS_COLLECTED_STATIC:
        manifest = settings.STATIC_ROOT / "staticfiles.json"
        if not manifest.exists():
            return Finding(
                FAILED, f"nothing was collected in {settings.STATIC_ROOT}", "Run: heval collectstatic --noinput"
            )
        return Finding(OK, f"collected in {settings.STATIC_ROOT}")
    if not finders.find("heval.css"):
        return Finding(
            FAILED, "heval.css is not found", "Install heval again, or set STATIC_ROOT where its files were collected."
        )
    return Finding(OK, "served from where they lie")
