"""A whole study over HTTP: robots with known preferences play it, and the answers stored are those that they gave."""

from collections import Counter

import pytest

from analysis.report.build import build_report
from annotators.models import Assignment, PageVisit, Response
from studies.models import Batch, Study
from studies.services import lifecycle
from tests.builders import QUALITY, launched, panel, recruitment, spa_draft, spa_study
from tests.robots import Page, Robot, address, preferring, system_of

pytestmark = pytest.mark.django_db


def test_robots_play_a_study_and_read_the_truth(same_orders):
    study = spa_study(target_n=8)
    door = panel(study)
    answer = preferring(QUALITY, system_of)
    for n in range(8):
        robot = Robot(address(study, f"w{n}", door), answer, n)
        assert robot.play() == "Thank you"
        assert f"https://panel.example.org/done?cc=C1&amp;s=Sw{n}" in robot.responses[-1].content.decode()
    assert Robot(address(study, "w8", door), answer).play() == "The study is full"
    assert Robot(address(study, "w0", door), answer).play() == "Thank you"  # the receipt, again
    done = Assignment.objects.filter(study=study, submitted_at__isnull=False)
    assert done.count() == 8 and Response.objects.filter(assignment__in=done).count() == 8 * 8
    means = {}
    for x, y, value in Response.objects.filter(question__x__isnull=False).values_list(
        "question__x__name", "question__y__name", "value"
    ):
        means.setdefault((x, y), []).append(float(value))
    means = {pair: sum(values) / len(values) for pair, values in means.items()}
    assert means["beta", "alpha"] > 55 > 45 > means["alpha", "beta"]
    assert means["gamma", "beta"] > 55 > 45 > means["beta", "gamma"]
    assert all(batch.claimed == 1 for batch in Batch.objects.filter(study=study))


def report_after(quality, expected, margin=None, n=100):
    """The report on ``n`` robots that share these preferences and came by the panel's link."""
    study = spa_draft(target_n=n, with_surveys=False)
    study.contrasts.update(expected=expected, margin=margin)
    study = launched(study)
    door = panel(study)
    for number in range(n):
        assert Robot(address(study, f"w{number}", door), preferring(quality, system_of), number).play() == "Thank you"
    lifecycle.start_closing(study, by=None)
    lifecycle.end_grace_period(study, by=None)
    result = build_report(Study.objects.get(pk=study.pk), {"resamples": 199})
    rows = next(one for one in result["tables"] if one["name"] == "table1")["rows"]
    return result, rows


@pytest.mark.slow
def test_the_report_finds_what_a_hundred_robots_prefer(same_orders):
    result, rows = report_after(QUALITY, ">")
    assert [one["verdict"] for one in result["conclusions"]] == ["different", "different"]
    # Half a step of quality moves an answer by 12.5 points, and a rating by .6 of a point.
    for row in rows:
        assert row["n"] == 100 and row["recovered"] == "recovered"
        assert 0.6 < row["p_xy"] < 0.65 and 0.3 < row["delta"] < 0.9, row


@pytest.mark.slow
def test_the_report_finds_a_hundred_robots_without_a_preference_indifferent(same_orders):
    result, rows = report_after(dict.fromkeys(QUALITY, 0.0), "~", margin=0.05)
    assert [one["verdict"] for one in result["conclusions"]] == ["equivalent", "equivalent"]
    assert {row["recovered"] for row in rows} == {"recovered"}


def test_letters_and_orders_vary_between_people(same_orders):
    study = spa_study(target_n=12)
    door = panel(study)
    for n in range(12):
        Robot(address(study, f"w{n}", door), preferring(QUALITY, system_of), n).play()
    first = Counter(Response.objects.filter(slot="s2.q1").values_list("question__key", flat=True))
    letters = Counter(Response.objects.filter(exposure__output__system__name="alpha").values_list("label", flat=True))
    assert len(first) > 1 and set(letters) == {"A", "B", "C"}
    orders = {tuple(item for _, item, _ in v.shown["items"]) for v in PageVisit.objects.filter(key="s2.read")}
    assert len(orders) > 6


def test_an_open_link_makes_a_new_person_each_time_and_resumes_by_the_page_alone():
    study = spa_study(target_n=3)
    door = recruitment(study)
    one, two = (Robot(f"/e/{door.key}/", preferring(QUALITY, system_of)) for _ in range(2))
    one.play(until="s2.ask"), two.play()
    assert Assignment.objects.filter(study=study).values("annotator").distinct().count() == 2
    again = Robot(one.url, preferring(QUALITY, system_of))
    assert Page(again.get(one.url).content.decode()).heading == "Your judgement"


def test_reload_back_and_resending_lose_and_double_nothing():
    study = spa_study(target_n=1)
    door = panel(study)
    robot = Robot(address(study, "w", door), preferring(QUALITY, system_of))
    robot.play(until="s2.ask")
    url = robot.url
    code = url.split("/")[2]
    page = Page(robot.get(url).content.decode())
    assert page.heading == Page(robot.get(url).content.decode()).heading
    form = next(form for form in page.forms if "go" in dict(form.buttons))
    data = robot.fill(form, page)
    robot.client.post(url, data | {"save": "auto"})
    kept = Page(robot.get(url).content.decode())
    assert [form.fields for form in kept.forms if "go" in dict(form.buttons)][0] == {
        name: [data[name]] if name in data else values for name, values in form.fields.items()
    }
    before = Response.objects.count()
    assert robot.client.post(url, data).status_code == robot.client.post(url, data).status_code == 302
    assert Response.objects.count() == before + 4
    slot = next(name for name in data if name.startswith("s2"))
    refused = robot.client.post(url, data | {slot: str((int(data[slot]) + 1) % 101)})
    assert refused.status_code == 409 and data[slot] in refused.content.decode()
    back = robot.client.get(f"/p/{code}/s2.read/")
    assert back.status_code == 200 and "go" not in dict(b for f in Page(back.content.decode()).forms for b in f.buttons)


def test_only_a_person_who_starts_takes_a_place():
    study = spa_study(target_n=1)
    door = panel(study)
    robot = Robot(address(study, "w", door), None)
    for method in ("get", "head"):
        assert getattr(robot.client, method)(robot.address).status_code == 200
    assert not Assignment.objects.exists()
    refused = robot.client.post(robot.address)
    assert refused.status_code == 422 and not Assignment.objects.exists()
    robot.client.post(robot.address, {"decline": "1"})
    assert not Assignment.objects.exists()


def test_a_head_request_shows_nothing_to_anybody():
    study = spa_study(target_n=1)
    door = panel(study)
    robot = Robot(address(study, "w", door), preferring(QUALITY, system_of))
    robot.client.post(robot.address, {"agree": "1"})
    code = Assignment.objects.get().code
    assert robot.client.head(f"/p/{code}/s1/").status_code == 200 and not PageVisit.objects.exists()
    robot.client.get(f"/p/{code}/s1/")
    assert PageVisit.objects.count() == 1


@pytest.mark.parametrize(
    "query",
    ["", "?who=", "?who=a&who=b", "?who=a%00b", "?who=" + "x" * 1000, "?who={{PERSON}}", "?who=%ED%A0%80", "?other=1"],
)
def test_an_incomplete_link_is_refused_and_writes_nothing(query):
    door = panel(spa_study(target_n=1))
    robot = Robot("", None)
    for response in (
        robot.client.get(f"/e/{door.key}/{query}"),
        robot.client.post(f"/e/{door.key}/{query}", {"agree": "1"}),
    ):
        assert response.status_code in (200, 400, 422)
    assert not Assignment.objects.exists()


def test_nobody_answers_for_another():
    study = spa_study(target_n=2)
    door = panel(study)
    mine, theirs = (Robot(address(study, person, door), preferring(QUALITY, system_of)) for person in "ab")
    mine.play(until="s2.ask"), theirs.play(until="s2.ask")
    codes = [robot.url.split("/")[2] for robot in (mine, theirs)]
    assert codes[0] != codes[1] and all(len(code) >= 22 for code in codes)
    assert mine.client.get(f"/p/{codes[0][:-1]}x/").status_code == 404
    assert mine.client.get("/p/nobody/").status_code == 404


def test_withdrawing_is_shown_before_it_is_done():
    study = spa_study(target_n=1)
    robot = Robot(address(study, "w", panel(study)), preferring(QUALITY, system_of))
    robot.play(until="s2.ask")
    code = robot.url.split("/")[2]
    assert robot.client.get(f"/p/{code}/withdraw/").status_code == 200
    assert not Assignment.objects.get().withdrawn_at
    robot.post(f"/p/{code}/withdraw/", {})
    assert Assignment.objects.get().withdrawn_at and robot.url.endswith("/done/")
    assert robot.client.post(f"/p/{code}/s2.ask/", {}).status_code in (302, 303)
    assert Batch.objects.get().claimed == 0


def test_several_batches_one_after_the_other_by_the_code_alone():
    study = spa_study(target_n=4, batches_per_annotator=2, prompts=16)
    robot = Robot(address(study, "w", panel(study)), preferring(QUALITY, system_of))
    robot.play()
    code = robot.url.split("/")[2]
    assert robot.client.get(f"/p/{code}/another/").status_code == 405
    robot.read = {}  # letters are drawn anew
    page = Page(robot.post(f"/p/{code}/another/", {}).content.decode())
    assert Assignment.objects.count() == 2 and robot.url.split("/")[2] != code
    for _ in range(10):
        form = next((form for form in page.forms if "go" in dict(form.buttons)), None)
        if form is None:
            break
        page = Page(robot.post(form.action, robot.fill(form, page)).content.decode())
    assert page.heading == "Thank you" and Assignment.objects.filter(submitted_at__isnull=False).count() == 2
    robot.post(f"/p/{code}/another/", {})
    assert Assignment.objects.count() == 2


def test_a_place_is_kept_briefly_until_the_first_page_and_then_as_long_as_work_needs():
    study = spa_study(target_n=1, start_window_seconds=120)
    door = panel(study)
    robot = Robot(address(study, "w", door), None)
    robot.client.post(robot.address, {"agree": "1"})
    assignment = Assignment.objects.get()
    assert assignment.started_at is None
    held = assignment.reserved_until
    robot.get(f"/p/{assignment.code}/")
    assignment.refresh_from_db()
    assert assignment.started_at and (assignment.reserved_until - held).total_seconds() > 1500
