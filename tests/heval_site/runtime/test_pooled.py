"""A connection of the pool is asked whether it lives where its socket cannot tell, and its moments are Django's."""

from datetime import UTC, datetime

import psycopg
import pytest
from django.db import connection
from psycopg_pool import ConnectionPool
from psycopg_pool.base import AttemptWithBackoff

from heval_site.runtime import connection_pool
from heval_site.runtime.connection_pool import PooledConnection

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_on("postgresql"), pytest.mark.postgres]


@pytest.fixture
def pool():
    """As Django makes it of the settings."""
    parameters = connection.get_connection_params() | {"autocommit": True}
    with ConnectionPool(
        kwargs=parameters,
        connection_class=PooledConnection,
        check=ConnectionPool.check_connection,
        min_size=1,
        max_size=1,
        timeout=5,
    ) as made:
        made.wait()
        yield made


@pytest.fixture
def asked(monkeypatch):
    """How often a server was asked whether it is there."""
    statements = []
    execute = psycopg.Connection.execute

    def counted(self, query, *more, **named):
        if query == "":
            statements.append(query)
        return execute(self, query, *more, **named)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    return statements


def handed_out(pool) -> int:
    """The server's process behind the connection that the pool gives."""
    with pool.connection() as given:
        return given.execute("SELECT pg_backend_pid()").fetchone()[0]


def end(process: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [process])
        assert cursor.fetchone()[0]


def test_a_connection_in_use_is_not_asked_again_and_one_that_rested_is(pool, asked, monkeypatch):
    for _ in range(3):
        handed_out(pool)
    assert len(asked) == 1
    monkeypatch.setattr(connection_pool, "CHECK_INTERVAL_SECONDS", 0)
    handed_out(pool)
    assert len(asked) == 2


def test_a_connection_that_the_server_ended_is_replaced_before_anybody_has_it(pool, asked):
    first = handed_out(pool)
    assert handed_out(pool) == first
    end(first)
    assert handed_out(pool) != first
    # By asking the one that was lost; the one that came for it is asked as every new one.
    assert len(asked) == 3


def test_the_pool_tries_again_at_short_intervals_however_long_the_server_was_away():
    """A growing pause would outlast the outage."""
    attempt, now = AttemptWithBackoff(timeout=300), 1000.0
    for _ in range(200):
        attempt.update_delay(now)
        assert 0 < attempt.delay < 1
        now += attempt.delay


@pytest.mark.parametrize(
    "moment",
    [
        "2026-11-22 18:22:28.541232+00",
        "2026-01-01 00:00:00+00",
        "2026-01-01 00:00:00.2+00",
        "1969-12-31 23:59:59.999999+00",
        "0099-01-01 00:00:00+00",
    ],
)
def test_moments_are_those_of_django(pool, moment):
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz, NULL::timestamptz", [moment])
        expected = cursor.fetchone()
    with pool.connection() as given:
        found = given.execute("SELECT %s::timestamptz, NULL::timestamptz", [moment]).fetchone()
    assert found == expected == (datetime.fromisoformat(moment), None)
    assert found[0].tzinfo is expected[0].tzinfo is UTC


def test_a_moment_that_python_does_not_know_is_an_error_of_its_data(pool):
    for moment in ("infinity", "0044-03-15 12:00:00+00 BC", "12026-01-01 00:00:00+00"):
        with pool.connection() as given, pytest.raises(psycopg.DataError, match="Python cannot read this timestamp: "):
            given.execute("SELECT %s::timestamptz", [moment]).fetchone()


def test_django_leaves_the_reader_of_moments_as_it_is():
    """It puts its own in where a reader names another time zone."""
    assert connection_pool.TimestampLoader.timezone is connection.timezone
