"""What an import of a large file costs, and how long it keeps other writers of SQLite waiting.

    python -m tools.proofs.bench.imports [answers] [stimuli] [--rows 15600 100000 250000] [--bounds]

For each kind and number of rows it makes a new SQLite database, a study and a file, and imports the file in a process of its own. Beside it
another process writes a row every 20 ms. It prints the longest wait of that process, the rows per second, and the largest memory of the
import. ``--bounds`` fails if a wait is longer than half a second, the memory above 500 MB, or the CPU time of an answer above .15 ms; a busy
machine counts more CPU time for the same work. ``--rows 5000000`` takes an hour.
"""

import argparse
import csv
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests import ROOT

LONGEST_WAIT = 0.5
LARGEST_MEMORY = 500
MOST_CPU = 0.15  # milliseconds for an answer
EVERY = 0.02
PROMPTS, ANSWERS_OF_ONE = 1000, 200
SYSTEMS = ("alpha", "beta")


def set_up(home: str) -> None:
    os.environ["HEVAL_HOME"], os.environ["DJANGO_SETTINGS_MODULE"] = home, "heval_site.settings"
    os.environ.pop("DATABASE_URL", None)
    import django

    django.setup()


def prepare(kind: str, rows: int, path: Path) -> None:
    """Make the database, a draft and the file."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    from tests.builders import add_rating, draft_study

    study = draft_study(systems=SYSTEMS, prompts=PROMPTS if kind == "answers" else 1, consent="", contact="")
    add_rating(study, position=1)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows(rows_of_answers(rows) if kind == "answers" else rows_of_stimuli(rows))


def rows_of_answers(rows: int):
    """Ratings of both outputs of 100 prompts by each annotator."""
    yield "annotator", "prompt_key", "system", "value", "time"
    for number in range(rows):
        annotator, answer = divmod(number, ANSWERS_OF_ONE)
        prompt = (annotator * 37 + answer // 2) % PROMPTS
        time_of = f"2025-03-{1 + annotator % 28:02}T{10 + answer // 60 % 10}:{answer % 60:02}:00Z"
        yield f"w{annotator}", f"p{prompt:03}", SYSTEMS[answer % 2], 1 + (number * 7) % 5, time_of


def rows_of_stimuli(rows: int):
    yield "prompt_key", "prompt_text", "system", "text"
    for number in range(rows):
        prompt = number // 2
        yield (
            f"q{prompt}",
            f"Write the tale number {prompt}.",
            SYSTEMS[number % 2],
            f"The tale {number} of {number * 31 % 977} words.",
        )


def import_file(kind: str, path: Path) -> None:
    from annotators.imports import import_answers_and_close_draft
    from studies.imports.tables import Options, import_stimuli_file
    from studies.models import Study

    study = Study.objects.get()
    begun, cpu = time.perf_counter(), time.process_time()
    if kind == "answers":
        report = import_answers_and_close_draft(study, path, by=None)
    else:
        report = import_stimuli_file(study, path, options=Options(creates_systems=True), by=None)
    assert report.is_written, [str(problem) for problem in report.problems][:3]
    seconds = time.perf_counter() - begun
    print(json.dumps({"seconds": seconds, "cpu": time.process_time() - cpu, "megabytes": peak_megabytes()}))


def peak_megabytes() -> float:
    """Return the largest memory of this process until now. That of getrusage begins with the peak of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def wait_for_turns(home: Path, until: Path) -> None:
    """Write a row every 20 ms until a file appears, and print the longest time that one took."""
    connection = sqlite3.connect(home / "heval.sqlite3", timeout=60, isolation_level=None)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS bench_turns (at REAL)")
    waits = []
    while not until.exists():
        begun = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO bench_turns VALUES (?)", [begun])
        connection.execute("COMMIT")
        waits.append(time.perf_counter() - begun)
        time.sleep(EVERY)
    waits.sort()
    print(json.dumps({"longest": waits[-1], "p99": waits[int(len(waits) * 0.99)], "n": len(waits)}))


def measure(kind: str, rows: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="heval-bench-") as folder:
        home, path, end = Path(folder) / "home", Path(folder) / f"{kind}.csv", Path(folder) / "end"
        home.mkdir()

        def part(name: str) -> list[str]:
            return [
                sys.executable,
                "-m",
                "tools.proofs.bench.imports",
                kind,
                "--rows",
                str(rows),
                "--part",
                name,
                folder,
            ]

        subprocess.run(part("prepare"), cwd=ROOT, check=True)
        waiting = subprocess.Popen(part("wait"), cwd=ROOT, stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        done = subprocess.run(part("import"), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        size = sum(file.stat().st_size for file in home.glob("*.sqlite3")) / 1e6
        end.touch()
        waited, _ = waiting.communicate(timeout=120)
        measured = json.loads(done.stdout) | json.loads(waited) | {"file": path.stat().st_size / 1e6, "database": size}
    print(
        f"{kind:8} {rows:>9,} rows ({measured['file']:5.0f} MB): {measured['seconds']:7.1f} s, {measured['cpu']:7.1f} s of CPU, "
        f"{rows / measured['seconds']:7,.0f} rows/s, {measured['cpu'] / rows * 1000:.3f} ms of CPU a row, {measured['megabytes']:5.0f} MB; another writer waits "
        f"{measured['longest']:6.2f} s at most, {measured['p99']:.3f} s in 99 of 100 of {measured['n']:,} turns",
        flush=True,
    )
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=["answers", "stimuli"], metavar="KIND", help="answers, stimuli")
    parser.add_argument("--rows", nargs="+", type=int, default=[15_600, 100_000, 250_000])
    parser.add_argument("--bounds", action="store_true", help="fail if a bound is broken")
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        name, folder = chosen.part[0], Path(chosen.part[1])
        (kind,), (rows,), path = chosen.kinds, chosen.rows, folder / f"{chosen.kinds[0]}.csv"
        if name == "wait":
            return wait_for_turns(folder / "home", folder / "end")
        set_up(str(folder / "home"))
        return prepare(kind, rows, path) if name == "prepare" else import_file(kind, path)
    broken = []
    for kind in chosen.kinds or ["answers", "stimuli"]:
        for rows in chosen.rows:
            measured = measure(kind, rows)
            broken += [f"{kind} {rows:,}: a wait of {measured['longest']:.2f} s"] * (measured["longest"] > LONGEST_WAIT)
            broken += [f"{kind} {rows:,}: {measured['megabytes']:.0f} MB"] * (measured["megabytes"] > LARGEST_MEMORY)
            milliseconds = measured["cpu"] / rows * 1000
            broken += [f"{kind} {rows:,}: {milliseconds:.3f} ms"] * (kind == "answers" and milliseconds > MOST_CPU)
    if chosen.bounds and broken:
        raise SystemExit("Broken bounds: " + "; ".join(broken))


if __name__ == "__main__":
    main()
