"""The list of an expert's parts in Chromium: accessible at both widths, and one presses on from it without script."""

import pytest

from annotators.models import Assignment
from tests.browsing import DESKTOP, look_at, shot
from tests.players import answered

from .expert_studies import expert_study

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_list_is_accessible_and_leads_on_without_script(browser, live_server):
    study, door = expert_study(parts=10, target_n=6)
    context = browser.new_context(viewport=DESKTOP, java_script_enabled=False)
    page = context.new_page()
    page.goto(live_server.url + door)
    page.get_by_label("I have read this").check()
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/s1.p1/")
    for _ in range(2):
        answered(Assignment.objects.select_related("study").latest("pk"))
    page.goto(live_server.url + door)
    page.get_by_role("button", name="Start part 2").click()
    page.wait_for_url("**/s1.p1/")
    page.goto(live_server.url + door)
    shot(page, "work")
    with_script = browser.new_context(viewport=DESKTOP)
    seen, wrong = with_script.new_page(), []
    seen.goto(live_server.url + door)
    look_at(seen, "work", wrong)
    page.get_by_role("link", name="Continue part 2").click()
    page.wait_for_url("**/s1.p1/")
    context.close(), with_script.close()
    assert not wrong
