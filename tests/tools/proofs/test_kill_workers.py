"""A worker that is killed loses nothing that was acknowledged and doubles nothing; and the comparison can fail."""

import pytest

from tests.conftest import skip_or_fail
from tools.proofs.bench.machine import postgres_programs
from tools.proofs.faults.kill_workers import faults_in, killed_under_load


@pytest.mark.slow
def test_workers_killed_while_people_answer_lose_and_double_nothing():
    found = killed_under_load("sqlite", seconds=3, every=0.5, clients=5)
    assert not faults_in(found), found
    assert found["kills"] >= 3 and found["acknowledged_answers"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_many_kills_lose_and_double_nothing(database):
    if database == "postgres" and postgres_programs() is None:
        skip_or_fail("no PostgreSQL server is installed")
    found = killed_under_load(database, seconds=45, every=1.5, clients=16)
    assert not faults_in(found), found
    assert found["kills"] >= 20 and found["broken_connections"] > 0


@pytest.mark.slow
def test_a_database_that_is_killed_under_load_loses_nothing_that_was_acknowledged():
    if postgres_programs() is None:
        skip_or_fail("no PostgreSQL server is installed")
    found = killed_under_load("postgres", seconds=30, every=4, clients=8, victim="database")
    assert not faults_in(found), found  # and nobody read of an error of ours: at most, they were asked to wait
    assert found["kills"] >= 3 and found["acknowledged_answers"] > 100


@pytest.mark.slow
@pytest.mark.parametrize(("sabotage", "seen"), [("lost", "lost_pages"), ("doubled", "doubled_answers")])
def test_the_comparison_sees_what_is_lost_or_doubled(sabotage, seen):
    assert killed_under_load("sqlite", seconds=20, every=0.8, clients=8, sabotage=sabotage)[seen] > 0


@pytest.mark.slow
def test_the_comparison_sees_what_a_database_that_is_killed_had_not_stored():
    if postgres_programs() is None:
        skip_or_fail("no PostgreSQL server is installed")
    found = killed_under_load("postgres", seconds=20, every=4, clients=8, victim="database", sabotage="hasty")
    assert found["lost_pages"] > 0
