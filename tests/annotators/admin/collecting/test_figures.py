"""The pictures of a study that collects: answers over time, where people leave, time per page."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from annotators.admin import collecting as figures
from annotators.models import Assignment, PageVisit
from annotators.places import assign, monitor
from annotators.places.exclusions import exclude_assignments
from studies.models import Study
from tests import builders, players
from tests.annotators.admin.collecting.watched import collecting

pytestmark = pytest.mark.django_db

START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def came(assignment, hours: float, minutes: float | None = 20):
    """Move an assignment to so many hours after the start; ``minutes`` later it was submitted."""
    claimed = START + timedelta(hours=hours)
    columns = {"claimed_at": claimed, "started_at": claimed}
    if minutes is not None:
        columns["submitted_at"] = claimed + timedelta(minutes=minutes)
    Assignment.objects.filter(pk=assignment.pk).update(**columns)


def closed(study):
    """The same study, as it is after the end of its collection."""
    study.state = Study.State.CLOSED
    return study


def left(study, person, until, reason):
    gone = players.submitted(study, person, until=until)
    assign.mark_started_and_extend_deadline(gone)
    assign.release_assignment(gone.pk, reason)
    return gone


@pytest.mark.parametrize(
    ("hours", "step", "n_periods", "rows"),
    [
        (5, monitor.HOUR, 6, [(0, 1, 1, 1), (5, 1, 1, 2)]),
        (47, monitor.HOUR, 48, [(0, 1, 1, 1), (47, 1, 1, 2)]),
        (49, monitor.DAY, 3, [(0, 1, 1, 1), (2, 1, 1, 2)]),
        (24 * 130, monitor.WEEK, 19, [(0, 1, 1, 1), (18, 1, 1, 2)]),
    ],
)
def test_periods_are_hours_then_days_then_weeks(study, hours, step, n_periods, rows):
    came(players.submitted(study, "1"), 0)
    came(players.submitted(study, "2"), hours)
    counted = monitor.count_people_over_time(closed(study))
    assert (counted.step, counted.n_periods) == (step, n_periods)
    found = [((one.start - counted.start) // step, one.claimed, one.submitted, one.total) for one in counted.periods]
    assert found == rows


def test_a_running_study_is_counted_up_to_now(study):
    came(players.submitted(study, "1"), 0)
    started = monitor.count_people_over_time(study)
    assert started.step == monitor.WEEK and started.n_periods > 20 and len(started.periods) == 1


def test_the_line_ends_where_the_page_counts(client, owner):
    """Who is replaced is not counted if the target counts kept people, nor are late people, robots and test runs."""
    study = builders.choice_study(by=owner, m=1, target_n=4, target_cap=6, target_kind="kept")
    first = players.submitted(study, "1")
    exclude_assignments([first], "too_fast", owner, should_reopen_places=True)
    players.submitted(study, "2")
    players.submitted(study, "3", origin="robot")
    late = players.submitted(study, "4")
    Assignment.objects.filter(pk=late.pk).update(released_at=F("submitted_at"), released_reason="expired", is_late=True)
    page = collecting(client, study)
    assert page.context["counted"] == page.context["over_time"].n == 1
    assert sum(row.claimed for row in page.context["over_time"].rows) == 3


def test_a_place_in_the_figure_is_in_proportion(study):
    came(players.submitted(study, "1"), 0)
    came(players.submitted(study, "2"), 1)
    figure = figures.build_over_time_figure(monitor.count_people_over_time(closed(study)), 4)
    ticks = {tick.text: float(tick.at) for tick in figure.until.upwards}
    assert float(figure.target) == pytest.approx(ticks["4"], abs=0.1)
    points = [tuple(map(float, point.split(","))) for point in figure.line.split()]
    assert points[0] == (44.0, ticks["0"]) and points[-1] == (396.0, ticks["2"])
    each = {tick.text: float(tick.at) for tick in figure.each.upwards}
    assert [(float(y), float(y) + float(height)) for _, y, _, height in figure.bars] == [(each["1"], each["0"])] * 2


def test_who_left_is_counted_after_the_last_page_that_was_sent(client, study):
    players.submitted(study, "1")
    left(study, "2", "s2.ask", "expired")
    left(study, "3", "s2.ask", "withdrawn")
    left(study, "4", "start", "screened_out")
    never = players.claimed(study, "5")
    assign.release_assignment(never.pk, "returned")
    robot = players.submitted(study, "6", until="s2.ask", origin="robot")
    assign.mark_started_and_extend_deadline(robot)
    assign.release_assignment(robot.pk, "expired")
    assert monitor.count_leavers_by_last_page(study) == (
        4,
        {"s1": {"screened out": 1}, "s2.read": {"expired": 1, "withdrawn": 1}},
    )
    page = collecting(client, study)
    figure = page.context["leaving"]
    assert (figure.started, figure.n, figure.reasons) == (4, 3, "1 expired, 1 screened out, 1 withdrawn")
    rows = {row.name: (row.n, row.reasons) for row in figure.rows if row.n}
    assert rows == {
        "after section 1": (1, "1 screened out"),
        "after section 2, reading": (2, "1 expired, 1 withdrawn"),
    }
    html = page.content.decode()
    assert "3 of 4 people who started left: 1 expired, 1 screened out, 1 withdrawn." in html
    assert "after section 2, reading: 2." in html


def test_nobody_who_left_has_no_picture(client, study):
    assert "Nobody has started yet." in collecting(client, study).content.decode()
    players.submitted(study, "1")
    page = collecting(client, study)
    assert page.context["leaving"].frame is None
    assert "One person started and has not left." in page.content.decode()


def test_a_page_has_a_median_only_from_five_people(client, owner):
    study = builders.spa_study(owner, with_rating=False, target_n=6)
    for n in range(4):
        done = players.submitted(study, str(n))
        PageVisit.objects.filter(assignment=done).update(active_seconds=10 * (n + 1))
    page = collecting(client, study)
    assert page.context["page_times"].frame is None
    assert {row.quartiles for row in page.context["page_times"].rows} == {None}
    assert "Fewer than 5 people have submitted in time" in page.content.decode()
    last = players.submitted(study, "4")
    PageVisit.objects.filter(assignment=last).update(active_seconds=500)
    PageVisit.objects.filter(assignment=last, key="s2.ask").delete()
    figure = collecting(client, study).context["page_times"]
    rows = {row.name: (row.n, row.quartiles) for row in figure.rows}
    assert rows["section 2, reading"] == (5, ("20", "30", "40")) and figure.unit == "seconds"
    assert rows["section 2, questions"] == (4, None)
    assert "fewer than 5 people</text>" in collecting(client, study).content.decode()
    assert [bar.name for bar in figure.bars] == [name for name, (n, _) in rows.items() if n == 5]


def test_where_the_browser_counted_nothing_the_time_until_sending_counts(owner):
    study = builders.spa_study(owner, with_rating=False, target_n=6)
    done = players.submitted(study, "1")
    PageVisit.objects.filter(assignment=done).update(recorded_at=F("shown_at") + timedelta(minutes=3))
    PageVisit.objects.filter(assignment=done, key="s2.ask").update(shown_at=None)
    (seconds,) = monitor.seconds_by_page(study)
    assert seconds["s2.read"] == 180 and "s2.ask" not in seconds
    players.submitted(study, "2", origin="robot")
    assert len(monitor.seconds_by_page(study)) == 1


def test_pages_are_in_their_order_and_the_instructions_after_the_screening():
    keys = ["s2.ask", "s2.read", "start", "s1", "s3.p10", "s3.p2", "s3.p2f", "s4.again", "s4.p1"]
    assert list(figures.name_pages(keys, 1)) == [
        "s1", "start", "s2.read", "s2.ask", "s3.p2", "s3.p2f", "s3.p10", "s4.again", "s4.p1",
    ]  # fmt: skip
    assert next(iter(figures.name_pages(keys, 0))) == "start"


def test_many_pages_share_rows():
    keys = ["start", *(f"s1.p{n}" for n in range(1, 48)), "s2"]
    names = figures.name_pages(keys, 0)
    rows = list(dict.fromkeys(names.values()))
    assert rows[:3] == ["instructions", "section 1, pages 1–5", "section 1, pages 6–10"]
    assert rows[-2:] == ["section 1, pages 46–47", "section 2"] and len(rows) <= figures.MAX_PAGE_ROWS
    people = [{key: float(n) for key in keys} for n in range(100, 105)]
    shared = figures.build_times_figure(people, names).rows[1]
    assert (shared.n, shared.quartiles) == (5, ("101", "102", "103"))
