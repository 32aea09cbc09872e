"""A page that is stored without being read before waits for whoever holds its place, and then sees what they did; whoever waits for
it sees what it stored. On PostgreSQL: on SQLite one writes after the other from beginning to end."""

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from time import monotonic

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from annotators import assign
from annotators.at_once import record_at_once
from annotators.models import Assignment, Response
from annotators.record import record_page, save_draft
from annotators.views import pages
from annotators.withdraw import withdraw
from studies import lifecycle
from studies.models import Study
from tests.annotators.test_at_once import KEY, NEXT, at_second_page, sent_on, study_of, visits
from tests.annotators.test_both_ways import forget, stores_nothing
from tests.annotators.test_races import came_of
from tests.players import claimed, form
from tests.races import counts_are_true

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_on("postgresql")]


def until_it_waits(other: Future) -> bool:
    """Whether the other waits for a lock now; else it has come to its end."""
    patience = monotonic() + 30
    while monotonic() < patience:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return True
        if other.done():
            return False
    raise AssertionError("It neither waits nor ends.")


def beside(first, second) -> tuple[bool, object]:
    """Do the first, do the second while the first is not committed yet; whether it waited, and what came of it."""

    def run():
        try:
            return second()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first()
            other = pool.submit(run)
            has_waited = until_it_waits(other)
        return has_waited, other.result(30)


def fresh(assignment: Assignment) -> Assignment:
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def _taken_over(assignment):
    assign.release(assignment.pk, "expired")
    for n in range(assignment.study.target_n):
        claimed(assignment.study, f"newcomer {n}")


def _closed(assignment):
    for step in (lifecycle.close, lifecycle.finish):
        step(Study.objects.get(pk=assignment.study_id), None)
    assert assign.sweep()


MEANWHILE = {
    "the same is sent": lambda a: record_page(fresh(a), KEY, form(**sent_on(a, KEY))),
    "something else is sent": lambda a: record_page(fresh(a), KEY, form(**sent_on(a, KEY, "5"))),
    "a draft is saved": lambda a: save_draft(fresh(a), KEY, form(active="90", **{"s1.q1.i2.A": "1"})),
    "the place is given up": lambda a: assign.release(a.pk, "returned"),
    "the place is taken over": _taken_over,
    "it fails checks": lambda a: assign.release(a.pk, "failed_checks"),
    "the study is closed": _closed,
    "the person withdraws": lambda a: withdraw(fresh(a)),
    "the time is extended": lambda a: assign.extend(fresh(a)),
}  # fmt: skip


def came_to(assignment: Assignment) -> list:
    columns = ("released_reason", "is_late", "submitted_at", "batch__claimed", "study__state")
    return [
        Assignment.objects.values_list(*columns).get(pk=assignment.pk),
        fresh(assignment).withdrawn_at is not None,
        sorted(answers_of(assignment).values_list("slot", "value", "label")),
        [(visit.recorded_at is not None, visit.draft, visit.active_seconds) for visit in visits(assignment, KEY)],
    ]


def answers_of(assignment: Assignment):
    return Response.objects.filter(assignment=assignment, slot__contains=".i2.")


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE)
def test_a_page_that_waited_for_its_place_is_stored_as_by_the_long_way(meanwhile, monkeypatch):
    ends = []
    for way in (record_at_once, stores_nothing):
        forget()
        assignment, sent = at_second_page(study_of(withdrawal_blanks_ratings=True))
        monkeypatch.setattr(pages, "record_at_once", way)
        has_waited, came = beside(partial(meanwhile, assignment), partial(came_of, assignment.code, KEY, sent))
        assert has_waited and counts_are_true(assignment.study)
        ends.append((came, came_to(assignment)))
    assert ends[0] == ends[1]


@pytest.fixture
def storing():
    """Somebody at the second page, and what stores it the short way."""
    assignment, sent = at_second_page(study_of(withdrawal_blanks_ratings=True))

    def store():
        assert record_at_once(assignment.code, KEY, form(**sent)) == (NEXT, "open_link")

    return assignment, store


def test_who_withdraws_while_a_page_is_being_stored_leaves_no_answer(storing):
    assignment, store = storing
    assert beside(store, lambda: withdraw(fresh(assignment))) == (True, 1)
    assert answers_of(assignment).count() == 2 and not Response.objects.filter(erased_at=None).exists()


def test_a_place_whose_page_is_being_stored_is_not_given_away(storing):
    assignment, store = storing
    Assignment.objects.filter(pk=assignment.pk).update(reserved_until=timezone.now() - timedelta(seconds=1))
    assert beside(store, assign.sweep) == (True, 0)
    assert fresh(assignment).released_at is None and answers_of(assignment).count() == 2


@pytest.mark.parametrize("points, came", [("3", NEXT), ("5", 409)])
def test_a_page_that_is_being_stored_is_not_stored_again(storing, points, came):
    assignment, store = storing
    data = sent_on(assignment, KEY, points)
    assert beside(store, lambda: came_of(assignment.code, KEY, data)) == (True, came)
    assert [answer.value for answer in answers_of(assignment)] == [3, 3]
