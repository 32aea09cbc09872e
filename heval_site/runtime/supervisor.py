"""Supervisor of `heval up`: runs the web server, the job runner and the runner of batches as child processes.

Children are forked, so code is loaded once and shared. A child that dies is restarted, after longer pauses if it dies
again and again. If the web server dies five times in a minute, everything ends with a line that names it. The web server
goes on without the job runner, and /readyz says so. Without the runner of batches, the job runner runs batches, too. SIGTERM
and SIGINT end all of them: running requests are answered, and a running job returns to the queue. Children also end if the supervisor is killed.
"""

import ctypes
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
from typing import TextIO

from studies.services.signal_flag import SignalFlag

GRACE_SECONDS = 25
POLL_SECONDS = 0.5
MAX_DEATHS = 5
DEATH_WINDOW_SECONDS = 60
SIGNALS = (signal.SIGTERM, signal.SIGINT)
PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal that a process gets when its parent ends

_forking = multiprocessing.get_context("fork")


class ChildProcess:
    """One child process that runs ``run``, with the times of its deaths. The site ends without an essential child."""

    def __init__(self, name: str, run: Callable[[], object], is_essential: bool = True):
        self.name = name
        self.run = run
        self.is_essential = is_essential
        self.restart_at = 0.0
        self.deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        self.process: multiprocessing.process.BaseProcess

    def start(self) -> None:
        # Block signals until the child has removed our handlers; a signal would be lost before.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        self.process = _forking.Process(target=self._begin, args=(os.getpid(),), name=self.name)
        self.process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _begin(self, supervisor_pid: int) -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != supervisor_pid:  # it ended before this line
            return
        # A separate session: Ctrl-C reaches only the supervisor, which then ends its children in order.
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self.run()

    def record_death(self) -> int:
        """Plan the restart: at once after the first death of a minute, then after 1, 2, 4 and always 8 s. Return the deaths."""
        now = time.monotonic()
        self.deaths.append(now)
        n_deaths = sum(now - death < DEATH_WINDOW_SECONDS for death in self.deaths)
        self.restart_at = now + (2 ** (n_deaths - 2) if n_deaths > 1 else 0)
        return n_deaths


def print_to_stderr(*parts: str) -> None:
    print("heval:", *parts, file=sys.stderr, flush=True)


def supervise(children: list[ChildProcess]) -> int:
    """Run the children until a signal arrives or one of them keeps dying. Return the exit code."""
    stop_flag = SignalFlag()
    for number in SIGNALS:
        signal.signal(number, lambda *_: stop_flag.set())
    for child in children:
        child.start()
    os.environ.pop("HEVAL_ANNOUNCE", None)  # printed once, not again by a restarted child
    code = 0
    while not stop_flag.wait(POLL_SECONDS):
        for child in children:
            if child.process.is_alive():
                continue
            if child.restart_at:
                if time.monotonic() >= child.restart_at:
                    child.restart_at = 0.0
                    child.start()
                continue
            if child.record_death() == MAX_DEATHS and child.is_essential:
                print_to_stderr(
                    f"{child.name} ended {MAX_DEATHS} times within a minute, last with exit code "
                    f"{child.process.exitcode}. Ending. The lines above say why."
                )
                stop_flag.set()
                code = 1
                break
            print_to_stderr(f"{child.name} ended with exit code {child.process.exitcode}; restarting it.")
    _terminate_children(children)
    return code


def _terminate_children(children: list[ChildProcess]) -> None:
    for child in children:
        child.process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        child.process.join(max(0.1, deadline - time.monotonic()))
        if child.process.is_alive():
            print_to_stderr(f"{child.name} did not end in time and was killed.")
            # The whole session, so that gunicorn's workers end too.
            with suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)  # type: ignore[arg-type]  # it was started
            child.process.join()


def try_lock_home(home: Path) -> TextIO | None:
    """Take the lock of this home, held until the process ends. Return None if another `heval up` has it."""
    file = (home / "up.lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file
