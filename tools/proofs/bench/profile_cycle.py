"""Where the time of one cycle goes: the whole application in this process, without a web server, under cProfile.

    python -m tools.proofs.bench.profile_cycle [--cycles 80] [--sort tottime] [--only get|post] [--lines 45]

Medians of CPU milliseconds are measured first, without the profiler. On SQLite, in a folder that is gone afterwards.
"""

import argparse
import cProfile
import os
import pstats
import sys
import time
from io import BytesIO
from statistics import median

from .load import answers_in
from .machine import OURS, folder


def environ_of(method: str, path: str, body: bytes = b"") -> dict:
    path, _, query = path.partition("?")
    return {
        "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000",
        "HTTP_HOST": "127.0.0.1:8000", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http", "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr, "CONTENT_TYPE": "application/x-www-form-urlencoded", "CONTENT_LENGTH": str(len(body)),
        "REMOTE_ADDR": "127.0.0.1",
    }  # fmt: skip


class InProcess:
    """The application as a web server calls it."""

    def __init__(self, application):
        self.application = application

    def __call__(self, method: str, path: str, body: bytes = b"") -> tuple[int, str, bytes]:
        kept = {}

        def start(status, headers):
            kept["status"], kept["headers"] = int(status.split()[0]), dict(headers)

        response = self.application(environ_of(method, path, body), start)
        content = b"".join(response)
        response.close()
        return kept["status"], kept["headers"].get("Location", ""), content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=80)
    parser.add_argument("--sort", default="tottime")
    parser.add_argument("--only", choices=["get", "post"])
    parser.add_argument("--lines", type=int, default=45)
    options = parser.parse_args()
    with folder("heval-profile-") as home:
        for name in OURS:
            os.environ.pop(name, None)
        os.environ |= {"HEVAL_HOME": str(home), "DJANGO_SETTINGS_MODULE": "heval_site.settings"}
        from heval_site.wsgi import application

        from .study import build

        _prepare()
        _, door = build("profile", 8, 100)
        send = InProcess(application)
        _profiled(send, door, options)


def _prepare() -> None:
    from heval_site.runtime.startup import migrate_and_create_cache_and_media_folder

    migrate_and_create_cache_and_media_folder()


def _profiled(send: InProcess, door, options) -> None:
    profiles = {"get": cProfile.Profile(), "post": cProfile.Profile()}
    spent: dict[str, list[float]] = {"get": [], "post": []}
    for person in range(2):
        _, path, _ = send("POST", f"/e/{door.key}/?who={person}", b"agree=1&start=1")
        _, path, _ = send("GET", path)
        for n in range(options.cycles):
            if person == 0 and n >= 10:
                began = time.process_time()
                _, _, page = send("GET", path)
                middle = time.process_time()
                _, path, _ = send("POST", path, answers_in(page))
                spent["get"].append(middle - began)
                spent["post"].append(time.process_time() - middle)
            else:
                _, _, page = profiles["get"].runcall(send, "GET", path)
                status, path, _ = profiles["post"].runcall(send, "POST", path, answers_in(page))
                assert status == 302, status
    print({kind: f"{median(seconds) * 1000:.2f} ms CPU" for kind, seconds in spent.items()}, f"{len(page)} bytes")
    for kind, profile in profiles.items():
        if options.only in (None, kind):
            print(f"--- {kind}, {options.cycles + 10} times")
            pstats.Stats(profile).sort_stats(options.sort).print_stats(options.lines)


if __name__ == "__main__":
    main()
