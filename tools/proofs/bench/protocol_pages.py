"""What the pages of each protocol cost: the whole application in this process, without a web server, beside the bare view.

    python -m tools.proofs.bench.protocol_pages [--people 12] [--only SLUG]

A launched study a protocol; in each round one person of every study, and one of the bare view, goes through all pages. Printed are
medians over people of the mean page's CPU milliseconds, a person's first page included, where the way is laid. On SQLite, in a
folder that is gone afterwards.
"""

import argparse
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from statistics import fmean, median
from urllib.parse import urlencode

from .machine import OURS, folder
from .profile_cycle import InProcess

PROMPTS = 8
# Rounds that are not measured: templates are compiled and modules imported in them.
WARM = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """One page: CPU seconds of its GET and its POST, and the page."""

    get: float
    post: float
    page: bytes


# What a page shows of the stimuli: texts of outputs and prompts, which no page can make shorter.
STIMULI = re.compile(rb'<div class="words[^>]*>(.*?)</div>', re.DOTALL)


def bytes_beside_stimuli(page: bytes) -> int:
    return len(page) - sum(map(len, STIMULI.findall(page)))


Watch = Callable[[], AbstractContextManager]


def walk(
    send: InProcess, path: str, answers: Callable[[str], dict | None], watch: Watch = nullcontext
) -> Iterator[Seen]:
    """One person's pages to the end."""
    while True:
        with watch():
            began = time.process_time()
            status, _, page = send("GET", path)
            get = time.process_time() - began
        assert status == 200, (status, path)
        if (sent := answers(path)) is None:
            return
        body = urlencode(sent).encode()
        with watch():
            began = time.process_time()
            status, path, answer = send("POST", path, body)
            post = time.process_time() - began
        assert status == 302, answer.decode()
        yield Seen(get, post, page)
        if path.endswith("/done/"):
            return


def ours(send: InProcess, door: str, person: int, watch: Watch = nullcontext) -> list[Seen]:
    from tests.players import sent_from

    _, path, _ = send("POST", f"{door}?who=w{person}", b"agree=1&start=1")
    _, path, _ = send("GET", path)
    return list(walk(send, path, sent_from, watch))


def bare(send: InProcess, person: int) -> list[Seen]:
    _, path, _ = send("GET", f"/e/bare/?who=w{person}")
    walked = walk(send, path, lambda _: {"left": "1", "right": "1"})
    return [seen for seen, _ in zip(walked, range(PROMPTS), strict=False)]


def applications() -> tuple[InProcess, InProcess]:
    """Ours, and the bare view as Django alone calls it: without middleware, its addresses those of its own module."""
    from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
    from django.test.utils import override_settings

    from heval_site.wsgi import application

    class Request(WSGIRequest):
        urlconf = "tools.proofs.bench.bare.urls"

    class Bare(WSGIHandler):
        request_class = Request

    with override_settings(MIDDLEWARE=[]):
        return InProcess(application), InProcess(Bare())


def queries_of(send: InProcess, door: str, person: int) -> tuple[int, int]:
    """The most that a GET and that a POST asks, a transaction's begin and end among them."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    asked: list[int] = []

    class Counted(CaptureQueriesContext):
        def __init__(self):
            super().__init__(connection)

        def __exit__(self, *failure):
            super().__exit__(*failure)
            asked.append(len(self))

    ours(send, door, person, Counted)
    return max(asked[::2]), max(asked[1::2])


def measured(only: str, people: int) -> None:
    from heval_site.runtime.startup import migrate_and_create_cache_and_media_folder
    from studies.protocols import REGISTRY
    from tests.builders import launched, panel
    from tests.samples import sample_draft

    from .bare.fill import fill

    migrate_and_create_cache_and_media_folder()
    send, send_bare = applications()
    fill()
    doors = {}
    for slug in sorted(REGISTRY):
        if only in slug:
            doors[slug] = f"/e/{panel(launched(sample_draft(slug, PROMPTS, people + WARM + 1))).key}/"
    spent: dict[str, list[list[Seen]]] = defaultdict(list)
    for person in range(people + WARM):
        for slug, door in doors.items():
            spent[slug].append(ours(send, door, person))
        spent["bare"].append(bare(send_bare, person))

    def milliseconds(slug: str, what: str) -> float:
        return 1000 * median(fmean(getattr(seen, what) for seen in walked) for walked in spent[slug][WARM:])

    least = {what: milliseconds("bare", what) for what in ("get", "post")}
    print("| protocol | pages | GET, ms | of the bare view's | POST, ms | of the bare view's | queries | bytes |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for slug, door in doors.items():
        get, post = (milliseconds(slug, what) for what in ("get", "post"))
        asked = queries_of(send, door, people + WARM)
        most = max(bytes_beside_stimuli(seen.page) for seen in spent[slug][-1])
        print(
            f"| {slug} | {len(spent[slug][-1])} | {get:.2f} | {get / least['get']:.1f} | {post:.2f} | {post / least['post']:.1f} "
            f"| {asked[0]}, {asked[1]} | {most:,} |"
        )
    print(f"| the bare view | {PROMPTS} | {least['get']:.2f} | 1 | {least['post']:.2f} | 1 | 1, 1 | |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=12)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with folder("heval-pages-") as home:
        for name in OURS:
            os.environ.pop(name, None)
        os.environ |= {"HEVAL_HOME": str(home), "DJANGO_SETTINGS_MODULE": "tools.proofs.bench.bare.beside"}
        import django

        django.setup(set_prefix=False)
        measured(options.only, options.people)


if __name__ == "__main__":
    main()
