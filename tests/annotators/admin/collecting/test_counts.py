"""Watching a study collect: counts, times, the inbox."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotators.models import Assignment, Inquiry, PageVisit
from annotators.pages.sequence import describe_page_key
from annotators.places import assign, monitor
from annotators.places.exclusions import exclude_assignments
from annotators.places.places import new_limited_address
from studies.models import Batch, Study
from studies.services import lifecycle
from tests import builders, players
from tests.annotators.admin.collecting.watched import collecting, detail

pytestmark = pytest.mark.django_db


def test_places_are_counted_by_where_they_stand(study):
    players.submitted(study, "1")
    assign.mark_started_and_extend_deadline(players.submitted(study, "2", until="s2.ask"))
    looking = players.claimed(study, "3")
    gone = players.claimed(study, "4")
    assign.release_assignment(gone.pk, "returned")
    total, arms = monitor.count_places_by_arm(study)
    assert (total.wanted, total.submitted, total.started, total.reserved, total.free) == (4, 1, 1, 1, 1)
    # As everywhere: started is who was shown the first page.
    assign.mark_started_and_extend_deadline(looking)
    assert (monitor.count_places_by_arm(study)[0].started, monitor.count_places_by_arm(study)[0].reserved) == (2, 0)
    assert total.released == (("returned", 1),)
    assert [(arm.name, arm.submitted, arm.free) for arm in arms] == [("all", 1, 1)]


def test_minutes_and_pay_are_medians_of_those_who_submitted(client, study):
    for n, minutes in enumerate((5, 10, 60)):
        done = players.submitted(study, str(n))
        Assignment.objects.filter(pk=done.pk).update(started_at=done.submitted_at - timedelta(minutes=minutes))
        visit = PageVisit.objects.filter(assignment=done).first()
        PageVisit.objects.filter(pk=visit.pk).update(active_seconds=60 * minutes)
    pace = monitor.median_working_times(study)
    assert (pace.n, pace.minutes, pace.active_minutes) == (3, 10, 10)
    page = " ".join(collecting(client, study).content.decode().split())
    assert "<dt>Pay per hour, median</dt><dd>15.00 USD, by working time, including bonuses</dd>" in page


def test_tries_and_robots_are_not_counted(study):
    players.submitted(study, "1", origin="robot")
    assert monitor.count_places_by_arm(study)[0].submitted == 0 and monitor.median_working_times(study).n == 0
    assert monitor.progress_by_study([study.pk]) == {study.pk: monitor.StudyProgress(0, None, 1)}


def test_a_place_that_a_robot_holds_is_not_free_for_anybody(client, study):
    players.submitted(study, "1", origin="robot")
    players.claimed(study, "2", origin="robot")
    players.submitted(study, "3")
    total, (arm,) = monitor.count_places_by_arm(study)
    for row in (total, arm):
        assert (row.wanted, row.free, row.submitted, row.held_by_robots) == (4, 1, 1, 2)
    page = collecting(client, study).content.decode()
    assert "1 robot answered too; they are not counted here, but they hold 2 of the places." in page
    players.submitted(study, "4")
    # What the page calls free is what the door gives.
    assert monitor.count_places_by_arm(study)[0].free == 0
    assert assign.claim_batch(study, assign.get_or_create_annotator("panel", "5")).outcome != "claimed"


def test_who_came_too_late_is_counted_as_late_and_as_nothing_else(client, study):
    late = players.submitted(study, "1")
    Assignment.objects.filter(pk=late.pk).update(released_at=F("submitted_at"), released_reason="expired", is_late=True)
    Batch.objects.filter(pk=late.batch_id).update(claimed=0)
    players.submitted(study, "2")
    total, _ = monitor.count_places_by_arm(study)
    assert (total.submitted, total.late, total.free, total.released) == (1, 1, 3, (("expired", 1),))
    periods = monitor.count_people_over_time(study).periods
    assert (sum(period.claimed for period in periods), periods[-1].total) == (2, total.submitted)
    page = collecting(client, study).content.decode()
    assert "<b>1</b> of 4" in page and "1 person<" in page and ">Started</th>" in page


def test_places_of_third_labels_do_not_make_the_cap_look_reached(client, owner):
    study = builders.choice_study(by=owner, m=1, target_n=4, target_cap=6, target_kind="kept")
    first = players.submitted(study, "1")
    exclude_assignments([first], "too_fast", owner, should_reopen_places=True)  # five places of six
    last = study.batches.order_by("number").last()
    Batch.objects.create(study=study, arm=last.arm, number=last.number + 1, wanted=1, origin="top_up")
    Study.objects.filter(pk=study.pk).update(open_to=last.number + 2)
    page = collecting(client, study).content.decode()
    assert "1 place was reopened for other annotators." in page and "The cap of" not in page
    exclude_assignments([players.submitted(study, "2")], "too_fast", owner, should_reopen_places=True)
    page = collecting(client, study).content.decode()
    assert "2 places were reopened for other annotators. The cap of 6 places is reached" in page


def test_the_page_shows_comments_and_says_why_outcomes_are_hidden(client, study):
    players.submitted(study, "1", comment="The third <b>text</b> was cut off.")
    html = collecting(client, study).content.decode()
    assert "The third &lt;b&gt;text&lt;/b&gt; was cut off." in html
    assert "Outcomes are hidden while the study collects" in html
    assert "What people write about an output is not listed here" in html
    lifecycle.unblind(study, None, "why not")
    assert "Outcomes have been shown since" in collecting(client, study).content.decode()


def test_no_page_about_annotators_names_a_system(client, study):
    done = players.submitted(study, "1", comment="Fine.")
    for url in (detail(done), f"/admin/annotators/assignment/?study={study.pk}"):
        html = client.get(url).content.decode()
        assert not any(name in html for name in builders.SYSTEMS), url
    assert not any(name in collecting(client, study).content.decode() for name in builders.SYSTEMS)


def test_queries_do_not_grow_with_people(client, study, owner):
    lifecycle.open_more_places(study, 2, by=None)

    def queries(url):
        with CaptureQueriesContext(connection) as context:
            assert client.get(url).status_code == 200
        return len(context)

    urls = [
        f"/admin/studies/study/{study.pk}/collecting/",
        f"/admin/annotators/assignment/?study={study.pk}",
        "/admin/annotators/recruitment/",
    ]

    def one_more(n):
        done = players.submitted(study, str(n), recruitment=builders.panel(study), comment="words")
        Inquiry.objects.create(assignment=done, kind="question", text="Why?")
        exclude_assignments([done], "too_fast", owner)

    one_more(0)
    for url in urls:
        queries(url)
    few = [queries(url) for url in urls]
    for n in range(1, 5):
        one_more(n)
    assert [queries(url) for url in urls] == few


def test_an_inquiry_is_handled_and_not_handled_after_all(client, study):
    done = players.submitted(study, "1")
    inquiry = Inquiry.objects.create(assignment=done, kind="report", text="It stops in the middle.", label="B")
    assert "Inbox (1 waiting)" in collecting(client, study).content.decode()
    url = f"/admin/studies/study/{study.pk}/inbox/{inquiry.pk}/"
    client.post(url)
    assert "waiting)" not in collecting(client, study).content.decode()
    client.post(url, {"again": "1"})
    inquiry.refresh_from_db()
    assert inquiry.handled_at is None
    assert client.get(url).status_code == 405


def test_an_annotator_reads_the_answer_where_they_wrote(client, study):
    done, annotator = players.submitted(study, "1"), Client()
    address = f"/p/{done.code}/question/"
    for _ in range(2):
        sent = annotator.post(f"{address}?page=s1", {"kind": "report", "text": "Text B stops."})
        assert sent["Location"] == f"{address}?sent=1", "a reload sends nothing"
    inquiry = Inquiry.objects.get()
    page = annotator.get(f"{address}?sent=1").content.decode()
    assert "Your message has arrived" in page and "Text B stops." in page and "No answer yet." in page
    url = f"/admin/studies/study/{study.pk}/inbox/{inquiry.pk}/"
    named = f"It is {study.systems.first().name}."
    refused = client.post(url, {"answer": named})
    shown = refused.content.decode()
    assert refused.status_code == 422 and "names the system" in shown and named in shown, "what was typed is kept"
    assert client.post(url, {"answer": "Thank you, it is repaired."}).status_code == 302
    assert "This message is already answered" in client.post(url, {"answer": "Once more."}).content.decode()
    page = annotator.get(address).content.decode()
    assert "Thank you, it is repaired." in page and "No answer yet." not in page
    assert "waiting)" not in collecting(client, study).content.decode()
    limited = new_limited_address(done)
    assert "Text B stops." not in annotator.get(f"/p/{limited}/question/").content.decode()


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("start", "instructions"),
        ("s2.read", "section 2, reading"),
        ("s3.p1", "section 3, page 1"),
        ("s4", "section 4"),
        ("s1.p2f", "section 1, page 2, reasons"),
        ("s1.p12t", "section 1, page 12, the truth"),
    ],
)
def test_a_page_is_named_for_what_it_is(key, words):
    assert describe_page_key(key) == words
