"""`heval up` once the database is ready: the web server and the runner of jobs, as children of a small process.

It loads no Django. A child that dies is started again; one that dies five times in a minute ends everything, with a line that
says which. SIGTERM and SIGINT end both: requests being answered are answered, a job goes back to waiting.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import deque
from contextlib import suppress
from pathlib import Path

GRACE_SECONDS = 25
TOO_OFTEN = 5
WITHIN_SECONDS = 60

WEB = ("-m", "gunicorn", "-c", "python:heval_site.server", "heval_site.wsgi:application")
WORKER = ("-m", "heval_site.cli", "worker")


class Child:
    """One child process, and when it died."""

    def __init__(self, name: str, *arguments: str):
        self.name = name
        self.arguments = arguments
        self.deaths: deque[float] = deque(maxlen=TOO_OFTEN)
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        # Its own session: Ctrl-C reaches the supervisor alone, which then ends its children in good order.
        self.process = subprocess.Popen([sys.executable, *self.arguments], start_new_session=True)  # noqa: S603 - our own words

    def dies_too_often(self) -> bool:
        self.deaths.append(time.monotonic())
        return len(self.deaths) == TOO_OFTEN and self.deaths[-1] - self.deaths[0] < WITHIN_SECONDS


def say(*words: str) -> None:
    print("heval:", *words, file=sys.stderr, flush=True)


def supervise(children: list[Child]) -> int:
    """Run the children until a signal comes or one of them will not live. Gives the exit code."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    for child in children:
        child.start()
    code = 0
    while not asked.wait(0.5):
        for child in children:
            if child.process.poll() is None:
                continue
            if child.dies_too_often():
                say(
                    f"{child.name} ended {TOO_OFTEN} times within a minute, last with code {child.process.returncode}. Ending."
                )
                asked.set()
                code = 1
                break
            say(f"{child.name} ended with code {child.process.returncode}; starting it again.")
            child.start()
    _end(children)
    return code


def _end(children: list[Child]) -> None:
    for child in children:
        with suppress(ProcessLookupError):
            child.process.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    for child in children:
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            say(f"{child.name} did not end in time and was killed.")
            # Its session: gunicorn's workers too.
            with suppress(ProcessLookupError):
                os.killpg(child.process.pid, signal.SIGKILL)
            child.process.wait()


def announce(url: str, text: str) -> None:
    """Print the text when the server answers."""

    def wait():
        for _ in range(300):
            with suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=2):  # noqa: S310 - our own address
                print(text, flush=True)
                return
            time.sleep(0.1)

    threading.Thread(target=wait, daemon=True).start()


def hold(home: Path):
    """The lock of this home, held as long as the process lives. None where another `heval up` has it."""
    file = (home / "up.lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def main() -> int:
    lock = hold(Path(sys.argv[1])) if len(sys.argv) > 1 else True
    if lock is None:
        say(f"another `heval up` serves {sys.argv[1]}. End it first, or set HEVAL_HOME and PORT to start a second one.")
        return 1
    url, text = os.environ.pop("HEVAL_ANNOUNCE_URL", ""), os.environ.pop("HEVAL_ANNOUNCE", "")
    if url:
        announce(url, text)
    return supervise([Child("The web server", *WEB), Child("The runner of jobs", *WORKER)])


if __name__ == "__main__":
    sys.exit(main())
