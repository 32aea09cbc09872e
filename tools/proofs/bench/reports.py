"""What importing, reading, reporting and exporting many answers costs: seconds of CPU, and the largest memory of each process.

    python -m tools.proofs.bench.reports [rating] [two_choice] [--answers 1000 10000 100000] [--systems 2 10] [--bounds] [--keep FOLDER]
                                         [--database sqlite]

For each protocol, number of answers and number of systems it makes a new database with imported answers, and a planned comparison of every
pair of systems. Then it reads the answers, makes the report and exports the answers, each in a process of its own; the start of Python and
Django is part of each. More answers than a file may have are imported as several files. ``--bounds`` fails if a bound of ``BOUNDS`` is
broken. ``--answers 1000000`` takes five minutes, most of it the import. ``--keep`` keeps the databases in a folder, and uses those that it
finds there, without an import. ``--database postgres`` starts a PostgreSQL server for each, without fsync, and does not count its CPU.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain, combinations, islice
from pathlib import Path

from tests import ROOT

from .imports import peak_megabytes
from .machine import Postgres, Site, folder

# Seconds of CPU and megabytes that a step may take, by its answers and systems.
BOUNDS = {
    ("report", 100_000, 10): (8.0, 500.0),
    ("report", 1_000_000, 2): (40.0, 1200.0),
    ("import", 100_000, 2): (20.0, 200.0),
    ("csv", 1_000_000, 2): (25.0, 350.0),
    ("parquet", 1_000_000, 2): (30.0, 500.0),
}
PROTOCOLS = ("rating", "two_choice")
STEPS = ("read", "report", "csv", "parquet")
PROMPTS, ANSWERS_OF_ONE, POINTS = 1000, 200, 5


def prepare(protocol: str, answers: int, n_systems: int, path: Path) -> None:
    """Make the database with the answers."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    from annotators.imports import import_answers_and_close_draft
    from annotators.imports.run import MAX_ANSWERS
    from studies.models import Contrast
    from tests.builders import add_choice, add_rating, draft_study

    names = [f"s{number}" for number in range(n_systems)]
    study = draft_study(systems=names, prompts=PROMPTS, consent="", contact="", instructions="")
    if protocol == "rating":
        add_rating(study, position=1)
    else:
        add_choice(study, strategy="any", stopping="none")
        study.contrasts.all().delete()
    systems = list(study.systems.order_by("name"))
    Contrast.objects.bulk_create(Contrast(study=study, x=x, y=y) for x, y in combinations(systems, 2))
    rows = ratings(answers, names) if protocol == "rating" else choices(answers, names)
    head, cpu = next(rows), 0.0
    for _ in range(0, answers, MAX_ANSWERS):
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(chain([head], islice(rows, MAX_ANSWERS)))
        before = time.process_time()
        report = import_answers_and_close_draft(study, path, by=None)
        assert report.is_written, [str(problem) for problem in report.problems][:3]
        cpu += time.process_time() - before
    print(json.dumps({"cpu": cpu, "megabytes": peak_megabytes()}))


def ratings(answers: int, systems: list[str]):
    """Ratings of all outputs of a prompt, for as many prompts as one annotator has time for."""
    yield "annotator", "prompt_key", "system", "value", "time"
    for number in range(answers):
        annotator, answer = divmod(number, ANSWERS_OF_ONE)
        prompt, system = divmod(answer, len(systems))
        key = (annotator * 37 + prompt) % PROMPTS
        # A hash instead of random numbers: later systems are a little better.
        noise = (number * 2_654_435_761 >> 7) % 7
        value = 1 + min(POINTS - 1, (noise + system) * (POINTS - 1) // (6 + len(systems)))
        yield f"w{annotator}", f"p{key:03}", systems[system], value, time_of(annotator, answer)


def choices(answers: int, systems: list[str]):
    """Choices between two outputs; each annotator sees every pair of systems."""
    yield "annotator", "prompt_key", "shown:A", "shown:B", "chosen", "time"
    pairs = list(combinations(systems, 2))
    for number in range(answers):
        annotator, answer = divmod(number, ANSWERS_OF_ONE)
        pair = pairs[answer % len(pairs)]
        key = (annotator * 37 + answer) % PROMPTS
        chosen = pair[(number * 2_654_435_761 >> 7) % 7 > 2]
        yield f"w{annotator}", f"p{key:03}", *pair[:: (-1) ** answer], chosen, time_of(annotator, answer)


def time_of(annotator: int, answer: int) -> str:
    return f"2025-03-{1 + annotator % 28:02}T{10 + answer // 60 % 10}:{answer % 60:02}:00Z"


def run(step: str, path: Path) -> None:
    """Do one step with the study of the database, and print what the process has cost."""
    from analysis.data.exports import write_export_file
    from analysis.data.flat_rows import Selection
    from analysis.data.snapshot import database_snapshot
    from analysis.report.report_data import read_report_data
    from analysis.report.runs import run_analysis
    from studies.models import Study

    study = Study.objects.get()
    if step == "read":
        with database_snapshot():
            read_report_data(study, ["imported"])
    elif step == "report":
        run_analysis(study, by=None)
    else:
        write_export_file("responses", step, Selection(study, ("imported",)), path)
    print(json.dumps({"cpu": time.process_time(), "megabytes": peak_megabytes()}))


def measure(protocol: str, answers: int, systems: int, parent: Path, database: str) -> dict[str, dict[str, float]]:
    home = parent / f"{protocol}-{answers}-{systems}"
    part = [sys.executable, "-m", "tools.proofs.bench.reports", protocol, "--answers", str(answers)]
    part += ["--systems", str(systems), "--home", str(home), "--part"]
    is_new, measured = not home.exists(), {}
    home.mkdir(parents=True, exist_ok=True)
    print(f"{database} {protocol:10} {answers:>10,} answers, {systems:2} systems:", end="", flush=True)
    with postgres_in(home) if database == "postgres" else nullcontext("") as url:
        environment = Site(home, "", "heval_site.settings", url).environment
        for step in (*(["import"] if is_new else []), *STEPS):
            done = subprocess.run(
                [*part, step], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
            )
            measured[step] = cost = json.loads(done.stdout.splitlines()[-1])
            print(f" {step} {cost['cpu']:6.1f} s, {cost['megabytes']:5.0f} MB;", end="", flush=True)
    print(flush=True)
    return measured


@contextmanager
def postgres_in(home: Path) -> Iterator[str]:
    """Start PostgreSQL in a folder, and yield the address of a new database."""
    home.chmod(0o755)
    postgres = Postgres(home / "postgres", "fsync=off", "max_wal_size=4GB")
    try:
        yield postgres.create("reports")
    finally:
        postgres.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("protocols", nargs="*", default=list(PROTOCOLS), metavar="PROTOCOL", help=", ".join(PROTOCOLS))
    parser.add_argument("--answers", nargs="+", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--systems", nargs="+", type=int, default=[2, 10])
    parser.add_argument("--bounds", action="store_true", help="fail if a bound is broken")
    parser.add_argument("--keep", type=Path, help="a folder that keeps the databases")
    parser.add_argument("--database", default="sqlite", choices=["sqlite", "postgres"])
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        import django

        django.setup()
        path = chosen.home / "answers.csv"
        if chosen.part == "import":
            return prepare(chosen.protocols[0], chosen.answers[0], chosen.systems[0], path)
        return run(chosen.part, path)
    if chosen.keep and chosen.database == "postgres":
        parser.error("--keep is for SQLite")
    broken = []
    with folder("heval-bench-") as new:
        for protocol in chosen.protocols:
            for answers in chosen.answers:
                for systems in chosen.systems:
                    keep = (chosen.keep or new).resolve()
                    measured = measure(protocol, answers, systems, keep, chosen.database)
                    for step, cost in measured.items():
                        seconds, megabytes = BOUNDS.get((step, answers, systems), (float("inf"), float("inf")))
                        if cost["cpu"] > seconds or cost["megabytes"] > megabytes:
                            broken.append(
                                f"{step} {protocol} {answers:,} x {systems}: {cost['cpu']:.1f} s of {seconds:g}, "
                                f"{cost['megabytes']:.0f} MB of {megabytes:g}"
                            )
    if broken:
        print("MISSED: " + "; ".join(broken))
    if broken and chosen.bounds:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
