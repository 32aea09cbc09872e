"""Kill parts of a site while annotators answer, and compare what was acknowledged with what is stored.

python -m tools.proofs.faults.kill_workers [--seconds 60] [--every 1.5] [--clients 16] [--database sqlite|postgres] [--away 1]
                                           [--victim worker|database|jobs|everything] [--sabotage lost|doubled|hasty] [--json]

It also says how many seconds after each kill a page was shown again: after the database has come back, or at once for the rest.
"""

import argparse
import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from tests.robots import Page
from tools.proofs.bench.machine import ROOT, Postgres, Site, folder, tree

PATIENCE = 120  # seconds until an annotator gives up
# A database that says "stored" before it is.
HASTY = ("synchronous_commit=off", "wal_writer_delay=10s")


class GivenUp(Exception):
    """The same request failed again and again."""


@dataclass
class Told:
    """What all annotators heard."""

    pages: list[dict] = field(default_factory=list)
    claims: list[str] = field(default_factory=list)
    broken: int = 0
    strange: list[str] = field(default_factory=list)


class Annotator:
    """One person after the other, at one keyboard. Whoever hears nothing sends the same again."""

    def __init__(self, port: int, seed: int, told: Told, stop: threading.Event):
        self.port, self.rng, self.told, self.stop = port, random.Random(seed), told, stop
        self.name = f"w{seed}"
        self.connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, data: dict | None = None) -> tuple[int, str, str, float]:
        """(status, location, body, when the last attempt was sent)"""
        body = urlencode(data) if data is not None else None
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE:
            at = time.time()
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=25)
                self.connection.request(method, path, body, headers)
                response = self.connection.getresponse()
                text = response.read().decode()
            except (OSError, http.client.HTTPException):
                self.told.broken += 1
                self.connection.close()
                self.connection = None
                time.sleep(0.1)
                continue
            if response.status == 503:  # the site itself asks to be tried again
                time.sleep(0.2)
                continue
            return response.status, response.headers.get("Location", ""), text, at
        raise GivenUp(f"{method} {path.split('/')[-2]}")

    def run(self, door: str) -> None:
        person = 0
        try:
            while not self.stop.is_set():
                person += 1
                self.take_part(f"{door}{self.name}-{person}")
        except GivenUp as given_up:
            self.told.strange.append(f"given up: {given_up}")

    def take_part(self, address: str) -> None:
        status, location, _, _ = self.ask("POST", address, {"agree": "1", "start": "1"})
        if status != 302:
            self.told.strange.append(f"claim {status}")
            self.stop.wait(1)
            return
        self.told.claims.append(location.split("/")[2])
        while not self.stop.is_set() and not location.endswith("/done/"):
            status, further, page, _ = self.ask("GET", location)
            if status == 302:
                location = further
                continue
            if status != 200:
                self.told.strange.append(f"GET {status}")
                return
            answers = self.answers(page)
            status, further, _, at = self.ask("POST", location, answers | {"go": "1"})
            if status != 302:
                self.told.strange.append(f"POST {status}")
                return
            _, _, code, key, _ = location.split("/")
            given = {slot: value for slot, value in answers.items() if value}
            self.told.pages.append({"code": code, "key": key, "answers": given, "sent_at": at})
            location = further

    def answers(self, page: str) -> dict[str, str]:
        form = next(form for form in Page(page).forms if any(name == "go" for name, _ in form.buttons))
        chosen = {}
        for name, values in form.fields.items():
            if not name.startswith("s") or name.endswith(".skip"):
                continue
            kind = form.kinds[name]
            if kind == "radio":
                chosen[name] = "yes" if "yes" in values else self.rng.choice([value for value in values if value])
            elif kind == "text":
                chosen[name] = str(self.rng.randint(0, 100))
            elif kind == "textarea":
                chosen[name] = f"Wörter, “quoted” & <marked> {self.rng.random()}"
        return chosen


def a_worker_of(site: Site) -> Callable[[], None]:
    """Kills one worker of this very server, by pid."""

    def kill():
        if workers := site.workers:
            os.kill(random.choice(workers), signal.SIGKILL)

    return kill


def the_server(postgres: Postgres, away: float) -> Callable[[], None]:
    """Kills the database; it is away for a while, and then mends what it finds."""

    def kill():
        postgres.kill()
        time.sleep(away)
        postgres.start()

    return kill


def the_runner_of(site: Site) -> Callable[[], None]:
    """Kills the runner of jobs or that of batches, and waits until there is another one."""

    def kill():
        killed = random.choice(site.runners)
        os.kill(killed, signal.SIGKILL)
        while killed in site.runners or len(site.runners) < 2:
            time.sleep(0.05)

    return kill


def all_of(site: Site, postgres: Postgres | None) -> Callable[[], None]:
    """Kills the supervisor and the database, and starts both again. What the supervisor had begun must end by itself."""

    def kill():
        below = tree(site.pid)[1:]
        if postgres:
            postgres.kill()
        os.kill(site.pid, signal.SIGKILL)
        site.process.wait()
        while any(map(is_alive, below)):
            time.sleep(0.05)
        if postgres:
            postgres.start()
        site.start()

    return kill


def is_alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def seconds_until_shown(site: Site, path: str, begun: float) -> float:
    while time.monotonic() - begun < PATIENCE:
        with suppress(OSError), urllib.request.urlopen(site.address + path, timeout=60):
            break
        time.sleep(0.05)
    return time.monotonic() - begun


def kill_sometimes(
    kill: Callable[[], None], victim: str, every: float, stop: threading.Event, site: Site, path: str
) -> list[float]:
    """The seconds after each kill until a page was shown."""
    recoveries = []
    while not stop.wait(every * random.uniform(0.7, 1.3)):
        begun = time.monotonic()
        kill()
        # A database is away on purpose; all else has to come back by itself.
        begun = time.monotonic() if victim == "database" else begun
        recoveries.append(seconds_until_shown(site, path, begun))
    return recoveries


def killed_under_load(
    database: str,
    seconds: float,
    every: float,
    clients: int,
    sabotage: str = "",
    victim: str = "worker",
    away: float = 1,
) -> dict:
    """Everything that was acknowledged, broken, lost or doubled, while parts of the site are killed, and how soon it was there again."""
    with folder("heval-faults-") as home, ExitStack() as stack:
        url, postgres = "", None
        if database == "postgres":
            postgres = Postgres(home / "postgres", *(HASTY if sabotage == "hasty" else ()))
            stack.callback(postgres.stop)
            url = postgres.create("heval")
        is_ours = sabotage in ("lost", "doubled")
        application = "tools.proofs.faults.sabotaged:application" if is_ours else "heval_site.wsgi:application"
        site = Site(home / "site", application, "heval_site.settings", url)
        site.with_jobs = victim in ("jobs", "everything")
        stack.callback(site.stop)
        site.run("heval_site.management.cli", "prepare")
        door = site.run("tools.proofs.faults.study", str(max(60, int(seconds * 40)))).strip()
        site.start(SABOTAGE=sabotage)
        told, stop, calm = Told(), threading.Event(), threading.Event()
        people = [Annotator(site.port, n, told, stop) for n in range(clients)]
        threads = [threading.Thread(target=person.run, args=(door,)) for person in people]
        kill = {
            "worker": lambda: a_worker_of(site),
            "database": lambda: the_server(postgres, away),
            "jobs": lambda: the_runner_of(site),
            "everything": lambda: all_of(site, postgres),
        }[victim]()
        recoveries: list[float] = []
        killer = threading.Thread(
            target=lambda: recoveries.extend(kill_sometimes(kill, victim, every, calm, site, f"{door}watch"))
        )
        for thread in (*threads, killer):
            thread.start()
        time.sleep(seconds)
        calm.set()
        killer.join()
        stop.set()
        for thread in threads:
            thread.join()
        site.stop()
        done = subprocess.run(
            [sys.executable, "-m", "tools.proofs.faults.audit"],
            input=json.dumps({"pages": told.pages, "claims": told.claims}).encode(),
            env=site.environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
        found = json.loads(done.stdout)
    return found | {
        "database": database,
        "kills": len(recoveries),
        "recovery_seconds_median": round(statistics.median(recoveries), 2) if recoveries else None,
        "recovery_seconds_max": round(max(recoveries), 2) if recoveries else None,
        "broken_connections": told.broken,
        "strange": sorted(set(told.strange)),
        "strange_count": len(told.strange),
    }


def faults_in(found: dict) -> list[str]:
    """What must be zero and is not."""
    zero = ("lost_pages", "lost_claims", "doubled_answers", "doubled_places", "over_assigned", "strange_count")
    return [f"{name}: {found[name]}" for name in zero if found[name]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=1.5)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--victim", choices=["worker", "database", "jobs", "everything"], default="worker")
    parser.add_argument("--away", type=float, default=1, help="seconds that a killed database is away")
    parser.add_argument("--sabotage", choices=["lost", "doubled", "hasty"], default="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = killed_under_load(
        options.database,
        options.seconds,
        options.every,
        options.clients,
        options.sabotage,
        options.victim,
        options.away,
    )
    faults = faults_in(found)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for name, value in found.items():
            print(f"{name.replace('_', ' '):24} {value}")
        print("FAULTS: " + "; ".join(faults) if faults else "nothing acknowledged was lost, nothing is there twice")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
