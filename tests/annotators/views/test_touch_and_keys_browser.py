"""Touch and keys on every page of every protocol, and for every kind of scale: nothing is answered that nobody meant to answer."""

from collections.abc import Callable
from functools import partial
from urllib.parse import parse_qs

import pytest

from annotators.models import PageVisit
from studies.protocols import REGISTRY
from tests.annotators.views.pressing import NOW, entered_all_without_script, keyed
from tests.annotators.views.touching import FILL, STATE, pages_of, swipe, touch, touched
from tests.annotators.views.varied_studies import criteria, every_scale, practice, reasons
from tests.browsing import PHONE, until
from tests.builders import (
    launched,
)
from tests.players import claimed
from tests.samples import sample_draft

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
STUDIES: dict[str, Callable] = {slug: partial(sample_draft, slug, 1, 4) for slug in REGISTRY} | {
    one.__name__: one for one in (every_scale, criteria, reasons, practice)
}

# The others take minutes: each has pages of its own, but scripts and styles are the same.
QUICK_STUDIES = ("every_scale", "marks")


@pytest.fixture
def study(request, db):
    return launched(STUDIES[getattr(request, "param", "every_scale")]())


EVERY_STUDY = pytest.mark.parametrize(
    "study",
    [pytest.param(name, marks=() if name in QUICK_STUDIES else pytest.mark.slow) for name in STUDIES],
    indirect=True,
)


@EVERY_STUDY
def test_touch_and_keys_change_only_what_was_meant(visit, study):
    phone, desk = visit(viewport=PHONE, has_touch=True, is_mobile=True), visit()
    wrong = touched(phone, claimed(study, "phone"))
    wrong += keyed(desk, claimed(study, "desk"), claimed(study, "walker"))
    assert not [*wrong, *phone.complaints, *desk.complaints], "\n".join(wrong)


@EVERY_STUDY
def test_without_script_enter_in_any_field_leads_on_and_never_sends(visit, study):
    person, assignment, n, wrong = visit(java_script_enabled=False), claimed(study, "desk"), 0, []
    for _ in pages_of(person.page, person.base, assignment):
        fields, found = entered_all_without_script(person.page, assignment)
        n, wrong = n + fields, wrong + found
    assert n and not wrong, "\n".join(wrong)


def drafts_sent(page) -> list[dict[str, list[str]]]:
    """What is posted from now on, as it is posted."""
    posted = []
    page.on(
        "request",
        lambda request: posted.append(parse_qs(request.post_data or "")) if request.method == "POST" else None,
    )
    return posted


def test_a_finger_on_a_slider_answers_when_it_is_lifted_and_not_when_it_scrolls(visit):
    person = visit(viewport=PHONE, has_touch=True, is_mobile=True)
    page = person.open("s1")
    session, posted = person.context.new_cdp_session(page), drafts_sent(page)
    chance, other = page.locator("#s1-q1"), page.locator("#s1-q3")
    slider = chance.locator("xpath=..").locator("[type=range]")
    # A reason not to answer empties the field and leaves its slider unset.
    chance.fill("30")
    page.locator("[id='s1-q1-skip']").select_option("no")
    assert (chance.input_value(), slider.get_attribute("aria-valuetext")) == ("", "not set")
    assert page.locator("[id='s1-q1-skip']").input_value() == "no"
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    left, middle, right = ((box["x"] + box["width"] * part, box["y"] + box["height"] / 2) for part in (0.2, 0.5, 0.8))
    # It rests for longer than the pause after which a draft is sent, and another field has something to be sent.
    other.evaluate("one => { one.value = '7'; one.dispatchEvent(new Event('input', { bubbles: true })); }")
    posted.clear()
    touch(session, "touchStart", left)
    assert chance.input_value() == "15"  # what lifting the finger would answer
    until(lambda: page.evaluate("true") and any("7" in post.get("s1.q3", []) for post in posted))
    page.evaluate("window.dispatchEvent(new Event('pagehide'))")  # another way to send and to keep it
    assert page.evaluate(STATE).count('["s1.q1",""]') >= 1
    touch(session, "touchMove", (left[0], left[1] - 200))
    touch(session, "touchEnd")
    assert (chance.input_value(), slider.get_attribute("aria-valuetext")) == ("", "not set")
    assert page.locator("[id='s1-q1-skip']").input_value() == "no"
    assert posted and all(post.get("s1.q1", [""]) == [""] for post in posted)
    # A tap answers, in the very middle too, and so does a finger that goes along the slider.
    page.evaluate("scrollTo(0, 0)")
    slider.scroll_into_view_if_needed()
    y = slider.bounding_box()["y"] + box["height"] / 2
    for x, value in ((middle[0], "50"), (left[0], "15"), (right[0], "85")):
        touch(session, "touchStart", (x, y))
        touch(session, "touchEnd")
        assert (chance.input_value(), slider.get_attribute("aria-valuetext")) == (value, value)
    assert page.locator("[id='s1-q1-skip']").input_value() == ""
    touch(session, "touchStart", (left[0], y))
    for x in (left[0] + 40, middle[0], middle[0]):
        touch(session, "touchMove", (x, y))
    touch(session, "touchEnd")
    dragged = chance.input_value()
    assert 40 < int(dragged) < 60
    swipe(session, right[0], y, -200)
    assert chance.input_value() == dragged
    until(lambda: PageVisit.objects.get(key="s1").draft["s1.q1"] == [dragged])
    page.reload()
    assert (page.locator("#s1-q1").input_value(), page.locator("[type=range]").first.input_value()) == (
        dragged,
        dragged,
    )


def test_a_mouse_changes_nothing_by_its_wheel_its_other_button_or_what_it_selects(visit):
    person = visit()
    page = person.open("s1")
    page.evaluate(FILL)
    page.locator("#s1-q1").fill("")
    page.locator("[data-has-range]").first.fill("")
    before = page.evaluate(STATE)
    controls = page.locator("main form :is(input:not([type=hidden]), select)").locator("visible=true")
    assert controls.count() > 30
    for control in controls.all():
        control.evaluate("one => { one.scrollIntoView({ block: 'center' }); one.focus(); }")
        box = control.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
        page.mouse.wheel(0, 90)
        page.mouse.wheel(0, -40)
    page.wait_for_timeout(100)  # a wheel is handled some frames later
    slider = page.locator("[type=range]").first
    slider.scroll_into_view_if_needed()
    slider.click(button="right", position={"x": 30, "y": 20})
    slider.dispatch_event("pointerup")
    page.locator("#s1-q1-n").hover()
    page.mouse.down()
    slider.hover(position={"x": 30, "y": 20})
    page.mouse.up()
    after = page.evaluate(STATE)
    assert (
        before.split("null")[0].split("]],")[0] == after.split("]],")[0]
        and slider.get_attribute("aria-valuetext") == "not set"
    )


def test_keys_answer_only_where_they_were_switched_on_and_only_once_for_each_press(visit):
    person = visit()
    page = person.open("s1")
    groups, box = page.get_by_role("radiogroup"), page.get_by_label("Answer with number keys")
    now = lambda: page.evaluate(NOW)["chosen"]  # noqa: E731 - a short name for one question
    first = now()
    assert page.locator("kbd").count() == 0 and page.locator("[aria-keyshortcuts]").count() == 0
    page.locator("main").click(position={"x": 2, "y": 2})
    page.keyboard.press("2")
    assert now() == first == [-1] * groups.count()
    box.check()
    page.locator("main").click(position={"x": 2, "y": 2})
    page.keyboard.press("2")
    assert now()[:2] == [1, -1]
    # Held down it answers one question, and not the next ones as well.
    page.locator("main").click(position={"x": 2, "y": 2})
    for _ in range(4):
        page.keyboard.down("3")
    page.keyboard.up("3")
    assert [one for one in now() if one >= 0][1:] == [2]
    # Where somebody types, or sets a slider, a digit is what they type; with a modifier it is the browser's.
    before = now()
    for selector in ("[type=range]", "[data-max]", "[id='s1-q2-skip']"):
        page.locator(selector).first.focus()
        page.keyboard.press("1")
    groups.first.locator("input").first.focus()
    for keys in ("Control+1", "Alt+1", "Meta+1"):
        page.keyboard.press(keys)
    assert now() == before
    # A reason not to answer counts as an answer, and a key takes it back.
    page.locator("[id='s1-q2-skip']").select_option("no")
    assert now()[0] == -1
    groups.first.locator("input").first.focus()
    page.keyboard.press("4")
    assert now()[0] == 3 and page.locator("[id='s1-q2-skip']").input_value() == ""
    # The digits of other keyboards are the same keys.
    groups.first.locator("input").first.focus()
    page.evaluate("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: '٢', bubbles: true }))")
    assert now()[0] == 1
    box.uncheck()
    assert page.locator("kbd").count() == 0 and page.locator("[aria-keyshortcuts]").count() == 0
    assert page.locator(".value").all_inner_texts()[:5] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("study", ["criteria"], indirect=True)
def test_after_the_last_answer_space_changes_nothing_and_enter_sends(visit, study):
    person = visit()
    page = person.open("s1.p1")
    page.get_by_label("Answer with number keys").check()
    page.locator("main").click(position={"x": 2, "y": 2})
    for key in "12":
        page.keyboard.press(key)
        now = page.evaluate(NOW)
        for unmeant in ("Space", "ArrowDown"):
            page.keyboard.press(unmeant)
        assert page.evaluate(NOW) == now and now["isOnQuestion"]
    assert now["chosen"] == [0, 1]
    page.keyboard.press("Enter")
    page.wait_for_url("**/done/")


def test_a_held_enter_stops_at_the_next_field(visit):
    person = visit()
    page = person.open("s1")
    page.locator("#s1-q1").focus()
    for _ in range(60):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    assert person.at.endswith("/s1/") and page.evaluate(NOW)["at"] < 3
    assert PageVisit.objects.get(key="s1").recorded_at is None


def test_without_script_enter_leads_to_the_next_field_and_more_time_keeps_what_is_typed(visit):
    person = visit(java_script_enabled=False)
    page = person.open("s1")
    page.locator("#s1-q1").fill("41")
    page.get_by_role("button", name="More time").click()
    assert page.locator("#s1-q1").input_value() == "41" and person.at.endswith("/s1/")
    assert PageVisit.objects.get(key="s1").draft["s1.q1"] == ["41"]
    page.locator("#s1-q1").fill("42")
    with page.expect_navigation():
        page.locator("#s1-q1").press("Enter")
    assert page.url.endswith("/s1/#s1-q2-l") and page.locator("#s1-q1").input_value() == "42"
    assert page.locator("#problems").count() == 0 and page.locator("kbd").count() == 0
    with page.expect_navigation():
        page.locator("[name=go]").click()
    assert page.locator("#problems").count() == 1 and page.locator("#s1-q1").input_value() == "42"
