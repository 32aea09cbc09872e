"""Processes that a measurement starts, what they cost, and how they end: by the pid that was recorded, never by a name."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests import ROOT

TICKS = os.sysconf("SC_CLK_TCK")
# What this machine's user may have set must not reach a measurement.
OURS = (
    "DEBUG", "SECRET_KEY", "PSEUDONYM_KEY", "DATABASE_URL", "REDIS_URL", "CELERY_BROKER_URL", "SITE_URL", "ALLOWED_HOSTS",
    "PORT", "LISTEN", "TRUSTED_PROXY_COUNT", "STATIC_ROOT", "MEDIA_ROOT", "LOG_FORMAT", "WEB_WORKERS", "WEB_THREADS",
    "DATABASE_POOL", "HEVAL_HOME", "DJANGO_SETTINGS_MODULE", "DJANGO_ALLOW_ASYNC_UNSAFE",
)  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the name, which may hold blanks: state, parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def tree(root: int) -> list[int]:
    """The process and all below it."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                children.setdefault(int(_stat(int(path.name))[1]), []).append(int(path.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """CPU time of a process tree until now, of those below it that have ended too."""
    total = 0.0
    for pid in tree(root):
        with suppress(OSError):
            total += time.clock_gettime((~pid << 3) | 2)  # Linux: the CPU clock of another process, in nanoseconds
            ended = _stat(pid)[13:15]  # cutime, cstime: children that were waited for
            total += sum(map(int, ended)) / TICKS
    return total


def pss_megabytes(pid: int) -> float:
    """Memory of a process, what it shares with others counted in parts."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no Pss")


def maps_any(pid: int, *packages: str) -> list[str]:
    """Which of these packages' compiled parts a process has loaded."""
    mapped = Path(f"/proc/{pid}/maps").read_text()
    return [name for name in packages if f"/{name}/" in mapped]


def end(process: subprocess.Popen, how: int = signal.SIGTERM) -> None:
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def folder(prefix: str) -> Iterator[Path]:
    """A folder of its own, gone afterwards. Its parents let the database's user pass."""
    path = Path(tempfile.mkdtemp(prefix=prefix))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def postgres_programs() -> Path | None:
    """The newest PostgreSQL server of this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class Postgres:
    """A server on a private port with its default settings (fsync on), run by the user postgres where we are root.

    ``settings``: what is to be other than the default, as ``name=value``.
    """

    def __init__(self, home: Path, *settings: str):
        programs = postgres_programs()
        if programs is None:
            raise FileNotFoundError("There is no /usr/lib/postgresql/*/bin/postgres on this machine.")
        home.mkdir()
        self.home, self.who = home, {}
        if os.geteuid() == 0:
            self.who = {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(home, "postgres", "postgres")
        data = home / "data"
        subprocess.run(
            [
                programs / "initdb",
                "--pgdata",
                data,
                "--username=heval",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=home,
            **self.who,
        )
        self.port = free_port()
        self.log = (home / "log").open("w")
        self.command = [programs / "postgres", "-D", data, "-p", str(self.port), "-h", "127.0.0.1", "-k", ""]
        self.command += [part for setting in settings for part in ("-c", setting)]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=self.log, stderr=subprocess.STDOUT, cwd=self.home, **self.who
        )
        self._wait()

    def kill(self) -> None:
        """The server and every process of it at once, as when the machine goes down."""
        for pid in tree(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def _wait(self) -> None:
        import psycopg

        for _ in range(300):
            with suppress(psycopg.OperationalError), psycopg.connect(self.url("postgres")):
                return
            time.sleep(0.1)
        raise TimeoutError(f"PostgreSQL did not start: {Path(self.log.name).read_text()[-2000:]}")

    def url(self, database: str) -> str:
        return f"postgres://heval@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """The address of a new, empty database."""
        import psycopg
        from psycopg import sql

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        return self.url(database)

    def count(self, database: str) -> None:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute("ANALYZE")

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        end(self.process, signal.SIGINT)  # fast shutdown: does not wait for its clients
        self.log.close()


class Site:
    """A web server as `heval up` starts it, on SQLite in ``home``, or on ``database_url``; the runners of jobs too if ``with_jobs``."""

    with_jobs = False

    def __init__(self, home: Path, application: str, settings: str, database_url: str = ""):
        home.mkdir(exist_ok=True)
        self.home, self.application, self.port = home, application, free_port()
        self.environment = {name: value for name, value in os.environ.items() if name not in OURS} | {
            "HEVAL_HOME": str(home),
            "PORT": str(self.port),
            "LISTEN": "127.0.0.1",
            "LOG_FORMAT": "plain",
            "SITE_URL": f"http://127.0.0.1:{self.port}",
            "DJANGO_SETTINGS_MODULE": settings,
            "SECRET_KEY": "secret-key-of-a-measurement-" + "0123456789" * 4,
            "PSEUDONYM_KEY": "pseudonym-key-of-a-measurement-" + "0123456789" * 4,
        }
        if database_url:
            self.environment |= {"DATABASE_URL": database_url}
        self.process: subprocess.Popen | None = None

    def run(self, *arguments: str) -> str:
        """A module of ours in this site's environment; gives what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", *arguments], env=self.environment, cwd=ROOT, check=True, stdout=subprocess.PIPE
        )
        return done.stdout.decode()

    def start(self, **environment: str) -> None:
        self.log = (self.home / "web.log").open("a")
        web = ["gunicorn", "-c", "python:heval_site.server", self.application]
        self.process = subprocess.Popen(
            [sys.executable, "-m", *(["heval_site.management.cli", "up", "--no-migrate"] if self.with_jobs else web)],
            env=self.environment | environment,
            cwd=ROOT,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.wait("/healthz")

    def wait(self, path: str, seconds: float = 30) -> float:
        """Ask until it answers, whatever it says; gives the seconds that this took."""
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            try:
                with urllib.request.urlopen(f"{self.address}{path}", timeout=5):
                    return time.monotonic() - begun
            except urllib.error.HTTPError:
                return time.monotonic() - begun
            except OSError:
                time.sleep(0.02)
        raise TimeoutError(f"{self.application} did not start: {(self.home / 'web.log').read_text()[-2000:]}")

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def workers(self) -> list[int]:
        """The processes that answer requests."""
        return tree(self.web)[1:]

    @property
    def web(self) -> int:
        """The web server above its workers. Under `heval up` it is the child that has children."""
        return next((pid for pid in tree(self.pid)[1:] if tree(pid)[1:]), 0) if self.with_jobs else self.pid

    @property
    def runners(self) -> list[int]:
        """The runners of jobs and of batches: the supervisor's children beside the web server."""
        children = [pid for pid in tree(self.pid)[1:] if int(_stat(pid)[1]) == self.pid]
        return [pid for pid in children if pid != self.web]

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)
            self.log.close()
