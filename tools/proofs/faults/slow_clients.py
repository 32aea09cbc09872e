"""What an annotator waits while slow and idle clients hold connections and others guess passwords, straight to the server without a proxy.

python -m tools.proofs.faults.slow_clients [--idle 1000] [--dripping 200] [--clients 16] [--requests 200] [--database sqlite|postgres] [--json]

Prints the seconds (median, 95 %, most) of an annotator's landing page: alone, beside connections that send nothing, beside heads and
beside forms that arrive at one byte a second, and beside clients that log in without a pause and with a new name each time: all from
one address, and each from its own.
"""

import argparse
import asyncio
import json
import resource
import sys
import time
from collections import Counter
from contextlib import ExitStack, suppress
from itertools import count

from tools.proofs.bench.machine import Postgres, Site, folder
from tools.proofs.faults.spike import asked

PATIENCE = 60


async def hold(port: int, kind: str) -> None:
    """A connection that is held as long as the server lets it be, and then opened again."""
    head = f"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    if kind == "forms":
        head += "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9000\r\n\r\n"
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                if kind == "idle":
                    await reader.read()
                    continue
                if kind == "forms":
                    writer.write(head.encode())
                for byte in (head + "X-Slow: " if kind == "heads" else "").encode() + b"x" * 9000:
                    writer.write(bytes([byte]))
                    await writer.drain()
                    await asyncio.sleep(1)
            finally:
                writer.close()
        await asyncio.sleep(1)


async def log_in(port: int, number: int, kind: str, statuses: Counter[int]) -> None:
    """One log-in after the other, each with a new name."""
    address = "203.0.113.1" if kind == "log-ins of one" else f"198.51.{number // 256}.{number % 256}"
    headers = f"Cookie: csrftoken={'a' * 32}\r\nX-Forwarded-For: {address}\r\n"
    for n in count():
        form = {"username": f"name-{number}-{n}", "password": "guessed", "csrfmiddlewaretoken": "a" * 32}
        with suppress(OSError):
            status, _ = await asked(port, "POST", "/admin/login/", form, headers)
            statuses[status] += 1


async def waits(port: int, path: str, requests: int) -> list[float]:
    seconds = []
    for _ in range(requests):
        begun = time.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                status, _ = await asked(port, "GET", path)
                assert status == 200, status
        except (TimeoutError, OSError):
            pass
        seconds.append(time.monotonic() - begun)
        if sum(seconds) > 3 * PATIENCE:
            break
    return sorted(seconds)


def summary(seconds: list[float]) -> dict[str, float]:
    return {"median": seconds[len(seconds) // 2], "p95": seconds[int(0.95 * len(seconds))], "most": seconds[-1]}


def show(name: str, seconds: list[float], statuses: Counter[int] | None = None) -> None:
    """Print at once, to the standard error, because a measurement takes minutes."""
    line = "  ".join(f"{what} {value:.3f} s" for what, value in summary(seconds).items())
    answers = ", ".join(f"{count} x {status}" for status, count in sorted((statuses or {}).items()))
    print(f"{name:20} {line}{f'  ({answers})' if answers else ''}", file=sys.stderr, flush=True)


async def measured(port: int, path: str, requests: int, counts: dict[str, int]) -> dict[str, list[float]]:
    await waits(port, path, 20)
    found = {"alone": await waits(port, path, requests)}
    show("alone", found["alone"])
    for kind, n_clients in counts.items():
        statuses: Counter[int] = Counter()
        held = [
            asyncio.create_task(
                log_in(port, number, kind, statuses) if kind.startswith("log-ins") else hold(port, kind)
            )
            for number in range(n_clients)
        ]
        await asyncio.sleep(4)
        found[f"{n_clients} {kind}"] = await waits(port, path, requests)
        show(f"{n_clients} {kind}", found[f"{n_clients} {kind}"], statuses)
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        await asyncio.sleep(2)
    return found


def slow_clients(database: str, idle: int, dripping: int, clients: int, requests: int) -> dict[str, dict[str, float]]:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with folder("heval-slow-") as home, ExitStack() as stack:
        url = ""
        if database == "postgres":
            postgres = Postgres(home / "postgres")
            stack.callback(postgres.stop)
            url = postgres.create("heval")
        site = Site(home / "site", "heval_site.wsgi:application", "heval_site.settings", url)
        stack.callback(site.stop)
        site.run("heval_site.management.cli", "prepare")
        door = site.run("tools.proofs.faults.study", "60").strip()
        site.start(TRUSTED_PROXY_COUNT="1")
        counts = {
            "idle": idle,
            "heads": dripping,
            "forms": dripping,
            "log-ins of one": clients,
            "log-ins of many": clients,
        }
        found = asyncio.run(measured(site.port, f"{door}s1", requests, counts))
    return {name: summary(seconds) for name, seconds in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--dripping", type=int, default=200)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = slow_clients(options.database, options.idle, options.dripping, options.clients, options.requests)
    if options.json:
        print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
