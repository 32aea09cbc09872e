"""Threads get only requests that have arrived: slow and idle clients hold none, whatever they send and where they stop."""

import shutil
import socket
import time
import urllib.request

import pytest

from heval_site.runtime.buffering_worker import MAX_FORM_BYTES, MAX_HEAD_BYTES, is_complete
from tools.proofs.bench.machine import Site

HEAD = b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    ("received", "complete"),
    [
        (b"", False),
        (b"GET / HTTP/1.1\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", True),
        (HEAD + b"Content-Length: 5\r\n\r\n1234", False),
        (HEAD + b"Content-Length: 5\r\n\r\n12345", True),
        (HEAD + b"content-length:5\r\n\r\n1234", False),
        (HEAD + b"X-Content-Length: 5\r\n\r\n", True),
        (HEAD + b"Content-Length: 0\r\n\r\n", True),
        (HEAD + b"Content-Length: five\r\n\r\n", True),
        (HEAD + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n", True),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", True),
        (HEAD + b"Content-Length: %d\r\n\r\n" % (MAX_FORM_BYTES + 1), True),
        (HEAD + b"Content-Length: %d\r\n\r\n" % MAX_FORM_BYTES, False),
        (b"x" * MAX_HEAD_BYTES, False),
        (b"x" * (MAX_HEAD_BYTES + 1), True),
    ],
)
def test_what_a_thread_can_answer_without_waiting(received, complete):
    assert is_complete(bytearray(received)) == complete


@pytest.fixture(scope="module")
def site(tmp_path_factory, migrated_sqlite):
    home = tmp_path_factory.mktemp("buffering")
    made = Site(home, "heval_site.wsgi:application", "heval_site.settings")
    shutil.copyfile(migrated_sqlite, home / "heval.sqlite3")
    made.start(WEB_WORKERS="1", WEB_THREADS="2")
    yield made
    made.stop()


def opened(site, data: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", site.port), timeout=10)
    client.sendall(data)
    return client


STOPS = {
    "nothing": b"",
    "a line": b"GET /healthz HTTP/1.1\r\n",
    "a head without its end": HEAD + b"Content-Length: 5\r\n",
    "a form without its end": HEAD + b"Content-Length: 5\r\n\r\n1234",
    "nothing after an answer": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "half a request after an answer": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /heal",
}


@pytest.mark.parametrize("name", STOPS)
def test_clients_that_stop_hold_no_thread(site, name):
    held = [opened(site, STOPS[name]) for _ in range(40)]
    time.sleep(0.3)
    begun = time.monotonic()
    with urllib.request.urlopen(f"{site.address}/healthz", timeout=10) as response:
        assert response.read() == b"ok\n"
    assert time.monotonic() - begun < 3
    for client in held:
        client.close()


def answer_to(site, *parts: bytes) -> bytes:
    client = opened(site, parts[0])
    for part in parts[1:]:
        time.sleep(0.2)
        client.sendall(part)
    client.shutdown(socket.SHUT_WR)
    data = b""
    while chunk := client.recv(65536):
        data += chunk
    return data


def test_a_request_in_parts_and_two_in_one_part_are_answered(site):
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = request.replace(b"Host", b"Connection: close\r\nHost")
    assert answer_to(site, last[:10], last[10:30], last[30:]).count(b"200 OK") == 1
    assert answer_to(site, request + last).count(b"200 OK") == 2
    assert answer_to(site, request, last).count(b"200 OK") == 2
    assert answer_to(site, request + last[:20], last[20:]).count(b"200 OK") == 2


def test_a_large_body_is_read_by_the_view(site):
    body = b"a=" + b"x" * (2 * MAX_FORM_BYTES)
    head = b"POST /p/nothing/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert answer_to(site, head, body[:1000], body[1000:]).startswith(b"HTTP/1.1 405")
