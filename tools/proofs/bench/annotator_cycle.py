"""Cycles and claims per CPU second, beside a bare Django view; and what else an annotator's page may cost.

    python -m tools.proofs.bench.annotator_cycle [--clients 1,8,32,64] [--seconds 1.5] [--rounds 12] [--databases sqlite,postgres]
                                                 [--only load,flat,process] [--waiting 20] [--json FILE]

Ours and the bare view run at the same time and are loaded in turn; each number is the median of the rounds, each ratio the
median of the rounds' own ratios. Rounds are short and many: what a machine gives changes within seconds, and in a round both
shall meet the same. With ``--waiting``, a third site has so many clients that wait by long polling. CPU is that of the web server's processes and, on PostgreSQL, of the database's.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from . import waiting
from .load import Load
from .machine import ROOT, Postgres, Site, cpu_seconds, end, folder, maps_any, pss_megabytes

FIRST_PAGES = 3  # of each person, before the clock starts: both processes have met most of them then
WINDOW = 150  # pages at either end of a long assignment
TOGETHER = 6  # people of one look at the size of a study
READERS = {"small": 60, "large": 600}  # people who have read before: both processes have met all texts then
CLAIMS = (
    200  # in one round of claims, of which there are few; they also make the assignments whose pages are answered then
)
CLAIM_ROUNDS = 3
PAGES = 100
STATISTICS = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
# (what, measured value's key, "<=" or ">=", the bound)
BOUNDS = (
    ("cycles per CPU second, of the bare view's", "cycles_per_cpu_of_bare", ">=", 1 / 2),
    ("p95 at most clients, of the bare view's", "p95_of_bare", "<=", 1.6),
    ("errors", "errors", "<=", 0),
)
CLAIM_BOUNDS = (
    ("claims per CPU second, of the bare view's", "cycles_per_cpu_of_bare", ">=", 0.3),
    ("milliseconds of a claim, p95", "p95", "<=", 2000),
    ("errors of claims", "errors", "<=", 0),
)


@dataclass
class Pair:
    """Our site and the bare one on one kind of database, both running."""

    database: str
    ours: Site
    bare: Site
    postgres: Postgres | None
    waited: Site | None = None

    def cpu(self, site: Site) -> tuple[float, float]:
        """CPU seconds until now: of the web server, of the database server (SQLite is a part of the web server)."""
        return cpu_seconds(site.pid), cpu_seconds(self.postgres.pid) if self.postgres else 0.0

    def count(self) -> None:
        """Let PostgreSQL count its tables, as it does by itself within a minute or two: it plans by what it counted last."""
        if self.postgres:
            for name in ("ours", "bare", *(["waited"] if self.waited else [])):
                self.postgres.count(name)


def loaded(site: Site, **job) -> dict:
    """Run the clients in a process of their own."""
    job = {"port": site.port} | job
    done = subprocess.run(
        [sys.executable, "-m", "tools.proofs.bench.load"],
        input=json.dumps(job).encode(),
        stdout=subprocess.PIPE,
        cwd=ROOT,
        check=True,
    )
    return json.loads(done.stdout)


def measured(pair: Pair, site: Site, **job) -> dict:
    """One load, with what it cost."""
    before = pair.cpu(site)
    seen = loaded(site, **job)
    web, database = (after - start for after, start in zip(pair.cpu(site), before, strict=True))
    done = max(1, seen["done"])
    return seen | {
        "cpu_ms": (web + database) / done * 1000,
        "database_ms": database / done * 1000,
        "per_second": seen["done"] / seen["wall"],
    }


def made(stack: ExitStack, home: Path, database: str, places: int, n_waiting: int) -> tuple[Pair, dict[str, str]]:
    """Return the sites, and the door of a study on each of ours."""
    postgres = None
    if database == "postgres":
        postgres = Postgres(home / "postgres")
        stack.callback(postgres.stop)
    urls = [postgres.create(name) if postgres else "" for name in ("ours", "bare")]
    ours = Site(home / f"ours-{database}", "heval_site.wsgi:application", "heval_site.settings", urls[0])
    bare = Site(
        home / f"bare-{database}",
        "tools.proofs.bench.bare.wsgi:application",
        "tools.proofs.bench.bare.settings",
        urls[1],
    )
    pair = Pair(database, ours, bare, postgres)
    own = {"ours": ours}
    if n_waiting:
        url = postgres.create("waited") if postgres else ""
        own["waited"] = pair.waited = Site(home / f"waited-{database}", ours.application, "heval_site.settings", url)
    studies = {}
    for name, site in own.items():
        site.run("heval_site.management.cli", "prepare")
        studies[name] = json.loads(site.run("tools.proofs.bench.study", "load", str(places), str(PAGES)))
    bare.run("tools.proofs.bench.bare.fill")
    for site in (*own.values(), bare):
        stack.callback(site.stop)
        site.start()
    if pair.waited:
        waiting.start(pair.waited, studies["waited"]["code"], n_waiting)
    return pair, {name: study["door"] for name, study in studies.items()}


class People:
    """Names that nobody had before, as addresses at a door."""

    def __init__(self, door: str):
        self.door, self.count = door, 0

    def come(self, n: int) -> list[str]:
        self.count += n
        return [f"{self.door}w{number}" for number in range(self.count - n, self.count)]


def medians(rounds: list[dict]) -> dict:
    names = ("per_second", "cpu_ms", "database_ms", "p50", "p95", "page_bytes")
    found = {name: median(one[name] for one in rounds) for name in names if rounds[0][name] is not None}
    return found | {
        "errors": sum(one["errors"] for one in rounds),
        "error_words": sorted({w for one in rounds for w in one["error_words"]}),
        "done": sum(one["done"] for one in rounds),
        "spent": sum(one["spent"] for one in rounds),
    }


def compared(ours: list[dict], bare: list[dict], waited: list[dict]) -> dict:
    ratios = {
        "cycles_per_cpu_of_bare": median(b["cpu_ms"] / o["cpu_ms"] for o, b in zip(ours, bare, strict=True)),
        "p95_of_bare": median(o["p95"] / b["p95"] for o, b in zip(ours, bare, strict=True)),
        "per_second_of_bare": median(o["per_second"] / b["per_second"] for o, b in zip(ours, bare, strict=True)),
    }
    if waited:
        for name in ("cpu_ms", "p95", "per_second"):
            ratios[f"{name}_waited"] = median(w[name] / o[name] for w, o in zip(waited, ours, strict=True))
        ratios["waited"] = medians(waited)
    return {"ours": medians(ours), "bare": medians(bare)} | ratios


def measure_load(
    pair: Pair, doors: dict[str, str], clients: list[int], seconds: float, rounds: int, say: Callable
) -> dict:
    """Claims, then cycles, at each number of clients; ours and bare in turn."""
    sites = {"ours": pair.ours, "bare": pair.bare} | ({"waited": pair.waited} if pair.waited else {})
    people = {name: People(door) for name, door in (doors | {"bare": "/e/bare/?who="}).items()}
    pages: dict[str, list[str]] = {}
    for name, site in sites.items():  # what is imported, compiled and cached at the first request
        warm = loaded(site, kind="claim", paths=people[name].come(32), clients=8, most=32)["left"]
        pages[name] = loaded(site, kind="cycle", paths=warm, clients=8, seconds=1.5)["left"]
    seen: dict[str, dict] = {
        kind: {n: {"ours": [], "bare": [], "waited": []} for n in clients} for kind in ("claim", "cycle")
    }
    for n in clients:
        for _ in range(CLAIM_ROUNDS):
            for name, site in sites.items():
                come = people[name].come(CLAIMS)
                seen["claim"][n][name].append(measured(pair, site, kind="claim", paths=come, clients=n, most=CLAIMS))
                pages[name] += seen["claim"][n][name][-1].pop("left")
    # Within its first minute a server still plans by the empty tables that it met.
    pair.count()
    for number in range(rounds):
        for n in sorted(clients, reverse=bool(number % 4 > 1)):
            for name in sorted(sites, reverse=bool(number % 2)):
                # What is made once for a person, at their first page in a process, would weigh on the few pages of a measurement
                # as it never weighs on all the pages of a batch.
                site = sites[name]
                pages[name] = loaded(site, kind="cycle", paths=pages[name], clients=n, most=FIRST_PAGES * n)["left"]
                one = measured(pair, site, kind="cycle", paths=pages[name], clients=n, seconds=seconds)
                pages[name] = one.pop("left")
                seen["cycle"][n][name].append(one)
    found: dict[str, dict] = {kind: {n: compared(**both) for n, both in ours.items()} for kind, ours in seen.items()}
    for kind, n in ((kind, n) for n in clients for kind in found):
        say(line_of(pair.database, kind, n, found[kind][n]))
        if pair.waited:
            one = found[kind][n]
            say(
                f"{pair.database:9} {kind:6} {n:7} | with waiting clients, of those without: {one['per_second_waited']:.3f} per second, "
                f"{one['cpu_ms_waited']:.3f} of the CPU, {one['p95_waited']:.3f} of p95 ({one['waited']['p95']:.1f} ms), {one['waited']['errors']} errors"
            )
    if 8 in clients and max(clients) > 8:
        most, few = (seen["cycle"][n]["ours"] for n in (max(clients), 8))
        found["most_of_eight"] = median(
            many["per_second"] / one["per_second"] for many, one in zip(most, few, strict=True)
        )
    return found


HEADING = (
    f"{'database':9} {'what':6} {'clients':>7} | {'ours/s':>7} {'bare/s':>7} | {'CPU ms':>7} {'(its db)':>8} {'bare':>6} {'(db)':>5} {'ratio':>6} | "
    f"{'p50':>7} {'p95':>8} {'bare p95':>8} {'ratio':>6} | errors"
)


def line_of(database: str, kind: str, n: int, found: dict) -> str:
    ours, bare = found["ours"], found["bare"]
    return (
        f"{database:9} {kind:6} {n:7} | {ours['per_second']:7.1f} {bare['per_second']:7.1f} | {ours['cpu_ms']:7.2f} "
        f"{ours['database_ms']:8.2f} {bare['cpu_ms']:6.2f} {bare['database_ms']:5.2f} {found['cycles_per_cpu_of_bare']:6.2f} | {ours['p50']:7.1f} {ours['p95']:8.1f} {bare['p95']:8.1f} "
        f"{found['p95_of_bare']:6.2f} | {ours['errors']} {' '.join(ours['error_words'])}"
    )


def walked(pair: Pair, path: str, cycles: int) -> tuple[float, str]:
    """CPU milliseconds a cycle of so many pages of one assignment, and the page it is then at. One client, in this process."""
    before = pair.cpu(pair.ours)
    seen = Load(pair.ours.port, "cycle", [path], 1, most=cycles).run()
    spent = sum(pair.cpu(pair.ours)) - sum(before)
    if seen["errors"] or seen["done"] != cycles:
        raise AssertionError(f"{seen['done']} of {cycles} cycles, errors: {seen['error_words']}")
    return spent / cycles * 1000, seen["left"][0]


def walked_together(pair: Pair, people: People) -> float:
    """The same for the pages of several people, from their fifth to their last: so many that one look tells a twentieth."""
    costs = []
    for _ in range(TOGETHER):
        # Both processes have met most of them then.
        _, path = walked(pair, claimed(pair.ours, people), 4)
        cost, _ = walked(pair, path, 15)
        costs.append(cost)
    return sum(costs) / TOGETHER


def read(site: Site, people: People, readers: int) -> None:
    """So many people go through all of their pages, eight at a time."""
    paths = loaded(site, kind="claim", paths=people.come(readers), clients=8, most=readers)["left"]
    seen = loaded(site, kind="cycle", paths=paths, clients=8)
    if seen["errors"] or seen["left"]:
        raise AssertionError(f"{len(seen['left'])} have not ended, errors: {seen['error_words']}")


def claimed(site: Site, people: People) -> str:
    return Load(site.port, "claim", people.come(1), 1, most=1).run()["left"][0]


def measure_flatness(pair: Pair, say: Callable, repeats: int = 4) -> dict:
    """Pages at the end of one long assignment against those at its beginning, and a study ten times as large against a small one."""
    site = pair.ours

    def door(*arguments: str) -> People:
        return People(json.loads(site.run("tools.proofs.bench.study", *arguments))["door"])

    long = door("long", "8", "100", "10")
    walked(pair, claimed(site, long), 990)
    pair.count()
    early, late = [], []
    for _ in range(repeats):
        path = claimed(site, long)
        _, path = walked(pair, path, 4)
        # So many that a file's checkpoint, which comes every few hundred pages, weighs the same on both.
        cost, path = walked(pair, path, WINDOW)
        early.append(cost)
        _, path = walked(pair, path, 990 - 2 * WINDOW)
        cost, _ = walked(pair, path, WINDOW)
        late.append(cost)
    looks = 3 * repeats
    places = (1 + looks) * TOGETHER + READERS["small"]
    sizes = {
        "small": door("small", str(places), "20", "1", "60"),
        "large": door("large", str(10 * places), "20", "1", "600"),
    }
    cold = {name: walked_together(pair, sizes[name]) for name in sizes}
    for name, people in sizes.items():
        read(pair.ours, people, READERS[name])
    costs: dict[str, list[float]] = {"small": [], "large": []}
    for look in range(looks):
        # In turn first, so that what the machine does meanwhile weighs on both.
        for name in sorted(sizes, reverse=bool(look % 2)):
            costs[name].append(walked_together(pair, sizes[name]))
    found = {
        "late_of_early": median(after / before for before, after in zip(early, late, strict=True)),
        "study_ten_times_as_large": median(
            big / small for small, big in zip(costs["small"], costs["large"], strict=True)
        ),
        "early_ms": median(early),
        "late_ms": median(late),
        "small_ms": median(costs["small"]),
        "large_ms": median(costs["large"]),
        "first_readers_small_ms": cold["small"],
        "first_readers_large_ms": cold["large"],
    }
    say(
        f"{pair.database:9} flat: pages {995 - WINDOW} to 994 cost {found['late_of_early']:.3f} of pages 5 to {4 + WINDOW} "
        f"({found['late_ms']:.2f} and {found['early_ms']:.2f} ms CPU); a study ten times as large "
        f"{found['study_ten_times_as_large']:.3f} ({found['large_ms']:.2f} and {found['small_ms']:.2f} ms), where nobody had read "
        f"its texts before {cold['large']:.2f} and {cold['small']:.2f} ms"
    )
    return found


def measure_process(pair: Pair, say: Callable) -> dict:
    """Memory of the two workers, what they have loaded, and how long `heval up` takes to its first page."""
    workers = pair.ours.workers
    found = {
        "workers": len(workers),
        "workers_pss_mb": sum(map(pss_megabytes, workers)),
        "with_master_pss_mb": sum(map(pss_megabytes, [pair.ours.pid, *workers])),
        "statistics_loaded": sorted({name for pid in workers for name in maps_any(pid, *STATISTICS)}),
        "start_to_first_page_s": median(start_seconds(pair) for _ in range(3)),
    }
    say(
        f"{pair.database:9} {found['workers']} workers {found['workers_pss_mb']:.0f} MB (PSS), with gunicorn's master "
        f"{found['with_master_pss_mb']:.0f} MB; loaded of the statistics: {', '.join(found['statistics_loaded']) or 'nothing'}; "
        f"`heval up` to the first page {found['start_to_first_page_s']:.2f} s"
    )
    return found


def start_seconds(pair: Pair) -> float:
    """`heval up` on the database that is there, until an annotator's landing page is answered."""
    twin = Site(
        pair.ours.home, pair.ours.application, "heval_site.settings", pair.ours.environment.get("DATABASE_URL", "")
    )
    door = json.loads(pair.ours.run("tools.proofs.bench.study", "door", "4", "4"))["door"]
    with (pair.ours.home / "up.log").open("a") as log:
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "heval_site.management.cli", "up"],
            env=twin.environment,
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )
        try:
            twin.wait("/healthz")
            with urllib.request.urlopen(f"{twin.address}{door}w") as page:
                assert b"<form" in page.read()
            return time.monotonic() - began
        finally:
            end(process, signal.SIGTERM)


def verdicts(found: dict) -> list[str]:
    """Each bound with what was measured."""
    lines = []

    def judge(words: str, value: float, sign: str, bound: float) -> None:
        holds = value <= bound if sign == "<=" else value >= bound
        lines.append(f"{'holds ' if holds else 'MISSED'} {words}: {value:.3g} ({sign} {bound:.3g})")

    for database, parts in found.items():
        if cycles := parts.get("load", {}).get("cycle"):
            most = max(cycles)
            for bounds, measured_kind in ((BOUNDS, cycles[most]), (CLAIM_BOUNDS, parts["load"]["claim"][most])):
                for words, key, sign, bound in bounds:
                    value = measured_kind[key] if key in measured_kind else measured_kind["ours"][key]
                    judge(f"{database}, {most} clients: {words}", value, sign, bound)
            if "most_of_eight" in parts["load"]:
                judge(
                    f"{database}: cycles per second at {most} of those at 8",
                    parts["load"]["most_of_eight"],
                    ">=",
                    0.95 if database == "postgres" else 0.9,
                )
            judge(
                f"{database}: bytes of a page, its stimuli included",
                cycles[most]["ours"]["page_bytes"],
                "<=",
                14 * 1024,
            )
        if flat := parts.get("flat"):
            judge(f"{database}: a late page to an early one", flat["late_of_early"], "<=", 1.05)
            judge(f"{database}: a study ten times as large", flat["study_ten_times_as_large"], "<=", 1.05)
        if process := parts.get("process"):
            judge(f"{database}: MB of two workers", process["workers_pss_mb"], "<=", 170)
            judge(f"{database}: statistics loaded by a web worker", len(process["statistics_loaded"]), "<=", 0)
            judge(f"{database}: seconds to the first page", process["start_to_first_page_s"], "<=", 3)
    return lines


def main(arguments: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="1,8,32,64")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--only", default="load,flat,process")
    parser.add_argument("--waiting", type=int, default=0, help="clients that wait for a change of the study meanwhile")
    parser.add_argument(
        "--json", metavar="FILE", help="write everything there; - for standard output, and nothing else"
    )
    options = parser.parse_args(arguments)
    clients = [int(n) for n in options.clients.split(",")]
    parts = options.only.split(",")

    def say(words: str) -> None:
        print(words, file=sys.stderr if options.json == "-" else sys.stdout, flush=True)

    found: dict[str, dict] = {}
    say(HEADING)
    for database in options.databases.split(","):
        with folder("heval-bench-") as home, ExitStack() as stack:
            places = 100 + CLAIMS * CLAIM_ROUNDS * len(clients)
            pair, doors = made(stack, home, database, places, options.waiting)
            found[database] = mine = {}
            if "load" in parts:
                mine["load"] = measure_load(pair, doors, clients, options.seconds, options.rounds, say)
            if "flat" in parts:
                mine["flat"] = measure_flatness(pair, say)
            if "process" in parts:
                mine["process"] = measure_process(pair, say)
    for line in verdicts(found):
        say(line)
    if options.json:
        text = json.dumps(found, indent=1)
        if options.json == "-":
            print(text)
        else:
            Path(options.json).write_text(text + "\n")
    return found


if __name__ == "__main__":
    main()
