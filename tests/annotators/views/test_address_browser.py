"""In Chromium: somebody opens the panel's link again, goes on here, and finds the address of these pages to copy."""

import re

import pytest

from annotators.models import Assignment
from tests.accessibility import violations
from tests.annotators.views.visit import Visit
from tests.browsing import PHONE, look_at, shot
from tests.builders import launched, panel, recruitment, spa_draft, user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_link_offers_two_ways_and_the_pages_their_address(visit):
    first, wrong = visit(), []
    own = first.play("s3.p1").url
    own_code = Assignment.objects.get().code
    again: Visit = visit()
    page = again.page
    page.goto(again.door)
    look_at(page, "two ways", wrong)
    shot(page, "two-ways")
    # A double click sends the form once with the page's script; the second press would be safe.
    with page.expect_navigation():
        page.get_by_role("button", name="Go on here").dblclick()
    page.wait_for_url("**/s3.p1/")
    assert own_code not in page.url and page.get_by_role("link", name="Leave the study").count() == 0
    page.locator(".own-address summary").click()
    look_at(page, "page here", wrong)
    shot(page, "page-here")
    address = page.locator("#own-address")
    assert address.inner_text() and page.url.split("/")[4] in address.inner_text()
    page.locator("[data-copies=own-address]").click()
    assert page.locator("[data-copies=own-address]").inner_text() == "Copied"
    again.rate()
    again.go("s4")
    # The browser's back button leads to the next page, and not to what was sent.
    page.go_back()
    page.wait_for_url("**/s4/")
    page.locator("textarea").fill("Fine.")
    again.go("done")
    look_at(page, "end here", wrong)
    shot(page, "end-here")
    page.goto(again.door)
    assert page.url.endswith("/done/") and own_code not in page.content()
    # The own pages name their address, and show what was sent.
    first.page.goto(own)
    first.page.locator(".own-address summary").click()
    look_at(first.page, "own page", wrong)
    shot(first.page, "own-page")
    assert own_code in first.page.locator("#own-address").inner_text()
    assert not wrong, "\n".join(wrong)
    assert not again.cookies and not again.complaints and not first.complaints


def test_an_open_link_offers_what_this_browser_began_beside_a_new_start(visit, study):
    person: Visit = visit()
    page, wrong = person.page, []
    person.door = f"{person.base}/e/{recruitment(study, 'open_link').key}/"
    page.goto(person.door)
    assert not page.locator("#places").is_visible()
    person.start()
    own = page.url
    page.get_by_label("Yes").check()
    person.go("start")
    page.goto(person.door)
    look_at(page, "open link", wrong)
    shot(page, "open-link")
    offer = page.locator("#places a")
    assert "Go on at page 2 of" in offer.inner_text() and offer.get_attribute("href") == re.sub(
        r"s1/$", "", own.removeprefix(person.base)
    )
    assert page.get_by_role("button", name="I am somebody else: start").is_visible()
    offer.click()
    page.wait_for_url("**/start/")
    # Somebody else at the same browser takes a place of their own, and the list has both.
    page.goto(person.door)
    page.locator("#agree").check()
    page.get_by_role("button", name="I am somebody else: start").click()
    page.wait_for_url("**/s1/")
    assert page.url != own and Assignment.objects.count() == 2
    page.goto(person.door)
    assert page.locator("#places a").count() == 2
    assert not wrong, "\n".join(wrong)
    assert not person.cookies and not person.complaints


def test_a_study_for_wide_screens_says_so_before_the_consent_and_takes_no_place(visit):
    link = panel(launched(spa_draft(owner=user("other"), minimum_width=1000, needs_mouse=True)))
    touch = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
    phone, desk, seen = visit(**touch, java_script_enabled=False), visit(), visit(**touch)
    for person in (phone, desk, seen):
        person.door = f"{person.base}/e/{link.key}/?who={'clara' if person is seen else 'berta'}&session=s1"
    wrong = []
    phone.page.goto(phone.door)
    notice = phone.page.locator(".device")
    assert (
        "a screen that is at least 1000 pixels wide and a mouse" in notice.inner_text()
        and phone.door.removeprefix(phone.base) in notice.inner_text()
    )
    assert not phone.page.get_by_role("button", name="Start").is_visible()
    desk.page.goto(desk.door)
    assert not desk.page.locator(".device").is_visible() and "Device" in desk.page.locator("dl").inner_text()
    desk.start()
    assert Assignment.objects.get().device == "computer"
    # Who has begun may go on with any device.
    phone.page.goto(desk.door)
    assert phone.page.get_by_role("button", name="Go on here").is_visible() and not notice.is_visible()
    seen.page.goto(seen.door)
    wrong += violations(seen.page)
    shot(seen.page, "device")
    assert not wrong and not seen.cookies
