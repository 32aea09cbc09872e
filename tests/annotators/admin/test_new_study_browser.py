"""From a draft with texts and a question to the link that people open, in Chromium: loads, fields and refusals are counted."""

import pytest
from django.conf import settings
from django.test import Client

from studies.models import Study, audit
from studies.services import jobs
from studies.services.drafts import store_facts
from tests.browsing import DESKTOP, PHONE, look_at, overflow, press, shot, until
from tests.builders import add_choice, draft_study, user

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
FACTS = {
    "institution": "University of Graz",
    "responsible": "Ada Lovelace",
    "contact": "study@example.org",
    "ethics_contact": "ethics@example.org",
    "legal_basis": "your consent",
    "storage": "on a server in Graz",
    "retention": "for ten years",
}


@pytest.fixture
def owner():
    return user("olga")


@pytest.fixture
def page(browser, live_server, owner):
    client = Client()
    client.force_login(owner)
    context = browser.new_context()
    name, value = settings.SESSION_COOKIE_NAME, client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": name, "value": value, "url": live_server.url}])
    page = context.new_page()
    page.faults = []
    page.on("console", lambda one: page.faults.append(one.text) if one.type == "error" else None)
    yield page
    assert not page.faults
    context.close()


def draft(owner) -> Study:
    """As the pages before leave it: texts, a question and comparisons, and nothing about people, pay and what they read."""
    study = draft_study(
        owner=owner, systems=("alpha", "beta"), prompts=40, target_n=None, reward=None, minutes=None,
        title="Which is better", public_title="", purpose="", instructions="", consent="", contact="",
    )  # fmt: skip
    audit.record_study_event("create", study, by=owner)
    add_choice(study, m=10, strategy="any")
    return study


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_from_people_to_the_link_in_few_loads(page, live_server, owner, size, settings):
    settings.SITE_URL = live_server.url
    page.set_viewport_size(size)
    study, loads, fields = draft(owner), [], 0
    page.on("framenavigated", lambda frame: loads.append(frame.url) if frame == page.main_frame else None)
    page.goto(f"{live_server.url}/admin/studies/study/{study.pk}/new/people/")
    assert page.locator("#id_target_n").input_value() and overflow(page) <= 0
    press(page, page.get_by_role("button", name="Continue"))
    for name, value in FACTS.items():
        if name != "legal_basis":
            page.fill(f"#id_facts-{name}", value)
            fields += 1
    assert overflow(page) <= 0
    press(page, page.get_by_role("button", name="Continue"))
    assert overflow(page) <= 0
    press(page, page.get_by_role("link", name="Continue"))
    for box in page.locator("input[name=acknowledge]").all():
        box.check()
        fields += 1
    assert overflow(page) <= 0
    press(page, page.get_by_role("button", name="Launch"))
    assert jobs.run_waiting_jobs() == 1
    page.wait_for_url("**/new/link/")
    address = page.locator("input[readonly]").first.input_value()
    assert overflow(page) <= 0
    page.get_by_role("button", name="Copy").first.wait_for()
    people = page.context.browser.new_context().new_page()
    people.goto(address)
    assert people.get_by_role("button", name="Start").is_visible()
    assert "University of Graz carries out this study" in people.content()
    study.refresh_from_db()
    assert study.state == "launched"
    # Four pages, the job and the link; six facts, once for the account, and the warnings.
    assert len(loads) == 6, loads
    assert fields <= 10, fields


@pytest.mark.slow
def test_each_page_is_readable_at_both_widths_and_without_script(page, live_server, owner, browser, settings):
    settings.SITE_URL = live_server.url
    study, wrong = draft(owner), []
    address = f"{live_server.url}/admin/studies/study/{study.pk}/new"
    page.goto(f"{address}/people/")
    numbers = page.locator(".plan-said").inner_text()
    page.fill("#id_target_n", "8")
    until(lambda: page.locator(".plan-said").inner_text() != numbers)
    look_at(page, "people", wrong)
    shot(page, "people")
    press(page, page.get_by_role("button", name="Continue"))
    look_at(page, "texts", wrong)
    shot(page, "texts-empty")
    press(page, page.get_by_role("button", name="Save and look at it"))
    assert page.frame_locator("iframe.phone").get_by_text("What you agree to").is_visible()
    look_at(page, "texts stored", wrong)
    shot(page, "texts")
    page.goto(f"{live_server.url}/admin/studies/study/facts/")
    look_at(page, "facts", wrong)
    shot(page, "facts")
    page.goto(f"{address.removesuffix('/new')}/launch/")
    look_at(page, "launch with a place left", wrong)
    shot(page, "launch-missing")
    store_facts(owner, FACTS)
    page.goto(f"{address}/try/")
    press(page, page.get_by_role("button", name="Start a test"))
    look_at(page, "try", wrong)
    shot(page, "try")
    Study.objects.filter(pk=study.pk).update(consent="You agree.", contact="study@example.org")
    page.goto(f"{address.removesuffix('/new')}/launch/")
    look_at(page, "launch", wrong)
    shot(page, "launch")
    for box in page.locator("input[name=acknowledge]").all():
        box.check()
    page.get_by_label("How do people come?").select_option("prolific")
    page.fill("#id_full_pay", "0.10")
    press(page, page.get_by_role("button", name="Launch"))
    assert jobs.run_waiting_jobs() == 1
    page.wait_for_url("**/new/link/")
    look_at(page, "link of Prolific", wrong)
    shot(page, "link-prolific")
    assert not wrong, "\n".join(wrong)
    plain = browser.new_context(java_script_enabled=False, storage_state=page.context.storage_state()).new_page()
    other = draft(owner)
    plain.goto(f"{live_server.url}/admin/studies/study/{other.pk}/new/people/")
    plain.fill("#id_target_n", "12")
    press(plain, plain.get_by_role("button", name="Show the numbers"))
    assert (
        "12 people" in plain.locator(".plan-said").inner_text() and plain.locator("#id_target_n").input_value() == "12"
    )
    press(plain, plain.get_by_role("button", name="Continue"))
    assert plain.url.endswith("/new/texts/") and Study.objects.get(pk=other.pk).target_n == 12
