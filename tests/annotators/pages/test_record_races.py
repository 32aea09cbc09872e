"""A page waits for the request that holds its place, and then sees what it did; a request that waits for the page sees what it stored.

On PostgreSQL: on SQLite one transaction writes after the other from beginning to end.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from time import monotonic

import pytest
from django.db import connection, connections, transaction
from django.test import Client
from django.utils import timezone

from annotators.models import Assignment, PageVisit, Response
from annotators.pages.record import record_page_answers, save_page_draft_and_extend_deadline
from annotators.participation.withdrawal import withdraw_annotator_and_erase_texts
from annotators.places import assign, places
from studies.models import Study
from studies.services import lifecycle
from tests.annotators.places.sending import came_of
from tests.builders import add_rating, draft_study, launched, recruitment
from tests.players import claimed, form
from tests.races import counts_are_true

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.only_on("postgresql")]
KEY, NEXT = "s1.p2", "s1.p3"


def sent(points="3") -> dict[str, str]:
    return {"active": "7", "s1.q1.i2.A": points, "s1.q1.i2.B": points}


@pytest.fixture
def assignment() -> Assignment:
    """Of somebody who has answered the first page and looks at the second."""
    study = draft_study(
        systems=("alpha", "beta"), prompts=8, instructions="", target_n=4, withdrawal_blanks_ratings=True
    )
    add_rating(study, position=1, m=4)
    study = launched(study)
    client, made = Client(), claimed(study, "w", recruitment(study))
    client.get(f"/p/{made.code}/s1.p1/")
    client.post(f"/p/{made.code}/s1.p1/", {"s1.q1.i1.A": "1", "s1.q1.i1.B": "2"})
    assert client.get(f"/p/{made.code}/{KEY}/").status_code == 200
    return made


def fresh(assignment: Assignment) -> Assignment:
    return Assignment.objects.select_related("study", "recruitment").get(pk=assignment.pk)


def until_it_waits(other: Future) -> bool:
    """Whether the other waits for a lock now; False where it has come to its end."""
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
    """Do the first, and the second while the first is not committed yet: whether the second waited, and what it returned."""

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


def answers_of(assignment: Assignment) -> list[int]:
    """What is stored of the page, where its person did not withdraw."""
    stored = Response.objects.filter(assignment=assignment, slot__contains=".i2.", erased_at=None)
    return [int(answer.value) for answer in stored.order_by("slot")]


def _taken_over(assignment):
    assign.release_assignment(assignment.pk, "expired")
    for n in range(assignment.study.target_n):
        claimed(assignment.study, f"newcomer {n}")


def _closed(assignment):
    for step in (lifecycle.start_closing, lifecycle.end_grace_period):
        step(Study.objects.get(pk=assignment.study_id), by=None)
    assert assign.release_expired_places()


# What happens to the place while a page arrives: what its sender gets, the answers that are stored, why the place was given back.
MEANWHILE = {
    "the same is sent": (lambda a: record_page_answers(fresh(a), KEY, form(**sent())), NEXT, [3, 3], ""),
    "something else is sent": (lambda a: record_page_answers(fresh(a), KEY, form(**sent("5"))), 409, [5, 5], ""),
    "a draft is saved": (
        lambda a: save_page_draft_and_extend_deadline(fresh(a), KEY, form(active="90", **{"s1.q1.i2.A": "1"})),
        NEXT,
        [3, 3],
        "",
    ),
    "the place is given up": (lambda a: assign.release_assignment(a.pk, "returned"), NEXT, [3, 3], ""),
    "the place is taken over": (_taken_over, NEXT, [3, 3], "expired"),
    "it fails checks": (lambda a: assign.release_assignment(a.pk, "failed_checks"), 409, [], "failed_checks"),
    "the study is closed": (_closed, NEXT, [3, 3], "expired"),
    "the person withdraws": (lambda a: withdraw_annotator_and_erase_texts(fresh(a)), 409, [], "withdrawn"),
    "the time is extended": (lambda a: places.extend_reservation(fresh(a)), NEXT, [3, 3], ""),
}


@pytest.mark.parametrize("meanwhile, came, answers, reason", MEANWHILE.values(), ids=MEANWHILE)
def test_a_page_that_waited_for_its_place_sees_what_happened(assignment, meanwhile, came, answers, reason):
    assert beside(partial(meanwhile, assignment), partial(came_of, assignment.code, KEY, sent())) == (True, came)
    assert answers_of(assignment) == answers and counts_are_true(assignment.study)
    visit = PageVisit.objects.get(assignment=assignment, key=KEY)
    assert (visit.recorded_at is not None) == bool(answers) and visit.draft is None
    assert visit.active_seconds == (90 if meanwhile is MEANWHILE["a draft is saved"][0] else 7 if answers else 0)
    now = fresh(assignment)
    assert (now.released_reason, now.withdrawn_at is not None) == (reason, reason == "withdrawn")


def store(assignment: Assignment) -> None:
    assert record_page_answers(fresh(assignment), KEY, form(**sent())).next_key == NEXT


def test_who_withdraws_while_a_page_is_being_stored_leaves_no_answer(assignment):
    assert beside(partial(store, assignment), lambda: withdraw_annotator_and_erase_texts(fresh(assignment))) == (
        True,
        1,
    )
    stored = Response.objects.filter(assignment=assignment)
    assert stored.count() == 4 and not stored.filter(erased_at=None).exists()


def test_a_place_whose_page_is_being_stored_is_not_given_away(assignment):
    Assignment.objects.filter(pk=assignment.pk).update(reserved_until=timezone.now() - timedelta(seconds=1))
    assert beside(partial(store, assignment), assign.release_expired_places) == (True, 0)
    assert fresh(assignment).released_at is None and answers_of(assignment) == [3, 3]


@pytest.mark.parametrize("points, came", [("3", NEXT), ("5", 409)])
def test_a_page_that_is_being_stored_is_not_stored_again(assignment, points, came):
    again = partial(came_of, assignment.code, KEY, sent(points))
    assert beside(partial(store, assignment), again) == (True, came)
    assert answers_of(assignment) == [3, 3]
