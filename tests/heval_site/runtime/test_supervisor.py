"""`heval up`: three children that are kept alive, ended in good order, and not served twice from one home."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from heval_site.runtime import supervisor
from tests import ROOT

LIVES = (
    "import os, signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); os.write(1, b'child\\n'); time.sleep(60)"
)
DIES = "import sys; sys.exit(3)"
SUPERVISED = """
import functools, sys
from heval_site.runtime import supervisor
supervisor.GRACE_SECONDS = 2
runs = zip(sys.argv[1::2], sys.argv[2::2])
children = [
    supervisor.ChildProcess(name, functools.partial(exec, code, {}), is_essential=name == "The web server") for name, code in runs
]
sys.exit(supervisor.supervise(children))
"""


@pytest.fixture
def supervised():
    """Starts a supervisor of such children and ends it with the test."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISED, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_children_and_the_code_is_zero(supervised, number):
    process = supervised("one", LIVES, "two", LIVES)
    assert [process.stdout.readline() for _ in range(2)] == ["child\n"] * 2
    process.send_signal(number)
    assert process.wait(10) == 0
    assert process.stderr.read() == ""


def test_a_signal_is_heard_whenever_it_comes():
    """A handler that asks for a lock may find it held by the very line that it interrupts, and wait for itself."""
    script = (
        "from heval_site.runtime import supervisor\n"
        "supervisor.POLL_SECONDS = 1e-6\n"
        "class Children(list):\n"
        "    def __iter__(self):\n"
        "        if not vars(self): print(flush=True)\n"
        "        self.are_begun = True\n"
        "        return iter(())\n"
        "for _ in range(300): supervisor.supervise(Children())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE) as process:
        heard = 0
        while heard < 300 and select.select([process.stdout], [], [], 5)[0]:
            heard += os.read(process.stdout.fileno(), 100).count(b"\n")
            time.sleep(heard / 300 * 0.002)
            process.send_signal(signal.SIGTERM)
        process.kill()
    assert heard >= 300


def test_a_child_that_dies_is_started_again(supervised):
    once = "import os, pathlib, sys; p = pathlib.Path(sys.argv[0]); print(os.getpid(), flush=True); " + LIVES
    process = supervised("one", once)
    first = int(process.stdout.readline())
    process.stdout.readline()
    os.kill(first, signal.SIGKILL)
    assert int(process.stdout.readline()) != first
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert "one ended with exit code -9; restarting it." in process.stderr.read()


def test_each_of_three_children_is_started_again_and_the_others_live_on(supervised):
    says = (
        "import os, signal, sys, time; signal.signal(15, lambda *_: sys.exit(0));"
        "os.write(1, b'{}:%d\\n' % os.getpid()); time.sleep(60)"
    )
    names = ("The web server", "The job runner", "The runner of batches")
    process = supervised(*(argument for name in names for argument in (name, says.format(name))))
    children = dict(process.stdout.readline().split(":") for _ in names)
    for name in names:
        os.kill(int(children[name]), signal.SIGKILL)
        started, pid = process.stdout.readline().split(":")
        assert started == name and pid != children[name]
        assert process.stderr.readline() == f"heval: {name} ended with exit code -9; restarting it.\n"
        children[name] = pid
        assert all(is_running(int(pid)) for pid in children.values()), name
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert not any(is_running(int(pid)) for pid in children.values()) and process.stderr.read() == ""


@pytest.mark.slow
def test_a_child_that_will_not_live_ends_everything_with_a_reason(supervised):
    process = supervised("The web server", DIES, "two", LIVES)
    assert process.wait(20) == 1
    assert "The web server ended 5 times within a minute, last with exit code 3. Ending." in process.stderr.read()


@pytest.mark.slow
def test_the_site_goes_on_while_the_job_runner_will_not_live(supervised):
    process = supervised("The web server", LIVES, "The job runner", DIES)
    assert process.stdout.readline() == "child\n"
    told = [process.stderr.readline() for _ in range(6)]
    assert all("The job runner ended with exit code 3; restarting it." in line for line in told)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_pauses_between_restarts_grow_and_a_quiet_minute_ends_them(monkeypatch):
    child, now = supervisor.ChildProcess("one", print, is_essential=False), 1000.0
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now)
    pauses = []
    for _ in range(8):
        child.record_death()
        pauses.append(child.restart_at - now)
        now = child.restart_at
    assert pauses == [0, 1, 2, 4, 8, 8, 8, 8]
    now += supervisor.DEATH_WINDOW_SECONDS
    assert child.record_death() == 1 and child.restart_at == now


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell a process that its parent ended")
def test_children_end_with_a_supervisor_that_is_killed(supervised):
    says = "import os, signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); os.write(1, b'%d\\n' % os.getpid()); time.sleep(60)"
    process = supervised("The web server", says, "The job runner", says)
    children = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.wait(10)
    assert until(lambda: not any(map(is_running, children)), 5)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
def test_a_child_that_does_not_end_is_killed(supervised):
    deaf = "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.write(1, b'child\\n'); time.sleep(60)"
    process = supervised("one", deaf)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert "one did not end in time and was killed." in process.stderr.read()


def test_one_home_is_served_once(tmp_path):
    held = supervisor.try_lock_home(tmp_path)
    assert held and supervisor.try_lock_home(tmp_path) is None
    held.close()
    again = supervisor.try_lock_home(tmp_path)
    assert again
    again.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def answer(url: str) -> int | None:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def until(condition, seconds: float):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_heval_up_serves_a_fresh_home_and_ends_cleanly(tmp_path):
    port = free_port()
    environment = {"PATH": os.environ["PATH"], "HEVAL_HOME": str(tmp_path / "home"), "PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, "-m", "heval_site.management.cli", "up"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert until(lambda: answer(f"http://127.0.0.1:{port}/readyz") == 200, 60), (
            "ready: database, cache and a runner"
        )
        # In a home without an account, what to do next follows, and a blank line is before both.
        assert [process.stdout.readline() for _ in range(2)] == ["\n", f"heval serves http://127.0.0.1:{port}\n"]
        second = subprocess.run(
            [sys.executable, "-m", "heval_site.management.cli", "up"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert second.returncode == 1 and "nother `heval up` already serves" in second.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    assert code == 0
    assert answer(f"http://127.0.0.1:{port}/healthz") is None, "nothing is left listening"
    assert "code" not in process.stderr.read()


@pytest.mark.slow
def test_the_web_server_loads_no_numbers_library():
    script = (
        "import os, sys; os.environ['DJANGO_SETTINGS_MODULE'] = 'tests.settings'; import heval_site.server, heval_site.wsgi;"
        "from studies.services import jobs; jobs.autodiscover_tasks();"
        "print([name for name in ('numpy', 'scipy', 'pandas', 'statsmodels', 'matplotlib', 'celery') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stderr
