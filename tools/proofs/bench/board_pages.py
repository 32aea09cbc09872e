"""What the public pages of a large board cost: the whole application in this process, without a web server.

    python -m tools.proofs.bench.board_pages [--systems 200] [--labels 100000] [--snapshots 12] [--requests 30]

Printed are milliseconds of a cold request, which renders the page, and the median of warm ones, with their CPU time, and the
size of the answer. On SQLite, in a folder that is gone afterwards.
"""

import argparse
import os
import time
from statistics import median

from .machine import OURS, folder

PATHS = (
    "",
    "?sort=-labels",
    "1/",
    "history/",
    "embed/",
    "1/scores.csv",
    "1/scores.json",
    "1/figure.svg",
    "badge/7.svg",
    "rss/",
)


def measure(requests: int) -> list[tuple[str, float, float, float, int]]:
    """Return path, cold, warm and CPU milliseconds, and bytes, of each address of the board."""
    from django.test import Client

    client = Client()
    client.get("/boards/")  # modules are imported and templates compiled
    found = []
    for path in PATHS:
        walls, cpus, size = [], [], 0
        for _ in range(requests + 1):
            wall, cpu = time.perf_counter(), time.process_time()
            response = client.get(f"/boards/large/{path}", secure=False)
            walls.append(1000 * (time.perf_counter() - wall))
            cpus.append(1000 * (time.process_time() - cpu))
            assert response.status_code == 200, path
            size = len(response.content)
        found.append((path, walls[0], median(walls[1:]), median(cpus[1:]), size))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("systems", 200), ("labels", 100_000), ("snapshots", 12), ("requests", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    with folder("heval-boards-") as home:
        for name in OURS:
            os.environ.pop(name, None)
        os.environ |= {"HEVAL_HOME": str(home), "DJANGO_SETTINGS_MODULE": "heval_site.settings"}
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        settings.ALLOWED_HOSTS = ["testserver"]
        call_command("migrate", verbosity=0)
        call_command("createcachetable", verbosity=0)
        from tests.boards.stored import large_board

        large_board(asked.systems, n_snapshots=asked.snapshots, labels=asked.labels)
        print(f"{'address':16} {'cold ms':>8} {'warm ms':>8} {'CPU ms':>8} {'KB':>6}")
        for path, cold, warm, cpu, size in measure(asked.requests):
            print(f"{path or '(newest)':16} {cold:8.1f} {warm:8.1f} {cpu:8.1f} {size / 1000:6.0f}")


if __name__ == "__main__":
    main()
