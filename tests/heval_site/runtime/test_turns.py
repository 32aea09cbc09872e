"""Annotators' pages wait for their turn in a process on SQLite; nothing else does, and nobody for ever."""

import threading
from io import BytesIO

import pytest
from django.db import connection

from heval_site.runtime.requests import MAX_FORM_BYTES, RequestLockMiddleware
from heval_site.wsgi import Application, application

PAGE, RESEARCHERS = "/p/code/s1/", "/admin/"


class Inside:
    """An application that holds each request until it is let go, and notes who was in it together."""

    def __init__(self):
        self.entered, self.go = threading.Semaphore(0), threading.Event()
        self.now = self.most = 0
        self.bodies: list[bytes] = []
        self.lock = threading.Lock()

    def __call__(self, environ, start_response):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.bodies.append(environ["wsgi.input"].read(100))
        self.entered.release()
        self.go.wait(10)
        with self.lock:
            self.now -= 1
        return [b"done"]

    def has_let_in(self, seconds: float = 5) -> bool:
        return self.entered.acquire(timeout=seconds)


def environ(path: str, body=b"", **more) -> dict:
    stream = body if hasattr(body, "read") else BytesIO(body)
    length = "" if hasattr(body, "read") else str(len(body))
    return {"PATH_INFO": path, "wsgi.input": stream, "CONTENT_LENGTH": length} | more


@pytest.fixture
def sent():
    """Send a request in a thread of its own; all have ended when the test has."""
    threads: list[threading.Thread] = []
    inside = Inside()

    def send(turns: RequestLockMiddleware, asked: dict) -> threading.Thread:
        threads.append(threading.Thread(target=turns, args=(asked, None)))
        threads[-1].start()
        return threads[-1]

    yield inside, send
    inside.go.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_pages_of_annotators_wait_for_one_another(sent):
    inside, send = sent
    turns = RequestLockMiddleware(inside, timeout=10)
    waiting = [send(turns, environ(path)) for path in (PAGE, PAGE, "/e/door/")]
    assert inside.has_let_in() and not inside.has_let_in(0.2)
    inside.go.set()
    for thread in waiting:
        thread.join(10)
    assert inside.most == 1 and len(inside.bodies) == 3


def test_researchers_wait_for_nobody(sent):
    inside, send = sent
    turns = RequestLockMiddleware(inside, timeout=10)
    for path in (PAGE, RESEARCHERS, RESEARCHERS):
        send(turns, environ(path))
        assert inside.has_let_in()


def test_who_waited_long_enough_goes_on_without_a_turn_and_takes_none_away(sent):
    inside, send = sent
    turns = RequestLockMiddleware(inside, timeout=0.05)
    send(turns, environ(PAGE))
    assert inside.has_let_in()
    late = send(turns, environ(PAGE))
    assert inside.has_let_in()
    inside.go.set()
    late.join(10)
    assert inside.most == 2
    assert turns.lock.acquire(timeout=5)


def test_a_form_that_comes_slowly_holds_up_nobody(sent):
    inside, send = sent
    turns = RequestLockMiddleware(inside, timeout=10)
    begun, rest = threading.Event(), threading.Event()

    class Slow:
        def read(self, size):
            begun.set()
            rest.wait(10)
            return b"late"

    send(turns, environ(PAGE, Slow(), CONTENT_LENGTH="4"))
    assert begun.wait(5)
    quick = send(turns, environ(PAGE, b"quick"))
    assert inside.has_let_in()
    inside.go.set()
    quick.join(10)
    rest.set()
    assert inside.has_let_in() and inside.bodies == [b"quick", b"late"]


@pytest.mark.parametrize(
    "more",
    [{"CONTENT_LENGTH": str(MAX_FORM_BYTES + 1)}, {"CONTENT_LENGTH": "many"}, {"HTTP_TRANSFER_ENCODING": "chunked"}],
)
def test_what_is_large_or_of_unknown_size_is_not_read_here(sent, more):
    inside, send = sent
    turns = RequestLockMiddleware(inside, timeout=10)
    send(turns, environ(PAGE))
    assert inside.has_let_in()
    send(turns, environ(PAGE, b"as it comes", **more))
    assert inside.has_let_in() and inside.bodies[1] == b"as it comes"


def test_an_error_gives_the_turn_back():
    def fails(environ, start_response):
        raise KeyError

    turns = RequestLockMiddleware(fails, timeout=0.1)
    for _ in range(2):
        with pytest.raises(KeyError):
            turns(environ(PAGE), None)
    assert turns.lock.acquire(timeout=1)


def test_turns_are_taken_where_sqlite_holds_the_answers():
    assert type(application) is (RequestLockMiddleware if connection.vendor == "sqlite" else Application)
