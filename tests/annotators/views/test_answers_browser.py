"""Answers in a browser: how they are given, saved, sent and found again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotators.models import Assignment, PageVisit, Response
from tests.accessibility import violations
from tests.annotators.views.visit import stored
from tests.browsing import PHONE, look_at, overflow, shot, until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_slider_has_no_position_until_it_is_used_and_leads_no_other_question(visit):
    person = visit()
    page = person.open("s2.ask")
    sliders, fields = page.locator("input[type=range]"), page.locator("[data-has-range]")
    assert sliders.count() == 8
    for slider in sliders.all():
        assert "unset" in slider.get_attribute("class") and slider.get_attribute("aria-valuetext") == "not set"
        assert slider.get_attribute("name") is None
    box = sliders.first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert fields.first.input_value() == "50"
    assert "unset" not in sliders.first.get_attribute("class")
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2)
    assert fields.first.input_value() == "100"
    fields.nth(1).fill("7")
    assert sliders.nth(1).input_value() == "7"
    fields.nth(1).fill("700")
    assert "unset" in sliders.nth(1).get_attribute("class")
    assert fields.nth(1).input_value() == "700"
    assert [field.input_value() for field in fields.all()[2:]] == [""] * 6


def test_number_keys_answer_only_when_switched_on(visit):
    person = visit()
    page = person.open("s3.p1")
    page.get_by_role("radiogroup").first.locator("input").first.focus()
    page.keyboard.press("4")
    assert page.locator("[type=radio]:checked").count() == 0
    page.get_by_label("Answer with number keys").check()
    for key in "43215":
        page.keyboard.press(key)
    assert [box.get_attribute("value") for box in page.locator("[type=radio]:checked").all()] == list("43215")


def test_a_draft_is_saved_after_a_pause_and_comes_back(visit):
    person = visit()
    page = person.open("s2.ask")
    page.locator("[data-has-range]").first.fill("37")
    page.wait_for_selector("text=/^Saved \\d/")
    assert PageVisit.objects.get(key="s2.ask").draft["s2.q1"] == ["37"]
    page.reload()
    assert page.locator("[data-has-range]").first.input_value() == "37"
    assert Response.objects.filter(slot__startswith="s2").count() == 0


def test_a_page_left_at_once_is_saved_too(visit):
    person = visit()
    page = person.open("s2.ask")
    page.locator("[data-has-range]").first.fill("12")
    page.goto("about:blank")
    until(lambda: (PageVisit.objects.get(key="s2.ask").draft or {}).get("s2.q1") == ["12"])


def test_without_a_connection_nothing_is_lost_and_the_page_stays(visit):
    person = visit()
    page = person.open("s2.ask")
    person.context.set_offline(True)
    person.give_chances()
    page.locator("[name=go]").click()
    page.wait_for_selector("text=Not saved yet. Keep this page open; we will try again.")
    assert person.at.endswith("/s2.ask/")
    person.context.set_offline(False)
    page.wait_for_url("**/s3.p1/", timeout=15000)
    assert [int(stored()[f"s2.q{n + 1}"].value) for n in range(8)] == [10 * n for n in range(8)]


def test_what_the_server_never_had_comes_back_from_the_browsers_own_copy(visit):
    person = visit()
    page = person.open("s2.ask")
    page.route(
        "**/s2.ask/", lambda route: route.fulfill(status=503) if route.request.method == "POST" else route.continue_()
    )
    page.locator("[data-has-range]").first.fill("64")
    page.locator("[name=go]").click()
    page.wait_for_selector("text=Not saved yet")
    page.unroute("**/s2.ask/")
    page.reload()
    assert page.locator("[data-has-range]").first.input_value() == "64"
    page.wait_for_selector("text=/^Saved \\d/")
    assert PageVisit.objects.get(key="s2.ask").draft["s2.q1"] == ["64"]


def test_a_double_click_sends_once(visit):
    person = visit()
    page = person.open("s2.ask")
    person.give_chances()
    person.requests.clear()
    posts = []
    page.on("request", lambda request: posts.append(request) if "go=1" in (request.post_data or "") else None)
    page.locator("[name=go]").dblclick()
    page.wait_for_url("**/s3.p1/")
    assert len(posts) == 1


def test_the_second_window_learns_that_the_page_is_answered(visit):
    person = visit()
    page = person.open("s2.ask")
    second = person.context.new_page()
    second.goto(page.url)
    person.give_chances()
    person.go("s3.p1")
    second.locator("[data-has-range]").first.fill("99")
    second.wait_for_selector(".unsaved :text('This page was answered before')")
    second.locator("[name=go]").click()
    second.wait_for_selector("h2:text('This page was answered before')")
    assert second.locator("#s2-q1").input_value() == "0" and second.locator("#s2-q1").is_disabled()


def test_more_time_is_given_on_the_same_page(visit):
    person = visit()
    page = person.open("s2.ask")
    # With more than ten minutes left, nobody needs a clock.
    assert page.get_by_role("button", name="More time").count() == 0
    Assignment.objects.update(reserved_until=timezone.now() + timedelta(minutes=9))
    page.reload()
    page.wait_for_selector("text=/Place kept until [0-9]/")
    before = Assignment.objects.get().reserved_until
    page.locator("[data-has-range]").first.fill("81")
    page.get_by_role("button", name="More time").click()
    page.wait_for_selector("text=You have more time now.")
    assert Assignment.objects.get().reserved_until > before
    assert person.at.endswith("/s2.ask/") and page.locator("[data-has-range]").first.input_value() == "81"


def test_time_with_the_page_in_sight_is_counted(visit):
    person = visit()
    page = person.open("s2.ask")
    until(lambda: page.locator("[name=active]").input_value() >= "2")
    person.give_chances()
    person.go("s3.p1")
    assert PageVisit.objects.get(key="s2.ask").active_seconds >= 2


def test_the_links_of_the_summary_lead_to_the_fields(visit):
    person = visit()
    page = person.open("s3.p1")
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems:focus")
    page.locator("#problems a").nth(1).click()
    page.wait_for_selector("[name='s3.q1.i1.B']:focus")
    page.get_by_role("radiogroup").first.locator("input").nth(1).check()
    page.locator("[name=go]").click()
    page.wait_for_selector("text=4 answers are missing")
    assert page.locator("input:checked").get_attribute("value") == "2"


def test_on_a_phone_a_long_list_of_problems_leaves_half_of_the_screen_and_loses_no_link(visit):
    person = visit()
    page = person.open("s2.ask")
    page.set_viewport_size(PHONE)
    asked = page.locator("[data-has-range]").count()
    page.locator("[name=go]").click()
    page.wait_for_selector("#problems:focus")
    box = page.locator("#problems")
    assert f"{asked} answers are missing" in box.locator("h2").inner_text() and asked > 5
    assert box.bounding_box()["height"] <= PHONE["height"] / 2
    assert not violations(page) and overflow(page) <= 0
    # The rest is a press away, by keyboard too.
    links = box.locator("a")
    assert links.count() == asked and not links.last.is_visible()
    box.locator("summary").focus()
    page.keyboard.press("Enter")
    assert links.last.is_visible()
    links.last.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-has-range] >> nth=-1")
    assert page.evaluate("document.activeElement.matches('[data-has-range]')")


def test_the_two_texts_of_a_question_open_under_it_and_lead_back(visit):
    person, wrong = visit(viewport=PHONE), []
    page = person.open("s2.ask")
    page.locator("[data-has-range]").nth(2).fill("31")
    button = page.locator(".look").nth(2)
    first, second = button.get_attribute("data-labels").split()
    button.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")
    button.click()
    shown = page.locator(".looked")
    labels = shown.locator(".label").all_inner_texts()
    assert labels == [f"Writer {first}", f"Writer {second}"] * 4 and shown.locator(".prompt").count() == 4
    assert abs(page.evaluate("scrollY") - before) < 700
    shot(page, "looked")
    look_at(page, "looked", wrong)
    page.set_viewport_size(PHONE)
    page.get_by_role("button", name="Back to the question").click()
    assert shown.count() == 0 and page.locator("[data-has-range]").nth(2).input_value() == "31"
    assert page.evaluate("document.activeElement.className") == "look"
    assert not wrong and not person.complaints, wrong


def typed_chances() -> list[list[str]]:
    draft = PageVisit.objects.get(key="s2.ask").draft or {}
    return [draft[f"s2.q{n}"] for n in (1, 2)]


def test_an_older_draft_of_another_device_does_not_replace_a_newer_one(visit):
    desk, phone = visit(), visit(viewport=PHONE)
    page = desk.open("s2.ask")
    phone.page.goto(page.url)
    page.locator("[data-has-range]").first.fill("42")
    page.wait_for_selector("text=/Saved [0-9]/")
    phone.page.locator("[data-has-range]").nth(1).fill("31")
    phone.page.wait_for_selector("text=This page has newer answers")
    phone.page.locator("[name=go]").click()
    phone.page.wait_for_timeout(300)
    assert typed_chances() == [["42"], [""]] and phone.at.endswith("/s2.ask/")
    phone.page.reload()
    fields = phone.page.locator("[data-has-range]")
    assert [fields.nth(n).input_value() for n in range(2)] == ["42", ""]
    # Who has seen the newer draft writes on. A link to ask something leads back to the page in the same tab.
    fields.nth(1).fill("31")
    phone.page.get_by_role("link", name="Ask or report").click()
    phone.page.get_by_role("link", name="Back to the study").click()
    phone.page.wait_for_url("**/s2.ask/")
    assert [fields.nth(n).input_value() for n in range(2)] == ["42", "31"]
    assert typed_chances() == [["42"], ["31"]]
    assert len(phone.context.pages) == 1
