"""Whether the memory of `heval up` grows with the pages that it shows.

    python -m tools.proofs.bench.memory [--people 300] [--pages 20] [--rounds 4] [--bounds]

In each round so many new people answer all pages of a study, on SQLite. It prints the memory of the site's processes after each round.
During the first round the processes meet each page, fill their caches and open their connections. With ``--bounds`` it fails if the last
round ends with more than ``MOST_GROWTH`` megabytes above the end of the first.
"""

import argparse
import json
import sys

from .annotator_cycle import People, loaded
from .machine import Site, folder, pss_megabytes, tree

MOST_GROWTH = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--bounds", action="store_true")
    chosen = parser.parse_args()
    with folder("heval-memory-") as home:
        site = Site(home / "site", "heval_site.wsgi:application", "heval_site.settings")
        site.with_jobs = True
        site.run("heval_site.management.cli", "prepare")
        places = str(chosen.people * chosen.rounds)
        people = People(json.loads(site.run("tools.proofs.bench.study", "load", places, str(chosen.pages)))["door"])
        site.start()
        try:
            ends = [after_round(site, people, chosen.people) for _ in range(chosen.rounds)]
        finally:
            site.stop()
    if chosen.bounds and ends[-1] - ends[0] > MOST_GROWTH:
        sys.exit(f"Grown by {ends[-1] - ends[0]:.0f} MB, bound {MOST_GROWTH:g} MB")


def after_round(site: Site, people: People, n: int) -> float:
    """Let new people answer all their pages, and return the megabytes of all processes."""
    paths = loaded(site, kind="claim", paths=people.come(n), clients=8, most=n)["left"]
    seen = loaded(site, kind="cycle", paths=paths, clients=8)
    if seen["errors"] or seen["left"]:
        raise AssertionError(f"{len(seen['left'])} people have not ended, errors: {seen['error_words']}")
    workers, everything = (sum(map(pss_megabytes, pids)) for pids in (site.workers, tree(site.pid)))
    print(
        f"{people.count:6} people, {seen['done']:6} pages more: {everything:.0f} MB, of which web workers {workers:.0f} MB",
        flush=True,
    )
    return everything


if __name__ == "__main__":
    main()
