"""How long annotators wait while something large happens beside them.

    python -m tools.proofs.bench.waits [nothing] [import] [erasure] [launch] [places] [archive] [--answers 250000] [--batches 10000]
                                       [--archived 1000000] [--database sqlite]

A web server as `heval up` starts it serves annotators who answer without a pause to think. Beside it another process does each work once,
as a job would; the archive is downloaded from the web server itself. It prints the longest GET and the longest POST of an annotator during
each work, and fails if one is longer than a second or is answered with an error. The erasure is three: an import that was killed before its
last transaction is removed, everybody in a study withdraws one after the other, and the panel ids of the study are erased. ``places`` opens
as many more places as a launch stores. ``nothing`` says what the machine's other work costs them. The annotators answer in another study.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

from tests import ROOT

from .annotator_cycle import loaded
from .imports import PROMPTS, SYSTEMS, rows_of_answers
from .load import answers_in
from .machine import Postgres, Site, folder

LONGEST_WAIT = 1.0
ANNOTATORS, PAGES, EVERY = 4, 100, 0.02
PAGES_OF_BATCH, PROMPTS_OF_LAUNCH = 10, 2000


def draft(prompts: int, m: int = 1, **columns):
    from tests.builders import add_rating, draft_study

    study = draft_study(systems=SYSTEMS, prompts=prompts, **columns)
    add_rating(study, position=1, m=m)
    return study


def write_file(answers: int) -> Path:
    import csv

    path = Path(os.environ["HEVAL_HOME"]) / "answers.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows_of_answers(answers))
    return path


def import_answers(study, path: Path) -> None:
    from annotators.imports import import_answers_and_close_draft

    assert import_answers_and_close_draft(study, path, by=None).is_written


# Each prepares, unmeasured, and returns the work.


def prepare_import(answers: int) -> Callable[[], object]:
    study, path = draft(PROMPTS, consent="", contact=""), write_file(answers)
    return lambda: import_answers(study, path)


def prepare_erasure(answers: int) -> Callable[[], object]:
    from annotators.imports.writing import ImportWriter, remove_unfinished_imports
    from annotators.models import Assignment
    from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
    from annotators.tasks import erase_due_person_and_panel_ids
    from studies.models import Job

    path = write_file(answers)
    whole = draft(PROMPTS, consent="", contact="", withdrawal_blanks_ratings=True)
    import_answers(whole, path)
    killed = draft(PROMPTS, consent="", contact="")
    with (
        mock.patch.object(ImportWriter, "publishing", side_effect=KeyboardInterrupt),
        mock.patch("annotators.imports.run.remove_unfinished_import"),
    ):
        try:
            import_answers(killed, path)
        except KeyboardInterrupt:
            Job.objects.filter(study=killed).update(state=Job.State.FAILED)
    assert Assignment.objects.filter(study=killed).exists()

    def erase() -> None:
        assert remove_unfinished_imports() == 1
        for assignment in Assignment.objects.filter(study=whole):
            withdraw_annotator_and_erase_texts(assignment)
            time.sleep(EVERY)
        erase_due_person_and_panel_ids()

    return erase


def prepare_launch(batches: int) -> Callable[[], object]:
    from studies.design.checklist import find_design_problems
    from studies.services import lifecycle

    study = draft(PROMPTS_OF_LAUNCH, PAGES_OF_BATCH, target_n=batches, annotators_per_batch=1)
    keys = [problem.key for problem in find_design_problems(study)]
    return lambda: lifecycle.launch(study, None, keys)


def prepare_places(batches: int) -> Callable[[], object]:
    from studies.services import lifecycle
    from tests.builders import launched

    study = launched(
        draft(PROMPTS_OF_LAUNCH, PAGES_OF_BATCH, target_n=10, annotators_per_batch=1, target_cap=batches + 10)
    )
    return lambda: lifecycle.open_more_places(study, batches, None)


def prepare_archive(answers: int) -> Callable[[], object]:
    from django.contrib.auth import get_user_model
    from django.urls import reverse

    from analysis.api.tokens import create_token

    owner = get_user_model().objects.create_superuser("reader")
    study = draft(PROMPTS, consent="", contact="", owner=owner)
    import_answers(study, write_file(answers))
    _, token = create_token(owner, "bench")
    address = f"{os.environ['SITE_URL']}{reverse('api-archive', args=[study.code])}"

    def download() -> None:
        asked = urllib.request.Request(address, headers={"Authorization": f"Token {token}"})
        with urllib.request.urlopen(asked, timeout=600) as answer:
            while answer.read(1 << 20):
                pass

    return download


def prepare_nothing(seconds: int) -> Callable[[], object]:
    return lambda: time.sleep(seconds)


WORKS = {
    "nothing": prepare_nothing,
    "import": prepare_import,
    "erasure": prepare_erasure,
    "launch": prepare_launch,
    "places": prepare_places,
    "archive": prepare_archive,
}


def work(name: str, size: int) -> None:
    """Prepare, say so, wait for a line, work, and print the seconds."""
    import django

    django.setup()
    do = WORKS[name](size)
    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.perf_counter()
    do()
    print(time.perf_counter() - begun, flush=True)


class Annotators:
    """People who answer until they are stopped. ``longest``: seconds by method; ``errors``: what was no page."""

    def __init__(self, site: Site, paths: list[str]):
        self.site, self.paths = site, paths
        self.longest, self.errors, self.n = {"GET": 0.0, "POST": 0.0}, list[str](), 0
        self.is_stopped = threading.Event()

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.site.port, timeout=120)
        begun = time.perf_counter()
        connection.request(method, path, body, {"Content-Type": "application/x-www-form-urlencoded"} if body else {})
        answer = connection.getresponse()
        page = answer.read()
        self.longest[method] = max(self.longest[method], time.perf_counter() - begun)
        connection.close()
        if answer.status not in (200, 302):
            self.errors.append(f"{method} {answer.status}")
        return answer.status, answer.getheader("Location") or path, page

    def answer(self) -> None:
        path = self.paths.pop()
        while not self.is_stopped.is_set():
            status, path, page = self.ask("GET", path)
            if status == 200 and not path.endswith("/done/"):
                _, path, _ = self.ask("POST", path, answers_in(page))
                self.n += 1
            if path.endswith("/done/"):
                path = self.paths.pop()
            time.sleep(EVERY)

    @contextmanager
    def answering(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.answer) for _ in range(ANNOTATORS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_stopped.set()
            for thread in threads:
                thread.join()


def measure(name: str, size: int, database: str) -> list[str]:
    """Do one work beside annotators, print what they met, and return what breaks a bound."""
    with folder("heval-waits-") as home, ExitStack() as stack:
        url = ""
        if database == "postgres":
            postgres = Postgres(home / "postgres")
            stack.callback(postgres.stop)
            url = postgres.create("ours")
        site = Site(home / "site", "heval_site.wsgi:application", "heval_site.settings", url)
        site.run("heval_site.management.cli", "prepare")
        door = json.loads(site.run("tools.proofs.bench.study", "load", "400", str(PAGES)))["door"]
        site.start()
        doing = subprocess.Popen(
            [sys.executable, "-m", "tools.proofs.bench.waits", "--part", name, str(size)],
            env=site.environment,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert doing.stdout.readline() == "ready\n"
            doors = [f"{door}w{number}" for number in range(400)]
            paths = loaded(site, kind="claim", paths=doors, clients=ANNOTATORS, most=len(doors))["left"]
            people = Annotators(site, [path for path in paths if "who=" not in path])
            with people.answering():
                doing.stdin.write("go\n")
                doing.stdin.flush()
                seconds = float(doing.stdout.readline())
        finally:
            doing.kill()
            doing.wait()
            site.stop()
    longest = people.longest
    print(
        f"{database:8} {name:8} {size:>9,} {seconds:7.1f} s; an annotator waits {longest['GET']:5.2f} s for a page and {longest['POST']:5.2f} s for "
        f"an answer at most, of {people.n:,}; {len(people.errors)} errors {' '.join(sorted(set(people.errors)))}",
        flush=True,
    )
    broken = [f"{database}, {name}: {method} {wait:.2f} s" for method, wait in longest.items() if wait > LONGEST_WAIT]
    return broken + [f"{database}, {name}: {len(people.errors)} errors"] * bool(people.errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", default=list(WORKS), metavar="WORK", help=", ".join(WORKS))
    parser.add_argument("--answers", type=int, default=250_000)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--archived", type=int, default=1_000_000)
    parser.add_argument("--database", default="sqlite", choices=["sqlite", "postgres"])
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        return work(chosen.part[0], int(chosen.part[1]))
    sizes = {"nothing": 20, "launch": chosen.batches, "places": chosen.batches, "archive": chosen.archived}
    broken = [
        fault for name in chosen.works for fault in measure(name, sizes.get(name, chosen.answers), chosen.database)
    ]
    if broken:
        raise SystemExit(f"Longer than {LONGEST_WAIT:.0f} s: " + "; ".join(broken))


if __name__ == "__main__":
    main()
