"""The usual page is stored without being read before; whatever is unusual stores nothing and is left to ``record_page``."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotators import assign, at_once
from annotators.at_once import record_at_once
from annotators.models import Assignment, PageVisit, Response
from annotators.record import record_page, standing_of
from annotators.withdraw import withdraw
from studies import lifecycle
from studies.models import Study
from tests.builders import SCREENING, add_rating, add_survey, draft_study, launched, recruitment
from tests.players import claimed, form, plausible

pytestmark = pytest.mark.django_db
KEY, NEXT = "s1.p2", "s1.p3"


@pytest.fixture(autouse=True)
def nothing_remembered():
    at_once._times.clear()


def study_of(**columns) -> Study:
    study = draft_study(systems=("alpha", "beta"), prompts=8, instructions="", target_n=4, **columns)
    add_rating(study, position=1, m=4)
    return launched(study)


def asks_on(assignment: Assignment, key: str) -> dict:
    step = standing_of(assignment).steps[key]
    return step.protocol.asks(step.page)


def sent_on(assignment: Assignment, key: str, points="3") -> dict[str, str]:
    return {"active": "7", **dict.fromkeys(asks_on(assignment, key), points)}


def at_second_page(study: Study, person="w") -> tuple[Assignment, dict[str, str]]:
    """Somebody who has answered the first page and looks at the second, and what they send from there."""
    client, assignment = Client(), claimed(study, person, recruitment(study))
    client.get(f"/p/{assignment.code}/s1.p1/")
    client.post(f"/p/{assignment.code}/s1.p1/", sent_on(assignment, "s1.p1"))
    assert client.get(f"/p/{assignment.code}/{KEY}/").status_code == 200
    return assignment, sent_on(assignment, KEY)


def kept(assignment: Assignment) -> timedelta:
    return Assignment.objects.get(pk=assignment.pk).reserved_until - timezone.now()


def test_it_stores_what_a_look_at_everything_stores():
    study = study_of()
    both = []
    for person in "ab":
        assignment, sent = at_second_page(study, person)
        PageVisit.objects.filter(assignment=assignment, key=KEY).update(draft={"s1.q1.i2.A": ["2"]}, active_seconds=5)
        Assignment.objects.filter(pk=assignment.pk).update(reserved_until=timezone.now())
        if person == "a":
            assert record_at_once(assignment.code, KEY, form(**sent)) == (NEXT, "open_link")
        else:
            assert record_page(Assignment.objects.get(pk=assignment.pk), KEY, form(**sent)).following == NEXT
        visit = PageVisit.objects.get(assignment=assignment, key=KEY)
        assert visit.recorded_at >= visit.shown_at and (visit.draft, visit.active_seconds) == (None, 7)
        lease = timedelta(seconds=study.idle_lease_seconds)
        assert lease - timedelta(minutes=1) < kept(assignment) <= lease + timedelta(seconds=1)
        ((_, item, labelled),) = visit.shown["items"]
        answers = Response.objects.filter(assignment=assignment, item=item)
        assert {answer.label: answer.exposure_id for answer in answers} == dict(labelled)
        # What the two have in common: not the item, the outputs or the moment.
        own = {"id", "assignment", "item", "exposure", "received_at"}
        columns = [field.attname for field in Response._meta.concrete_fields if field.name not in own]
        both.append(list(answers.order_by("slot").values_list(*columns)))
    assert both[0] == both[1] and len(both[0]) == 2


def test_a_browser_goes_this_way_and_nothing_is_read_for_it():
    assignment, sent = at_second_page(study_of())
    with CaptureQueriesContext(connection) as asked:
        answer = Client().post(f"/p/{assignment.code}/{KEY}/", sent)
    assert (answer.status_code, answer["Location"]) == (302, f"/p/{assignment.code}/{NEXT}/")
    assert Response.objects.filter(assignment=assignment).count() == 4
    statements = [one["sql"] for one in asked if "SAVEPOINT" not in one["sql"]]
    assert not [sql for sql in statements if sql.startswith("SELECT")]
    assert len(statements) == (1 if connection.vendor == "postgresql" else 3)


def test_a_greater_count_of_seconds_stays():
    assignment, sent = at_second_page(study_of())
    PageVisit.objects.filter(assignment=assignment, key=KEY).update(active_seconds=90)
    assert record_at_once(assignment.code, KEY, form(**sent))
    assert PageVisit.objects.get(assignment=assignment, key=KEY).active_seconds == 90


def visits(assignment: Assignment, key: str):
    return PageVisit.objects.filter(assignment=assignment, key=key)


UNUSUAL = {
    "never seen": lambda a: visits(a, KEY).delete(),
    "seen otherwise": lambda a: visits(a, KEY).update(shown={"items": [], "questions": []}),
    "answered": lambda a: visits(a, KEY).update(recorded_at=F("shown_at")),
    "the page before not answered": lambda a: visits(a, "s1.p1").update(recorded_at=None),
    "the page before never seen": lambda a: visits(a, "s1.p1").delete(),
    "released": lambda a: assign.release(a.pk, "expired"),
    "withdrawn": lambda a: withdraw(a),
    "submitted": lambda a: Assignment.objects.filter(pk=a.pk).update(submitted_at=F("started_at") + timedelta(seconds=1)),
    "of another seed": lambda a: Assignment.objects.filter(pk=a.pk).update(seed=F("seed") + 1),
    "other times since": lambda a: lifecycle.amend(a.study, {"study": {None: {"idle_seconds": 77}}}, reason="Slower.", by=None),
    "nothing remembered": lambda a: at_once._times.clear(),
}  # fmt: skip


@pytest.mark.parametrize("unusual", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_stores_nothing(unusual):
    assignment, sent = at_second_page(study_of())
    unusual(assignment)
    before = list(Response.objects.values()), list(PageVisit.objects.order_by("pk").values())
    assert record_at_once(assignment.code, KEY, form(**sent)) is None
    assert (list(Response.objects.values()), list(PageVisit.objects.order_by("pk").values())) == before


@pytest.mark.parametrize(
    "changes", [{"s1.q1.i2.A": ""}, {"s1.q1.i2.A": "9"}, {"strange": "1"}, {"s1.q1.i2.A": ["1", "2"]}]
)
def test_what_was_not_sent_whole_stores_nothing(changes):
    assignment, sent = at_second_page(study_of())
    assert set(sent) == {"active", "s1.q1.i2.A", "s1.q1.i2.B"}
    assert record_at_once(assignment.code, KEY, form(**sent | changes)) is None
    assert Response.objects.filter(assignment=assignment).count() == 2


def test_the_first_page_and_the_last_are_looked_at_as_a_whole():
    study = study_of()
    client, assignment = Client(), claimed(study, "w", recruitment(study))
    for key, following in (("s1.p1", KEY), (KEY, NEXT), (NEXT, "s1.p4"), ("s1.p4", "done")):
        client.get(f"/p/{assignment.code}/{key}/")
        sent = sent_on(assignment, key)
        if key in ("s1.p1", "s1.p4"):
            assert record_at_once(assignment.code, key, form(**sent)) is None
        assert client.post(f"/p/{assignment.code}/{key}/", sent)["Location"] == f"/p/{assignment.code}/{following}/"
    assert Assignment.objects.get(pk=assignment.pk).submitted_at and Response.objects.count() == 8


def test_who_is_screened_out_is_looked_at_as_a_whole_and_who_is_not_goes_on():
    study = draft_study(systems=("alpha", "beta"), prompts=8, instructions="", target_n=4)
    for position in (1, 2):
        add_survey(study, position=position, purpose="screening", questions=[SCREENING])
    add_rating(study, position=3, m=4)
    client, assignment = Client(), claimed(launched(study), "w", recruitment(study))
    client.get(f"/p/{assignment.code}/s1/")
    client.post(f"/p/{assignment.code}/s1/", {"s1.q1": "yes"})
    client.get(f"/p/{assignment.code}/s2/")
    assert record_at_once(assignment.code, "s2", form(**{"s2.q1": "no"})) is None
    assert Response.objects.count() == 1
    assert record_at_once(assignment.code, "s2", form(**{"s2.q1": "yes"})) == ("s3.p1", "open_link")


def test_nobody_and_no_page_are_nothing_usual():
    assignment, sent = at_second_page(study_of())
    assert record_at_once("nobody", KEY, form(**sent)) is None
    assert record_at_once(assignment.code, "s9", form(**sent)) is None


def test_a_study_that_waits_longer_from_now_on_keeps_the_place_longer():
    study = study_of()
    assignment, sent = at_second_page(study)
    lifecycle.amend(study, {"study": {None: {"idle_seconds": 7_000}}}, reason="People are slower.", by=None)
    assert Client().post(f"/p/{assignment.code}/{KEY}/", sent).status_code == 302
    assert timedelta(seconds=6_900) < kept(assignment) <= timedelta(seconds=7_001)
    # What was read for it is remembered, and the next page is stored at once again.
    Client().get(f"/p/{assignment.code}/{NEXT}/")
    data = form(**plausible(assignment, NEXT))
    assert record_at_once(assignment.code, NEXT, data) == ("s1.p4", "open_link")
