"""The page of forms in a browser: on a phone, by keyboard, for a screen reader, and without script."""

import os

import pytest
from django.urls import reverse

from analysis.forms.answers import save_answers
from analysis.report.runs import run_analysis
from tests.accessibility import violations
from tests.analysis.report.reported import QUICK, finished
from tests.builders import user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SHOTS = os.environ.get("HEVAL_SHOTS")


@pytest.mark.parametrize("width", [1280, 375])
def test_a_question_is_answered_and_forms_are_read(browser, client, live_server, width):
    by = user("jo", is_superuser=True)
    study = finished(by)
    run_analysis(study, {**QUICK, "origins": ["live"]}, by=by)
    save_answers(study, {"ethics": "Board of Graz, 2026-7"}, by=by)
    client.force_login(by)
    context = browser.new_context(viewport={"width": width, "height": 800}, java_script_enabled=False)
    context.add_cookies([{"name": "heval", "value": client.cookies["heval"].value, "url": live_server.url}])
    page = context.new_page()
    page.goto(live_server.url + reverse("report_forms", args=[study.pk]))
    field = page.get_by_label("Which risks do annotators have")
    colour = field.locator("xpath=..").locator("b").evaluate("node => getComputedStyle(node).color")
    assert colour != page.locator("h1").evaluate("node => getComputedStyle(node).color")
    field.focus()
    page.keyboard.type("None beyond tired eyes.")
    page.get_by_role("button", name="Store the answers").press("Enter")
    assert page.get_by_text("Stored: 1 changed.").is_visible()
    page.locator("section[aria-labelledby=forms] summary").first.press("Enter")
    assert page.get_by_text("x is beta, y is alpha").first.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/forms-{width}.png", full_page=True)
    context.close()
    scripted = browser.new_context(viewport={"width": width, "height": 800})
    scripted.add_cookies([{"name": "heval", "value": client.cookies["heval"].value, "url": live_server.url}])
    page = scripted.new_page()
    page.goto(live_server.url + reverse("report_forms", args=[study.pk]))
    assert not violations(page)
    scripted.close()
