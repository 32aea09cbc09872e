"""`heval up` once the database is ready: the web server and the runner of jobs, as children that are kept alive.

Children are forked: what this process has loaded is loaded once, shared by all, and there when they begin. A child that dies is
started again; one that dies five times in a minute ends everything, with a line that says which. SIGTERM and SIGINT end both:
requests being answered are answered, a job goes back to waiting.
"""

import fcntl
import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from studies.services.signal_flag import SignalFlag

GRACE_SECONDS = 25
POLL_SECONDS = 0.5
MAX_DEATHS = 5
DEATH_WINDOW_SECONDS = 60
SIGNALS = (signal.SIGTERM, signal.SIGINT)

_forking = multiprocessing.get_context("fork")


class Child:
    """One child process that runs ``run``, and when it died."""

    def __init__(self, name: str, run: Callable[[], object]):
        self.name = name
        self.run = run
        self.deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        self.process: multiprocessing.process.BaseProcess | None = None

    def start(self) -> None:
        # A signal waits until the child has left our handlers behind: it would be lost there.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self.process = _forking.Process(target=self._begin, name=self.name)
        self.process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _begin(self) -> None:
        # Its own session: Ctrl-C reaches the supervisor alone, which then ends its children in good order.
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self.run()

    def record_death(self) -> bool:
        self.deaths.append(time.monotonic())
        return len(self.deaths) == MAX_DEATHS and self.deaths[-1] - self.deaths[0] < DEATH_WINDOW_SECONDS


def print_to_stderr(*words: str) -> None:
    print("heval:", *words, file=sys.stderr, flush=True)


def supervise(children: list[Child]) -> int:
    """Run the children until a signal comes or one of them will not live. Gives the exit code."""
    asked = SignalFlag()
    for number in SIGNALS:
        signal.signal(number, lambda *_: asked.set())
    for child in children:
        child.start()
    os.environ.pop("HEVAL_ANNOUNCE", None)  # said once, not again by a child that is started again
    code = 0
    while not asked.wait(POLL_SECONDS):
        for child in children:
            if child.process.is_alive():
                continue
            if child.record_death():
                print_to_stderr(
                    f"{child.name} ended {MAX_DEATHS} times within a minute, last with code {child.process.exitcode}. Ending."
                )
                asked.set()
                code = 1
                break
            print_to_stderr(f"{child.name} ended with code {child.process.exitcode}; starting it again.")
            child.start()
    _terminate_children(children)
    return code


def _terminate_children(children: list[Child]) -> None:
    for child in children:
        child.process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        child.process.join(max(0.1, deadline - time.monotonic()))
        if child.process.is_alive():
            print_to_stderr(f"{child.name} did not end in time and was killed.")
            # Its session: gunicorn's workers too.
            with suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)
            child.process.join()


def acquire_home_lock(home: Path):
    """The lock of this home, held as long as the process lives. None where another `heval up` has it."""
    file = (home / "up.lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
