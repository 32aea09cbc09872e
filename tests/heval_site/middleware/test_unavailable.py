"""A database that is down or locked is 503 with the truth, never 500; an error of ours shows an id and nothing else."""

import logging
import re
import time
from urllib.parse import quote

import psycopg
import pytest
from django.db import DatabaseError, InternalError, OperationalError
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import include, path

from heval_site import middleware
from heval_site.runtime import logs
from tests.read_only import read_only_database


def locked(request, **kwargs):
    raise OperationalError("database is locked")


def locked_below(request, **kwargs):
    try:
        raise OperationalError("connection refused")
    except OperationalError as error:
        raise RuntimeError("could not read the study") from error


def broken(request, **kwargs):
    raise DatabaseError("relation does not exist; password=hunter2")


def refused_by_postgres(request, code, state):
    """What Django makes of an error of the driver."""
    error = psycopg.errors.lookup(state)
    kind = next(
        kind
        for kind in (OperationalError, InternalError, DatabaseError)
        if issubclass(error, getattr(psycopg, kind.__name__))
    )
    try:
        raise error("the server says why")
    except psycopg.Error as cause:
        raise kind(str(cause)) from cause


def refused_by_sqlite(request, code, message):
    raise OperationalError(message.replace("-", " "))


def well(request, **kwargs):
    return HttpResponse("well")


urlpatterns = [
    path("p/<str:code>/locked/", locked),
    path("p/<str:code>/below/", locked_below),
    path("p/<str:code>/broken/", broken),
    path("p/<str:code>/postgres/<str:state>/", refused_by_postgres),
    path("p/<str:code>/sqlite/<str:message>/", refused_by_sqlite),
    path("researchers/locked/", locked),
    path("api/v1/locked/", locked),
    path("well/", well),
    path("", include("heval_site.urls")),
]
handler500 = middleware.server_error
handler404 = middleware.not_found
pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__), pytest.mark.postgres]


@pytest.fixture
def client():
    return Client(raise_request_exception=False)


@pytest.mark.parametrize("name", ["locked", "below"])
def test_the_page_says_that_an_answer_was_not_saved_by_a_locked_database(client, name):
    response = client.post(f"/p/some-code/{name}/", {"s1.q1": "5"})
    assert response.status_code == 503
    assert int(response["Retry-After"]) <= 10 and response["Cache-Control"] == "no-store"
    assert "Your answer is not saved yet" in response.content.decode()
    assert not response.cookies and "script" not in response["Content-Security-Policy"]


STATES = sorted(state for state in psycopg.errors._sqlcodes if re.fullmatch("25006|(08|53|57|58)...", state))
SQLITE = (
    "attempt to write a readonly database",
    "database is locked",
    "database or disk is full",
    "disk I/O error",
    "unable to open database file",
)


@pytest.mark.parametrize(
    "address", [f"postgres/{state}" for state in STATES] + [f"sqlite/{quote(message, safe='')}" for message in SQLITE]
)
def test_a_database_that_takes_no_answer_keeps_the_text_on_the_page(client, address):
    response = client.post(f"/p/some-code/{address.replace('%2F', '-')}/", {"s1.q1": "What I wrote"})
    text = response.content.decode()
    assert response.status_code == 503 and "Your answer is not saved yet" in text and "What I wrote" in text


def test_there_are_states_of_each_class():
    assert len(STATES) >= 25 and {state[:2] for state in STATES} == {"08", "25", "53", "57", "58"}


@pytest.mark.django_db(transaction=True)
def test_a_read_only_database_loses_no_text(client):
    from tests.builders import panel, spa_study
    from tests.players import open_page, submitted

    study = spa_study(target_n=2)
    assignment = submitted(study, "w", until="s4")
    open_page(assignment)
    door = f"/e/{panel(study).key}/?who=new"
    with read_only_database():
        page = client.post(f"/p/{assignment.code}/s4/", {"s4.q1": "What I wrote"})
        entry = client.post(door, {"agree": "1", "start": "1"})
        api = client.post("/api/v1/studies/", {}, content_type="application/json")
    assert page.status_code == 503 and "What I wrote" in page.content.decode()
    assert entry.status_code == 503 and api.status_code in (401, 503)
    assert client.post(f"/p/{assignment.code}/s4/", {"s4.q1": "What I wrote"}).status_code == 302


def test_a_reader_is_asked_to_wait_and_reads_nothing_about_an_answer(client):
    text = client.get("/p/some-code/locked/").content.decode()
    assert "Everything that you have sent before is kept" in text and "not saved" not in text


def test_researchers_and_programs_hear_it_in_their_way(client):
    page = client.get("/researchers/locked/")
    assert page.status_code == 503 and page["Content-Type"].startswith("text/html")
    api = client.get("/api/v1/locked/")
    assert (api.status_code, api["Content-Type"]) == (503, "application/problem+json")
    script = client.post("/p/some-code/locked/", headers={"accept": "application/json"})
    assert script.json() == {"title": "Not right now", "status": 503, "is_answer": True}


def test_a_session_that_cannot_be_read_is_unavailable_too(client, monkeypatch):
    from django.contrib.sessions.backends.db import SessionStore

    monkeypatch.setattr(SessionStore, "load", locked)
    client.cookies["heval"] = "x" * 32
    assert client.get("/admin/").status_code == 503


def test_a_session_that_cannot_be_saved_is_unavailable_too(client, monkeypatch):
    """Raised in a middleware, outside any view."""
    from heval_site.middleware import Messages

    monkeypatch.setattr(Messages, "process_response", locked_in_middleware)
    assert client.get("/well/").status_code == 503


def locked_in_middleware(self, request, response):
    raise OperationalError("database is locked")


def test_an_error_of_ours_shows_an_id_that_the_log_knows_and_nothing_else(client, caplog):
    response = client.get("/p/some-code/broken/?token=abc")
    text = response.content.decode()
    assert response.status_code == 500
    assert "hunter2" not in text and "some-code" not in text
    record = next(record for record in caplog.records if record.name == "heval.site")
    error_id = record.args[0]
    assert len(error_id) == 8 and error_id in text
    for formatter in (logs.PlainFormatter(), logs.JsonFormatter()):
        line = formatter.format(record)
        assert "hunter2" in line, "the log has the traceback"
        assert "some-code" not in line and "token" not in line


@override_settings(ALLOWED_HOSTS=["testserver"])
def test_a_page_that_is_not_there_says_what_to_do(client):
    response = client.get("/nowhere/")
    assert response.status_code == 404 and "open the link you were given" in response.content.decode()


def record(message, *args):
    return logging.LogRecord("django.request", logging.WARNING, __file__, 1, message, args, None)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Not Found: /p/AbC-_123xyz/s1.q1/", "Not Found: /p/***"),
        ('"GET /e/0a1b2c/?PROLIFIC_PID=5f&x=1 HTTP/1.1" 200', '"GET /e/*** HTTP/1.1" 200'),
        ("http://127.0.0.1/p/AbC123/?x=1", "/p/***"),
        ("/api/v1/studies/?token=abc", "/api/***"),
        ("postgres://heval:hunter2@db/heval", "postgres://heval:***@db/heval"),
        ("What /why? Nothing", "What /why? Nothing"),
    ],
)
@pytest.mark.parametrize("formatter", [logs.PlainFormatter(), logs.JsonFormatter()])
def test_no_code_no_query_and_no_password_is_logged(formatter, said, kept):
    for line in (formatter.format(record("%s", said)), formatter.format(record(said.replace("%", "%%")))):
        assert kept.replace('"', '\\"') in line if isinstance(formatter, logs.JsonFormatter) else kept in line


@pytest.mark.parametrize("formatter", [logs.PlainFormatter(), logs.JsonFormatter()])
def test_an_address_forges_no_line_and_moves_no_terminal(formatter):
    line = formatter.format(record("Error at %s", "/studies/\n2026-01-01 INFO heval: all is well\r\x1b[2J\u2028\x9b"))
    assert len(line.splitlines()) == 1 and not set(line) & set("\x1b\r\x9b")
    assert "all is well" in line


@pytest.mark.parametrize("text", ["a", "/", "x://a:", "http://a", "/p", "?/"])
def test_a_long_message_is_redacted_at_once(text):
    begun = time.process_time()
    logs.redact_url_secrets(text * 50_000)
    assert time.process_time() - begun < 1
