"""Kill workers of the web server while annotators answer, and compare what they were told with what is stored.

python -m tests.faults.kill_workers [--seconds 60] [--every 1.5] [--clients 16] [--database sqlite|postgres]
                                    [--victim worker|database] [--sabotage lost|doubled|hasty] [--json]
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import urlencode

from tests.bench.machine import ROOT, Postgres, Site, folder
from tests.robots import Page

ATTEMPTS = 60
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
        for _ in range(ATTEMPTS):
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
                time.sleep(0.05)
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


def the_server(postgres: Postgres) -> Callable[[], None]:
    """Kills the database; it is away for a while, and then mends what it finds."""

    def kill():
        postgres.kill()
        time.sleep(1)
        postgres.start()

    return kill


def kill_sometimes(kill: Callable[[], None], every: float, stop: threading.Event) -> int:
    kills = 0
    while not stop.wait(every * random.uniform(0.7, 1.3)):
        kill()
        kills += 1
    return kills


def killed_under_load(
    database: str, seconds: float, every: float, clients: int, sabotage: str = "", victim: str = "worker"
) -> dict:
    """Everything that was told, broken, lost or doubled, while workers of the web server or the database itself are killed."""
    with folder("heval-faults-") as home, ExitStack() as stack:
        url = ""
        if database == "postgres":
            postgres = Postgres(home / "postgres", *(HASTY if sabotage == "hasty" else ()))
            stack.callback(postgres.stop)
            url = postgres.create("heval")
        is_ours = sabotage in ("lost", "doubled")
        application = "tests.faults.sabotaged:application" if is_ours else "heval_site.wsgi:application"
        site = Site(home / "site", application, "heval_site.settings", url)
        stack.callback(site.stop)
        site.run("heval_site.management.cli", "prepare")
        door = site.run("tests.faults.study", str(max(60, int(seconds * 40)))).strip()
        site.start(SABOTAGE=sabotage)
        told, stop, calm = Told(), threading.Event(), threading.Event()
        people = [Annotator(site.port, n, told, stop) for n in range(clients)]
        threads = [threading.Thread(target=person.run, args=(door,)) for person in people]
        kills: list[int] = []
        kill = the_server(postgres) if victim == "database" else a_worker_of(site)
        killer = threading.Thread(target=lambda: kills.append(kill_sometimes(kill, every, calm)))
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
            [sys.executable, "-m", "tests.faults.audit"],
            input=json.dumps({"pages": told.pages, "claims": told.claims}).encode(),
            env=site.environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
        found = json.loads(done.stdout)
    return found | {
        "database": database,
        "kills": sum(kills),
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
    parser.add_argument("--victim", choices=["worker", "database"], default="worker")
    parser.add_argument("--sabotage", choices=["lost", "doubled", "hasty"], default="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = killed_under_load(
        options.database, options.seconds, options.every, options.clients, options.sabotage, options.victim
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
