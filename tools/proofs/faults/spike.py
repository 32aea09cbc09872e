"""Many people come at the same moment, alone or while others stall: what they wait, and whether any of them is lost.

python -m tools.proofs.faults.spike [--people 500] [--within 10] [--stalled 0] [--database sqlite|postgres] [--json]

Each person opens the landing page, takes a place and opens the first page, on a new connection each time. ``--stalled``: so many
sockets send a request's head at one byte a second, straight to the server without the proxy that should stand before it.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode

from tools.proofs.bench.machine import Postgres, Site, folder

PATIENCE = 120  # seconds until a person gives up: browsers wait longer


@dataclass
class Seen:
    """Seconds that people waited for an answer, by what they asked; what they heard that they should not; who got inside."""

    waits: dict[str, list[float]] = field(default_factory=lambda: {"landing": [], "claim": [], "page": []})
    busy: int = 0
    strange: list[str] = field(default_factory=list)
    inside: set[str] = field(default_factory=set)


async def asked(port: int, method: str, path: str, data: dict | None = None, headers: str = "") -> tuple[int, str]:
    """(status, location) of one request on a connection of its own."""
    body = urlencode(data or {}).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}"
    if method == "POST":
        head += f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + b"\r\n" + (body if method == "POST" else b""))
        await writer.drain()
        answer = (await reader.read()).decode()
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    if not answer:
        raise ConnectionResetError("no answer")
    location = re.search(r"^location: *(\S+)", answer, re.IGNORECASE | re.MULTILINE)
    return int(answer.split(" ", 2)[1]), location[1] if location else ""


async def person(port: int, door: str, number: int, delay: float, seen: Seen) -> None:
    await asyncio.sleep(delay)
    address = f"{door}s{number}"

    async def waited(what: str, *request) -> tuple[int, str]:
        begun = time.monotonic()
        while True:
            status, location = await asked(port, *request)
            if status != 503 or time.monotonic() - begun > PATIENCE:
                seen.waits[what].append(time.monotonic() - begun)
                return status, location
            seen.busy += 1
            await asyncio.sleep(1)

    try:
        async with asyncio.timeout(PATIENCE):
            status, _ = await waited("landing", "GET", address)
            if status != 200:
                raise ValueError(f"landing {status}")
            status, location = await waited("claim", "POST", address, {"agree": "1", "start": "1"})
            if status != 302:
                raise ValueError(f"claim {status}")
            while status == 302:
                further = location
                status, location = await waited("page", "GET", further)
            if status != 200:
                raise ValueError(f"page {status}")
            seen.inside.add(further.split("/")[2])
    except (ValueError, OSError, TimeoutError) as error:
        seen.strange.append(f"{type(error).__name__}: {error}"[:80])


async def stalled(port: int) -> None:
    """A request's head at one byte a second, for ever."""
    with suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        for byte in f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Slow: {'x' * 10_000}".encode():
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)


async def all_of_them(port: int, door: str, people: int, within: float, n_stalled: int) -> Seen:
    seen = Seen()
    slow = [asyncio.create_task(stalled(port)) for _ in range(n_stalled)]
    await asyncio.sleep(2 if slow else 0)
    await asyncio.gather(*(person(port, door, n, within * n / people, seen) for n in range(people)))
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    return seen


def spike(database: str, people: int, within: float, n_stalled: int = 0) -> dict:
    """What a spike came to, in numbers."""
    with folder("heval-spike-") as home, ExitStack() as stack:
        url = ""
        if database == "postgres":
            postgres = Postgres(home / "postgres")
            stack.callback(postgres.stop)
            url = postgres.create("heval")
        site = Site(home / "site", "heval_site.wsgi:application", "heval_site.settings", url)
        stack.callback(site.stop)
        site.run("heval_site.management.cli", "prepare")
        door = site.run("tools.proofs.faults.study", str(people)).strip()
        site.start()
        seen = asyncio.run(all_of_them(site.port, door, people, within, n_stalled))
    waits = {
        f"{what}_{name}": round(sorted(times)[min(len(times) - 1, int(share * len(times)))], 3)
        for what, times in seen.waits.items()
        if times
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    return waits | {
        "people": people,
        "inside": len(seen.inside),
        "asked_to_wait": seen.busy,
        "strange": sorted(set(seen.strange)),
        "strange_count": len(seen.strange),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--within", type=float, default=10)
    parser.add_argument("--stalled", type=int, default=0)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = spike(options.database, options.people, options.within, options.stalled)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        for name, value in found.items():
            print(f"{name.replace('_', ' '):24} {value}")
    return 1 if found["strange_count"] or found["inside"] != found["people"] else 0


if __name__ == "__main__":
    sys.exit(main())
